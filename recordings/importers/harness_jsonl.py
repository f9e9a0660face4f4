"""The accuracy harness's trackers file as JSON lines: a header, then one line a frame.

Header: ``{"header": {...}, "devices": [names], "height_m"?, "calibration_tpose"?, "skeleton_tpose"?}``.
Frame: ``{"t": s, "devices": {name: {"valid": bool, "pos": [x, y, z], "rot": [w, x, y, z]}}}``.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from recordings.base import LoadedRecording, Recording, RecordingInfo
from recordings.importers.axes import rows_of
from recordings.importers.harness import frames_of, harness_devices, skeleton_of, stature_of
from vrik.arrays import Bools, Points, Quats
from vrik.errors import RecordingError
from vrik.frames import TrackedDevice, TrackerSequence

_NOT_TRACKED = (np.nan,) * 7


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
        """Read it whole; lines that are cut or no frame are left out and counted.

        Raises:
            RecordingError: If the header names no devices, or its calibration does not fit them.
        """
        lines = path.read_bytes().removeprefix(b"\xef\xbb\xbf").split(b"\n")
        header = _object(lines[0])
        names = None if header is None else _names(header)
        if header is None or names is None:
            raise RecordingError(
                f'{path.name}, line 1: expected a JSON object with "devices": [names], '
                "as bench/accuracy/trackers.py --jsonl writes it"
            )
        devices = harness_devices(names, path)
        counts: dict[str, int] = {}
        notes: list[str] = []
        times: list[float] = []
        samples: list[tuple[Any, ...]] = []
        stated: list[list[bool]] = []
        bad: list[int] = []
        for number, line in enumerate(lines[1:], 2):
            if not line.strip():
                continue
            try:
                frame = json.loads(line)
                poses = [_sample(frame["devices"].get(name)) for name in names]
                times.append(float(frame["t"]))
            except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
                bad.append(number)
                continue
            stated.append([pose is not None for pose in poses])
            samples.extend(_NOT_TRACKED if pose is None else pose for pose in poses)
        if bad:
            only_last = bad == [len(lines)]
            counts["rows cut" if only_last else "rows skipped"] = len(bad)
            notes.append(f"lines that are cut or no frame, left out: {len(bad)}; the first is line {bad[0]}")
        shape = (len(times), len(devices))
        poses_all = np.array(samples, np.float64).reshape(*shape, 7)
        frames = frames_of(
            np.array(times, np.float64),
            devices,
            poses_all[..., :3],
            poses_all[..., 3:],
            np.array(stated, np.bool_).reshape(shape),
            counts,
            notes,
        )
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
        return LoadedRecording(info, frames)


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
