"""What importers share: axis conversions, and the one form that samples have once they are ours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from vrik import quat
from vrik.arrays import Bools, Floats, Ints, Points, Quats
from vrik.frames import DeviceClass, TrackedDevice, TrackerSequence

FARTHEST_M = 1000.0
"""A tracked device farther than this from the origin is no measurement."""

LONGEST_S = 1e8
"""Times beyond three years are garbage, and would not fit into whole nanoseconds."""


def openvr_from_unity(position: Points, rotation: Quats) -> tuple[Points, Quats]:
    """From Unity's axes (left-handed, +Y up, +Z forward) to OpenVR's (right-handed, +Y up, -Z forward).

    The mirror flips one axis of the position and two imaginary parts of the rotation. It is its own inverse.

    Args:
        position: (..., 3). [m]
        rotation: (..., 4) quaternions (w, x, y, z).
    """
    return (
        np.asarray(position, np.float64) * np.array([1.0, 1.0, -1.0]),
        np.asarray(rotation, np.float64) * np.array([1.0, -1.0, -1.0, 1.0]),
    )


def device_for_role(role: str, serial: str, model: str = "") -> TrackedDevice:
    """The usual device of a role: a headset on the head, controllers in the hands, trackers elsewhere."""
    kinds = {
        "head": DeviceClass.HMD,
        "left_hand": DeviceClass.CONTROLLER,
        "right_hand": DeviceClass.CONTROLLER,
    }
    return TrackedDevice(serial, kinds.get(role, DeviceClass.GENERIC_TRACKER), role, model)


def is_measured(position: Points, rotation: Quats) -> Bools:
    """(...,) which samples can be a pose: finite, near, a real rotation, and not exactly at the origin."""
    x, y, z = np.moveaxis(np.asarray(position), -1, 0)  # along rows: numpy is slow at axes of three
    with np.errstate(invalid="ignore"):
        near = (np.abs(x) < FARTHEST_M) & (np.abs(y) < FARTHEST_M) & (np.abs(z) < FARTHEST_M)
    somewhere = (x != 0.0) | (y != 0.0) | (z != 0.0)
    return np.asarray(near & somewhere & quat.is_rotation(rotation))


def sign_flips(rotation: Quats, valid: Bools) -> int:
    """How often a quaternion has the opposite sign of the one before it, of the same device.

    Both signs are the same rotation, so this is no fault; :func:`tracker_sequence` turns them.

    Args:
        rotation: (n, k, 4) as the file states them.
        valid: (n, k) which of them are measured; a gap is bridged, for the signs go on over it.
    """
    flips = 0
    for k in range(valid.shape[1]):
        seen = np.asarray(rotation[valid[:, k], k], np.float64)
        flips += int(np.count_nonzero(np.einsum("ij,ij->i", seen[1:], seen[:-1]) < 0.0))
    return flips


def tell_sign_flips(flips: int, counts: dict[str, int], notes: list[str]) -> None:
    """Put sign flips into the counts and notes of a recording; nothing when there are none."""
    if flips:
        counts["sign flips"] = flips
        notes.append(
            f"quaternions change sign between neighbours {flips} times (the same rotation); "
            "they are turned to go on smoothly"
        )


def tracker_sequence(
    time_ns: Ints, devices: Sequence[TrackedDevice], position: Points, rotation: Quats, valid: Bools
) -> TrackerSequence:
    """Frames in their final form.

    Where ``valid`` is false the position is NaN and the rotation the identity. Valid rotations have
    length one, and the sign that is nearest to the last valid one of the same device.

    Args:
        time_ns: (n,) non-decreasing. [ns]
        devices: k devices.
        position: (n, k, 3) in OpenVR axes. [m]
        rotation: (n, k, 4) quaternions (w, x, y, z) in OpenVR axes.
        valid: (n, k).
    """
    if valid.all():  # nothing to hold, nothing to blank out
        return TrackerSequence.build(
            time_ns, devices, position, quat.continuous(quat.normalize(rotation)), valid
        )
    rows = np.where(valid, np.arange(len(valid))[:, None], -1)
    last = np.maximum.accumulate(rows, axis=0) if len(rows) else rows
    known = last >= 0
    held = np.take_along_axis(np.asarray(rotation, np.float64), np.maximum(last, 0)[..., None], axis=0)
    held = quat.continuous(quat.normalize(np.where(known[..., None], held, quat.identity())))
    return TrackerSequence.build(
        time_ns,
        devices,
        np.where(valid[..., None], position, np.nan),
        np.where(valid[..., None], held, quat.identity()),
        valid,
    )


class SignFlips:
    """:func:`sign_flips` over blocks that come one after the other.

    Args:
        devices: How many.
    """

    def __init__(self, devices: int) -> None:
        self.count = 0
        self._last = np.zeros((devices, 4))  # nothing yet: has no sign to differ from

    def add(self, rotation: Quats, valid: Bools) -> None:
        """Count the flips of a block, (n, k, 4) as the file states it, and that from the block before."""
        seen: Bools = np.ones((1, valid.shape[1]), np.bool_)
        self.count += sign_flips(np.concatenate([self._last[None], rotation]), np.concatenate([seen, valid]))
        for k in np.flatnonzero(valid.any(axis=0)):
            self._last[k] = rotation[np.flatnonzero(valid[:, k])[-1], k]


def nanoseconds(time_s: Floats) -> tuple[Ints, int]:
    """Seconds to whole, non-decreasing nanoseconds, and how many times had to be replaced.

    A time that is not finite, absurd, or before an earlier one takes the value of the last good one,
    so a clock that stands still or steps back gives steps of zero and never a negative one.
    """
    time_s = np.asarray(time_s, np.float64)
    with np.errstate(invalid="ignore"):
        good = np.abs(time_s) < LONGEST_S
    if not good.any():
        return np.zeros(len(time_s), np.int64), len(time_s)
    first = time_s[good][0]
    forward = np.maximum.accumulate(np.where(good, time_s, -LONGEST_S))
    forward = np.maximum(forward, first)
    replaced = int(np.count_nonzero(~good | (forward != time_s)))
    return np.round(forward * 1e9).astype(np.int64), replaced


def rows_of(shape: tuple[int, ...], value: Any) -> Floats | None:
    """``value`` as numbers of exactly this shape, -1 standing for any length; None when it is not."""
    try:
        array = np.asarray(value, np.float64)
    except (TypeError, ValueError, OverflowError):
        return None
    fits = array.ndim == len(shape) and all(w in (-1, g) for w, g in zip(shape, array.shape, strict=True))
    return array if fits else None
