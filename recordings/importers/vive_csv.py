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
from recordings.csv_frames import Samples, TableKind, recording_of
from recordings.csv_table import Table, Tally
from recordings.csv_text import Header, names_in
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
        names = names_in(head)
        known = (_COLUMN.fullmatch(name) for name in names)
        return names[0].lower() == "timestamp" and any(m and m[1].lower() in _CLASSES for m in known)

    def open(self, path: Path) -> Recording:
        """Read the whole table; rows that are cut or too long are left out and counted.

        A sample with a blank cell, or with all six values zero, is a placeholder and not valid.

        Raises:
            DamagedRecordingError: If no row is complete.
            RecordingError: If the columns do not name a device, or numbers hold the separator.
        """
        header = Header.of(path)
        devices, incomplete = _devices(header)
        tally = Tally(notes=[f"{name} lacks some of its six columns and is left out" for name in incomplete])
        wanted = [header.names[0], *(f"{d.serial}_{axis}" for d in devices for axis in _AXES)]
        kind = TableKind(
            self.name,
            devices,
            _samples,
            lambda times: times,
            quaternions=np.zeros(len(devices), np.bool_),
        )
        return recording_of(Table.of(header, wanted, tally), tally, kind)


def _samples(values: Floats) -> Samples:
    samples = values.reshape(len(values), -1, 6)
    with np.errstate(invalid="ignore"):  # an infinite angle has no sine, and is no rotation later
        rotation = quat.from_euler("zyx", np.radians(samples[..., [5, 4, 3]]))
    return Samples(
        samples[..., :3] / 100.0,
        rotation,
        empty=np.asarray(np.all(samples == 0.0, axis=-1)),
        unwrapped=int(np.count_nonzero(np.isfinite(rotation[..., :1]) & (np.abs(samples[..., 3:]) > 180.0))),
    )


def _devices(header: Header) -> tuple[tuple[TrackedDevice, ...], list[str]]:
    """All devices that are whole, and the names of those that are not."""
    axes: dict[str, set[str]] = {}
    kinds: dict[str, DeviceClass] = {}
    for name in header.names:
        match = _COLUMN.fullmatch(name)
        if match and match[1].lower() in _CLASSES:
            serial = match[1] + match[2]
            kinds[serial] = _CLASSES[match[1].lower()]
            axes.setdefault(serial, set()).add(match[3])
    whole = tuple(
        TrackedDevice(serial, kinds[serial]) for serial, at in axes.items() if len(at) == len(_AXES)
    )
    if not whole or header.names[0].lower() != "timestamp":
        raise RecordingError(
            f"{header.path.name} has no timestamp or no device with six pose columns; {_EXPECTED}"
        )
    return whole, [serial for serial, at in axes.items() if len(at) < len(_AXES)]
