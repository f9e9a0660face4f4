"""OpenVR tracking dump: ``[[dt_ms, [{position, rotation, name, color}, ...]], ...]``, Z up, not in metres.

Position = (-x, z, y) of OpenVR = C * p. The rotation is the angles (degrees, Rz * Ry * Rx) of C * R, whose
rows alone were permuted; C is undone from the left. The rest is known from the program that wrote the files,
CorniiDog/OpenVR_Simple_Tracking:

- Lengths are divided by 0.28, the metres of a stud in a building game. Files that are plainly in metres are
  read as such; nothing in a file names the unit, so a note says which was taken.
- ``dt_ms`` is how long the frame took after its poses were read, so a frame's time is the sum before it.
- The colour says what a device is: red and blue are controllers, green is a tracker, black the headset.
- A device that is switched off has position and angles zero.

A tracker called "Head" is strapped on anyhow, so it is turned to have a headset's axes; a note says how far.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from recordings.base import LoadedRecording, Recording, RecordingInfo
from recordings.importers.axes import device_for_role, is_measured, tracker_sequence
from recordings.importers.head_strap import headset_from_tracker
from recordings.importers.json_text import CUT_NOTE, number, read_json, read_text, vector
from recordings.importers.names import role_of_name
from vrik import quat
from vrik.arrays import Bools, Floats, Ints, Points, Quats
from vrik.errors import DamagedRecordingError, RecordingError
from vrik.frames import DeviceClass, TrackedDevice

C = np.array([[-1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, 1.0, 0.0]])
"""File from OpenVR; its own inverse."""

STUD_M = 0.28
"""The usual unit of length in these files. [m]"""

HEAD_RANGE_M = (0.8, 2.3)
"""The 95th percentile of a person's head heights is in here."""

LONGEST_STEP_MS = 86_400_000.0
"""A pause of more than a day between two frames is no pause."""

_COLORS = {
    "r": DeviceClass.CONTROLLER,
    "b": DeviceClass.CONTROLLER,
    "g": DeviceClass.GENERIC_TRACKER,
    "k": DeviceClass.HMD,
    "y": DeviceClass.TRACKING_REFERENCE,
}
_START = re.compile(r"\s*\[\s*\[\s*-?[\d.]+(?:[eE][-+]?\d+)?\s*,\s*\[\s*(?:\{|\])")


class OpenVrJsonImporter:
    """Reads the tracking dump ``.json``."""

    name = "openvr-json"
    summary = "OpenVR tracking dump: head and hands by name (JSON, Z up)"
    suffixes = (".json",)

    def recognises(self, head: bytes, path: Path) -> bool:
        """By a list of pairs: a number, and a list of objects with name, position and rotation."""
        text = head.decode("utf-8-sig", errors="replace")
        named = all(f'"{key}"' in text for key in ("position", "rotation", "name"))
        return named and _START.match(text) is not None

    def open(self, path: Path) -> Recording:
        """Read it whole; of a cut file, all whole frames before the cut.

        Raises:
            DamagedRecordingError: If it is broken before its first frame.
            RecordingError: If no frame is a time step and a list of devices.
        """
        data, cut = read_json(path, read_text(path), 1)
        counts: dict[str, int] = {}
        notes = [CUT_NOTE] if cut else []
        rows = [row for row in data if _is_frame(row)] if isinstance(data, list) else []
        skipped = len(data) - len(rows) if isinstance(data, list) else 0
        if not rows:
            kind = DamagedRecordingError if cut else RecordingError
            raise kind(f"{path.name} has no frame; expected [[milliseconds, [devices]], ...]")
        if skipped:
            counts["rows skipped"] = skipped
            notes.append(f"rows that are no frame, left out: {skipped}")
        frames = [_by_name(row[1]) for row in rows]
        names = list(dict.fromkeys(name for frame in frames for name in frame))
        place, angles, present = _arrays(frames, names)
        devices = tuple(
            _device(name, [frame[name].get("color") for frame in frames if name in frame]) for name in names
        )
        with np.errstate(invalid="ignore"):  # an infinite angle has no sine, and is no rotation
            turned = quat.from_euler("zyx", np.radians(angles[..., ::-1]))
        rotation: Quats = quat.multiply(quat.from_matrix(C.T), turned)
        with np.errstate(invalid="ignore"):  # infinity times zero; the sample is not valid then
            position: Points = place @ C
        heads = [i for i, device in enumerate(devices) if device.role == "head"]
        position *= _unit(position[:, heads[:1], 1], notes)
        valid = is_measured(position, rotation)
        rotation = _turned_head(devices, position, rotation, valid, notes)

        if missing := int(np.count_nonzero(~present)):
            counts["samples not tracked"] = missing
        if wrong := int(np.count_nonzero(present & ~valid)):
            counts["placeholder samples"] = wrong
            notes.append(f"samples that hold no pose: {wrong}; they are marked not valid")
        time_ns = _times([number(row[0]) for row in rows], counts, notes)
        sequence = tracker_sequence(time_ns, devices, position, rotation, valid)
        info = RecordingInfo(path, self.name, devices, counts=counts, notes=tuple(notes))
        return LoadedRecording(info, sequence)


