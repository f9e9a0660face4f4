"""Vive CSV, as the Brekel OpenVR recorder writes it: one row a frame, six columns a device.

Device columns are ``<class><index>_tx`` to ``_rz``: centimetres and degrees, OpenVR axes, with
R = Rz * Ry * Rx. Angles are unwrapped (they go past 360). Button and axis columns have names that repeat and
are not read. The file says what a device is, never how it is worn: which controller is left, and which
tracker is the hip, change from file to file.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from recordings.base import Recording
from recordings.csv_frames import Samples, recording_of
from recordings.csv_table import Table, Tally, cells_of, first_lines, separator_of
from vrik import quat
from vrik.arrays import Floats
from vrik.errors import RecordingError
from vrik.frames import DeviceClass, TrackedDevice

_COLUMN = re.compile(r"([A-Za-z]+)(\d+)_([tr][xyz])")
_AXES = ("tx", "ty", "tz", "rx", "ry", "rz")
_CLASSES = {
    "hmd": DeviceClass.HMD,
    "controller": DeviceClass.CONTROLLER,
    "generic": DeviceClass.GENERIC_TRACKER,
    "trackingref": DeviceClass.TRACKING_REFERENCE,
}
_EXPECTED = "expected timestamp, HMD0_tx, HMD0_ty, ... as the Brekel OpenVR recorder writes them"


class ViveCsvImporter:
    """Reads the six-device ``.csv``."""

    name = "vive-csv"
    summary = "CSV of the Brekel OpenVR recorder: headset, controllers, Vive trackers"
    suffixes = (".csv",)

    def recognises(self, head: bytes, path: Path) -> bool:
        """By the column names: ``timestamp`` first, then six for some device."""
        line = head.decode("utf-8-sig", errors="replace").split("\n", 1)[0]
        names = [c.strip().strip('"') for c in re.split(r"[,;\t]", line)]
        known = (_COLUMN.fullmatch(c) for c in names)
        return names[0].lower() == "timestamp" and any(m and m[1].lower() in _CLASSES for m in known)

    def open(self, path: Path) -> Recording:
        """Read the whole table; rows that are cut or too long are left out and counted.

        A sample with a blank cell, or with all six values zero, is a placeholder and not valid.

        Raises:
            DamagedRecordingError: If no row is complete.
            RecordingError: If the columns do not name a device, or numbers hold the separator.
        """
        line = first_lines(path, 1)[0]
        table, devices, incomplete = _read_header(line, path)
        tally = Tally(notes=[f"{name} lacks some of its six columns and is left out" for name in incomplete])
        recording = recording_of(table, tally, self.name, devices, _samples, lambda times: times)
        if bad := tally.blank_cells + tally.unreadable_cells:
            recording.info.counts["unreadable cells"] = bad
        return recording


def _samples(values: Floats) -> Samples:
    samples = values.reshape(len(values), -1, 6)
    with np.errstate(invalid="ignore"):  # an infinite angle has no sine, and is no rotation later
        rotation = quat.from_euler("zyx", np.radians(samples[..., [5, 4, 3]]))
    return Samples(samples[..., :3] / 100.0, rotation, empty=np.asarray(np.all(samples == 0.0, axis=-1)))


def _read_header(line: str, path: Path) -> tuple[Table, tuple[TrackedDevice, ...], list[str]]:
    """Which columns hold what; all devices that are whole, and the names of those that are not."""
    separator = separator_of(line)
    names = cells_of(line, separator)
    found: dict[str, dict[str, int]] = {}
    kinds: dict[str, DeviceClass] = {}
    for i, name in enumerate(names):
        match = _COLUMN.fullmatch(name)
        if match and match[1].lower() in _CLASSES:
            serial = match[1] + match[2]
            kinds[serial] = _CLASSES[match[1].lower()]
            found.setdefault(serial, {}).setdefault(match[3], i)
    whole = {serial: at for serial, at in found.items() if len(at) == 6}
    if not whole or names[0].lower() != "timestamp":
        raise RecordingError(f"{path.name} has no timestamp or no device with six pose columns; {_EXPECTED}")
    columns = [0] + [at[axis] for at in whole.values() for axis in _AXES]
    devices = tuple(TrackedDevice(serial, kinds[serial]) for serial in whole)
    incomplete = [serial for serial in found if serial not in whole]
    return Table(path, separator, len(names), tuple(columns)), devices, incomplete
