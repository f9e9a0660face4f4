"""Cyclic coordinate descent: joint after joint turns so that the tip comes nearer to the target.

Source: Wang & Chen, "A combined optimization method for solving the inverse kinematics problem of
mechanical manipulators", IEEE Trans. Robotics and Automation 7 (1991), with their combined cost of place and
rotation. Rearranged: while a sweep goes from tip to root only the tip matters, so each joint stores its turn,
and one pass from root to tip then moves all joints: O(n) a sweep instead of O(n^2).

Added here: near straight, and on the line to the target, turning towards the target gains nearly nothing,
because what is wrong is the distance. When sweeps become slow, every other one folds the joints instead,
so that root and tip get the right distance (the idea of Mueller-Cajar & Mukundan, "Triangulation", 2007, with
the bend shared by the weights). And a start far away may lead into limits that plain descent does not come
out of: it is then tried again from the middle of the joints' ranges.
"""

import math

from solvers.kernels.ccd_joint import fold_joint, turn_joint
from solvers.kernels.ccd_start import bring_inside, start_anew, swing_to_pole
from solvers.kernels.chain import copy_rows, first_free, length_after, place, within_length
from solvers.kernels.limits import constrain
from vrik.arrays import Q4, V3, Floats, Points, Quats
from vrik.jit import kernel
from vrik.kernels.quat import load4, qconj, qdot, qmul, qrot, qunit, store4
from vrik.kernels.vec import add, distance, length, load3, store3, sub

STILL = 1e-9
"""A sweep in which no joint turns more than this has stopped. [rad]"""

SLOW = 0.5
"""A sweep that leaves more than this share of the miss is slow: time for a folding sweep."""

PATIENCE = 3
"""Folding sweeps that may fail to help before they are given up: so many more sweeps a stall is granted."""

HELPS = 0.9
"""A folding sweep, with the plain one after it, helps when at most this share of the miss is left."""

NEAR = 0.1
"""A target out of reach is met when the tip is within this share of the tolerance of the nearest point."""

NO_GAIN = 0.01
"""A sweep that gains less than this share of the tolerance is not worth another one."""

STUCK = 0.9
"""While there is another start to try, a descent without patience ends after ``PATIENCE`` sweeps in a row
that each leave more than this share of the miss."""

COLD_SHARE = 0.1
"""A tip that begins farther from its target than this share of the chain's length may start anew elsewhere;
a warm start never does."""

STRIDES = 4
"""How often what a slow sweep did is done again, farther each time, while that lowers the miss."""

RESTARTS = 8
"""Starts to try after the first."""

SCRATCH = 5
"""Sets of m quaternions of scratch, see ``solve`` and ``descend``."""


@kernel
def solve(
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
    tolerance: float,
    tolerance_rad: float,
    max_rounds: int,
    max_step_rad: float,
    near_step_rad: float,
    damping: float,
    turn_length: float,
    anew: bool,
    scratch: Quats,
) -> int:
    """Turn the joints in place until the tip meets ``target``; returns the sweeps used.

    points (m + 1, 3) and rotations (m, 4) hold the warm start, weights (m,), limits as ``pack_limits`` has
    them, ``base`` the world rotation before joint 0. ``turn`` is for the last joint, and a radian of it
    counts as much as ``turn_length`` times the root of ``turn_weight``. Joints step by ``near_step_rad`` at
    the target, up to ``max_step_rad`` a chain's length away, and make ``damping`` of their turn.
    ``anew``: a start far away that gets stuck may be given up for another one.
    scratch (SCRATCH * m, 4). Distances in metres.
    """
    m = len(rotations)
    first = first_free(weights)
    bring_inside(rotations, weights, limits, base)
    place(points, rotations, offsets)
    swing_to_pole(points, rotations, offsets, limits, base, first, pole)
    total = length_after(offsets, first)
    goal = within_length(load3(points, first), total, target)
    if distance(goal, target) > 0.0:
        tolerance *= NEAR
    turn_cost = turn_weight * turn_length * turn_length
    far = anew and distance(load3(points, m), goal) > COLD_SHARE * total
    kept = scratch[2 * m : 3 * m]
    used = 0
    best = math.inf
    last = 0.0
    for attempt in range(RESTARTS + 1):
        if attempt > 0:
            copy_rows(rotations, kept)
            last = start_anew(points, rotations, offsets, weights, limits, base, goal, last)
        restless = far and attempt < RESTARTS
        used += descend(
            points,
            rotations,
            offsets,
            weights,
            limits,
            base,
            goal,
            turn,
            turn_cost,
            pole,
            tolerance,
            tolerance_rad,
            max_rounds - used,
            max_step_rad,
            near_step_rad,
            damping,
            total,
            restless,
            scratch,
        )
        miss = miss_of(points, rotations, goal, turn, turn_cost)
        if attempt > 0 and miss >= best:
            copy_rows(kept, rotations)
            place(points, rotations, offsets)
        best = min(best, miss)
        if (
            not far
            or used >= max_rounds
            or is_met(points, rotations, goal, turn, turn_cost, tolerance, tolerance_rad)
        ):
            break
    return used


