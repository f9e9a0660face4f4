"""Quest centre-eye log: the headset alone, one row a frame, no header.

16 columns: device and system time in ticks of 100 ns since the year 1; year, month, day, hour, minute,
second, millisecond; position in metres; quaternion (x, y, z, w). Unity's axes. Ticks are whole numbers of 18
digits: as floating-point numbers they would lose microseconds, and in nanoseconds they would not fit 64 bits,
so they are read as integers and counted from the first row.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from recordings.base import Recording
from recordings.csv_frames import Samples, TableKind, recording_of
from recordings.csv_table import Table, Tally
from recordings.csv_text import number_in, rows_in
from recordings.importers.axes import device_for_role, openvr_from_unity
from vrik import quat
from vrik.arrays import Floats

WIDTH = 16
TICK_S = 1e-7

_TICKS_RANGE = (5 * 10**17, 10**18)  # years 1585 to 3169
_LOOKED_AT = 50
_DEVICES = (device_for_role("head", "centre-eye", "Quest centre eye"),)


class QuestLogImporter:
    """Reads the 16 columns without a header."""

    name = "quest-log"
    summary = "Quest centre-eye log: headset alone (16 columns without header, ticks of 100 ns)"
    suffixes = (".txt", ".csv", ".log")

    def recognises(self, head: bytes, path: Path) -> bool:
        """By 16 columns in the first rows, two of ticks first and a quaternion last."""
        cells = rows_in(head, _LOOKED_AT)
        if not cells or any(len(row) != WIDTH for row in cells):
            return False
        good = [
            row
            for row in cells
            if None not in (_ticks(row[0]), _ticks(row[1]))
            and quat.is_rotation(np.array([number_in(cell) for cell in row[12:]]))
        ]
        return len(good) > 0.5 * len(cells)

    def open(self, path: Path) -> Recording:
        """Read the log; rows that are cut are left out and counted.

        Raises:
            DamagedRecordingError: If no row is complete.
        """
        table = Table.without_header(path, WIDTH, (0, *range(9, WIDTH)), _Clock())
        return recording_of(table, Tally(), TableKind(self.name, _DEVICES, _samples, lambda times: times))


def _samples(values: Floats) -> Samples:
    return Samples(*openvr_from_unity(values[:, None, :3], quat.wxyz_from_xyzw(values[:, None, 3:])))


class _Clock:
    """Seconds from the first readable row on; NaN for a cell that is no time."""

    def __init__(self) -> None:
        self._first: int | None = None

    def __call__(self, cell: str) -> float:
        ticks = _ticks(cell)
        if ticks is None:
            return float("nan")
        if self._first is None:
            self._first = ticks
        return (ticks - self._first) * TICK_S


def _ticks(cell: str) -> int | None:
    """Ticks of a time that a headset can have seen, or None."""
    cell = cell.strip()
    if not (cell.isascii() and cell.isdigit() and len(cell) < 20):
        return None
    low, high = _TICKS_RANGE
    return int(cell) if low <= int(cell) < high else None
