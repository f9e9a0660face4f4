"""Blending: exact at its ends, bones keep their lengths, and nothing jumps."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from solvers.blend import CrossFade, blend, combined
from solvers.chain import Chain, ChainPose, Target
from vrik import quat
from vrik.arrays import Vec3

CHAIN = Chain.build([[0.0, 0.0, 0.0], [0.3, 0.0, 0.0], [0.26, 0.0, 0.0], [0.08, 0.0, 0.0]])
FADE_S, DT = 0.4, 1.0 / 60.0


def random_pose(seed: int) -> ChainPose:
    rng = np.random.default_rng(seed)
    return ChainPose.build(rng.normal(size=3), rng.normal(size=(3, 4)), rng.normal(size=4))


def lengths(pose: ChainPose) -> np.ndarray:
    return np.linalg.norm(np.diff(CHAIN.points(pose), axis=0), axis=1)


def apart(one: ChainPose, other: ChainPose) -> float:
    """Largest angle between joints, or distance between roots."""
    turned = float(np.max(quat.angle(one.rotations_world, other.rotations_world)))
    return max(turned, float(np.linalg.norm(one.root_world - other.root_world)))


def test_weight_zero_is_the_given_pose_and_one_the_solved_one_exactly() -> None:
    given_, solved = random_pose(1), random_pose(2)

    for weight, pose in ((0.0, given_), (1.0, solved)):
        mixed = blend(CHAIN, given_, solved, weight)
        np.testing.assert_array_equal(mixed.rotations_world, pose.rotations_world)
        np.testing.assert_array_equal(mixed.root_world, pose.root_world)


@given(st.integers(0, 200), st.integers(201, 400), st.floats(0.0, 1.0))
def test_bones_keep_their_lengths_at_every_weight(one: int, other: int, weight: float) -> None:
    mixed = blend(CHAIN, random_pose(one), random_pose(other), weight)

    np.testing.assert_allclose(lengths(mixed), CHAIN.lengths, atol=1e-9)


def test_half_way_each_joint_has_turned_half_way() -> None:
    given_, solved = (
        CHAIN.rest(),
        ChainPose.build(np.zeros(3), quat.from_rotvec(np.array([[0.0, 1.2, 0.0]] * 3))),
    )

    half = blend(CHAIN, given_, solved, 0.5)

    np.testing.assert_allclose(quat.to_rotvec(CHAIN.locals_of(half))[:, 1], [0.6, 0.0, 0.0], atol=1e-12)


def test_the_weight_changes_the_pose_continuously() -> None:
    poses = [blend(CHAIN, random_pose(3), random_pose(4), w) for w in np.linspace(0.0, 1.0, 1001)]

    assert max(apart(a, b) for a, b in pairwise(poses)) < 0.02


def moving(t: float, sign: float) -> ChainPose:
    turns = quat.from_rotvec(np.array([[0.0, sign * (0.8 + 0.3 * math.sin(3.0 * t)), 0.3]] * 3))
    return ChainPose.build([sign * 0.1, 1.2, 0.0], turns)


def test_a_cross_fade_has_no_jump_and_ends_on_the_new_pose() -> None:
    fade, shown = CrossFade(CHAIN, FADE_S), []
    for i in range(120):
        if i == 40:
            fade.switch()
        shown.append(fade.step(moving(i * DT, 1.0 if i < 40 else -1.0), DT))

    steps = [apart(a, b) for a, b in pairwise(shown)]
    jump = apart(moving(39 * DT, 1.0), moving(40 * DT, -1.0))
    own = max(apart(moving(i * DT, 1.0), moving((i + 1) * DT, 1.0)) for i in range(120))
    assert jump > 1.0
    assert max(steps) <= 3.0 * own + 1.5 * math.pi * DT / FADE_S  # smoothstep: 1.5 times the mean speed
    assert apart(shown[39], shown[40]) < 1e-7
    assert apart(shown[-1], moving(119 * DT, -1.0)) == 0.0
    np.testing.assert_allclose([lengths(pose) for pose in shown], [CHAIN.lengths] * 120, atol=1e-9)


def test_a_cross_fade_takes_its_seconds_at_every_frame_rate() -> None:
    """A still pose to a still pose: the same pose is shown a quarter second after the switch."""
    found = []
    for hz in (20, 60, 120):
        fade = CrossFade(CHAIN, FADE_S)
        fade.step(moving(0.0, 1.0), 1.0 / hz)
        fade.switch()
        for _ in range(hz // 4 + 1):
            pose = fade.step(moving(0.0, -1.0), 1.0 / hz)
        found.append(pose)

    assert apart(found[0], found[1]) < 1e-7
    assert apart(found[0], found[2]) < 1e-7


def test_switching_in_the_middle_of_a_fade_is_no_jump() -> None:
    fade = CrossFade(CHAIN, FADE_S)
    fade.step(moving(0.0, 1.0), DT)
    fade.switch()
    for _ in range(10):
        last = fade.step(moving(0.0, -1.0), DT)
    assert 0.0 < fade.weight < 1.0
    fade.switch()

    assert apart(fade.step(moving(0.0, 1.0), DT), last) < 1e-7


def test_a_switch_before_anything_was_shown_shows_the_new_pose() -> None:
    fade = CrossFade(CHAIN, FADE_S)
    fade.switch()

    assert apart(fade.step(moving(0.0, -1.0), DT), moving(0.0, -1.0)) == 0.0
    assert fade.weight == 1.0


def test_one_target_is_itself() -> None:
    only = Target(
        np.array([1.0, 2.0, 3.0]),
        quat.from_rotvec(np.array([0.1, 0.2, 0.3])),
        pole=np.array([0.0, -1.0, 0.0]),
    )

    same = combined([only, Target(np.zeros(3), weight=0.0)])

    np.testing.assert_allclose(same.position, only.position)
    assert same.rotation is not None
    assert quat.angle(same.rotation, only.rotation) < 1e-7
    np.testing.assert_allclose(same.pole, only.pole)


def test_positions_and_rotations_are_means_by_weight() -> None:
    """Against scipy's weighted mean of rotations, with a sign flipped."""
    turns = Rotation.from_rotvec([[0.1, 0.0, 0.3], [0.4, -0.5, 0.0], [0.0, 0.6, 0.2]])
    wxyz = turns.as_quat()[:, [3, 0, 1, 2]] * np.array([[1.0], [-1.0], [1.0]])
    places, weights = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 2.0]]), [1.0, 2.0, 0.5]

    mean = combined([Target(p, q, weight=w) for p, q, w in zip(places, wxyz, weights, strict=True)])

    np.testing.assert_allclose(mean.position, np.average(places, axis=0, weights=weights))
    wanted = turns.mean(weights=weights).as_quat()[[3, 0, 1, 2]]
    assert mean.rotation is not None
    assert abs(abs(mean.rotation @ wanted) - 1.0) < 1e-9


