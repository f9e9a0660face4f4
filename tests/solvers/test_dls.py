"""DLS: right derivatives, right damping, and calm behaviour through straight, folded and out of reach."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import least_squares

from solvers.config import DlsConfig
from solvers.dls import solve_dls
from solvers.kernels import chain, dls
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


def arm_offsets(upper_m: float = 0.30, lower_m: float = 0.26) -> Points:
    """A left arm in the T-pose: shoulder, elbow, hand."""
    return np.array([[0.0, 0, 0], [-upper_m, 0, 0], [-lower_m, 0, 0]])


def random_chain(rng: np.random.Generator, n: int, largest_rad: float = 1.0) -> tuple[Quats, Points]:
    """World rotations and offsets of a chain of uneven bones."""
    offsets = rng.normal(size=(n, 3)) * 0.05
    offsets[:, 1] += rng.uniform(0.1, 0.3, n)
    axes = rng.normal(size=(n, 3))
    axes *= rng.uniform(0.0, largest_rad, (n, 1)) / np.linalg.norm(axes, axis=1)[:, None]
    rotations = quat.from_rotvec(axes)
    for i in range(1, n):
        rotations[i] = quat.multiply(rotations[i - 1], rotations[i])
    return rotations, offsets


def joints_of(root: Vec3, rotations: Quats, offsets: Points) -> Points:
    """Forward kinematics, written independently of the kernels."""
    return root + np.vstack([np.zeros(3), np.cumsum(quat.rotate(rotations[:-1], offsets[1:]), axis=0)])


def turned_tip(rotations: Quats, offsets: Points, turns: Floats) -> Vec3:
    """Tip after turning joint i, and all after it, by the world rotation vector ``turns[i]``."""
    rotations = rotations.copy()
    for i in range(len(turns) - 1, -1, -1):
        rotations[i:] = quat.multiply(quat.from_rotvec(turns[i]), rotations[i:])
    return joints_of(ROOT, rotations, offsets)[-1]


def numeric_jacobian(rotations: Quats, offsets: Points, weights: Floats) -> Floats:
    """(3, 3 (n - 1)) change of the tip by central differences, columns scaled by the weights."""
    m = len(offsets) - 1
    columns = []
    for k in range(3 * m):
        step = np.zeros(3 * m)
        step[k] = 1e-5
        ahead = turned_tip(rotations, offsets, step.reshape(m, 3))
        behind = turned_tip(rotations, offsets, -step.reshape(m, 3))
        columns.append(weights[k // 3] * (ahead - behind) / 2e-5)
    return np.array(columns).T


@settings(max_examples=50, deadline=None)
@given(seeds, st.integers(2, 8))
def test_the_analytic_jacobian_agrees_with_finite_differences(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    rotations, offsets = random_chain(rng, n)
    weights = rng.uniform(0.0, 1.0, n)
    positions = joints_of(ROOT, rotations, offsets)

    xx, yy, zz, xy, xz, yz = dls.gram(positions, weights, n)
    smallest = dls.smallest_singular_value(positions, weights, n)

    jacobian = numeric_jacobian(rotations, offsets, weights)
    np.testing.assert_allclose([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]], jacobian @ jacobian.T, atol=1e-9)
    truth = np.linalg.svd(jacobian, compute_uv=False)[-1] if n > 2 else 0.0
    assert smallest == pytest.approx(truth, abs=1e-6)


@settings(max_examples=50, deadline=None)
@given(seeds, st.floats(0.0, 0.5))
def test_the_damped_step_is_the_least_squares_step(seed: int, damping: float) -> None:
    """The same step from numpy's solver on the stacked system [J; lambda I]."""
    rng = np.random.default_rng(seed)
    rotations, offsets = random_chain(rng, 5, 0.3)
    weights, miss = rng.uniform(0.3, 1.0, 5), rng.normal(size=3) * 0.1
    positions = joints_of(ROOT, rotations, offsets)

    pull = dls.damped_pull(positions, weights, tuple(miss), damping)
    turns = weights[:-1, None] ** 2 * np.cross(positions[-1] - positions[:-1], pull)

    jacobian = numeric_jacobian(rotations, offsets, weights)
    values = np.linalg.svd(jacobian, compute_uv=False)
    lack = max(0.0, 1.0 - values[-1] / (dls.SINGULAR * values[0]))
    damped = np.vstack([jacobian, damping * values[0] * lack * np.eye(12)])
    truth = np.linalg.lstsq(damped, np.concatenate([miss, np.zeros(12)]), rcond=None)[0]
    np.testing.assert_allclose(turns, weights[:-1, None] * truth.reshape(4, 3), rtol=1e-4, atol=1e-5)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(seeds, st.integers(3, 10), st.floats(0.3, 1.0))
