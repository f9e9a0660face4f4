"""Quest centre-eye log: the headset alone, one row a frame, no header.

16 columns: device and system time in ticks of 100 ns since the year 1; year, month, day, hour, minute,
second, millisecond; position in metres; quaternion (x, y, z, w). Unity's axes. Ticks are whole numbers of 18
digits: as floating-point numbers they would lose microseconds, and in nanoseconds they would not fit 64 bits,
so they are read as integers and counted from the first row.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from recordings.base import LoadedRecording, Recording, RecordingInfo
from recordings.importers.axes import (
    LONGEST_S,
    device_for_role,
    is_measured,
    openvr_from_unity,
    tracker_sequence,
)
from recordings.importers.csv_rows import lines_of, number, numbers, separator_of, whole_rows
from vrik import quat
from vrik.arrays import Ints
from vrik.errors import DamagedRecordingError

WIDTH = 16
TICK_NS = 100

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
        lines, _ = lines_of(head)
        separator = separator_of(lines[0]) if lines else ","
        cells = [line.split(separator) for line in lines[:_LOOKED_AT] if line.strip()]
        if not cells or any(len(row) != WIDTH for row in cells):
            return False
        good = [
            row
            for row in cells
            if None not in (_ticks(row[0]), _ticks(row[1]))
            and quat.is_rotation(np.array([number(c) for c in row[12:]]))
        ]
        return len(good) > 0.5 * len(cells)

    def open(self, path: Path) -> Recording:
        """Read the whole log; rows that are cut are left out and counted.

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
                f"{path.name} has no complete row of {WIDTH} columns; copy it again from its source"
            )
        values = numbers(rows, range(9, WIDTH), counts, notes, separator=separator)
        position, rotation = openvr_from_unity(values[:, None, :3], quat.wxyz_from_xyzw(values[:, None, 3:]))
        valid = is_measured(position, rotation)
        blank = np.isnan(values).any(axis=-1)
        for name, what in (("blank samples", blank), ("placeholder samples", ~blank & ~valid[:, 0])):
            if lost := int(np.count_nonzero(what)):
                counts[name] = lost
        time_ns = _times([_ticks(row.partition(separator)[0]) for row in rows], counts, notes)
        sequence = tracker_sequence(time_ns, _DEVICES, position, rotation, valid)
        info = RecordingInfo(path, self.name, _DEVICES, counts=counts, notes=tuple(notes))
        return LoadedRecording(info, sequence)


def _ticks(cell: str) -> int | None:
    """Ticks of a time that a headset can have seen, or None."""
    cell = cell.strip()
    if not (cell.isascii() and cell.isdigit() and len(cell) < 20):
        return None
    low, high = _TICKS_RANGE
    return int(cell) if low <= int(cell) < high else None


def _times(ticks: list[int | None], counts: dict[str, int], notes: list[str]) -> Ints:
    """(n,) times from the first readable row on; never backwards. [ns]"""
    first = next((t for t in ticks if t is not None), 0)
    last = replaced = 0
    times = np.zeros(len(ticks), np.int64)
    for i, tick in enumerate(ticks):
        now = -1 if tick is None else (tick - first) * TICK_NS
        if last <= now < LONGEST_S * 1e9:
            last = now
        else:
            replaced += 1
        times[i] = last
    if replaced:
        counts["times out of order"] = replaced
        notes.append(f"times that are unreadable or step back: {replaced}; they repeat the time before")
    return times
