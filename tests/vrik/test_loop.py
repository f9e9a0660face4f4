"""The loop's tally: how many, how fast, how late, how far from the devices."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from recordings import ReplayClock
from vrik import quat
from vrik.body import BodyModel
from vrik.errors import VrikError
from vrik.frames import ROLE, ROLES, DeviceClass, DeviceState, PoseFrame, TrackedDevice, TrackerFrame
from vrik.loop import RECENT, Loop
from vrik.sinks import SinkStats
from vrik.skeleton import BONES

HEAD = ROLE["head"]
DEVICES = (TrackedDevice("H", DeviceClass.HMD, "head"),)


class Clock:
    """Time that passes only when somebody says so. [s]"""

    def __init__(self) -> None:
        self.s = 100.0

    def __call__(self) -> float:
        return self.s

    def ns(self) -> int:
        return round(self.s * 1e9)

    def sleep(self, seconds: float) -> None:
        self.s += seconds


class FakePipeline:
    """Takes ``takes_s`` for a frame and says what it is told about the head's device."""

    def __init__(self, clock: Clock, takes_s: Any = lambda i: 0.0) -> None:
        self.clock, self.takes_s = clock, takes_s
        self.error_m, self.state = [0.0], [int(DeviceState.OK)]
        self.count = 0
        self.tracked: TrackerFrame | None = None

    def step(self, frame: TrackerFrame) -> PoseFrame:
        i, self.count = self.count, self.count + 1
        self.clock.s += self.takes_s(i)
        error, state = np.full(len(ROLES), np.nan), np.zeros(len(ROLES), np.int64)
        error[HEAD], state[HEAD] = self.error_m[i % len(self.error_m)], self.state[i % len(self.state)]
        n = len(BONES)
        return PoseFrame(
            frame.host_time_ns,
            BodyModel.average(1.7).tpose.copy(),
            quat.identity(n),
            quat.identity(n),
            error,
            state,
            np.zeros(len(ROLES)),
        )


class Kept:
    """A sink that remembers."""

    def __init__(self, problem: Exception | None = None) -> None:
        self.got: list[tuple[PoseFrame, TrackerFrame]] = []
        self.problem = problem

    def send(self, pose: PoseFrame, frame: TrackerFrame) -> None:
        if self.problem is not None:
            raise self.problem
        self.got.append((pose, frame))

    def close(self) -> None:
        pass

    def stats(self) -> SinkStats:
        return SinkStats("kept://here", "here", frames=len(self.got))


def frames(count: int, step_s: float = 0.01) -> Iterator[TrackerFrame]:
    for i in range(count):
        yield TrackerFrame(
            round(i * step_s * 1e9),
            DEVICES,
            np.zeros((1, 3)),
            quat.identity(1),
            np.ones(1, np.bool_),
            np.full(1, 200, np.int64),
        )


def test_before_the_first_frame_the_status_is_all_zero_and_finite() -> None:
    clock = Clock()
    loop = Loop(FakePipeline(clock), [Kept()], now=clock)
    clock.s += 30.0  # compiling

    status = loop.status()

    assert (status.frames, status.played_s, status.elapsed_s, status.rate_hz) == (0, 0.0, 0.0, 0.0)
    assert not status.solve_ms.any()
    assert not status.tracked_share.any()
    assert np.isnan(status.reach_error_mm).all()


def test_every_sink_gets_every_frame_in_order() -> None:
    clock = Clock()
    sinks = [Kept(), Kept()]

    Loop(FakePipeline(clock), sinks, now=clock).run(frames(5))

    for sink in sinks:
        assert [pose.host_time_ns for pose, _ in sink.got] == [i * 10_000_000 for i in range(5)]


def test_rate_and_times_are_those_of_the_clock() -> None:
    """10 ms frames at double speed: 200 a second; the time before the first frame does not count."""
    clock = Clock()
    pace = ReplayClock(2.0, clock.ns, clock.sleep)
    loop = Loop(FakePipeline(clock, lambda i: 0.001), [Kept()], pace, now=clock)
    clock.s += 20.0

    loop.run(frames(101))

    status = loop.status()
    assert status.frames == 101
    assert status.played_s == pytest.approx(1.0)
    assert status.elapsed_s == pytest.approx(0.501)
    assert status.rate_hz == pytest.approx(200.0, rel=0.01)
    assert status.solve_ms == pytest.approx([1.0, 1.0, 1.0])
    assert status.late_ms == pytest.approx([0.0, 0.0, 0.0], abs=1e-4)


