"""WebVR gamepad record: raw OpenVR controllers as the browser saw them, in a sitting space.

``{"startedAt": ms, "values": [{"recordedAt": ms, "data": {"0": gamepad, "1": gamepad, ...}}]}``. Arrays are
objects with digit keys. OpenVR's axes, metres; heights count from the seat's origin, so they are negative
without being below the floor, and nothing in the file says where the floor is.
"""

from __future__ import annotations

import re
from array import array
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from recordings.base import Recording, RecordingInfo
from recordings.importers.axes import device_for_role, is_measured, nanoseconds, tell_sign_flips
from recordings.importers.frame_blocks import FrameBlocks, spans
from recordings.importers.json_text import CUT_NOTE, BrokenJsonError, JsonStream, no_row, number, vector
from recordings.importers.samples_aside import SamplesByName
from vrik import quat
from vrik.arrays import Ints
from vrik.errors import DamagedRecordingError, RecordingError
from vrik.frames import DeviceClass, TrackedDevice

_DIGITS = ("0", "1", "2", "3")
_ROW = re.compile(r'"recordedAt"\s*:')
_VALUES = re.compile(r'"values"\s*:\s*\[')
_NUMBERS = {"position": 3, "orientation": 4, "linearVelocity": 3, "angularVelocity": 3}
"""What is kept of a pose, and how many numbers each; behind them, 1 where the pad says that it is tracked."""


@dataclass(slots=True, eq=False)
class _Record:
    """What is in the file."""

    pads: SamplesByName
    """By slot."""
    recorded_ms: array[float] = field(default_factory=lambda: array("d"))
    devices: dict[str, TrackedDevice] = field(default_factory=dict)
    skipped: int = 0

    def add(self, value: Any) -> None:
        """One member of the list of values."""
        pads = value.get("data") if isinstance(value, dict) else None
        if isinstance(pads, list):
            pads = {str(i): pad for i, pad in enumerate(pads)}
        if not isinstance(value, dict) or not isinstance(pads, dict):
            self.skipped += 1
            return
        for slot, pad in pads.items():
            if not _has_pose(slot, pad):
                continue
            pose = pad["pose"]
            numbers = [x for key, width in _NUMBERS.items() for x in vector(pose.get(key), _DIGITS[:width])]
            self.pads[slot].add(len(self.recorded_ms), [*numbers, float(_says_tracked(pad))])
            if slot not in self.devices:
                self.devices[slot] = _device(slot, pad)
        self.recorded_ms.append(number(value.get("recordedAt")))


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
        """Read it to the end, velocities too; of a cut file, all whole records before the cut.

        Raises:
            DamagedRecordingError: If it is broken before its first record.
            RecordingError: If no record holds a gamepad with a pose.
        """
        record, fault = _read(path)
        if fault is not None and not record.recorded_ms:
            raise no_row(path, fault)
        slots = sorted(record.devices, key=int)
        if not slots:
            kind = RecordingError if fault is None else DamagedRecordingError
            raise kind(
                f"{path.name} has no gamepad with a pose; expected values: [{{recordedAt, data}}, ...]"
            )
        counts: dict[str, int] = {}
        notes = [CUT_NOTE] if fault is not None else []
        if record.skipped:
            counts["rows skipped"] = record.skipped
            notes.append(f"records that cannot be read, left out: {record.skipped}")
        devices = tuple(record.devices[slot] for slot in slots)
        blocks = FrameBlocks(devices)
        lost = wrong = 0
        heights = []
        for begin, end in spans(len(record.recorded_ms)):
            numbers, _ = record.pads.of_frames(slots, begin, end)
            position, rotation = numbers[..., :3], quat.wxyz_from_xyzw(numbers[..., 3:7])
            said = numbers[..., 13] == 1.0
            valid = said & is_measured(position, rotation)
            lost += int(np.count_nonzero(~said))
            wrong += int(np.count_nonzero(said & ~valid))
            heights.append(position[valid][:, 1])
            blocks.add(position, rotation, valid, numbers[..., 7:10], numbers[..., 10:13])
        if lost:
            counts["samples not tracked"] = lost
        if wrong:
            counts["placeholder samples"] = wrong
            notes.append(f"samples that hold no pose: {wrong}; they are marked not valid")
        time_ns = _times(record, counts, notes)
        height_m = float(np.median(seen)) if len(seen := np.concatenate(heights)) else 0.0
        if height_m < 0.0:
            notes.append(
                f"sitting origin: the controllers are at {height_m:.2f} m, "
                "counted from the seat; the file does not say where the floor is, so heights stay as they are"
            )
        tell_sign_flips(blocks.flips, counts, notes)
        info = RecordingInfo(path, self.name, devices, counts=counts, notes=tuple(notes))
        return blocks.recording(info, time_ns)


def _read(path: Path) -> tuple[_Record, BrokenJsonError | None]:
    """All records that can be read, and why reading stopped before the end."""
    record = _Record(SamplesByName(14, path.name))
    with JsonStream(path) as stream:
        try:
            if stream.peek() != "{":
                stream.skip()
            else:
                for key in stream.members():
                    if key != "values":
                        stream.skip()
                        continue
                    record = _Record(SamplesByName(14, path.name))
                    if stream.peek() != "[":
                        stream.skip()
                        continue
                    for value in stream.values():
                        record.add(value)
            stream.end()
        except BrokenJsonError as fault:
            return record, fault
    return record, None


def _times(record: _Record, counts: dict[str, int], notes: list[str]) -> Ints:
    """Times of the records from the first one that has a time. [ns]"""
    ms = np.array(record.recorded_ms)
    known = ms[np.isfinite(ms)]
    with np.errstate(over="ignore"):
        time_ns, replaced = nanoseconds((ms - known[0]) * 1e-3 if len(known) else ms)
    if replaced:
        counts["times out of order"] = replaced
        notes.append(f"times that are unreadable or step back: {replaced}; they repeat the time before")
    return time_ns


def _has_pose(slot: str, pad: Any) -> bool:
    """Whether a member of ``data`` is a gamepad with a pose, under a number as a browser gives them."""
    numbered = len(slot) <= 3 and slot.isascii() and slot.isdigit()
    return numbered and isinstance(pad, dict) and isinstance(pad.get("pose"), dict)


def _says_tracked(pad: dict[str, Any]) -> bool:
    pose = pad["pose"]
    flags = (pad.get("connected"), pose.get("hasPosition"), pose.get("hasOrientation"))
    return not any(flag is False for flag in flags)


def _device(slot: str, pad: dict[str, Any]) -> TrackedDevice:
    """A controller, with its hand where the file says it."""
    hand = pad.get("hand")
    role = f"{hand}_hand" if hand in ("left", "right") else ""
    device = device_for_role(role, f"gamepad{slot}", str(pad.get("id", "")))
    return replace(device, device_class=DeviceClass.CONTROLLER)
