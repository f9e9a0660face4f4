"""Stature from head heights: crouching, jumping and glitches must not move it."""

from __future__ import annotations

import numpy as np
import pytest

from calibration.samples import take
from calibration.stature import estimate, standing_eye_height
from vrik import quat
from vrik.body import EYE_HEIGHT_SHARE
from vrik.frames import DeviceClass, TrackedDevice, TrackerSequence

RATE = 90


def heads(height: np.ndarray, pitch_deg: np.ndarray | float = 0.0) -> TrackerSequence:
    n = len(height)
    position = np.zeros((n, 1, 3))
    position[:, 0, 1] = height + np.random.default_rng(0).normal(0.0, 0.001, n)
    rotation = quat.from_rotvec(
        np.radians(np.broadcast_to(pitch_deg, n))[:, None, None] * np.array([1.0, 0.0, 0.0])
    )
    time_ns = np.arange(n) * (10**9 // RATE)
    hmd = [TrackedDevice("H", DeviceClass.HMD)]
    return TrackerSequence.build(time_ns, hmd, position, rotation, np.ones((n, 1), bool))


def still(height: float, seconds: float) -> np.ndarray:
    return np.full(int(seconds * RATE), height)


def test_somebody_who_crouches_most_of_the_time_is_not_shorter() -> None:
    height = np.concatenate([still(1.0, 20.0), still(1.64, 6.0), still(1.1, 10.0)])

    assert standing_eye_height(take(heads(height)), 0) == pytest.approx(1.64, abs=0.005)


def test_short_glitches_do_not_make_taller() -> None:
    height = still(1.64, 20.0)
    for at in (100, 700, 1400):
        height[at : at + 8] = 2.4

    assert standing_eye_height(take(heads(height)), 0) == pytest.approx(1.64, abs=0.005)


def test_jumping_does_not_make_taller() -> None:
    t = np.arange(10 * RATE) / RATE
    hop = np.maximum(0.0, 0.3 * np.sin(2.0 * np.pi * t)) ** 1.0
    height = np.concatenate([still(1.64, 5.0), 1.64 + hop, still(1.64, 5.0)])

    assert standing_eye_height(take(heads(height)), 0) == pytest.approx(1.64, abs=0.02)


def test_looking_down_does_not_make_shorter() -> None:
    height = np.concatenate([still(1.58, 20.0), still(1.64, 6.0)])
    pitch = np.concatenate([still(-40.0, 20.0), still(-5.0, 6.0)])

    assert standing_eye_height(take(heads(height, pitch)), 0) == pytest.approx(1.64, abs=0.005)


def test_eyes_in_a_tpose_beat_everything_but_a_stated_height() -> None:
    samples = take(heads(still(1.50, 10.0)))
    eyes = np.full(30, 1.64)

    found = estimate(samples, 0, tpose_eyes=eyes)
    stated = estimate(samples, 0, tpose_eyes=eyes, stated_m=1.81)

    assert (found.source, found.metres) == ("T-pose", pytest.approx(1.64 / EYE_HEIGHT_SHARE))
    assert (stated.source, stated.metres) == ("stated", 1.81)


@pytest.mark.parametrize("eyes", [0.4, 2.6])
def test_impossible_heights_are_assumed_never_silently(eyes: float) -> None:
    found = estimate(take(heads(still(eyes, 5.0))), 0)

    assert not found.measured
    assert found.source == "fallback"
    assert "assumed" in found.note
