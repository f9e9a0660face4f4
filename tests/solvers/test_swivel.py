"""Swivel: an angle about the limb, and a side that is continuous where its pole is not."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from solvers.chain import Chain, Target
from solvers.config import ChainConfig
from solvers.kernels import swivel as kernels
from solvers.swivel import RATE_RAD_S, ZONE, SwivelState, hinted_pole, swivel_angle, with_swivel
from solvers.two_bone import solve
from vrik import quat
from vrik.arrays import Points, Vec3
from vrik.jit import plain

DOWN, BACK = np.array([0.0, -1.0, 0.0]), np.array([0.0, 0.0, 1.0])
MIRROR = np.array([-1.0, 1.0, 1.0])
ARM = Chain.build([[0.0, 0.0, 0.0], [0.3, 0.0, 0.0], [0.3, 0.0, 0.0]])
DT = 1.0 / 90.0

numbers = st.floats(-1.0, 1.0)
vectors = st.tuples(numbers, numbers, numbers).map(np.array)


def elbows_of(
    hands: Points, pole: Vec3 | None, state: SwivelState, shoulder: Vec3, mirror: float = 1.0
) -> Points:
    """The arm frame by frame, its pole from the swivel state."""
    chain = Chain.build(ARM.offsets * [mirror, 1.0, 1.0])
    pose, elbows = chain.rest(shoulder), []
    for hand in hands:
        swivel = state.step(shoulder, hand, pole, DT)
        solved = solve(chain, pose, Target(hand, pole=swivel.side), ChainConfig())
        pose = solved.pose
        elbows.append(solved.points_world[1])
    return np.array(elbows)


def great_circle(start: Vec3, through: Vec3, frames: int, turns: float = 1.0) -> Points:
    a = np.linspace(0.0, 2.0 * np.pi * turns, frames)[:, None]
    return np.cos(a) * start + np.sin(a) * through


def side_steps(axes: Points, poles: Points, state: SwivelState) -> tuple[np.ndarray, list[str]]:
    """How far the side turned in each step, seen from the limb that carried it along."""
    steps, states, last = [], [], None
    for axis, pole in zip(axes, poles, strict=True):
        now = state.step(np.zeros(3), axis, pole, DT)
        if last is not None:
            kept = kernels.carried(tuple(last.side), tuple(last.axis), tuple(now.axis))
            steps.append(math.acos(min(max(float(now.side @ np.array(kept)), -1.0), 1.0)))
        states.append(now.status)
        last = now
    return np.array(steps), states


def test_the_angle_is_that_of_a_turn_about_the_axis() -> None:
    """A limb bent towards the reference has none; turned about its axis, it has that turn's angle."""
    root, tip = np.zeros(3), np.array([0.4, 0.0, 0.0])
    middle = np.array([0.2, -0.2, 0.0])
    for angle in (-3.0, -1.0, 0.0, 0.5, 2.0):
        turned = quat.rotate(quat.from_rotvec(np.array([angle, 0.0, 0.0])), middle)

        assert swivel_angle(root, turned, tip, DOWN) == pytest.approx(angle, abs=1e-12)


@given(vectors, vectors, vectors, st.floats(-3.0, 3.0))
def test_a_limb_with_a_swivel_has_that_swivel_and_the_same_bones(
    middle: Vec3, tip: Vec3, reference: Vec3, angle: float
) -> None:
    root = np.array([0.1, 0.2, 0.3])
    if swivel_angle(root, middle, tip, reference) is None:
        return
    if min(np.linalg.norm(np.cross(tip - root, v)) for v in (middle - root, reference)) < 1e-4:
        return

    there = with_swivel(root, middle, tip, angle, reference)

    assert swivel_angle(root, there, tip, reference) == pytest.approx(angle, abs=1e-6)
    assert np.linalg.norm(there - root) == pytest.approx(np.linalg.norm(middle - root), abs=1e-9)
    assert np.linalg.norm(there - tip) == pytest.approx(np.linalg.norm(middle - tip), abs=1e-9)


@pytest.mark.parametrize(
    ("middle", "tip", "reference"),
    [
        ([0.2, 0.0, 0.0], [0.4, 0.0, 0.0], DOWN),  # straight
        ([0.0, 0.3, 0.0], [0.0, 0.0, 0.0], DOWN),  # folded onto the root
        ([0.2, 0.1, 0.0], [0.4, 0.0, 0.0], [1.0, 0.0, 0.0]),  # reference along the limb
    ],
)
def test_where_there_is_no_angle_there_is_none(
    middle: list[float], tip: list[float], reference: Vec3
) -> None:
    assert swivel_angle(np.zeros(3), middle, tip, reference) is None
    assert np.isfinite(with_swivel(np.zeros(3), middle, tip, 1.0, reference)).all()


