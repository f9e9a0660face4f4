"""One self-contained HTML page of the moving body: opens offline, plays and scrubs, needs nothing else.

    sink = PageSink("body.html", calibration.body, roles=calibration.roles)
    sink.send(pose, frame)      # once a frame; most frames are only counted
    sink.close()                # writes the file

What is in the page is in ``page_render.py``, what it looks like in ``page.html``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vrik import quat
from vrik.arrays import Bools, Floats, Ints, Points
from vrik.body import BodyModel
from vrik.errors import VrikError
from vrik.files import write_whole
from vrik.frames import ROLES, PoseFrame, PoseSequence, TrackedDevice, TrackerFrame, TrackerSequence
from vrik.sinks import SinkStats
from vrik.sinks.page_render import PageSummary, render_page
from vrik.skeleton import BONES

__all__ = ["PageSink", "PageSummary", "render_page"]

RATE_HZ = 30.0
"""At most so many frames a second are kept."""

MAX_FRAMES = 6000
"""When so many frames are kept, every second one is let go and the step is doubled."""


class PageSink:
    """Collects what it is sent and writes the page when it is closed.

    Memory stays bounded: long sessions are kept in larger steps.

    Args:
        path: HTML file to make; it appears complete or not at all.
        body: Whose body it is.
        title: Heading of the page; the file's name if empty.
        roles: Serial number to role, from the calibration.
        rate_hz: At most so many frames a second are kept. [Hz]
        max_frames: At most so many are kept at all.
    """

    def __init__(
        self,
        path: str | Path,
        body: BodyModel,
        *,
        title: str = "",
        roles: Mapping[str, str] | None = None,
        rate_hz: float = RATE_HZ,
        max_frames: int = MAX_FRAMES,
    ) -> None:
        self.path = Path(path)
        self._body = body
        self._title = title or self.path.stem
        self._roles = dict(roles or {})
        self._step_ns = int(1e9 / rate_hz)
        self._max_frames = max(2, max_frames)
        self._kept: list[_Kept] = []
        self._devices: dict[str, TrackedDevice] = {}
        self._last_devices: tuple[TrackedDevice, ...] | None = None
        self._columns: Ints = np.zeros(0, np.int64)
        self._lost: Bools = np.zeros(0, bool)
        self._due_ns: int | None = None
        self._times_ns: tuple[int, int] | None = None
        self._frames = 0
        self._held = 0
        self._bytes = 0
        self._error = ""
        self._closed = False
        self._tracked: Ints = np.zeros(0, np.int64)
        self._reach = _ReachTally()

    def send(self, pose: PoseFrame, frame: TrackerFrame) -> None:
        """Take one frame; most are only counted."""
        if frame.devices is not self._last_devices:
            self._learn(frame.devices)
        now_ns = pose.host_time_ns
        self._times_ns = (self._times_ns[0] if self._times_ns else now_ns, now_ns)
        self._frames += 1
        self._tracked[self._columns] += frame.valid
        self._lost[self._columns] |= ~frame.valid
        self._reach.add(pose.reach_error_m)
        if self._due_ns is not None and now_ns < self._due_ns:
            return
        if not (np.isfinite(pose.position).all() and np.isfinite(pose.rotation).all()):
            self._held += 1
            return
        self._due_ns = now_ns + self._step_ns - self._step_ns // 8  # a little early: frames come unevenly
        self._kept.append(self._keep(pose, frame))
        self._lost[:] = False
        if len(self._kept) >= self._max_frames:
            self._kept = _every_second(self._kept)
            self._step_ns *= 2

    def close(self) -> None:
        """Write the page; closing twice is harmless.

        Raises:
            VrikError: If the file cannot be written.
        """
        if self._closed:
            return
        self._closed = True
        poses, tracker = self._sequences()
        start_ns, end_ns = self._times_ns or (0, 0)
        summary = PageSummary(
            self._frames,
            (end_ns - start_ns) * 1e-9,
            self._tracked / max(self._frames, 1),
            *self._reach.mean_and_max(),
        )
        page = render_page(poses, tracker, title=self._title, roles=self._roles, summary=summary).encode()
        try:
            write_whole(self.path, lambda part: _write(part, page))
        except OSError as error:
            self._error = f"cannot write {self.path}: {error.strerror or error}"
            raise VrikError(f"{self._error}; choose another place for the page") from error
        self._bytes = len(page)

    def stats(self) -> SinkStats:
        """What happened so far; ``dropped`` are frames between the ones that are kept."""
        return SinkStats(
            url=f"page:{self.path}",
            address=str(self.path),
            frames=len(self._kept),
            dropped=self._frames - len(self._kept) - self._held,
            bytes=self._bytes,
            last_error=self._error,
            held=self._held,
        )

    def _learn(self, devices: tuple[TrackedDevice, ...]) -> None:
        """Give devices that are new a column of their own."""
        for device in devices:
            self._devices[device.serial] = device
        order = {serial: i for i, serial in enumerate(self._devices)}
        self._columns = np.array([order[device.serial] for device in devices], np.int64)
        more = len(order) - len(self._tracked)
        self._tracked = np.concatenate([self._tracked, np.zeros(more, np.int64)])
        self._lost = np.concatenate([self._lost, np.zeros(more, bool)])
        self._last_devices = devices

    def _keep(self, pose: PoseFrame, frame: TrackerFrame) -> _Kept:
        position = np.full((len(self._devices), 3), np.nan, np.float32)
        position[self._columns] = frame.position
        tracked = np.zeros(len(self._devices), bool)
        tracked[self._columns] = frame.valid
        return _Kept(
            pose.host_time_ns,
            pose.position.copy(),
            pose.rotation.astype(np.float32),
            pose.reach_error_m.astype(np.float32),
            pose.state.astype(np.int8),
            position,
            tracked & ~self._lost,
        )

    def _sequences(self) -> tuple[PoseSequence, TrackerSequence]:
        """All that is kept as arrays; devices that came later are unknown before."""
        n, k = len(self._kept), len(self._devices)
        time_ns = np.array([row.time_ns for row in self._kept], np.int64)
        position, valid = np.full((n, k, 3), np.nan), np.zeros((n, k), bool)
        for i, row in enumerate(self._kept):
            position[i, : len(row.tracked)] = row.devices
            valid[i, : len(row.tracked)] = row.tracked
        poses = PoseSequence(
            time_ns,
            np.array([row.position for row in self._kept]).reshape(n, len(BONES), 3),
            np.array([row.rotation for row in self._kept], np.float64).reshape(n, len(BONES), 4),
            self._body,
            np.array([row.reach for row in self._kept], np.float64).reshape(n, len(ROLES)),
            np.array([row.state for row in self._kept], np.int64).reshape(n, len(ROLES)),
        )
        devices = tuple(self._devices.values())
        return poses, TrackerSequence.build(time_ns, devices, position, quat.identity(n, k), valid)


@dataclass(frozen=True, slots=True, eq=False)
class _Kept:
    """One frame, small."""

    time_ns: int
    position: Points
    rotation: NDArray[np.float32]
    reach: NDArray[np.float32]
    state: NDArray[np.int8]
    devices: NDArray[np.float32]
    tracked: Bools


class _ReachTally:
    """Mean and maximum of each role's reach error over all frames."""

    def __init__(self) -> None:
        self._sum, self._max = np.zeros(len(ROLES)), np.zeros(len(ROLES))
        self._count = np.zeros(len(ROLES), np.int64)

    def add(self, error_m: Floats) -> None:
        """One frame; NaN does not count."""
        known = np.isfinite(error_m)
        error = np.where(known, error_m, 0.0)
        self._count += known
        self._sum += error
        np.maximum(self._max, error, out=self._max)

    def mean_and_max(self) -> tuple[Floats, Floats]:
        """(13,) each; NaN for roles that never had a device. [m]"""
        seen = self._count > 0
        return (
            np.where(seen, self._sum / np.maximum(self._count, 1), np.nan),
            np.where(seen, self._max, np.nan),
        )


def _write(path: Path, page: bytes) -> None:
    path.write_bytes(page)


def _every_second(kept: list[_Kept]) -> list[_Kept]:
    """Half the frames; a device counts as lost if it was in either of two."""
    thinned = []
    for i in range(0, len(kept), 2):
        row = kept[i]
        if i > 0:
            before = kept[i - 1].tracked
            tracked = row.tracked.copy()
            tracked[: len(before)] &= before
            row = replace(row, tracked=tracked)
        thinned.append(row)
    return thinned
