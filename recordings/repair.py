"""Salvages a damaged recording of vrik's own: whatever can still be read becomes a new, complete file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from recordings import schema
from recordings.importers import find_importer
from recordings.mcap_parts import Part, parts_of
from recordings.mcap_walk import Walk
from recordings.native_contents import (
    Contents,
    body_of,
    document_of,
    lost_frames,
    native_batches,
    scan,
    topic_of,
)
from recordings.native_writer import RecordingWriter
from vrik.arrays import Ints
from vrik.body import BodyModel
from vrik.errors import DamagedRecordingError, RecordingError, UnknownFormatError, UsageError
from vrik.files import write_whole
from vrik.frames import TrackedDevice

COUNTED = (schema.TRACKERS, schema.CALIBRATION, schema.SKELETON, schema.EVENTS)
"""Channels whose messages are counted."""

ATTACHMENTS = ("profile.json", "settings.json")
"""What vrik attaches to a recording."""

_STRIDE = schema.TRACKER_DTYPE.itemsize


@dataclass(frozen=True, slots=True)
class RepairReport:
    """What could be saved.

    Args:
        source: The damaged file; it stays as it is.
        target: The file that was written.
        undamaged: Whether nothing was wrong with it.
        truncated: Whether it lacked its end record.
        start_damaged: Whether its first bytes were not those of an MCAP file.
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
        attachments_left_out: Names of attachments that vrik does not know.
        goes_on: Whether messages stood behind an end record, so that two recordings may have become one.
        recordings: How many recordings, one behind the other in the file, became this one.
        further: Recordings behind it that are not its continuation, each saved into a file of its own.
    """

    source: str
    target: str
    undamaged: bool
    truncated: bool
    start_damaged: bool
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
    attachments_left_out: tuple[str, ...] = ()
    goes_on: bool = False
    recordings: int = 1
    further: tuple[RepairReport, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The same as plain values for ``json.dumps``."""
        return asdict(self)


def repair(
    source: str | Path, target: str | Path, on_progress: Callable[[int, int], None] | None = None
) -> RepairReport:
    """Write every undamaged message of a ``vrik/1`` recording into a new one.

    Several recordings in one file, put one behind the other, become one again if the later ones go on in time
    with the same devices, player and person; else each gets a file of its own beside the target.

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

    found = _scan_all(source, at)
    groups = _that_fit(found, source)
    reports: list[RepairReport] = []
    for number, group in enumerate(groups):
        to = target if number == 0 else _beside(target)
        copy = _Copy(source, group)
        try:
            write_whole(to, partial(copy.run, at=lambda done: at(size + done)))
        except OSError as error:
            raise RecordingError(f"cannot write {to}: {error.strerror or error}") from error
        reports.append(_report(source, to, copy, group))
    alone = len(found) == 1
    return replace(reports[0], undamaged=reports[0].undamaged and alone, further=tuple(reports[1:]))


@dataclass(frozen=True, slots=True)
class Copied:
    """What :func:`copy_recording` did.

    Args:
        frames: Tracker frames written.
        left_out: Messages that were not.
        attachments_left_out: Names of attachments that were not.
    """

    frames: int
    left_out: int
    attachments_left_out: tuple[str, ...]


def copy_recording(source: Path, path: Path, on_frames: Callable[[int], None] | None = None) -> Copied:
    """Write the first recording of a file anew, as ``path`` and by that very name, with all that it holds.

    Args:
        source: A recording of vrik's own format.
        path: File to make.
        on_frames: Told now and then how many tracker frames are written.

    Raises:
        RecordingError: If the source cannot be read or the file not be written.
    """
    walk, contents = scan(source)
    copy = _Copy(source, [(walk, contents)])

    def at(_: int) -> None:
        if on_frames is not None:
            on_frames(copy.frames)

    copy.run(path, at)
    return Copied(copy.frames, copy.left_out, _foreign(walk))


def _foreign(walk: Walk) -> tuple[str, ...]:
    """Attachments that are not vrik's."""
    return (*(name for name in walk.attachments if name not in ATTACHMENTS), *walk.passed_over)


Found: TypeAlias = tuple[Walk, Contents]


def _scan_all(source: Path, at: Callable[[int], None]) -> list[Found]:
    """All recordings in the file that hold something, usually one.

    Raises:
        RecordingError: If there is none.
    """
    found: list[Found] = []
    failure: RecordingError | None = None
    part: Part | None = None
    behind: list[Part] = []
    first = True
    while first or behind:
        if not first:
            part = behind.pop(0)
        try:
            walk, contents = scan(source, at, part)
            if first:
                behind = list(walk.behind)
            if contents.frames + contents.poses == 0 and contents.unreadable:
                raise DamagedRecordingError(f"{source} holds no frame that can be saved")
            found.append((walk, contents))
        except RecordingError as error:
            failure = failure or error
            if first:
                behind = parts_of(source)[1:]
        first = False
    if not found:
        raise failure or DamagedRecordingError(f"{source} holds no frame that can be saved")
    return found


