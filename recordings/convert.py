"""Turns a recording of any kind into another kind, and says what did not fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from recordings.base import Progress, Recording, frame_count, listening, pieces
from recordings.exporters.trackers import (
    calibration_of,
    device_names,
    worn_devices,
    write_jsonl,
    write_npz,
)
from recordings.importers import open_recording
from recordings.native import NativeRecording, RecordingWriter
from recordings.repair import copy_recording
from vrik.errors import RecordingError, UsageError
from vrik.files import write_whole
from vrik.frames import DEFAULT_PLAYER, DEFAULT_SPACE, ROLE, TrackerSequence


@dataclass(frozen=True, slots=True)
class ConvertReport:
    """What a conversion did.

    Args:
        source: The file that was read.
        target: The file that was written.
        source_format: Short name of its format.
        target_format: Short name of the format written.
        frames: Number of frames.
        devices: Number of devices.
        left_out: Sentences about what the target cannot hold.
        notes: What the reader said about the source.
    """

    source: str
    target: str
    source_format: str
    target_format: str
    frames: int
    devices: int
    left_out: tuple[str, ...]
    notes: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """The same as plain values for ``json.dumps``."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__} | {
            "left_out": list(self.left_out),
            "notes": list(self.notes),
        }


def convert(
    source: str | Path,
    target: str | Path,
    roles: Mapping[str, str] | None = None,
    columns: str | Path | None = None,
    on_progress: Progress | None = None,
) -> ConvertReport:
    """Write a recording in the format that the target's suffix names.

    The target appears only once it is complete; a conversion that fails leaves an older file as it was.

    Args:
        source: Any readable recording.
        target: A path that ends in ``.mcap``, ``.npz`` or ``.jsonl``.
        roles: Serial number to role, for formats that name devices by role and sources that do not say.
        columns: Mapping file that says what the columns of a table hold.
        on_progress: Told how far opening is in bytes, then how many frames are done, and of how many.

    Raises:
        UsageError: If the suffix is another, the mapping file does not work, or both paths are the same file.
        RecordingError: If the source cannot be read or the target not written.
    """
    source, target = Path(source), Path(target)
    if target.suffix.lower() not in WRITERS:
        raise UsageError(
            f"cannot write {target.name}: vrik writes recordings as {', '.join(WRITERS)}; choose one of these"
        )
    with listening(on_progress) if on_progress else nullcontext():
        recording = open_recording(source, columns) if columns else open_recording(source)
    if roles and target.suffix.lower() in NAMED_BY_ROLE:
        recording = _Renamed(recording, roles)
    if not target.parent.is_dir():
        raise RecordingError(f"there is no folder {target.parent}; make it first")
    if target.exists() and target.samefile(source):
        raise UsageError(f"{target} is the source itself; choose another name for the result")
    name, write = WRITERS[target.suffix.lower()]
    done: list[tuple[int, list[str]]] = []
    try:
        write_whole(target, lambda part: done.append(write(recording, part, on_progress)))
    except OSError as error:
        raise RecordingError(f"cannot write {target}: {error.strerror or error}") from error
    frames, left_out = done[0]
    info = recording.info
    return ConvertReport(
        str(source), str(target), info.format, name, frames, len(info.devices), tuple(left_out), info.notes
    )


class _Renamed:
    """A recording whose devices have roles that the file does not state."""

    def __init__(self, recording: Recording, roles: Mapping[str, str]) -> None:
        self._recording = recording
        self._devices = tuple(
            replace(device, role=device.role or roles.get(device.serial, ""))
            for device in recording.info.devices
        )
        self.info = replace(recording.info, devices=self._devices)
        self.frame_count = frame_count(recording)

    def blocks(self) -> Iterator[TrackerSequence]:
        """The same frames with the devices renamed."""
        return (replace(block, devices=self._devices) for block in self._recording.blocks())


