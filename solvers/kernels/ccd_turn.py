"""The best turn of one joint about one axis, in closed form and without an angle.

About a unit axis n, what a turn by phi gains is ``c cos(phi) + s sin(phi)`` and a constant, whatever the
joint should do: bring the tip to a point, bring its frame to a rotation, or both. Wang & Chen (1991) give
c and s; the best phi has the direction (c, s), and half of it is found with square roots alone.

A turn of the tip's frame is a quaternion d, and its error to the wanted one g (both seen from now) is
``4 (1 - <d, g>^2)``, about the square of the angle between them.
"""

import math

from vrik.arrays import Q4, V3
from vrik.jit import kernel
from vrik.kernels.quat import qdot, qrot
from vrik.kernels.vec import add, any_normal, cross, dot, length, scale, sub, unit_or

NO_ARC = 1e-7
"""Directions nearer than this are the same, or exactly opposite. [rad]"""

ALONG = 0.01
"""A front whose square across a bone is smaller than this does not tell where the bone bends to."""


@kernel
def turn_towards(axis: V3, cosine: float, sine: float, share: float, step: tuple[float, float]) -> Q4:
    """About ``axis`` by ``share`` of the angle with this cosine and sine (times any positive number).

    ``step``: cosine and sine of half the largest turn. The share is that of the
    chord, not of the arc: exact for 0 and 1 and for small angles.
    """
    whole = math.sqrt(cosine * cosine + sine * sine)
    if not whole > 0.0:
        return (1.0, 0.0, 0.0, 0.0)
    if cosine >= 0.0:
        w = whole + cosine
        s = sine
    else:  # near a half turn whole + cosine would be a difference of equals
        w = abs(sine)
        s = math.copysign(whole - cosine, sine)
    if share < 1.0:
        size = math.sqrt(w * w + s * s)
        w = (1.0 - share) * size + share * w
        s = share * s
    size = 1.0 / math.sqrt(w * w + s * s)
    w *= size
    s *= size
    if w < step[0]:
        w = step[0]
        s = math.copysign(step[1], s)
    return (w, axis[0] * s, axis[1] * s, axis[2] * s)


@kernel
def gain(d: Q4, end: V3, goal: V3, wanted: Q4, turn_cost: float) -> float:
    """What the turn ``d`` of a joint is worth; more is better. [m^2]

    Tip and target seen from the joint; ``wanted``: the turn the tip's frame still lacks. The combined cost
    is a constant less twice this.
    """
    value = dot(goal, qrot(d, end))
    if turn_cost > 0.0:
        part = qdot(d, wanted)
        value += 2.0 * turn_cost * part * part
    return value


@kernel
def pull_of(end: V3, goal: V3, wanted: Q4, turn_cost: float) -> V3:
    """Gradient of the gain: the axis of the best small turn, times how much it is worth. [m^2/rad]"""
    pull = cross(end, goal)
    if turn_cost > 0.0:
        return add(pull, scale((wanted[1], wanted[2], wanted[3]), 2.0 * turn_cost * wanted[0]))
    return pull


@kernel
def cosine_about(axis: V3, end: V3, goal: V3, wanted: Q4, turn_cost: float) -> float:
    """The c of Wang & Chen about ``axis``; their s is the ``pull_of`` along it. [m^2]"""
    cosine = dot(end, goal) - dot(end, axis) * dot(goal, axis)
    if turn_cost > 0.0:
        along = wanted[1] * axis[0] + wanted[2] * axis[1] + wanted[3] * axis[2]
        cosine += turn_cost * (wanted[0] * wanted[0] - along * along)
    return cosine


@kernel
def ball_turn(
    end: V3,
    goal: V3,
    wanted: Q4,
    turn_cost: float,
    rotation: Q4,
    pole: V3,
    share: float,
    step: tuple[float, float],
) -> Q4:
    """The best turn of a ball joint about the axis in which it gains most.

    A target exactly behind the joint has no such axis: the joint bends to its front, or to the pole.
    """
    pull = pull_of(end, goal, wanted, turn_cost)
    sine = length(pull)
    reach = length(end) * length(goal)
    if sine > NO_ARC * (reach + turn_cost):
        axis = scale(pull, 1.0 / sine)
        return turn_towards(axis, cosine_about(axis, end, goal, wanted, turn_cost), sine, share, step)
    if reach > 0.0 and dot(end, goal) < 0.0:
        axis = bend_axis(rotation, unit_or(end, (0.0, 1.0, 0.0)), pole)
    else:
        axis = unit_or((wanted[1], wanted[2], wanted[3]), (0.0, 0.0, 0.0))
    cosine = cosine_about(axis, end, goal, wanted, turn_cost)
    if cosine >= 0.0:
        return (1.0, 0.0, 0.0, 0.0)
    return turn_towards(axis, cosine, 0.0, share, step)


