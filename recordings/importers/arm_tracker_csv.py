"""Arm trackers: forearm and hand as a tracker on the shoulder sees them. No header, no times, no head.

14 columns: position of the forearm and of the hand, then their quaternions (x, y, z, w). Unity's axes; +X
along the right arm in a T-pose; 1 is about a whole arm, not a metre. The shoulder itself is the origin and
has no columns. Good for looking at arm motion; no body can hang from it: nothing says where the head is.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from recordings.base import Recording
from recordings.csv_frames import Samples, TableKind, recording_of
from recordings.csv_table import Table, Tally
from recordings.csv_text import number_in, rows_in
from recordings.importers.axes import is_measured, openvr_from_unity
from vrik import quat
from vrik.arrays import Floats
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

UPPER_ARM = FOREARM = (0.3, 0.7)
"""Shortest and longest distance from shoulder to forearm tracker, and from there to the hand, in whole arms.
Measured: 0.52 and 0.46."""

WHOLE_ARM = (0.8, 1.2)
"""Their sum. Measured: 0.984."""

SPREAD = 0.15
"""A distance along a bone varies little: standard deviation over mean. Measured: 0.06 and 0.04."""

_LOOKED_AT = 50


class ArmTrackerCsvImporter:
    """Reads the 14 columns without a header."""

    name = "arm-tracker-csv"
    summary = "forearm and hand relative to the shoulder (14 columns without header or times)"
    suffixes = (".csv", ".txt")

    def recognises(self, head: bytes, path: Path) -> bool:
        """By 14 numbers in the first rows, which are the two bones of an arm: nearly constant distances."""
        cells = rows_in(head, _LOOKED_AT)
        if not cells or any(len(row) != WIDTH for row in cells):
            return False
        return _is_arm(np.array([[number_in(cell) for cell in row] for row in cells]))

    def open(self, path: Path) -> Recording:
        """Read the table, with times at an assumed rate; rows that are cut are left out and counted.

        Raises:
            DamagedRecordingError: If no row is complete.
        """
        tally = Tally(
            notes=[
                f"the file has no times: {ASSUMED_RATE_HZ:g} rows a second are assumed; "
                "its length and its speeds mean nothing",
                "poses are relative to a tracker on the shoulder, not to a room; "
                "1 is about a whole arm, not a metre",
            ]
        )
        table = Table.without_header(path, WIDTH, (0, *range(WIDTH)))
        return recording_of(
            table, tally, TableKind(self.name, DEVICES, _samples, lambda rows: _seconds(rows, tally))
        )


def _samples(values: Floats) -> Samples:
    return Samples(
        *openvr_from_unity(
            values[:, :6].reshape(-1, 2, 3), quat.wxyz_from_xyzw(values[:, 6:].reshape(-1, 2, 4))
        )
    )


def _seconds(rows: Floats, tally: Tally) -> Floats:
    """One after the other; whatever is in the file."""
    tally.counts["times assumed"] = len(rows)
    return np.arange(len(rows)) / ASSUMED_RATE_HZ


def _is_arm(values: Floats) -> bool:
    """Whether most of some rows are poses, and those hang together as shoulder, forearm and hand."""
    samples = _samples(values)
    good = is_measured(samples.position, samples.rotation).all(axis=1)
    if good.mean() <= 0.5:
        return False
    elbow, hand = samples.position[good, 0], samples.position[good, 1]
    means = []
    for length, (low, high) in (
        (np.linalg.norm(elbow, axis=-1), UPPER_ARM),
        (np.linalg.norm(hand - elbow, axis=-1), FOREARM),
    ):
        means.append(float(length.mean()))
        if not low <= means[-1] <= high or length.std() > SPREAD * means[-1]:
            return False
    return WHOLE_ARM[0] <= sum(means) <= WHOLE_ARM[1]