def _is_frame(row: Any) -> bool:
    return isinstance(row, list) and len(row) == 2 and isinstance(row[1], list)


def _by_name(devices: list[Any]) -> dict[str, dict[str, Any]]:
    """Devices of one frame by name; a name that repeats gets a number."""
    found: dict[str, dict[str, Any]] = {}
    for device in devices:
        if not isinstance(device, dict):
            continue
        name = wanted = str(device.get("name", "")) or "device"
        copy = 2
        while name in found:
            name, copy = f"{wanted} {copy}", copy + 1
        found[name] = device
    return found


def _arrays(frames: list[dict[str, dict[str, Any]]], names: list[str]) -> tuple[Points, Floats, Bools]:
    """(n, k, 3) positions and angles as in the file, NaN where a device is not there; (n, k) where it is."""
    flat = [frame.get(name, {}) for frame in frames for name in names]
    shape = (len(frames), len(names), 3)
    place = np.array([vector(device.get("position"), "xyz") for device in flat]).reshape(shape)
    angles = np.array([vector(device.get("rotation"), "xyz") for device in flat]).reshape(shape)
    return place, angles, np.array([bool(device) for device in flat], np.bool_).reshape(shape[:2])


def _unit(head: Floats, notes: list[str]) -> float:
    """Metres in the file's unit, from the heights of the head in that unit, and a note about it."""
    seen = head[np.isfinite(head) & (head != 0.0)]
    low, high = HEAD_RANGE_M
    standing = float(np.percentile(seen, 95.0)) if len(seen) else 0.0
    if low <= standing <= high:
        notes.append(
            f"the unit is taken to be the metre: the head, {standing:.2f} in the file, is a person's height"
        )
        return 1.0
    told = f": the head, {standing:.2f} in the file, is {standing * STUD_M:.2f} m high" if len(seen) else ""
    notes.append(f"the unit is taken to be the one of the program that writes such files, {STUD_M} m{told}")
    return STUD_M


def _device(name: str, colors: list[Any]) -> TrackedDevice:
    """A device by its name, of the class that its colour states."""
    usual = device_for_role(role_of_name(name), name)
    stated = next((_COLORS[c] for c in colors if isinstance(c, str) and c in _COLORS), usual.device_class)
    return replace(usual, device_class=stated)


def _turned_head(
    devices: tuple[TrackedDevice, ...], position: Points, rotation: Quats, valid: Bools, notes: list[str]
) -> Quats:
    """Rotations, in which a tracker on the head has the axes of a headset."""
    row = {device.role: i for i, device in enumerate(devices) if device.role}
    head = row.get("head")
    if head is None or devices[head].device_class != DeviceClass.GENERIC_TRACKER:
        return rotation
    found = None
    if "left_hand" in row and "right_hand" in row:
        left, right = row["left_hand"], row["right_hand"]
        good = valid[:, head] & valid[:, left] & valid[:, right]
        found = headset_from_tracker(
            position[:, head], rotation[:, head], position[:, left], position[:, right], good
        )
    if found is None:
        notes.append(
            f"{devices[head].serial} is a tracker, and how it is strapped on cannot be told; its rotation is "
            "read as a headset's"
        )
        return rotation
    turn, up = found
    rotation = rotation.copy()
    rotation[:, head] = quat.multiply(rotation[:, head], turn)
    tilt_deg = np.degrees(np.arccos(np.clip(up[1], -1.0, 1.0)))
    notes.append(
        f"{devices[head].serial} is a tracker, strapped on {tilt_deg:.0f} "
        "degrees from upright; it is turned to have a headset's axes, upright and with the hands ahead on "
        "average"
    )
    return rotation


def _times(steps_ms: list[float], counts: dict[str, int], notes: list[str]) -> Ints:
    """(n,) times: the sum of the steps before each frame. [ns]"""
    steps = np.array(steps_ms, np.float64)
    with np.errstate(invalid="ignore"):
        good = (steps >= 0.0) & (steps < LONGEST_STEP_MS)
    if not good.all():
        counts["times out of order"] = int((~good).sum())
        notes.append(f"time steps that are negative or no number: {int((~good).sum())}; they count as zero")
    ends = np.cumsum(np.where(good, steps, 0.0))
    return np.round(np.append(0.0, ends)[: len(steps)] * 1e6).astype(np.int64)