@kernel
def miss_of(points: Points, rotations: Quats, goal: V3, turn: Q4, turn_cost: float) -> float:
    """Root of the combined cost: distance, and rotation as a distance. [m]"""
    m = len(rotations)
    away = distance(load3(points, m), goal)
    if turn_cost <= 0.0:
        return away
    part = qdot(load4(rotations, m - 1), turn)
    return math.sqrt(away * away + 4.0 * turn_cost * max(1.0 - part * part, 0.0))


@kernel
def is_met(
    points: Points,
    rotations: Quats,
    goal: V3,
    turn: Q4,
    turn_cost: float,
    tolerance: float,
    tolerance_rad: float,
) -> bool:
    """Whether place and, if it counts, rotation are within the tolerances."""
    m = len(rotations)
    if not distance(load3(points, m), goal) <= tolerance:
        return False
    if turn_cost <= 0.0:
        return True
    lack = qmul(turn, qconj(load4(rotations, m - 1)))
    return 2.0 * length((lack[1], lack[2], lack[3])) <= tolerance_rad


@kernel
def descend(
    points: Points,
    rotations: Quats,
    offsets: Points,
    weights: Floats,
    limits: Floats,
    base: Q4,
    goal: V3,
    turn: Q4,
    turn_cost: float,
    pole: V3,
    tolerance: float,
    tolerance_rad: float,
    max_rounds: int,
    max_step_rad: float,
    near_step_rad: float,
    damping: float,
    total: float,
    restless: bool,
    scratch: Quats,
) -> int:
    """Sweep until the tip is met or more sweeps gain nothing; returns how many.

    A sweep that is slow, or after which the miss has grown, is followed by a folding sweep and a plain one.
    The two are taken back when the miss is no smaller after them; ``PATIENCE`` such failures are granted.
    """
    m = len(rotations)
    turns = scratch[:m]
    kept = scratch[m : 2 * m]
    before_sweep = scratch[3 * m : 4 * m]
    plain = scratch[4 * m : 5 * m]
    folding = False
    patience = 1 if restless else PATIENCE
    boost = 1.0
    stuck = 0
    before = math.inf  # miss before the last sweep
    before_fold = math.inf  # miss before the last folding sweep
    for used in range(max_rounds):
        if is_met(points, rotations, goal, turn, turn_cost, tolerance, tolerance_rad):
            return used
        miss = miss_of(points, rotations, goal, turn, turn_cost)
        if folding:  # is judged together with the plain sweep after it
            folding = False
        else:
            if miss >= before_fold:
                copy_rows(kept, rotations)
                place(points, rotations, offsets)
                miss = before_fold
            elif miss > SLOW * before and before < math.inf:
                for _ in range(STRIDES):
                    copy_rows(rotations, plain)
                    go_on(rotations, before_sweep, weights, limits, base, boost)
                    place(points, rotations, offsets)
                    farther = miss_of(points, rotations, goal, turn, turn_cost)
                    if farther >= miss:
                        copy_rows(plain, rotations)
                        place(points, rotations, offsets)
                        boost = max(0.5 * boost, 0.25)
                        break
                    miss = farther
                    boost = min(2.0 * boost, 4.0)
                if is_met(points, rotations, goal, turn, turn_cost, tolerance, tolerance_rad):
                    return used
            if miss >= HELPS * before_fold:
                patience -= 1
            elif patience <= 0 and before - miss < NO_GAIN * tolerance:
                return used
            elif patience <= 0 and restless:
                stuck = stuck + 1 if miss > STUCK * before else 0
                if stuck >= PATIENCE:
                    return used
            before_fold = math.inf
            folding = patience > 0 and used > 0 and miss > SLOW * before
            if folding:
                before_fold = miss
                copy_rows(rotations, kept)
        before = miss
        share = min(miss / max(total, 1e-9), 1.0)
        half = 0.5 * (near_step_rad + (max_step_rad - near_step_rad) * share)
        half = min(half, 0.5 * math.pi)
        step = (math.cos(half), math.sin(half))
        if not folding:
            copy_rows(rotations, before_sweep)
        largest = sweep(
            points,
            rotations,
            offsets,
            weights,
            limits,
            base,
            goal,
            turn,
            turn_cost,
            pole,
            damping,
            step,
            folding,
            turns,
        )
        if largest < STILL and patience <= 0:
            return used + 1
    if miss_of(points, rotations, goal, turn, turn_cost) > before_fold:  # the last round was a folding sweep
        copy_rows(kept, rotations)
        place(points, rotations, offsets)
    return max_rounds


