"""What a Jacobian cannot see: where a chain can reach, and how to leave the line to its target.

A straight chain pulled along itself does not bend: no joint alone brings its tip nearer. :func:`bend` gives
it the arc that fits; :func:`goal_within` keeps goals where a chain can be.
"""

import math

from solvers.kernels.chain import first_free
from solvers.kernels.limits import HINGE, KIND, axis_of, center_of, constrain
from vrik.arrays import Q4, V3, Floats, Points, Quats
from vrik.jit import kernel
from vrik.kernels.quat import load4, qconj, qexp, qlog, qmul, qrot, qunit, store4
from vrik.kernels.vec import add, any_normal, cross, distance, dot, length, load3, reject, scale, sub, unit_or

KICK_RAD = 0.1
"""Bend of each joint when not the distance but something else is stuck. [rad]"""

NO_BEND = 1e-6
"""A chain whose joints are nearer to its line than this share of its length is straight."""


@kernel
def goal_within(root: V3, offsets: Points, first: int, target: V3, soft_m: float) -> V3:
    """``target``, or what the chain from joint ``first`` can have of it: the nearest point its lengths allow.

    With ``soft_m`` the goal begins that far before either end of the reach to lag behind the target, and
    nears the end ever more slowly, so that no joint snaps. At the end itself it lags ``soft_m`` / e.
    """
    longest = 0.0
    high = 0.0
    for i in range(first + 1, len(offsets)):
        bone = length(load3(offsets, i))
        longest = max(longest, bone)
        high += bone
    low = max(2.0 * longest - high, 0.0)
    away = distance(target, root)
    zone = min(soft_m, 0.5 * (high - low))
    wanted = min(max(away, low), high)
    if zone > 0.0 and away > high - zone:
        wanted = high - zone * math.exp((high - zone - away) / zone)
    elif zone > 0.0 and low > 0.0 and away < low + zone:
        wanted = low + zone * math.exp((away - low - zone) / zone)
    if wanted == away or away < 1e-9:
        return target
    return add(root, scale(sub(target, root), wanted / away))


@kernel
def sideways(points: Points, weights: Floats) -> tuple[V3, V3]:
    """Direction from the first joint that turns to the tip, and to which side the chain between them bends.

    Both unit, or zero: the tip on the joint, a straight chain.
    """
    nothing = (0.0, 0.0, 0.0)
    first = first_free(weights)
    m = len(weights)
    root = load3(points, first)
    run = unit_or(sub(load3(points, m), root), nothing)
    side = nothing
    total = 0.0
    for i in range(first + 1, m + 1):
        side = add(side, reject(sub(load3(points, i), root), run))
        total += distance(load3(points, i), load3(points, i - 1))
    size = length(side)
    return (run, scale(side, 1.0 / size) if size > NO_BEND * total and size > 0.0 else nothing)


@kernel
def bend_axis(points: Points, weights: Floats, rotation: Q4, pole: V3) -> V3:
    """Axis about which inner joints turn when a chain bends: it keeps the side it has, else that of the pole.

    When nothing decides, the middle of the chain goes to the back of its first joint (canonical +Z), or
    down, so that mirrored chains bend in mirrored ways.
    """
    run, side = sideways(points, weights)
    if dot(side, side) == 0.0:
        side = reject(pole, run)
    if dot(side, side) < 1e-6:
        side = reject(qrot(rotation, (0.0, 0.0, 1.0)), run)
    if dot(side, side) < 0.01:
        side = reject(qrot(rotation, (0.0, -1.0, 0.0)), run)
    return unit_or(cross(side, run), any_normal(side))


@kernel
def bend(
    points: Points,
    rotations: Quats,
    weights: Floats,
    limits: Floats,
    base: Q4,
    goal: V3,
    pole: V3,
    most: float,
) -> None:
    """Turn the joints of a chain that is stuck on a line, into an arc as wide as the way to ``goal``.

    ``points`` are left as they were.
    """
    m = len(rotations)
    tip = load3(points, m)
    first = first_free(weights)
    high = 0.0
    inner = 0
    for i in range(first, m):
        high += distance(load3(points, i + 1), load3(points, i))
    for i in range(first + 1, m):
        if distance(tip, load3(points, i)) > NO_BEND * high:
            inner += 1
    if inner == 0:
        return
    away = distance(goal, load3(points, first))
    angle = KICK_RAD
    if abs(distance(tip, load3(points, first)) - away) > NO_BEND * high:
        angle = 2.0 * math.acos(min(away / high, 1.0)) / float(inner)
    turn = scale(bend_axis(points, weights, load4(rotations, first), pole), min(angle, most))
    was = base
    parent = base
    for i in range(m):
        world = load4(rotations, i)
        local = qmul(qconj(was), world)
        r = sub(tip, load3(points, i))
        if i > first and weights[i] > 0.0 and length(r) > NO_BEND * high:
            back = qconj(was)
            local = bent(local, scale(qrot(back, turn), weights[i]), qrot(back, unit_or(r, turn)), limits, i)
        was = world
        parent = qunit(qmul(parent, local))
        store4(rotations, i, parent)


@kernel
def bent(before: Q4, turn: V3, run: V3, limits: Floats, i: int) -> Q4:
    """``before`` after ``turn``, or after its opposite where a stop leaves more room there.

    A hinge turns as much as it bends ``run`` (unit, where the chain goes on from here).
    """
    if limits[i, KIND] == HINGE:
        axis = qrot(center_of(limits, i), axis_of(limits, i))
        size = length(turn) * length(cross(axis, run))
        turn = scale(axis, size if dot(axis, turn) >= 0.0 else -size)
    best = before
    most = -1.0
    for sign in range(1, -2, -2):
        after = constrain(before, qmul(qexp(scale(turn, float(sign))), before), limits, i, False)
        gone = length(qlog(qmul(after, qconj(before))))
        if gone > most:
            best = after
            most = 2.0 * gone
    return best
