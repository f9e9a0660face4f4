"""Where the floor is in recordings that have their zero somewhere else."""

from __future__ import annotations

import numpy as np

from vrik.arrays import Floats
from vrik.body import EYE_HEIGHT_SHARE

KNEE_HEIGHT_SHARE = 0.284
"""Height of the knee over stature, as in ``vrik.body``."""

UPRIGHT_M = 0.05
"""Rows this near to the greatest head-over-knees distance are of somebody who stands upright. [m]"""

TYPICAL_EYE_M = 1.59
"""Eye height of an average person of 1.70 m."""

AT_ZERO_M = 0.15
"""A floor found nearer to zero than this is taken to be at zero: the estimate is not better. [m]"""


def floor_from_knees(head_m: Floats, knees_m: Floats) -> float | None:
    """Height of the floor under a head and knees whose common zero is unknown. [m]

    On somebody upright the eyes are 0.936 and the knees 0.284 of the stature over the floor, so the floor is
    below the knees by 0.284 / 0.652 of the distance between the two. Good to about 10 cm: it depends on where
    above the joint the trackers are strapped.

    Args:
        head_m: (n,) heights of the headset, NaN where unknown.
        knees_m: (n, k) heights of the knees, NaN where unknown.

    Returns:
        The height, or None when head and knees are never seen together.
    """
    seen = np.isfinite(knees_m)
    count = seen.sum(axis=1)
    knee = np.where(count > 0, np.where(seen, knees_m, 0.0).sum(axis=1) / np.maximum(count, 1), np.nan)
    apart = head_m - knee
    both = np.isfinite(apart)
    if not both.any():
        return None
    upright = both & (apart >= np.percentile(apart[both], 90.0) - UPRIGHT_M)
    ratio = KNEE_HEIGHT_SHARE / (EYE_HEIGHT_SHARE - KNEE_HEIGHT_SHARE)
    return float(np.median(knee[upright]) - ratio * np.median(apart[upright]))