def test_targets_of_random_poses_are_reached(seed: int, n: int, least_weight: float) -> None:
    rng = np.random.default_rng(seed)
    goal, offsets = random_chain(rng, n)
    start, _ = random_chain(rng, n)
    weights = rng.uniform(least_weight, 1.0, n)

    solved = solve_dls(ROOT, start, offsets, joints_of(ROOT, goal, offsets)[-1], weights=weights)

    assert solved.residual_m <= 1e-3
    assert solved.rounds <= 64


@settings(max_examples=10, deadline=None, derandomize=True)
@given(seeds)
def test_no_pose_of_two_free_joints_is_nearer_than_ours(seed: int) -> None:
    """scipy's least_squares on the same cost, from the same and a random start, is not nearer."""
    rng = np.random.default_rng(seed)
    start, offsets = random_chain(rng, 4, 0.5)
    weights = np.array([0.0, 1.0, 1.0, 1.0])
    target = joints_of(ROOT, start, offsets)[-1] + rng.normal(size=3) * 0.15

    solved = solve_dls(ROOT, start, offsets, target, weights=weights, config=DlsConfig(max_steps=500))

    def miss(turns: Floats) -> Floats:
        both = np.vstack([np.zeros(3), turns.reshape(2, 3)])
        return np.asarray(turned_tip(start, offsets, both) - target)

    best = min(
        np.linalg.norm(least_squares(miss, guess, xtol=1e-9, ftol=1e-9).fun)
        for guess in (np.zeros(6), rng.normal(size=6))
    )
    assert solved.residual_m <= max(best + 1e-3, 1e-4)


@settings(max_examples=100, deadline=None)
@given(seeds, st.integers(2, 8), points)
def test_bones_hold_and_rotations_explain_the_joints(seed: int, n: int, target: Vec3) -> None:
    start, offsets = random_chain(np.random.default_rng(seed), n, 3.0)

    solved = solve_dls(ROOT, start, offsets, target)

    assert solved.rotations_world is not None
    np.testing.assert_allclose(
        bone_lengths(solved.joints_world), np.linalg.norm(offsets[1:], axis=1), atol=1e-9
    )
    np.testing.assert_allclose(
        solved.joints_world, joints_of(ROOT, solved.rotations_world, offsets), atol=1e-9
    )
    np.testing.assert_allclose(solved.rotations_world[-1], start[-1], atol=1e-12)


@pytest.mark.parametrize("short_m", [1e-5, 1e-4, 1e-3, 1e-2, 0.1])
def test_a_straight_arm_comes_back_from_full_stretch(short_m: float) -> None:
    """Exactly straight, the target a little nearer on the same line: no first-order motion helps."""
    target = ROOT + np.array([-(0.56 - short_m), 0.0, 0.0])

    solved = solve_dls(ROOT, quat.identity(3), arm_offsets(), target)

    assert solved.residual_m <= 1e-3
    assert short_m < 1e-3 or abs(solved.joints_world[1] - ROOT)[1:].max() > 0.01


def test_a_hand_drawn_past_full_reach_and_back_stays_calm() -> None:
    """No spike and no oscillation: 1 mm steps turn no bone by more than its share, near straight or not."""
    rotations, steps, misses = quat.identity(3), [], []
    rotations[1] = quat.from_rotvec(np.array([0.0, 0.9, 0.0]))
    path = np.concatenate([np.linspace(0.45, 0.65, 201), np.linspace(0.65, 0.45, 201)])
    rotations = solve_dls(ROOT, rotations, arm_offsets(), ROOT + np.array([-0.45, 0.0, 0.0])).rotations_world

    for reach in path:
        assert rotations is not None
        solved = solve_dls(ROOT, rotations, arm_offsets(), ROOT + np.array([-reach, 0.0, 0.0]))
        assert solved.rotations_world is not None
        steps.append(quat.angle(rotations[:2], solved.rotations_world[:2]).max())
        misses.append(solved.residual_m - max(reach - 0.56, 0.0))
        rotations = solved.rotations_world

    # leaving full reach by d opens the elbow by sqrt(d * 2 (u + l) / (u l)): 0.12 rad for the first mm
    assert max(steps) < 0.13
    assert max(misses) <= 1e-3


@pytest.mark.parametrize("away_m", [0.5601, 0.6, 1.0, 100.0])
def test_out_of_reach_the_arm_is_straight_and_at_rest(away_m: float) -> None:
    start = quat.identity(3)
    start[1] = quat.from_rotvec(np.array([0.0, 0.7, 0.0]))
    target = ROOT + np.array([0.0, 0.0, -away_m])

    solved = solve_dls(ROOT, start, arm_offsets(), target)
    assert solved.rotations_world is not None
    again = solve_dls(ROOT, solved.rotations_world, arm_offsets(), target)

    assert solved.stopped_because == "out_of_reach"
    assert solved.residual_m <= away_m - 0.56 + 1e-3
    np.testing.assert_allclose(again.joints_world, solved.joints_world, atol=5e-3)


