"""Aim: exact where limits allow, shared as asked, and an answer for every odd place of the point."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solvers import anatomy
from solvers.aim import FRONT, aim, solve
from solvers.chain import Chain, ChainPose, Target
from solvers.config import ChainConfig
from solvers.kernels import aim as kernels
from solvers.limits import Hinge, limit_excess
from vrik import quat
from vrik.arrays import Vec3
from vrik.jit import plain

MIRROR, FLIP = np.array([-1.0, 1.0, 1.0]), np.array([1.0, 1.0, -1.0, -1.0])
OFFSETS = np.array([[0.0, 0.0, 0.0], [0.0, 0.15, 0.0], [0.0, 0.10, 0.0], [0.0, 0.07, -0.09]])
"""Upper chest, neck, head, and the eyes before it."""
LOOK = Chain.build(OFFSETS)
SHARES = (0.2, 0.3, 0.5)

coordinates = st.floats(-3.0, 3.0)
points = st.tuples(coordinates, coordinates, coordinates).map(np.array)


def angle_off(chain: Chain, pose: ChainPose, point: Vec3) -> float:
    """Independent of the solver: from the eye, along the last joint's front."""
    eye = chain.points(pose)[-1]
    ray, to = quat.rotate(pose.rotations_world[-1], np.array(FRONT)), point - eye
    return float(np.arctan2(np.linalg.norm(np.cross(ray, to)), ray @ to))


@settings(max_examples=100)
@given(points)
def test_the_ray_meets_the_point(point: Vec3) -> None:
    if np.linalg.norm(point - LOOK.points(LOOK.rest())[-1]) < 0.7:  # inside the head no ray gets there
        return

    solved = aim(LOOK, LOOK.rest(), FRONT, point, shares=SHARES)

    assert solved.reached
    assert angle_off(LOOK, solved.pose, point) < 1e-6
    np.testing.assert_allclose(
        np.linalg.norm(np.diff(solved.points_world, axis=0), axis=1), LOOK.lengths, atol=1e-9
    )


@pytest.mark.parametrize("axis", [(1.0, 0.0, 0.0), (0.3, -0.8, 0.2), (0.0, 1.0, 0.0)])
def test_any_axis_can_aim(axis: Vec3) -> None:
    point = np.array([1.0, 0.4, -1.5])

    solved = aim(LOOK, LOOK.rest(), axis, point)

    ray = quat.rotate(solved.pose.rotations_world[-1], np.array(axis))
    assert np.linalg.norm(np.cross(ray, point - solved.points_world[-1])) < 1e-6
    assert ray @ (point - solved.points_world[-1]) > 0.0


def test_joints_turn_by_their_shares() -> None:
    """Far away the eye's place does not matter: of 60 degrees each joint makes its part, about one axis."""
    point = 1e6 * np.array([-np.sin(np.pi / 3.0), 0.0, -np.cos(np.pi / 3.0)])

    solved = aim(LOOK, LOOK.rest(), FRONT, point, shares=SHARES)

    turns = np.degrees(quat.to_rotvec(LOOK.locals_of(solved.pose)))
    np.testing.assert_allclose(turns[:, 1], 60.0 * np.array(SHARES), atol=1e-3)
    np.testing.assert_allclose(turns[:, [0, 2]], 0.0, atol=1e-3)


def test_shares_are_the_chains_weights_when_left_out() -> None:
    chain = Chain.build(OFFSETS, weights=SHARES)
    point = np.array([1.0, 0.5, -0.5])

    plainly = solve(chain, chain.rest(), Target(point), ChainConfig())
    given_ = aim(LOOK, LOOK.rest(), FRONT, point, shares=SHARES)

    np.testing.assert_allclose(plainly.pose.rotations_world, given_.pose.rotations_world, atol=1e-12)


def test_a_joint_without_a_share_does_not_turn() -> None:
    solved = aim(LOOK, LOOK.rest(), FRONT, [1.0, 0.5, -0.5], shares=(0.0, 1.0, 0.0))

    assert solved.reached
    locals_ = LOOK.locals_of(solved.pose)
    np.testing.assert_allclose(quat.angle(locals_[[0, 2]], quat.identity()), 0.0, atol=1e-9)


def test_what_a_limit_keeps_from_one_joint_the_others_take() -> None:
    stiff = Hinge((0.0, 1.0, 0.0), -0.1, 0.1)
    chain = Chain.build(OFFSETS, limits=[None, None, stiff])
    point = np.array([-2.0, 0.3, -1.0])

    solved = aim(chain, chain.rest(), FRONT, point, shares=SHARES)

    assert solved.reached
    assert solved.rounds > 1
    assert limit_excess(chain.locals_of(solved.pose)[2], stiff) < 1e-9


