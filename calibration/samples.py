"""Device poses made safe for statistics: thinned out, and nothing but believable samples marked good."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vrik import quat
from vrik.arrays import Bools, Floats, Ints, Points, Quats
from vrik.frames import TrackedDevice, TrackerSequence

SAMPLE_RATE_HZ = 30.0
"""Fast enough to see whether somebody stands still, slow enough for an hour of data."""

MAX_DISTANCE_M = 100.0
"""A device farther from the origin than this is a number, not a place. [m]"""


@dataclass(frozen=True, slots=True, eq=False)
class Samples:
    """n rows of k devices without a NaN in them.

    Args:
        time_s: (n,) seconds since the first frame.
        devices: k devices.
        position: (n, k, 3); zero where not good. [m]
        rotation: (n, k, 4) unit quaternions; identity where not good.
        good: (n, k) whether the pose may be used.
    """

    time_s: Floats
    devices: tuple[TrackedDevice, ...]
    position: Points
    rotation: Quats
    good: Bools

    def __len__(self) -> int:
        return len(self.time_s)

    def column(self, serial: str) -> int | None:
        """Where a device is in the arrays, or None when it is not among them."""
        for i, device in enumerate(self.devices):
            if device.serial == serial:
                return i
        return None

    def part(self, rows: slice | Ints | Bools) -> Samples:
        """Some rows."""
        return Samples(
            self.time_s[rows], self.devices, self.position[rows], self.rotation[rows], self.good[rows]
        )

    def step_s(self) -> Floats:
        """(n,) time that each row stands for; gaps count as a tenth of a second at most. [s]"""
        if len(self) < 2:
            return np.full(len(self), 1.0 / SAMPLE_RATE_HZ)
        steps = np.clip(np.diff(self.time_s), 0.0, 0.1)
        return np.append(steps, steps[-1])


def take(frames: TrackerSequence, rate_hz: float = SAMPLE_RATE_HZ) -> Samples:
    """Every so many-th frame of a sequence, checked.

    A pose is good when its source calls it valid, its numbers are finite, its quaternion has length one
    (give or take 2 %) and it is not exactly at the origin, where drivers and files put devices they have
    not seen.
    """
    step = max(1, round(frames.rate_hz / rate_hz))
    frames = frames.part(slice(None, None, step))
    with np.errstate(invalid="ignore", over="ignore"):
        near = np.all(np.abs(frames.position) < MAX_DISTANCE_M, axis=-1)
        seen = np.any(frames.position != 0.0, axis=-1)
    good = frames.valid & near & seen & quat.is_rotation(frames.rotation)
    start = int(frames.time_ns[0]) if len(frames) else 0
    return Samples(
        np.asarray((frames.time_ns - start) * 1e-9, np.float64),
        frames.devices,
        np.where(good[..., None], frames.position, 0.0),
        quat.normalize(np.where(good[..., None], frames.rotation, quat.identity())),
        good,
    )
