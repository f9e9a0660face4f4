"""CCD: meets places and rotations, keeps limits, weights and steps, and never hangs on a line or a limit."""

from __future__ import annotations

import json
import math
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solvers.ccd import solve
from solvers.chain import Chain, ChainPose, Target
from solvers.config import ChainConfig
from solvers.kernels import ccd
from solvers.limits import Hinge, Limit, SwingTwist, clamp_rotation, limit_excess
from vrik import quat
from vrik.arrays import Quat, Vec3
from vrik.jit import plain

CONFIG = ChainConfig()
MIRROR = np.array([-1.0, 1.0, 1.0])
MIRROR_Q = np.array([1.0, 1.0, -1.0, -1.0])
ROOT = np.array([0.1, 1.0, -0.2])
UP = (0.0, 1.0, 0.0)

seeds = st.integers(0, 2**32 - 1)
coordinates = st.floats(-2.0, 2.0, allow_nan=False)
places = st.tuples(coordinates, coordinates, coordinates).map(np.array)


def line(m: int, bone_m: float, along: tuple[float, float, float] = UP) -> np.ndarray:
    """Offsets of m equal bones in a row."""
    return np.vstack([np.zeros(3), np.tile(np.array(along) * bone_m, (m, 1))])


def ball(axis: tuple[float, float, float], a: float, b: float, twist: float, soft: float = 0.0) -> SwingTwist:
    """A cone, from degrees."""
    limit = math.radians(twist)
    return SwingTwist(axis, (math.radians(a), math.radians(b)), -limit, limit, None, math.radians(soft))


LIMBS: dict[str, tuple[np.ndarray, list[Limit]]] = {
    "arm": (
        np.array([[0, 0, 0], [-0.28, 0, 0], [-0.25, 0, 0], [-0.08, 0, 0.0]]),
        [
            ball((-1.0, 0.0, 0.0), 100.0, 80.0, 70.0, soft=6.0),
            Hinge(UP, math.radians(-145.0), 0.0),
            ball((-1.0, 0.0, 0.0), 70.0, 30.0, 80.0),
        ],
    ),
    "leg": (
        np.array([[0, 0, 0], [0, -0.42, 0], [0, -0.42, 0], [0, -0.05, -0.12]]),
        [
            ball((0.0, -1.0, 0.0), 90.0, 45.0, 45.0),
            Hinge((1.0, 0.0, 0.0), math.radians(-150.0), 0.0),
            ball((0.0, -1.0, 0.0), 40.0, 20.0, 20.0),
        ],
    ),
    "spine": (line(5, 0.12), [ball(UP, 35.0, 25.0, 20.0, soft=6.0)] * 5),
    "tail": (line(10, 0.1, (0.0, 0.0, 1.0)), [ball((0.0, 0.0, 1.0), 40.0, 40.0, 10.0)] * 10),
}


def random_local(rng: np.random.Generator, limit: Limit) -> Quat:
    """A parent-relative rotation, uniform within a limit; of a free joint, up to a radian."""
    if isinstance(limit, Hinge):
        return quat.from_rotvec(np.array(limit.axis) * rng.uniform(limit.low_rad, limit.high_rad))
    if limit is None:
        v = rng.normal(size=3)
        return quat.from_rotvec(v / np.linalg.norm(v) * rng.uniform(0.0, 1.0))
    axis = np.array(limit.axis)
    side = np.eye(3)[np.argmin(np.abs(axis))]
    out, way = math.sqrt(rng.uniform()), rng.uniform(0.0, 2.0 * math.pi)
    swing = side * limit.swing_rad[0] * out * math.cos(way)
    swing += np.cross(axis, side) * limit.swing_rad[1] * out * math.sin(way)
    twist = axis * rng.uniform(limit.low_twist_rad, limit.high_twist_rad)
    return quat.multiply(quat.from_rotvec(swing), quat.from_rotvec(twist))


def random_pose(rng: np.random.Generator, chain: Chain, limits: list[Limit], base: Quat) -> ChainPose:
    """All joints somewhere within their limits."""
    rotations, parent = np.empty((chain.joint_count, 4)), base
    for i, limit in enumerate(limits):
        rotations[i] = parent = quat.multiply(parent, random_local(rng, limit))
    return ChainPose.build(ROOT, rotations, base)


