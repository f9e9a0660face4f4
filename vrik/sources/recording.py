"""A recorded session as a source of frames, and the person in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from calibration import calibrate
from recordings import Recording, open_recording
from recordings.base import frame_count, join, reading
from vrik.errors import CalibrationError
from vrik.frames import Calibration, TrackerFrame, TrackerSequence

CAUSAL_S = 2.0
"""Of a file that is solved as if it were live, only this much from its start may measure the person. [s]"""

CAUSAL_FORMATS = ("harness-npz", "harness-jsonl")
"""Offline solve contract: no frame may depend on a later one, and these carry a T-pose of their own."""

MAX_CALIBRATION_SAMPLES = 180_000
"""A longer recording is thinned out to this many poses of all devices before the person is measured."""


class RecordingSource:
    """The frames of a file, without any waiting.

    Args:
        path: A recording of any kind that vrik reads.
        columns: Mapping file that says what the columns of a table hold.

    Raises:
        RecordingError: If it cannot be read.
        UsageError: If the mapping file does not work.
    """

    def __init__(self, path: Path, columns: Path | None = None) -> None:
        self.recording: Recording = open_recording(path, columns) if columns else open_recording(path)

    def frames(self) -> Iterator[TrackerFrame]:
        """All frames; can be asked for again."""
        for block in self.recording.blocks():
            yield from block

    def close(self) -> None:
        """Nothing to let go of: files are open only while blocks are read."""

    def calibrate(
        self,
        *,
        stature_m: float | None = None,
        seconds: float | None = None,
        roles: Mapping[str, str] | None = None,
    ) -> Calibration:
        """Measure the person in the recording.

        Args:
            stature_m: Their height, if it is known; else what the file states, else it is measured. [m]
            seconds: How much from the start may be looked at; all of it when not given, but for files that
                are solved as if they were live (``CAUSAL_S``). [s]
            roles: Serial number to role, where the user knows better.

        Raises:
            CalibrationError: If no body can be made of it; a head alone does not do.
            NoUsableFramesError: If nothing is tracked.
        """
        info = self.recording.info
        if seconds is None and info.format in CAUSAL_FORMATS:
            seconds = CAUSAL_S
        calibration = calibrate(
            self._sample(seconds),
            stature_m=info.stature_m if stature_m is None else stature_m,
            tpose=info.calibration,
            skeleton_tpose=info.skeleton_tpose,
            roles=roles,
        )
        if set(calibration.roles.values()) == {"head"}:
            raise CalibrationError(
                f"{info.path.name} has a head alone: no hand or tracker in it is ever tracked. A body needs "
                "the head and at least one hand: record the controllers too"
            )
        return calibration

    def _sample(self, seconds: float | None) -> TrackerSequence:
        """The frames to measure the person on; of a long recording every second, fourth, ... one."""
        devices = self.recording.info.devices
        kept: list[TrackerSequence] = []
        start_ns: int | None = None
        most = max(MAX_CALIBRATION_SAMPLES // max(len(devices), 1), 1)
        step = 1
        seen = count = 0
        total = frame_count(self.recording)
        for block in self.recording.blocks():
            start_ns = int(block.time_ns[0]) if start_ns is None else start_ns
            if seconds is not None:
                block = block.part(block.time_ns - start_ns <= seconds * 1e9)
                if len(block) == 0:
                    break
            # A list of rows copies them, so that the rest of the block does not stay in memory.
            kept.append(block.part(np.arange(-seen % step, len(block), step)))
            seen += len(block)
            reading(seen, total)
            count += len(kept[-1])
            while count > most:
                joined = join(devices, kept)
                kept = [joined.part(np.arange(0, len(joined), 2))]
                count = len(kept[0])
                step *= 2
        return join(devices, kept)
