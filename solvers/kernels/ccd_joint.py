"""One joint of cyclic coordinate descent: its best turn, as far as its limits allow."""

from solvers.kernels.ccd_turn import ball_turn, fold_axis, fold_turn, gain, hinge_turn
from solvers.kernels.limits import (
    FREE,
    HINGE,
    KIND,
    axis_of,
    center_of,
    constrain,
)
from vrik.arrays import Q4, V3, Floats, Quats
from vrik.jit import kernel
from vrik.kernels.quat import load4, qconj, qmul, qrot
from vrik.kernels.vec import distance, length

NOISE = 1e-14
"""Turns that gain less than this share of the cost at stake gain nothing but rounding."""


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
    else:
        d = ball_turn(arm, goal, wanted, turn_cost, load4(rotations, i), pole, share, step)
    d = allowed(i, rotations, limits, base, d)
    least = gain(stay, arm, goal, wanted, turn_cost) + NOISE * (length(arm) * length(goal) + turn_cost)
    return d if gain(d, arm, goal, wanted, turn_cost) > least else stay


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
