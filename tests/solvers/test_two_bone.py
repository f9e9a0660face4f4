"""Two bones in closed form: exact where it can be, and something sensible where it cannot."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solvers import anatomy
from solvers.chain import Chain, ChainPose, ChainSolution, Target
from solvers.config import ChainConfig
from solvers.kernels import triangle, two_bone
from solvers.limits import Hinge, Limit, SwingTwist, limit_excess
from solvers.registry import solve_chain
from solvers.two_bone import solve
from vrik import quat
from vrik.arrays import Floats, Points, Quats, Vec3
from vrik.jit import plain

CONFIG = ChainConfig()
DOWN, UP = np.array([0.0, -1.0, 0.0]), np.array([0.0, 1.0, 0.0])
MIRROR, FLIP = np.array([-1.0, 1.0, 1.0]), np.array([1.0, 1.0, -1.0, -1.0])
OFFSETS = np.array([[0.0, 0.0, 0.0], [0.30, 0.0, 0.0], [0.26, 0.0, 0.0]])
PALM = np.array([[0.08, -0.02, -0.03]])
ELBOW = Hinge((0.0, 1.0, 0.0), -0.05, 2.6)
SHOULDER = anatomy.limit_of("rightUpperArm")
ARM = Chain.build(OFFSETS)
HINGED = Chain.build(OFFSETS, limits=[None, ELBOW])
HAND = Chain.build(np.concatenate([OFFSETS, PALM]), limits=[None, ELBOW, None])

coordinates = st.floats(-2.0, 2.0, allow_nan=False)
points = st.tuples(coordinates, coordinates, coordinates).map(np.array)
bones = st.floats(0.05, 0.6)


def limb(upper: float, lower: float) -> Chain:
    return Chain.build([[0.0, 0.0, 0.0], [upper, 0.0, 0.0], [lower, 0.0, 0.0]])


def random_pose(chain: Chain, limits: list[Limit], rng: np.random.Generator) -> ChainPose:
    """Within limits: each joint's turn is drawn until it is allowed."""
    parent, rotations = quat.normalize(rng.normal(size=4)), []
    base = parent
    for limit in limits:
        while True:
            if isinstance(limit, Hinge):
                local = quat.from_rotvec(np.array(limit.axis) * rng.uniform(0.0, limit.high_rad))
            else:
                local = quat.normalize(rng.normal(size=4))
            if limit is None or limit_excess(local, limit) < 1e-12:
                break
        parent = quat.multiply(parent, local)
        rotations.append(parent)
    return ChainPose.build(rng.normal(size=3), rotations, base)


def elbow_side(points_world: Points) -> Vec3:
    axis = points_world[2] - points_world[0]
    off = points_world[1] - points_world[0]
    return np.asarray(off - axis * (off @ axis) / (axis @ axis))


def lengths(solved: ChainSolution) -> Floats:
    return np.asarray(np.linalg.norm(np.diff(solved.points_world, axis=0), axis=1))


def turned_by(before: Quats, after: Quats) -> float:
    return float(np.max(quat.angle(before, after)))


@settings(max_examples=100)
@given(points, points, bones, bones, points)
def test_bones_hold_and_the_end_is_as_near_as_it_can_be(
    root: Vec3, target: Vec3, upper: float, lower: float, pole: Vec3
) -> None:
    away = np.linalg.norm(target - root)
    shortfall = max(away - (upper + lower), abs(upper - lower) - away, 0.0)
    chain = limb(upper, lower)

    solved = solve(chain, chain.rest(root), Target(target, pole=pole), CONFIG)

    assert np.isfinite(solved.points_world).all()
    np.testing.assert_allclose(lengths(solved), [upper, lower], atol=1e-9)
    assert solved.residual_m == pytest.approx(shortfall, abs=1e-6)


