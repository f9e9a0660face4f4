"""The first pass over one of vrik's own recordings: devices, person, events, what is lost; no frames kept."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from mcap.records import Channel
from numpy.typing import NDArray

from recordings import schema
from recordings.mcap_parts import Part
from recordings.mcap_walk import Message, Walk, walk_batches
from vrik import quat
from vrik.arrays import Points
from vrik.body import BodyModel
from vrik.errors import DamagedRecordingError, RecordingError, UnknownFormatError, UnsupportedVersionError
from vrik.frames import DEFAULT_PLAYER, DEFAULT_SPACE, DeviceClass, TrackedDevice
from vrik.skeleton import BONES

MAX_DEVICES = 1024
"""Records with a device index from here on are not believed."""

FIRST_CHANNEL = 1
"""Number of the session's channel in every file of vrik's writer."""

GOES_ON = "a damaged one, or another recording begins there whose start is damaged"
"""What messages behind an end record mean."""

_KEYS = {
    schema.DEVICES: {"devices"},
    schema.EVENTS: {"name", "host_time_ns", "data"},
    schema.PERSON: {"stature_m", "skeleton_tpose"},
}
"""Keys by which the JSON messages of a channel are known."""

_VERSION = re.compile(r"vrik/\w+")
_BATCH = 4096
_STRIDE = schema.TRACKER_DTYPE.itemsize


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened during a recording.

    Args:
        name: What: "recentre", "mark", ...
        host_time_ns: When. [ns]
        data: Anything else.
    """

    name: str
    host_time_ns: int
    data: dict[str, Any]


@dataclass(slots=True)
class Contents:
    """What a recording holds besides its frames. Filled by :func:`scan`."""

    devices: dict[int, TrackedDevice] = field(default_factory=dict)
    stature_m: float | None = None
    skeleton_tpose: Points | None = None
    profile: dict[str, Any] | None = None
    settings: dict[str, Any] | None = None
    events: list[Event] = field(default_factory=list)
    calibration: list[Message] = field(default_factory=list)
    player_id: str = DEFAULT_PLAYER
    space_id: str = DEFAULT_SPACE
    frames: int = 0
    first_ns: int = 0
    last_ns: int = 0
    """Times of the first and the last frame. [ns]"""
    poses: int = 0
    velocities: int = 0
    """Bits of the velocities that appear at all."""
    seen: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(1 << 16, np.bool_))
    """(65536,) device indices that appear in frames."""
    bad_rotations: int = 0
    unreadable: int = 0
    pending: list[bytes] = field(default_factory=list)

    def device_columns(self) -> tuple[tuple[TrackedDevice, ...], NDArray[np.intp]]:
        """All devices of the file, and (65536,) the column of each device index; -1 for those left out.

        An index whose description is lost gets a device of unknown class, so that its poses are not lost too.
        """
        devices = dict(self.devices)
        for index in np.flatnonzero(self.seen[:MAX_DEVICES]).tolist():
            devices.setdefault(index, TrackedDevice(f"unknown{index}", DeviceClass.INVALID))
        columns = np.full(len(self.seen), -1, np.intp)
        columns[sorted(devices)] = np.arange(len(devices))
        return tuple(devices[index] for index in sorted(devices)), columns


def topic_of(channel_id: int, walk: Walk) -> str:
    """The channel's name; "" when the channel is not declared."""
    channel = walk.channels.get(channel_id)
    return "" if channel is None else str(channel.topic)


def native_batches(path: Path, walk: Walk) -> Iterator[list[Message]]:
    """As :func:`recordings.mcap_walk.walk_batches`, but channels whose declaration is lost are known again.

    A channel is declared in the chunk of its first message and in the summary. Where both are damaged, the
    form of its messages tells which of vrik's it is.
    """
    for batch in walk_batches(path, walk):
        if any(message[0] not in walk.channels for message in batch):
            for channel_id, log_time, data in batch:
                if channel_id not in walk.channels and (topic := _topic_by_form(channel_id, log_time, data)):
                    walk.channels[channel_id] = Channel(channel_id, topic, "", {}, 0)
        yield batch


def _topic_by_form(channel_id: int, log_time: int, data: bytes) -> str:
    """Which of vrik's channels such a message can be of; "" for none."""
    size = schema.POSE_DTYPE.itemsize
    for dtype, topic in ((schema.TRACKER_DTYPE, schema.TRACKERS), (schema.POSE_DTYPE, schema.SKELETON)):
        if data and len(data) % dtype.itemsize == 0 and (topic == schema.TRACKERS or len(data) == size):
            times = np.frombuffer(data, dtype)["host_time_ns"]
            if (np.maximum(times, 0) == log_time).all():
                # The writer declares the session's channel before any other.
                apart = topic == schema.TRACKERS and channel_id != FIRST_CHANNEL
                return schema.CALIBRATION if apart else topic
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return ""
    names = set(document) if isinstance(document, dict) else set()
    for topic, keys in _KEYS.items():
        if keys <= names:
            return topic
    return ""


