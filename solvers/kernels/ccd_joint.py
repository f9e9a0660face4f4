"""One joint of cyclic coordinate descent: its best turn, as far as its limits allow."""

from solvers.kernels.ccd_turn import ball_turn, fold_axis, fold_turn, gain, hinge_turn, pull_of
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
    swing_share,
)
from vrik.arrays import Q4, V3, Floats, Quats
from vrik.jit import kernel
from vrik.kernels.quat import load4, qaxis, qconj, qdot, qlog, qmul, qrot, qtwist_angle
from vrik.kernels.vec import add, cross, distance, dot, length, scale, sub, unit_or

CUT = 1e-10
"""A turn is cut by its limits when its quaternion changes by more than this."""

AT_STOP = 1e-3
"""A joint is at a stop when this share of its cone, or this part of its twist [rad], is left."""


@kernel
def turn_joint(
    i: int,
    rotations: Quats,
    limits: Floats,
    base: Q4,
    arm: V3,
    goal: V3,
    wanted: Q4,
    turn_cost: float,
    pole: V3,
    share: float,
    step: tuple[float, float],
) -> Q4:
    """The turn of joint ``i`` that lowers the combined cost most; none when its limits let it gain nothing.

    Tip (``arm``) and goal are seen from the joint.
    """
    if limits[i, KIND] == FREE:
        return ball_turn(arm, goal, wanted, turn_cost, load4(rotations, i), pole, share, step)
    stay = (1.0, 0.0, 0.0, 0.0)
    if limits[i, KIND] == HINGE:
        d = hinge_turn(hinge_axis(i, rotations, limits, base), arm, goal, wanted, turn_cost, share, step)
        d = allowed(i, rotations, limits, base, d)
    else:
        free = ball_turn(arm, goal, wanted, turn_cost, load4(rotations, i), pole, share, step)
        d = allowed(i, rotations, limits, base, free)
        if qdot(d, free) * qdot(d, free) < 1.0 - CUT:
            pull = pull_of(arm, goal, wanted, turn_cost)
            axis = slide_axis(i, rotations, limits, base, pull)
            other = hinge_turn(axis, arm, goal, wanted, turn_cost, share, step)
            other = allowed(i, rotations, limits, base, other)
            if gain(other, arm, goal, wanted, turn_cost) > gain(d, arm, goal, wanted, turn_cost):
                d = other
    if gain(d, arm, goal, wanted, turn_cost) > gain(stay, arm, goal, wanted, turn_cost):
        return d
    return stay


@kernel
def slide_axis(i: int, rotations: Quats, limits: Floats, base: Q4, pull: V3) -> V3:
    """Axis of the best small turn that does not press against the limits joint ``i`` is at.

    The pull without what would swing out of the ellipse or twist out of the range; zero when nothing is left.
    """
    parent = base
    if i > 0:
        parent = load4(rotations, i - 1)
    middle = qmul(parent, center_of(limits, i))
    axis = axis_of(limits, i)
    local = qmul(qconj(middle), load4(rotations, i))
    twist = qtwist_angle(local, axis)
    swing = qmul(local, qaxis(axis, -twist))
    pull = qrot(qconj(middle), pull)
    v = qlog(swing)
    if swing_share(v, limits, i) > 1.0 - AT_STOP:
        out = unit_or(swing_normal(v, limits, i), (0.0, 0.0, 0.0))
        pull = sub(pull, scale(out, max(dot(pull, out), 0.0)))
    bone = qrot(swing, axis)
    roll = dot(pull, bone)
    room = limits[i, HIGH] - twist if roll > 0.0 else twist - limits[i, LOW]
    if room < AT_STOP:
        pull = sub(pull, scale(bone, roll))
    return unit_or(qrot(middle, scale(pull, 1.0 / max(length(pull), 1e-12))), (0.0, 0.0, 0.0))


@kernel
def swing_normal(swing: V3, limits: Floats, i: int) -> V3:
    """Where the ellipse of joint ``i`` faces outwards at ``swing``."""
    axis = axis_of(limits, i)
    side = (limits[i, SIDE], limits[i, SIDE + 1], limits[i, SIDE + 2])
    other = cross(axis, side)
    a = max(limits[i, SWING], 1e-3)
    b = max(limits[i, OTHER_SWING], 1e-3)
    return add(scale(side, dot(swing, side) / (a * a)), scale(other, dot(swing, other) / (b * b)))


@kernel
def fold_joint(
    i: int,
    rotations: Quats,
    limits: Floats,
    base: Q4,
    anchor: V3,
    arm: V3,
    reach: float,
    pole: V3,
    share: float,
    step: tuple[float, float],
) -> Q4:
    """The turn of joint ``i`` that brings the tip to the right distance from ``anchor``, if it does."""
    if limits[i, KIND] == HINGE:
        axis = hinge_axis(i, rotations, limits, base)
    else:
        axis = fold_axis(anchor, arm, load4(rotations, i), pole)
    lack = abs(distance(arm, anchor) - reach)
    for other_way in (False, True):
        d = allowed(i, rotations, limits, base, fold_turn(axis, anchor, arm, reach, other_way, share, step))
        if abs(distance(qrot(d, arm), anchor) - reach) < lack:
            return d
    return (1.0, 0.0, 0.0, 0.0)


@kernel
def hinge_axis(i: int, rotations: Quats, limits: Floats, base: Q4) -> V3:
    """Axis of a hinge, seen from the world."""
    parent = base
    if i > 0:
        parent = load4(rotations, i - 1)
    return qrot(qmul(parent, center_of(limits, i)), axis_of(limits, i))


@kernel
def allowed(i: int, rotations: Quats, limits: Floats, base: Q4, d: Q4) -> Q4:
    """What the limits of joint ``i`` leave of its world turn ``d``."""
    if limits[i, KIND] == FREE:
        return d
    parent = base
    if i > 0:
        parent = load4(rotations, i - 1)
    world = load4(rotations, i)
    local = qmul(qconj(parent), world)
    held = constrain(local, qmul(qconj(parent), qmul(d, world)), limits, i, True)
    return qmul(qmul(parent, held), qconj(world))
