"""Blocks of frames put aside while a file is read, so that an hour of any kind does not sit in memory.

A short recording stays in memory; a long one goes to a temporary file that disappears with the recording.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy

from recordings.aside import file_aside
from recordings.base import ROW_ARRAYS, RecordingInfo
from vrik.arrays import Ints
from vrik.frames import TrackedDevice, TrackerSequence

IN_MEMORY_BYTES = 1 << 24
"""What is kept in memory before a file is made. [bytes]"""

BLOCK_FRAMES = 8192
"""Longer parts are put aside in pieces of this many frames."""


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class SpooledRecording:
    """A recording whose frames were put aside in a :class:`Spool`."""

    info: RecordingInfo
    time_ns: Ints
    _spool: Spool

    @property
    def frame_count(self) -> int:
        """How many frames there are."""
        return len(self.time_ns)

    def blocks(self) -> Iterator[TrackerSequence]:
        """The frames in order, as often as asked."""
        begin = 0
        for where, length in self._spool.parts:
            time_ns = self.time_ns[begin : begin + length]
            yield self._spool.load(where, time_ns, self.info.devices)
            begin += length


@dataclass(slots=True, eq=False, weakref_slot=True)
class Spool:
    """Takes the frames of a recording part by part, then is a recording.

    ``spool.add(part)`` for each, then ``spool.recording(info)``. All parts have the same devices.
    """

    parts: list[tuple[int, int]] = field(default_factory=list)
    """Where each part begins in the file [bytes], and its number of frames."""

    _times: list[Ints] = field(default_factory=list)
    _player_space: tuple[str, str] = ("", "")
    _file: IO[bytes] = field(init=False)

    def __post_init__(self) -> None:
        self._file = file_aside(self, IN_MEMORY_BYTES)

    def add(self, part: TrackerSequence) -> None:
        """Put some frames aside; a part without frames is nothing."""
        self._player_space = (part.player_id, part.space_id)
        for begin in range(0, len(part), BLOCK_FRAMES):
            piece = part.part(slice(begin, begin + BLOCK_FRAMES))
            self.parts.append((self._file.seek(0, 2), len(piece)))
            self._times.append(np.array(piece.time_ns))
            for name in ROW_ARRAYS[1:]:
                array = getattr(piece, name)
                npy.write_array(self._file, np.zeros(0) if array is None else np.ascontiguousarray(array))

    def recording(self, info: RecordingInfo, time_ns: Ints | None = None) -> SpooledRecording:
        """What was put aside, as a recording.

        Args:
            info: What is said about it; its devices are those of the parts.
            time_ns: (n,) times of all frames where they are known only at the end; the parts' otherwise. [ns]
        """
        times = np.concatenate([np.zeros(0, np.int64), *self._times]) if time_ns is None else time_ns
        return SpooledRecording(info, times, self)

    def load(self, where: int, time_ns: Ints, devices: tuple[TrackedDevice, ...]) -> TrackerSequence:
        """The part that begins at ``where``."""
        self._file.seek(where)
        arrays = [npy.read_array(self._file) for _ in ROW_ARRAYS[1:]]
        known: dict[str, Any] = {
            name: None if array.ndim == 1 else array
            for name, array in zip(ROW_ARRAYS[1:], arrays, strict=True)
        }
        player, space = self._player_space
        return TrackerSequence(time_ns, devices, **known, player_id=player, space_id=space)
