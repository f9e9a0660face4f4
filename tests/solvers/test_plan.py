"""Ends that share bones are all met, in whatever order they are written down."""

from __future__ import annotations

import numpy as np
import pytest

from solvers.chain import Target
from solvers.config import ChainConfig
from solvers.plan import ORDER, Goal, solve_goals
from solvers.rig import Rig

NAMES = (
    "hips",
    "spine",
    "chest",
    "left arm",
    "left fore",
    "left hand",
    "right arm",
    "right fore",
    "right hand",
)
PARENTS = (-1, 0, 1, 2, 3, 4, 2, 6, 7)
PLACES = (
    (0, 1, 0), (0, 0.2, 0), (0, 0.2, 0),
    (-0.2, 0.1, 0), (-0.3, 0, 0.02), (-0.3, 0, 0),
    (0.2, 0.1, 0), (0.3, 0, 0.02), (0.3, 0, 0),
)  # fmt: skip
RIG = Rig.build(NAMES, PARENTS, PLACES)
CONFIG = ChainConfig(tolerance_m=1e-3, max_rounds=100)


def hands(left: tuple[float, ...], right: tuple[float, ...], solver: str = "ccd") -> dict[str, Goal]:
    """Both hands' chains begin at the spine, so they share two bones."""
    return {
        "left": Goal("hand", RIG.chain("spine", "left hand"), Target(np.array(left)), solver, CONFIG),
        "right": Goal("hand", RIG.chain("spine", "right hand"), Target(np.array(right)), solver, CONFIG),
    }


@pytest.mark.parametrize("solver", ["ccd", "dls"])
def test_both_hands_are_met_although_they_share_the_spine(solver: str) -> None:
    """The second hand bends the spine and carries the first away; the last pass brings it back."""
    goals = hands((-0.3, 1.2, -0.5), (0.4, 1.9, -0.4), solver)

    pose, found = solve_goals(RIG.rest(), goals)

    points, _ = RIG.world(pose)
    for name, goal in goals.items():
        tip = points[RIG.index(f"{name} hand")]
        assert np.linalg.norm(tip - goal.target.position) < 1e-3
        assert found[name].reached


def test_the_last_pass_leaves_shared_bones_alone() -> None:
    """What is reported is what the pose shows: each end's own residual after everything is done."""
    goals = hands((-0.3, 1.2, -0.5), (0.9, 2.2, -0.4))

    pose, found = solve_goals(RIG.rest(), goals)

    points, _ = RIG.world(pose)
    for name, goal in goals.items():
        miss = np.linalg.norm(points[RIG.index(f"{name} hand")] - goal.target.position)
        assert found[name].residual_m == pytest.approx(miss, abs=1e-9)


def test_the_spine_comes_before_hands_however_goals_are_listed() -> None:
    spine = Goal(
        "spine",
        RIG.chain("hips", "spine", effector_offset=(0, 0.2, 0)),
        Target(np.array([0.1, 1.38, -0.05])),
        "ccd",
        CONFIG,
    )
    arms = {
        side: Goal("hand", RIG.chain(f"{side} arm", f"{side} hand"), Target(np.array(at)), "fabrik", CONFIG)
        for side, at in (("left", (-0.3, 1.3, -0.3)), ("right", (0.4, 1.5, -0.3)))
    }

    first, one = solve_goals(RIG.rest(), {"spine": spine, **arms})
    last, other = solve_goals(RIG.rest(), {**arms, "spine": spine})

    np.testing.assert_array_equal(first.local_rotations, last.local_rotations)
    assert all(solution.reached for solution in (*one.values(), *other.values()))


def test_bones_outside_of_all_chains_keep_their_local_rotation() -> None:
    goals = {"left": hands((-0.3, 1.2, -0.5), (0, 0, 0))["left"]}

    pose, _ = solve_goals(RIG.rest(), goals)

    rest = RIG.rest().local_rotations
    np.testing.assert_array_equal(pose.local_rotations[[0, 6, 7, 8]], rest[[0, 6, 7, 8]])


def test_an_unknown_kind_is_told_with_those_there_are() -> None:
    goal = hands((0, 0, 0), (0, 0, 0))["left"]

    with pytest.raises(ValueError, match=", ".join(ORDER)):
        solve_goals(RIG.rest(), {"wing": Goal("wing", goal.chain, goal.target)})