@kernel
def go_on(rotations: Quats, before: Quats, weights: Floats, limits: Floats, base: Q4, times: float) -> None:
    """Let all joints turn on, ``times`` as far again as they have since ``before``, as their limits allow."""
    was_parent = base
    is_parent = base
    parent = base
    for i in range(len(rotations)):
        was = load4(before, i)
        now = load4(rotations, i)
        local = qmul(qconj(is_parent), now)
        if weights[i] > 0.0:
            d = qmul(qconj(qmul(qconj(was_parent), was)), local)
            if d[0] > 0.0:
                d = qunit((d[0], times * d[1], times * d[2], times * d[3]))
                local = constrain(local, qmul(local, d), limits, i, True)
        was_parent = was
        is_parent = now
        parent = qunit(qmul(parent, local))
        store4(rotations, i, parent)


@kernel
def sweep(
    points: Points,
    rotations: Quats,
    offsets: Points,
    weights: Floats,
    limits: Floats,
    base: Q4,
    goal: V3,
    turn: Q4,
    turn_cost: float,
    pole: V3,
    damping: float,
    step: tuple[float, float],
    folding: bool,
    turns: Quats,
) -> float:
    """One sweep from tip to root; returns (about) the largest turn that was made. [rad]

    Plain, each joint makes the turn that lowers the combined cost most. Folding, each joint but the first
    free one does its share to make the tip as far from that one as the target is.
    """
    m = len(rotations)
    first = first_free(weights)
    anchor = load3(points, first)
    reach = distance(anchor, goal)
    sharing = 0.0
    for i in range(first + 1, m):
        sharing += weights[i]
    end = load3(points, m)
    wanted = qmul(turn, qconj(load4(rotations, m - 1)))
    largest = 0.0
    for i in range(m - 1, -1, -1):
        d = (1.0, 0.0, 0.0, 0.0)
        if weights[i] > 0.0:
            pivot = load3(points, i)
            arm = sub(end, pivot)
            fold = folding and i > first
            share = weights[i] * damping
            if fold:
                d = fold_joint(
                    i,
                    rotations,
                    limits,
                    base,
                    sub(anchor, pivot),
                    arm,
                    reach,
                    pole,
                    min(share / sharing, 1.0),
                    step,
                )
                sharing -= weights[i]
            else:
                d = turn_joint(
                    i, rotations, limits, base, arm, sub(goal, pivot), wanted, turn_cost, pole, share, step
                )
            end = add(pivot, qrot(d, arm))
            if turn_cost > 0.0:
                wanted = qmul(wanted, qconj(d))
            largest = max(largest, 2.0 * length((d[1], d[2], d[3])))
        store4(turns, i, d)
    advance(points, rotations, offsets, turns)
    return largest


@kernel
def advance(points: Points, rotations: Quats, offsets: Points, turns: Quats) -> None:
    """From root to tip: every joint takes the turns of all joints before it along, and its own."""
    q = (1.0, 0.0, 0.0, 0.0)
    for i in range(len(rotations)):
        q = nearly_unit(qmul(q, load4(turns, i)))
        world = nearly_unit(qmul(q, load4(rotations, i)))
        store4(rotations, i, world)
        store3(points, i + 1, add(load3(points, i), qrot(world, load3(offsets, i + 1))))


@kernel
def nearly_unit(q: Q4) -> Q4:
    """Length one again after rounding: the first term of the series, without a root."""
    s = 1.5 - 0.5 * qdot(q, q)
    return (q[0] * s, q[1] * s, q[2] * s, q[3] * s)
