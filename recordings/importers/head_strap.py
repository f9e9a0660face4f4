"""A tracker strapped to a head: how it must be turned to have a headset's axes."""

from __future__ import annotations

import numpy as np

from vrik import quat
from vrik.arrays import Bools, Floats, Points, Quat, Quats

STANDING_M = 0.15
"""Rows in which the head is this near to its usual greatest height are of somebody who stands. [m]"""

_UP = np.array([0.0, 1.0, 0.0])


def headset_from_tracker(
    head: Points, rotation: Quats, left: Points, right: Points, good: Bools
) -> tuple[Quat, Floats] | None:
    """The constant turn, on the device's side, after which -Z looks ahead and +Y is up.

    A person who stands holds the head upright on average, the hands before it, and the left one to the left.

    Args:
        head: (n, 3) positions of the tracker. [m]
        rotation: (n, 4) its rotations.
        left: (n, 3) the left hand. [m]
        right: (n, 3) the right hand. [m]
        good: (n,) rows in which all three are tracked.

    Returns:
        The (4,) turn to multiply from the right, and (3,) where up is in the tracker's own axes; or None when
        hands and head do not tell.
    """
    if not good.any():
        return None
    standing = good & (head[:, 1] >= np.percentile(head[good, 1], 95.0) - STANDING_M)
    inverse = quat.conjugate(rotation[standing])
    up = quat.rotate(inverse, _UP).mean(axis=0)
    size = float(np.linalg.norm(up))
    if size < 0.5:  # turned every way: not worn on a head that is mostly upright
        return None
    up = up / size
    level = np.array([1.0, 0.0, 1.0])
    before = quat.rotate(inverse, (0.5 * (left + right) - head)[standing] * level).mean(axis=0)
    across = quat.rotate(inverse, (right - left)[standing] * level).mean(axis=0)
    ahead = before + np.cross(up, across)
    ahead = ahead - up * float(ahead @ up)
    size = float(np.linalg.norm(ahead))
    if size < 0.05:
        return None
    ahead = ahead / size
    axes = np.stack([np.cross(ahead, up), up, -ahead], axis=1)
    return quat.from_matrix(axes), up
