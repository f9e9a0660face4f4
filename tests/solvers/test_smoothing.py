"""Smoothing by half-life: the same path at every frame rate, and nothing smoothed twice."""

from __future__ import annotations

import numpy as np
import pytest

from solvers.chain import Target
from solvers.smoothing import TargetSmoother, alpha, toward, toward_direction, toward_rotation
from vrik import quat

HALF_LIFE = 0.1
START = Target(np.zeros(3), quat.identity(), pole=np.array([0.0, -1.0, 0.0]))
STEP = Target(
    np.array([1.0, -2.0, 0.5]), quat.from_rotvec(np.array([0.4, 2.0, -0.8])), pole=np.array([0.6, 0.2, -0.7])
)


def path(hz: int) -> list[Target]:
    """What is shown every 1/30 s after a step, for one second."""
    smoother = TargetSmoother(HALF_LIFE)
    smoother.step(START, 0.0)
    shown = [smoother.step(STEP, (i + 1) / hz) for i in range(hz)]
    return shown[hz // 30 - 1 :: hz // 30]


def test_thirty_sixty_and_a_hundred_and_twenty_hertz_give_the_same_path() -> None:
    slow = path(30)
    for hz in (60, 120):
        for one, other in zip(slow, path(hz), strict=True):
            np.testing.assert_allclose(other.position, one.position, atol=1e-9)
            np.testing.assert_allclose(other.pole, one.pole, atol=1e-9)
            assert one.rotation is not None
            assert other.rotation is not None
            assert abs(abs(one.rotation @ other.rotation) - 1.0) < 1e-12
            np.testing.assert_allclose(quat.angle(one.rotation, other.rotation), 0.0, atol=1e-9)


def test_after_a_half_life_half_is_left() -> None:
    np.testing.assert_allclose(toward(np.zeros(3), [1.0, 2.0, 4.0], HALF_LIFE, HALF_LIFE), [0.5, 1.0, 2.0])
    turned = toward_rotation(
        quat.identity(), quat.from_rotvec(np.array([0.0, 2.0, 0.0])), HALF_LIFE, HALF_LIFE
    )
    np.testing.assert_allclose(quat.to_rotvec(turned), [0.0, 1.0, 0.0], atol=1e-12)
    half = toward_direction(np.array([1.0, 0.0, 0.0]), np.array([0.0, 3.0, 0.0]), HALF_LIFE, HALF_LIFE)
    np.testing.assert_allclose(half, [np.sqrt(0.5), np.sqrt(0.5), 0.0], atol=1e-12)


def test_many_rows_are_smoothed_at_once() -> None:
    now, goal = np.zeros((22, 3)), np.ones((22, 3))

    np.testing.assert_allclose(toward(now, goal, 0.2, HALF_LIFE), 0.75)


@pytest.mark.parametrize(
    ("dt", "life", "share"), [(0.0, 0.1, 0.0), (-1.0, 0.1, 0.0), (0.1, 0.0, 1.0), (1e9, 0.1, 1.0)]
)
def test_no_time_moves_nothing_and_no_half_life_moves_at_once(dt: float, life: float, share: float) -> None:
    assert alpha(dt, life) == share


def test_the_same_instant_is_not_smoothed_twice() -> None:
    smoother = TargetSmoother(HALF_LIFE)
    smoother.step(START, 0.0)

    once = smoother.step(STEP, HALF_LIFE)
    again = smoother.step(STEP, HALF_LIFE)
    earlier = smoother.step(STEP, 0.0)

    assert again is once
    assert earlier is once
    np.testing.assert_allclose(once.position, 0.5 * STEP.position)


def test_a_rotation_that_appears_is_taken_and_one_that_goes_is_forgotten() -> None:
    """No rotation is not the identity: nothing turns towards or away from it."""
    smoother = TargetSmoother(HALF_LIFE)
    smoother.step(Target(np.zeros(3)), 0.0)

    appears = smoother.step(STEP, 0.1)
    goes = smoother.step(Target(np.zeros(3)), 0.2)
    returns = smoother.step(STEP, 0.3)

    assert goes.rotation is None
    assert goes.pole is None
    for shown in (appears, returns):
        np.testing.assert_allclose(shown.rotation, STEP.rotation)
        np.testing.assert_allclose(shown.pole, STEP.pole)


def test_reset_takes_the_next_target_as_it_is() -> None:
    smoother = TargetSmoother(HALF_LIFE)
    smoother.step(START, 0.0)
    smoother.reset()

    np.testing.assert_allclose(smoother.step(STEP, 0.01).position, STEP.position)


def test_a_direction_turned_straight_back_arrives() -> None:
    back = toward_direction(np.array([1.0, 0.0, 0.0]), np.array([-1.0, 0.0, 0.0]), 0.1, HALF_LIFE)

    np.testing.assert_allclose(back, [-1.0, 0.0, 0.0])


def test_a_negative_half_life_is_refused() -> None:
    with pytest.raises(ValueError, match="half_life_s is -1"):
        TargetSmoother(-1.0)
