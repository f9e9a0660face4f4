"""FABRIK with limits inside: both passes carry whole frames, and what one joint may not do the next one must.

Tip to root each bone is swung onto the place its child took, and its rotation is then moved until the child's
turn, seen from it, is allowed: an elbow that would have to leave its hinge turns the upper arm about itself
instead. Root to tip the same with parents, so that every pass ends inside the limits.

Source: Aristidou, Chrysanthou & Lasenby, "Extending FABRIK with model constraints", Computer Animation and
Virtual Worlds 27 (2016), sections 3 and 4; whole frames in both passes are ours. Constrained FABRIK gets
stuck: then damped least squares (``kernels.fabrik_finish``) goes on from its best pose, and after that other
swivels are tried.
"""

import math

from solvers.kernels.fabrik_finish import finish
from solvers.kernels.limits import FREE, HIGH, KIND, LOW, axis_of, center_of, clamp, constrain
from vrik.arrays import Q4, V3, Floats, Points, Quats
from vrik.jit import kernel
from vrik.kernels.quat import load4, qangle, qarc, qaxis, qconj, qmul, qnear, qrot, qslerp, qunit, store4
from vrik.kernels.vec import add, any_normal, cross, distance, dot, length, load3, store3, sub, unit_or

SCRATCH, OLD, BACK, TRIAL, BEST, START = 0, 1, 2, 3, 4, 5
"""Blocks of scratch rows: joints, joints before, places and rotations of the backward pass (the latter also
of a trial step), the best pose, and the pose to begin from."""

SLOW = 0.7
"""A round that leaves more than this share of the miss is slow."""

PATIENCE = 1
"""This many slow rounds in a row are enough; more gain no target and move joints that need not move."""


@kernel
def block(scratch: Floats, m: int, which: int) -> Floats:
    """Rows of one block for a chain of ``m`` joints."""
    return scratch[which * (m + 1) : (which + 1) * (m + 1)]


@kernel
def solve_limited(
    points: Points,
    rotations: Quats,
    offsets: Points,
    weights: Floats,
    limits: Floats,
    base: Q4,
    target: V3,
    turn: Q4,
    turn_weight: float,
    pole: V3,
    tolerance_m: float,
    tolerance_rad: float,
    turn_m: float,
    max_rounds: int,
    restarts: int,
    scratch: Floats,
    numbers: Floats,
) -> int:
    """Solve within limits; the best pose found is left. Arguments as for ``fabrik_chain.solve``."""
    m = len(rotations)
    start = block(scratch, m, START)
    best = block(scratch, m, BEST)
    hold(points, rotations, offsets, limits, base)
    copy_rows(rotations, start, m)
    copy_rows(rotations, best, m)
    length_m = turn_m * math.sqrt(turn_weight)
    least = cost(points, rotations, target, turn, length_m)
    rounds = 0
    for attempt in range(restarts + 2):
        if attempt > 0:
            copy_rows(start, rotations, m)
            hold(points, rotations, offsets, limits, base)
        if attempt > 1:
            begin_elsewhere(points, rotations, offsets, weights, limits, base, target, pole, attempt - 2)
        if attempt == 0:
            rounds += sweep(
                points, rotations, offsets, weights, limits, base, target, turn, turn_weight, tolerance_m,
                tolerance_rad, length_m, max_rounds - rounds, scratch,
            )  # fmt: skip
        if not is_met(points, rotations, target, turn, turn_weight, tolerance_m, tolerance_rad):
            rounds += finish(
                points, rotations, offsets, weights, limits, base, target, turn, length_m,
                tolerance_m, tolerance_rad, max_rounds - rounds, block(scratch, m, TRIAL), numbers,
            )  # fmt: skip
        found = cost(points, rotations, target, turn, length_m)
        if found < least:
            least = found
            copy_rows(rotations, best, m)
        met = is_met(points, rotations, target, turn, turn_weight, tolerance_m, tolerance_rad)
        if met or rounds >= max_rounds:
            break
    copy_rows(best, rotations, m)
    hold(points, rotations, offsets, limits, base)
    return rounds