@kernel
def hinge_turn(
    axis: V3, end: V3, goal: V3, wanted: Q4, turn_cost: float, share: float, step: tuple[float, float]
) -> Q4:
    """The best turn of a joint that has one axis (world)."""
    sine = dot(pull_of(end, goal, wanted, turn_cost), axis)
    cosine = cosine_about(axis, end, goal, wanted, turn_cost)
    if abs(sine) < NO_ARC * abs(cosine) and cosine >= 0.0:
        return (1.0, 0.0, 0.0, 0.0)
    return turn_towards(axis, cosine, sine, share, step)


@kernel
def fold_axis(anchor: V3, end: V3, rotation: Q4, pole: V3) -> V3:
    """Axis about which a ball joint opens and closes the angle from ``anchor`` to ``end``."""
    normal = cross(end, anchor)
    sine = length(normal)
    if sine > NO_ARC * length(anchor) * length(end):
        return scale(normal, 1.0 / sine)
    return bend_axis(rotation, unit_or(end, (0.0, 1.0, 0.0)), pole)


@kernel
def fold_turn(
    axis: V3, anchor: V3, end: V3, reach: float, other_way: bool, share: float, step: tuple[float, float]
) -> Q4:
    """Turn about ``axis`` that brings ``end`` to the distance ``reach`` from ``anchor``, as nearly as it can.

    By the law of cosines; of the two ways the shorter, or the other one. Both points seen from the joint.
    """
    high = dot(end, axis) * dot(anchor, axis)
    cosine = dot(end, anchor) - high
    sine = dot(cross(end, anchor), axis)
    whole = math.sqrt(cosine * cosine + sine * sine)
    if whole < 1e-12:
        return (1.0, 0.0, 0.0, 0.0)
    if abs(sine) < NO_ARC * whole:
        sine = 0.0  # on a line the sign is rounding: the axis says where to
    u = (0.5 * (dot(end, end) + dot(anchor, anchor) - reach * reach) - high) / whole
    u = min(max(u, -1.0), 1.0)
    v = math.sqrt(1.0 - u * u)
    if (sine < 0.0) != other_way:
        v = -v
    return turn_towards(axis, cosine * u + sine * v, sine * u - cosine * v, share, step)


@kernel
def bend_axis(rotation: Q4, direction: V3, pole: V3) -> V3:
    """Axis about which a segment flexes when nothing else decides: what comes after it goes to its front.

    ``direction`` is where the chain runs (world, unit). A chain that runs to the front flexes up. The
    front is canonical -Z, so that a spine bows forward and mirrored chains bend in mirrored ways; with a
    pole (world), the side away from it, so that the middle goes to the pole.
    """
    front = qrot(rotation, (0.0, 0.0, -1.0))
    if dot(pole, pole) > 0.0:
        front = unit_or(scale(pole, -1.0), front)
    side = cross(direction, front)
    if dot(side, side) < ALONG:
        side = cross(direction, qrot(rotation, (0.0, 1.0, 0.0)))
    return unit_or(side, any_normal(direction))


@kernel
def turn_to_side(middle: V3, end: V3, pole: V3) -> Q4:
    """Turn about ``end`` (seen from the root) that brings ``middle`` to the side of the pole."""
    axis = unit_or(end, (0.0, 0.0, 0.0))
    now = sub(middle, scale(axis, dot(middle, axis)))
    there = sub(pole, scale(axis, dot(pole, axis)))
    cosine = dot(now, there)
    sine = dot(cross(now, there), axis)
    if math.sqrt(cosine * cosine + sine * sine) < ALONG * length(middle) * length(pole):
        return (1.0, 0.0, 0.0, 0.0)  # straight, or the pole along the chain: no side to turn to
    return turn_towards(axis, cosine, sine, 1.0, (0.0, 1.0))
