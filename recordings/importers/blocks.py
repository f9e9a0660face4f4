"""Frames in their final form, block by block, as if the file had been read whole."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from recordings.importers.axes import tracker_sequence
from vrik import quat
from vrik.arrays import Bools, Ints, Points, Quats
from vrik.frames import TrackedDevice, TrackerSequence


@dataclass(slots=True, eq=False)
class Sequencer:
    """:func:`tracker_sequence` for one block after the other.

    The sign of a rotation is that nearest to the last valid one of the device, also where that came in an
    earlier block.
    """

    devices: tuple[TrackedDevice, ...]
    _last: Quats = field(init=False)

    def __post_init__(self) -> None:
        self._last = np.zeros((len(self.devices), 4))

    def sequence(self, time_ns: Ints, position: Points, rotation: Quats, valid: Bools) -> TrackerSequence:
        """The next block; arguments as for :func:`tracker_sequence`."""
        frames = tracker_sequence(time_ns, self.devices, position, rotation, valid)
        if len(frames):
            for k in range(len(self.devices)):
                rows = np.flatnonzero(valid[:, k])
                if len(rows) == 0:  # the first to come will be nearest to the identity
                    self._last[k] = self._last[k] if self._last[k].any() else quat.identity()
                    continue
                if frames.rotation[rows[0], k] @ self._last[k] < 0.0:
                    frames.rotation[rows, k] *= -1.0
                self._last[k] = frames.rotation[rows[-1], k]
        return frames
