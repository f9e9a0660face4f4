"""Forward kinematics of a BVH skeleton over many frames at once.

Quaternions and places are kept component by component, one array over all frames each: numpy then works on
long rows of memory. Everything is in the file's own axes and units.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from recordings.bvh_text import Joint
from vrik.arrays import Floats, Points, Quats

Turn: TypeAlias = tuple[Floats, Floats, Floats, Floats]
"""w, x, y, z, each (t,)."""

Place: TypeAlias = tuple[Floats, Floats, Floats]
"""x, y, z, each (t,)."""

_CHANNEL = re.compile(r"([xyz])(position|rotation)")
_AXES = {"x": (1, 2, 3), "y": (2, 3, 1), "z": (3, 1, 2)}


@dataclass(frozen=True, slots=True, eq=False)
class Chain:
    """Where joints are. m joints, t frames.

    Args:
        local: (t, m, 4) relative to the parent; those of the root to the world.
        rotation: (t, m, 4) in the world.
        position: (t, m, 3) in the world.
    """

    local: Quats
    rotation: Quats
    position: Points


def pose(joints: Sequence[Joint], values: Floats, wanted: Sequence[int]) -> Chain:
    """Place joints.

    Rotations multiply in the order listed. A position channel replaces its part of the offset.

    Args:
        joints: The skeleton, parents first.
        values: (t, channels) as written.
        wanted: Rows of the joints to be told about; others are looked at only where these hang on them.
    """
    columns = np.ascontiguousarray(values.T)
    needed = set(wanted)
    for i in range(len(joints) - 1, 0, -1):  # children come after their parents
        if i in needed:
            needed.add(joints[i].parent)
    ones, zeros = np.ones(len(values)), np.zeros(len(values))
    local: dict[int, Turn] = {}
    rotation: dict[int, Turn] = {}
    position: dict[int, Place] = {}
    begin = 0
    for i, joint in enumerate(joints):
        rows = columns[begin : begin + len(joint.channels)]
        begin += len(joint.channels)
        if i not in needed:
            continue
        moved = [np.full(len(values), part) for part in joint.offset]
        turn: Turn = (ones, zeros, zeros, zeros)
        for channel, row in zip(joint.channels, rows, strict=True):
            match = _CHANNEL.fullmatch(channel)
            if match and match[2] == "position":
                moved["xyz".index(match[1])] = row
            elif match:
                turn = _turned(turn, match[1], row)
        local[i] = turn
        place: Place = (moved[0], moved[1], moved[2])
        p = joint.parent
        rotation[i] = local[i] if p < 0 else _times(rotation[p], local[i])
        position[i] = place if p < 0 else _moved(position[p], rotation[p], place)
    return Chain(
        np.stack([np.stack(local[i], axis=-1) for i in wanted], axis=1),
        np.stack([np.stack(rotation[i], axis=-1) for i in wanted], axis=1),
        np.stack([np.stack(position[i], axis=-1) for i in wanted], axis=1),
    )


def _turned(q: Turn, letter: str, angle_deg: Floats) -> Turn:
    """``q`` times a turn about an axis: the product with (c, s about the axis), written out."""
    half = angle_deg * (np.pi / 360.0)
    c, s = np.cos(half), np.sin(half)
    about, after, last = _AXES[letter]
    turned = list(q)
    turned[0] = q[0] * c - q[about] * s
    turned[about] = q[about] * c + q[0] * s
    turned[after] = q[after] * c + q[last] * s
    turned[last] = q[last] * c - q[after] * s
    return turned[0], turned[1], turned[2], turned[3]


def _times(a: Turn, b: Turn) -> Turn:
    """Hamilton product: turns by ``b`` first, then by ``a``."""
    return (
        a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3],
        a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2],
        a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1],
        a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0],
    )


def _moved(at: Place, q: Turn, v: Place) -> Place:
    """``at`` plus ``v`` turned by ``q``: v + 2 w (u x v) + 2 u x (u x v), with u the vector part of q."""
    w, x, y, z = q
    tx, ty, tz = 2.0 * (y * v[2] - z * v[1]), 2.0 * (z * v[0] - x * v[2]), 2.0 * (x * v[1] - y * v[0])
    return (
        at[0] + v[0] + w * tx + (y * tz - z * ty),
        at[1] + v[1] + w * ty + (z * tx - x * tz),
        at[2] + v[2] + w * tz + (x * ty - y * tx),
    )
