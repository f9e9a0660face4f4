"""Many bodies are each what one body alone is, and limbs may have other solvers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from solvers.bodies import Bodies, BodyGoals, solve_bodies
from solvers.body import BodySolver
from vrik import quat
from vrik.body import BodyModel
from vrik.config import SolveConfig, SteppingConfig
from vrik.frames import ROLE, ROLES, BodyTargets
from vrik.skeleton import BONE, BONES, PARENTS

STILL_FEET = SolveConfig(stepping=SteppingConfig(enabled=False))
THREE = ("head", "left_hand", "right_hand")
SETS = (THREE, (*THREE, "waist", "left_foot", "right_foot"))


def reached_targets(person: Any, seed: int, roles: tuple[str, ...]) -> BodyTargets:
    """Targets that one pose of a body of 1.7 m reaches together."""
    wearer = person(roles)
    position, rotation = wearer.plausible(np.random.default_rng(seed))
    n = len(ROLES)
    where, turn, weight = np.zeros((n, 3)), quat.identity(n), np.zeros(n)
    where[wearer.rows], turn[wearer.rows] = position[wearer.bones], rotation[wearer.bones]
    weight[wearer.rows] = 1.0
    return BodyTargets(0, where, turn, weight, weight, np.ones(n, np.int64), np.zeros(n))


def lengths(positions: np.ndarray) -> np.ndarray:
    bones = [j for j in range(len(BONES)) if PARENTS[j] >= 0]
    return np.linalg.norm(positions[bones] - positions[PARENTS[bones]], axis=-1)


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("roles", SETS)
def test_many_bodies_are_each_what_one_is_alone(person: Any, workers: int, roles: tuple[str, ...]) -> None:
    """Twelve bodies of different sizes over three frames: same numbers to 1e-9 as one BodySolver each."""
    count = 12
    models = [BodyModel.average(1.4 + 0.05 * b) for b in range(count)]
    alone = [BodySolver(model, STILL_FEET) for model in models]
    many = Bodies.in_tpose(np.array([model.tpose for model in models]))
    for frame in range(3):
        targets = [reached_targets(person, 100 * frame + b, roles) for b in range(count)]
        solved = [solver.step(target, 0.0) for solver, target in zip(alone, targets, strict=True)]
        guesses = [solver.guess for solver in alone]
        goals = BodyGoals(
            np.array([t.position for t in targets]),
            np.array([t.rotation for t in targets]),
            np.array([t.position_weight for t in targets]),
            *(np.array([getattr(g, name) for g in guesses]) for name in (
                "pelvis_position", "pelvis_rotation", "chest_rotation", "ankle_position", "foot_rotation",
                "elbow_pole", "knee_pole",
            )),
        )  # fmt: skip

        solve_bodies(many, goals, STILL_FEET, workers)

        for b, one in enumerate(solved):
            np.testing.assert_allclose(many.position[b], one.position, atol=1e-9)
            np.testing.assert_allclose(many.rotation[b], one.rotation, atol=1e-9)
            np.testing.assert_allclose(many.local_rotation[b], one.local_rotation, atol=1e-9)
            np.testing.assert_allclose(many.reach_error_m[b], one.reach_error_m, atol=1e-9)


@pytest.mark.parametrize("roles", SETS)
def test_naming_the_default_solvers_one_by_one_changes_nothing(
    person: Any, roles: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The body outside of its compiled loop takes the same steps."""
    import solvers.body as module

    compiled = BodySolver(BodyModel.average(1.7))
    monkeypatch.setattr(module, "COMPILED", ("none",))
    stepwise = BodySolver(BodyModel.average(1.7))
    for seed in range(5):
        targets = reached_targets(person, seed, roles)
        one, other = compiled.step(targets, 0.02), stepwise.step(targets, 0.02)

        np.testing.assert_allclose(other.position, one.position, atol=1e-9)
        np.testing.assert_allclose(other.local_rotation, one.local_rotation, atol=1e-9)


@pytest.mark.parametrize(
    "change",
    [
        {"arm_solver": "two_bone"},
        {"arm_solver": "ccd"},
        {"arm_solver": "dls"},
        {"leg_solver": "fabrik"},
        {"leg_solver": "ccd"},
        {"spine_solver": "fabrik"},
        {"spine_solver": "dls"},
    ],
)
@pytest.mark.parametrize("roles", SETS)
def test_a_limb_with_another_solver_meets_its_targets_as_well(
    person: Any, change: dict[str, str], roles: tuple[str, ...]
) -> None:
    body = BodyModel.average(1.7)
    solver = BodySolver(body, replace(STILL_FEET, max_rounds=100, **change))
    usual = BodySolver(body, STILL_FEET)
    for seed in range(8):
        targets = reached_targets(person, seed, roles)

        solved, reference = solver.step(targets, 0.02), usual.step(targets, 0.02)

        np.testing.assert_allclose(lengths(solved.position), lengths(body.tpose), atol=1e-9)
        for role in ("head", "left_hand", "right_hand"):
            assert solved.reach_error_m[ROLE[role]] < max(1e-3, reference.reach_error_m[ROLE[role]] + 1e-3)
        assert np.isfinite(solved.local_rotation).all()
        assert solved.position[BONE["leftFoot"], 1] > -1e-6


def test_an_unknown_solver_is_told_with_those_there_are() -> None:
    with pytest.raises(ValueError, match=r"no solver named 'magic'; have: fabrik, ccd"):
        BodySolver(BodyModel.average(1.7), SolveConfig(arm_solver="magic"))
