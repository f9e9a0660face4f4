"""Swivel: which way the middle joint of a limb points, about the line from its root to its tip.

Source: Tolani, Goswami & Badler, Graphical Models 62 (2000), section 3, for the angle. No direction serves as
zero for every pose of a limb (a hairy ball cannot be combed), so what is continuous is a side that is carried
along with the limb and follows its pole: :func:`follow`.
"""

import math

from vrik.arrays import V3, Floats
from vrik.jit import entry, kernel
from vrik.kernels.quat import qarc, qaxis, qrot
from vrik.kernels.vec import add, any_normal, cross, dot, length, reject, scale, sub, unit_or

STATE_WIDTH = 10
"""Numbers that :func:`follow` remembers: axis (3), side (3), pole (3), and how far it is (0, 1, 2)."""

AXIS, SIDE, POLE, PHASE = 0, 3, 6, 9
EMPTY, FOLLOWING, CATCHING_UP = 0.0, 1.0, 2.0
DEFINED, HELD, LIMITED = 0, 1, 2

NO_SIDE = 1e-6
"""A pole with a smaller sine to the axis says nothing."""


@kernel
def around(start: V3, end: V3, axis: V3) -> float:
    """Angle from ``start`` to ``end`` about the unit ``axis`` they are at right angles to. [rad]"""
    return math.atan2(dot(cross(start, end), axis), dot(start, end))


@kernel
def angle_between(a: V3, b: V3) -> float:
    """Angle between two directions, 0 to pi; 0 when one has none. [rad]"""
    return math.atan2(length(cross(a, b)), dot(a, b))


@entry
@kernel
def swivel_of(root: V3, middle: V3, tip: V3, reference: V3) -> float:
    """Angle about the axis root to tip from ``reference`` to the middle joint; NaN if there is none. [rad]"""
    axis = unit_or(sub(tip, root), (0.0, 0.0, 0.0))
    zero = unit_or(reject(unit_or(reference, axis), axis), (0.0, 0.0, 0.0))
    off = unit_or(reject(sub(middle, root), axis), (0.0, 0.0, 0.0))
    if dot(axis, axis) < 0.5 or dot(zero, zero) < 0.5 or dot(off, off) < 0.5:
        return math.nan
    return around(zero, off, axis)


@entry
@kernel
def middle_at(root: V3, middle: V3, tip: V3, reference: V3, angle: float) -> V3:
    """The middle joint, turned about the axis root to tip to a swivel; where there is none it stays."""
    axis = unit_or(sub(tip, root), (0.0, 0.0, 0.0))
    zero = unit_or(reject(unit_or(reference, axis), axis), (0.0, 0.0, 0.0))
    if dot(axis, axis) < 0.5 or dot(zero, zero) < 0.5:
        return middle
    out = sub(middle, root)
    along = scale(axis, dot(out, axis))
    side = qrot(qaxis(axis, angle), zero)
    return add(root, add(along, scale(side, length(sub(out, along)))))


@kernel
def carried(side: V3, before: V3, after: V3) -> V3:
    """A side of the axis ``before`` on the axis ``after``: turned along by the smallest turn between them.

    Straight back it stays what it is.
    """
    if dot(before, after) > -1.0 + 1e-9:
        side = qrot(qarc(before, after), side)
    return unit_or(reject(side, after), any_normal(after))


@kernel
def put(state: Floats, at: int, v: V3) -> None:
    """Write three numbers."""
    state[at] = v[0]
    state[at + 1] = v[1]
    state[at + 2] = v[2]


@entry
@kernel
def follow(state: Floats, root: V3, tip: V3, pole: V3, dt: float, rate: float, zone: float) -> int:
    """Bring the side in ``state`` (STATE_WIDTH,) to that of ``pole``; returns DEFINED, HELD or LIMITED.

    The side is first carried along with the axis. Within ``zone`` (the sine between pole and axis) it then
    turns by at most ``rate * dt``; outside by at most that and ``1 / zone`` of the turns of axis and pole,
    which no pole that stays outside can exceed. Having been slower than its pole, it catches up at ``rate``.
    """
    axis = unit_or(sub(tip, root), (0.0, 0.0, 0.0))
    was = (state[AXIS], state[AXIS + 1], state[AXIS + 2])
    if dot(axis, axis) < 0.5:  # folded, tip on root: the axis it had
        axis = unit_or(was, (0.0, -1.0, 0.0))
    way = unit_or(pole, (0.0, 0.0, 0.0))
    off = reject(way, axis)
    sine = length(off)
    says = sine > NO_SIDE
    if state[PHASE] == EMPTY:
        put(state, AXIS, axis)
        put(state, POLE, way)
        put(state, SIDE, unit_or(off, any_normal(axis)))
        state[PHASE] = FOLLOWING if says else EMPTY
        return DEFINED if says else HELD
    side = carried((state[SIDE], state[SIDE + 1], state[SIDE + 2]), was, axis)
    status = HELD
    if says:
        most = rate * dt
        if state[PHASE] == FOLLOWING and sine >= zone:
            before = (state[POLE], state[POLE + 1], state[POLE + 2])
            most += (angle_between(was, axis) + angle_between(before, way)) / zone
        turn = around(side, off, axis)
        status = DEFINED
        state[PHASE] = FOLLOWING
        if abs(turn) > most:
            turn = math.copysign(most, turn)
            status = LIMITED
            state[PHASE] = CATCHING_UP
        side = unit_or(reject(qrot(qaxis(axis, turn), side), axis), side)
        put(state, POLE, way)
    put(state, AXIS, axis)
    put(state, SIDE, side)
    return status
