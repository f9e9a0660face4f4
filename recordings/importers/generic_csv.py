"""Any table of numbers, with a mapping file that says what its columns hold (``csv_mapping.py``)."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np

from recordings.base import Recording
from recordings.csv_frames import Samples, TableKind, recording_of
from recordings.csv_mapping import TABLE_SUFFIXES, Column, ColumnMap, folder_map, own_map, read_map
from recordings.csv_table import Table, Tally
from recordings.csv_text import cells_of, first_lines, is_text, separator_of
from recordings.importers.axes import LONGEST_S
from vrik import quat
from vrik.arrays import Bools, Floats, Points, Quats
from vrik.errors import RecordingError
from vrik.frames import TrackedDevice

HELP = "docs/generic-csv.md has an example"


class GenericCsvImporter:
    """Reads a table as a mapping file says: the given one, or the one that lies beside the table.

    Args:
        columns: The mapping file; None looks for NAME.csv.toml, NAME.toml and vrik-columns.toml.
    """

    name = "generic-csv"
    summary = "any table of numbers with a mapping file NAME.csv.toml beside it"
    suffixes = TABLE_SUFFIXES

    def __init__(self, columns: Path | None = None) -> None:
        self._columns = columns

    def recognises(self, head: bytes, path: Path) -> bool:
        """Text with a mapping file for it."""
        return is_text(head) and self._map_of(path) is not None

    def open(self, path: Path) -> Recording:
        """Read the whole table.

        Raises:
            UsageError: If the mapping file does not work.
            RecordingError: If it does not fit the table, or no row is whole.
        """
        columns = self._map_of(path)
        if columns is None:
            raise RecordingError(f"{path.name} has no mapping file; write {path.name}.toml beside it: {HELP}")
        mapping = read_map(columns)
        lines = first_lines(path, mapping.skip_rows + 1)
        if len(lines) <= mapping.skip_rows:
            raise RecordingError(
                f"{path.name} has {len(lines)} lines, and {columns.name} passes over {mapping.skip_rows}; "
                "lower skip_rows"
            )
        separator = mapping.separator or separator_of(lines[-1])
        names = cells_of(lines[-1], separator)
        finder = _Finder(names, mapping, path)
        time_at = 0 if mapping.time is None else finder.find(mapping.time)
        wanted = [time_at]
        for device in mapping.devices:
            for column in (
                *device.position,
                *device.rotation,
                *(() if device.valid is None else (device.valid,)),
            ):
                wanted.append(finder.find(column))
        table = Table(
            path=path,
            separator=separator,
            width=len(names),
            columns=tuple(wanted),
            first_line=mapping.skip_rows + (1 if mapping.header else 0),
            decimal=mapping.decimal,
            missing=mapping.missing,
        )
        tally = Tally(notes=[f"read as {columns.name} says"])
        devices = tuple(TrackedDevice(d.name, d.device_class, d.role, d.model) for d in mapping.devices)
        kind = TableKind(
            self.name,
            devices,
            lambda values: _samples(values, mapping),
            lambda times: _seconds(times, mapping, path, tally),
            rotation_only=np.array([not d.position for d in mapping.devices]),
            quaternions=np.array([len(d.rotation) == 4 for d in mapping.devices]),
            stature_m=mapping.stature_m,
        )
        return recording_of(table, tally, kind)

    def _map_of(self, path: Path) -> Path | None:
        return self._columns or own_map(path) or folder_map(path)


class _Finder:
    """Finds columns by name or number."""

    def __init__(self, names: list[str], mapping: ColumnMap, path: Path) -> None:
        self._names, self._mapping, self._path = names, mapping, path
        self._seen = Counter(names) if mapping.header else Counter()
        self._at = {name: i for i, name in enumerate(names)} if mapping.header else {}

    def find(self, column: Column) -> int:
        """Its place, counted from 0.

        Raises:
            RecordingError: If there is no such column, or several.
        """
        place, name = self._path.name, self._mapping.path.name
        if isinstance(column, int):
            if column > len(self._names):
                raise RecordingError(
                    f"{place} has {len(self._names)} columns; {name} asks for column {column}"
                )
            return column - 1
        if column not in self._at:
            have = ", ".join(self._names[:60]) + (", ..." if len(self._names) > 60 else "")
            told = (
                f"it has {have}"
                if self._mapping.header
                else "without a header, name columns by number, from 1"
            )
            raise RecordingError(f"{place} has no column {column!r}, which {name} asks for; {told}")
        if self._seen[column] > 1:
            raise RecordingError(
                f"{place} has {self._seen[column]} columns {column!r}; name it in {name} by its number"
            )
        return self._at[column]


def _samples(values: Floats, mapping: ColumnMap) -> Samples:
    """Poses in OpenVR axes."""
    n, k = len(values), len(mapping.devices)
    position: Points = np.full((n, k, 3), np.nan)
    rotation: Quats = np.empty((n, k, 4))
    stated: Bools = np.ones((n, k), np.bool_)
    at = 0
    for i, device in enumerate(mapping.devices):
        if device.position:
            position[:, i] = values[:, at : at + 3]
            at += 3
        turn = values[:, at : at + len(device.rotation)]
        at += len(device.rotation)
        if len(device.rotation) == 3:
            with np.errstate(invalid="ignore"):  # an infinite angle has no sine, and is no rotation later
                rotation[:, i] = quat.from_euler(mapping.euler_order, turn * mapping.radians)
        else:
            rotation[:, i] = turn if mapping.quaternion_order == "wxyz" else turn[:, [3, 0, 1, 2]]
        if device.valid is not None:
            stated[:, i] = np.nan_to_num(values[:, at]) != 0.0
            at += 1
    rows = [int(np.argmax(np.abs(row))) for row in mapping.axes]
    signs = mapping.axes[range(3), rows]
    mirror = float(
        np.round(np.linalg.det(mapping.axes))
    )  # -1 from left-handed axes: turns change their sense
    with np.errstate(invalid="ignore", over="ignore"):
        position = position[..., rows] * (signs * mapping.metres)
        rotation = rotation[..., [0, *(r + 1 for r in rows)]] * np.array([1.0, *(mirror * signs)])
    return Samples(position, rotation, stated)


def _seconds(times: Floats, mapping: ColumnMap, path: Path, tally: Tally) -> Floats:
    """The time column in seconds; from zero when it counts from long ago.

    Raises:
        RecordingError: If it holds no number.
    """
    if mapping.time is None:
        return np.arange(len(times)) / mapping.rate_hz
    known = times[np.isfinite(times)]
    if len(times) and not len(known):
        raise RecordingError(
            f"{path.name} has no number in its time column {mapping.time!r}; "
            f"use rate_hz in {mapping.path.name} instead, or convert the times to numbers"
        )
    if len(known) and abs(known[0]) * mapping.time_s > LONGEST_S:
        tally.notes.append("times count from long ago (as a clock does); the recording starts at zero")
        times = times - known[0]
    with np.errstate(over="ignore"):
        return np.asarray(times * mapping.time_s)
