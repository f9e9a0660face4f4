"""Two bones in closed form: exact where it can be, and something sensible where it cannot."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solvers.kernels import two_bone
from solvers.old_chain import bone_lengths
from solvers.two_bone import solve_two_bone
from vrik.arrays import Vec3
from vrik.jit import plain

DOWN = np.array([0.0, -1.0, 0.0])
MIRROR = np.array([-1.0, 1.0, 1.0])

coordinates = st.floats(-2.0, 2.0, allow_nan=False)
points = st.tuples(coordinates, coordinates, coordinates).map(np.array)
bones = st.floats(0.05, 0.6)


@settings(max_examples=100, deadline=None)
@given(points, points, bones, bones, points)
def test_bones_hold_and_the_end_is_as_near_as_it_can_be(
    root: Vec3, target: Vec3, upper: float, lower: float, pole: Vec3
) -> None:
    away = np.linalg.norm(target - root)
    shortfall = max(away - (upper + lower), abs(upper - lower) - away, 0.0)

    solved = solve_two_bone(root, target, upper, lower, pole)

    assert np.isfinite(solved.joints_world).all()
    np.testing.assert_allclose(bone_lengths(solved.joints_world), [upper, lower], atol=1e-9)
    assert solved.residual_m == pytest.approx(shortfall, abs=3e-9)


@settings(max_examples=100, deadline=None)
@given(bones, bones, st.floats(0.001, 3.14), points, points)
def test_the_elbow_opens_as_the_law_of_cosines_says(
    upper: float, lower: float, angle: float, root: Vec3, pole: Vec3
) -> None:
    """A reach made from an elbow angle gives that angle back."""
    reach = math.sqrt(upper**2 + lower**2 - 2.0 * upper * lower * math.cos(angle))

    solved = solve_two_bone(root, root + np.array([0.0, 0.0, -reach]), upper, lower, pole)

    a, b = solved.joints_world[0] - solved.joints_world[1], solved.joints_world[2] - solved.joints_world[1]
    cosine = a @ b / (upper * lower)
    assert cosine == pytest.approx(math.cos(angle), abs=1e-9)
    assert solved.reached


@settings(max_examples=100, deadline=None)
@given(points, points)
def test_the_elbow_points_to_the_pole(target: Vec3, pole: Vec3) -> None:
    sizes = np.linalg.norm(target) * np.linalg.norm(pole)
    if np.linalg.norm(np.cross(target, pole)) <= 1e-5 * sizes or sizes < 1e-5:  # the side is then free
        return

    solved = solve_two_bone(np.zeros(3), target, 0.30, 0.26, pole)

    axis, elbow = solved.joints_world[2], solved.joints_world[1]
    assert np.cross(axis, elbow) @ np.cross(axis, pole) >= -1e-9


@settings(max_examples=100, deadline=None)
@given(points, points, points)
def test_mirrored_input_gives_the_mirrored_limb(root: Vec3, target: Vec3, pole: Vec3) -> None:
    axis = target - root
    off = np.linalg.norm(np.cross(axis, pole))
    if off < 1e-3:  # the side is then free
        return

    left = solve_two_bone(root, target, 0.30, 0.26, pole)
    right = solve_two_bone(root * MIRROR, target * MIRROR, 0.30, 0.26, pole * MIRROR)

    np.testing.assert_allclose(right.joints_world, left.joints_world * MIRROR, atol=1e-12)


@pytest.mark.parametrize("pole", [DOWN, -DOWN, np.zeros(3), np.array([0.0, 0.0, 1.0])])
@pytest.mark.parametrize("reach", [0.0, 1e-12, 1e-7, 0.04, 0.3, 0.56, 0.57, 50.0])
def test_straight_folded_on_the_root_and_along_the_pole_are_finite(reach: float, pole: Vec3) -> None:
    solved = solve_two_bone(np.zeros(3), np.array([0.0, reach, 0.0]), 0.30, 0.26, pole)

    assert np.isfinite(solved.joints_world).all()
    np.testing.assert_allclose(bone_lengths(solved.joints_world), [0.30, 0.26], atol=1e-9)


def test_a_target_on_the_root_folds_the_limb_to_the_pole(shared: Path) -> None:
    """Case C47: the bones keep their length when shoulder and target coincide."""
    case = json.loads((shared / "data/cases/c47_target_at_root.json").read_text())
    root, target = np.array(case["joints"][0], float), np.array(case["target"], float)

    solved = solve_two_bone(root, target, *case["lengths"], DOWN)

    np.testing.assert_allclose(bone_lengths(solved.joints_world), 0.3, atol=1e-6)
    assert solved.residual_m <= 1e-3
    np.testing.assert_allclose(solved.joints_world[1], root + 0.3 * DOWN, atol=1e-9)


def test_a_hand_that_sweeps_past_the_pole_does_not_flip_the_elbow(shared: Path) -> None:
    """Case C51: the elbow moves at most 3 cm a frame and stays below the shoulder-hand line."""
    case = json.loads((shared / "data/cases/c51_sweep.json").read_text())
    shoulder, pole = np.array(case["shoulder"], float), np.array(case["pole"], float)

    limbs = [solve_two_bone(shoulder, np.array(t, float), *case["lengths"], pole) for t in case["targets"]]

    elbows = np.array([limb.joints_world[1] for limb in limbs])
    assert np.linalg.norm(np.diff(elbows, axis=0), axis=1).max() <= 0.03
    assert (elbows[:, 1] < shoulder[1]).all()  # shoulder and hand are level in this case


def test_a_hand_drawn_out_and_in_never_lets_the_elbow_jump() -> None:
    """Through full reach and back the elbow moves continuously: halving the step shrinks its largest step."""

    def largest_step(frames: int) -> float:
        reach = np.linspace(0.10, 0.70, frames)
        elbows = [
            solve_two_bone(np.zeros(3), np.array([0.0, 0.0, -r]), 0.3, 0.26, DOWN).joints_world[1]
            for r in reach
        ]
        return float(np.linalg.norm(np.diff(elbows, axis=0), axis=1).max())

    assert largest_step(4000) < 0.6 * largest_step(1000)


def test_compiled_and_plain_two_bone_agree() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        root, target, pole = (tuple(rng.normal(size=3) * 0.4) for _ in range(3))
        upper, lower = rng.uniform(0.1, 0.4, 2)

        fast = two_bone.bend(root, target, upper, lower, pole)
        slow = plain(two_bone.bend)(root, target, upper, lower, pole)

        np.testing.assert_allclose(fast, slow, atol=1e-9)


def test_wrong_arguments_are_named() -> None:
    with pytest.raises(ValueError, match="target_world is not finite"):
        solve_two_bone(np.zeros(3), np.array([np.nan, 0.0, 0.0]), 0.3, 0.3, DOWN)
    with pytest.raises(ValueError, match="upper_m and lower_m"):
        solve_two_bone(np.zeros(3), DOWN, -0.3, 0.3, DOWN)