def test_a_hand_that_sweeps_past_does_not_flip_the_elbow(shared: Path) -> None:
    """Case C51: the elbow moves at most 3 cm a frame and stays below the shoulder-hand line."""
    case = json.loads((shared / "data/cases/c51_sweep.json").read_text())
    shoulder, hands = np.array(case["shoulder"], float), np.array(case["targets"], float)

    elbows = elbows_of(hands, np.array(case["pole"], float), SwivelState(), shoulder)
    plainly = [
        solve(ARM, ARM.rest(shoulder), Target(hand, pole=np.array(case["pole"], float)), ChainConfig())
        for hand in hands
    ]

    for path in (elbows, np.array([limb.points_world[1] for limb in plainly])):
        assert np.linalg.norm(np.diff(path, axis=0), axis=1).max() <= 0.03
        assert (path[:, 1] < shoulder[1]).all()  # shoulder and hand are level in this case


@pytest.mark.parametrize("tilt", [0.0, 0.02, 0.1, 0.3, 0.8, 1.5])
@pytest.mark.parametrize("frames", [60, 360])
def test_around_the_shoulder_and_through_the_pole_the_side_keeps_its_bound(tilt: float, frames: int) -> None:
    """Two full circles; with no tilt they pass exactly through the pole, and through its opposite."""
    start = np.array([1.0, 0.0, 0.0])
    axes = great_circle(start, math.cos(tilt) * DOWN + math.sin(tilt) * BACK, frames, turns=2.0)
    poles = np.tile(DOWN, (frames, 1))

    steps, states = side_steps(axes, poles, SwivelState())

    turn = np.arccos(np.clip(np.sum(axes[1:] * axes[:-1], axis=1), -1.0, 1.0))
    assert np.all(steps <= RATE_RAD_S * DT + turn / ZONE + 1e-6)
    if tilt == 0.0:  # each pass asks for half a turn at once; it is made at the rate
        assert "limited" in states
        assert steps.max() <= RATE_RAD_S * DT + 1e-6 + turn.max() / ZONE * (frames < 100)
    if tilt > 0.3:
        assert set(states) == {"defined"}


def test_through_the_pole_the_elbow_needs_half_a_second_and_no_frame_jumps() -> None:
    hands = 0.45 * great_circle(np.array([1.0, 0.0, 0.0]), DOWN, 721)[:361]

    elbows = elbows_of(hands, DOWN, SwivelState(), np.zeros(3))

    assert np.linalg.norm(np.diff(elbows, axis=0), axis=1).max() <= 0.03


def test_a_pole_that_is_turned_over_at_once_is_followed_at_once() -> None:
    """A pole that was moved is a wish, not a singularity; within a few degrees of the limb it is not."""
    state = SwivelState()
    state.step(np.zeros(3), [1.0, 0.0, 0.0], DOWN, DT)

    turned = state.step(np.zeros(3), [1.0, 0.0, 0.0], -DOWN, DT)
    near = state.step(np.zeros(3), [1.0, 0.0, 0.0], [1.0, -0.05, 0.0], DT)

    assert turned.status == "defined"
    np.testing.assert_allclose(turned.side, -DOWN, atol=1e-12)
    assert near.status == "limited"
    assert near.side @ -DOWN == pytest.approx(math.cos(RATE_RAD_S * DT))