@kernel
def sweep(
    points: Points,
    rotations: Quats,
    offsets: Points,
    weights: Floats,
    limits: Floats,
    base: Q4,
    target: V3,
    turn: Q4,
    turn_weight: float,
    tolerance_m: float,
    tolerance_rad: float,
    length_m: float,
    max_rounds: int,
    scratch: Floats,
) -> int:
    """Backward and forward rounds until the target is met or they gain little. Returns the rounds used."""
    m = len(rotations)
    turned = turn_weight > 0.0
    before = cost(points, rotations, target, turn, length_m)
    slow = 0
    for rounds in range(max_rounds):
        if is_met(points, rotations, target, turn, turn_weight, tolerance_m, tolerance_rad):
            return rounds
        places = block(scratch, m, BACK)
        turns = block(scratch, m, TRIAL)
        backward(points, rotations, offsets, weights, limits, target, turn, turned, places, turns)
        forward(points, rotations, offsets, weights, limits, base, turn, turned, places, turns)
        after = cost(points, rotations, target, turn, length_m)
        slow = slow + 1 if after > SLOW * SLOW * before else 0
        before = min(after, before)
        if slow >= PATIENCE:
            return rounds + 1
    return max_rounds


@kernel
def backward(
    points: Points,
    rotations: Quats,
    offsets: Points,
    weights: Floats,
    limits: Floats,
    target: V3,
    turn: Q4,
    turned: bool,
    places: Points,
    turns: Quats,
) -> None:
    """Tip to root: the tip is on the target, and each joint where the one after it lets it be."""
    m = len(rotations)
    store3(places, m, target)
    child = (1.0, 0.0, 0.0, 0.0)
    for i in range(m - 1, -1, -1):
        was = load4(rotations, i)
        goal = load3(places, i + 1)
        found = swung(was, load3(offsets, i + 1), sub(goal, load3(points, i)))
        if i == m - 1:
            if turned:
                found = turn
        else:
            local = qmul(qconj(was), load4(rotations, i + 1))
            wanted = clamp(qmul(qconj(found), child), limits, i + 1)
            found = qmul(child, qconj(part_way(local, wanted, weights[i + 1])))
        found = qunit(found)
        store4(turns, i, found)
        store3(places, i, sub(goal, qrot(found, load3(offsets, i + 1))))
        child = found


@kernel
def forward(
    points: Points,
    rotations: Quats,
    offsets: Points,
    weights: Floats,
    limits: Floats,
    base: Q4,
    turn: Q4,
    turned: bool,
    places: Points,
    turns: Quats,
) -> None:
    """Root to tip: the root is where it was, and each joint turns as far as its limit and weight let it."""
    m = len(rotations)
    parent_before, parent = base, base
    for i in range(m):
        was = load4(rotations, i)
        here = load3(points, i)
        wanted = swung(load4(turns, i), load3(offsets, i + 1), sub(load3(places, i + 1), here))
        if turned and i == m - 1:
            wanted = turn
        local = qmul(qconj(parent_before), was)
        nearer = part_way(local, qmul(qconj(parent), wanted), weights[i])
        if weights[i] > 0.0:
            nearer = constrain(local, nearer, limits, i, True)
        parent_before = was
        parent = qnear(qunit(qmul(parent, nearer)), was)
        store4(rotations, i, parent)
        store3(points, i + 1, add(here, qrot(parent, load3(offsets, i + 1))))


@kernel
def swung(rotation: Q4, offset: V3, towards: V3) -> Q4:
    """``rotation`` and the smallest turn after it that points ``offset`` along ``towards``."""
    bone = unit_or(qrot(rotation, offset), (0.0, 0.0, 0.0))
    line = unit_or(towards, bone)
    if dot(bone, bone) < 0.5:
        return rotation
    return qmul(qarc(bone, line), rotation)


@kernel
def part_way(before: Q4, after: Q4, weight: float) -> Q4:
    """The share ``weight`` of the turn from ``before`` to ``after``."""
    if weight >= 1.0:
        return after
    if weight <= 0.0:
        return before
    return qslerp(before, after, weight)


