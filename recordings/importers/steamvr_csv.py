"""CSV of a SteamVR study: headset, controllers, and positions of elbows, torso and knees, five rows a second.

Columns are found by name, because they interleave (``LeftElbowX,RightElbowX,LeftElbowY,...``). Unity's axes.
Three things are put right, and each is told: stamps of whole seconds are spread inside their second;
positions are multiplied by ``Scale``; the floor, about a metre below zero in these files, is found from the
knees.

``Scale``: the program that wrote the files had divided lengths by it (with 0.587 the eyes come 2 m above the
knees). Multiplied back, the people have human sizes, but only proportions are to be relied on.

The six body trackers have no rotation in the file. They keep the identity and no role: calibration leaves a
tracker without any rotation out of the body, and their positions stay for comparison.
"""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path

import numpy as np

from recordings.base import LoadedRecording, Recording, RecordingInfo
from recordings.importers.axes import (
    device_for_role,
    is_measured,
    nanoseconds,
    openvr_from_unity,
    tracker_sequence,
)
from recordings.importers.csv_rows import lines_of, numbers, separator_of, whole_rows
from recordings.importers.floor import AT_ZERO_M, TYPICAL_EYE_M, floor_from_knees
from recordings.importers.tracks import spread_inside_seconds
from vrik import quat
from vrik.arrays import Bools, Floats, Points
from vrik.errors import DamagedRecordingError, RecordingError

_DEVICES = {"Headset": "head", "LController": "left_hand", "RController": "right_hand"}
_PLACES = {
    "LeftElbow": "left elbow",
    "RightElbow": "right elbow",
    "Front": "front of the torso",
    "Back": "back of the torso",
    "LeftKnee": "left knee",
    "RightKnee": "right knee",
}
_STAMP = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})--(\d{1,2})-(\d{1,2})-(\d{1,2})")
_FLOOR_LOW_HEAD_M = 1.2
"""With no knees to tell, a head that never stands higher than this has its zero above the floor. [m]"""


class SteamVrCsvImporter:
    """Reads the elbow and knee ``.csv``."""

    name = "steamvr-csv"
    summary = "CSV of headset, controllers, and positions of elbows, torso and knees (SteamVR, Unity axes)"
    suffixes = (".csv",)

    def recognises(self, head: bytes, path: Path) -> bool:
        """By the column names: ``DateTime``, and the headset's position."""
        names = _names(head.decode("utf-8-sig", errors="replace").split("\n", 1)[0])
        return "DateTime" in names and {"HeadsetX", "HeadsetY", "HeadsetZ"} <= set(names)

    def open(self, path: Path) -> Recording:
        """Read the whole table; rows that are cut or too long are left out, blank samples are not valid.

        Raises:
            DamagedRecordingError: If it ends inside the header, or no row is complete.
            RecordingError: If the headset lacks some of its columns.
        """
        lines, unfinished = lines_of(path.read_bytes())
        if not lines:
            raise DamagedRecordingError(f"{path.name} ends inside its header; copy it again from its source")
        names = _names(lines[0])
        column = {name: i for i, name in reversed(list(enumerate(names)))}
        posed = [d for d in _DEVICES if all(c in column for c in (*_xyz(d), *_xyzw(d)))]
        placed = [d for d in _PLACES if all(c in column for c in _xyz(d))]
        if "Headset" not in posed or "DateTime" not in column:
            raise RecordingError(
                f"{path.name} lacks a column of the headset's pose; expected DateTime, HeadsetX, HeadsetY, "
                "HeadsetZ, HeadsetQuaternionX, ... as the SteamVR study wrote them"
            )
        counts: dict[str, int] = {}
        notes = [f"{d} lacks some of its columns and is left out" for d in _incomplete(column, posed, placed)]
        separator = separator_of(lines[0])
        rows = whole_rows(lines[1:], unfinished, len(names), counts, notes, separator=separator, first_line=2)
        if not rows and counts:
            raise DamagedRecordingError(
                f"{path.name} has no complete row; copy it again from its source, with decimal points if it "
                "has decimal commas"
            )
        wanted = [c for d in posed for c in (*_xyz(d), *_xyzw(d))] + [c for d in placed for c in _xyz(d)]
        scaled = "Scale" in column
        at = [column[c] for c in (*wanted, "Scale")] if scaled else [column[c] for c in wanted]
        values = numbers(rows, at, counts, notes, separator=separator)
        n, k = len(rows), len(posed) + len(placed)
        split = 7 * len(posed)
        poses = values[:, :split].reshape(n, len(posed), 7)
        points = values[:, split : split + 3 * len(placed)].reshape(n, len(placed), 3)
        place = np.concatenate([poses[..., :3], points], axis=1)
        turn = quat.identity(n, k)
        turn[:, : len(posed)] = quat.wxyz_from_xyzw(poses[..., 3:])
        if scaled:
            place = place * _scale(values[:, -1], notes)[:, None, None]
        position, rotation = openvr_from_unity(place, turn)
        valid = is_measured(position, rotation)
        position[..., 1] -= _floor(position, valid, [*posed, *placed], notes)

        blank: Bools = np.asarray(np.isnan(place).any(axis=-1) | np.isnan(turn).any(axis=-1))
        for name, what in (("blank samples", blank), ("placeholder samples", ~blank & ~valid)):
            if lost := int(np.count_nonzero(what)):
                counts[name] = lost
        time_ns = _times([row.split(separator)[column["DateTime"]] for row in rows], counts, notes)
        if placed:
            notes.append(
                f"positions only: {', '.join(placed)} have no rotation in the file; they are kept, and are "
                "no part of the body"
            )
        devices = (
            *(device_for_role(_DEVICES[d], d) for d in posed),
            *(device_for_role("", d, f"tracker on the {_PLACES[d]}, position only") for d in placed),
        )
        sequence = tracker_sequence(time_ns, devices, position, rotation, valid)
        return LoadedRecording(
            RecordingInfo(path, self.name, devices, counts=counts, notes=tuple(notes)), sequence
        )


