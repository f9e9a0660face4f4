"""The accuracy harness's trackers file as JSON lines: a header, then one line a frame.

Header: ``{"header": {...}, "devices": [names], "height_m"?, "calibration_tpose"?, "skeleton_tpose"?}``.
Frame: ``{"t": s, "devices": {name: {"valid": bool, "pos": [x, y, z], "rot": [w, x, y, z]}}}``.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from recordings.base import Recording, RecordingInfo, reading
from recordings.importers.axes import is_measured, nanoseconds, rows_of, tell_sign_flips
from recordings.importers.frame_blocks import BLOCK_FRAMES, FrameBlocks
from recordings.importers.harness import frames_of, harness_devices, skeleton_of, stature_of, tell
from vrik.arrays import Bools, Points, Quats
from vrik.errors import RecordingError
from vrik.frames import TrackedDevice, TrackerSequence

LONGEST_LINE = 1 << 24
"""A longer line is no frame. [bytes]"""

_NOT_STATED = (np.nan,) * 7 + (0.0,)


class HarnessJsonlImporter:
    """Reads trackers ``.jsonl``."""

    name = "harness-jsonl"
    summary = "trackers file of the accuracy harness (JSON lines)"
    suffixes = (".jsonl",)

    def recognises(self, head: bytes, path: Path) -> bool:
        """By the first line: a JSON object whose ``devices`` is a list of names."""
        header = _object(head.removeprefix(b"\xef\xbb\xbf").split(b"\n", 1)[0])
        return header is not None and _names(header) is not None

    def open(self, path: Path) -> Recording:
        """Read it to the end; lines that are cut or no frame are left out and counted.

        Raises:
            RecordingError: If the header names no devices, or its calibration does not fit them.
        """
        size = path.stat().st_size
        with path.open("rb") as stream:
            header = _object(stream.readline(LONGEST_LINE).removeprefix(b"\xef\xbb\xbf"))
            names = None if header is None else _names(header)
            if header is None or names is None:
                raise RecordingError(
                    f'{path.name}, line 1: expected a JSON object with "devices": [names], '
                    "as bench/accuracy/trackers.py --jsonl writes it"
                )
            devices = harness_devices(names, path)
            frames = _Frames(devices)
            bad, first_bad, ended = 0, 0, True
            for number, line in _lines(stream, 2):
                if line.strip() and not frames.read(line):
                    bad, first_bad = bad + 1, first_bad or number
                    ended = line.endswith(b"\n")
                if number % BLOCK_FRAMES == 0:
                    reading(stream.tell(), size)
        frames.flush()
        counts: dict[str, int] = {}
        notes: list[str] = []
        if bad:
            counts["rows skipped" if bad > 1 or ended else "rows cut"] = bad
            notes.append(f"lines that are cut or no frame, left out: {bad}; the first is line {first_bad}")
        time_ns, replaced = nanoseconds(np.array(frames.times_s))
        tell(replaced, frames.lost, frames.wrong, counts, notes)
        tell_sign_flips(frames.blocks.flips, counts, notes)
        info = RecordingInfo(
            path,
            self.name,
            devices,
            stature_of(header.get("height_m")),
            _calibration(header.get("calibration_tpose"), devices, path),
            skeleton_of(header.get("skeleton_tpose"), path),
            counts,
            tuple(notes),
        )
        return frames.blocks.recording(info, time_ns)


class _Frames:
    """The frames read so far."""

    def __init__(self, devices: Sequence[TrackedDevice]) -> None:
        self.blocks = FrameBlocks(devices)
        self.times_s = array("d")
        self.lost = 0
        self.wrong = 0
        self._waiting = array("d")
        self._names = [device.serial for device in devices]

    def read(self, line: bytes) -> bool:
        """Take a line in; False when it is no frame."""
        try:
            frame = json.loads(line)
            poses = [_sample(frame["devices"].get(name)) for name in self._names]
            time_s = float(frame["t"])
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
            return False
        self.times_s.append(time_s)
        for pose in poses:
            self._waiting.extend(_NOT_STATED if pose is None else (*pose, 1.0))
        if len(self.times_s) % BLOCK_FRAMES == 0:
            self.flush()
        return True

    def flush(self) -> None:
        """Put what is waiting aside."""
        samples = np.array(self._waiting).reshape(-1, len(self._names), 8)
        self._waiting = array("d")
        stated = samples[..., 7] == 1.0
        valid = stated & is_measured(samples[..., :3], samples[..., 3:7])
        self.lost += int(np.count_nonzero(~stated))
        self.wrong += int(np.count_nonzero(stated & ~valid))
        self.blocks.add(samples[..., :3], samples[..., 3:7], valid)


def _lines(stream: IO[bytes], first: int) -> Iterator[tuple[int, bytes]]:
    """Lines and their numbers; of one that is far too long, its first part, which is no frame."""
    number = first
    while line := stream.readline(LONGEST_LINE):
        yield number, line
        while len(line) == LONGEST_LINE and not line.endswith(b"\n"):
            line = stream.readline(LONGEST_LINE)
        number += 1


def _object(line: bytes) -> dict[str, Any] | None:
    """A line as a JSON object, or None."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _names(header: dict[str, Any]) -> list[str] | None:
    """Device names of a header line, or None when it is none."""
    names = header.get("devices")
    if isinstance(names, list) and names and all(isinstance(name, str) for name in names):
        return names
    return None


def _sample(device: Any) -> tuple[float, ...] | None:
    """Position and rotation as seven numbers; None when the device is missing or stated not valid.

    Raises:
        ValueError: If it is stated valid and is not three and four numbers.
    """
    if device is None or not device.get("valid", True):
        return None
    x, y, z = device["pos"]
    qw, qx, qy, qz = device["rot"]
    return (float(x), float(y), float(z), float(qw), float(qx), float(qy), float(qz))


def _calibration(stated: Any, devices: Sequence[TrackedDevice], path: Path) -> TrackerSequence | None:
    """The T-pose of the header as one frame; devices that it does not name are not valid in it."""
    if stated is None:
        return None
    position: Points = np.full((1, len(devices), 3), np.nan)
    rotation: Quats = np.full((1, len(devices), 4), np.nan)
    valid: Bools = np.zeros((1, len(devices)), np.bool_)
    for i, device in enumerate(devices):
        pose = stated.get(device.serial) if isinstance(stated, dict) else {}
        if pose is None:
            continue
        place = rows_of((3,), pose.get("pos")) if isinstance(pose, dict) else None
        turn = rows_of((4,), pose.get("rot")) if isinstance(pose, dict) else None
        if place is None or turn is None:
            raise RecordingError(
                f"{path.name}: calibration_tpose of {device.serial} is no pose; "
                'expected {"pos": [x, y, z], "rot": [w, x, y, z]}'
            )
        position[0, i], rotation[0, i], valid[0, i] = place, turn, True
    return frames_of(np.zeros(1), devices, position, rotation, valid, {}, [])
