"""Finding the moment when somebody stands in a T-pose, whichever way they face."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from calibration.facing import looks_ahead, yaw_of
from calibration.samples import Samples
from vrik.arrays import Bools, Floats, Ints, Points
from vrik.body import EYE_HEIGHT_SHARE

MIN_DURATION_S = 0.5
MAX_SPEED_M_S = 0.25
"""Hands and head slower than this are held still; breathing and sensor noise stay well below. [m/s]"""
SPEED_WINDOW_S = 0.2

# Shares of the stature that the headset's height stands for.
MIN_APART = 0.75
HAND_HEIGHT = (0.70, 0.92)
MAX_TILT = 0.10
MAX_OFF_CENTRE = 0.18

MIN_SQUARE = 0.77
"""Cosine between the line of the hands and the head's right: 40 degrees."""


@dataclass(frozen=True, slots=True, eq=False)
class _Arms:
    """What is looked at, row by row, in shares of the stature."""

    seen: Bools
    apart: Floats
    left_height: Floats
    right_height: Floats
    off_centre: Floats
    square: Floats
    ahead: Bools


def find(samples: Samples, roles: Mapping[str, str]) -> Ints:
    """Rows of the longest T-pose that is held still for half a second or more; empty when there is none.

    Args:
        samples: Device poses.
        roles: Serial number to role; head and both hands are needed.
    """
    columns = _columns(samples, roles)
    if columns is None:
        return np.zeros(0, np.int64)
    arms = _arms(samples, columns)
    held = _shape(arms) & _still(samples, columns)
    edges = np.flatnonzero(np.diff(np.concatenate([[False], held, [False]]).astype(np.int8)))
    best: Ints = np.zeros(0, np.int64)
    longest = MIN_DURATION_S
    for start, end in zip(edges[::2], edges[1::2], strict=True):
        duration = samples.time_s[end - 1] - samples.time_s[start]
        if duration >= longest:
            longest, best = duration, np.arange(start, end, dtype=np.int64)
    return best


def accept(samples: Samples, roles: Mapping[str, str]) -> tuple[Ints, str]:
    """Rows of frames that are said to be a T-pose, or why they are none.

    Returns:
        The usable rows and ""; or no rows and what was seen instead, as half a sentence. Frames without
        both hands cannot be checked and are believed.
    """
    head = _column(samples, roles, "head")
    if head is None or not samples.good[:, head].any():
        return np.zeros(0, np.int64), "the headset is not tracked in them"
    columns = _columns(samples, roles)
    if columns is None or not samples.good[:, list(columns)].all(axis=1).any():
        return np.flatnonzero(samples.good[:, head]), ""
    arms = _arms(samples, columns)
    rows = np.flatnonzero(_shape(arms))
    if 2 * len(rows) > np.count_nonzero(arms.seen):
        return rows, ""
    _, left, right = columns
    p = samples.position[arms.seen]
    apart = float(np.median(np.linalg.norm(p[:, left] - p[:, right], axis=-1)))
    height = float(np.median(p[:, [left, right], 1]))
    return np.zeros(0, np.int64), f"the hands are {apart:.2f} m apart and {height:.2f} m high"


def _column(samples: Samples, roles: Mapping[str, str], role: str) -> int | None:
    for serial, worn_as in roles.items():
        if worn_as == role:
            return samples.column(serial)
    return None


def _columns(samples: Samples, roles: Mapping[str, str]) -> tuple[int, int, int] | None:
    head = _column(samples, roles, "head")
    left = _column(samples, roles, "left_hand")
    right = _column(samples, roles, "right_hand")
    return None if head is None or left is None or right is None else (head, left, right)


def _arms(samples: Samples, columns: tuple[int, int, int]) -> _Arms:
    head, left, right = (samples.position[:, c] for c in columns)
    seen: Bools = np.all(samples.good[:, list(columns)], axis=1)
    stature = np.maximum(head[:, 1] / EYE_HEIGHT_SHARE, 0.3)
    across = right - left
    flat = np.maximum(np.hypot(across[:, 0], across[:, 2]), 1e-9)
    yaw = yaw_of(samples.rotation[:, columns[0]])
    middle = 0.5 * (left + right) - head
    return _Arms(
        seen,
        np.linalg.norm(across, axis=-1) / stature,
        left[:, 1] / stature,
        right[:, 1] / stature,
        np.hypot(middle[:, 0], middle[:, 2]) / stature,
        (across[:, 0] * np.cos(yaw) - across[:, 2] * np.sin(yaw)) / flat,
        looks_ahead(samples.rotation[:, columns[0]]),
    )


def _shape(arms: _Arms) -> Bools:
    low, high = HAND_HEIGHT
    return np.asarray(
        arms.seen
        & arms.ahead
        & (arms.apart > MIN_APART)
        & (arms.left_height > low)
        & (arms.left_height < high)
        & (arms.right_height > low)
        & (arms.right_height < high)
        & (np.abs(arms.left_height - arms.right_height) < MAX_TILT)
        & (arms.off_centre < MAX_OFF_CENTRE)
        & (arms.square > MIN_SQUARE)
    )


def _still(samples: Samples, columns: tuple[int, int, int]) -> Bools:
    """Speed over a fifth of a second, so that sensor noise does not look like motion."""
    n = len(samples)
    first = np.clip(np.searchsorted(samples.time_s, samples.time_s - 0.5 * SPEED_WINDOW_S), 0, n - 1)
    last = np.clip(np.searchsorted(samples.time_s, samples.time_s + 0.5 * SPEED_WINDOW_S), 0, n - 1)
    p: Points = samples.position[:, list(columns)]
    moved = np.linalg.norm(p[last] - p[first], axis=-1).max(axis=1)
    return np.asarray(moved <= MAX_SPEED_M_S * np.maximum(samples.time_s[last] - samples.time_s[first], 0.05))
