"""Vive CSV, as the Brekel OpenVR recorder writes it: one row a frame, six columns a device.

Device columns are ``<class><index>_tx`` to ``_rz``: centimetres and degrees, OpenVR axes, with
R = Rz * Ry * Rx. Angles are unwrapped (they go past 360). Button and axis columns have names that repeat and
are not read. The file says what a device is, never how it is worn: which controller is left, and which
tracker is the hip, change from file to file.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path

import numpy as np

from recordings.base import LoadedRecording, Recording, RecordingInfo
from recordings.importers.axes import is_measured, nanoseconds, tracker_sequence
from vrik import quat
from vrik.arrays import Bools, Floats
from vrik.errors import DamagedRecordingError, RecordingError
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


@dataclass(frozen=True, slots=True)
class _Table:
    """What the header says: the separator, the number of columns, and where the used ones are."""

    separator: str
    width: int
    devices: tuple[TrackedDevice, ...]
    columns: tuple[int, ...]
    """The timestamp, then six for each device."""
    incomplete: tuple[str, ...]
    """Devices that lack some of their six columns."""


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
        text = (
            path.read_bytes().decode("utf-8-sig", errors="replace").replace("\r\n", "\n").replace("\r", "\n")
        )
        header, _, body = text.partition("\n")
        table = _read_header(header, path)
        counts: dict[str, int] = {}
        notes = [f"{name} lacks some of its six columns and is left out" for name in table.incomplete]
        rows = _whole_rows(body, table, path, counts, notes)
        values = _numbers(rows, table, counts, notes)

        time_ns, replaced = nanoseconds(values[:, 0])
        if replaced:
            counts["times out of order"] = replaced
            notes.append(f"times that are unreadable or step back: {replaced}; they repeat the time before")
        samples = values[:, 1:].reshape(len(values), len(table.devices), 6)
        position = samples[..., :3] / 100.0
        with np.errstate(invalid="ignore"):  # an infinite angle has no sine, and is no rotation below
            rotation = quat.from_euler("zyx", np.radians(samples[..., [5, 4, 3]]))
        placeholder: Bools = np.asarray(np.all(samples == 0.0, axis=-1))
        blank: Bools = np.asarray(np.isnan(samples).any(axis=-1))
        valid = is_measured(position, rotation)

        worn = np.array([d.device_class != DeviceClass.TRACKING_REFERENCE for d in table.devices])
        for name, what in (("placeholder samples", placeholder), ("blank samples", blank)):
            if n := int(np.count_nonzero(what[:, worn])):
                counts[name] = n
        if len(valid) and not valid[:, worn].any():
            notes.append("nothing is tracked: every device that could be worn is zero or blank in every row")
        sequence = tracker_sequence(time_ns, table.devices, position, rotation, valid)
        info = RecordingInfo(path, self.name, table.devices, counts=counts, notes=tuple(notes))
        return LoadedRecording(info, sequence)


def _read_header(line: str, path: Path) -> _Table:
    """Which columns hold what."""
    separator = next((s for s in (";", "\t") if s in line), ",")
    names = [c.strip().strip('"') for c in line.split(separator)]
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
    return _Table(separator, len(names), devices, tuple(columns), tuple(set(found) - set(whole)))


def _whole_rows(body: str, table: _Table, path: Path, counts: dict[str, int], notes: list[str]) -> list[str]:
    """The rows that have as many cells as the header."""
    lines = body.split("\n")
    unfinished = lines.pop()  # nothing, when the last line has its end
    wanted = table.width - 1
    found = [line.count(table.separator) for line in lines]
    rows, wrong, cut = lines, [], 1 if unfinished.strip() else 0
    if found.count(wanted) != len(lines):
        rows = [line for line, n in zip(lines, found, strict=True) if n == wanted]
        wrong = [i for i, line in enumerate(lines) if line.strip() and found[i] != wanted]
    if wrong and not cut and wrong[-1] == len(lines) - 1 and found[-1] < wanted:
        cut = 1
        wrong.pop()
    if cut:
        counts["rows cut"] = cut
        notes.append("the last row is cut and left out")
    if wrong:
        told = f"line {wrong[0] + 2} has {found[wrong[0]] + 1} cells where the header names {table.width}"
        if not rows and table.separator == ",":
            raise RecordingError(
                f"{path.name}: {told}, and so has every row; are these decimal commas? "
                "Export it with decimal points, or with semicolons between the cells"
            )
        counts["rows skipped"] = len(wrong)
        notes.append(f"rows with a wrong number of cells, left out: {len(wrong)}; the first: {told}")
    if not rows and (cut or wrong):
        raise DamagedRecordingError(f"{path.name} has no complete row; copy it again from its source")
    return rows


def _numbers(rows: list[str], table: _Table, counts: dict[str, int], notes: list[str]) -> Floats:
    """(n, columns) numbers; NaN where a cell is blank or no number."""
    if not rows:
        return np.zeros((0, len(table.columns)))
    if table.separator != "," and any("," in row for row in rows):
        rows = [row.replace(",", ".") for row in rows]
        notes.append("numbers have decimal commas; read as decimal points")
    try:
        return np.loadtxt(
            rows, delimiter=table.separator, usecols=table.columns, comments=None, quotechar='"', ndmin=2
        )
    except ValueError:  # some cell is blank or no number: slower, cell by cell
        pick = itemgetter(*table.columns)
        cells = [pick(row.split(table.separator)) for row in rows]
        bad = sum(1 for row in cells for cell in row if not _is_number(cell))
        counts["unreadable cells"] = bad
        notes.append(f"cells that are blank or no number: {bad}; their samples are marked not valid")
        return np.array([[float(c) if _is_number(c) else np.nan for c in map(_bare, row)] for row in cells])


def _bare(cell: str) -> str:
    return cell.strip().strip('"')


def _is_number(cell: str) -> bool:
    try:
        float(_bare(cell))
    except ValueError:
        return False
    return True
