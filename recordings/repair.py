"""Salvages a damaged recording of vrik's own: whatever can still be read becomes a new, complete file."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from recordings import schema
from recordings.importers import find_importer
from recordings.mcap_walk import Walk, walk_batches
from recordings.native_contents import Contents, body_of, lost_frames, scan, topic_of
from recordings.native_writer import RecordingWriter
from vrik.arrays import Ints
from vrik.body import BodyModel
from vrik.errors import DamagedRecordingError, RecordingError, UnknownFormatError, UsageError
from vrik.files import write_whole
from vrik.frames import TrackedDevice

_STRIDE = schema.TRACKER_DTYPE.itemsize


@dataclass(frozen=True, slots=True)
class RepairReport:
    """What could be saved.

    Args:
        source: The damaged file; it stays as it is.
        target: The file that was written.
        undamaged: Whether nothing was wrong with it.
        truncated: Whether it lacked its end record.
        frames: Tracker frames saved.
        frames_lost: Tracker frames known to be lost.
        lost_by: What told so: "statistics" (the closed file states how many it holds), "sequence numbers"
            (gaps in them), "index" (of the damaged chunks), or "bytes" (only ``bytes_lost`` can be told).
        end_unknown: Whether more may be lost after the last frame, of which nothing is known.
        bytes_lost: Bytes in damaged chunks and outside of any complete record.
        chunks_damaged: Chunks that could not be used.
        devices: Number of devices.
        solved_frames: Solved frames saved.
        solved_frames_lost: Solved frames known to be lost.
        tpose_frames: Frames of the T-pose saved.
        events: Events saved.
        messages_left_out: Messages in an unexpected form, or of channels that vrik does not know.
    """

    source: str
    target: str
    undamaged: bool
    truncated: bool
    frames: int
    frames_lost: int
    lost_by: str
    end_unknown: bool
    bytes_lost: int
    chunks_damaged: int
    devices: int
    solved_frames: int
    solved_frames_lost: int
    tpose_frames: int
    events: int
    messages_left_out: int

    def to_json(self) -> dict[str, Any]:
        """The same as plain values for ``json.dumps``."""
        return asdict(self)


def repair(
    source: str | Path, target: str | Path, on_progress: Callable[[int, int], None] | None = None
) -> RepairReport:
    """Write every undamaged message of a ``vrik/1`` recording into a new one.

    Frames are copied byte for byte, one chunk in memory at a time. A chunk whose checksum is wrong is not
    used: nobody can tell which of its frames are right. The target appears once it is complete.

    Args:
        source: A recording of vrik's own format, damaged or not.
        target: A path that ends in ``.mcap``.
        on_progress: Told now and then how many bytes of how many are done; the file is read twice.

    Raises:
        UsageError: If the target has another ending or is the source.
        RecordingError: If the source is of another format, nothing in it can be saved, or the target cannot
            be written.
    """
    source, target = Path(source), Path(target)
    if target.suffix.lower() != ".mcap":
        raise UsageError(f"cannot repair into {target}: a repaired recording ends in .mcap")
    importer = find_importer(source)
    if importer.name != "vrik":
        raise UnknownFormatError(
            f"{source} is no recording of vrik's own format but of kind {importer.name}; only vrik's can be "
            "repaired, whatever is whole in others is read by every command"
        )
    if target.exists() and target.samefile(source):
        raise UsageError(f"{target} is the recording itself; choose another name for the repaired one")
    size = source.stat().st_size

    def at(done: int) -> None:
        if on_progress is not None:
            on_progress(done, 2 * size)

    walk, contents = scan(source, at)
    if contents.frames + contents.poses == 0 and contents.unreadable:
        raise DamagedRecordingError(f"{source} holds no frame that can be saved")
    copy = _Copy(source, contents, _body(walk, source))
    try:
        write_whole(target, lambda part: copy.run(part, walk, lambda done: at(size + done)))
    except OSError as error:
        raise RecordingError(f"cannot write {target}: {error.strerror or error}") from error
    lost, lost_by = _lost(walk, contents.frames, schema.TRACKERS)
    poses_lost, _ = _lost(walk, copy.count[schema.SKELETON], schema.SKELETON)
    bytes_lost = walk.lost_bytes + walk.damaged_bytes
    return RepairReport(
        source=str(source),
        target=str(target),
        undamaged=not (walk.truncated or bytes_lost or lost or poses_lost or contents.unreadable),
        truncated=walk.truncated,
        frames=copy.count[schema.TRACKERS],
        frames_lost=lost,
        lost_by=lost_by,
        end_unknown=not walk.data_ended,
        bytes_lost=bytes_lost,
        chunks_damaged=walk.damaged_chunks,
        devices=len(copy.devices),
        solved_frames=copy.count[schema.SKELETON],
        solved_frames_lost=poses_lost,
        tpose_frames=copy.count[schema.CALIBRATION],
        events=copy.count[schema.EVENTS],
        messages_left_out=copy.left_out,
    )


def _lost(walk: Walk, saved: int, topic: str) -> tuple[int, str]:
    """How many messages of a channel are known to be lost, and from what."""
    ids = [number for number, channel in walk.channels.items() if channel.topic == topic]
    if walk.stated_messages is not None:
        stated = sum(walk.stated_messages.get(number, 0) for number in ids)
        return max(0, stated - saved), "statistics"
    numbered = sum(walk.last_sequence.get(number, 0) for number in ids)
    indexed = lost_frames(walk, topic)
    if numbered >= saved > 0:
        return max(numbered - saved, indexed), "sequence numbers"
    if indexed or not walk.lost_bytes:
        return indexed, "index"
    return 0, "bytes"


def _body(walk: Walk, path: Path) -> BodyModel | None:
    """Whose solved frames these are; None when there are none, or nobody can tell."""
    for channel in walk.channels.values():
        if channel.topic == schema.SKELETON:
            try:
                return body_of(channel.metadata, path)
            except DamagedRecordingError:
                return None
    return None


class _Copy:
    """The second pass: messages from the damaged file into the new one."""

    def __init__(self, source: Path, contents: Contents, body: BodyModel | None) -> None:
        devices, self._columns = contents.device_columns()
        self.devices = _with_names_of_their_own(devices)
        self._source = source
        self._contents = contents
        self._body = body
        self._same_columns = bool(np.all(np.diff(np.flatnonzero(self._columns >= 0), prepend=-1) == 1))
        self.count = dict.fromkeys((schema.TRACKERS, schema.CALIBRATION, schema.SKELETON, schema.EVENTS), 0)
        self.left_out = 0

    def run(self, part: Path, found: Walk, at: Callable[[int], None]) -> None:
        """Write everything to ``part``."""
        contents = self._contents
        profile, settings = (_document(found.attachments.get(n)) for n in ("profile.json", "settings.json"))
        walk = Walk()
        with RecordingWriter(
            part,
            self.devices,
            player_id=contents.player_id,
            space_id=contents.space_id,
            profile=profile,
            settings=settings,
            body=self._body,
        ) as writer:
            for batch in walk_batches(self._source, walk):
                for channel_id, log_time, data in batch:
                    topic = topic_of(channel_id, walk)
                    kept = self._kept(topic, data)
                    if kept is None:
                        self.left_out += topic != schema.DEVICES
                    elif topic != schema.PROFILE_TOPIC or _document(kept) != profile:
                        writer.copy(topic, log_time, kept)
                        if topic in self.count:
                            self.count[topic] += 1
                at(walk.at)

    def _kept(self, topic: str, data: bytes) -> bytes | None:
        """The message as it goes into the new file; None when it does not. Device lists are made anew."""
        if topic in (schema.TRACKERS, schema.CALIBRATION):
            if len(data) % _STRIDE:
                return None
            return data if self._same_columns else _with_columns(data, self._columns)
        if topic == schema.SKELETON:
            return data if self._body is not None and len(data) == schema.POSE_DTYPE.itemsize else None
        if topic in schema.JSON_SCHEMAS and topic != schema.DEVICES:
            return data if _document(data) is not None else None
        return None


def _with_columns(data: bytes, columns: Ints) -> bytes:
    """A frame with its device indices changed; rows of devices that are not believed are left out."""
    records = np.frombuffer(data, schema.TRACKER_DTYPE).copy()
    column = columns[records["device"]]
    records["device"] = np.maximum(column, 0)
    return bytes(records[column >= 0].tobytes())


def _with_names_of_their_own(devices: tuple[TrackedDevice, ...]) -> tuple[TrackedDevice, ...]:
    """The same devices; one whose serial number another has too gets a number behind it."""
    taken: set[str] = set()
    named = []
    for device in devices:
        serial, number = device.serial, 2
        while serial in taken:
            serial, number = f"{device.serial} {number}", number + 1
        taken.add(serial)
        named.append(device if serial == device.serial else replace(device, serial=serial))
    return tuple(named)


def _document(data: bytes | None) -> dict[str, Any] | None:
    """A JSON object; None when it is none."""
    try:
        document = None if data is None else json.loads(data)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None
