"""Which way out a joint's stop is: the turn that it forbids, so that all others stay free.

Turns are seen from the parent, as everything in ``kernels/limits.py``. The normals are exact: twist is
``2 atan2(v . axis, w)`` and a swing is told by where the bone points, both differentiated by a small turn in
front of the rotation.
"""

import math

from solvers.kernels.jacobian_rows import AXIS, FREEDOMS, HELD, TURN, part3, put3, take_freedom
from solvers.kernels.limits import (
    FREE,
    HIGH,
    HINGE,
    KIND,
    LOW,
    OTHER_SWING,
    SIDE,
    SWING,
    axis_of,
    center_of,
    constrain,
)
from vrik.arrays import Q4, V3, Floats, Quats
from vrik.jit import kernel
from vrik.kernels.quat import load4, qaxis, qconj, qexp, qlog, qmul, qrot, qtwist_angle
from vrik.kernels.vec import add, cross, dot, length, reject, scale, sub, unit_or

CUT = 0.05
"""A joint counts as stopped when this share of its turn is cut away."""

STILL = 1e-12
"""No turn. [rad]"""


@kernel
def hold_stopped(rotations: Quats, limits: Floats, base: Q4, joints: Floats, rows: Floats) -> bool:
    """Take from joints that the step runs into a stop the freedom to go there; false when there are none.

    What such a joint turns until it is stopped is held: ``joints`` and ``rows`` are those of
    :class:`solvers.kernels.jacobian_rows.Work`.
    """
    found = False
    parent = base
    for i in range(len(rotations)):
        world = load4(rotations, i)
        wanted = part3(joints, i, TURN)
        if limits[i, KIND] != FREE and joints[i, FREEDOMS] > 0.0 and length(wanted) > STILL:
            before = qmul(qconj(parent), world)
            asked = qrot(qconj(parent), wanted)
            kept = constrain(before, qmul(qexp(asked), before), limits, i, True)
            got = qlog(qmul(kept, qconj(before)))
            cut = sub(asked, got)
            if length(cut) > CUT * length(asked):
                take_freedom(joints, rows, i, qrot(parent, outward(kept, cut, limits, i)))
                held = qrot(parent, got)
                for c in range(3 * i, 3 * i + int(joints[i, FREEDOMS])):
                    held = reject(held, unit_or(part3(rows, c, AXIS), (0.0, 0.0, 0.0)))
                put3(joints, i, HELD, held)
                found = True
        parent = world
    return found


@kernel
def outward(local: Q4, cut: V3, limits: Floats, i: int) -> V3:
    """Unit axis of the turn that leaves the range of joint ``i`` at ``local``, the one most along ``cut``."""
    center = center_of(limits, i)
    axis = axis_of(limits, i)
    if limits[i, KIND] == HINGE:
        return qrot(center, axis)
    there = qmul(qconj(center), local)
    twisting = qrot(center, twist_normal(there, axis))
    swinging = qrot(center, swing_normal(there, axis, limits, i))
    return swinging if abs(dot(cut, swinging)) > abs(dot(cut, twisting)) else twisting


@kernel
def twist_normal(q: Q4, axis: V3) -> V3:
    """The small turn in front of ``q`` that changes its twist about ``axis`` most (unit)."""
    v = (q[1], q[2], q[3])
    p = dot(v, axis)
    side = reject(v, axis)
    square = q[0] * q[0] + p * p
    return unit_or(add(scale(axis, square), add(scale(cross(side, axis), q[0]), scale(side, p))), axis)


@kernel
def swing_normal(q: Q4, axis: V3, limits: Floats, i: int) -> V3:
    """The small turn in front of ``q`` that takes its swing farthest out of the ellipse (unit)."""
    swing = qlog(qmul(q, qaxis(axis, -qtwist_angle(q, axis))))
    size = length(swing)
    if size < 1e-9:
        return (limits[i, SIDE], limits[i, SIDE + 1], limits[i, SIDE + 2])
    side = (limits[i, SIDE], limits[i, SIDE + 1], limits[i, SIDE + 2])
    other = cross(axis, side)
    wide = max(limits[i, SWING], 1e-6)
    high = max(limits[i, OTHER_SWING], 1e-6)
    slope = add(
        scale(side, dot(swing, side) / (wide * wide)), scale(other, dot(swing, other) / (high * high))
    )
    radial = scale(swing, 1.0 / size)
    around = cross(axis, radial)
    bone = qrot(q, axis)
    stretch = size / max(math.sin(size), 1e-3)
    across = scale(cross(bone, radial), dot(slope, around) * stretch)
    return unit_or(scale(add(scale(radial, dot(slope, radial)), across), wide * high), radial)


@kernel
def middle_turn(before: Q4, limits: Floats, i: int) -> V3:
    """The turn from ``before`` (seen from the parent) to the middle of the range of joint ``i``. [rad]"""
    if limits[i, KIND] == FREE:
        return (0.0, 0.0, 0.0)
    half = 0.5 * (limits[i, LOW] + limits[i, HIGH])
    middle = qmul(center_of(limits, i), qaxis(axis_of(limits, i), half))
    return qlog(qmul(middle, qconj(before)))
