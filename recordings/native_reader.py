"""Reading the tracker frames of vrik's own recordings in blocks, whole or damaged."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from recordings import schema
from recordings.base import RecordingInfo, reading
from recordings.mcap_walk import Message, Walk
from recordings.native_contents import Event, counts_of, native_batches, notes_of, scan
from vrik import quat
from vrik.arrays import Points
from vrik.frames import TrackerSequence, TrackingResult

BLOCK_FRAMES = 4096
_LATEST_NS = 2**63 - 1
_STRIDE = schema.TRACKER_DTYPE.itemsize


class NativeRecording:
    """An open ``vrik/1`` recording.

    Opening reads the file once, keeping no frames, to learn all its devices; :meth:`blocks` reads it again.

    Args:
        path: The file.

    Raises:
        UnknownFormatError: If it is an MCAP file of someone else.
        UnsupportedVersionError: If a newer vrik wrote it.
        DamagedRecordingError: If it ends before its first frame.
        RecordingError: If it cannot be read.
    """

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        size = self._path.stat().st_size
        walk, self._contents = scan(self._path, lambda done: reading(done, size))
        self._part = walk.part
        self._devices, self._columns = self._contents.device_columns()
        self._info = RecordingInfo(
            self._path,
            schema.PROFILE,
            self._devices,
            stature_m=self._contents.stature_m,
            calibration=self._calibration(),
            skeleton_tpose=self._contents.skeleton_tpose,
            counts=counts_of(walk, self._contents),
            notes=notes_of(walk, self._contents),
        )

    @property
    def info(self) -> RecordingInfo:
        """What the file says about itself."""
        return self._info

    @property
    def profile(self) -> dict[str, Any] | None:
        """The last calibration profile in the file."""
        return self._contents.profile

    @property
    def settings(self) -> dict[str, Any] | None:
        """The settings that were in use, when the file says."""
        return self._contents.settings

    @property
    def events(self) -> tuple[Event, ...]:
        """What happened, in the order of the file."""
        return tuple(self._contents.events)

    @property
    def frame_count(self) -> int:
        """How many frames can be read."""
        return self._contents.frames

    @property
    def pose_count(self) -> int:
        """How many solved frames the file holds; :func:`recordings.native.read_poses` reads them."""
        return self._contents.poses

    def blocks(self) -> Iterator[TrackerSequence]:
        """The frames in order, about 4096 at a time, all with ``info.devices``.

        A sample is valid only if the file says so and its pose is finite, with a quaternion of length one.
        A device that is not in a frame is UNINITIALIZED there. Times that run backwards stand still instead.
        """
        last_ns: int | None = None
        pending: list[Message] = []
        walk = Walk(part=self._part)
        for batch in native_batches(self._path, walk):
            trackers = [i for i, channel in walk.channels.items() if channel.topic == schema.TRACKERS]
            pending.extend([m for m in batch if m[0] in trackers and len(m[2]) % _STRIDE == 0])
            while len(pending) >= BLOCK_FRAMES:
                block = self._sequence(pending[:BLOCK_FRAMES], last_ns)
                last_ns = int(block.time_ns[-1])
                yield block
                del pending[:BLOCK_FRAMES]
        if pending:
            yield self._sequence(pending, last_ns)

    def _sequence(self, messages: list[Message], last_ns: int | None = None) -> TrackerSequence:
        """Messages of one frame each, as one sequence with all devices of the file."""
        n, k = len(messages), len(self._devices)
        records = np.frombuffer(b"".join([data for _, _, data in messages]), schema.TRACKER_DTYPE)
        row = np.repeat(np.arange(n), [len(data) // _STRIDE for _, _, data in messages])
        column = self._columns[records["device"]]
        if np.any(column < 0):
            known = column >= 0
            records, row, column = records[known], row[known], column[known]

        time_ns = np.array([min(log_time, _LATEST_NS) for _, log_time, _ in messages], np.int64)
        time_ns[row] = records["host_time_ns"]
        if last_ns is not None:
            time_ns[0] = max(int(time_ns[0]), last_ns)
        time_ns = np.maximum.accumulate(time_ns)

        position = np.full((n, k, 3), np.nan)
        rotation = quat.identity(n, k)
        claimed = np.zeros((n, k), np.bool_)
        result = np.full((n, k), int(TrackingResult.UNINITIALIZED), np.int64)
        position[row, column] = records["position"]
        rotation[row, column] = records["rotation"]
        claimed[row, column] = records["valid"] != 0
        result[row, column] = records["result"]

        velocities: list[Points | None] = []
        for name, bit in (("linear_velocity", schema.HAS_LINEAR), ("angular_velocity", schema.HAS_ANGULAR)):
            values = None
            if self._contents.velocities & bit:
                measured = (records["velocities"] & bit) != 0
                values = np.full((n, k, 3), np.nan)
                values[row[measured], column[measured]] = records[name][measured]
            velocities.append(values)
        return TrackerSequence(
            time_ns,
            self._devices,
            position,
            rotation,
            claimed & quat.is_rotation(rotation) & np.isfinite(position).all(axis=-1),
            result,
            velocities[0],
            velocities[1],
            self._contents.player_id,
            self._contents.space_id,
        )

    def _calibration(self) -> TrackerSequence | None:
        """The T-pose frames, with only the devices that are in them."""
        if not self._contents.calibration:
            return None
        frames = self._sequence(self._contents.calibration)
        joined = b"".join([data for _, _, data in self._contents.calibration])
        records = np.frombuffer(joined, schema.TRACKER_DTYPE)
        columns = np.unique(self._columns[records["device"]])
        used = columns[columns >= 0]
        linear, angular = frames.linear_velocity, frames.angular_velocity
        return TrackerSequence(
            frames.time_ns,
            tuple(self._devices[i] for i in used),
            frames.position[:, used],
            frames.rotation[:, used],
            frames.valid[:, used],
            frames.result[:, used],
            None if linear is None else linear[:, used],
            None if angular is None else angular[:, used],
            frames.player_id,
            frames.space_id,
        )
