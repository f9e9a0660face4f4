"""From blocks of numbers to a recording: times, validity, signs, and what there is to tell."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from recordings.base import LoadedRecording, Recording, RecordingInfo, join
from recordings.csv_table import Table, Tally, read_blocks
from recordings.importers.axes import is_measured, nanoseconds, tracker_sequence
from vrik import quat
from vrik.arrays import Bools, Floats, Points, Quats
from vrik.frames import DeviceClass, TrackedDevice, TrackerSequence, TrackingResult


@dataclass(frozen=True, slots=True, eq=False)
class BlockRecording:
    """A recording that was read in blocks and stays in them, so that nothing is held twice."""

    info: RecordingInfo
    parts: tuple[TrackerSequence, ...]

    def blocks(self) -> Iterator[TrackerSequence]:
        """The blocks in order."""
        yield from self.parts


@dataclass(frozen=True, slots=True, eq=False)
class Samples:
    """Poses of n rows and k devices in OpenVR axes.

    Args:
        position: (n, k, 3); NaN where a cell is blank. [m]
        rotation: (n, k, 4) quaternions (w, x, y, z); NaN where a cell is blank.
        stated: (n, k) false where the file says that the device is not tracked; None when it never says.
        empty: (n, k) true where every number of the sample is zero; None: where the position is.
    """

    position: Points
    rotation: Quats
    stated: Bools | None = None
    empty: Bools | None = None


def recording_of(
    table: Table,
    tally: Tally,
    name: str,
    devices: tuple[TrackedDevice, ...],
    samples_of: Callable[[Floats], Samples],
    seconds_of: Callable[[Floats], Floats],
    *,
    rotation_only: Bools | None = None,
    stature_m: float | None = None,
) -> Recording:
    """Read a table whose first wanted column is the time.

    Args:
        table: How to read it; ``columns`` begins with the time.
        tally: Takes counts and notes; may hold some already.
        name: Of the format.
        devices: k devices.
        samples_of: The other (n, columns - 1) numbers to poses.
        seconds_of: All (rows,) numbers of the time column to seconds.
        rotation_only: (k,) devices that have no position: their samples keep the rotation, are not valid and
            are FALLBACK_ROTATION_ONLY.
        stature_m: When the file or the user states it. [m]

    Raises:
        RecordingError: If it cannot be read, or no row is whole.
    """
    turning = np.zeros(len(devices), np.bool_) if rotation_only is None else rotation_only
    worn = np.array([d.device_class != DeviceClass.TRACKING_REFERENCE for d in devices])
    times, parts, tracked = [], [], False
    last = quat.identity(len(devices))
    for values in read_blocks(table, tally):
        samples = samples_of(values[:, 1:])
        part, valid = _frames(samples, devices, turning, worn, tally.counts)
        tracked = tracked or bool(valid[:, worn].any())
        last = _keep_signs(part.rotation, valid, last)
        times.append(values[:, 0])
        parts.append(part)
    tally.tell(table)
    if tally.rows and not tracked:
        tally.notes.append(
            "nothing is tracked: every device that could be worn is zero or blank in every row"
        )
    time_ns, replaced = nanoseconds(seconds_of(np.concatenate(times) if times else np.zeros(0)))
    if replaced:
        tally.counts["times out of order"] = replaced
        tally.notes.append(f"times that are unreadable or step back: {replaced}; they repeat the time before")
    ends = np.cumsum([len(part) for part in parts], dtype=np.int64)
    timed = tuple(replace(p, time_ns=time_ns[end - len(p) : end]) for p, end in zip(parts, ends, strict=True))
    info = RecordingInfo(
        Path(table.path), name, devices, stature_m, counts=dict(tally.counts), notes=tuple(tally.notes)
    )
    if len(timed) < 2:
        return LoadedRecording(info, join(devices, timed))
    return BlockRecording(info, timed)


def _frames(
    samples: Samples,
    devices: tuple[TrackedDevice, ...],
    turning: Bools,
    worn: Bools,
    counts: dict[str, int],
) -> tuple[TrackerSequence, Bools]:
    """One block without its times, and (n, k) which of its rotations are measured."""
    position, rotation = samples.position, samples.rotation
    stated: Bools = np.ones(position.shape[:2], np.bool_) if samples.stated is None else samples.stated
    valid = stated & is_measured(position, rotation)
    wrong = ~valid & worn & ~turning
    if wrong.any():
        blank = np.isnan(position).any(axis=-1) | np.isnan(rotation).any(axis=-1)
        empty = np.all(position == 0.0, axis=-1) if samples.empty is None else samples.empty
        for name, what in (
            ("samples not tracked", ~stated),
            ("placeholder samples", stated & empty),
            ("blank samples", stated & blank),
        ):
            if n := int(np.count_nonzero(wrong & what)):
                counts[name] = counts.get(name, 0) + n
    if not turning.any():
        return tracker_sequence(np.zeros(len(valid), np.int64), devices, position, rotation, valid), valid
    turned = stated & turning & quat.is_rotation(rotation)
    both = tracker_sequence(np.zeros(len(valid), np.int64), devices, position, rotation, valid | turned)
    result = np.where(turned, TrackingResult.FALLBACK_ROTATION_ONLY, both.result).astype(np.int64)
    moved = np.where(turned[..., None], np.nan, both.position)
    return replace(both, position=moved, valid=valid & ~turned, result=result), valid | turned


def _keep_signs(rotation: Quats, measured: Bools, last: Quats) -> Quats:
    """Turn a block's signs, in place, to go on from the (k, 4) rotations before it; returns its last ones."""
    last = last.copy()
    for k in range(len(last)):
        rows = np.flatnonzero(measured[:, k])
        if len(rows):
            if rotation[rows[0], k] @ last[k] < 0.0:
                rotation[rows, k] *= -1.0
            last[k] = rotation[rows[-1], k]
    return last
