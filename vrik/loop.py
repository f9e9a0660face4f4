"""Frame after frame from a source through the pipeline to the sinks, and a tally of how it goes.

Sinks count their own faults, so nothing here waits for a network or ends because of one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from recordings import ReplayClock
from vrik.arrays import Floats, Ints
from vrik.frames import ROLES, PoseFrame, TrackedDevice, TrackerFrame, is_tracked
from vrik.pipeline import Pipeline
from vrik.sinks import Sink, SinkStats

RECENT = 1024
"""Percentiles are taken over at most this many of the latest frames."""

MAX_PLAIN_LATE_S = 0.1
"""While kernels run as plain Python, a frame later than this is left out: the stream stays in time. [s]"""


@dataclass(frozen=True, slots=True, eq=False)
class Status:
    """How a session is going.

    Args:
        frames: Frames solved so far.
        played_s: Recorded time that has passed. [s]
        elapsed_s: Real time that has passed since the first frame was asked for. [s]
        rate_hz: Frames a second of real time, over the latest frames. [Hz]
        solve_ms: (3,) median, 99 % and largest time of one pipeline step, over the latest frames. [ms]
        late_ms: (3,) the same of how late frames were; zeros when nothing is paced. [ms]
        devices: The devices of the latest frame.
        state: (13,) ``DeviceState`` of each role in the latest frame.
        tracked_share: (13,) share of frames in which the role was tracked.
        reach_error_mm: (13, 3) distance of each role's bone from its device: latest, mean and largest; NaN
            when it was never tracked. [mm]
        sinks: What each sink says.
        skipped: Frames left out while kernels ran as plain Python, so that the stream stayed in time.
        plain: Whether kernels still run as plain Python, because they are being compiled.
    """

    frames: int
    played_s: float
    elapsed_s: float
    rate_hz: float
    solve_ms: Floats
    late_ms: Floats
    devices: tuple[TrackedDevice, ...]
    state: Ints
    tracked_share: Floats
    reach_error_mm: Floats
    sinks: tuple[SinkStats, ...]
    skipped: int = 0
    plain: bool = False


class Loop:
    """Runs a session.

    Args:
        pipeline: Solves.
        sinks: Are sent every frame.
        clock: Says when a frame is due; without one frames are solved as they come.
        now: Monotonic clock for the tally. [s]
    """

    def __init__(
        self,
        pipeline: Pipeline,
        sinks: Sequence[Sink],
        clock: ReplayClock | None = None,
        now: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._pipeline = pipeline
        self._sinks = tuple(sinks)
        self._clock = clock
        self._now = now
        n = len(ROLES)
        self._frames = 0
        self._skipped = 0
        self._begun: float | None = None
        self._times_ns = (0, 0)
        self._solve_s, self._late_s, self._at_s = np.zeros(RECENT), np.zeros(RECENT), np.zeros(RECENT)
        self._devices: tuple[TrackedDevice, ...] = ()
        self._state = np.zeros(n, np.int64)
        self._tracked = np.zeros(n, np.int64)
        self._error, self._error_sum, self._error_max = np.full(n, np.nan), np.zeros(n), np.zeros(n)
        self._error_count = np.zeros(n, np.int64)
        self.plain = False
        """Shown in the status; set by whoever compiles."""

    def run(self, frames: Iterable[TrackerFrame], every_frame: Callable[[], None] | None = None) -> None:
        """Play all frames.

        Args:
            frames: Oldest first.
            every_frame: Called after each frame, for a status line and the like; must be quick.
        """
        self._begun = self._now() if self._begun is None else self._begun
        for frame in frames:
            late_s = 0.0 if self._clock is None else self._clock.wait(frame.host_time_ns)
            if self.plain and late_s > MAX_PLAIN_LATE_S:
                self._skipped += 1
                if every_frame is not None:
                    every_frame()
                continue
            begun = self._now()
            pose = self._pipeline.step(frame)
            self._solve_s[self._frames % RECENT] = self._now() - begun
            self._late_s[self._frames % RECENT] = late_s
            for sink in self._sinks:
                sink.send(pose, self._pipeline.tracked or frame)
            self._count(pose, frame)
            if every_frame is not None:
                every_frame()

    def status(self) -> Status:
        """How it is going right now; may be asked from another thread while the session runs."""
        tracked, frames = self._tracked.copy(), self._frames  # in this order: a share is never above 1
        recent = min(frames, RECENT)
        span = np.ptp(self._at_s[:recent]) if recent > 1 else 0.0
        mean = np.where(self._error_count > 0, self._error_sum / np.maximum(self._error_count, 1), np.nan)
        worst = np.where(self._error_count > 0, self._error_max, np.nan)
        return Status(
            frames,
            (self._times_ns[1] - self._times_ns[0]) * 1e-9,
            0.0 if self._begun is None else self._now() - self._begun,
            float((recent - 1) / span) if span > 0.0 else 0.0,
            _spread(self._solve_s[:recent]),
            _spread(self._late_s[:recent]),
            self._devices,
            self._state.copy(),
            tracked / max(frames, 1),
            np.stack([self._error, mean, worst], axis=-1) * 1000.0,
            tuple(sink.stats() for sink in self._sinks),
            self._skipped,
            self.plain,
        )

    def _count(self, pose: PoseFrame, frame: TrackerFrame) -> None:
        if self._frames == 0:
            self._times_ns = (frame.host_time_ns, frame.host_time_ns)
        self._times_ns = (self._times_ns[0], max(frame.host_time_ns, self._times_ns[1]))
        self._at_s[self._frames % RECENT] = self._now()
        self._frames += 1
        self._devices, self._state = frame.devices, pose.state
        self._tracked += is_tracked(pose.state)
        self._error = pose.reach_error_m
        seen = np.isfinite(self._error)
        self._error_sum[seen] += self._error[seen]
        self._error_count += seen
        self._error_max[seen] = np.maximum(self._error_max[seen], self._error[seen])


def _spread(values: Floats) -> Floats:
    """Median, 99 % and largest. [ms from s]"""
    if len(values) == 0:
        return np.zeros(3)
    return np.asarray(np.percentile(values, (50.0, 99.0, 100.0)) * 1000.0)
