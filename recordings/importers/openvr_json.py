"""OpenVR tracking dump: ``[[dt_ms, [{position, rotation, name, color}, ...]], ...]``, Z up, not in metres.

Position = (-x, z, y) of OpenVR = C * p. The rotation is the angles (degrees, Rz * Ry * Rx) of C * R, whose
rows alone were permuted; C is undone from the left. The rest is known from the program that wrote the files,
CorniiDog/OpenVR_Simple_Tracking:

- Lengths are divided by 0.28, the metres of a stud in a building game. Nothing in a file names the unit:
  where the head is at a person's height in metres, centimetres or millimetres, that is taken. A note says
  which and why, and warns when no unit gives a person.
- ``dt_ms`` is how long the frame took after its poses were read, so a frame's time is the sum before it.
- The colour says what a device is: red and blue are controllers, green is a tracker, black the headset.
- A device that is switched off has position and angles zero.

A tracker called "Head" is strapped on anyhow, so it is turned to have a headset's axes; a note says how far.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from recordings.base import Recording, RecordingInfo
from recordings.importers.axes import device_for_role, is_measured
from recordings.importers.frame_blocks import FrameBlocks, spans
from recordings.importers.head_strap import Worn, headset_from_tracker
from recordings.importers.json_text import CUT_NOTE, BrokenJsonError, JsonStream, no_row, number, vector
from recordings.importers.names import role_of_name
from recordings.importers.samples_aside import SamplesByName
from vrik import quat
from vrik.arrays import Bools, Floats, Ints, Points, Quat, Quats
from vrik.errors import RecordingError
from vrik.frames import DeviceClass, TrackedDevice

C = np.array([[-1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, 1.0, 0.0]])
"""File from OpenVR; its own inverse."""

STUD_M = 0.28
"""The usual unit of length in these files. [m]"""

FOOT_M = 0.3048

UNITS_M = {"the metre": 1.0, "the centimetre": 0.01, "the millimetre": 0.001}
"""Other units, taken where they and only they make the head's height a person's. [m]"""

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
        """Read it to the end; of a cut file, all whole frames before the cut.

        Raises:
            DamagedRecordingError: If it is broken before its first frame.
            RecordingError: If no frame is a time step and a list of devices.
        """
        dump = _Dump(SamplesByName(6, path.name))
        fault = _read(path, dump)
        if not dump.steps_ms:
            if fault is not None:
                raise no_row(path, fault)
            raise RecordingError(f"{path.name} has no frame; expected [[milliseconds, [devices]], ...]")
        counts: dict[str, int] = {}
        notes = [CUT_NOTE] if fault is not None else []
        if dump.skipped:
            counts["rows skipped"] = dump.skipped
            notes.append(f"rows that are no frame, left out: {dump.skipped}")
        devices = tuple(_device(name, kind) for name, kind in dump.kinds.items())
        roles = {device.role: device.serial for device in reversed(devices) if device.role}
        session = _Session(dump, _unit(dump, roles.get("head"), notes))
        turn = _turn_of_head(session, devices, roles, notes)
        blocks = FrameBlocks(devices)
        missing = wrong = 0
        for begin, end in spans(len(dump.steps_ms)):
            position, rotation, valid, present = session.part(list(dump.kinds), begin, end)
            if turn is not None:
                head = list(dump.kinds).index(roles["head"])
                rotation[:, head] = quat.multiply(rotation[:, head], turn)
            missing += int(np.count_nonzero(~present))
            wrong += int(np.count_nonzero(present & ~valid))
            blocks.add(position, rotation, valid)
        if missing:
            counts["samples not tracked"] = missing
        if wrong:
            counts["placeholder samples"] = wrong
            notes.append(f"samples that hold no pose: {wrong}; they are marked not valid")
        time_ns = _times(np.array(dump.steps_ms), counts, notes)
        info = RecordingInfo(path, self.name, devices, counts=counts, notes=tuple(notes))
        return blocks.recording(info, time_ns)


@dataclass(slots=True, eq=False)
class _Dump:
    """What is in the file: samples of a position and three angles by name, and how long each frame took."""

    samples: SamplesByName
    steps_ms: array[float] = field(default_factory=lambda: array("d"))
    kinds: dict[str, DeviceClass | None] = field(default_factory=dict)
    """Name of each device to the class that its colour states first."""
    skipped: int = 0

    def add(self, row: Any) -> None:
        """One member of the outer list."""
        if not (isinstance(row, list) and len(row) == 2 and isinstance(row[1], list)):
            self.skipped += 1
            return
        seen: set[str] = set()
        for device in row[1]:
            if not isinstance(device, dict):
                continue
            name = wanted = str(device.get("name", "")) or "device"
            copy = 2
            while name in seen:  # a name that repeats gets a number
                name, copy = f"{wanted} {copy}", copy + 1
            seen.add(name)
            samples = self.samples[name]
            if self.kinds.get(name) is None:
                color = device.get("color")
                self.kinds[name] = _COLORS.get(color) if isinstance(color, str) else None
            if device:
                numbers = vector(device.get("position"), "xyz") + vector(device.get("rotation"), "xyz")
                samples.add(len(self.steps_ms), numbers)
        self.steps_ms.append(number(row[0]))


def _read(path: Path, dump: _Dump) -> BrokenJsonError | None:
    """Fill the dump. Returns why reading stopped before the end."""
    with JsonStream(path) as stream:
        try:
            if stream.peek() == "[":
                for row in stream.values():
                    dump.add(row)
            else:
                stream.skip()
            stream.end()
        except BrokenJsonError as fault:
            return fault
    return None


@dataclass(frozen=True, slots=True, eq=False)
class _Session:
    """A dump whose unit is known."""

    dump: _Dump
    unit_m: float

    def part(self, names: list[str], begin: int, end: int) -> tuple[Points, Quats, Bools, Bools]:
        """Positions, rotations, which are valid and which are there at all, of some frames of k devices."""
        if not names:
            n = end - begin
            none = np.zeros((n, 0), np.bool_)
            return np.zeros((n, 0, 3)), np.zeros((n, 0, 4)), none, none
        numbers, present = self.dump.samples.of_frames(names, begin, end)
        with np.errstate(invalid="ignore"):  # an infinite angle has no sine, and is no rotation
            turned = quat.from_euler("zyx", np.radians(numbers[..., :2:-1]))
            position: Points = numbers[..., :3] @ C * self.unit_m  # infinity times zero: not valid then
        rotation: Quats = quat.multiply(quat.from_matrix(C.T), turned)
        return position, rotation, is_measured(position, rotation), present


def _unit(dump: _Dump, head: str | None, notes: list[str]) -> float:
    """The file's unit in metres, from heights of the head or of the highest device, and a note about it."""
    heights = [_standing(dump, name) for name in ([head] if head else dump.kinds)]
    height = max(heights, default=0.0)
    what = "head" if head else "highest device"
    low, high = HEAD_RANGE_M
    for name, unit_m in UNITS_M.items():
        if low <= height * unit_m <= high:
            notes.append(
                f"the unit is taken to be {name}: the {what}, {height:.2f} in the file, is at a person's "
                f"height then; positions are multiplied by {unit_m:g}"
            )
            return unit_m
    told = f": the {what}, {height:.2f} in the file, is {height * STUD_M:.2f} m high" if height else ""
    notes.append(
        f"the unit is taken to be the one of the program that writes such files, {STUD_M} m{told}; positions "
        f"are multiplied by {STUD_M}"
    )
    if low <= height * STUD_M <= high:
        notes.append(
            f"feet would give numbers of the same size, and {height * FOOT_M:.2f} m: if the file has feet, "
            "bring its positions to metres, for a file in metres is read as it is"
        )
    elif height:
        notes.append(
            "no unit that is known makes that a person's height: if the file has another, bring positions "
            "to metres, for a file in metres is read as it is"
        )
    return STUD_M


