"""Arm trackers: forearm and hand as a tracker on the shoulder sees them. No header, no times, no head.

14 columns: position of the forearm and of the hand, then their quaternions (x, y, z, w). Unity's axes; +X
along the right arm in a T-pose; 1 is about a whole arm, not a metre. The shoulder itself is the origin and
has no columns. Good for looking at arm motion; no body can hang from it: nothing says where the head is.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from recordings.base import LoadedRecording, Recording, RecordingInfo
from recordings.importers.axes import is_measured, openvr_from_unity, tracker_sequence
from recordings.importers.csv_rows import lines_of, number, numbers, separator_of, whole_rows
from vrik import quat
from vrik.errors import DamagedRecordingError
from vrik.frames import DeviceClass, TrackedDevice

WIDTH = 14

ASSUMED_RATE_HZ = 90.0
"""The file has no times. Headset programs that read such controllers run at 90 frames a second."""

DEVICES = (
    TrackedDevice(
        "forearm", DeviceClass.GENERIC_TRACKER, "", "tracker on the forearm, seen from the shoulder"
    ),
    TrackedDevice("hand", DeviceClass.CONTROLLER, "", "controller in the hand, seen from the shoulder"),
)

_LOOKED_AT = 50


class ArmTrackerCsvImporter:
    """Reads the 14 columns without a header."""

    name = "arm-tracker-csv"
    summary = "forearm and hand relative to the shoulder (14 columns without header or times)"
    suffixes = (".csv", ".txt")

    def recognises(self, head: bytes, path: Path) -> bool:
        """By 14 numbers in the first rows, the last eight being two quaternions."""
        lines, _ = lines_of(head)
        separator = separator_of(lines[0]) if lines else ","
        cells = [[number(c) for c in line.split(separator)] for line in lines[:_LOOKED_AT] if line.strip()]
        if not cells or any(len(row) != WIDTH for row in cells):
            return False
        turns = np.array(cells)[:, 6:].reshape(-1, 2, 4)
        return bool(quat.is_rotation(turns).all(axis=1).mean() > 0.5)

    def open(self, path: Path) -> Recording:
        """Read the whole table, with times at an assumed rate; rows that are cut are left out and counted.

        Raises:
            DamagedRecordingError: If no row is complete.
        """
        lines, unfinished = lines_of(path.read_bytes())
        counts: dict[str, int] = {}
        notes: list[str] = []
        separator = separator_of(lines[0] if lines else unfinished)
        rows = whole_rows(lines, unfinished, WIDTH, counts, notes, separator=separator)
        if not rows:
            raise DamagedRecordingError(
                f"{path.name} has no complete row of {WIDTH} numbers; copy it again from its source"
            )
        values = numbers(rows, range(WIDTH), counts, notes, separator=separator)
        counts["times assumed"] = len(rows)
        notes += [
            f"the file has no times: {ASSUMED_RATE_HZ:g} rows a second are assumed; "
            "its length and its speeds mean nothing",
            "poses are relative to a tracker on the shoulder, not to a room; "
            "1 is about a whole arm, not a metre",
        ]
        position, rotation = openvr_from_unity(
            values[:, :6].reshape(-1, 2, 3), quat.wxyz_from_xyzw(values[:, 6:].reshape(-1, 2, 4))
        )
        valid = is_measured(position, rotation)
        blank = np.isnan(position).any(axis=-1) | np.isnan(rotation).any(axis=-1)
        for name, what in (("blank samples", blank), ("placeholder samples", ~blank & ~valid)):
            if lost := int(np.count_nonzero(what)):
                counts[name] = lost
        time_ns = np.round(np.arange(len(rows)) * (1e9 / ASSUMED_RATE_HZ)).astype(np.int64)
        sequence = tracker_sequence(time_ns, DEVICES, position, rotation, valid)
        info = RecordingInfo(path, self.name, DEVICES, counts=counts, notes=tuple(notes))
        return LoadedRecording(info, sequence)
