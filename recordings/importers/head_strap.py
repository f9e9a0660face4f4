"""A tracker strapped to a head: how it must be turned to have a headset's axes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from vrik import quat
from vrik.arrays import Bools, Floats, Points, Quat, Quats

STANDING_M = 0.15
"""Rows in which the head is this near to its usual greatest height are of somebody who stands. [m]"""

_UP = np.array([0.0, 1.0, 0.0])
_LEVEL = np.array([1.0, 0.0, 1.0])


@dataclass(frozen=True, slots=True, eq=False)
class Worn:
    """Some frames of a tracker on a head, and of the hands.

    Args:
        head: (n, 3) positions of the tracker. [m]
        rotation: (n, 4) its rotations.
        left: (n, 3) the left hand. [m]
        right: (n, 3) the right hand. [m]
        good: (n,) rows in which all three are tracked.
    """

    head: Points
    rotation: Quats
    left: Points
    right: Points
    good: Bools


def headset_from_tracker(frames: Callable[[], Iterable[Worn]]) -> tuple[Quat, Floats] | None:
    """The constant turn, on the device's side, after which -Z looks ahead and +Y is up.

    A person who stands holds the head upright on average, the hands before it, and the left one to the left.

    Args:
        frames: Gives all frames block by block, each time it is called: they are gone through twice.

    Returns:
        The (4,) turn to multiply from the right, and (3,) where up is in the tracker's own axes; or None when
        hands and head do not tell.
    """
    heights = np.concatenate([np.zeros(0), *(worn.head[worn.good, 1] for worn in frames())])
    if not len(heights):
        return None
    least = np.percentile(heights, 95.0) - STANDING_M
    n, sums = 0, np.zeros((3, 3))
    for worn in frames():
        with np.errstate(invalid="ignore"):
            standing = worn.good & (worn.head[:, 1] >= least)
        inverse = quat.conjugate(worn.rotation[standing])
        head, left, right = (places[standing] for places in (worn.head, worn.left, worn.right))
        n += len(head)
        sums += [
            quat.rotate(inverse, _UP).sum(axis=0),
            quat.rotate(inverse, (0.5 * (left + right) - head) * _LEVEL).sum(axis=0),
            quat.rotate(inverse, (right - left) * _LEVEL).sum(axis=0),
        ]
    up, before, across = sums / n
    size = float(np.linalg.norm(up))
    if size < 0.5:  # turned every way: not worn on a head that is mostly upright
        return None
    up = up / size
    ahead = before + np.cross(up, across)
    ahead = ahead - up * float(ahead @ up)
    size = float(np.linalg.norm(ahead))
    if size < 0.05:
        return None
    ahead = ahead / size
    axes = np.stack([np.cross(ahead, up), up, -ahead], axis=1)
    return quat.from_matrix(axes), up