def scan(
    path: Path, on_progress: Callable[[int], None] | None = None, part: Part | None = None
) -> tuple[Walk, Contents]:
    """Read a whole recording once.

    Args:
        path: The file.
        part: Which recording in it; the first when not given.
        on_progress: Told now and then how many bytes have been gone through.

    Raises:
        UnknownFormatError, UnsupportedVersionError, DamagedRecordingError, RecordingError: As for
            :class:`recordings.native.NativeRecording`.
    """
    walk, contents = Walk(part=part), Contents()
    try:
        for batch in native_batches(path, walk):
            _learn(batch, walk, contents)
            if on_progress is not None:
                on_progress(walk.at)
    except OSError as error:
        raise RecordingError(f"cannot read {path}: {error.strerror or error}") from error
    _learn_pending(contents)
    contents.settings = document_of(walk.attachments.get("settings.json"))
    check_version(path, walk)
    if contents.frames + contents.poses == 0 and (walk.truncated or walk.damaged_chunks or walk.lost_bytes):
        how = "truncated before its first" if walk.truncated else "damaged, without one"
        raise DamagedRecordingError(f"{path} is a vrik recording, but {how} whole frame that can be read")
    return walk, contents


def body_of(about: Mapping[str, str], path: Path) -> BodyModel:
    """The body that solved frames belong to, from their channel's metadata.

    Raises:
        DamagedRecordingError: If it cannot be read.
    """
    try:
        return BodyModel(float(about["stature_m"]), np.array(json.loads(about["tpose"]), np.float64))
    except (KeyError, ValueError, TypeError) as error:
        raise DamagedRecordingError(f"{path}: the solved frames come without a readable body") from error


def check_version(path: Path, walk: Walk) -> None:
    """Whether this is a vrik recording that this program knows.

    Raises:
        UnknownFormatError: If it is an MCAP file of someone else.
        UnsupportedVersionError: If a newer vrik wrote it.
        DamagedRecordingError: If it is cut before it says what it is.
    """
    records = (walk.metadata.get(schema.METADATA_NAME, {}), *walk.metadata.values())
    stated = {walk.profile, next((record["format"] for record in records if "format" in record), "")}
    versions = {text for text in stated if _VERSION.fullmatch(text)}
    newer = sorted(versions - {schema.PROFILE})
    if versions == {schema.PROFILE}:
        return
    # It is stated twice; of two that differ but are of the same length, one or both have a damaged byte.
    if len(versions) == 2 and len({len(text) for text in versions}) == 1:
        return
    if not versions and schema.TRACKERS in walk.topics():
        return  # what states the format is damaged
    if newer:
        raise UnsupportedVersionError(
            f"{path} has format {newer[0]}, this vrik reads {schema.PROFILE}; "
            "update with: pip install -U vrik"
        )
    cut = "truncated, " if walk.truncated else ""
    if not walk.profile and not walk.channels and walk.truncated:
        raise DamagedRecordingError(f"{path} is an MCAP file, truncated before it says what it holds")
    topics = walk.topics()
    found = ", ".join(topics[:8]) + (f" and {len(topics) - 8} more" if len(topics) > 8 else "")
    raise UnknownFormatError(
        f"{path} is an MCAP file ({cut}channels: {found or 'none'}), but not a vrik recording: "
        f"expected profile {schema.PROFILE} and channel {schema.TRACKERS}"
    )


def document_of(data: bytes | None) -> dict[str, Any] | None:
    """A JSON object; None when it is none."""
    try:
        document = None if data is None else json.loads(data)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def _learn(batch: list[Message], walk: Walk, contents: Contents) -> None:
    topics = {channel_id: channel.topic for channel_id, channel in walk.channels.items()}
    trackers = [channel_id for channel_id, topic in topics.items() if topic == schema.TRACKERS]
    frames = [data for channel_id, _, data in batch if channel_id in trackers]
    if frames and contents.frames == 0:
        contents.first_ns = next(message[1] for message in batch if message[0] in trackers)
        about = next(walk.channels[message[0]].metadata for message in batch if message[0] in trackers)
        contents.player_id = about.get("player_id", DEFAULT_PLAYER)
        contents.space_id = about.get("space_id", DEFAULT_SPACE)
    if frames:
        contents.last_ns = max(message[1] for message in batch if message[0] in trackers)
    whole = [data for data in frames if len(data) % _STRIDE == 0]
    contents.frames += len(whole)
    contents.unreadable += len(frames) - len(whole)
    contents.pending.extend(whole)
    if len(contents.pending) >= _BATCH:
        _learn_pending(contents)
    if len(frames) < len(batch):
        for message in batch:
            _learn_other(topics.get(message[0], ""), message, contents)


