"""What ``vrik inspect`` finds out about a recording."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class DeviceReport:
    """One device over a whole recording. Lengths are NaN when it was never tracked.

    Args:
        serial: Its serial number.
        device_class: Name of its OpenVR class.
        role: What the file says it is worn as; "" when it does not say.
        model: Free text.
        valid_share: Share of the frames with a usable pose, 0 to 1.
        losses: How many times it was not tracked, one or more frames long.
        longest_loss_s: Longest of these, from the last good frame to the next. [s]
        placeholders: Samples that are not poses: position exactly zero or a quaternion that is no rotation.
        jumps: Single frames far from both neighbours, over 20 m/s there and back.
        leaps: Steps over 8 m/s and 10 cm between two a quarter as fast: no limb starts and stops like that.
        leap_longest_m: Longest of these. [m]
        out_of_reach: Samples farther from the head than anything worn on a body can be.
        farthest_m: Greatest distance from the head. [m]
        astray_share: Share of the frames, 0 to 1, in which a tracker that is worn at the height of the hips
            or above is farther to the side of the head than a body can bend; 0 for other devices.
        height_min_m: Lowest height. [m]
        height_median_m: Median height. [m]
        height_max_m: Greatest height. [m]
        height_standing_m: 95th percentile of the height. [m]
        travelled_m: Length of its path, seen ten times a second so that noise adds little. [m]
        extent_m: Diagonal of the box it moved in. [m]
        head_distance_m: Median distance from the head. [m]
    """

    serial: str
    device_class: str
    role: str
    model: str
    valid_share: float
    losses: int
    longest_loss_s: float
    placeholders: int
    jumps: int
    leaps: int
    leap_longest_m: float
    out_of_reach: int
    farthest_m: float
    astray_share: float
    height_min_m: float
    height_median_m: float
    height_max_m: float
    height_standing_m: float
    travelled_m: float
    extent_m: float
    head_distance_m: float

    @property
    def label(self) -> str:
        """What to call it in a sentence."""
        return f"{self.role} ({self.serial})" if self.role and self.role != self.serial else self.serial


@dataclass(frozen=True, slots=True)
class InspectReport:
    """A recording as a person wants to know it.

    Args:
        path: The file.
        format: Short name of its format.
        player_id: Whose devices.
        space_id: Which tracking space.
        frames: Number of frames.
        duration_s: From the first to the last. [s]
        rate_hz: Median rate, repeated times left out; 0 when it cannot be told. [Hz]
        gaps: Steps longer than three times the median.
        longest_gap_s: Longest of them; 0 without. [s]
        repeated_times: Frames with the time of the one before.
        devices: One report for each device.
        head_height_m: Standing head height, the 95th percentile; NaN without a head. [m]
        stature_m: Stature, when the file states it. [m]
        calibration_frames: How many T-pose frames the file carries.
        counts: What the reader met on the way.
        notes: What the reader says.
        odd: Sentences about what looks wrong; empty when nothing does.
    """

    path: str
    format: str
    player_id: str
    space_id: str
    frames: int
    duration_s: float
    rate_hz: float
    gaps: int
    longest_gap_s: float
    repeated_times: int
    devices: tuple[DeviceReport, ...]
    head_height_m: float
    stature_m: float | None
    calibration_frames: int
    counts: dict[str, int]
    notes: tuple[str, ...]
    odd: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """The same as plain values for ``json.dumps``; what is not known is None."""
        document: dict[str, Any] = _plain(asdict(self))
        return document


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