def worst_excess(chain: Chain, pose: ChainPose, limits: list[Limit]) -> float:
    """How far the worst joint is outside of its limit. [rad]"""
    return max(limit_excess(q, limit) for q, limit in zip(chain.locals_of(pose), limits, strict=True))


def nudged(rng: np.random.Generator, chain: Chain, pose: ChainPose, limits: list[Limit]) -> ChainPose:
    """Each joint turned a few degrees on, within its limits: the frame before."""
    rotations, parent = np.empty((chain.joint_count, 4)), pose.base_world
    for i, (q, limit) in enumerate(zip(chain.locals_of(pose), limits, strict=True)):
        turned = quat.multiply(q, quat.from_rotvec(rng.normal(size=3) * 0.05))
        rotations[i] = parent = quat.multiply(parent, clamp_rotation(turned, limit) if limit else turned)
    return ChainPose.build(ROOT, rotations, pose.base_world)


@pytest.mark.parametrize("limb", LIMBS)
def test_places_of_random_poses_within_limits_are_met(limb: str) -> None:
    """From rest, from anywhere and warm: 99.9 % within a millimetre, limits and lengths kept, no NaN."""
    rng = np.random.default_rng(11)
    offsets, limits = LIMBS[limb]
    chain = Chain.build(offsets, limits=limits)
    count = 400 if chain.joint_count < 5 else 150
    missed = 0
    for _ in range(count):
        base = quat.normalize(rng.normal(size=4))
        truth = random_pose(rng, chain, limits, base)
        starts = (
            chain.rest(ROOT, base),
            random_pose(rng, chain, limits, base),
            nudged(rng, chain, truth, limits),
        )
        for start in starts:
            solved = solve(chain, start, Target(chain.points(truth)[-1]), CONFIG)

            missed += not solved.residual_m <= 1e-3
            assert worst_excess(chain, solved.pose, limits) < 1e-6
            lengths = np.linalg.norm(np.diff(solved.points_world, axis=0), axis=1)
            np.testing.assert_allclose(lengths, chain.lengths, atol=1e-9)
    assert missed <= 3 * count // 1000


def test_ten_free_joints_meet_place_and_rotation() -> None:
    rng = np.random.default_rng(3)
    chain = Chain.build(line(10, 0.1))
    met = 0
    for _ in range(100):
        truth = random_pose(rng, chain, [None] * 10, quat.identity())

        solved = solve(
            chain,
            chain.rest(ROOT),
            Target(chain.points(truth)[-1], truth.rotations_world[-1]),
            ChainConfig(max_rounds=200),
        )

        met += solved.residual_m <= 1e-3 and solved.residual_rad <= 1e-2
    assert met >= 98


def test_the_identity_is_a_rotation_like_any_other() -> None:
    chain = Chain.build(line(5, 0.2))
    start = random_pose(np.random.default_rng(1), chain, [None] * 5, quat.identity())
    place = ROOT + np.array([0.3, 0.5, 0.2])

    free = solve(chain, start, Target(place), CONFIG)
    told = solve(chain, start, Target(place, quat.identity()), CONFIG)

    assert quat.angle(free.pose.rotations_world[-1], quat.identity()) > 0.1
    assert told.reached
    assert quat.angle(told.pose.rotations_world[-1], quat.identity()) <= CONFIG.tolerance_rad


