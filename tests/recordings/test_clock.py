"""The replay clock, with a fake clock and once with the real one."""

from __future__ import annotations

import math
import time

import pytest

from recordings.clock import ReplayClock
from vrik.errors import UsageError

FRAME_NS = 11_111_111


class FakeTime:
    """A clock that only moves when someone sleeps (a bit too long each time, as real ones do)."""

    def __init__(self, oversleep_ns: int = 0) -> None:
        self.ns = 5_000_000_000
        self.oversleep_ns = oversleep_ns
        self.sleeps = 0

    def now(self) -> int:
        return self.ns

    def sleep(self, seconds: float) -> None:
        self.sleeps += 1
        self.ns += math.ceil(seconds * 1e9) + self.oversleep_ns


@pytest.mark.parametrize("speed", [0.5, 1.0, 2.0, 7.3])
def test_frames_come_at_the_recorded_pace_times_the_speed(speed):
    fake = FakeTime()
    clock = ReplayClock(speed, fake.now, fake.sleep)

    due = []
    for i in range(200):
        clock.wait(123 + i * FRAME_NS)
        due.append(fake.ns - 5_000_000_000)

    for i, at_ns in enumerate(due):
        assert abs(at_ns - i * FRAME_NS / speed) <= 2


def test_sleeps_that_last_too_long_do_not_add_up():
    fake = FakeTime(oversleep_ns=900_000)
    clock = ReplayClock(1.0, fake.now, fake.sleep)

    late = [clock.wait(i * FRAME_NS) for i in range(5_000)]

    assert max(late) <= 0.000_901
    assert fake.ns - 5_000_000_000 <= 4_999 * FRAME_NS + 901_000


def test_a_late_replay_catches_up_without_losing_frames():
    fake = FakeTime()
    clock = ReplayClock(1.0, fake.now, fake.sleep)
    clock.wait(0)
    fake.ns += 10 * FRAME_NS

    late = [clock.wait(i * FRAME_NS) for i in range(1, 15)]

    assert late[0] == pytest.approx(9 * FRAME_NS * 1e-9)
    assert fake.sleeps == 4
    assert late[-1] < 1e-8


def test_speed_zero_neither_looks_at_the_clock_nor_sleeps():
    def never(*_):
        raise AssertionError("used")

    clock = ReplayClock(0.0, never, never)

    assert [clock.wait(t) for t in (0, 10**9, 10**15)] == [0.0, 0.0, 0.0]


def test_times_that_stand_still_or_run_backwards_cause_no_waiting():
    fake = FakeTime()
    clock = ReplayClock(1.0, fake.now, fake.sleep)

    for t in (100, 100, 100, 40, 100, 40):
        clock.wait(t)

    assert fake.sleeps == 0
    clock.wait(100 + FRAME_NS)
    assert fake.ns - 5_000_000_000 == pytest.approx(FRAME_NS, abs=2)


def test_gaps_are_kept_and_very_long_ones_shortened():
    fake = FakeTime()
    clock = ReplayClock(1.0, fake.now, fake.sleep, max_gap_s=10.0)
    clock.wait(0)

    clock.wait(8 * 10**9)
    after_gap = fake.ns - 5_000_000_000
    clock.wait(608 * 10**9)
    after_long_gap = fake.ns - 5_000_000_000

    assert after_gap == pytest.approx(8e9, abs=2)
    assert after_long_gap == pytest.approx(18e9, abs=4)
    assert clock.cut_s == pytest.approx(590.0)


def test_the_real_clock_is_met():
    clock = ReplayClock(1.0)
    began = time.perf_counter()

    for i in range(10):
        clock.wait(i * 20_000_000)

    assert 0.18 <= time.perf_counter() - began < 0.5


@pytest.mark.parametrize("speed", [-1.0, math.nan, math.inf, 1e-300, 9e-4])
def test_a_speed_that_makes_no_sense_is_a_usage_error(speed):
    with pytest.raises(UsageError, match="speed"):
        ReplayClock(speed)