def _names(header: str) -> list[str]:
    return [name.strip().strip('"') for name in header.split(separator_of(header))]


def _xyz(device: str) -> list[str]:
    return [device + axis for axis in "XYZ"]


def _xyzw(device: str) -> list[str]:
    return [f"{device}Quaternion{axis}" for axis in "XYZW"]


def _incomplete(column: dict[str, int], posed: list[str], placed: list[str]) -> list[str]:
    """Devices with some of their columns, but not all."""
    return [
        d
        for d in (*_DEVICES, *_PLACES)
        if d not in posed and d not in placed and any(c in column for c in (*_xyz(d), *_xyzw(d)))
    ]


def _scale(scale: Floats, notes: list[str]) -> Floats:
    """(n,) what lengths are multiplied by."""
    good = np.isfinite(scale) & (scale > 0.0)
    if good.any() and np.any(scale[good] != 1.0):
        usual = float(np.median(scale[good]))
        notes.append(
            f"positions are multiplied by the file's Scale, {usual:g}, to human size; rely on proportions "
            "only, not on lengths"
        )
    if not good.all():
        notes.append(
            f"rows without a usable Scale: {int((~good).sum())}; their lengths are taken as they are"
        )
    return np.where(good, scale, 1.0)


def _floor(position: Points, valid: Bools, names: list[str], notes: list[str]) -> float:
    """Height of the floor over the file's zero, and a note that says how it was found. [m]"""
    height = np.where(valid, position[..., 1], np.nan)
    head = height[:, names.index("Headset")]
    knees = [names.index(knee) for knee in ("LeftKnee", "RightKnee") if knee in names]
    floor = floor_from_knees(head, height[:, knees])
    how = "from the standing distance of head and knees, good to about 10 cm"
    if floor is None and np.isfinite(head).any():
        standing = float(np.nanpercentile(head, 95.0))
        floor = standing - TYPICAL_EYE_M if standing < _FLOOR_LOW_HEAD_M else 0.0
        how = f"from the standing head alone, with eyes assumed to be {TYPICAL_EYE_M:.2f} m high"
    if floor is None or abs(floor) < AT_ZERO_M:
        return 0.0
    where = "below" if floor < 0.0 else "above"
    notes.append(f"the floor is {abs(floor):.2f} m {where} the file's zero and is moved to zero: found {how}")
    return floor


def _times(stamps: list[str], counts: dict[str, int], notes: list[str]) -> np.ndarray:
    """(n,) times from the first stamp on. [ns]"""
    seconds = np.array([_seconds(stamp) for stamp in stamps], np.float64)
    known = seconds[np.isfinite(seconds)]
    whole_ns, replaced = nanoseconds(seconds - known[0]) if len(known) else nanoseconds(seconds)
    if replaced:
        counts["times out of order"] = replaced
        notes.append(f"times that are unreadable or step back: {replaced}; they repeat the time before")
    if len(stamps):
        notes.append("times have whole seconds in the file; rows are spread evenly inside each second")
    spread, _ = nanoseconds(spread_inside_seconds(np.asarray(whole_ns * 1e-9, np.float64)))
    return spread


def _seconds(stamp: str) -> float:
    """``year-day-month--hour-minute-second`` as seconds; NaN when it is no time. [s]"""
    match = _STAMP.fullmatch(stamp.strip().strip('"'))
    if match is None:
        return float("nan")
    year, day, month, hour, minute, second = map(int, match.groups())
    try:
        moment = datetime(year, month, day, hour, minute, second)
    except ValueError:
        return float("nan")
    return (moment - datetime(year, 1, 1)).total_seconds() + 86400.0 * moment.replace(
        month=1, day=1
    ).toordinal()