def test_out_of_all_limits_it_looks_as_far_as_it_can() -> None:
    limits = anatomy.limits_of(["upperChest", "neck", "head"])
    chain = Chain.build(OFFSETS, limits=limits)

    solved = aim(chain, chain.rest(), FRONT, [0.3, 0.3, 3.0], shares=(0.0, 0.0, 1.0))

    assert not solved.reached
    assert solved.stopped_because == "no_progress"
    assert solved.residual_rad < np.radians(150.0)  # of 174 at rest
    for local, limit in zip(chain.locals_of(solved.pose), limits, strict=True):
        assert limit_excess(local, limit) < 1e-9


def test_exactly_behind_it_turns_round_level() -> None:
    eye = LOOK.points(LOOK.rest())[-1]

    solved = aim(LOOK, LOOK.rest(), FRONT, eye * [1.0, 1.0, 0.0] + [0.0, 0.0, 5.0], shares=SHARES)

    assert solved.reached
    up = quat.rotate(solved.pose.rotations_world[-1], np.array([0.0, 1.0, 0.0]))
    assert up[1] > 0.99


def test_a_point_in_the_eye_leaves_the_pose() -> None:
    eye = LOOK.points(LOOK.rest())[-1]

    solved = aim(LOOK, LOOK.rest(), FRONT, eye)

    assert solved.reached
    np.testing.assert_allclose(solved.pose.rotations_world, LOOK.rest().rotations_world, atol=1e-12)


@pytest.mark.parametrize("joint", [0, 1, 2])
def test_a_point_in_a_joint_or_on_the_axis_is_finite(joint: int) -> None:
    for point in (LOOK.points(LOOK.rest())[joint], LOOK.points(LOOK.rest())[-1] + [0.0, 0.0, -2.0]):
        solved = aim(LOOK, LOOK.rest(), FRONT, point, shares=SHARES)

        assert np.isfinite(solved.pose.rotations_world).all()
        np.testing.assert_allclose(np.linalg.norm(solved.pose.rotations_world, axis=1), 1.0, atol=1e-12)


@settings(max_examples=50)
@given(points)
def test_mirrored_points_give_mirrored_looks(point: Vec3) -> None:
    if abs(point[0]) < 1e-3:  # behind, left and right are as near
        return
    chain = Chain.build(OFFSETS, limits=anatomy.limits_of(["upperChest", "neck", "head"]))

    one = aim(chain, chain.rest(), FRONT, point, shares=SHARES)
    other = aim(chain, chain.rest(), FRONT, point * MIRROR, shares=SHARES)

    assert np.max(quat.angle(one.pose.rotations_world, other.pose.rotations_world * FLIP)) < 1e-5


def test_nothing_rolls_after_many_circles() -> None:
    """It turns from the given pose each time, so the same point gives the same pose."""
    for _ in range(3):
        for a in np.linspace(0.0, 2.0 * np.pi, 30):
            solved = aim(LOOK, LOOK.rest(), FRONT, [np.cos(a), 0.5 + np.sin(a), -2.0], shares=SHARES)

    again = aim(LOOK, LOOK.rest(), FRONT, [1.0, 0.5, -2.0], shares=SHARES)
    np.testing.assert_allclose(solved.pose.rotations_world, again.pose.rotations_world, atol=1e-12)


def test_compiled_and_plain_aim_agree() -> None:
    chain = Chain.build(OFFSETS, limits=anatomy.limits_of(["upperChest", "neck", "head"]))
    rng = np.random.default_rng(7)
    for _ in range(20):
        point = tuple(rng.normal(size=3) * 2.0)
        results = []
        for run in (kernels.aim, plain(kernels.aim)):
            place, turns = np.zeros((4, 3)), quat.identity(3)
            rounds = run(
                place, turns, chain.offsets, chain.limits, (1.0, 0.0, 0.0, 0.0), FRONT, point,
                np.array(SHARES), 1e-6, 64,
            )  # fmt: skip
            results.append((turns, rounds))

        np.testing.assert_allclose(results[0][0], results[1][0], atol=1e-7)


def test_wrong_arguments_are_named() -> None:
    with pytest.raises(ValueError, match="axis has no length"):
        aim(LOOK, LOOK.rest(), (0.0, 0.0, 0.0), [0.0, 0.0, 1.0])
    with pytest.raises(ValueError, match="shares are all zero"):
        aim(LOOK, LOOK.rest(), FRONT, [0.0, 0.0, 1.0], shares=(0.0, 0.0, 0.0))
    with pytest.raises(ValueError, match="point_world is not finite"):
        aim(LOOK, LOOK.rest(), FRONT, [np.nan, 0.0, 1.0])
