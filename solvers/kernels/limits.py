"""How far a joint may turn: one row of numbers a joint, and the turn nearest to a wanted one that it allows.

A joint's turn is seen from its parent, and from the middle of its range: ``local = center * swing * twist``.
The twist is about ``axis``, the swing about an axis at a right angle to it. Angles of a swing are those of
its rotation vector along ``side`` and ``axis x side``; both stay inside an ellipse. Nothing here is an Euler
angle, so nothing flips at a quarter or a half turn.

Source: Grassia, "Practical parameterization of rotations using the exponential map", J. Graphics Tools 3
(1998), for swing and twist; Baerlocher & Boulic, "Parametrization and range of motion of the ball-and-socket
joint", Deformable Avatars (2001), for the ellipse.
"""

import math

from vrik.arrays import Q4, V3, Floats
from vrik.jit import kernel
from vrik.kernels.quat import qangle, qaxis, qconj, qexp, qlog, qmul, qtwist_angle, qunit
from vrik.kernels.vec import cross, dot, scale

LIMIT_WIDTH = 16
"""Numbers in a row: kind, axis (3), center (4), lowest and highest twist, swing about side and about
axis x side, side (3), width of the soft zone."""

KIND, AXIS, CENTER, LOW, HIGH, SWING, OTHER_SWING, SIDE, SOFT = 0, 1, 4, 8, 9, 10, 11, 12, 15
FREE, HINGE, CONE = 0.0, 1.0, 2.0

TOUCHING = 1e-12
"""A turn this near to the one allowed is left as it is. [rad]"""


@kernel
def axis_of(limits: Floats, i: int) -> V3:
    """Axis of the twist, or of the hinge."""
    return (limits[i, AXIS], limits[i, AXIS + 1], limits[i, AXIS + 2])


@kernel
def center_of(limits: Floats, i: int) -> Q4:
    """The middle of the range, seen from the parent."""
    return (limits[i, CENTER], limits[i, CENTER + 1], limits[i, CENTER + 2], limits[i, CENTER + 3])


@kernel
def nearest_angle(angle: float, low: float, high: float) -> float:
    """The angle from ``low`` to ``high`` that is nearest to ``angle``, counted around the circle. [rad]"""
    if low <= angle <= high:
        return angle
    turn = 2.0 * math.pi
    if low <= angle + turn <= high:
        return angle + turn
    if low <= angle - turn <= high:
        return angle - turn
    below = (low - angle) % turn
    above = (angle - high) % turn
    return low if below < above else high


@kernel
def eased(before: float, after: float, low: float, high: float, zone: float) -> float:
    """Where a coordinate gets that moves from ``before`` to ``after`` and loses speed near its bounds.

    In the last ``zone`` before a bound its speed falls to zero with the room that is left, so the bound is
    neared and never passed. Moving back is free.
    """
    start = min(max(before, low), high)
    if zone <= 0.0 or high - low <= 0.0:
        return min(max(after, low), high)
    zone = min(zone, 0.5 * (high - low))
    if after > start:
        slow = max(start, high - zone)
        if after > slow:
            return high - (high - slow) * math.exp(-(after - slow) / zone)
    elif after < start:
        slow = min(start, low + zone)
        if after < slow:
            return low + (slow - low) * math.exp(-(slow - after) / zone)
    return after


@kernel
def clamp(local: Q4, limits: Floats, i: int) -> Q4:
    """The turn that joint ``i`` allows and that keeps most of ``local``; ``local`` itself when allowed."""
    return constrain(local, local, limits, i, False)


@kernel
def constrain(before: Q4, after: Q4, limits: Floats, i: int, soft: bool) -> Q4:
    """Where joint ``i`` gets that should turn from ``before`` to ``after`` (both seen from its parent).

    With ``soft`` a turn outwards loses speed in the soft zone; without, only the hard stop counts.
    """
    kind = limits[i, KIND]
    if kind == FREE:
        return after
    axis = axis_of(limits, i)
    center = center_of(limits, i)
    zone = limits[i, SOFT] if soft else 0.0
    there = qmul(qconj(center), after)
    wanted = qtwist_angle(there, axis)
    low = limits[i, LOW]
    high = limits[i, HIGH]
    here = there
    was = wanted
    if zone > 0.0:
        here = qmul(qconj(center), before)
        was = qtwist_angle(here, axis)
        start = nearest_angle(was, low, high)
        turn = (wanted - was + math.pi) % (2.0 * math.pi) - math.pi
        twist = eased(start, start + turn, low, high, zone)
    else:
        twist = nearest_angle(wanted, low, high)
    if kind == HINGE:
        held = qmul(center, qaxis(axis, twist))
        return after if qangle(held, after) < TOUCHING else held
    swing = qlog(qmul(there, qaxis(axis, -wanted)))
    share = swing_share(swing, limits, i)
    allowed = min(share, 1.0)
    if zone > 0.0:
        started = swing_share(qlog(qmul(here, qaxis(axis, -was))), limits, i)
        narrow = max(min(limits[i, SWING], limits[i, OTHER_SWING]), 1e-9)
        allowed = max(eased(started, share, -1.0, 1.0, zone / narrow), 0.0)
    if share <= allowed and abs(twist - wanted) < TOUCHING:
        return after
    if share > 0.0:
        swing = scale(swing, min(allowed / share, 1.0))
    return qunit(qmul(center, qmul(qexp(swing), qaxis(axis, twist))))


@kernel
def swing_share(swing: V3, limits: Floats, i: int) -> float:
    """How far out a swing is: 0 in the middle, 1 on the ellipse of joint ``i``."""
    axis = axis_of(limits, i)
    side = (limits[i, SIDE], limits[i, SIDE + 1], limits[i, SIDE + 2])
    x = dot(swing, side) / max(limits[i, SWING], 1e-9)
    y = dot(swing, cross(axis, side)) / max(limits[i, OTHER_SWING], 1e-9)
    return math.sqrt(x * x + y * y)


@kernel
def excess(local: Q4, limits: Floats, i: int) -> float:
    """How far ``local`` is outside of what joint ``i`` allows; 0 inside. [rad]"""
    return qangle(local, clamp(local, limits, i))