def test_no_step_is_longer_than_its_limit() -> None:
    config = DlsConfig(max_step_rad=0.1, max_steps=1)
    start, offsets = random_chain(np.random.default_rng(2), 5)

    solved = solve_dls(ROOT, start, offsets, ROOT + np.array([0.5, 0.0, 0.0]), config=config)

    assert solved.rotations_world is not None
    carried = quat.multiply(solved.rotations_world[:-1], quat.conjugate(start[:-1]))
    turns = quat.angle(np.vstack([quat.identity(1), carried[:-1]]), carried)
    assert turns.max() == pytest.approx(0.1, abs=1e-6)


def test_a_straight_chain_bends_for_a_target_on_its_line(shared: Path) -> None:
    """Case C45, with rotations."""
    case = json.loads((shared / "data/cases/c45_collinear.json").read_text())
    joints = np.array(case["joints"], float)
    offsets = np.vstack([np.zeros(3), np.diff(joints, axis=0)])

    solved = solve_dls(joints[0], quat.identity(4), offsets, np.array(case["target"], float))

    assert solved.residual_m <= 1e-3
    np.testing.assert_allclose(bone_lengths(solved.joints_world), 0.4, atol=1e-6)
    assert abs(solved.joints_world[1:-1, 1]).min() > 0.05


def test_a_target_on_the_root_is_reached_by_a_chain_that_can_fold() -> None:
    """Case C47, with rotations."""
    solved = solve_dls(ROOT, quat.identity(3), arm_offsets(0.3, 0.3), ROOT)

    assert solved.residual_m <= 1e-3
    np.testing.assert_allclose(bone_lengths(solved.joints_world), 0.3, atol=1e-9)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(seeds, st.integers(3, 7))
def test_mirrored_input_gives_the_mirrored_chain(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    start, offsets = random_chain(rng, n)
    target, config = ROOT + rng.normal(size=3) * 0.3, DlsConfig(max_steps=10)

    left = solve_dls(ROOT, start, offsets, target, config=config)
    right = solve_dls(ROOT * MIRROR, start * MIRROR_Q, offsets * MIRROR, target * MIRROR, config=config)

    np.testing.assert_allclose(right.joints_world, left.joints_world * MIRROR, atol=1e-9)


def test_turning_from_a_joint_keeps_everything_before_it() -> None:
    rotations, offsets = random_chain(np.random.default_rng(4), 5)
    positions = joints_of(ROOT, rotations, offsets)
    before, turn = positions.copy(), quat.from_rotvec(np.array([0.3, -0.2, 0.5]))

    chain.turn_from(positions, rotations, 2, tuple(turn))

    np.testing.assert_allclose(positions[:3], before[:3], atol=1e-12)
    np.testing.assert_allclose(positions, joints_of(ROOT, rotations, offsets), atol=1e-12)
    np.testing.assert_allclose(
        positions[3:], before[2] + quat.rotate(turn, before[3:] - before[2]), atol=1e-12
    )


def test_compiled_and_plain_dls_agree() -> None:
    rng = np.random.default_rng(6)
    for n in (2, 3, 6):
        start, offsets = random_chain(rng, n)
        weights, target = rng.uniform(0.3, 1.0, n), tuple(rng.normal(size=3) * 0.3)
        results = []
        for solve in (dls.solve, plain(dls.solve)):
            positions, rotations = np.zeros((n, 3)), start.copy()
            steps = solve(positions, rotations, offsets, weights, target, 1e-4, 0.5, 20, 0.05)
            results.append((steps, positions, rotations))
        fast = dls.smallest_singular_value(positions, weights, n)
        slow = plain(dls.smallest_singular_value)(positions, weights, n)

        assert results[0][0] == results[1][0]
        assert fast == pytest.approx(slow, abs=1e-9)
        np.testing.assert_allclose(results[0][1], results[1][1], atol=1e-9)
        np.testing.assert_allclose(results[0][2], results[1][2], atol=1e-9)


def test_wrong_arguments_are_named() -> None:
    with pytest.raises(ValueError, match="offsets has shape"):
        solve_dls(ROOT, quat.identity(3), np.zeros((3, 2)), ROOT)
    with pytest.raises(ValueError, match="target_world is not finite"):
        solve_dls(ROOT, quat.identity(3), arm_offsets(), np.full(3, np.inf))
