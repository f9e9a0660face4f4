"""The smallest parts of SlimeVR's PFR and PFS: strings, frames, packets. Big endian, as Java writes them.

Each ``read_`` function takes bytes and where to begin, and gives what stands there and where it ends.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from recordings.importers.slimevr_samples import WIDTH, Floats32

PACKET_BYTES = 6
"""Kind, tracker and number before the frame in a packet of a PFS."""

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
DESIGNATION, _ROTATION, _POSITION, _PLACE = 1, 2, 4, 8
ALL_FLAGS = 63


class FaultError(Exception):
    """The bytes make no sense from here on."""


class CutError(FaultError):
    """The bytes end here."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame of one tracker as it stands in the file."""

    flags: int
    place: str
    begin: int
    """Of the numbers behind the flags and the designation, from the start of the frame."""
    values: tuple[float, ...]

    def fixed(self) -> list[int]:
        """Bytes from the start of the frame that are the same in frames alike: the flags and the place."""
        at = self.begin + 16 * bool(self.flags & _ROTATION) + 12 * bool(self.flags & _POSITION)
        return [*range(4), *(range(at, at + 4) if self.flags & _PLACE else ())]

    def layout(self, offset: int, size: int) -> np.dtype[np.void]:
        """Number (in a packet) and pose of a frame ``offset`` bytes behind the start of ``size`` bytes."""
        fields = {"number": (">u4", offset - 4)} if offset else {}
        at = offset + self.begin
        if self.flags & _ROTATION:
            fields["rotation"] = (">4f4", at)
            at += 16
        if self.flags & _POSITION:
            fields["position"] = (">3f4", at)
        formats, offsets = [f for f, _ in fields.values()], [o for _, o in fields.values()]
        return np.dtype({"names": list(fields), "formats": formats, "offsets": offsets, "itemsize": size})


@dataclass(frozen=True, slots=True)
class Packet:
    """One packet of a PFS: what it states, by kind; ``frame`` in a packet of kind 2 only."""

    kind: int
    numbers: tuple[Any, ...] = ()
    name: str = ""
    frame: Frame | None = None


def read_packet(data: bytes, at: int) -> tuple[Packet, int]:
    """One packet of a PFS and where the next one begins."""
    (kind,), at = read_numbers(">B", data, at)
    if kind == 0:
        numbers, at = read_numbers(">f", data, at)
        if not INTERVALS_S[0] <= numbers[0] <= INTERVALS_S[1]:
            raise FaultError(f"a frame interval of {numbers[0]:g} s")
        return Packet(kind, numbers), at
    if kind == 1:
        numbers, at = read_numbers(">B", data, at)
        name, at = read_text(data, at)
        return Packet(kind, numbers, name), at
    if kind == 2:
        numbers, at = read_numbers(">BI", data, at)
        frame, at = read_frame(data, at)
        return Packet(kind, numbers, frame=frame), at
    if kind == 3:
        numbers, at = read_numbers(">ffH", data, at)
        for _ in range(numbers[2]):
            _, at = read_text(data, at)
            _, at = read_numbers(">f", data, at)
        return Packet(kind, numbers), at
    raise FaultError(f"a packet of the unknown kind {kind}")


def read_header(data: bytes, at: int) -> tuple[tuple[str, int], int]:
    """A tracker's name and how many frames it states."""
    name, at = read_text(data, at)
    (stated,), at = read_numbers(">i", data, at)
    if stated < 0:
        raise FaultError(f"tracker {name!r} states {stated} frames")
    return (name, stated), at


def read_frame(data: bytes, begin: int) -> tuple[Frame, int]:
    """One frame and where the next thing begins."""
    (flags,), at = read_numbers(">i", data, begin)
    if flags & ~ALL_FLAGS:
        raise FaultError(f"a frame with unknown flags {flags:#x}")
    place = ""
    if flags & DESIGNATION:
        place, at = read_text(data, at)
    layout = _LAYOUTS[flags & ~DESIGNATION]
    if layout.size > len(data) - at:
        raise CutError("it ends inside a frame")
    values = layout.unpack_from(data, at)
    rotation, position, i = _NOTHING[:4], _NOTHING[:3], 0
    if flags & _ROTATION:
        rotation, i = values[:4], 4
    if flags & _POSITION:
        position, i = values[i : i + 3], i + 3
    if flags & _PLACE:
        place = str(values[i])
    return Frame(flags, place, at - begin, rotation + position), at + layout.size


def read_numbers(layout: str, data: bytes, at: int) -> tuple[tuple[Any, ...], int]:
    """Numbers of a ``struct`` layout.

    Raises:
        CutError: If the bytes end before.
    """
    size = struct.calcsize(layout)
    if size > len(data) - at:
        raise CutError("it ends inside a packet")
    return struct.unpack_from(layout, data, at), at + size


def read_text(data: bytes, at: int) -> tuple[str, int]:
    """A counted string and where it ends."""
    (size,), at = read_numbers(">H", data, at)
    if size > len(data) - at:
        raise CutError("it ends inside a string")
    return data[at : at + int(size)].decode("utf-8", errors="replace"), at + int(size)


def is_name(name: str) -> bool:
    """Whether a tracker can be called so."""
    return 0 < len(name) <= LONGEST_NAME and name.isprintable() and "\ufffd" not in name


def poses(table: Any) -> Floats32:
    """(n, 7) rotation and position, NaN where the file does not give them."""
    found = np.full((len(table), WIDTH), np.nan, np.float32)
    names = table.dtype.names or ()
    if "rotation" in names:
        found[:, :4] = table["rotation"]
    if "position" in names:
        found[:, 4:] = table["position"]
    return found