@settings(max_examples=100)
@given(bones, bones, st.floats(0.001, 3.14), points, points)
def test_the_elbow_opens_as_the_law_of_cosines_says(
    upper: float, lower: float, angle: float, root: Vec3, pole: Vec3
) -> None:
    """A reach made from an elbow angle gives that angle back."""
    reach = math.sqrt(upper**2 + lower**2 - 2.0 * upper * lower * math.cos(angle))
    chain = limb(upper, lower)

    solved = solve(chain, chain.rest(root), Target(root + np.array([0.0, 0.0, -reach]), pole=pole), CONFIG)

    a, b = solved.points_world[0] - solved.points_world[1], solved.points_world[2] - solved.points_world[1]
    assert a @ b / (upper * lower) == pytest.approx(math.cos(angle), abs=1e-9)
    assert solved.reached


@pytest.mark.parametrize("chain", [ARM, HINGED], ids=["free", "hinge"])
@settings(max_examples=100)
@given(target=points, pole=points)
def test_the_elbow_points_to_the_pole(chain: Chain, target: Vec3, pole: Vec3) -> None:
    sizes = np.linalg.norm(target) * np.linalg.norm(pole)
    if sizes < 1e-5 or np.linalg.norm(np.cross(target, pole)) <= 1e-5 * sizes:  # the side is then free
        return

    solved = solve(chain, chain.rest(), Target(target, pole=pole), CONFIG)

    side = elbow_side(solved.points_world)
    if np.linalg.norm(side) > 1e-6:
        wanted = pole - target * (pole @ target) / (target @ target)
        assert side @ wanted / np.linalg.norm(side) / np.linalg.norm(wanted) > 1.0 - 1e-6


def test_random_poses_are_found_again_with_their_pole() -> None:
    """Forward kinematics of poses within limits; with a hinge and a pole there is one answer."""
    rng = np.random.default_rng(3)
    limits = [SHOULDER, ELBOW]
    chain = Chain.build(OFFSETS, limits=limits)
    for _ in range(150):
        pose = random_pose(chain, limits, rng)
        there = chain.points(pose)

        solved = solve(
            chain,
            chain.rest(pose.root_world, pose.base_world),
            Target(there[2], pole=elbow_side(there)),
            CONFIG,
        )

        assert solved.reached
        np.testing.assert_allclose(solved.points_world, there, atol=1e-6)
        assert turned_by(solved.pose.rotations_world, pose.rotations_world) < 1e-4


@pytest.mark.parametrize("warm", [False, True])
def test_reachable_targets_are_reached_within_limits(warm: bool) -> None:
    rng = np.random.default_rng(4)
    limits: list[Limit] = [SHOULDER, ELBOW, SwingTwist((1.0, 0.0, 0.0), (1.2, 0.8), -0.5, 0.5)]
    chain = Chain.build(np.concatenate([OFFSETS, PALM * [1.0, 0.0, 0.0]]), limits=limits)
    met, count = 0, 300
    for _ in range(count):
        pose = random_pose(chain, limits, rng)
        near = pose.rotations_world if warm else np.tile(pose.base_world, (3, 1))
        shaken = quat.multiply(quat.from_rotvec(rng.normal(size=(3, 3)) * 0.1 * warm), near)
        start = ChainPose.build(pose.root_world, shaken, pose.base_world)

        solved = solve(chain, start, Target(chain.points(pose)[3], pose.rotations_world[2]), CONFIG)

        met += solved.residual_m < 1e-3
        for local, limit in zip(chain.locals_of(solved.pose), limits, strict=True):
            assert limit_excess(local, limit) < 1e-6
    assert met == count


def test_the_hand_takes_the_rotation_and_its_offset_is_accounted_for() -> None:
    rng = np.random.default_rng(5)
    for _ in range(100):
        pose = random_pose(HAND, [None, ELBOW, None], rng)
        goal = HAND.points(pose)[3]

        solved = solve(HAND, HAND.rest(pose.root_world), Target(goal, pose.rotations_world[2]), CONFIG)

        assert solved.reached
        assert solved.residual_m < 1e-9
        assert solved.residual_rad < 1e-9


