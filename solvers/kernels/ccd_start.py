"""What cyclic coordinate descent does before its first sweep: limits, side, goal, and other starts."""

import math

from solvers.kernels.ccd_turn import turn_to_side
from solvers.kernels.chain import place
from solvers.kernels.limits import (
    CONE,
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
    clamp,
    constrain,
)
from vrik.arrays import Q4, V3, Floats, Points, Quats
from vrik.jit import kernel
from vrik.kernels.quat import load4, qaxis, qconj, qexp, qmul, qunit, store4
from vrik.kernels.vec import add, cross, distance, dot, load3, scale, sub

STARTS = 27
"""Poses to choose another start from."""

OUT = 0.6
"""How far out in its cone a joint is in them; of a free joint, in radians."""


@kernel
def bring_inside(rotations: Quats, weights: Floats, limits: Floats, base: Q4) -> None:
    """Turn joints that are outside of their limits to where they are allowed; what follows comes along."""
    before = base
    parent = base
    for i in range(len(rotations)):
        world = load4(rotations, i)
        local = qmul(qconj(before), world)
        if weights[i] > 0.0:
            local = clamp(local, limits, i)
        before = world
        parent = qunit(qmul(parent, local))
        store4(rotations, i, parent)


@kernel
def start_anew(
    points: Points,
    rotations: Quats,
    offsets: Points,
    weights: Floats,
    limits: Floats,
    base: Q4,
    goal: V3,
    worse_than: float,
) -> float:
    """Take another start within the limits; returns how far its tip is from the goal. [m]

    Of ``STARTS`` poses, spread evenly over the joints' ranges, it is the one with the tip nearest to the goal
    but farther than ``worse_than``: call it with what it returned to get the next one.
    """
    kept = (0.0, math.inf)
    for k in range(STARTS + 1):
        code = k if k < STARTS else int(kept[0])
        spread_out(rotations, weights, limits, base, code)
        place(points, rotations, offsets)
        away = distance(load3(points, len(rotations)), goal)
        if worse_than < away < kept[1]:
            kept = (float(k), away)
    return kept[1]


@kernel
def spread_out(rotations: Quats, weights: Floats, limits: Floats, base: Q4, code: int) -> None:
    """Every joint at the same place within its range: ``code`` has three digits to base 3.

    They say where in its range a hinge is, and to which side a ball joint swings. The set of all codes is
    its own mirror image.
    """
    share = 0.5 + 0.3 * (float(code % 3) - 1.0)
    x = OUT * (float(code // 3 % 3) - 1.0)
    y = OUT * (float(code // 9) - 1.0)
    before = base
    parent = base
    for i in range(len(rotations)):
        world = load4(rotations, i)
        local = qmul(qconj(before), world)
        if weights[i] > 0.0 and limits[i, KIND] == FREE:
            local = qexp((x, 0.0, y))
        elif weights[i] > 0.0:
            axis = axis_of(limits, i)
            along = share if limits[i, KIND] == HINGE else 0.5
            local = qaxis(axis, limits[i, LOW] + along * (limits[i, HIGH] - limits[i, LOW]))
            if limits[i, KIND] == CONE:
                side = (limits[i, SIDE], limits[i, SIDE + 1], limits[i, SIDE + 2])
                swing = scale(side, x * limits[i, SWING])
                swing = add(swing, scale(cross(axis, side), y * limits[i, OTHER_SWING]))
                local = qmul(qexp(swing), local)
            local = qmul(center_of(limits, i), local)
        before = world
        parent = qunit(qmul(parent, local))
        store4(rotations, i, parent)


@kernel
def swing_to_pole(
    points: Points, rotations: Quats, offsets: Points, limits: Floats, base: Q4, first: int, pole: V3
) -> None:
    """Turn the whole chain about the line from its first free joint to its tip, to the side of the pole."""
    m = len(rotations)
    root = load3(points, first)
    end = sub(load3(points, m), root)
    out = (0.0, 0.0, 0.0)
    for i in range(first + 1, m):
        out = add(out, sub(load3(points, i), root))
    if dot(pole, pole) <= 0.0 or dot(end, end) <= 0.0:
        return
    d = turn_to_side(out, end, pole)
    if limits[first, KIND] != FREE:
        parent = base
        if first > 0:
            parent = load4(rotations, first - 1)
        world = load4(rotations, first)
        back = qconj(parent)
        held = constrain(qmul(back, world), qmul(back, qmul(d, world)), limits, first, True)
        d = qmul(qmul(parent, held), qconj(world))
    for i in range(first, m):
        store4(rotations, i, qunit(qmul(d, load4(rotations, i))))
    place(points, rotations, offsets)