def test_a_hinge_turns_by_the_best_angle_of_all() -> None:
    """One joint, one sweep: no angle of a fine scan has a lower cost of place and rotation."""
    rng = np.random.default_rng(8)
    for _ in range(20):
        axis = rng.normal(size=3)
        axis /= np.linalg.norm(axis)
        chain = Chain.build(np.vstack([np.zeros(3), rng.normal(size=3)]), limits=[Hinge(tuple(axis))])
        way = rng.normal(size=3)
        way *= 0.7 * chain.lengths[0] / np.linalg.norm(way)
        target = Target(ROOT + way, quat.normalize(rng.normal(size=4)))
        config = ChainConfig(max_rounds=1, max_step_rad=7.0, near_step_rad=7.0)

        solved = solve(chain, chain.rest(ROOT), target, config)

        turns = quat.from_rotvec(axis * np.linspace(-math.pi, math.pi, 2001)[:, None])
        away = np.linalg.norm(ROOT + quat.rotate(turns, chain.offsets[1]) - target.position, axis=1)
        dots = turns @ np.array(target.turn)
        costs = away**2 + config.rotation_length_m**2 * 4.0 * (1.0 - dots**2)
        dot = float(solved.pose.rotations_world[0] @ np.array(target.turn))
        cost = solved.residual_m**2 + config.rotation_length_m**2 * 4.0 * (1.0 - dot**2)
        assert cost <= costs.min() + 1e-5


def test_a_hinge_leaves_its_axis_alone() -> None:
    chain = Chain.build(line(3, 0.2), limits=[None, Hinge((1.0, 0.0, 0.0)), None])

    solved = solve(chain, chain.rest(ROOT), Target(ROOT + np.array([0.3, 0.1, 0.2])), CONFIG)

    assert solved.reached
    turned = quat.to_rotvec(chain.locals_of(solved.pose)[1])
    np.testing.assert_allclose(turned[1:], 0.0, atol=1e-9)
    assert abs(turned[0]) > 0.1


def test_the_root_joint_turns() -> None:
    """Published loops often end before the first joint."""
    chain = Chain.build(line(1, 0.5))

    solved = solve(chain, chain.rest(ROOT), Target(ROOT + np.array([0.5, 0.0, 0.0])), CONFIG)

    assert solved.reached
    assert quat.angle(solved.pose.rotations_world[0], quat.identity()) == pytest.approx(math.pi / 2, abs=1e-3)


def test_an_effector_offset_is_carried_by_the_last_joint() -> None:
    chain = Chain.build(np.array([[0, 0, 0], [0, 0.3, 0], [0, 0.3, 0], [0.05, 0.02, -0.1]]))
    truth = random_pose(np.random.default_rng(5), chain, [None] * 3, quat.identity())
    tip = truth.rotations_world[-1]

    solved = solve(chain, chain.rest(ROOT), Target(chain.points(truth)[-1], tip), ChainConfig(max_rounds=200))

    assert solved.reached
    palm = solved.points_world[-2] + quat.rotate(solved.pose.rotations_world[-1], chain.offsets[-1])
    np.testing.assert_allclose(palm, chain.points(truth)[-1], atol=1e-3)


def test_no_joint_turns_more_than_its_step_far_away_and_less_nearby() -> None:
    chain = Chain.build(line(4, 0.25))
    config = ChainConfig(max_rounds=1, max_step_rad=0.4, near_step_rad=0.05)
    sides = {"far": ROOT + np.array([0.9, -0.9, 0.0]), "near": ROOT + np.array([0.1, 0.99, 0.0])}

    turned = {}
    for name, place in sides.items():
        locals_ = chain.locals_of(solve(chain, chain.rest(ROOT), Target(place), config).pose)
        turned[name] = float(quat.angle(locals_, quat.identity(4)).max())

    assert turned["far"] == pytest.approx(0.4, abs=1e-6)
    assert turned["near"] <= 0.05 + 0.35 * 0.11


def test_damping_makes_each_turn_smaller() -> None:
    chain = Chain.build(line(1, 0.5))
    goal = Target(ROOT + 0.5 * np.array([math.sin(0.3), math.cos(0.3), 0.0]))

    half = solve(chain, chain.rest(ROOT), goal, ChainConfig(max_rounds=1, joint_damping=0.5))

    turned = float(quat.angle(half.pose.rotations_world[0], quat.identity()))
    assert turned == pytest.approx(0.15, rel=0.02)


def test_a_rigid_joint_keeps_its_rotation_relative_to_its_parent() -> None:
    rng = np.random.default_rng(3)
    chain = Chain.build(line(4, 0.2), weights=[1.0, 0.0, 1.0, 1.0])
    start = random_pose(rng, chain, [None] * 4, quat.identity())

    solved = solve(chain, start, Target(ROOT + np.array([0.2, 0.5, 0.1])), CONFIG)

    assert solved.reached
    before, after = chain.locals_of(start)[1], chain.locals_of(solved.pose)[1]
    assert quat.angle(before, after) < 1e-9


