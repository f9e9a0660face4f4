"""Plays recorded frames at the pace they were recorded, or at any other."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator

from vrik.errors import UsageError
from vrik.frames import TrackerFrame

MAX_GAP_S = 10.0
"""A longer pause in a recording is shortened to this, so that a replay does not look dead. [recorded s]"""

LEAST_SPEED = 1e-3
"""Anything slower, 0 apart, is a mistake: a frame would take ten seconds and more."""


class ReplayClock:
    """Says when each recorded frame is due.

    Every deadline is counted from the first frame, so errors of single sleeps do not add up. A frame that
    comes late is not dropped: the next ones follow at once until the replay has caught up. Gaps are kept, up
    to ``max_gap_s``. Times that stand still or run backwards cause no waiting.

    Args:
        speed: 1 as recorded, 2 twice as fast, 0 as fast as possible, which uses neither clock nor ``sleep``.
        now: Monotonic clock. [ns]
        sleep: Waits this long. [s]
        max_gap_s: Longest pause that is kept, in recorded time; ``math.inf`` keeps all. [s]

    Raises:
        UsageError: If ``speed`` is negative, not a finite number, or so small that nothing would move.
    """

    def __init__(
        self,
        speed: float = 1.0,
        now: Callable[[], int] = time.perf_counter_ns,
        sleep: Callable[[float], None] = time.sleep,
        *,
        max_gap_s: float = MAX_GAP_S,
    ) -> None:
        if not math.isfinite(speed) or (speed != 0.0 and speed < LEAST_SPEED):
            raise UsageError(
                f"speed {speed:g} does not work; use 1 as recorded, 2 twice as fast, 0 without waiting"
            )
        self.speed = speed
        self._now = now
        self._sleep = sleep
        self._max_gap_s = max_gap_s
        self._start_ns: int | None = None
        self._latest_ns = 0
        self._played_ns = 0
        self.cut_s = 0.0
        """How much of long gaps was left out so far, in recorded time. [s]"""

    def wait(self, host_time_ns: int) -> float:
        """Wait until a frame of this time is due.

        Args:
            host_time_ns: Time stamp of the frame. [ns]

        Returns:
            How late the frame is now: 0 or a little when all is well. Always 0 at speed 0. [s]
        """
        if self.speed == 0.0:
            return 0.0
        if self._start_ns is None:
            self._start_ns = self._now()
            self._latest_ns = host_time_ns
        step_ns = max(0, host_time_ns - self._latest_ns)
        if step_ns > self._max_gap_s * 1e9:
            kept_ns = int(self._max_gap_s * 1e9)
            self.cut_s += (step_ns - kept_ns) * 1e-9
            self._played_ns += kept_ns
        else:
            self._played_ns += step_ns
        self._latest_ns = max(self._latest_ns, host_time_ns)
        deadline_ns = self._start_ns + round(self._played_ns / self.speed)
        while (left_ns := deadline_ns - self._now()) > 0:
            self._sleep(left_ns * 1e-9)
        return -left_ns * 1e-9

    def pace(self, frames: Iterable[TrackerFrame]) -> Iterator[TrackerFrame]:
        """The same frames, each when it is due."""
        for frame in frames:
            self.wait(frame.host_time_ns)
            yield frame