def test_a_hand_without_a_rotation_keeps_its_turn_to_the_forearm() -> None:
    bent = quat.from_rotvec(np.array([0.0, 0.3, 0.4]))
    start = ChainPose.build(np.zeros(3), [quat.identity(), quat.identity(), bent])

    solved = solve(HAND, start, Target(np.array([0.2, -0.1, -0.4]), pole=DOWN), CONFIG)

    assert solved.reached
    np.testing.assert_allclose(quat.angle(HAND.locals_of(solved.pose)[2], bent), 0.0, atol=1e-9)


def test_a_hand_that_cannot_turn_that_far_still_meets_the_position() -> None:
    stiff = Chain.build(
        HAND.offsets, limits=[None, ELBOW, SwingTwist((1.0, 0.0, 0.0), (0.3, 0.3), -0.1, 0.1)]
    )
    back = quat.from_rotvec(np.array([0.0, 2.5, 0.0]))

    solved = solve(stiff, stiff.rest(), Target(np.array([0.2, -0.1, -0.3]), back, pole=DOWN), CONFIG)

    assert not solved.reached
    assert solved.residual_m < 1e-9
    assert solved.residual_rad > 0.5


def test_the_forearm_takes_the_roll_that_the_hand_may_not_have() -> None:
    chain = Chain.build(
        HAND.offsets * [1.0, 0.0, 0.0],
        limits=[
            None,
            SwingTwist((1.0, 0.0, 0.0), (1.5, 0.2), -1.5, 1.5, (0.0, 1.0, 0.0)),
            SwingTwist((1.0, 0.0, 0.0), (1.4, 1.4), -0.05, 0.05),
        ],
    )
    straight = solve(chain, chain.rest(), Target(np.array([0.3, 0.0, -0.3]), pole=DOWN), CONFIG)
    rolled = quat.multiply(straight.pose.rotations_world[2], quat.from_rotvec(np.array([1.2, 0.0, 0.0])))

    solved = solve(chain, straight.pose, Target(straight.points_world[3], rolled, pole=DOWN), CONFIG)

    assert solved.reached
    assert abs(quat.to_rotvec(chain.locals_of(solved.pose)[2])[0]) < 0.06


def test_two_joints_roll_the_second_bone_to_the_rotation() -> None:
    plainly = solve(ARM, ARM.rest(), Target(np.array([0.2, 0.1, -0.4]), pole=DOWN), CONFIG)
    rolled = quat.multiply(plainly.pose.rotations_world[1], quat.from_rotvec(np.array([0.9, 0.0, 0.0])))

    solved = solve(ARM, ARM.rest(), Target(np.array([0.2, 0.1, -0.4]), rolled, pole=DOWN), CONFIG)

    assert solved.reached
    np.testing.assert_allclose(solved.points_world, plainly.points_world, atol=1e-9)


def test_an_elbow_that_may_not_stretch_stops_at_its_limit() -> None:
    chain = Chain.build(OFFSETS, limits=[None, Hinge((0.0, 1.0, 0.0), 0.5, 2.0)])

    far = solve(chain, chain.rest(), Target(np.array([0.0, 0.0, -0.56]), pole=DOWN), CONFIG)
    near = solve(chain, chain.rest(), Target(np.array([0.0, 0.0, -0.06]), pole=DOWN), CONFIG)

    for solved, angle in ((far, 0.5), (near, 2.0)):
        assert not solved.reached
        np.testing.assert_allclose(
            quat.to_rotvec(chain.locals_of(solved.pose)[1]), [0.0, angle, 0.0], atol=1e-9
        )


def test_a_limit_of_the_root_moves_the_swivel_before_it_costs_the_target() -> None:
    """The pole asks for an upper arm that is turned over; the elbow goes as near to it as may be."""
    shoulder = SwingTwist((1.0, 0.0, 0.0), (3.1, 3.1), -0.8, 0.8)
    chain = Chain.build(OFFSETS, limits=[shoulder, ELBOW])
    target = np.array([0.35, 0.0, -0.2])
    free = solve(HINGED, HINGED.rest(), Target(target, pole=UP), CONFIG)
    assert limit_excess(free.pose.rotations_world[0], shoulder) > 0.1

    solved = solve(chain, chain.rest(), Target(target, pole=UP), CONFIG)

    assert solved.reached
    assert elbow_side(solved.points_world)[1] > 0.02