def test_a_start_outside_of_its_limits_is_brought_inside() -> None:
    limits: list[Limit] = [ball(UP, 20.0, 20.0, 20.0)] * 3
    chain = Chain.build(line(3, 0.2), limits=limits)
    start = ChainPose.build(ROOT, quat.from_rotvec(np.array([[2.0, 0, 0], [0, 1.0, 1.0], [0, 0, -2.0]])))

    place = chain.points(random_pose(np.random.default_rng(2), chain, limits, quat.identity()))[-1]

    solved = solve(chain, start, Target(place), CONFIG)

    assert worst_excess(chain, solved.pose, limits) < 1e-6
    assert solved.reached


@settings(max_examples=60, deadline=None)
@given(seeds, st.integers(1, 8), places)
def test_any_target_leaves_lengths_and_numbers_sound(seed: int, m: int, place: Vec3) -> None:
    rng = np.random.default_rng(seed)
    chain = Chain.build(np.vstack([np.zeros(3), rng.normal(size=(m, 3)) * 0.2]))
    start = random_pose(rng, chain, [None] * m, quat.identity())

    solved = solve(chain, start, Target(place, quat.normalize(rng.normal(size=4))), CONFIG)

    lengths = np.linalg.norm(np.diff(solved.points_world, axis=0), axis=1)
    np.testing.assert_allclose(lengths, chain.lengths, atol=1e-9)
    np.testing.assert_allclose(np.linalg.norm(solved.pose.rotations_world, axis=1), 1.0, atol=1e-12)
    assert solved.rounds <= CONFIG.max_rounds


@settings(max_examples=60, deadline=None, derandomize=True)
@given(seeds, st.integers(2, 7), st.booleans())
def test_mirrored_input_gives_the_mirrored_chain(seed: int, m: int, limited: bool) -> None:
    rng = np.random.default_rng(seed)
    offsets = rng.normal(size=(m, 3)) * 0.2
    offsets = np.vstack([np.zeros(3), offsets])
    limits: list[Limit] = [None] * m
    if limited:
        limits = [
            Hinge((1.0, 0.0, 0.0), -0.4, 1.1) if i % 2 else ball(UP, 60.0, 60.0, 30.0) for i in range(m)
        ]
    chain, mirrored = Chain.build(offsets, limits=limits), Chain.build(offsets * MIRROR, limits=limits)
    start = random_pose(rng, chain, limits, quat.identity())
    other = ChainPose.build(ROOT * MIRROR, start.rotations_world * MIRROR_Q)
    place = ROOT + rng.normal(size=3) * 0.3
    config = ChainConfig(max_rounds=10)

    left = solve(chain, start, Target(place), config)
    right = solve(mirrored, other, Target(place * MIRROR), config)

    np.testing.assert_allclose(right.points_world, left.points_world * MIRROR, atol=1e-7)


def test_a_straight_chain_bends_for_a_target_on_its_line(shared: Path) -> None:
    """Case C45, with and without a pole."""
    case = json.loads((shared / "data/cases/c45_collinear.json").read_text())
    joints, place = np.array(case["joints"], float), np.array(case["target"], float)
    chain = Chain.from_points(joints)

    for pole in (None, np.array([1.0, 0.0, 0.0])):
        solved = solve(chain, chain.rest(joints[0]), Target(place, pole=pole), CONFIG)

        assert solved.residual_m <= 1e-3
        lengths = np.linalg.norm(np.diff(solved.points_world, axis=0), axis=1)
        np.testing.assert_allclose(lengths, 0.4, atol=1e-6)
        assert np.linalg.norm(solved.points_world[1:-1, :2], axis=1).min() > 0.01
        if pole is not None:
            assert solved.points_world[1:-1, 0].min() > 0.01