def _learn_other(topic: str, message: Message, contents: Contents) -> None:
    """A message that is no tracker frame."""
    data = message[2]
    if topic == schema.SKELETON:
        contents.poses += 1
    elif topic == schema.CALIBRATION and len(data) % _STRIDE == 0:
        contents.calibration.append(message)
        contents.pending.append(data)
    elif topic == schema.CALIBRATION:
        contents.unreadable += 1
    elif topic in schema.JSON_SCHEMAS:
        try:
            _learn_json(topic, json.loads(data), contents)
        except (ValueError, KeyError, TypeError, AttributeError):
            contents.unreadable += 1


def _learn_pending(contents: Contents) -> None:
    """Which devices and velocities the pending frames have; counts poses without a rotation."""
    records = np.frombuffer(b"".join(contents.pending), schema.TRACKER_DTYPE)
    contents.pending = []
    if len(records):
        contents.seen[records["device"]] = True
        contents.velocities |= int(np.bitwise_or.reduce(records["velocities"]))
        claimed = records["rotation"][records["valid"] != 0]
        contents.bad_rotations += int(np.sum(~quat.is_rotation(claimed)))


def _learn_json(topic: str, document: dict[str, Any], contents: Contents) -> None:
    if topic == schema.DEVICES:
        for entry in document["devices"]:
            index, name = int(entry["index"]), str(entry.get("class", ""))
            known = contents.devices.get(index)
            if 0 <= index < MAX_DEVICES:
                contents.devices[index] = TrackedDevice(
                    str(entry["serial"]),
                    DeviceClass[name] if name in DeviceClass.__members__ else DeviceClass.INVALID,
                    str(entry.get("role", "")) or (known.role if known else ""),
                    str(entry.get("model", "")),
                )
    elif topic == schema.PERSON:
        stature, joints = document.get("stature_m"), document.get("skeleton_tpose")
        contents.stature_m = contents.stature_m if stature is None else float(stature)
        if joints is not None:
            contents.skeleton_tpose = np.array(joints, np.float64).reshape(len(BONES), 3)
    elif topic == schema.PROFILE_TOPIC:
        contents.profile = dict(document)
    elif topic == schema.EVENTS:
        event = Event(str(document["name"]), int(document["host_time_ns"]), dict(document.get("data", {})))
        contents.events.append(event)


def counts_of(walk: Walk, contents: Contents) -> dict[str, int]:
    """What was met on the way, by name."""
    counts = {
        "solved frames": contents.poses,
        "events": len(contents.events),
        "frames lost in damaged chunks": lost_frames(walk),
        "damaged chunks": walk.damaged_chunks,
        "unreadable messages": contents.unreadable,
        "samples without a rotation": contents.bad_rotations,
        "bytes lost": walk.lost_bytes,
        "recordings behind the end": len(walk.behind),
    }
    return {name: count for name, count in counts.items() if count}


def lost_frames(walk: Walk, topic: str = schema.TRACKERS) -> int:
    """How many frames were in chunks that cannot be read, as the index of those chunks says."""
    return sum(
        n for i, n in walk.lost_messages.items() if i in walk.channels and walk.channels[i].topic == topic
    )


def notes_of(walk: Walk, contents: Contents) -> tuple[str, ...]:
    """The same in sentences, where something is lost."""
    notes = []
    if walk.start_damaged:
        notes.append("damaged start: the first bytes are not those of an MCAP file; run: vrik repair")
    if walk.goes_on:
        notes.append(f"messages stand behind an end record: {GOES_ON}")
    if walk.behind:
        size = sum(part.end - part.begin for part in walk.behind)
        many = len(walk.behind)
        notes.append(
            f"behind the end of this recording {'stands another' if many == 1 else f'stand {many} others'}, "
            f"{size} bytes, of which nothing is read; run: vrik repair, which saves all"
        )
    if walk.truncated:
        notes.append(
            f"truncated: the file lacks its end record, as after a crash; {contents.frames} frames read, "
            f"{walk.lost_bytes} bytes of an unfinished part left over"
        )
    elif walk.lost_bytes:
        notes.append(f"damaged: {walk.lost_bytes} bytes cannot be read; {contents.frames} frames read")
    if walk.damaged_chunks:
        lost = lost_frames(walk)
        notes.append(f"damaged chunks that cannot be read: {walk.damaged_chunks}, with {lost} frames in them")
    if contents.unreadable:
        notes.append(f"{contents.unreadable} messages have an unexpected form and were left out")
    if contents.bad_rotations:
        notes.append(
            f"{contents.bad_rotations} samples marked valid have no unit quaternion; taken as not tracked"
        )
    return tuple(notes)
