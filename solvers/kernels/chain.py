"""What kernels of several solvers do to a chain: m joints with ``rotations`` (m, 4), ``points`` (m + 1, 3).

``points[i + 1] = points[i] + rotations[i] * offsets[i + 1]``; ``points[0]`` stays.
"""

from vrik.arrays import V3, Floats, Points, Quats
from vrik.jit import kernel
from vrik.kernels.quat import load4, qrot, store4
from vrik.kernels.vec import add, distance, length, load3, scale, store3, sub


@kernel
def first_free(weights: Floats) -> int:
    """The first joint that turns at all: the root of what can move; the last one when none does."""
    first = 0
    while first < len(weights) - 1 and weights[first] <= 0.0:
        first += 1
    return first


@kernel
def length_after(offsets: Points, first: int) -> float:
    """Length of the straight chain from joint ``first`` to the tip. [m]"""
    total = 0.0
    for i in range(first + 1, len(offsets)):
        total += length(load3(offsets, i))
    return total


@kernel
def within_length(root: V3, total: float, target: V3) -> V3:
    """``target``, or the point nearest to it that a chain of this length reaches when it is straight."""
    away = distance(target, root)
    if away <= total or away < 1e-9:
        return target
    return add(root, scale(sub(target, root), total / away))


@kernel
def place(points: Points, rotations: Quats, offsets: Points) -> None:
    """Fill ``points[1:]`` from the rotations: bone lengths are exact again."""
    for i in range(len(rotations)):
        store3(points, i + 1, add(load3(points, i), qrot(load4(rotations, i), load3(offsets, i + 1))))


@kernel
def copy_rows(rows: Quats, to: Quats) -> None:
    """Copy rotations; a loop compiles in no time, an assignment of whole arrays in seconds."""
    for i in range(len(rows)):
        store4(to, i, load4(rows, i))