def _standing(dump: _Dump, name: str) -> float:
    """The 95th percentile of a device's heights, in the file's unit; 0 without any."""
    samples = dump.samples[name]
    z = np.concatenate([np.zeros(0), *(samples.part(*span)[:, 2] for span in spans(len(samples)))])
    seen = z[np.isfinite(z) & (z != 0.0)]
    return float(np.percentile(seen, 95.0)) if len(seen) else 0.0


def _device(name: str, kind: DeviceClass | None) -> TrackedDevice:
    """A device by its name, of the class that its colour states."""
    usual = device_for_role(role_of_name(name), name)
    return usual if kind is None else replace(usual, device_class=kind)


def _turn_of_head(
    session: _Session, devices: tuple[TrackedDevice, ...], roles: dict[str, str], notes: list[str]
) -> Quat | None:
    """How a tracker on the head is turned to have the axes of a headset; None when it stays as it is."""
    head = roles.get("head")
    kind = next((device.device_class for device in devices if device.serial == head), None)
    if head is None or kind != DeviceClass.GENERIC_TRACKER:
        return None
    found = None
    if "left_hand" in roles and "right_hand" in roles:
        names = [head, roles["left_hand"], roles["right_hand"]]

        def worn() -> Iterator[Worn]:
            for begin, end in spans(len(session.dump.steps_ms)):
                position, rotation, valid, _ = session.part(names, begin, end)
                good: Bools = valid[:, 0] & valid[:, 1] & valid[:, 2]
                yield Worn(position[:, 0], rotation[:, 0], position[:, 1], position[:, 2], good)

        found = headset_from_tracker(worn)
    if found is None:
        notes.append(
            f"{head} is a tracker, and how it is strapped on cannot be told; its rotation is "
            "read as a headset's"
        )
        return None
    turn, up = found
    tilt_deg = np.degrees(np.arccos(np.clip(up[1], -1.0, 1.0)))
    notes.append(
        f"{head} is a tracker, strapped on {tilt_deg:.0f} "
        "degrees from upright; it is turned to have a headset's axes, upright and with the hands ahead on "
        "average"
    )
    return turn


def _times(steps: Floats, counts: dict[str, int], notes: list[str]) -> Ints:
    """(n,) times: the sum of the steps before each frame. [ns]"""
    with np.errstate(invalid="ignore"):
        good = (steps >= 0.0) & (steps < LONGEST_STEP_MS)
    if not good.all():
        counts["times out of order"] = int((~good).sum())
        notes.append(f"time steps that are negative or no number: {int((~good).sum())}; they count as zero")
    ends = np.cumsum(np.where(good, steps, 0.0))
    return np.round(np.append(0.0, ends)[: len(steps)] * 1e6).astype(np.int64)