def test_a_rest_pose_that_is_bent_and_a_tilted_hinge_are_exact() -> None:
    chain = Chain.build(
        [[0.0, 0.0, 0.0], [0.1, -0.4, 0.05], [-0.05, -0.3, 0.2]],
        limits=[None, Hinge((-1.0, 0.3, 0.2), -0.3, 2.0)],
    )
    for angle in (0.3, 0.9, 1.7):
        axis = np.array([-1.0, 0.3, 0.2]) / np.linalg.norm([-1.0, 0.3, 0.2])
        pose = ChainPose.build(np.zeros(3), [quat.identity(), quat.from_rotvec(axis * angle)])
        reach = np.linalg.norm(chain.points(pose)[2])

        solved = solve(chain, chain.rest(), Target(np.array([0.0, -reach, 0.0])), CONFIG)

        assert solved.residual_m < 1e-9
        np.testing.assert_allclose(quat.to_rotvec(chain.locals_of(solved.pose)[1]), axis * angle, atol=1e-7)


def test_without_a_pole_the_limb_keeps_its_bend() -> None:
    start = solve(
        ARM, ARM.rest(), Target(np.array([0.3, 0.0, -0.3]), pole=np.array([0.0, -1.0, 0.4])), CONFIG
    )
    side = elbow_side(start.points_world)

    further = solve(ARM, start.pose, Target(np.array([0.35, 0.0, -0.35])), CONFIG)
    again = solve(ARM, start.pose, Target(start.points_world[2]), CONFIG)

    np.testing.assert_allclose(again.points_world, start.points_world, atol=1e-9)
    assert turned_by(again.pose.rotations_world, start.pose.rotations_world) < 1e-7
    assert elbow_side(further.points_world) @ side > 0.999 * np.linalg.norm(side) * np.linalg.norm(
        elbow_side(further.points_world)
    )


@pytest.mark.parametrize("chain", [ARM, HINGED], ids=["free", "hinge"])
def test_no_roll_accumulates_in_long_motion(chain: Chain) -> None:
    """4,000 targets on a closed path, warm: with a pole the end is where a cold start gets."""
    pose = chain.rest()
    for i in range(4_000):
        t = 2.0 * math.pi * i / 100.0
        goal = Target(np.array([0.3 + 0.1 * math.cos(t), 0.1 * math.sin(3.0 * t), -0.25]), pole=DOWN)
        pose = solve(chain, pose, goal, CONFIG).pose
        if i == 99:
            once = pose.rotations_world

    assert turned_by(pose.rotations_world, once) < 1e-6


@settings(max_examples=100)
@given(points, points, points, st.booleans())
def test_mirrored_input_gives_the_mirrored_limb(root: Vec3, target: Vec3, pole: Vec3, turns: bool) -> None:
    away = target - root
    if np.linalg.norm(np.cross(away, pole)) < 1e-3:  # the side is then free
        return
    rotation = quat.normalize(np.array([0.7, 0.2, -0.4, 0.5])) if turns else None
    limits = anatomy.limits_of(["rightUpperArm", "rightLowerArm", "rightHand"])
    right = Chain.build(HAND.offsets, limits=limits)
    left = Chain.build(HAND.offsets * MIRROR, limits=[anatomy.mirrored(limit) for limit in limits])

    one = solve(right, right.rest(root), Target(target, rotation, pole=pole), CONFIG)
    flipped = None if rotation is None else rotation * FLIP
    other = solve(
        left, left.rest(root * MIRROR), Target(target * MIRROR, flipped, pole=pole * MIRROR), CONFIG
    )

    np.testing.assert_allclose(other.points_world * MIRROR, one.points_world, atol=1e-6)
    assert turned_by(other.pose.rotations_world * FLIP, one.pose.rotations_world) < 1e-5


