"""What SlimeVR's trackers measured, put aside tracker by tracker while the file is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from recordings.aside import file_aside
from vrik.arrays import Floats, Ints

Floats32: TypeAlias = NDArray[np.float32]

WIDTH = 7
"""Numbers of a sample: rotation x, y, z, w and position x, y, z; NaN: not given."""

IN_MEMORY_BYTES = 1 << 22
"""What is kept in memory before a temporary file is made. [bytes]"""

WAITING_SAMPLES = 1 << 16
"""So many samples of all trackers together are put aside at a time."""

_SAMPLE = np.dtype((np.float32, WIDTH))


@dataclass(slots=True)
class Track:
    """One tracker and its samples, each with the number of its frame."""

    name: str
    place: str = ""
    """A designation such as "body:hip", or the stored number as text."""
    moved_place: bool = False
    count: int = 0
    """Samples so far."""
    pieces: list[tuple[Ints, int]] = field(default_factory=list)
    """Rising frame numbers, and where their samples begin in the file [bytes]."""
    _numbers: list[Ints] = field(default_factory=list)
    _values: list[Floats32] = field(default_factory=list)
    _few_numbers: list[int] = field(default_factory=list)
    _few_values: list[tuple[float, ...]] = field(default_factory=list)

    def set_place(self, place: str) -> None:
        """Remember the first place that is stated."""
        self.moved_place = self.moved_place or bool(self.place and place != self.place)
        self.place = self.place or place

    def add_one(self, number: int, values: tuple[float, ...]) -> None:
        """The next sample."""
        self._few_numbers.append(number)
        self._few_values.append(values)
        self.count += 1

    def add(self, numbers: Ints, values: Floats32) -> None:
        """The next samples, (n,) and (n, 7)."""
        self._settle()
        self._numbers.append(numbers)
        self._values.append(values)
        self.count += len(numbers)

    def taken(self) -> tuple[Ints, Floats32]:
        """What was added since the last time, by rising number."""
        self._settle()
        numbers = np.concatenate([np.zeros(0, np.int64), *self._numbers])
        values = np.concatenate([np.zeros((0, WIDTH), np.float32), *self._values])
        self._numbers, self._values = [], []
        if np.any(np.diff(numbers) < 0):
            order = np.argsort(numbers, kind="stable")
            numbers, values = numbers[order], values[order]
        return numbers, values

    def _settle(self) -> None:
        if self._few_numbers:
            self._numbers.append(np.array(self._few_numbers, np.int64))
            self._values.append(np.array(self._few_values, np.float32))
            self._few_numbers, self._few_values = [], []


class Samples:
    """The samples of all tracks in one temporary file; a short recording stays in memory."""

    def __init__(self) -> None:
        self.tracks: list[Track] = []
        self._aside = 0
        self._file = file_aside(self, IN_MEMORY_BYTES)

    def put_aside(self, everything: bool = False) -> None:
        """Move what waits in the tracks into the file, once that is much, or ``everything``."""
        waiting = sum(track.count for track in self.tracks) - self._aside
        if waiting < WAITING_SAMPLES and not everything:
            return
        for track in self.tracks:
            numbers, values = track.taken()
            if len(numbers):
                track.pieces.append((numbers, self._file.seek(0, 2)))
                self._file.write(np.ascontiguousarray(values, np.float32).tobytes())
                self._aside += len(numbers)

    def numbers(self) -> Ints:
        """(n,) all frame numbers, each once, rising."""
        pieces = [numbers for track in self.tracks for numbers, _ in track.pieces]
        return np.unique(np.concatenate([np.zeros(0, np.int64), *pieces]))

    def of_frames(self, numbers: Sequence[int] | Ints) -> Floats:
        """(n, k, 7) what k tracks measured in frames of these rising numbers; the last of a repeated one."""
        wanted = np.asarray(numbers, np.int64)
        found = np.full((len(wanted), len(self.tracks), WIDTH), np.nan)
        for k, track in enumerate(self.tracks):
            for stated, begin in track.pieces:
                first, last = np.searchsorted(stated, wanted[0]), np.searchsorted(stated, wanted[-1], "right")
                if last > first:
                    self._file.seek(begin + int(first) * _SAMPLE.itemsize)
                    data = self._file.read(int(last - first) * _SAMPLE.itemsize)
                    rows = np.searchsorted(wanted, stated[first:last])
                    found[rows, k] = np.frombuffer(data, np.float32).reshape(-1, WIDTH)
        return found