def test_percentiles_show_the_slow_frame_and_forget_it_after_a_while() -> None:
    clock = Clock()
    loop = Loop(FakePipeline(clock, lambda i: 0.5 if i == 10 else 0.001), [Kept()], now=clock)

    loop.run(frames(100))
    soon = loop.status()
    loop.run(frames(RECENT))
    later = loop.status()

    assert soon.solve_ms[0] == pytest.approx(1.0)
    assert soon.solve_ms[2] == pytest.approx(500.0)
    assert later.solve_ms[2] == pytest.approx(1.0)
    assert later.frames == 100 + RECENT


def test_a_frame_that_takes_too_long_makes_the_next_ones_late() -> None:
    clock = Clock()
    pace = ReplayClock(1.0, clock.ns, clock.sleep)
    loop = Loop(FakePipeline(clock, lambda i: 0.1 if i == 5 else 0.0), [Kept()], pace, now=clock)

    loop.run(frames(50))

    assert loop.status().late_ms[2] == pytest.approx(90.0, abs=0.01)


def test_reach_errors_and_tracked_share_count_what_was_tracked() -> None:
    clock = Clock()
    pipeline = FakePipeline(clock)
    pipeline.error_m = [0.010, 0.030, np.nan, 0.020]
    pipeline.state = [DeviceState.OK, DeviceState.RETURNING, DeviceState.LOST, DeviceState.OK]
    loop = Loop(pipeline, [], now=clock)

    loop.run(frames(8))

    status = loop.status()
    assert status.reach_error_mm[HEAD] == pytest.approx([20.0, 20.0, 30.0])
    assert np.isnan(status.reach_error_mm[ROLE["waist"]]).all()
    assert status.tracked_share[HEAD] == pytest.approx(0.75)
    assert status.state[HEAD] == DeviceState.OK


def test_a_status_does_not_change_afterwards() -> None:
    clock = Clock()
    loop = Loop(FakePipeline(clock), [], now=clock)
    loop.run(frames(3))
    status = loop.status()
    before = (status.tracked_share.copy(), status.reach_error_mm.copy(), status.state.copy())

    loop.run(frames(50))

    for old, now in zip(before, (status.tracked_share, status.reach_error_mm, status.state), strict=True):
        np.testing.assert_array_equal(old, now)


def test_times_that_run_backwards_do_not_unplay_anything() -> None:
    clock = Clock()
    loop = Loop(FakePipeline(clock), [], now=clock)

    loop.run([*frames(11), *frames(3)])

    assert loop.status().played_s == pytest.approx(0.1)


def test_the_callback_comes_after_each_frame_is_sent_and_counted() -> None:
    clock = Clock()
    sink = Kept()
    loop = Loop(FakePipeline(clock), [sink], now=clock)
    seen: list[tuple[int, int]] = []

    loop.run(frames(4), lambda: seen.append((loop.status().frames, len(sink.got))))

    assert seen == [(1, 1), (2, 2), (3, 3), (4, 4)]


def test_a_sink_that_raises_in_spite_of_its_contract_is_not_hidden() -> None:
    """Sinks count network faults themselves; anything else they raise ends the session."""
    clock = Clock()
    loop = Loop(FakePipeline(clock), [Kept(VrikError("disk full"))], now=clock)

    with pytest.raises(VrikError, match="disk full"):
        loop.run(frames(3))

    assert loop.status().frames == 0


def test_status_can_be_asked_from_another_thread_all_the_time() -> None:
    """The live table is drawn by a thread of its own."""
    clock = Clock()
    pipeline = FakePipeline(clock, lambda i: 1e-4)
    loop = Loop(pipeline, [Kept()], now=clock)
    over = threading.Event()
    wrong: list[Any] = []
    asked = 0

    def ask() -> None:
        nonlocal asked
        while not over.is_set():
            try:
                status = loop.status()
            except Exception as problem:
                wrong.append(problem)
                return
            asked += 1
            if not (0.0 <= status.tracked_share[HEAD] <= 1.0 and np.isfinite(status.rate_hz)):
                wrong.append(status)

    asker = threading.Thread(target=ask)
    asker.start()
    loop.run(frames(3000))
    over.set()
    asker.join()

    assert not wrong
    assert asked > 10
    assert loop.status().frames == 3000
