"""The bytes of SlimeVR's PFR and PFS. Every count and length is checked against the bytes that are left."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np

from vrik.arrays import Floats, Ints

MOST_TRACKERS = 1024
LONGEST_NAME = 512
INTERVALS_S = (1e-4, 10.0)
"""Frame intervals that are believed."""

_NOTHING = (math.nan,) * 7
_PARTS = ("4f", "3f", "i", "3f", "4f")
"""What bits 1 to 5 of the flags announce: rotation, position, body place, acceleration, raw rotation."""

_LAYOUTS = {
    sum(2 << i for i, given in enumerate(bits) if given): struct.Struct(
        ">" + "".join(part for part, given in zip(_PARTS, bits, strict=True) if given)
    )
    for bits in product((False, True), repeat=5)
}
_DESIGNATION, _ROTATION, _POSITION, _PLACE = 1, 2, 4, 8
_ALL_FLAGS = 63


class FaultError(Exception):
    """The bytes end here, or make no sense from here on."""


@dataclass(slots=True)
class Track:
    """One tracker: frames by number, each rotation x, y, z, w and position x, y, z; NaN: not given."""

    name: str
    place: str = ""
    """A designation such as "body:hip", or the stored number as text."""
    moved_place: bool = False
    frames: dict[int, tuple[float, ...]] = field(default_factory=dict)

    def numbers(self) -> Ints:
        """(n,) frame numbers, rising."""
        return np.array(sorted(self.frames), np.int64)

    def values(self) -> Floats:
        """(n, 7) in the order of :meth:`numbers`."""
        rows = [self.frames[number] for number in sorted(self.frames)]
        return np.array(rows, np.float64).reshape(len(rows), 7)

    def set_place(self, place: str) -> None:
        """Remember the first place that is stated."""
        self.moved_place = self.moved_place or bool(self.place and place != self.place)
        self.place = self.place or place


@dataclass(slots=True)
class Contents:
    """What was read before the file ended."""

    tracks: list[Track] = field(default_factory=list)
    interval_s: float = 0.0
    """0 when it is not stated. [s]"""
    hmd_height_m: float | None = None
    floor_height_m: float = 0.0
    end: int = 0
    """Where reading stopped."""
    lost: int = 0
    """Frames that the file states and does not hold."""
    fault: str = ""


def looks_like_pfr(head: bytes) -> bool:
    """A believable tracker count, name, frame count and flags of the first frame."""
    try:
        (trackers,) = struct.unpack_from(">i", head)
        name, at = _text(head, 4)
        frames, flags = struct.unpack_from(">ii", head, at) if len(head) >= at + 8 else (1, 0)
    except (FaultError, struct.error):
        return False
    return 1 <= trackers <= MOST_TRACKERS and _is_name(name) and frames >= 0 and 0 <= flags <= _ALL_FLAGS


def looks_like_pfs(head: bytes) -> bool:
    """Packets, one after the other, of which one names a tracker."""
    if not head or head[0] > 3:
        return False
    contents = Contents()
    tracks: dict[int, Track] = {}
    at = 0
    try:
        while at < len(head):
            at = _packet(head, at, contents, tracks)
    except FaultError as fault:
        if "ends inside" not in str(fault):
            return False
    names = [track.name for track in tracks.values()]
    return bool(names) and all(map(_is_name, names))


def walk_pfr(data: bytes) -> Contents:
    """All trackers, each with all its frames."""
    contents = Contents()
    at = 0
    stated = trackers = 0
    try:
        (trackers,), at = _take(">i", data, at)
        if not 0 <= trackers <= min(MOST_TRACKERS, len(data) // 6):
            raise FaultError(f"it states {trackers} trackers in {len(data)} bytes")
        for _ in range(trackers):
            name, at = _text(data, at)
            (stated,), at = _take(">i", data, at)
            if stated < 0:
                raise FaultError(f"tracker {name!r} states {stated} frames")
            track = Track(name)
            contents.tracks.append(track)
            contents.end = at
            for number in range(stated):  # stops at the end of the bytes, whatever number is stated
                at = _frame(data, at, track, number)
                contents.end = at
    except FaultError as fault:
        missing = trackers - len(contents.tracks)
        contents.fault = str(fault) + (f", {missing} trackers are missing" if missing > 0 else "")
        if contents.tracks:
            contents.lost = max(0, stated - len(contents.tracks[-1].frames))
    return contents


def walk_pfs(data: bytes) -> Contents:
    """All complete packets."""
    contents = Contents()
    tracks: dict[int, Track] = {}
    try:
        while contents.end < len(data):
            contents.end = _packet(data, contents.end, contents, tracks)
    except FaultError as fault:
        contents.fault = str(fault)
    contents.tracks = list(tracks.values())
    return contents


def _packet(data: bytes, at: int, contents: Contents, tracks: dict[int, Track]) -> int:
    """Read one packet of a PFS; returns where the next one begins."""
    kind, begin = data[at], at
    at += 1
    if kind == 0:
        (interval_s,), at = _take(">f", data, at)
        if not INTERVALS_S[0] <= interval_s <= INTERVALS_S[1]:
            raise FaultError(f"a frame interval of {interval_s:g} s at byte {begin}")
        contents.interval_s = float(str(np.float32(interval_s)))  # 0.01 that was written, not 0.00999999978
    elif kind == 1:
        (tracker,), at = _take(">B", data, at)
        name, at = _text(data, at)
        tracks.setdefault(tracker, Track(name)).name = name
    elif kind == 2:
        (tracker, number), at = _take(">BI", data, at)
        track = tracks.get(tracker) or Track("")
        at = _frame(data, at, track, number)
        tracks[tracker] = track
    elif kind == 3:
        (hmd_m, floor_m, count), at = _take(">ffH", data, at)
        for _ in range(count):
            _, at = _text(data, at)
            _, at = _take(">f", data, at)
        if math.isfinite(hmd_m) and math.isfinite(floor_m):
            contents.hmd_height_m, contents.floor_height_m = float(hmd_m), float(floor_m)
    else:
        raise FaultError(f"a packet of the unknown kind {kind} at byte {begin}")
    return at


def _frame(data: bytes, at: int, track: Track, number: int) -> int:
    """Read one frame into ``track``; returns where the next thing begins."""
    (flags,), after = _take(">i", data, at)
    if flags & ~_ALL_FLAGS:
        raise FaultError(f"a frame with unknown flags {flags:#x} at byte {at}")
    at = after
    place = ""
    if flags & _DESIGNATION:
        place, at = _text(data, at)
    layout = _LAYOUTS[flags & ~_DESIGNATION]
    if layout.size > len(data) - at:
        raise FaultError("it ends inside a frame")
    values = layout.unpack_from(data, at)
    at += layout.size
    rotation, position, i = _NOTHING[:4], _NOTHING[:3], 0
    if flags & _ROTATION:
        rotation, i = values[:4], 4
    if flags & _POSITION:
        position, i = values[i : i + 3], i + 3
    if flags & _PLACE:
        place = str(values[i])
    if place:
        track.set_place(place)
    track.frames[number] = rotation + position
    return at


def _take(layout: str, data: bytes, at: int) -> tuple[tuple[Any, ...], int]:
    size = struct.calcsize(layout)
    if size > len(data) - at:
        raise FaultError("it ends inside a packet")
    return struct.unpack_from(layout, data, at), at + size


def _text(data: bytes, at: int) -> tuple[str, int]:
    """A counted string and where it ends."""
    (size,), at = _take(">H", data, at)
    if size > len(data) - at:
        raise FaultError("it ends inside a string")
    return data[at : at + int(size)].decode("utf-8", errors="replace"), at + int(size)


def _is_name(name: str) -> bool:
    return 0 < len(name) <= LONGEST_NAME and name.isprintable() and "\ufffd" not in name
