"""The bytes of SlimeVR's PFR and PFS. Every count and length is checked against the bytes that are left."""

from __future__ import annotations

import math
import os
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, TypeVar

import numpy as np

from recordings.base import reading
from recordings.importers.slimevr_layout import (
    ALL_FLAGS,
    DESIGNATION,
    PACKET_BYTES,
    CutError,
    FaultError,
    Frame,
    Packet,
    is_name,
    poses,
    read_frame,
    read_header,
    read_numbers,
    read_packet,
    read_text,
)
from recordings.importers.slimevr_samples import Samples, Track
from vrik.arrays import Ints

T = TypeVar("T")

CHUNK_BYTES = 1 << 20
"""How much is read at a time."""

LARGEST_BYTES = 1 << 24
"""No packet is larger."""

FEW_ROWS, MOST_ROWS = 8, 1 << 15
"""How many frames of one layout are looked for at once: some at first, many once they were found."""

MOST_TRACKERS = 1024


@dataclass(slots=True)
class Contents:
    """What was read before the file ended."""

    samples: Samples = field(default_factory=Samples)
    interval_s: float = 0.0
    """0 when it is not stated. [s]"""
    hmd_height_m: float | None = None
    floor_height_m: float = 0.0
    size: int = 0
    """Of the file. [bytes]"""
    end: int = 0
    """Where reading stopped."""
    lost: int = 0
    """Frames that the file states and does not hold."""
    fault: str = ""


def looks_like_pfr(head: bytes) -> bool:
    """A believable tracker count, name, frame count and flags of the first frame."""
    try:
        (trackers,) = struct.unpack_from(">i", head)
        name, at = read_text(head, 4)
        frames, flags = struct.unpack_from(">ii", head, at) if len(head) >= at + 8 else (1, 0)
    except (FaultError, struct.error):
        return False
    return 1 <= trackers <= MOST_TRACKERS and is_name(name) and frames >= 0 and 0 <= flags <= ALL_FLAGS


def looks_like_pfs(head: bytes) -> bool:
    """Packets, one after the other, of which one names a tracker."""
    if not head or head[0] > 3:
        return False
    contents, tracks = Contents(), dict[int, Track]()
    at = 0
    try:
        while at < len(head):
            packet, at = read_packet(head, at)
            _take_in(packet, contents, tracks)
    except CutError:
        pass
    except FaultError:
        return False
    names = [track.name for track in tracks.values()]
    return bool(names) and all(map(is_name, names))