def _write_native(recording: Recording, path: Path, at: Progress | None) -> tuple[int, list[str]]:
    if isinstance(recording, NativeRecording):
        return _copy_native(recording, path, at)
    info = recording.info
    blocks = pieces(recording, at)
    first = next(blocks, None)
    ids = (DEFAULT_PLAYER, DEFAULT_SPACE) if first is None else (first.player_id, first.space_id)
    count = 0
    with RecordingWriter(path, info.devices, player_id=ids[0], space_id=ids[1]) as writer:
        if info.stature_m is not None or info.skeleton_tpose is not None:
            writer.write_person(info.stature_m, info.skeleton_tpose)
        if info.calibration is not None:
            writer.write_calibration(info.calibration)
        while first is not None:
            for frame in first:
                writer.write(frame)
            count += len(first)
            first = next(blocks, None)
    return count, []


def _copy_native(recording: NativeRecording, path: Path, at: Progress | None) -> tuple[int, list[str]]:
    """Message by message: settings, profile, person, T-pose, solved frames and events as well."""
    left_out = []
    copied = copy_recording(recording.info.path, path, None if at is None else partial(_of, at, recording))
    if copied.left_out:
        left_out.append(f"messages that are unreadable or not vrik's: {copied.left_out}")
    if copied.attachments_left_out:
        left_out.append(f"attachments that are not vrik's: {', '.join(copied.attachments_left_out)}")
    return copied.frames, left_out


def _of(at: Progress, recording: NativeRecording, done: int) -> None:
    at(done, recording.frame_count)


def _write_npz(recording: Recording, path: Path, at: Progress | None) -> tuple[int, list[str]]:
    first = next(iter(recording.blocks()), None)
    count = write_npz(path, pieces(recording, at), recording.info)
    return count, _not_in_trackers(recording, first)


def _write_jsonl(recording: Recording, path: Path, at: Progress | None) -> tuple[int, list[str]]:
    first = next(iter(recording.blocks()), None)
    rate_hz = 0.0 if first is None else first.rate_hz
    count = write_jsonl(path, pieces(recording, at), recording.info, rate_hz)
    left_out = _not_in_trackers(recording, first)
    worn, _ = worn_devices(recording.info.devices)
    calibration = calibration_of(recording.info, worn)
    if calibration is not None and len(calibration) > 1:
        left_out.append(f"all but one of the {len(calibration)} T-pose frames: the median is written")
    return count, left_out


def _not_in_trackers(recording: Recording, frames: TrackerSequence | None) -> list[str]:
    """What the harness's files have no place for."""
    info = recording.info
    worn, columns = worn_devices(info.devices)
    left_out = ["serial numbers and models", "poses of samples that are not valid, and why they are not"]
    if len(columns) < len(info.devices):
        left_out.append(f"base stations: {len(info.devices) - len(columns)}")
    unnamed = [n for n, d in zip(device_names(worn), worn, strict=True) if n not in ROLE]
    if unnamed:
        left_out.append(f"the class of {', '.join(unnamed)}, which have no role and keep their serial number")
    if info.calibration is not None and calibration_of(info, worn) is None:
        left_out.append("the T-pose frames, since not every device is in them")
    if frames is not None and len(frames):
        if frames.linear_velocity is not None or frames.angular_velocity is not None:
            left_out.append("velocities")
        if frames.time_ns[0]:
            left_out.append("the time of the first frame: times begin at zero")
        if (frames.player_id, frames.space_id) != (DEFAULT_PLAYER, DEFAULT_SPACE):
            left_out.append(f"player {frames.player_id} and space {frames.space_id}")
    if isinstance(recording, NativeRecording):
        extras = {
            "events": len(recording.events),
            "the profile": recording.profile is not None,
            "settings": recording.settings is not None,
            "solved frames": recording.pose_count,
        }
        left_out.extend(name for name, there in extras.items() if there)
    return left_out


Writer: TypeAlias = Callable[[Recording, Path, Progress | None], tuple[int, list[str]]]

WRITERS: dict[str, tuple[str, Writer]] = {
    ".mcap": ("vrik/1", _write_native),
    ".npz": ("harness-npz", _write_npz),
    ".jsonl": ("harness-jsonl", _write_jsonl),
}
"""Suffix to the name of the format and its writer."""

NAMED_BY_ROLE = (".npz", ".jsonl")
"""Formats that know a device by its role only."""
