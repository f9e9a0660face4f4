"""CCD: reaches with rotations, respects weights and limits, and never hangs on a line or a limit."""

from __future__ import annotations

import json
import math
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solvers.ccd import solve_ccd
from solvers.config import CcdConfig
from solvers.kernels import ccd
from solvers.old_chain import bone_lengths
from vrik import quat
from vrik.arrays import Floats, Points, Quats, Vec3
from vrik.jit import plain

MIRROR = np.array([-1.0, 1.0, 1.0])
MIRROR_Q = np.array([1.0, 1.0, -1.0, -1.0])
ROOT = np.array([0.1, 1.0, -0.2])

seeds = st.integers(0, 2**32 - 1)
coordinates = st.floats(-2.0, 2.0, allow_nan=False)
points = st.tuples(coordinates, coordinates, coordinates).map(np.array)


def upright(n: int, bone_m: float = 0.2) -> Points:
    """Offsets of a chain that stands up in its rest pose."""
    offsets = np.zeros((n, 3))
    offsets[1:, 1] = bone_m
    return offsets


def random_rotations(rng: np.random.Generator, n: int, largest_rad: float) -> Quats:
    """World rotations whose angles from segment to segment stay below ``largest_rad``."""
    axes = rng.normal(size=(n, 3))
    axes *= rng.uniform(0.0, largest_rad, (n, 1)) / np.linalg.norm(axes, axis=1)[:, None]
    rotations = quat.from_rotvec(axes)
    for i in range(1, n):
        rotations[i] = quat.multiply(rotations[i - 1], rotations[i])
    return rotations


def joints_of(root: Vec3, rotations: Quats, offsets: Points) -> Points:
    """Forward kinematics, written independently of the kernels."""
    return root + np.vstack([np.zeros(3), np.cumsum(quat.rotate(rotations[:-1], offsets[1:]), axis=0)])


def joint_angles(rotations: Quats) -> Floats:
    """Angle of each segment from the one before, the first from the identity. [rad]"""
    before = np.vstack([quat.identity(1), rotations[:-2]])
    return quat.angle(before, rotations[:-1])


@settings(max_examples=100, deadline=None, derandomize=True)
@given(seeds, st.integers(3, 10), st.floats(0.3, 1.0))
def test_targets_of_random_poses_are_reached(seed: int, n: int, least_weight: float) -> None:
    rng = np.random.default_rng(seed)
    offsets = upright(n)
    target = joints_of(ROOT, random_rotations(rng, n, 1.0), offsets)[-1]
    weights = rng.uniform(least_weight, 1.0, n)

    solved = solve_ccd(ROOT, random_rotations(rng, n, 1.0), offsets, target, weights=weights)

    assert solved.residual_m <= 1e-3
    assert solved.rounds <= 64


@settings(max_examples=100, deadline=None)
@given(seeds, st.integers(2, 8), points)
def test_bones_hold_and_rotations_explain_the_joints(seed: int, n: int, target: Vec3) -> None:
    rng = np.random.default_rng(seed)
    offsets = rng.normal(size=(n, 3)) * 0.2
    start = random_rotations(rng, n, 3.0)

    solved = solve_ccd(ROOT, start, offsets, target)

    assert solved.rotations_world is not None
    np.testing.assert_allclose(
        bone_lengths(solved.joints_world), np.linalg.norm(offsets[1:], axis=1), atol=1e-9
    )
    np.testing.assert_allclose(
        solved.joints_world, joints_of(ROOT, solved.rotations_world, offsets), atol=1e-9
    )
    np.testing.assert_allclose(np.linalg.norm(solved.rotations_world, axis=1), 1.0, atol=1e-12)
    np.testing.assert_allclose(solved.rotations_world[-1], start[-1], atol=1e-12)