def test_the_rate_is_in_seconds_not_in_frames() -> None:
    """A tenth of a second of catching up is as far at 30, 90 and 300 Hz."""
    ends = []
    for hz in (30, 90, 300):
        state = SwivelState()
        state.step(np.zeros(3), [1.0, 0.0, 0.0], DOWN, 1.0 / hz)
        for _ in range(hz // 10):
            swivel = state.step(np.zeros(3), [1.0, 0.0, 0.0], [1.0, 0.05, 0.0], 1.0 / hz)
        ends.append(swivel.side)

    np.testing.assert_allclose(ends[1:], [ends[0]] * 2, atol=1e-9)


@pytest.mark.parametrize("pole", [None, [0.0, 0.0, 0.0], [0.0, 0.0, -2.0]])
def test_without_a_pole_the_side_is_held(pole: list[float] | None) -> None:
    state = SwivelState()
    first = state.step(np.zeros(3), [0.0, 0.0, -1.0], DOWN, DT)

    straight = state.step(np.zeros(3), [0.0, 0.0, -1.0], pole, DT)
    folded = state.step(np.zeros(3), np.zeros(3), None, DT)

    for swivel in (straight, folded):
        assert swivel.status == "held"
        np.testing.assert_allclose(swivel.side, first.side, atol=1e-12)


def test_through_straight_and_folded_limbs_the_measured_bend_never_jumps() -> None:
    """The pole is the elbow of a given limb, which is lost when the limb is straight or folded."""
    state, last = SwivelState(), None
    for t in np.linspace(0.0, 1.0, 300):
        reach = 0.3 + 0.3 * math.cos(2.0 * math.pi * t)  # straight at the ends, folded in the middle
        off = math.sqrt(max(0.3**2 - (0.5 * reach) ** 2, 0.0))
        elbow = np.array([0.0, -off, -0.5 * reach])
        swivel = state.step(np.zeros(3), [0.0, 0.0, -reach], elbow, DT)
        if last is not None:
            assert swivel.side @ last > 1.0 - 1e-9
        last = swivel.side


def test_mirrored_limbs_have_mirrored_sides_and_opposite_angles() -> None:
    rng = np.random.default_rng(2)
    path = np.cumsum(rng.normal(size=(200, 3)) * 0.1, axis=0) + np.array([0.6, 0.0, 0.0])
    right, left = SwivelState(), SwivelState()
    for tip in path:
        one = right.step(np.zeros(3), tip, DOWN, DT)
        other = left.step(np.zeros(3), tip * MIRROR, DOWN * MIRROR, DT)

        np.testing.assert_allclose(other.side * MIRROR, one.side, atol=1e-7)
        assert other.angle_rad == pytest.approx(-one.angle_rad, abs=1e-6)
        assert other.status == one.status


def test_left_and_right_arm_give_the_same_numbers() -> None:
    hands = 0.45 * great_circle(np.array([0.8, 0.1, 0.0]), np.array([0.0, -0.7, -0.6]), 120)

    right = elbows_of(hands, DOWN, SwivelState(), np.zeros(3))
    left = elbows_of(hands * MIRROR, DOWN, SwivelState(), np.zeros(3), mirror=-1.0)

    np.testing.assert_allclose(left * MIRROR, right, atol=1e-9)


def test_the_angle_changes_reference_without_a_jump() -> None:
    """The limb swings across the reference direction, where its projection turns around."""
    state, last = SwivelState(), None
    for a in np.linspace(0.4, math.pi - 0.4, 400):
        axis = np.array([math.cos(a), -math.sin(a), 0.1])
        swivel = state.step(np.zeros(3), axis, BACK, DT)
        if last is not None:
            assert abs(swivel.angle_rad - last) < 0.1
        last = swivel.angle_rad


def test_a_hint_turns_the_bend_by_its_weight() -> None:
    root, tip, middle = np.zeros(3), np.array([0.4, 0.0, 0.0]), np.array([0.2, -0.2, 0.0])
    for weight in (0.0, 0.25, 1.0):
        pole = hinted_pole(root, middle, tip, BACK, weight)

        turned = swivel_angle(root, pole, tip, DOWN)
        assert turned is not None
        assert abs(turned) == pytest.approx(weight * math.pi / 2.0, abs=1e-9)


def test_a_hint_that_says_nothing_or_a_straight_limb_leaves_the_other() -> None:
    root, tip, middle = np.zeros(3), np.array([0.4, 0.0, 0.0]), np.array([0.2, -0.2, 0.0])

    np.testing.assert_allclose(
        hinted_pole(root, middle, tip, [1.0, 0.0, 0.0], 1.0), [0.0, -0.2, 0.0], atol=1e-12
    )
    np.testing.assert_allclose(hinted_pole(root, 0.5 * tip, tip, BACK, 0.5), BACK, atol=1e-12)


def test_compiled_and_plain_swivel_agree() -> None:
    rng = np.random.default_rng(6)
    one, other = np.zeros(kernels.STATE_WIDTH), np.zeros(kernels.STATE_WIDTH)
    for _ in range(50):
        root, tip, pole = (tuple(rng.normal(size=3)) for _ in range(3))
        fast = kernels.follow(one, root, tip, pole, DT, 6.0, 0.15)
        slow = plain(kernels.follow)(other, root, tip, pole, DT, 6.0, 0.15)

        assert fast == slow
        np.testing.assert_allclose(one, other, atol=1e-9)
        args = (root, tip, pole, (0.0, -1.0, 0.0))
        assert kernels.swivel_of(*args) == pytest.approx(plain(kernels.swivel_of)(*args))
        assert kernels.middle_at(*args, 0.7) == pytest.approx(plain(kernels.middle_at)(*args, 0.7))


def test_settings_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ValueError, match="rate_rad_s is 0"):
        SwivelState(rate_rad_s=0.0)
    with pytest.raises(ValueError, match="tip is not finite"):
        SwivelState().step(np.zeros(3), [math.nan, 0.0, 0.0], DOWN, DT)