@kernel
def begin_elsewhere(
    points: Points,
    rotations: Quats,
    offsets: Points,
    weights: Floats,
    limits: Floats,
    base: Q4,
    target: V3,
    pole: V3,
    number: int,
) -> None:
    """Another pose to begin from: free joints in the middle of their ranges, bent to the target's distance.

    The bend is to the side of ``pole``, without one to the front. From ``number`` 1 on the chain is aimed at
    the target and turned about that line by eighths of a turn; which way round is decided by its own lie, so
    that a mirrored chain goes the mirrored way.
    """
    m = len(rotations)
    root = load3(points, 0)
    axis = unit_or(sub(target, root), (0.0, 1.0, 0.0))
    parent_before, parent = base, base
    for i in range(m):
        was = load4(rotations, i)
        local = middle_of(limits, i) if weights[i] > 0.0 else qmul(qconj(parent_before), was)
        parent_before = was
        parent = qnear(qunit(qmul(parent, local)), was)
        store4(rotations, i, parent)
        store3(points, i + 1, add(load3(points, i), qrot(parent, load3(offsets, i + 1))))
    chord = sub(load3(points, m), root)
    along = unit_or(chord, axis)
    share = 0.0
    if number % 2 == 1 or number == 0:  # every other time as bent as the ranges are in the middle
        part = min(distance(target, root) / max(length(chord), 1e-9), 1.0)
        share = math.acos(part) / max(float(m - 1), 1.0)
    side = pole if dot(pole, pole) > 0.0 else qrot(base, (0.0, 0.0, -1.0))
    over = unit_or(cross(side, along), any_normal(along))  # a turn about it brings the tip from the side back
    spin = (1.0, 0.0, 0.0, 0.0)
    if number > 0:
        hand = dot(axis, cross(along, sub(load3(points, 1), root)))
        angle = math.copysign(0.25 * math.pi * float(number - 1), hand)
        spin = qmul(qaxis(axis, angle), qarc(along, axis))
    turn = (1.0, 0.0, 0.0, 0.0)
    for i in range(m):
        if weights[i] > 0.0:
            turn = qmul(spin, qaxis(over, share * float(2 * i - m + 1)))
        store4(rotations, i, qunit(qmul(turn, load4(rotations, i))))
    hold(points, rotations, offsets, limits, base)


@kernel
def middle_of(limits: Floats, i: int) -> Q4:
    """The middle of what joint ``i`` may do, parent-relative: a hinge there is bent, away from its stops."""
    if limits[i, KIND] == FREE:
        return (1.0, 0.0, 0.0, 0.0)
    half = 0.5 * (limits[i, LOW] + limits[i, HIGH])
    return qmul(center_of(limits, i), qaxis(axis_of(limits, i), half))


@kernel
def hold(points: Points, rotations: Quats, offsets: Points, limits: Floats, base: Q4) -> None:
    """Bring every joint inside its limits, root first, and place the points."""
    parent_before, parent = base, base
    for i in range(len(rotations)):
        was = load4(rotations, i)
        local = clamp(qmul(qconj(parent_before), was), limits, i)
        parent_before = was
        parent = qnear(qunit(qmul(parent, local)), was)
        store4(rotations, i, parent)
        store3(points, i + 1, add(load3(points, i), qrot(parent, load3(offsets, i + 1))))


@kernel
def copy_rows(source: Floats, into: Floats, rows: int) -> None:
    """The first ``rows`` rotations."""
    for i in range(rows):
        store4(into, i, load4(source, i))


@kernel
def cost(points: Points, rotations: Quats, target: V3, turn: Q4, length_m: float) -> float:
    """Square of the miss, a radian counting as ``length_m``. [m^2]"""
    m = len(rotations)
    off = sub(load3(points, m), target)
    square = dot(off, off)
    if length_m > 0.0:
        angle = length_m * qangle(load4(rotations, m - 1), turn)
        square += angle * angle
    return square


@kernel
def is_met(
    points: Points, rotations: Quats, target: V3, turn: Q4, turn_weight: float, near_m: float, near_rad: float
) -> bool:
    """Whether tip and last rotation are within the tolerances."""
    m = len(rotations)
    if distance(load3(points, m), target) > near_m:
        return False
    return turn_weight <= 0.0 or qangle(load4(rotations, m - 1), turn) <= near_rad