def walk_pfr(path: Path) -> Contents:
    """All trackers, each with all its frames."""
    contents = Contents()
    stated = trackers = 0
    tracks = contents.samples.tracks
    with path.open("rb") as stream:
        window = _Window(stream)
        try:
            (trackers,) = window.step(lambda data, at: read_numbers(">i", data, at))
            if not 0 <= trackers <= min(MOST_TRACKERS, window.size // 6):
                raise FaultError(f"it states {trackers} trackers in {window.size} bytes")
            for _ in range(trackers):
                name, stated = window.step(read_header)
                tracks.append(Track(name))
                _frames(window, tracks[-1], stated, contents.samples)
        except FaultError as fault:
            missing = trackers - len(tracks)
            contents.fault = window.told(fault) + (f", {missing} trackers are missing" if missing > 0 else "")
            if tracks:
                contents.lost = max(0, stated - tracks[-1].count)
    contents.end, contents.size = window.position, window.size
    contents.samples.put_aside(everything=True)
    return contents


def walk_pfs(path: Path) -> Contents:
    """All complete packets."""
    contents = Contents()
    tracks: dict[int, Track] = {}
    with path.open("rb") as stream:
        window = _Window(stream)
        try:
            while window.position < window.size:
                _round(window, contents, tracks)
                contents.samples.tracks = list(tracks.values())
                contents.samples.put_aside()
        except FaultError as fault:
            contents.fault = window.told(fault)
    contents.end, contents.size = window.position, window.size
    contents.samples.tracks = list(tracks.values())
    contents.samples.put_aside(everything=True)
    return contents


class _Window:
    """Some megabytes of a file at a time."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.size = os.fstat(stream.fileno()).st_size
        self.data = b""
        self.at = 0
        self.base = 0
        """Where ``data`` begins in the file."""

    @property
    def position(self) -> int:
        """Where reading is, in the file."""
        return self.base + self.at

    def step(self, read: Callable[[bytes, int], tuple[T, int]]) -> T:
        """One thing by a function that gives it and where it ends.

        Raises:
            FaultError: If that is no such thing.
        """
        while True:
            try:
                found, self.at = read(self.data, self.at)
                return found
            except CutError:
                more = self._stream.read(CHUNK_BYTES) if len(self.data) - self.at < LARGEST_BYTES else b""
                if not more:
                    raise
                self.data, self.base, self.at = self.data[self.at :] + more, self.position, 0
                reading(self.position, self.size)

    def told(self, fault: FaultError) -> str:
        """The fault, and where it is."""
        return str(fault) if isinstance(fault, CutError) else f"{fault} at byte {self.position}"


def _frames(window: _Window, track: Track, stated: int, samples: Samples) -> None:
    """The frames of one tracker of a PFR; stops at the end of the bytes, whatever number is stated."""
    number = 0
    while number < stated:
        begin = window.position
        frame = window.step(read_frame)
        _keep(track, number, frame)
        number += 1
        size = window.position - begin
        if window.base <= begin and not frame.flags & DESIGNATION:
            fixed = np.array(frame.fixed(), np.int64)
            for rows in _alike(window, size, fixed, stated - number):
                table = np.frombuffer(rows, frame.layout(0, size))
                track.add(np.arange(number, number + len(table)), poses(table))
                number += len(table)
        samples.put_aside()


def _round(window: _Window, contents: Contents, tracks: dict[int, Track]) -> None:
    """Packets of a PFS up to the tracker that came first, and all rounds of the same packets that follow."""
    begin, first = window.position, -1
    fixed: list[int] = []
    met: list[tuple[Track, Frame, int]] = []
    while window.position < window.size:
        at = window.position - begin
        packet = window.step(read_packet)
        _take_in(packet, contents, tracks)
        if packet.frame is None:
            return
        tracker = packet.numbers[0]
        first = tracker if first < 0 else first
        fixed += [at, at + 1, *(at + PACKET_BYTES + i for i in packet.frame.fixed())]
        met.append((tracks[tracker], packet.frame, at + PACKET_BYTES))
        if packet.frame.flags & DESIGNATION or len(met) > MOST_TRACKERS:
            return
        if window.data[window.at : window.at + 2] == bytes([2, first]):
            break
    if window.base > begin:  # the start is not in memory any more
        return
    size = window.position - begin
    for rows in _alike(window, size, np.array(fixed, np.int64), MOST_ROWS):
        for track, frame, offset in met:
            table = np.frombuffer(rows, frame.layout(offset, size))
            track.add(table["number"].astype(np.int64), poses(table))


def _alike(window: _Window, size: int, fixed: Ints, most: int) -> Iterator[bytes]:
    """Bytes that follow and repeat the ``size`` bytes before in the columns ``fixed``, rows at a time."""
    model = np.frombuffer(window.data, np.uint8, size, window.at - size)[fixed]
    rows = FEW_ROWS
    while True:
        count = min(rows, most, (len(window.data) - window.at) // size)
        if count <= 0:
            return
        table = np.frombuffer(window.data, np.uint8, count * size, window.at).reshape(count, size)
        same = (table[:, fixed] == model).all(axis=1)
        alike = count if same.all() else int(np.argmin(same))
        if alike:
            yield window.data[window.at : window.at + alike * size]
            window.at += alike * size
            most -= alike
        if alike < rows:
            return
        rows = min(4 * rows, MOST_ROWS)


def _take_in(packet: Packet, contents: Contents, tracks: dict[int, Track]) -> None:
    """Remember what a packet states."""
    numbers = packet.numbers
    if packet.kind == 0:
        contents.interval_s = float(str(np.float32(numbers[0])))  # 0.01 as written, not 0.00999999978
    elif packet.kind == 1:
        tracks.setdefault(numbers[0], Track(packet.name)).name = packet.name
    elif packet.frame is not None:
        _keep(tracks.setdefault(numbers[0], Track("")), numbers[1], packet.frame)
    elif math.isfinite(numbers[0]) and math.isfinite(numbers[1]):
        contents.hmd_height_m, contents.floor_height_m = float(numbers[0]), float(numbers[1])


def _keep(track: Track, number: int, frame: Frame) -> None:
    if frame.place:
        track.set_place(frame.place)
    track.add_one(number, frame.values)
