"""Numbers of devices put aside while a file is read: for formats that name a device only where it appears."""

from __future__ import annotations

from array import array
from collections.abc import Iterable

import numpy as np

from recordings.aside import file_aside
from vrik.arrays import Bools, Floats, Ints
from vrik.errors import RecordingError

IN_MEMORY_BYTES = 1 << 22
"""What one device may keep in memory before a file is made. [bytes]"""

MOST_DEVICES = 64
"""OpenVR knows no more devices; a file that names more is no recording of one person."""

_BUFFERED = 1 << 13  # numbers


class Samples:
    """The samples of one device: ``width`` numbers each, and the frame that each belongs to."""

    def __init__(self, width: int) -> None:
        self.width = width
        self._frames = array("q")
        self._waiting = array("d")
        self._file = file_aside(self, IN_MEMORY_BYTES)

    def __len__(self) -> int:
        return len(self._frames)

    def add(self, frame: int, numbers: Iterable[float]) -> None:
        """Put a sample aside."""
        self._frames.append(frame)
        self._waiting.extend(numbers)
        if len(self._waiting) >= _BUFFERED:
            self._write()

    def part(self, begin: int, end: int) -> Floats:
        """(end - begin, width) samples in the order in which they came."""
        self._write()
        self._file.seek(8 * self.width * begin)
        data = self._file.read(8 * self.width * (end - begin))
        return np.frombuffer(data, np.float64).reshape(-1, self.width)

    def of_frames(self, begin: int, end: int, frames: Ints | None = None) -> tuple[Floats, Bools]:
        """Samples of some frames side by side.

        Args:
            begin: The first frame.
            end: The one after the last.
            frames: (n,) the frame of each sample, where that is known only afterwards.

        Returns:
            (end - begin, width) numbers, NaN in frames without a sample, and (end - begin,) which have one.
        """
        stated = np.frombuffer(self._frames, np.int64) if frames is None else frames
        chosen = np.flatnonzero((stated >= begin) & (stated < end))
        numbers = np.full((end - begin, self.width), np.nan)
        present = np.zeros(end - begin, np.bool_)
        if len(chosen):
            first = int(chosen[0])
            at = stated[chosen] - begin
            numbers[at] = self.part(first, int(chosen[-1]) + 1)[chosen - first]
            present[at] = True
        return numbers, present

    def _write(self) -> None:
        if self._waiting:
            self._file.seek(0, 2)
            self._file.write(self._waiting.tobytes())
            self._waiting = array("d")


def too_many_devices(file_name: str) -> RecordingError:
    """The error for a file with more than ``MOST_DEVICES``."""
    return RecordingError(
        f"{file_name} names more than {MOST_DEVICES} devices; a recording of one person has "
        "fewer: leave the others out of the file"
    )


class SamplesByName:
    """The samples of all devices of a file, by name, in the order in which they appear."""

    def __init__(self, width: int, file_name: str) -> None:
        self.width = width
        self._file_name = file_name
        self._by_name: dict[str, Samples] = {}

    def __getitem__(self, name: str) -> Samples:
        """A device's samples; none, where it has not been met.

        Raises:
            RecordingError: If it is one device too many.
        """
        found = self._by_name.get(name)
        if found is None:
            if len(self._by_name) == MOST_DEVICES:
                raise too_many_devices(self._file_name)
            found = self._by_name[name] = Samples(self.width)
        return found

    @property
    def names(self) -> list[str]:
        """The devices met so far."""
        return list(self._by_name)

    def of_frames(self, names: list[str], begin: int, end: int) -> tuple[Floats, Bools]:
        """(end - begin, k, width) numbers of k devices, and (end - begin, k) where there is a sample."""
        both = [self._by_name[name].of_frames(begin, end) for name in names]
        numbers = np.stack([numbers for numbers, _ in both], axis=1)
        return numbers, np.stack([present for _, present in both], axis=1)