@pytest.mark.parametrize("pole", [DOWN, UP, None, np.array([0.0, 0.0, 1.0])])
@pytest.mark.parametrize("reach", [0.0, 1e-12, 1e-7, 0.04, 0.3, 0.56, 0.57, 50.0])
@pytest.mark.parametrize(
    "chain", [ARM, HINGED, limb(0.3, 0.3), limb(0.3, 0.0), limb(0.0, 0.3), limb(0.0, 0.0)]
)
def test_straight_folded_on_the_root_and_along_the_pole_are_finite(
    reach: float, pole: Vec3 | None, chain: Chain
) -> None:
    solved = solve(chain, chain.rest(), Target(np.array([0.0, reach, 0.0]), pole=pole), CONFIG)
    again = solve(chain, solved.pose, Target(np.array([0.0, -reach, 0.0]), pole=pole), CONFIG)

    for found in (solved, again):
        assert np.isfinite(found.points_world).all()
        assert np.isfinite(found.pose.rotations_world).all()
        np.testing.assert_allclose(lengths(found), chain.lengths, atol=1e-9)


def test_a_target_on_the_root_folds_the_limb_to_the_pole(shared: Path) -> None:
    """Case C47: the bones keep their length when shoulder and target coincide."""
    case = json.loads((shared / "data/cases/c47_target_at_root.json").read_text())
    root, target = np.array(case["joints"][0], float), np.array(case["target"], float)
    chain = limb(*case["lengths"])

    solved = solve(chain, chain.rest(root), Target(target, pole=DOWN), CONFIG)

    np.testing.assert_allclose(lengths(solved), 0.3, atol=1e-6)
    assert solved.residual_m <= 1e-3
    np.testing.assert_allclose(solved.points_world[1], root + 0.3 * DOWN, atol=1e-5)


def out_and_in(frames: int) -> Iterator[float]:
    return iter(np.concatenate([np.linspace(0.10, 0.70, frames), np.linspace(0.70, 0.10, frames)]))


@pytest.mark.parametrize("chain", [ARM, HINGED], ids=["free", "hinge"])
def test_through_full_reach_joints_turn_by_a_bounded_multiple_of_the_step(chain: Chain) -> None:
    """With 3 cm of softening: at most 20 rad a metre; without, the elbow snaps straight."""

    def fastest(zone: float) -> float:
        pose, worst, last = chain.rest(), 0.0, None
        config = replace(CONFIG, soft_reach_m=zone)
        for reach in out_and_in(1500):
            solved = solve(chain, pose, Target(np.array([0.0, 0.0, -reach]), pole=DOWN), config)
            pose = solved.pose
            if last is not None:
                worst = max(worst, turned_by(last, chain.locals_of(pose)))
            last = chain.locals_of(pose)
        return worst / (0.6 / 1499)

    assert fastest(0.03) < 20.0
    assert fastest(0.0) > 100.0


def test_soft_reach_is_exact_before_its_zone_and_never_straight() -> None:
    config = replace(CONFIG, soft_reach_m=0.03)

    def distance(reach: float) -> float:
        solved = solve(HINGED, HINGED.rest(), Target(np.array([0.0, 0.0, -reach]), pole=DOWN), config)
        return float(np.linalg.norm(solved.points_world[2]))

    reaches = np.arange(0.4, 0.8, 0.001)
    held = np.array([distance(r) for r in reaches])
    before = reaches <= 0.53

    np.testing.assert_allclose(held[before], reaches[before], atol=1e-9)
    assert np.all(np.diff(held) > 0.0)
    assert np.all(held < 0.56)
    slopes = np.diff(held) / 0.001
    assert np.abs(np.diff(slopes)).max() < 0.001 / 0.03 + 1e-6  # C1: no kink


