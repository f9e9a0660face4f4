"""Aim: turn joints by their shares until a ray from the tip meets a point."""

import math

from solvers.kernels.limits import FREE, KIND, clamp
from vrik.arrays import Q4, V3, Floats, Points, Quats
from vrik.jit import entry, kernel
from vrik.kernels.quat import carry, load4, qarc, qaxis, qconj, qmul, qrot, qslerp, qunit, store4
from vrik.kernels.vec import cross, dot, length, load3, reject, store3, sub, unit_or

BEHIND = 0.7
"""Cosine beyond a right angle at which a turn is all about the up axis first: 134 degrees."""

NO_GAIN = 1e-9
"""A sweep that gains less is the last. [rad]"""


@kernel
def off_by(eye: V3, ahead: V3, point: V3) -> float:
    """Angle between the ray from ``eye`` along ``ahead`` and the point; 0 for a point in the eye. [rad]"""
    to = sub(point, eye)
    if length(to) < 1e-9:
        return 0.0
    return math.atan2(length(cross(ahead, to)), dot(ahead, to))


@kernel
def seen_from(pivot: V3, eye: V3, ahead: V3, point: V3) -> V3:
    """Where on the ray from ``eye`` along ``ahead`` a point as far from ``pivot`` as ``point`` is.

    Turning about ``pivot`` until this is ``point`` aims exactly, although the eye moves. A point that is too
    near for the ray to meet: the nearest point of the ray.
    """
    out = sub(eye, pivot)
    away = length(sub(point, pivot))
    along = dot(out, ahead)
    root = along * along - dot(out, out) + away * away
    t = max(-along + math.sqrt(max(root, 0.0)), 0.0)
    return (out[0] + t * ahead[0], out[1] + t * ahead[1], out[2] + t * ahead[2])


@kernel
def part_turn(start: V3, end: V3, up: V3, share: float) -> Q4:
    """A share of a turn that takes one direction to another: the smallest, or about ``up`` first.

    The smallest turn to something behind and a little above would tip a head over backwards. So the farther
    beyond a right angle, the more of the way is a turn about ``up`` (unit), the smallest turn only the rest.
    """
    a = unit_or(start, (0.0, 0.0, 0.0))
    b = unit_or(end, (0.0, 0.0, 0.0))
    if dot(a, a) < 0.5 or dot(b, b) < 0.5:
        return (1.0, 0.0, 0.0, 0.0)
    flat = reject(a, up)
    goal = reject(b, up)
    t = min(max(-dot(a, b) / BEHIND, 0.0), 1.0)
    level = min(length(flat) * length(goal) * 2.0, 1.0)
    heading = t * t * (3.0 - 2.0 * t) * level * math.atan2(dot(cross(flat, goal), up), dot(flat, goal))
    yaw = qaxis(up, heading)
    return qslerp((1.0, 0.0, 0.0, 0.0), qmul(qarc(qrot(yaw, a), b), yaw), share)


@entry
@kernel
def aim(
    points: Points,
    rotations: Quats,
    offsets: Points,
    limits: Floats,
    base: Q4,
    axis: V3,
    point: V3,
    shares: Floats,
    tolerance: float,
    max_rounds: int,
) -> int:
    """Turn joints in place until the ray from the tip along ``axis`` (last joint's frame) meets ``point``.

    points (m + 1, 3), rotations (m, 4) hold the pose to turn from. Each joint makes its share of what is left
    of the turn, the last one with a share the rest. Returns the sweeps used; more than one only for limits.
    """
    m = len(rotations)
    before = math.inf
    for rounds in range(max_rounds + 1):
        for i in range(m):
            store3(points, i + 1, carry(load4(rotations, i), load3(points, i), load3(offsets, i + 1)))
        miss = off_by(load3(points, m), qrot(load4(rotations, m - 1), axis), point)
        if miss <= tolerance or miss > before - NO_GAIN or rounds == max_rounds:
            return rounds
        before = miss
        left = 0.0
        for i in range(m):
            left += shares[i]
        parent = base
        for i in range(m):
            ahead = qrot(load4(rotations, m - 1), axis)
            turn = load4(rotations, i)
            if shares[i] > 0.0 and left > 1e-12:
                pivot = load3(points, i)
                seen = seen_from(pivot, load3(points, m), ahead, point)
                up = qrot(turn, (0.0, 1.0, 0.0))
                part = part_turn(seen, sub(point, pivot), up, min(shares[i] / left, 1.0))
                turned = qunit(qmul(part, turn))
                if limits[i, KIND] != FREE:
                    turned = qunit(qmul(parent, clamp(qmul(qconj(parent), turned), limits, i)))
                made = qmul(turned, qconj(turn))
                store4(rotations, i, turned)
                for j in range(i + 1, m):
                    store4(rotations, j, qunit(qmul(made, load4(rotations, j))))
                for j in range(i, m):
                    store3(points, j + 1, carry(load4(rotations, j), load3(points, j), load3(offsets, j + 1)))
            left -= shares[i]
            parent = load4(rotations, i)
    return max_rounds
