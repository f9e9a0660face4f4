"""FABRIK: reaches what can be reached, keeps every bone, and has an answer for every degenerate case."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solvers.config import FabrikConfig
from solvers.fabrik import solve_fabrik
from solvers.kernels import fabrik
from solvers.old_chain import bone_lengths
from vrik.arrays import Floats, Points, Vec3
from vrik.jit import plain

DOWN = np.array([0.0, -1.0, 0.0])
MIRROR = np.array([-1.0, 1.0, 1.0])
PATIENT = FabrikConfig(max_rounds=1000)

seeds = st.integers(0, 2**32 - 1)
coordinates = st.floats(-2.0, 2.0, allow_nan=False)
points = st.tuples(coordinates, coordinates, coordinates).map(np.array)


def random_pose(rng: np.random.Generator, root: Vec3, lengths: Floats) -> Points:
    """Joints of a chain whose bones point anywhere."""
    bones = rng.normal(size=(len(lengths), 3))
    bones *= (lengths / np.linalg.norm(bones, axis=1))[:, None]
    return np.vstack([root, root + np.cumsum(bones, axis=0)])


def random_arm(rng: np.random.Generator) -> tuple[Points, Vec3]:
    """An arm and a target that another pose of the same arm reaches."""
    root, lengths = rng.normal(size=3), rng.uniform(0.2, 0.4, 2)
    return random_pose(rng, root, lengths), random_pose(rng, root, lengths)[-1]


def off_line(joints: Points, target: Vec3) -> float:
    """Largest distance of a joint from the line root-target. [m]"""
    axis = (target - joints[0]) / np.linalg.norm(target - joints[0])
    rays = joints - joints[0]
    return float(np.linalg.norm(rays - np.outer(rays @ axis, axis), axis=1).max())


@settings(max_examples=100, deadline=None)
@given(st.lists(points, min_size=2, max_size=6), points, points)
def test_bones_keep_their_length_and_nothing_is_nan(rows: list[Vec3], target: Vec3, pole: Vec3) -> None:
    """Whatever the joints, coincident ones included, no bone changes by more than a nanometre."""
    joints = np.array(rows)

    solved = solve_fabrik(joints, target, pole_world=pole)

    assert np.isfinite(solved.joints_world).all()
    np.testing.assert_allclose(bone_lengths(solved.joints_world), bone_lengths(joints), atol=1e-9)
    np.testing.assert_allclose(solved.joints_world[0], joints[0], atol=0.0)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(seeds, st.integers(3, 10))
def test_targets_of_random_poses_are_reached(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    root, lengths = rng.normal(size=3), rng.uniform(0.1, 0.4, n - 1)
    start, target = random_pose(rng, root, lengths), random_pose(rng, root, lengths)[-1]

    solved = solve_fabrik(start, target, config=PATIENT)

    assert solved.reached
    assert solved.stopped_because == "reached"
    assert np.linalg.norm(solved.joints_world[-1] - target) <= PATIENT.tolerance_m


@settings(max_examples=100, deadline=None)
@given(seeds, st.floats(0.0, 1.0))
def test_an_arm_needs_few_rounds_anywhere_in_its_reach(seed: int, share: float) -> None:
    """Plain FABRIK needs thousands of rounds near straight and near folded; ours must not."""
    rng = np.random.default_rng(seed)
    lengths = np.array([0.30, 0.26])
    start = random_pose(rng, np.zeros(3), lengths)
    reach = 0.04 + share * (0.56 - 0.04)
    target = reach * (direction := rng.normal(size=3)) / np.linalg.norm(direction)

    solved = solve_fabrik(start, target, config=FabrikConfig(max_rounds=16))

    assert solved.residual_m <= 1e-4
    assert solved.rounds < 16


def test_out_of_reach_the_chain_lies_straight_towards_the_target() -> None:
    start = np.array([[0.0, 0, 0], [0.3, 0, 0], [0.3, 0.3, 0], [0.3, 0.3, 0.3]])
    target = np.array([0.0, 2.0, 0.0])

    solved = solve_fabrik(start, target)

    np.testing.assert_allclose(solved.joints_world[:, 1], [0.0, 0.3, 0.6, 0.9], atol=1e-12)
    assert (solved.reached, solved.stopped_because) == (False, "out_of_reach")
    assert solved.residual_m == pytest.approx(1.1)


def test_too_near_the_chain_folds_on_the_line_to_the_target() -> None:
    """Bones of 0.5 and 0.2 cannot bring the hand nearer than 0.3 to the shoulder."""
    start = np.array([[0.0, 0, 0], [0.5, 0, 0], [0.5, 0.2, 0]])

    solved = solve_fabrik(start, np.array([0.0, 0.1, 0.0]))

    np.testing.assert_allclose(solved.joints_world[1:], [[0, 0.5, 0], [0, 0.3, 0]], atol=1e-12)
    assert solved.stopped_because == "out_of_reach"


def test_a_straight_chain_bends_to_its_pole_for_a_target_on_its_line(shared: Path) -> None:
    """Case C45: caliko 25, a straight chain that never bends."""
    case = json.loads((shared / "data/cases/c45_collinear.json").read_text())
    joints, target = np.array(case["joints"], float), np.array(case["target"], float)

    for pole in (DOWN, np.array([1.0, 0.0, 0.0])):
        solved = solve_fabrik(joints, target, pole_world=pole)

        assert solved.residual_m <= 1e-3
        np.testing.assert_allclose(bone_lengths(solved.joints_world), 0.4, atol=1e-6)
        assert (solved.joints_world[1:-1] @ pole > 0.05).all()


@pytest.mark.parametrize("n", [4, 5, 8])
def test_a_straight_chain_bends_even_without_a_pole(n: int) -> None:
    joints = np.zeros((n, 3))
    joints[:, 0] = 0.1 * np.arange(n)
    target = np.array([0.05, 0.0, 0.0])

    solved = solve_fabrik(joints, target)

    assert solved.reached
    assert off_line(solved.joints_world, target) > 0.02


def test_a_chain_without_end_stops_at_its_round_limit() -> None:
    """Case C46: a loop 'until close enough' that never ends; tolerance 0 cannot be met by rounding."""
    rng = np.random.default_rng(1)
    lengths = np.full(5, 0.2)
    start = random_pose(rng, np.zeros(3), lengths)
    never = FabrikConfig(tolerance_m=-1.0, max_rounds=20)

    solved = solve_fabrik(start[[0, 1]], np.array([0.0, 0.2, 0.0]), config=never)
    longer = solve_fabrik(start, np.array([0.0, 0.5, 0.1]), config=never)

    assert max(solved.rounds, longer.rounds) <= 20
    assert longer.residual_m < 1e-3


def test_coincident_joints_get_their_bones_back(shared: Path) -> None:
    """Case C47: target, elbow and hand all on the shoulder."""
    case = json.loads((shared / "data/cases/c47_target_at_root.json").read_text())
    joints, target = np.array(case["joints"], float), np.array(case["target"], float)

    solved = solve_fabrik(joints, target, lengths_m=np.array(case["lengths"]), pole_world=DOWN)

    np.testing.assert_allclose(bone_lengths(solved.joints_world), 0.3, atol=1e-6)
    assert solved.residual_m <= 1e-3
    np.testing.assert_allclose(solved.joints_world[1], joints[0] + 0.3 * DOWN, atol=1e-9)


def test_a_hand_that_sweeps_past_the_pole_does_not_flip_the_elbow(shared: Path) -> None:
    """Case C51: the elbow moves at most 3 cm a frame and stays below the shoulder-hand line."""
    case = json.loads((shared / "data/cases/c51_sweep.json").read_text())
    shoulder, pole = np.array(case["shoulder"], float), np.array(case["pole"], float)
    upper, lower = case["lengths"]
    joints = shoulder + np.outer([0.0, upper, upper + lower], [-1.0, 0.0, 0.0])
    elbows = []

    for target in np.array(case["targets"], float):
        solved = solve_fabrik(joints, target, pole_world=pole)
        joints = solved.joints_world
        elbows.append(joints[1])
        assert solved.residual_m <= 1e-3
        share = (joints[1] - shoulder) @ (target - shoulder) / ((target - shoulder) @ (target - shoulder))
        assert joints[1][1] < (shoulder + share * (target - shoulder))[1]

    assert np.linalg.norm(np.diff(elbows, axis=0), axis=1).max() <= 0.03


@settings(max_examples=100, deadline=None, derandomize=True)
@given(seeds)
def test_the_elbow_lies_on_the_side_of_the_pole(seed: int) -> None:
    rng = np.random.default_rng(seed)
    joints, target = random_arm(rng)
    pole = rng.normal(size=3)

    solved = solve_fabrik(joints, target, pole_world=pole)

    axis = solved.joints_world[2] - solved.joints_world[0]
    elbow = solved.joints_world[1] - solved.joints_world[0]
    assert abs(np.cross(axis, elbow) @ pole) < 1e-8  # root, elbow, tip and pole in one plane
    assert np.cross(axis, elbow) @ np.cross(axis, pole) > -1e-9


def test_a_straight_limb_and_a_pole_along_the_limb_are_left_alone() -> None:
    straight = np.array([[0.0, 0, 0], [0.3, 0, 0], [0.6, 0, 0]])
    bent = np.array([[0.0, 0, 0], [0.3, 0.1, 0], [0.6, 0, 0]])

    after_straight, after_bent = straight.copy(), bent.copy()
    fabrik.turn_to_pole(after_straight, (0.0, -1.0, 0.0))
    fabrik.turn_to_pole(after_bent, (1.0, 0.0, 0.0))

    np.testing.assert_array_equal(after_straight, straight)
    np.testing.assert_array_equal(after_bent, bent)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(seeds)
def test_mirrored_input_gives_the_mirrored_chain(seed: int) -> None:
    rng = np.random.default_rng(seed)
    joints, target = random_arm(rng)
    pole = rng.normal(size=3)

    left = solve_fabrik(joints, target, pole_world=pole)
    right = solve_fabrik(joints * MIRROR, target * MIRROR, pole_world=pole * MIRROR)

    np.testing.assert_allclose(right.joints_world, left.joints_world * MIRROR, atol=1e-12)


@pytest.mark.parametrize("n", [2, 3, 5, 9])
def test_compiled_and_plain_fabrik_agree(n: int) -> None:
    rng = np.random.default_rng(n)
    for _ in range(20):
        lengths = rng.uniform(0.1, 0.3, n - 1)
        start = random_pose(rng, np.zeros(3), lengths)
        target = tuple(rng.normal(size=3) * lengths.sum() * 0.5)
        fast, slow = start.copy(), start.copy()

        rounds = fabrik.reach(fast, lengths, target, (0.0, -1.0, 0.0), 1e-4, 64)
        same = plain(fabrik.reach)(slow, lengths, target, (0.0, -1.0, 0.0), 1e-4, 64)
        if n == 3:
            fabrik.turn_to_pole(fast, (0.3, -1.0, 0.2))
            plain(fabrik.turn_to_pole)(slow, (0.3, -1.0, 0.2))

        assert rounds == same
        np.testing.assert_allclose(fast, slow, atol=1e-9)


def test_wrong_arguments_are_named() -> None:
    arm = np.array([[0.0, 0, 0], [0.3, 0, 0], [0.6, 0, 0]])

    with pytest.raises(ValueError, match="joints_world has shape"):
        solve_fabrik(arm[:, :2], DOWN)
    with pytest.raises(ValueError, match="target_world is not finite"):
        solve_fabrik(arm, np.array([0.0, np.nan, 0.0]))
    with pytest.raises(ValueError, match="lengths_m has shape"):
        solve_fabrik(arm, DOWN, lengths_m=np.ones(3))
