"""Frames put aside block by block in their final form, for readers that know the times only at the end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from recordings.base import RecordingInfo
from recordings.importers.axes import SignFlips
from recordings.importers.blocks import Sequencer
from recordings.spool import Spool, SpooledRecording
from vrik.arrays import Bools, Ints, Points, Quats
from vrik.frames import TrackedDevice

BLOCK_FRAMES = 4096
"""How many frames are worked on at a time."""


def spans(n: int) -> Iterator[tuple[int, int]]:
    """The blocks of n frames: the first, and the one after the last."""
    return ((begin, min(begin + BLOCK_FRAMES, n)) for begin in range(0, n, BLOCK_FRAMES))


class FrameBlocks:
    """A recording in the making.

    Args:
        devices: k devices.
    """

    def __init__(self, devices: Sequence[TrackedDevice]) -> None:
        self._sequencer = Sequencer(tuple(devices))
        self._spool = Spool()
        self._signs = SignFlips(len(devices))

    @property
    def flips(self) -> int:
        """How often a quaternion of the file has the opposite sign of the one before it."""
        return self._signs.count

    def add(
        self,
        position: Points,
        rotation: Quats,
        valid: Bools,
        linear_velocity: Points | None = None,
        angular_velocity: Points | None = None,
    ) -> None:
        """Put (n, k, ...) frames aside, as :func:`tracker_sequence` makes them; the times come at the end."""
        self._signs.add(rotation, valid)
        frames = self._sequencer.sequence(np.zeros(len(valid), np.int64), position, rotation, valid)
        self._spool.add(replace(frames, linear_velocity=linear_velocity, angular_velocity=angular_velocity))

    def recording(self, info: RecordingInfo, time_ns: Ints) -> SpooledRecording:
        """All that was put aside, with its times.

        Args:
            info: What is said about it.
            time_ns: (n,) times of all frames. [ns]
        """
        return self._spool.recording(info, time_ns)