def test_targets_without_rotations_have_none_together() -> None:
    """No rotation is not the identity."""
    assert combined([Target(np.zeros(3)), Target(np.ones(3))]).rotation is None
    assert combined([Target(np.zeros(3)), Target(np.ones(3))]).turn_weight == 0.0
    turned = quat.from_rotvec(np.array([0.0, 2.0, 0.0]))
    mixed = combined([Target(np.zeros(3)), Target(np.ones(3), turned)])
    assert mixed.rotation is not None
    assert quat.angle(mixed.rotation, turned) < 1e-7


def test_points_of_a_rigid_effector_give_its_pose() -> None:
    """Three points of a hand and where they are: rotation and tip come back."""
    rng = np.random.default_rng(5)
    offsets = rng.normal(size=(3, 3)) * 0.1
    turn, tip = quat.normalize(rng.normal(size=4)), np.array([0.3, 1.2, -0.4])

    pose = combined([Target(tip + quat.rotate(turn, o)) for o in offsets], offsets=offsets)

    assert pose.rotation is not None
    assert quat.angle(pose.rotation, turn) < 1e-7
    np.testing.assert_allclose(pose.position, tip, atol=1e-9)
    assert pose.turn_weight > 0.0


@given(st.floats(-3.0, 3.0))
def test_one_point_off_the_tip_keeps_the_rotation_there_is(angle: float) -> None:
    now, offset = quat.from_rotvec(np.array([0.0, angle, 0.0])), np.array([0.1, 0.0, 0.0])

    pose = combined([Target(np.array([1.0, 1.0, 1.0]))], offsets=offset[None], near=now)

    assert pose.rotation is not None
    assert quat.angle(pose.rotation, now) < 1e-6
    np.testing.assert_allclose(pose.position + quat.rotate(now, offset), 1.0, atol=1e-6)


def test_poles_that_cancel_say_nothing() -> None:
    up: Vec3 = np.array([0.0, 1.0, 0.0])

    assert combined([Target(np.zeros(3), pole=up), Target(np.zeros(3), pole=-up)]).pole is None
    np.testing.assert_allclose(
        combined([Target(np.zeros(3), pole=up, weight=3.0), Target(np.zeros(3), pole=-5.0 * up)]).pole, up
    )


def test_wrong_arguments_are_named() -> None:
    with pytest.raises(ValueError, match=r"weight is 1\.5"):
        blend(CHAIN, CHAIN.rest(), CHAIN.rest(), 1.5)
    with pytest.raises(ValueError, match="duration_s is 0"):
        CrossFade(CHAIN, 0.0)
    with pytest.raises(ValueError, match="at least one target"):
        combined([])
    with pytest.raises(ValueError, match="2 offsets for 1 targets"):
        combined([Target(np.zeros(3))], offsets=np.zeros((2, 3)))
    with pytest.raises(ValueError, match="give near"):
        combined([Target(np.zeros(3))], offsets=np.ones((1, 3)))
