"""Three-vectors as tuples: nothing is allocated, and plain Python runs the same lines."""

import math

from vrik.arrays import V3, Points
from vrik.jit import kernel

EPSILON = 1e-12
"""Squared lengths below this have no direction. [m^2]"""


@kernel
def load3(rows: Points, i: int) -> V3:
    """Row ``i`` of an (n, 3) array as a tuple."""
    return (rows[i, 0], rows[i, 1], rows[i, 2])


@kernel
def store3(rows: Points, i: int, v: V3) -> None:
    """Write a tuple into row ``i`` of an (n, 3) array."""
    rows[i, 0] = v[0]
    rows[i, 1] = v[1]
    rows[i, 2] = v[2]


@kernel
def add(a: V3, b: V3) -> V3:
    """Sum."""
    return (a[0] + b[0], a[1] + b[1], a[2] + b[2])


@kernel
def sub(a: V3, b: V3) -> V3:
    """Difference: from ``b`` to ``a``."""
    return (a[0] - b[0], a[1] - b[1], a[2] - b[2])


@kernel
def scale(a: V3, s: float) -> V3:
    """Times a number."""
    return (a[0] * s, a[1] * s, a[2] * s)


@kernel
def mix(a: V3, b: V3, t: float) -> V3:
    """``a`` at t = 0, ``b`` at t = 1."""
    return (a[0] + (b[0] - a[0]) * t, a[1] + (b[1] - a[1]) * t, a[2] + (b[2] - a[2]) * t)


@kernel
def dot(a: V3, b: V3) -> float:
    """Inner product."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@kernel
def cross(a: V3, b: V3) -> V3:
    """Vector product, right-handed."""
    return (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])


@kernel
def length(a: V3) -> float:
    """Euclidean length."""
    return math.sqrt(a[0] * a[0] + a[1] * a[1] + a[2] * a[2])


@kernel
def distance(a: V3, b: V3) -> float:
    """How far apart two points are."""
    return length(sub(a, b))


@kernel
def unit_or(a: V3, fallback: V3) -> V3:
    """The direction of ``a``; ``fallback`` when ``a`` is too short to have one."""
    square = dot(a, a)
    if square < EPSILON:
        return fallback
    return scale(a, 1.0 / math.sqrt(square))


@kernel
def any_normal(a: V3) -> V3:
    """Some unit vector at a right angle to the unit vector ``a``."""
    if abs(a[0]) < 0.6:
        return unit_or(cross(a, (1.0, 0.0, 0.0)), (0.0, 0.0, 1.0))
    return unit_or(cross(a, (0.0, 1.0, 0.0)), (0.0, 0.0, 1.0))


@kernel
def reject(a: V3, axis: V3) -> V3:
    """The part of ``a`` at a right angle to the unit vector ``axis``."""
    return sub(a, scale(axis, dot(a, axis)))
