"""How tall somebody is, from what the headset did."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibration.facing import FORWARD, UP, UPRIGHT_MIN
from calibration.samples import Samples
from vrik import quat
from vrik.arrays import Bools, Floats, Ints
from vrik.body import EYE_HEIGHT_SHARE
from vrik.errors import CalibrationError

MEASURED_RANGE_M = (1.1, 2.3)
"""A stature outside this range is not believed when it was measured."""

STATED_RANGE_M = (0.6, 2.6)
"""A stature outside this range is not believed even when somebody typed it."""

FALLBACK_STATURE_M = 1.7
"""What is assumed, and said to be assumed, when nothing can be measured."""

GRIP_SPAN_SHARE = 0.985
"""Distance between two controllers held in stretched arms over stature, for average proportions."""

SPAN_SPREAD = 1.08
"""Longest arm span over stature that is met in life."""

_LEVEL_SINE = 0.4  # a view within 24 degrees of the horizontal: the eyes drop 4 cm at 30 degrees
_STEADY_M_S = 0.15  # vertical; leaves out the top of a jump, which lasts hundredths of a second
_STEADY_WINDOW_S = 0.2
_BIN_M = 0.01
_MIN_TIME_S = 0.15
_MIN_SHARE_OF_PEAK = 0.2


@dataclass(frozen=True, slots=True)
class Stature:
    """A stature and where it comes from.

    Args:
        metres: Standing height. [m]
        measured: False when it was assumed, or only bounded by something else.
        source: "stated", "T-pose", "standing", "arm span" or "fallback".
        note: Sentence for the user, "" when all is well.
    """

    metres: float
    measured: bool
    source: str
    note: str = ""


def estimate(
    samples: Samples,
    head: int,
    hands: tuple[int, int] | None = None,
    *,
    tpose_eyes: Floats | None = None,
    stated_m: float | None = None,
) -> Stature:
    """Stated height, else eye height in a T-pose, else the height at which the head stays longest up.

    Args:
        samples: Device poses of the whole take.
        head: Column of the headset.
        hands: Columns of the left and the right controller, when there are both.
        tpose_eyes: (m,) heights of the headset while the person stands in a T-pose. [m]
        stated_m: What the person says. [m]

    Raises:
        CalibrationError: If ``stated_m`` is no human height.
    """
    if stated_m is not None:
        return Stature(checked(stated_m), True, "stated")
    if tpose_eyes is not None and len(tpose_eyes):
        found = Stature(float(np.median(tpose_eyes)) / EYE_HEIGHT_SHARE, True, "T-pose")
    else:
        found = Stature(standing_eye_height(samples, head) / EYE_HEIGHT_SHARE, True, "standing")
    return _believable(found, _reach(samples, hands))


def checked(stated_m: float) -> float:
    """A height that somebody typed, if it is one. [m]

    Raises:
        CalibrationError: If it is not.
    """
    low, high = STATED_RANGE_M
    if not low <= stated_m <= high:
        raise CalibrationError(
            f"a height of {stated_m:g} m is not believable; state metres between {low} and {high}"
        )
    return float(stated_m)


def standing_eye_height(samples: Samples, head: int) -> float:
    """Height at which the headset is held while its wearer stands. [m]

    The highest height at which the head stays, level and steady, for at least a fifth of the time it
    spends at its favourite height: somebody who crouches most of the time is not shorter for it, and
    somebody who jumps, or a glitch of a few frames, does not make them taller.

    Raises:
        CalibrationError: If the headset has no good pose.
    """
    rows = np.flatnonzero(samples.good[:, head])
    if len(rows) == 0:
        raise CalibrationError("the headset is never tracked; show its poses to measure a height")
    height = samples.position[rows, head, 1]
    seconds = samples.step_s()[rows]
    level = _level(samples, head, rows)
    steady = _steady(samples.time_s[rows], height)
    for keep in (level & steady, level, np.ones(len(rows), np.bool_)):
        if seconds[keep].sum() >= min(_MIN_TIME_S, 0.5 * seconds.sum()):
            return _upper_mode(height[keep], seconds[keep])
    return float(np.median(height))


def _level(samples: Samples, head: int, rows: Ints) -> Bools:
    rotation = samples.rotation[rows, head]
    flat = np.abs(quat.rotate(rotation, FORWARD)[:, 1]) < _LEVEL_SINE
    return np.asarray(flat & (quat.rotate(rotation, UP)[:, 1] > UPRIGHT_MIN))


def _steady(time_s: Floats, height: Floats) -> Bools:
    """Rows around which the head neither rises nor sinks."""
    if len(time_s) < 2:
        return np.ones(len(time_s), np.bool_)
    first = np.searchsorted(time_s, time_s - 0.5 * _STEADY_WINDOW_S)
    last = np.minimum(np.searchsorted(time_s, time_s + 0.5 * _STEADY_WINDOW_S), len(time_s) - 1)
    return np.asarray(np.abs(height[last] - height[first]) <= _STEADY_M_S * _STEADY_WINDOW_S)


def _upper_mode(height: Floats, seconds: Floats) -> float:
    """Median height within the topmost cluster that enough time is spent in."""
    lowest = float(height.min())
    bins = np.floor((height - lowest) / _BIN_M).astype(np.int64)
    spent = np.convolve(np.bincount(bins, weights=seconds, minlength=5), np.ones(5), mode="same")
    enough = np.flatnonzero(spent >= max(_MIN_SHARE_OF_PEAK * spent.max(), min(_MIN_TIME_S, spent.max())))
    top = lowest + (enough[-1] + 1) * _BIN_M
    cluster = (height <= top + 0.5 * _BIN_M) & (height >= top - 4.5 * _BIN_M)
    order = np.argsort(height[cluster])
    total = np.cumsum(seconds[cluster][order])
    return float(height[cluster][order][np.searchsorted(total, 0.5 * total[-1])])


def _reach(samples: Samples, hands: tuple[int, int] | None) -> float | None:
    """How far apart the controllers come, leaving out glitches. [m]"""
    if hands is None:
        return None
    both = samples.good[:, list(hands)].all(axis=1)
    if np.count_nonzero(both) < 5:
        return None
    apart = np.linalg.norm(samples.position[both, hands[0]] - samples.position[both, hands[1]], axis=-1)
    return float(np.percentile(apart, 98.0))


def _believable(found: Stature, reach_m: float | None) -> Stature:
    low, high = MEASURED_RANGE_M
    from_reach = None if reach_m is None else reach_m / GRIP_SPAN_SHARE
    if found.metres > high:
        what = f"the head stands {found.metres * EYE_HEIGHT_SHARE:.2f} m high"
    elif from_reach is not None and from_reach > SPAN_SPREAD * found.metres:
        what = f"the hands come {reach_m:.2f} m apart, too far for a stature of {found.metres:.2f} m"
        if low <= from_reach <= high:
            return Stature(
                from_reach,
                False,
                "arm span",
                f"Only a low head was seen: {what}; {from_reach:.2f} m is taken from the arms. "
                "State the height to be sure.",
            )
    elif found.metres < low:
        what = f"the head is never higher than {found.metres * EYE_HEIGHT_SHARE:.2f} m above the floor"
    else:
        return found
    return Stature(
        FALLBACK_STATURE_M,
        False,
        "fallback",
        f"No believable stature: {what} (floor not set, or nobody stood?); "
        f"{FALLBACK_STATURE_M:.2f} m is assumed. State the height.",
    )
