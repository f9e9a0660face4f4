"""FABRIK without limits: reaches what can be reached, keeps every bone, and winds up no joint."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solvers.chain import Chain, ChainPose, ChainSolution, Target
from solvers.config import ChainConfig
from solvers.fabrik import scratch_for, solve
from solvers.kernels import fabrik, fabrik_chain
from solvers.kernels.fabrik_chain import solve as solve_kernel
from vrik import quat
from vrik.arrays import Floats, Points, Quats, Vec3
from vrik.jit import kernel, plain

DOWN = np.array([0.0, -1.0, 0.0])
MIRROR = np.array([-1.0, 1.0, 1.0])
NO_TURN = (1.0, 0.0, 0.0, 0.0)
DEFAULT = ChainConfig()
RATE_HZ = 90
HOUR_FRAMES = 3600 * RATE_HZ

seeds = st.integers(0, 2**32 - 1)
coordinates = st.floats(-2.0, 2.0, allow_nan=False)
points = st.tuples(coordinates, coordinates, coordinates).map(np.array)


def directions(rng: np.random.Generator, n: int) -> Points:
    """(n, 3) unit vectors, everywhere alike."""
    rows = rng.normal(size=(n, 3))
    return rows / np.linalg.norm(rows, axis=1)[:, None]


def turns(rng: np.random.Generator, n: int) -> Quats:
    """(n, 4) rotations, everywhere alike."""
    return quat.normalize(rng.normal(size=(n, 4)))


def random_chain(rng: np.random.Generator, m: int) -> Chain:
    return Chain.build(np.vstack([np.zeros(3), directions(rng, m) * rng.uniform(0.1, 0.4, (m, 1))]))


def random_pose(rng: np.random.Generator, chain: Chain) -> ChainPose:
    return ChainPose.build(np.zeros(3), turns(rng, chain.joint_count))


def straight(*lengths: float) -> Chain:
    """Along +X at rest."""
    return Chain.from_points([[x, 0.0, 0.0] for x in np.cumsum([0.0, *lengths])])


def bones(joints: Points) -> Floats:
    return np.linalg.norm(np.diff(joints, axis=0), axis=1)


def assert_sound(chain: Chain, solved: ChainSolution) -> None:
    """Bones keep their length, rotations place the points, nothing is NaN."""
    assert np.isfinite(solved.pose.rotations_world).all()
    np.testing.assert_allclose(bones(solved.points_world), chain.lengths, atol=1e-9)
    np.testing.assert_allclose(chain.points(solved.pose), solved.points_world, atol=1e-12)


@settings(max_examples=100, deadline=None)
@given(st.lists(points, min_size=1, max_size=6), seeds, points, points)
def test_bones_keep_their_length_and_nothing_is_nan(
    offsets: list[Vec3], seed: int, target: Vec3, pole: Vec3
) -> None:
    """Whatever the bones, those without length included."""
    chain = Chain.build(np.vstack([np.zeros(3), *offsets]))
    start = random_pose(np.random.default_rng(seed), chain)

    solved = solve(chain, start, Target(target, pole=pole), DEFAULT)

    assert_sound(chain, solved)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("m", [2, 3, 5, 10, 50])
def test_targets_of_random_poses_are_reached_at_every_scale(m: int, scale: float) -> None:
    rng = np.random.default_rng(m)
    config = ChainConfig(tolerance_m=1e-4 * scale, max_rounds=200)
    for _ in range(40):
        shape = random_chain(rng, m)
        chain = Chain.build(shape.offsets * scale)
        target = chain.points(random_pose(rng, chain))[-1]

        solved = solve(chain, random_pose(rng, chain), Target(target), config)

        assert_sound(chain, solved) if scale <= 1.0 else None
        assert solved.reached
        assert solved.stopped_because == "reached"


@pytest.mark.parametrize("m", [2, 3, 4, 5, 9])
@pytest.mark.parametrize("short_of", [1e-4, 1e-3, 1e-2])
def test_a_nearly_straight_chain_needs_few_rounds(m: int, short_of: float) -> None:
    """Plain FABRIK takes hundreds there; flattening the whole bend at once ends it."""
    rng = np.random.default_rng(m)
    for _ in range(50):
        chain = random_chain(rng, m)
        target = directions(rng, 1)[0] * chain.lengths.sum() * (1.0 - short_of)

        solved = solve(chain, random_pose(rng, chain), Target(target), DEFAULT)

        assert solved.reached
        assert solved.rounds <= 5


@settings(max_examples=100, deadline=None)
@given(seeds, st.floats(0.0, 1.0))
def test_an_arm_needs_few_rounds_anywhere_in_its_reach(seed: int, share: float) -> None:
    """Plain FABRIK needs thousands of rounds near straight and near folded; ours must not."""
    rng = np.random.default_rng(seed)
    chain = straight(0.30, 0.26)
    target = (0.04 + share * (0.56 - 0.04)) * directions(rng, 1)[0]

    solved = solve(chain, random_pose(rng, chain), Target(target), DEFAULT)

    assert solved.residual_m <= 1e-4
    assert solved.rounds < 16


def test_out_of_reach_the_chain_lies_straight_towards_the_target() -> None:
    chain = straight(0.3, 0.3, 0.3)
    start = random_pose(np.random.default_rng(1), chain)

    solved = solve(chain, start, Target(np.array([0.0, 2.0, 0.0])), DEFAULT)

    np.testing.assert_allclose(solved.points_world[:, 1], [0.0, 0.3, 0.6, 0.9], atol=1e-12)
    assert (solved.reached, solved.stopped_because) == (False, "out_of_reach")
    assert solved.residual_m == pytest.approx(1.1)


def test_too_near_the_chain_folds_on_the_line_to_the_target() -> None:
    """Bones of 0.5 and 0.2 cannot bring the hand nearer than 0.3 to the shoulder."""
    chain = straight(0.5, 0.2)
    start = random_pose(np.random.default_rng(1), chain)

    solved = solve(chain, start, Target(np.array([0.0, 0.1, 0.0])), DEFAULT)

    np.testing.assert_allclose(solved.points_world[1:], [[0, 0.5, 0], [0, 0.3, 0]], atol=1e-12)
    assert solved.stopped_because == "out_of_reach"


@pytest.mark.parametrize("pole", [None, DOWN, np.array([1.0, 0.0, 0.0])])
def test_a_straight_chain_bends_for_a_target_on_its_line(shared: Path, pole: Vec3 | None) -> None:
    """Case C45: caliko 25, a straight chain that never bends; it bends to the pole, or somewhere."""
    case = json.loads((shared / "data/cases/c45_collinear.json").read_text())
    chain, target = Chain.from_points(case["joints"]), np.array(case["target"], float)

    solved = solve(chain, chain.rest(), Target(target, pole=pole), DEFAULT)

    assert solved.residual_m <= 1e-3
    np.testing.assert_allclose(bones(solved.points_world), 0.4, atol=1e-6)
    inner = solved.points_world[1:-1]
    off_line = np.linalg.norm(inner[:, :2], axis=1) if pole is None else inner @ pole
    assert (off_line > 0.05).all()


def test_a_chain_without_end_stops_at_its_round_limit() -> None:
    """Case C46: a loop 'until close enough' that never ends; tolerance 0 cannot be met by rounding."""
    rng = np.random.default_rng(1)
    chain = straight(0.2, 0.2, 0.2, 0.2)
    never = ChainConfig(tolerance_m=0.0, max_rounds=20)

    solved = solve(chain, random_pose(rng, chain), Target(np.array([0.0, 0.5, 0.1])), never)

    assert solved.rounds <= 20
    assert solved.residual_m < 1e-3


def test_coincident_joints_get_their_bones_back(shared: Path) -> None:
    """Case C47: target, elbow and hand all on the shoulder."""
    case = json.loads((shared / "data/cases/c47_target_at_root.json").read_text())
    joints, lengths = np.array(case["joints"], float), np.array(case["lengths"])
    target = np.array(case["target"], float)
    chain = straight(*lengths)

    fabrik.reach(joints, lengths, tuple(target), tuple(DOWN), 1e-4, 64)
    solved = solve(chain, chain.rest(target), Target(target, pole=DOWN), DEFAULT)

    for found in (joints, solved.points_world):
        np.testing.assert_allclose(bones(found), 0.3, atol=1e-6)
        np.testing.assert_allclose(found[2], target, atol=1e-3)


def test_a_hand_that_sweeps_past_the_pole_does_not_flip_the_elbow(shared: Path) -> None:
    """Case C51: the elbow moves at most 3 cm a frame and stays below the shoulder-hand line."""
    case = json.loads((shared / "data/cases/c51_sweep.json").read_text())
    shoulder, pole = np.array(case["shoulder"], float), np.array(case["pole"], float)
    chain = straight(*case["lengths"])
    pose, elbows = chain.rest(shoulder), []

    for target in np.array(case["targets"], float):
        solved = solve(chain, pose, Target(target, pole=pole), DEFAULT)
        pose, elbow = solved.pose, solved.points_world[1]
        elbows.append(elbow)
        assert solved.residual_m <= 1e-3
        share = (elbow - shoulder) @ (target - shoulder) / ((target - shoulder) @ (target - shoulder))
        assert elbow[1] < (shoulder + share * (target - shoulder))[1]

    assert np.linalg.norm(np.diff(elbows, axis=0), axis=1).max() <= 0.03


@settings(max_examples=100, deadline=None, derandomize=True)
@given(seeds)
def test_the_elbow_lies_on_the_side_of_the_pole(seed: int) -> None:
    rng = np.random.default_rng(seed)
    chain = straight(0.3, 0.26)
    target, pole = chain.points(random_pose(rng, chain))[-1], rng.normal(size=3)

    solved = solve(chain, random_pose(rng, chain), Target(target, pole=pole), DEFAULT)

    elbow, tip = solved.points_world[1:]
    assert abs(np.cross(tip, elbow) @ pole) < 1e-8  # root, elbow, tip and pole in one plane
    assert np.cross(tip, elbow) @ np.cross(tip, pole) > -1e-9


def test_a_straight_limb_and_a_pole_along_the_limb_are_left_alone() -> None:
    line = np.array([[0.0, 0, 0], [0.3, 0, 0], [0.6, 0, 0]])
    bent = np.array([[0.0, 0, 0], [0.3, 0.1, 0], [0.6, 0, 0]])

    after_line, after_bent = line.copy(), bent.copy()
    fabrik.turn_to_pole(after_line, (0.0, -1.0, 0.0))
    fabrik.turn_to_pole(after_bent, (1.0, 0.0, 0.0))

    np.testing.assert_array_equal(after_line, line)
    np.testing.assert_array_equal(after_bent, bent)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(seeds, st.integers(2, 6))
def test_mirrored_input_gives_the_mirrored_chain(seed: int, m: int) -> None:
    rng = np.random.default_rng(seed)
    chain = random_chain(rng, m)
    start, target = random_pose(rng, chain), chain.points(random_pose(rng, chain))[-1]
    flip = np.array([1.0, 1.0, -1.0, -1.0])

    left = solve(chain, start, Target(target), DEFAULT)
    right = solve(
        Chain.build(chain.offsets * MIRROR),
        ChainPose.build(np.zeros(3), start.rotations_world * flip),
        Target(target * MIRROR),
        DEFAULT,
    )

    np.testing.assert_allclose(right.points_world, left.points_world * MIRROR, atol=1e-9)
    assert quat.angle(right.pose.rotations_world, left.pose.rotations_world * flip).max() < 1e-7


def test_position_and_rotation_are_met_together_with_an_effector_offset() -> None:
    rng = np.random.default_rng(3)
    chain = straight(0.3, 0.26, 0.1)
    for _ in range(50):
        pose = random_pose(rng, chain)
        target = Target(chain.points(pose)[-1], pose.rotations_world[-1])

        solved = solve(chain, random_pose(rng, chain), target, DEFAULT)

        assert solved.reached
        assert solved.residual_rad < 1e-6


def test_where_both_cannot_be_met_the_larger_weight_wins() -> None:
    """The tip could be there, but not with the hand pointing back."""
    chain = straight(0.3, 0.26, 0.1)
    place, back = np.array([0.6, 0.0, 0.0]), np.array([0.0, 0.0, 1.0, 0.0])

    near = solve(chain, chain.rest(), Target(place, back), DEFAULT)
    turned = solve(chain, chain.rest(), Target(place, back, rotation_weight=2.0), DEFAULT)

    assert near.residual_m <= 1e-4
    assert turned.residual_rad < 1e-6
    assert turned.residual_m == pytest.approx(0.14, abs=1e-9)


def test_the_identity_is_a_target_and_no_target_is_not() -> None:
    chain = straight(0.3, 0.26, 0.1)
    start = random_pose(np.random.default_rng(2), chain)
    place = np.array([0.3, 0.2, 0.1])

    aligned = solve(chain, start, Target(place, quat.identity()), DEFAULT)
    loose = solve(chain, start, Target(place), DEFAULT)

    assert quat.angle(aligned.pose.rotations_world[-1], quat.identity()) < 1e-9
    assert quat.angle(loose.pose.rotations_world[-1], quat.identity()) > 0.1


def test_rigid_joints_keep_their_bend_and_their_run_moves_as_one_bone() -> None:
    rng = np.random.default_rng(4)
    offsets = np.vstack([np.zeros(3), directions(rng, 6) * 0.2])
    chain = Chain.build(offsets, weights=[0, 1, 0, 1, 1, 0])
    start = random_pose(rng, chain)
    other = ChainPose.build(start.root_world, start.rotations_world)
    rigid = chain.locals_of(start)
    found = turns(rng, 6)
    for i in (0, 2, 5):
        found[i] = rigid[i]
    for i in range(1, 6):
        found[i] = quat.multiply(found[i - 1], found[i])
    target = chain.points(ChainPose.build(other.root_world, found))[-1]

    solved = solve(chain, start, Target(target), DEFAULT)

    assert solved.reached
    assert_sound(chain, solved)
    assert quat.angle(chain.locals_of(solved.pose), rigid)[[0, 2, 5]].max() < 1e-7


@kernel
def go_round(
    joints: Points,
    rotations: Quats,
    offsets: Points,
    weights: Floats,
    limits: Floats,
    centre: Points,
    path: Points,
    frames: int,
    once: Quats,
    scratch: Floats,
    numbers: Floats,
) -> None:
    """Follow ``path`` round and round; ``once`` keeps the rotations after the first round."""
    per = len(path)
    for k in range(frames):
        row = k % per
        solve_kernel(
            joints,
            rotations,
            offsets,
            weights,
            limits,
            (1.0, 0.0, 0.0, 0.0),
            (path[row, 0], path[row, 1], path[row, 2]),
            (1.0, 0.0, 0.0, 0.0),
            0.0,
            (centre[0, 0], centre[0, 1], centre[0, 2]),
            1e-4,
            1e-3,
            0.3,
            64,
            0,
            scratch,
            numbers,
        )
        if k == per:
            once[:] = rotations


def circle(centre: tuple[float, float, float], radius: float, frames: int = 180) -> Points:
    a = np.arange(frames) / frames * 2.0 * np.pi
    return np.array(centre) + radius * np.stack([np.cos(a), 0.8 * np.sin(a), 0.6 * np.sin(a)], axis=1)


@pytest.mark.parametrize("pole", [(0.0, 0.0, 0.0), (0.0, -1.0, 0.2)])
@pytest.mark.parametrize("centre", [(0.1, 0.1, -0.35), (0.3, -0.2, 0.0), (-0.1, 0.3, 0.1)])
def test_an_hour_of_closed_loops_leaves_no_roll(
    centre: tuple[float, float, float], pole: tuple[float, float, float]
) -> None:
    """Smallest turns from frame to frame would add the solid angle of each loop: turns of roll."""
    chain = straight(0.3, 0.26, 0.0)
    pose = chain.rest()
    joints, rotations, once = chain.points(pose), pose.rotations_world.copy(), quat.identity(3)
    path = circle(centre, 0.12)
    frames = HOUR_FRAMES // len(path) * len(path) + 1

    go_round(
        joints, rotations, chain.offsets, chain.weights, chain.limits, np.array([pole]), path, frames, once,
        *scratch_for(3),
    )  # fmt: skip

    assert quat.angle(rotations, once).max() < 1e-6


def test_an_hour_leaves_the_twist_of_the_joints_of_a_long_chain() -> None:
    """Its shape may settle for a while, as FABRIK's does; no joint turns about its bone.

    The two at the tip are left out: FABRIK folds them by more than 160 degrees on the way, and from there on
    twist and swing cannot be told apart.
    """
    chain = straight(*[0.1] * 10)
    bent = quat.from_rotvec(np.outer(np.arange(10), [0.0, 0.0, 0.15]))
    joints, rotations, once = chain.points(ChainPose.build(np.zeros(3), bent)), bent.copy(), bent.copy()
    path = circle((0.0, 0.0, 0.0), 0.08)
    path += joints[-1] - path[0]

    go_round(
        joints, rotations, chain.offsets, chain.weights, chain.limits, np.zeros((1, 3)),
        path, HOUR_FRAMES, once, *scratch_for(10),
    )  # fmt: skip

    locals_ = chain.locals_of(ChainPose.build(np.zeros(3), rotations))
    twist = 2.0 * np.arctan(locals_[:, 1] / locals_[:, 0])
    assert quat.angle(rotations, bent).max() > 0.01  # it has moved
    np.testing.assert_allclose(twist[:8], 0.0, atol=1e-6)


@pytest.mark.parametrize("off", [0.0, 1e-6, 1e-3, 0.02, 0.2])
def test_near_half_a_turn_a_bone_goes_on_and_comes_back_without_a_jump(off: float) -> None:
    """The bone passes the direction opposite to its rest at a distance; its rotation keeps pace."""
    chain = straight(0.3)
    pose, before = chain.rest(), None
    angles = np.linspace(0.0, 2.0 * np.pi, 2001)

    for a in angles:
        goal = 0.3 * np.array([np.cos(a), np.sin(a), off])
        solved = solve(chain, pose, Target(goal), ChainConfig(tolerance_m=1e-9))
        pose = solved.pose
        if before is not None:
            step = float(quat.angle(before, pose.rotations_world[0]))
            assert step <= 6.0 * (angles[1] - angles[0])  # 1 / cos(80 degrees)
        before = pose.rotations_world[0]

    np.testing.assert_allclose(solved.points_world[1] / 0.3, goal / np.linalg.norm(goal), atol=1e-6)


@pytest.mark.parametrize("m", [1, 2, 4, 8])
def test_compiled_and_plain_fabrik_agree(m: int) -> None:
    rng = np.random.default_rng(m)
    for _ in range(10):
        chain = random_chain(rng, m)
        start = random_pose(rng, chain)
        target = tuple(rng.normal(size=3) * chain.lengths.sum() * 0.5)
        fast, slow = start.rotations_world.copy(), start.rotations_world.copy()

        def run(kernel_: object, rotations: Quats, chain: Chain, start: ChainPose, target: object) -> int:
            return kernel_(  # type: ignore[operator,no-any-return]
                chain.points(start), rotations, chain.offsets, chain.weights, chain.limits, NO_TURN, target,
                NO_TURN, 0.0, (0.0, -1.0, 0.3), 1e-4, 1e-3, 0.3, 64, 0, *scratch_for(chain.joint_count),
            )  # fmt: skip

        rounds = run(fabrik_chain.solve, fast, chain, start, target)
        same = run(plain(fabrik_chain.solve), slow, chain, start, target)

        assert rounds == same
        assert quat.angle(fast, slow).max() < 1e-7


def test_wrong_arguments_are_named() -> None:
    chain = straight(0.3, 0.3)

    with pytest.raises(ValueError, match="joints, the chain 2"):
        solve(chain, straight(0.3).rest(), Target(DOWN), DEFAULT)
    with pytest.raises(ValueError, match="position is not finite"):
        solve(chain, chain.rest(), Target(np.array([0.0, np.nan, 0.0])), DEFAULT)
