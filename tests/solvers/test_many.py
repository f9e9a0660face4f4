"""Many at once give what one by one gives, with any number of threads."""

from __future__ import annotations

import numpy as np
import pytest

from solvers.chain import Chain, ChainPose, Target
from solvers.config import ChainConfig
from solvers.limits import Hinge, SwingTwist
from solvers.many import REASONS, solve_many
from solvers.registry import solve_chain
from vrik import quat

ARM = Chain.build(
    [[0.0, 0.0, 0.0], [0.3, 0.0, 0.0], [0.26, 0.0, 0.0], [0.08, 0.0, 0.0]],
    limits=[
        SwingTwist((1.0, 0.0, 0.0), (1.6, 1.4), -1.5, 1.5),
        Hinge((0.0, 1.0, 0.0), -0.1, 2.6),
        SwingTwist((1.0, 0.0, 0.0), (0.9, 0.5), -0.3, 0.3),
    ],
)
LIMB = Chain.build([[0.0, 0.0, 0.0], [0.0, -0.4, 0.0], [0.0, -0.42, 0.0]])
COUNT = 40


def problems(chain: Chain, seed: int) -> dict[str, np.ndarray]:
    random = np.random.default_rng(seed)
    n, m = COUNT, chain.joint_count
    return {
        "roots_world": random.normal(size=(n, 3)),
        "rotations_world": quat.from_rotvec(random.normal(size=(n, m, 3)) * 0.4),
        "targets": random.normal(size=(n, 3)),
        "bases_world": quat.normalize(random.normal(size=(n, 4))),
        "target_rotations": quat.normalize(random.normal(size=(n, 4))),
        "poles": random.normal(size=(n, 3)) * (random.random((n, 1)) < 0.5),
    }


@pytest.mark.parametrize("solver", ["fabrik", "ccd", "dls", "svd", "transpose", "two_bone"])
@pytest.mark.parametrize("turned", [False, True])
def test_each_row_is_what_the_solver_gives_alone(solver: str, turned: bool) -> None:
    """Targets are near and far, some out of reach; two threads share the rows."""
    given = problems(ARM, 3)
    given["targets"] = given["roots_world"] + given["targets"] * 0.4
    rotations = given.pop("target_rotations")
    config = ChainConfig(max_rounds=20)

    many = solve_many(
        ARM, **given, target_rotations=rotations if turned else None, solver=solver, config=config, workers=2
    )

    for b in range(COUNT):
        pole = given["poles"][b] if given["poles"][b].any() else None
        one = solve_chain(
            ARM,
            ChainPose.build(given["roots_world"][b], given["rotations_world"][b], given["bases_world"][b]),
            Target(given["targets"][b], rotations[b] if turned else None, pole=pole),
            solver=solver,
            config=config,
        )
        np.testing.assert_allclose(many.points_world[b], one.points_world, atol=1e-9)
        np.testing.assert_allclose(many.rotations_world[b], one.pose.rotations_world, atol=1e-9)
        assert many.residual_m[b] == pytest.approx(one.residual_m, abs=1e-9)
        assert many.residual_rad[b] == pytest.approx(one.residual_rad, abs=1e-9)
        assert (many.reached[b], many.rounds[b]) == (one.reached, one.rounds)
        assert REASONS[many.stopped_because[b]] == one.stopped_because


@pytest.mark.parametrize("solver", ["fabrik", "dls"])
def test_chains_may_differ_in_length(solver: str) -> None:
    given = problems(LIMB, 5)
    given.pop("target_rotations")
    sizes = np.linspace(0.5, 2.0, COUNT)
    offsets = LIMB.offsets * sizes[:, None, None]
    given["targets"] = (
        given["roots_world"] + quat.rotate(given["bases_world"], LIMB.offsets[1]) * sizes[:, None]
    )

    many = solve_many(LIMB, **given, offsets=offsets, solver=solver)

    found = np.linalg.norm(np.diff(many.points_world, axis=1), axis=-1)
    np.testing.assert_allclose(found, np.outer(sizes, LIMB.lengths), atol=1e-9)
    assert many.reached.mean() > 0.95


def test_a_solver_of_ones_own_is_called_row_by_row() -> None:
    def stubborn(chain: Chain, start: ChainPose, target: Target, config: ChainConfig) -> object:
        from solvers.chain import judged

        return judged(chain, start, start.rotations_world, target, config, 1)

    given = problems(LIMB, 6)
    given.pop("target_rotations")

    many = solve_many(LIMB, **given, solver=stubborn)  # type: ignore[arg-type]

    np.testing.assert_array_equal(many.rotations_world, quat.normalize(given["rotations_world"]))
    assert set(many.rounds) == {1}


def test_no_rows_are_no_work() -> None:
    none = np.zeros((0, 3))

    many = solve_many(LIMB, none, np.zeros((0, 2, 4)), none, workers=4)

    assert len(many.reached) == 0


def test_wrong_shapes_are_told() -> None:
    given = problems(LIMB, 7)

    with pytest.raises(ValueError, match=r"rotations_world has shape \(40, 3, 4\), expected \(40, 2, 4\)"):
        solve_many(LIMB, given["roots_world"], quat.identity(COUNT, 3), given["targets"])
    with pytest.raises(ValueError, match="two_bone solves 2 joints"):
        solve_many(
            Chain.build(np.ones((5, 3))),
            given["roots_world"],
            quat.identity(COUNT, 4),
            given["targets"],
            solver="two_bone",
        )