@settings(max_examples=100, deadline=None)
@given(seeds, st.integers(2, 8), points, st.floats(0.05, 1.5))
def test_limits_are_never_broken(seed: int, n: int, target: Vec3, limit_rad: float) -> None:
    """A chain that starts inside its limits stays there, whatever the target."""
    rng = np.random.default_rng(seed)
    start = random_rotations(rng, n, limit_rad)
    limits = np.full(n, limit_rad)

    solved = solve_ccd(ROOT, start, upright(n), target, limits_rad=limits)

    assert solved.rotations_world is not None
    assert joint_angles(solved.rotations_world).max() <= limit_rad + 1e-6


def test_a_limit_is_measured_from_the_base() -> None:
    base = quat.from_rotvec(np.array([0.0, 1.0, 0.0]))
    start = np.tile(base, (3, 1))

    solved = solve_ccd(
        ROOT, start, upright(3), ROOT + np.array([1.0, 0.0, 0.0]), limits_rad=np.full(3, 0.2), base_world=base
    )

    assert solved.rotations_world is not None
    assert quat.angle(base, solved.rotations_world[0]) == pytest.approx(0.2, abs=1e-6)


def test_a_rigid_joint_keeps_its_rotation_relative_to_its_parent() -> None:
    rng = np.random.default_rng(3)
    start = random_rotations(rng, 5, 0.5)
    weights = np.array([1.0, 0.0, 1.0, 1.0, 1.0])

    solved = solve_ccd(ROOT, start, upright(5), ROOT + np.array([0.2, 0.5, 0.1]), weights=weights)

    assert solved.rotations_world is not None
    assert solved.reached
    before = quat.multiply(quat.conjugate(start[0]), start[1])
    after = quat.multiply(quat.conjugate(solved.rotations_world[0]), solved.rotations_world[1])
    assert quat.angle(before, after) < 1e-9


def test_no_joint_turns_more_than_its_step_in_one_sweep() -> None:
    start = quat.identity(5)
    config = CcdConfig(max_step_rad=0.1, max_sweeps=1)

    solved = solve_ccd(ROOT, start, upright(5), ROOT + np.array([0.6, 0.0, 0.0]), config=config)

    assert solved.rotations_world is not None
    assert 0.05 < joint_angles(solved.rotations_world).max() <= 0.1 + 1e-9


def test_a_straight_chain_bends_for_a_target_on_its_line(shared: Path) -> None:
    """Case C45, with rotations."""
    case = json.loads((shared / "data/cases/c45_collinear.json").read_text())
    joints = np.array(case["joints"], float)
    offsets = np.vstack([np.zeros(3), np.diff(joints, axis=0)])

    solved = solve_ccd(joints[0], quat.identity(4), offsets, np.array(case["target"], float))

    assert solved.residual_m <= 1e-3
    np.testing.assert_allclose(bone_lengths(solved.joints_world), 0.4, atol=1e-6)
    assert abs(solved.joints_world[1:-1, 1]).min() > 0.01


def test_a_target_behind_limits_ends_within_the_sweep_limit(shared: Path) -> None:
    """Case C46: limits of 10 degrees, a target beyond them, tolerance 0: a best pose, quickly."""
    case = json.loads((shared / "data/cases/c45_collinear.json").read_text())
    joints, target = np.array(case["joints"], float), np.array(case["target"], float)
    offsets = np.vstack([np.zeros(3), np.diff(joints, axis=0)])
    config = CcdConfig(tolerance_m=0.0, max_sweeps=50)
    limits = np.full(4, math.radians(10.0))
    solve_ccd(joints[0], quat.identity(4), offsets, target, limits_rad=limits, config=config)  # compiles

    began = time.perf_counter()
    solved = solve_ccd(joints[0], quat.identity(4), offsets, target, limits_rad=limits, config=config)
    took_s = time.perf_counter() - began

    assert not solved.reached
    assert solved.stopped_because in ("no_progress", "max_rounds")
    assert solved.rounds <= 50
    assert solved.residual_m <= 0.2 + 1e-9  # no farther than it started
    assert took_s < 0.005


