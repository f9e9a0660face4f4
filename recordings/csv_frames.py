"""From blocks of numbers to a recording: times, validity, signs, and what there is to tell."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from recordings.base import Recording, RecordingInfo
from recordings.csv_table import Table, Tally, read_blocks
from recordings.importers.axes import SignFlips, is_measured, nanoseconds, tell_sign_flips
from recordings.importers.blocks import Sequencer
from recordings.importers.tracks import spread_inside_seconds
from recordings.spool import Spool, SpooledRecording
from vrik import quat
from vrik.arrays import Bools, Floats, Ints, Points, Quats, Vec3
from vrik.frames import DeviceClass, TrackedDevice, TrackerSequence, TrackingResult


@dataclass(frozen=True, slots=True, eq=False)
class Samples:
    """Poses of n rows and k devices in OpenVR axes.

    Args:
        position: (n, k, 3); NaN where a cell is blank. [m]
        rotation: (n, k, 4) quaternions (w, x, y, z); NaN where a cell is blank.
        stated: (n, k) false where the file says that the device is not tracked; None when it never says.
        empty: (n, k) true where every number of the sample is zero; None: where the position is.
        unwrapped: How many of the file's angles are past half a turn, as of a device that turned on and on.
    """

    position: Points
    rotation: Quats
    stated: Bools | None = None
    empty: Bools | None = None
    unwrapped: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class TableKind:
    """What a kind of table holds.

    Args:
        name: Of the format.
        devices: k devices.
        samples_of: The (n, columns - 1) numbers beside the time to poses.
        seconds_of: All (rows,) numbers of the time column to seconds.
        whole_seconds: Times have no fractions; rows are spread evenly inside each second.
        rotation_only: (k,) devices that have no position: their samples keep the rotation, are not valid and
            are FALLBACK_ROTATION_ONLY.
        quaternions: (k,) devices that have a quaternion in the file; its sign may flip. None: all.
        moved_by: Asked when all rows are read: (3,) what is added to all positions. [m]
        stature_m: When the file or the user states it. [m]
    """

    name: str
    devices: tuple[TrackedDevice, ...]
    samples_of: Callable[[Floats], Samples]
    seconds_of: Callable[[Floats], Floats]
    whole_seconds: bool = False
    rotation_only: Bools | None = None
    quaternions: Bools | None = None
    moved_by: Callable[[], Vec3] | None = None
    stature_m: float | None = None


@dataclass(frozen=True, slots=True, eq=False)
class MovedRecording:
    """A recording with all its positions moved by the same (3,). [m]"""

    info: RecordingInfo
    recording: SpooledRecording
    by: Vec3

    @property
    def frame_count(self) -> int:
        """How many frames there are."""
        return self.recording.frame_count

    def blocks(self) -> Iterator[TrackerSequence]:
        """The frames in order, as often as asked."""
        for block in self.recording.blocks():
            yield replace(block, position=block.position + self.by)


def recording_of(table: Table, tally: Tally, kind: TableKind) -> Recording:
    """Read a table whose first wanted column is the time.

    Args:
        table: How to read it; ``columns`` begins with the time.
        tally: Takes counts and notes; may hold some already.
        kind: What it holds.

    Raises:
        RecordingError: If it cannot be read, or no row is whole.
    """
    k = len(kind.devices)
    turning: Bools = np.zeros(k, np.bool_) if kind.rotation_only is None else kind.rotation_only
    flipping: Bools = np.ones(k, np.bool_) if kind.quaternions is None else kind.quaternions
    worn = np.array([d.device_class != DeviceClass.TRACKING_REFERENCE for d in kind.devices])
    spool, sequencer, flips, times = Spool(), Sequencer(kind.devices), SignFlips(k), [np.zeros(0)]
    tracked, unwrapped = False, 0
    for values in read_blocks(table, tally):
        samples = kind.samples_of(values[:, 1:])
        part, measured = _frames(samples, sequencer, turning, worn, tally.counts)
        tracked = tracked or bool(measured[:, worn].any())
        flips.add(samples.rotation, measured & flipping)
        unwrapped += samples.unwrapped
        times.append(values[:, 0].copy())
        spool.add(part)
    tally.tell(table)
    tell_sign_flips(flips.count, tally.counts, tally.notes)
    if unwrapped:
        tally.counts["unwrapped angles"] = unwrapped
        tally.notes.append(f"angles past +-180 degrees: {unwrapped}; they are the same turns as within")
    if tally.rows and not tracked:
        tally.notes.append(
            "nothing is tracked: every device that could be worn is zero or blank in every row"
        )
    time_ns = _times(kind.seconds_of(np.concatenate(times)), kind.whole_seconds, tally)
    move = np.zeros(3) if kind.moved_by is None else kind.moved_by()
    info = RecordingInfo(
        table.path,
        kind.name,
        kind.devices,
        kind.stature_m,
        counts=dict(tally.counts),
        notes=tuple(tally.notes),
    )
    recording = spool.recording(info, time_ns)
    return MovedRecording(info, recording, move) if move.any() else recording


def _times(seconds: Floats, whole_seconds: bool, tally: Tally) -> Ints:
    """(n,) times that never step back. [ns]"""
    time_ns, replaced = nanoseconds(seconds)
    if replaced:
        tally.counts["times out of order"] = replaced
        tally.notes.append(f"times that are unreadable or step back: {replaced}; they repeat the time before")
    if not whole_seconds or not len(time_ns):
        return time_ns
    tally.notes.append("times have whole seconds in the file; rows are spread evenly inside each second")
    spread, _ = nanoseconds(spread_inside_seconds(np.asarray(time_ns * 1e-9, np.float64)))
    return spread


def _frames(
    samples: Samples,
    sequencer: Sequencer,
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
            ("samples that are no pose", stated & ~empty & ~blank),
        ):
            if n := int(np.count_nonzero(wrong & what)):
                counts[name] = counts.get(name, 0) + n
    time_ns = np.zeros(len(valid), np.int64)
    if not turning.any():
        return sequencer.sequence(time_ns, position, rotation, valid), valid
    turned = stated & turning & quat.is_rotation(rotation)
    both = sequencer.sequence(time_ns, position, rotation, valid | turned)
    result = np.where(turned, TrackingResult.FALLBACK_ROTATION_ONLY, both.result).astype(np.int64)
    moved = np.where(turned[..., None], np.nan, both.position)
    return replace(both, position=moved, valid=valid & ~turned, result=result), valid | turned
