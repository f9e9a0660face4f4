"""WebVR gamepad record: raw OpenVR controllers as the browser saw them, in a sitting space.

``{"startedAt": ms, "values": [{"recordedAt": ms, "data": {"0": gamepad, "1": gamepad, ...}}]}``. Arrays are
objects with digit keys. OpenVR's axes, metres; heights count from the seat's origin, so they are negative
without being below the floor, and nothing in the file says where the floor is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from recordings.base import LoadedRecording, Recording, RecordingInfo
from recordings.importers.axes import device_for_role, is_measured, nanoseconds, tracker_sequence
from recordings.importers.json_text import CUT_NOTE, number, read_json, read_text, vector
from vrik import quat
from vrik.arrays import Floats
from vrik.errors import DamagedRecordingError, RecordingError
from vrik.frames import DeviceClass, TrackedDevice

_DIGITS = ("0", "1", "2", "3")
_ROW = re.compile(r'"recordedAt"\s*:')
_VALUES = re.compile(r'"values"\s*:\s*\[')
_DEPTH = 2  # brackets open around a row: {values [


@dataclass(frozen=True, slots=True)
class _Row:
    """One record: when, and the gamepads by their slot."""

    recorded_ms: float
    pads: dict[str, dict[str, Any]]


class WebVrGamepadImporter:
    """Reads the gamepad record ``.json``."""

    name = "webvr-gamepad"
    summary = "WebVR gamepad record: two controllers in a sitting space (JSON)"
    suffixes = (".json",)

    def recognises(self, head: bytes, path: Path) -> bool:
        """By an object with a list ``values`` whose members have ``recordedAt``."""
        text = head.decode("utf-8-sig", errors="replace")
        listed = _VALUES.search(text) is not None and _ROW.search(text) is not None
        return listed and text.lstrip().startswith("{") and '"pose"' in text

    def open(self, path: Path) -> Recording:
        """Read it whole, velocities too; of a cut file, all whole records before the cut.

        Raises:
            DamagedRecordingError: If it is broken before its first record.
            RecordingError: If no record holds a gamepad with a pose.
        """
        data, cut = read_json(path, read_text(path), _DEPTH)
        counts: dict[str, int] = {}
        notes = [CUT_NOTE] if cut else []
        rows = _rows(data, counts, notes)
        slots = sorted({slot for row in rows for slot in row.pads}, key=int)
        if not slots:
            kind = DamagedRecordingError if cut else RecordingError
            raise kind(
                f"{path.name} has no gamepad with a pose; expected values: [{{recordedAt, data}}, ...]"
            )
        pads = [[row.pads.get(slot, {}) for slot in slots] for row in rows]
        poses = [[pad.get("pose", {}) for pad in row] for row in pads]
        position = _numbers(poses, "position", 3)
        rotation = quat.wxyz_from_xyzw(_numbers(poses, "orientation", 4))
        present = np.array([[bool(pad) for pad in row] for row in pads], np.bool_)
        said = np.array([[_says_tracked(pad) for pad in row] for row in pads], np.bool_)
        valid = said & is_measured(position, rotation)
        if lost := int(np.count_nonzero(~(present & said))):
            counts["samples not tracked"] = lost
        if wrong := int(np.count_nonzero(present & said & ~valid)):
            counts["placeholder samples"] = wrong
            notes.append(f"samples that hold no pose: {wrong}; they are marked not valid")

        ms = np.array([row.recorded_ms for row in rows])
        known = ms[np.isfinite(ms)]
        time_ns, replaced = nanoseconds((ms - known[0]) * 1e-3 if len(known) else ms)
        if replaced:
            counts["times out of order"] = replaced
            notes.append(f"times that are unreadable or step back: {replaced}; they repeat the time before")
        if valid.any() and float(np.median(position[valid][:, 1])) < 0.0:
            notes.append(
                f"sitting origin: the controllers are at {np.median(position[valid][:, 1]):.2f} m, "
                "counted from the seat; the file does not say where the floor is, so heights stay as they are"
            )
        devices = tuple(_device(slot, [row[i] for row in pads]) for i, slot in enumerate(slots))
        sequence = replace(
            tracker_sequence(time_ns, devices, position, rotation, valid),
            linear_velocity=_numbers(poses, "linearVelocity", 3),
            angular_velocity=_numbers(poses, "angularVelocity", 3),
        )
        info = RecordingInfo(path, self.name, devices, counts=counts, notes=tuple(notes))
        return LoadedRecording(info, sequence)


def _rows(data: Any, counts: dict[str, int], notes: list[str]) -> list[_Row]:
    """All records that can be read; others are counted."""
    values = data.get("values") if isinstance(data, dict) else None
    values = values if isinstance(values, list) else []
    rows = []
    for value in values:
        pads = value.get("data") if isinstance(value, dict) else None
        if isinstance(pads, list):
            pads = {str(i): pad for i, pad in enumerate(pads)}
        if not isinstance(value, dict) or not isinstance(pads, dict):
            continue
        rows.append(_Row(number(value.get("recordedAt")), {s: p for s, p in pads.items() if _has_pose(s, p)}))
    if skipped := len(values) - len(rows):
        counts["rows skipped"] = skipped
        notes.append(f"records that cannot be read, left out: {skipped}")
    return rows


def _has_pose(slot: str, pad: Any) -> bool:
    return slot.isascii() and slot.isdigit() and isinstance(pad, dict) and isinstance(pad.get("pose"), dict)


def _says_tracked(pad: dict[str, Any]) -> bool:
    pose = pad.get("pose", {})
    return bool(pad) and not any(
        flag is False for flag in (pad.get("connected"), pose.get("hasPosition"), pose.get("hasOrientation"))
    )


def _numbers(poses: list[list[dict[str, Any]]], key: str, width: int) -> Floats:
    """(n, k, width) numbers of one field; NaN where it is not there."""
    rows = [[vector(pose.get(key), _DIGITS[:width]) for pose in row] for row in poses]
    return np.array(rows, np.float64).reshape(len(poses), -1, width)


def _device(slot: str, pads: list[dict[str, Any]]) -> TrackedDevice:
    """A controller, with its hand where the file says it."""
    first = next(pad for pad in pads if pad)
    hand = first.get("hand")
    role = f"{hand}_hand" if hand in ("left", "right") else ""
    device = device_for_role(role, f"gamepad{slot}", str(first.get("id", "")))
    return replace(device, device_class=DeviceClass.CONTROLLER)
