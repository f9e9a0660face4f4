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
from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache
from pathlib import Path

import numpy as np

from recordings.base import Recording
from recordings.csv_frames import Samples, TableKind, recording_of
from recordings.csv_table import Table, Tally
from recordings.csv_text import Header, names_in
from recordings.importers.axes import device_for_role, is_measured, openvr_from_unity
from recordings.importers.floor import AT_ZERO_M, TYPICAL_EYE_M, floor_from_knees
from vrik import quat
from vrik.arrays import Bools, Floats, Vec3
from vrik.errors import RecordingError

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
        return {"DateTime", "HeadsetX", "HeadsetY", "HeadsetZ"} <= set(names_in(head))

    def open(self, path: Path) -> Recording:
        """Read the table; rows that are cut or too long are left out, blank samples are not valid.

        Raises:
            DamagedRecordingError: If it ends inside the header, or no row is complete.
            RecordingError: If the headset lacks some of its columns.
        """
        header = Header.of(path)
        posed = [d for d in _DEVICES if all(c in header.at for c in (*_xyz(d), *_xyzw(d)))]
        placed = [d for d in _PLACES if all(c in header.at for c in _xyz(d))]
        if "Headset" not in posed or "DateTime" not in header.at:
            raise RecordingError(
                f"{path.name} lacks a column of the headset's pose; expected DateTime, HeadsetX, HeadsetY, "
                "HeadsetZ, HeadsetQuaternionX, ... as the SteamVR study wrote them"
            )
        incomplete = _incomplete(header.at, posed, placed)
        tally = Tally(notes=[f"{d} lacks some of its columns and is left out" for d in incomplete])
        if placed:
            tally.notes.append(
                f"positions only: {', '.join(placed)} have no rotation in the file; they are kept, and are "
                "no part of the body"
            )
        wanted = ["DateTime", *(c for d in posed for c in (*_xyz(d), *_xyzw(d)))]
        wanted += [c for d in placed for c in _xyz(d)] + (["Scale"] if "Scale" in header.at else [])
        study = _Study(posed, placed, tally)
        devices = (
            *(device_for_role(_DEVICES[d], d) for d in posed),
            *(device_for_role("", d, f"tracker on the {_PLACES[d]}, position only") for d in placed),
        )
        kind = TableKind(
            self.name, devices, study.samples, _from_the_first, whole_seconds=True, moved_by=study.floor
        )
        return recording_of(Table.of(header, wanted, tally, _seconds), tally, kind)


class _Study:
    """Turns rows to poses, and gathers what tells the scale and the floor when all are read."""

    def __init__(self, posed: Sequence[str], placed: Sequence[str], tally: Tally) -> None:
        self._posed, self._placed, self._tally = len(posed), len(placed), tally
        names = (*posed, *placed)
        self._watched = [names.index(n) for n in ("Headset", "LeftKnee", "RightKnee") if n in names]
        self._heights: list[Floats] = [np.zeros((0, len(self._watched)))]
        self._scales: list[Floats] = [np.zeros(0)]

    def samples(self, values: Floats) -> Samples:
        """Poses in OpenVR's axes, in human size, over the file's own zero."""
        n, split = len(values), 7 * self._posed
        poses = values[:, :split].reshape(n, self._posed, 7)
        points = values[:, split : split + 3 * self._placed].reshape(n, self._placed, 3)
        place = np.concatenate([poses[..., :3], points], axis=1)
        turn = quat.identity(n, self._posed + self._placed)
        turn[:, : self._posed] = quat.wxyz_from_xyzw(poses[..., 3:])
        if values.shape[1] > split + 3 * self._placed:
            scale = values[:, -1].copy()
            self._scales.append(scale)
            place = place * np.where(_usable(scale), scale, 1.0)[:, None, None]
        position, rotation = openvr_from_unity(place, turn)
        watched = position[:, self._watched]
        seen = is_measured(watched, rotation[:, self._watched])
        self._heights.append(np.where(seen, watched[..., 1], np.nan))
        return Samples(position, rotation)

    def floor(self) -> Vec3:
        """What moves the floor to zero; tells how it was found, and the scale."""
        _tell_scale(np.concatenate(self._scales), self._tally.notes)
        heights = np.concatenate(self._heights)
        return np.array([0.0, -_floor(heights[:, 0], heights[:, 1:], self._tally.notes), 0.0])


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


def _usable(scale: Floats) -> Bools:
    return np.isfinite(scale) & (scale > 0.0)


def _tell_scale(scale: Floats, notes: list[str]) -> None:
    """What lengths were multiplied by."""
    good = _usable(scale)
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


def _floor(head: Floats, knees: Floats, notes: list[str]) -> float:
    """Height of the floor over the file's zero, and a note that says how it was found. [m]

    Args:
        head: (n,) heights, NaN where unknown. [m]
        knees: (n, 0 to 2) heights, NaN where unknown. [m]
        notes: Gets the note.
    """
    floor = floor_from_knees(head, knees)
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


def _from_the_first(seconds: Floats) -> Floats:
    """Times from the first readable stamp on. [s]"""
    known = seconds[np.isfinite(seconds)]
    return seconds - known[0] if len(known) else seconds


@lru_cache(maxsize=64)
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
