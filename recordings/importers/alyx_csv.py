"""CSV of the "Who Is Alyx?" sessions: headset and both controllers of people who play, named by column.

``delta_time_ms`` is the time since the start. Positions are centimetres, axes are OpenVR's, quaternions are
x, y, z, w. Known faults of the sessions, all kept as they are and told: a controller that is NaN for some
frames, and a rate that sinks from 60 to about 11 frames a second within one file. A column ``timestamp`` is
not read.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from recordings.base import Recording
from recordings.csv_frames import Samples, TableKind, recording_of
from recordings.csv_table import Table, Tally
from recordings.csv_text import Header, names_in
from recordings.importers.axes import device_for_role
from vrik.arrays import Floats
from vrik.errors import RecordingError

TIME = "delta_time_ms"
ROLES = {"hmd": "head", "left_controller": "left_hand", "right_controller": "right_hand"}
PARTS = ("pos_x", "pos_y", "pos_z", "rot_x", "rot_y", "rot_z", "rot_w")
_EXPECTED = (
    "expected delta_time_ms, hmd_pos_x, ... hmd_rot_w and the same for left_controller and right_controller"
)


class AlyxCsvImporter:
    """Reads "Who Is Alyx?" ``.csv``."""

    name = "alyx-csv"
    summary = '"Who Is Alyx?" CSV: headset and both controllers'
    suffixes = (".csv",)

    def recognises(self, head: bytes, path: Path) -> bool:
        """By the column names."""
        names = set(names_in(head))
        return TIME in names and any(f"{device}_pos_x" in names for device in ROLES)

    def open(self, path: Path) -> Recording:
        """Read the whole table; a sample with a NaN or a blank is not valid, and counted.

        Raises:
            DamagedRecordingError: If no row is complete.
            RecordingError: If no device has all its columns.
        """
        header = Header.of(path)
        whole = [d for d in ROLES if all(f"{d}_{part}" in header.at for part in PARTS)]
        if not whole or TIME not in header.at:
            raise RecordingError(f"{path.name} has no {TIME} or no device with seven columns; {_EXPECTED}")
        incomplete = [
            d for d in ROLES if d not in whole and any(f"{d}_{part}" in header.at for part in PARTS)
        ]
        tally = Tally(notes=[f"{d} lacks some of its seven columns and is left out" for d in incomplete])
        wanted = [TIME, *(f"{d}_{part}" for d in whole for part in PARTS)]
        kind = TableKind(
            self.name,
            tuple(device_for_role(ROLES[d], d) for d in whole),
            _samples,
            lambda times: _seconds(times, tally),
        )
        return recording_of(Table.of(header, wanted, tally), tally, kind)


def _samples(values: Floats) -> Samples:
    samples = values.reshape(len(values), -1, len(PARTS))
    return Samples(samples[..., :3] / 100.0, samples[..., [6, 3, 4, 5]])


def _seconds(times_ms: Floats, tally: Tally) -> Floats:
    """Since the start; when the column mostly does not rise it holds steps, which are summed."""
    steps = np.diff(times_ms)
    if len(steps) > 1 and np.count_nonzero(steps <= 0.0) > 0.3 * len(steps):
        tally.notes.append(f"{TIME} holds the time from row to row, not since the start; it is summed up")
        times_ms = np.cumsum(np.nan_to_num(times_ms, posinf=0.0, neginf=0.0))
    return np.asarray(times_ms / 1000.0)
