"""A chain of segments as solvers with rotations see it, and the moves they share.

Joint i turns segment i, the bone from joint i to joint i + 1. ``positions`` (n, 3) [m], ``rotations``
(n, 4) canonical world rotations of the segments, ``offsets`` (n, 3) where ``offsets[i + 1]`` is joint
i + 1 seen from joint i in the canonical frame of segment i [m]. The last joint is the effector; its own
rotation is never touched. ``positions[0]`` stays.
"""

import math

from vrik.arrays import Q4, V3, Floats, Points, Quats
from vrik.jit import kernel
from vrik.kernels.quat import load4, qexp, qmul, qrot, qunit, store4
from vrik.kernels.vec import add, any_normal, cross, distance, dot, length, load3, scale, store3, sub, unit_or

NO_ARC = 1e-7
"""Directions nearer than this are the same, or exactly opposite. [rad]"""

NEAR = 0.1
"""A target out of reach is met when the tip is within this share of the tolerance of the nearest point."""

NO_GAIN = 0.01
"""A round that gains less than this share of the tolerance is not worth another one."""


@kernel
def turn_from(positions: Points, rotations: Quats, i: int, q: Q4) -> None:
    """Turn everything after joint ``i`` about joint ``i`` by the world turn ``q``."""
    pivot = load3(positions, i)
    for j in range(i, len(positions) - 1):
        store4(rotations, j, qunit(qmul(q, load4(rotations, j))))
        store3(positions, j + 1, add(pivot, qrot(q, sub(load3(positions, j + 1), pivot))))


@kernel
def place_joints(positions: Points, rotations: Quats, offsets: Points) -> None:
    """Fill ``positions[1:]`` from the rotations: bone lengths are exact again."""
    for i in range(len(positions) - 1):
        store3(positions, i + 1, add(load3(positions, i), qrot(load4(rotations, i), load3(offsets, i + 1))))


@kernel
def first_free(weights: Floats) -> int:
    """The first joint that turns at all: the root of what the solver can move."""
    first = 0
    while first < len(weights) - 2 and weights[first] <= 0.0:
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
def within_length(positions: Points, offsets: Points, weights: Floats, target: V3) -> V3:
    """``target``, or the point nearest to it that the chain reaches when it is straight."""
    first = first_free(weights)
    root = load3(positions, first)
    away = distance(target, root)
    total = length_after(offsets, first)
    if away <= total or away < 1e-9:
        return target
    return add(root, scale(sub(target, root), total / away))


@kernel
def bend_axis(rotation: Q4, direction: V3) -> V3:
    """Axis about which a segment flexes when nothing else decides: what comes after it goes to its front.

    ``direction`` is where the chain runs (world, unit). A chain that runs to the front flexes up. The
    front is canonical -Z, so that a spine bows forward and mirrored chains bend in mirrored ways.
    """
    side = cross(direction, qrot(rotation, (0.0, 0.0, -1.0)))
    if dot(side, side) < 0.01:
        side = cross(direction, qrot(rotation, (0.0, 1.0, 0.0)))
    return unit_or(side, any_normal(direction))


@kernel
def arc(a: V3, b: V3, rotation: Q4) -> V3:
    """Rotation vector that takes the direction of ``a`` to that of ``b``, length 0 to pi. [rad]

    Opposite directions turn about the ``bend_axis`` of the segment. Zero when one has no direction.
    """
    if length(a) < 1e-9 or length(b) < 1e-9:
        return (0.0, 0.0, 0.0)
    normal = cross(a, b)
    sine = length(normal)
    cosine = dot(a, b)
    angle = math.atan2(sine, cosine)
    if angle < NO_ARC:
        return (0.0, 0.0, 0.0)
    if angle > math.pi - NO_ARC:
        return scale(bend_axis(rotation, scale(a, 1.0 / length(a))), angle)
    return scale(normal, angle / sine)


@kernel
def bend_off_line(
    positions: Points, rotations: Quats, offsets: Points, weights: Floats, target: V3, max_step_rad: float
) -> None:
    """Bend a chain that lies on the line to its target, where no joint by itself would turn.

    The joints between the first free one and the tip share the bend of an arc from there to ``target``.
    """
    tip = len(positions) - 1
    first = first_free(weights)
    away = distance(target, load3(positions, first))
    total = length_after(offsets, first)
    if tip - first < 2 or total < 1e-9 or away >= total:
        return
    share = 2.0 * math.acos(min(max(away / total, 0.0), 1.0)) / float(tip - first - 1)
    for i in range(first + 1, tip):
        run = unit_or(sub(load3(positions, i + 1), load3(positions, i)), (0.0, 1.0, 0.0))
        angle = weights[i] * min(share, max_step_rad)
        turn_from(positions, rotations, i, qexp(scale(bend_axis(load4(rotations, i), run), angle)))