def _that_fit(found: list[Found], source: Path) -> list[list[Found]]:
    """Recordings that go on where the one before ended, of the same person and devices, belong together."""
    groups = [[found[0]]]
    for walk, contents in found[1:]:
        before = groups[-1][-1][1]
        whose = [_body(w, source) for w, _ in (*groups[-1], (walk, contents))]
        goes_on = (
            contents.player_id == before.player_id
            and contents.space_id == before.space_id
            and contents.device_columns()[0] == before.device_columns()[0]
            and contents.first_ns >= before.last_ns
            and contents.profile in (None, before.profile)
            and contents.settings in (None, before.settings)
            and not contents.calibration
            and contents.stature_m in (None, before.stature_m)
            and len({None if body is None else body.tpose.tobytes() for body in whose}) == 1
        )
        if goes_on:
            groups[-1].append((walk, contents))
        else:
            groups.append([(walk, contents)])
    return groups


def _beside(target: Path) -> Path:
    """A name for a further recording that no file has: OUT-2.mcap, OUT-3.mcap, ..."""
    number = 2
    while (path := target.with_stem(f"{target.stem}-{number}")).exists():
        number += 1
    return path


def _report(source: Path, target: Path, copy: _Copy, group: list[Found]) -> RepairReport:
    losses = [
        _lost(walk, count[schema.TRACKERS], schema.TRACKERS)
        for (walk, _), count in zip(group, copy.counts, strict=True)
    ]
    poses_lost = sum(
        _lost(walk, count[schema.SKELETON], schema.SKELETON)[0]
        for (walk, _), count in zip(group, copy.counts, strict=True)
    )
    walks = [walk for walk, _ in group]
    lost = sum(frames for frames, _ in losses)
    bytes_lost = sum(walk.lost_bytes + walk.damaged_bytes for walk in walks)
    truncated = any(walk.truncated for walk in walks)
    unreadable = any(contents.unreadable for _, contents in group)
    total = {topic: sum(count[topic] for count in copy.counts) for topic in COUNTED}
    return RepairReport(
        source=str(source),
        target=str(target),
        undamaged=not (truncated or bytes_lost or lost or poses_lost or unreadable),
        truncated=truncated,
        start_damaged=any(walk.start_damaged for walk in walks),
        frames=total[schema.TRACKERS],
        frames_lost=lost,
        lost_by=max(losses, key=lambda loss: loss[0])[1],
        end_unknown=any(not walk.data_ended for walk in walks),
        bytes_lost=bytes_lost,
        chunks_damaged=sum(walk.damaged_chunks for walk in walks),
        devices=len(copy.devices),
        solved_frames=total[schema.SKELETON],
        solved_frames_lost=poses_lost,
        tpose_frames=total[schema.CALIBRATION],
        events=total[schema.EVENTS],
        messages_left_out=copy.left_out,
        attachments_left_out=tuple(name for walk in walks for name in _foreign(walk)),
        goes_on=any(walk.goes_on for walk in walks),
        recordings=len(group),
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
    """The second pass: messages from the file into the new one."""

    def __init__(self, source: Path, group: list[Found]) -> None:
        self._source = source
        self._group = group
        self._body = next((b for walk, _ in group if (b := _body(walk, source)) is not None), None)
        devices, self._columns = group[0][1].device_columns()
        self.devices = _with_names_of_their_own(devices)
        self.counts: list[dict[str, int]] = []
        self.left_out = 0

    def run(self, path: Path, at: Callable[[int], None]) -> None:
        """Write everything to ``path``."""
        contents = self._group[0][1]
        profile = _first(self._group, ATTACHMENTS[0])
        with RecordingWriter(
            path,
            self.devices,
            player_id=contents.player_id,
            space_id=contents.space_id,
            profile=profile,
            settings=_first(self._group, ATTACHMENTS[1]),
            body=self._body,
        ) as writer:
            for walk, part in self._group:
                self._columns = part.device_columns()[1]
                self._copy(writer, walk, profile, at)

    def _copy(
        self, writer: RecordingWriter, found: Walk, written: dict[str, Any] | None, at: Callable[[int], None]
    ) -> None:
        """One recording's messages; ``written`` is the profile that stands at the begin already."""
        count = dict.fromkeys(COUNTED, 0)
        self.counts.append(count)
        walk = Walk(part=found.part)
        for batch in native_batches(self._source, walk):
            for channel_id, log_time, data in batch:
                topic = topic_of(channel_id, walk)
                kept = self._kept(topic, data)
                if kept is None:
                    self.left_out += topic != schema.DEVICES
                elif topic != schema.PROFILE_TOPIC or document_of(kept) != written:
                    writer.copy(topic, log_time, kept)
                    if topic in count:
                        count[topic] += 1
            at(walk.at)

    @property
    def frames(self) -> int:
        """Tracker frames written so far."""
        return sum(count[schema.TRACKERS] for count in self.counts)

    def _kept(self, topic: str, data: bytes) -> bytes | None:
        """The message as it goes into the new file; None when it does not. Device lists are made anew."""
        if topic in (schema.TRACKERS, schema.CALIBRATION):
            if len(data) % _STRIDE:
                return None
            same = bool(np.all(np.diff(np.flatnonzero(self._columns >= 0), prepend=-1) == 1))
            return data if same else _with_columns(data, self._columns)
        if topic == schema.SKELETON:
            return data if self._body is not None and len(data) == schema.POSE_DTYPE.itemsize else None
        if topic in schema.JSON_SCHEMAS and topic != schema.DEVICES:
            return data if document_of(data) is not None else None
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


def _first(group: list[Found], name: str) -> dict[str, Any] | None:
    """An attachment of the first recording that has it."""
    documents = (document_of(walk.attachments.get(name)) for walk, _ in group)
    return next((document for document in documents if document is not None), None)