def test_a_target_on_the_root_is_reached_by_a_chain_that_can_fold() -> None:
    """Case C47, with rotations."""
    solved = solve_ccd(ROOT, quat.identity(3), upright(3, 0.3), ROOT)

    assert solved.residual_m <= 1e-3
    np.testing.assert_allclose(bone_lengths(solved.joints_world), 0.3, atol=1e-9)


def test_a_hand_that_sweeps_half_a_circle_moves_the_elbow_smoothly(shared: Path) -> None:
    """Case C51 without a pole: warm-started, the elbow moves at most 3 cm a frame."""
    case = json.loads((shared / "data/cases/c51_sweep.json").read_text())
    shoulder, targets = np.array(case["shoulder"], float), np.array(case["targets"], float)
    offsets = np.array([[0.0, 0, 0], [-case["lengths"][0], 0, 0], [-case["lengths"][1], 0, 0]])
    rotations = solve_ccd(shoulder, quat.identity(3), offsets, targets[0]).rotations_world
    elbows = []

    for target in targets:
        assert rotations is not None
        solved = solve_ccd(shoulder, rotations, offsets, target)
        rotations = solved.rotations_world
        elbows.append(solved.joints_world[1])
        assert solved.residual_m <= 1e-3

    assert np.linalg.norm(np.diff(elbows, axis=0), axis=1).max() <= 0.03


@settings(max_examples=100, deadline=None, derandomize=True)
@given(seeds, st.integers(3, 7))
def test_mirrored_input_gives_the_mirrored_chain(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    offsets = rng.normal(size=(n, 3)) * 0.2
    start, target = random_rotations(rng, n, 1.0), ROOT + rng.normal(size=3) * 0.3
    config = CcdConfig(max_sweeps=10)

    left = solve_ccd(ROOT, start, offsets, target, config=config)
    right = solve_ccd(ROOT * MIRROR, start * MIRROR_Q, offsets * MIRROR, target * MIRROR, config=config)

    np.testing.assert_allclose(right.joints_world, left.joints_world * MIRROR, atol=1e-9)


@pytest.mark.parametrize("height_m", [0.9, 0.4])
def test_a_straight_spine_flexes_forward_in_its_own_plane(height_m: float) -> None:
    """On the line to the target every joint flexes to its front, and neither side is preferred."""
    solved = solve_ccd(ROOT, quat.identity(6), upright(6), ROOT + np.array([0.0, height_m, 0.0]))

    assert solved.residual_m <= 1e-3
    np.testing.assert_allclose(solved.joints_world[:, 0], ROOT[0], atol=1e-9)
    assert (solved.joints_world[2:4, 2] > ROOT[2] + 0.05).all()


def test_compiled_and_plain_ccd_agree() -> None:
    rng = np.random.default_rng(5)
    for n in (2, 3, 6):
        offsets, weights = upright(n), rng.uniform(0.3, 1.0, n)
        start, target = random_rotations(rng, n, 1.0), tuple(rng.normal(size=3) * 0.3)
        results = []
        for solve in (ccd.solve, plain(ccd.solve)):
            positions, rotations = np.zeros((n, 3)), start.copy()
            limits, base = np.full(n, 1.2), (1.0, 0.0, 0.0, 0.0)
            sweeps = solve(positions, rotations, offsets, weights, target, 1e-4, 0.5, 20, limits, base)
            results.append((sweeps, positions, rotations))

        assert results[0][0] == results[1][0]
        np.testing.assert_allclose(results[0][1], results[1][1], atol=1e-9)
        np.testing.assert_allclose(results[0][2], results[1][2], atol=1e-9)


def test_wrong_arguments_are_named() -> None:
    with pytest.raises(ValueError, match="rotations_world has 3 rows, offsets has 4"):
        solve_ccd(ROOT, quat.identity(3), upright(4), ROOT)
    with pytest.raises(ValueError, match="target_world is not finite"):
        solve_ccd(ROOT, quat.identity(4), upright(4), np.full(3, np.nan))
    with pytest.raises(ValueError, match="weights must be finite and from 0 to 1"):
        solve_ccd(ROOT, quat.identity(4), upright(4), ROOT, weights=np.full(4, 2.0))
