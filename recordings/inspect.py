"""Looks a recording over: rates, gaps, lost tracking, posture, and what is odd.

The file is read twice in blocks, once for the times and once for the devices, so an hour needs no more
memory than a minute.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from recordings.base import Progress, Recording, RecordingInfo, frame_count, listening
from recordings.importers import open_recording
from recordings.inspect_odd import HEAD_HEIGHT_RANGE_M, head_of, what_is_odd
from recordings.inspect_report import DeviceReport, InspectReport
from recordings.inspect_track import DeviceTrack, Thinned
from vrik.arrays import Ints
from vrik.body import EYE_HEIGHT_SHARE
from vrik.frames import DEFAULT_PLAYER, DEFAULT_SPACE, DeviceClass, TrackedDevice, TrackerSequence

USUAL_HEAD_HEIGHT_M = 1.6
"""Of a person whose standing height the recording does not show. [m]"""

GAP_FACTOR = 3.0
"""A step longer than this many median steps is a gap."""


@dataclass(slots=True)
class _Times:
    """The first pass."""

    frames: int = 0
    repeated: int = 0
    first_ns: int = 0
    last_ns: int = 0
    median_ns: float = 0.0
    head_height_m: float = float("nan")
    """Standing: the 95th percentile. [m]"""
    player_id: str = DEFAULT_PLAYER
    space_id: str = DEFAULT_SPACE


def inspect(
    path: str | Path,
    columns: str | Path | None = None,
    on_progress: Progress | None = None,
) -> InspectReport:
    """Look over a recording of any kind.

    Args:
        path: The recording.
        columns: Mapping file for a table.
        on_progress: Told how far opening is in bytes, then how far looking over is in frames.

    Raises:
        RecordingError: If it cannot be opened.
    """
    at = on_progress or _nobody
    with listening(at):
        recording = open_recording(path, columns)
    return inspect_recording(recording, at)


def inspect_recording(recording: Recording, on_progress: Progress | None = None) -> InspectReport:
    """Look over an open recording; ``on_progress`` is told how many frames of both passes are done."""
    at = on_progress or _nobody
    info = recording.info
    times = _times(recording, at)
    gaps, longest_gap_ns, done = 0, 0.0, times.frames
    head = _head_column(info.devices)
    tracks = [DeviceTrack(device, _stature_m(info, times)) for device in info.devices]
    last_ns: int | None = None
    for block in recording.blocks():
        steps = _steps(block, last_ns)
        last_ns = int(block.time_ns[-1])
        long = steps[steps > GAP_FACTOR * times.median_ns]
        if times.median_ns > 0.0 and len(long):
            gaps += len(long)
            longest_gap_ns = max(longest_gap_ns, float(long.max()))
        _add_block(tracks, block, head)
        done += len(block)
        at(done, 2 * times.frames)

    devices: tuple[DeviceReport, ...] = tuple(track.report() for track in tracks)
    duration_s = (times.last_ns - times.first_ns) * 1e-9
    rate_hz = 1e9 / times.median_ns if times.median_ns > 0.0 else 0.0
    head_report = head_of(devices)
    return InspectReport(
        path=str(info.path),
        format=info.format,
        player_id=times.player_id,
        space_id=times.space_id,
        frames=times.frames,
        duration_s=duration_s,
        rate_hz=rate_hz,
        gaps=gaps,
        longest_gap_s=longest_gap_ns * 1e-9,
        repeated_times=times.repeated,
        devices=devices,
        head_height_m=float("nan") if head_report is None else head_report.height_standing_m,
        stature_m=info.stature_m,
        calibration_frames=0 if info.calibration is None else len(info.calibration),
        counts=dict(info.counts),
        notes=info.notes,
        odd=tuple(what_is_odd(devices, times.frames, duration_s, rate_hz)),
    )


def _nobody(done: int, total: int | None) -> None:
    """For whoever does not want to know."""


def _times(recording: Recording, at: Progress) -> _Times:
    times, count = _Times(), frame_count(recording)
    steps, heights = Thinned(), Thinned()
    head = _head_column(recording.info.devices)
    last_ns: int | None = None
    for block in recording.blocks():
        if last_ns is None:
            times.first_ns = int(block.time_ns[0])
            times.player_id, times.space_id = block.player_id, block.space_id
        step = _steps(block, last_ns)
        steps.add(step[step > 0].astype(np.float64))
        times.repeated += int(np.sum(step == 0))
        if head is not None:
            heights.add(block.position[block.valid[:, head], head, 1])
        times.frames += len(block)
        times.last_ns = last_ns = int(block.time_ns[-1])
        at(times.frames, None if count is None else 2 * count)
    median_ns = steps.percentile(50.0)
    times.head_height_m = heights.percentile(95.0)
    times.median_ns = median_ns if median_ns > 0.0 else 0.0
    return times


def _stature_m(info: RecordingInfo, times: _Times) -> float:
    """How tall the person is at least likely to be; inf when the head is never tracked. [m]"""
    if not np.isfinite(times.head_height_m):
        return np.inf
    low, _ = HEAD_HEIGHT_RANGE_M
    seen = times.head_height_m if times.head_height_m >= low else USUAL_HEAD_HEIGHT_M
    return max(info.stature_m or 0.0, seen / EYE_HEIGHT_SHARE)


def _steps(block: TrackerSequence, last_ns: int | None) -> Ints:
    """Times between neighbours, with the one from the block before. [ns]"""
    before = block.time_ns[:1] if last_ns is None else np.array([last_ns])
    steps = np.diff(np.concatenate([before, block.time_ns]))
    return steps[1:] if last_ns is None else steps


def _head_column(devices: tuple[TrackedDevice, ...]) -> int | None:
    by_role = [i for i, d in enumerate(devices) if d.role == "head"]
    by_class = [i for i, d in enumerate(devices) if d.device_class == DeviceClass.HMD]
    return next(iter(by_role or by_class), None)


def _add_block(tracks: list[DeviceTrack], block: TrackerSequence, head: int | None) -> None:
    head_position = None
    if head is not None:
        head_position = np.where(block.valid[:, head, None], block.position[:, head], np.nan)
    for i, track in enumerate(tracks):
        track.add(
            block.time_ns,
            block.position[:, i],
            block.rotation[:, i],
            block.valid[:, i],
            None if i == head else head_position,
        )