def test_a_stretched_limb_meets_a_target_out_of_reach_and_says_so() -> None:
    config = replace(CONFIG, max_stretch=1.2, soft_reach_m=0.02)
    near = solve(HINGED, HINGED.rest(), Target(np.array([0.0, 0.0, -0.60]), pole=DOWN), config)
    far = solve(HINGED, HINGED.rest(), Target(np.array([0.0, 0.0, -0.90]), pole=DOWN), config)
    short = solve(HINGED, HINGED.rest(), Target(np.array([0.0, 0.0, -0.30]), pole=DOWN), config)

    assert near.reached
    assert 1.0 < near.stretch < 1.2
    np.testing.assert_allclose(lengths(near), HINGED.lengths * near.stretch, atol=1e-9)
    np.testing.assert_allclose(
        np.linalg.norm(np.diff(HINGED.points(near.pose), axis=0), axis=1), HINGED.lengths, atol=1e-9
    )
    assert not far.reached
    assert far.stretch == pytest.approx(1.2)
    assert short.reached
    assert short.stretch == 1.0


def test_a_stretched_arm_keeps_the_length_of_its_effector_offset() -> None:
    config = replace(CONFIG, max_stretch=1.5)
    goal = Target(np.array([0.8, 0.1, 0.0]), quat.from_rotvec(np.array([0.0, 0.4, 0.0])), pole=DOWN)

    solved = solve(HAND, HAND.rest(), goal, config)

    assert solved.reached
    assert np.linalg.norm(solved.points_world[3] - solved.points_world[2]) == pytest.approx(HAND.lengths[2])


def test_the_registry_knows_it() -> None:
    solved: ChainSolution = solve_chain(ARM, ARM.rest(), Target(np.array([0.1, 0.2, 0.3])), solver="two_bone")

    assert solved.reached
    assert solved.rounds == 0


@pytest.mark.parametrize("turn_weight", [0.0, 1.0])
def test_compiled_and_plain_two_bone_agree(turn_weight: float) -> None:
    rng = np.random.default_rng(0)
    chain = Chain.build(
        HAND.offsets, limits=anatomy.limits_of(["rightUpperArm", "rightLowerArm", "rightHand"])
    )
    still = (1.0, 0.0, 0.0, 0.0)
    for _ in range(20):
        target, pole = (tuple(rng.normal(size=3) * 0.4) for _ in range(2))
        turn = tuple(quat.normalize(rng.normal(size=4)))
        results = []
        for run in (two_bone.solve, plain(two_bone.solve)):
            place, rotations = np.zeros((4, 3)), quat.identity(3)
            run(
                place, rotations, chain.offsets, chain.weights, chain.limits,
                still, target, turn, turn_weight, pole, 0.02, 1.1,
            )  # fmt: skip
            results.append((place, rotations))

        np.testing.assert_allclose(results[0][0], results[1][0], atol=1e-9)
        np.testing.assert_allclose(results[0][1], results[1][1], atol=1e-9)


def test_the_bare_triangle_agrees_with_the_chain() -> None:
    rng = np.random.default_rng(1)
    for _ in range(50):
        root, target, pole = (rng.normal(size=3) * 0.4 for _ in range(3))

        bare = triangle.bend(tuple(root), tuple(target), 0.3, 0.26, tuple(pole))
        slow = plain(triangle.bend)(tuple(root), tuple(target), 0.3, 0.26, tuple(pole))
        solved = solve(ARM, ARM.rest(root), Target(target, pole=pole), CONFIG)

        np.testing.assert_allclose(np.reshape(bare, (2, 3)), solved.points_world[1:], atol=1e-7)
        np.testing.assert_allclose(bare, slow, atol=1e-9)


def test_wrong_chains_and_targets_are_named() -> None:
    long = Chain.build(np.ones((5, 3)))
    heavy = Chain.build(OFFSETS, weights=[0.5, 1.0])
    with pytest.raises(ValueError, match="two_bone solves 2 joints, or 3 with an effector; this chain has 4"):
        solve(long, long.rest(), Target(DOWN), CONFIG)
    with pytest.raises(ValueError, match=r"weights 0\.5, 1: set them to 1"):
        solve(heavy, heavy.rest(), Target(DOWN), CONFIG)
    with pytest.raises(ValueError, match="position is not finite"):
        solve(ARM, ARM.rest(), Target(np.array([np.nan, 0.0, 0.0])), CONFIG)
    with pytest.raises(ValueError, match="the pose has 3 joints, the chain 2"):
        solve(ARM, HAND.rest(), Target(DOWN), CONFIG)
