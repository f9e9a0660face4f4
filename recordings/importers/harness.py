"""What the accuracy harness's two kinds of file have in common."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from recordings.importers.axes import (
    LONGEST_S,
    device_for_role,
    is_measured,
    nanoseconds,
    rows_of,
    tracker_sequence,
)
from vrik.arrays import Bools, Floats, Points, Quats
from vrik.errors import RecordingError
from vrik.frames import ROLE, TrackedDevice, TrackerSequence
from vrik.skeleton import BONES, VRM_FROM_SMPL

STATURE_RANGE_M = (0.5, 2.6)


def harness_devices(names: Sequence[str], path: Path) -> tuple[TrackedDevice, ...]:
    """Devices whose serial and role is their name; unknown names keep an empty role.

    Raises:
        RecordingError: If there is none, or a name repeats.
    """
    if not names or len(set(names)) != len(names):
        raise RecordingError(
            f"{path.name} names the devices {', '.join(names) or '(none)'}; expected at least one, each once"
        )
    return tuple(device_for_role(name if name in ROLE else "", name) for name in names)


def frames_of(
    time_s: Floats,
    devices: Sequence[TrackedDevice],
    position: Points,
    rotation: Quats,
    stated: Bools,
    counts: dict[str, int],
    notes: list[str],
) -> TrackerSequence:
    """Frames of (n, k, ...) arrays; samples stated valid that hold no pose are counted and not believed."""
    time_ns, replaced = nanoseconds(time_s)
    valid = stated & is_measured(position, rotation)
    tell(replaced, int(np.count_nonzero(~stated)), int(np.count_nonzero(stated & ~valid)), counts, notes)
    return tracker_sequence(time_ns, devices, position, rotation, valid)


def tell(replaced: int, lost: int, wrong: int, counts: dict[str, int], notes: list[str]) -> None:
    """Count times that were replaced, samples stated not valid, and those stated valid that are no pose."""
    if replaced:
        counts["times out of order"] = replaced
        notes.append(f"times that are unreadable or step back: {replaced}; they repeat the time before")
    if lost:
        counts["samples not tracked"] = lost
    if wrong:
        counts["placeholder samples"] = wrong
        notes.append(f"samples that are stated valid but hold no pose: {wrong}; they are marked not valid")


def stature_of(value: Any) -> float | None:
    """``height_m`` when it is there and a person can have it. [m]"""
    stature = rows_of((), value)
    low, high = STATURE_RANGE_M
    return float(stature) if stature is not None and low <= float(stature) <= high else None


def skeleton_of(value: Any, path: Path) -> Points | None:
    """``skeleton_tpose`` in the order of ``BONES``. [m]

    Raises:
        RecordingError: If it is there and is not 22 points.
    """
    if value is None:
        return None
    joints = rows_of((len(BONES), 3), value)
    if joints is None or not np.all(np.abs(joints) < LONGEST_S):
        raise RecordingError(
            f"{path.name}: skeleton_tpose is {np.shape(value)}; expected {len(BONES)} finite points, (22, 3)"
        )
    return joints[VRM_FROM_SMPL]
