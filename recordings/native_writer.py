"""Writing vrik's own recordings, so that little is lost when the program is killed."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from mcap.well_known import MessageEncoding, SchemaEncoding
from mcap.writer import CompressionType, Writer

from recordings import schema
from vrik.arrays import Points
from vrik.body import BodyModel
from vrik.errors import RecordingError
from vrik.frames import DEFAULT_PLAYER, DEFAULT_SPACE, PoseFrame, TrackedDevice, TrackerFrame, TrackerSequence

CHUNK_BYTES = 64 * 1024
FLUSH_S = 1.0
"""A killed program loses at most this and one frame: then the chunk is closed and handed to the OS. [s]"""

REPEAT_DEVICES = 600
"""Every so many frames the device list is written again, so that later chunks can stand alone."""


class RecordingWriter:
    """Writes a ``vrik/1`` recording frame by frame.

    Args:
        path: File to make; an existing one is replaced.
        devices: Devices known at the start. Others may appear at any frame.
        player_id: Whose devices.
        space_id: Which tracking space.
        profile: The calibration profile in use, kept in its channel and as attachment ``profile.json``.
        settings: The settings in use, kept as attachment ``settings.json``.
        body: Whose body :meth:`write_pose` writes; needed for that only.
        now_ns: Clock for the flushing, not for the time stamps. [ns]

    Raises:
        RecordingError: If the file cannot be made.
    """

    def __init__(
        self,
        path: str | Path,
        devices: Sequence[TrackedDevice] = (),
        *,
        player_id: str = DEFAULT_PLAYER,
        space_id: str = DEFAULT_SPACE,
        profile: Mapping[str, Any] | None = None,
        settings: Mapping[str, Any] | None = None,
        body: BodyModel | None = None,
        now_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self.path = Path(path)
        self._ids = (player_id, space_id)
        self._body = body
        self._now_ns = now_ns
        self._known: dict[str, tuple[int, TrackedDevice]] = {}
        self._channels: dict[str, int] = {}
        self._schemas: dict[str, int] = {}
        self._sequences: dict[str, int] = {}
        self._last_devices: tuple[TrackedDevice, ...] | None = None
        self._buffer = np.zeros(0, schema.TRACKER_DTYPE)
        self._frames = 0
        self._time_ns = 0
        self._closed = False
        try:
            self._stream = self.path.open("wb")
        except OSError as error:
            raise RecordingError(f"cannot write {self.path}: {error.strerror or error}") from error
        self._writer = Writer(self._stream, chunk_size=CHUNK_BYTES, compression=CompressionType.ZSTD)
        try:
            self._start(devices, profile, settings)
        except OSError as error:
            raise self._failed(error) from error
        self._flushed_ns = now_ns()

    def _start(
        self,
        devices: Sequence[TrackedDevice],
        profile: Mapping[str, Any] | None,
        settings: Mapping[str, Any] | None,
    ) -> None:
        software = f"vrik {metadata.version('vrik')}"
        self._writer.start(schema.PROFILE, software)
        self._writer.add_metadata(
            schema.METADATA_NAME,
            {
                "format": schema.PROFILE,
                "format_version": str(schema.FORMAT_VERSION),
                "axes": schema.AXES,
                "units": schema.UNITS,
                "quaternions": schema.QUATERNIONS,
                "software": software,
            },
        )
        for name, document in (("profile.json", profile), ("settings.json", settings)):
            if document is not None:
                text = json.dumps(document, ensure_ascii=False, indent=1)
                self._writer.add_attachment(0, 0, name, "application/json", text.encode())
        self._channel(schema.TRACKERS)
        self._learn(tuple(devices))
        if not devices:
            self._write_devices()
        if profile is not None:
            self.write_profile(profile)
        self._writer.flush()

    def write(self, frame: TrackerFrame) -> None:
        """Add one tracker frame.

        Raises:
            ValueError: If it belongs to another player or space, or two devices share a serial number.
        """
        if (frame.player_id, frame.space_id) != self._ids:
            raise ValueError(
                f"this recording is of {self._ids}, the frame of {(frame.player_id, frame.space_id)}"
            )
        self._add_frame(schema.TRACKERS, frame)
        self._frames += 1
        if self._frames % REPEAT_DEVICES == 0:
            self._write_devices()
        self._flush_when_due()

    def write_calibration(self, frames: TrackerSequence) -> None:
        """Add frames of the person standing in a T-pose; they are kept apart from the session."""
        for frame in frames:
            self._add_frame(schema.CALIBRATION, frame)
        self._flush_when_due()

    def write_person(self, stature_m: float | None = None, skeleton_tpose: Points | None = None) -> None:
        """Say what is known about the person: stature [m], (22, 3) T-pose joints in order of ``BONES``."""
        joints = None if skeleton_tpose is None else np.asarray(skeleton_tpose, np.float64).tolist()
        self._add_json(schema.PERSON, {"stature_m": stature_m, "skeleton_tpose": joints})

    def write_profile(self, profile: Mapping[str, Any]) -> None:
        """Add the calibration profile that is in use from here on."""
        self._add_json(schema.PROFILE_TOPIC, profile)

    def write_pose(self, pose: PoseFrame) -> None:
        """Add one solved frame.

        Raises:
            ValueError: If the writer was made without ``body``.
        """
        if self._body is None:
            raise ValueError("solved frames need RecordingWriter(..., body=...): their bone lengths")
        row = np.zeros(1, schema.POSE_DTYPE)
        row["host_time_ns"] = pose.host_time_ns
        for name in ("position", "rotation", "local_rotation", "reach_error_m", "age_s", "state"):
            row[name] = getattr(pose, name)
        self._add(schema.SKELETON, pose.host_time_ns, row.tobytes())
        self._flush_when_due()

    def copy(self, topic: str, time_ns: int, data: bytes) -> None:
        """Add a message of another recording as it is; its device indices must be those of this one.

        Args:
            topic: Name of its channel, one of ``schema``'s.
            time_ns: Its time. [ns]
            data: Its bytes.

        Raises:
            ValueError: If it is a solved frame and the writer was made without ``body``.
        """
        if topic == schema.SKELETON and self._body is None:
            raise ValueError("solved frames need RecordingWriter(..., body=...): their bone lengths")
        self._add(topic, time_ns, data)
        if topic == schema.TRACKERS:
            self._frames += 1
            self._time_ns = time_ns
            if self._frames % REPEAT_DEVICES == 0:
                self._write_devices()
        self._flush_when_due()

    def event(self, name: str, /, *, host_time_ns: int | None = None, **data: Any) -> None:
        """Note that something happened, by default at the time of the last frame. ``data`` must fit JSON."""
        when_ns = self._time_ns if host_time_ns is None else host_time_ns
        self._add_json(schema.EVENTS, {"name": name, "host_time_ns": when_ns, "data": data}, when_ns)

    def close(self) -> None:
        """Write the index and close the file. Closing twice does nothing."""
        if not self._closed:
            self._closed = True
            try:
                self._writer.finish()
                self._stream.close()
            except OSError as error:
                raise self._failed(error) from error

    def __enter__(self) -> RecordingWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _add_frame(self, topic: str, frame: TrackerFrame) -> None:
        if frame.devices is not self._last_devices:
            if frame.devices != self._last_devices:
                self._learn(frame.devices)
            self._last_devices = frame.devices
        rows = self._buffer
        rows["host_time_ns"] = frame.host_time_ns
        rows["valid"] = frame.valid
        rows["result"] = frame.result
        rows["position"] = frame.position
        rows["rotation"] = frame.rotation
        linear, angular = frame.linear_velocity, frame.angular_velocity
        has_linear, has_angular = linear is not None, angular is not None
        rows["velocities"] = has_linear * schema.HAS_LINEAR + has_angular * schema.HAS_ANGULAR
        rows["linear_velocity"] = 0.0 if linear is None else linear
        rows["angular_velocity"] = 0.0 if angular is None else angular
        self._time_ns = frame.host_time_ns
        self._add(topic, frame.host_time_ns, rows.tobytes())

    def _learn(self, devices: tuple[TrackedDevice, ...]) -> None:
        """Give new devices an index, note what changed, and set up the rows of the frames to come."""
        if len({device.serial for device in devices}) != len(devices):
            raise ValueError("two devices of one frame have the same serial number")
        changed = False
        for device in devices:
            index, known = self._known.get(device.serial, (len(self._known), None))
            if device != known:
                self._known[device.serial] = (index, device)
                changed = True
        if changed:
            self._write_devices()
        self._buffer = np.zeros(len(devices), schema.TRACKER_DTYPE)
        self._buffer["device"] = [self._known[device.serial][0] for device in devices]

    def _write_devices(self) -> None:
        entries = [
            {
                "index": index,
                "serial": device.serial,
                "class": device.device_class.name,
                "role": device.role,
                "model": device.model,
            }
            for index, device in self._known.values()
        ]
        self._add_json(schema.DEVICES, {"devices": entries})

    def _add_json(self, topic: str, document: Mapping[str, Any], time_ns: int | None = None) -> None:
        text = json.dumps(document, ensure_ascii=False)
        self._add(topic, self._time_ns if time_ns is None else time_ns, text.encode())

    def _add(self, topic: str, time_ns: int, data: bytes) -> None:
        if self._closed:
            raise RecordingError(f"{self.path} is closed; nothing can be added to it")
        stamp = max(time_ns, 0)  # MCAP knows no time before zero; the exact one is in the record
        try:
            self._sequences[topic] = self._sequences.get(topic, 0) + 1
            self._writer.add_message(self._channel(topic), stamp, data, stamp, self._sequences[topic])
        except OSError as error:
            raise self._failed(error) from error

    def _channel(self, topic: str) -> int:
        """The channel's number; it is declared when it is first used."""
        if topic not in self._channels:
            about = {"player_id": self._ids[0], "space_id": self._ids[1]}
            if topic in schema.JSON_SCHEMAS:
                name, text = schema.json_schema(topic)
                encoding, message = SchemaEncoding.JSONSchema, MessageEncoding.JSON
            else:
                encoding, message = "vrik-numpy", "vrik-struct"
                name, text = "vrik.TrackerFrame", schema.TRACKER_SCHEMA
            if topic == schema.SKELETON and self._body is not None:
                name, text = "vrik.PoseFrame", schema.POSE_SCHEMA
                about["stature_m"] = repr(self._body.stature_m)
                about["tpose"] = json.dumps(self._body.tpose.tolist())
            if name not in self._schemas:
                self._schemas[name] = self._writer.register_schema(name, encoding, text)
            self._channels[topic] = self._writer.register_channel(topic, message, self._schemas[name], about)
        return self._channels[topic]

    def _flush_when_due(self) -> None:
        now_ns = self._now_ns()
        if now_ns - self._flushed_ns >= FLUSH_S * 1e9:
            self._flushed_ns = now_ns
            try:
                self._writer.flush()
            except OSError as error:
                raise self._failed(error) from error

    def _failed(self, error: OSError) -> RecordingError:
        """Let go of a file that cannot be written any more; what is on the disk stays readable."""
        self._closed = True
        with suppress(OSError):
            self._stream.close()
        return RecordingError(f"cannot write {self.path} any further: {error.strerror or error}")