def test_a_pole_turns_the_bend_to_its_side() -> None:
    chain = Chain.build(line(2, 0.3))
    start = ChainPose.build(ROOT, quat.from_rotvec(np.array([[0.0, 0.0, 0.6], [0.0, 0.0, -0.6]])))

    solved = solve(
        chain, start, Target(ROOT + np.array([0.0, 0.45, 0.0]), pole=np.array([0, 0, 1.0])), CONFIG
    )

    assert solved.reached
    np.testing.assert_allclose(solved.points_world[1, 0], ROOT[0], atol=2e-3)
    assert solved.points_world[1, 2] > ROOT[2] + 0.1


def test_a_target_behind_limits_ends_within_the_cap(shared: Path) -> None:
    """Case C46: hinges of 0 to 10 degrees, a target beyond them, tolerance 0: a best pose, quickly."""
    case = json.loads((shared / "data/cases/c45_collinear.json").read_text())
    joints, place = np.array(case["joints"], float), np.array(case["target"], float)
    limits: list[Limit] = [Hinge((1.0, 0.0, 0.0), 0.0, math.radians(10.0))] * 3
    chain = Chain.from_points(joints, limits=limits)
    config = ChainConfig(tolerance_m=0.0, max_rounds=50)
    solve(chain, chain.rest(joints[0]), Target(place), config)  # compiles

    took = []
    for _ in range(5):
        began = time.perf_counter()
        solved = solve(chain, chain.rest(joints[0]), Target(place), config)
        took.append(time.perf_counter() - began)

    assert not solved.reached
    assert solved.rounds <= 50
    assert solved.residual_m <= 0.2
    assert worst_excess(chain, solved.pose, limits) < 1e-6
    assert min(took) < 0.005


def test_a_target_on_the_root_is_met_by_a_chain_that_can_fold(shared: Path) -> None:
    """Case C47."""
    chain = Chain.build(line(2, 0.3))

    solved = solve(chain, chain.rest(ROOT), Target(ROOT), CONFIG)

    assert solved.residual_m <= 1e-3
    np.testing.assert_allclose(np.linalg.norm(np.diff(solved.points_world, axis=0), axis=1), 0.3, atol=1e-9)


def test_a_target_out_of_reach_is_said_to_be() -> None:
    chain = Chain.build(line(3, 0.2))

    solved = solve(chain, chain.rest(ROOT), Target(ROOT + np.array([2.0, 0.0, 0.0])), CONFIG)

    assert solved.stopped_because == "out_of_reach"
    assert solved.residual_m == pytest.approx(1.4, abs=1e-3)


def test_compiled_and_plain_agree() -> None:
    rng = np.random.default_rng(5)
    for limb in ("arm", "spine"):
        offsets, limits = LIMBS[limb]
        chain = Chain.build(offsets, limits=limits)
        m = chain.joint_count
        truth = random_pose(rng, chain, limits, quat.identity())
        tip = tuple(float(v) for v in chain.points(truth)[-1])
        turn = tuple(float(v) for v in truth.rotations_world[-1])
        results = []
        for run in (ccd.solve, plain(ccd.solve)):
            points, rotations = np.tile(ROOT, (m + 1, 1)), quat.identity(m)
            scratch = np.empty((ccd.SCRATCH * m, 4))
            before = (chain.offsets, chain.weights, chain.limits, (1.0, 0.0, 0.0, 0.0), tip, turn, 1.0)
            after = (1e-4, 1e-3, 12, 0.5, 0.1, 0.9, 0.3, True, scratch)
            rounds = run(points, rotations, *before, (0.0, 0.0, 0.0), *after)
            results.append((rounds, points, rotations))

        assert results[0][0] == results[1][0]
        np.testing.assert_allclose(results[0][1], results[1][1], atol=1e-8)
        np.testing.assert_allclose(results[0][2], results[1][2], atol=1e-8)


def test_wrong_arguments_are_named() -> None:
    chain = Chain.build(line(3, 0.2))
    with pytest.raises(ValueError, match="the pose has 2 joints, the chain 3"):
        solve(chain, Chain.build(line(2, 0.2)).rest(), Target(ROOT), CONFIG)
    with pytest.raises(ValueError, match="position is not finite"):
        solve(chain, chain.rest(), Target(np.full(3, np.nan)), CONFIG)
