"""Cyclic coordinate descent: joint after joint turns so that the tip comes nearer to the target.

Source: Wang & Chen, "A combined optimization method for solving the inverse kinematics problem of
mechanical manipulators", IEEE Trans. Robotics and Automation 7 (1991). Rearranged: while a sweep goes
from tip to root only the tip's position matters, so each joint stores its new rotation relative to its
parent, and one pass from root to tip then moves all joints: O(n) a sweep instead of O(n^2).

Added here: near straight, and on the line to the target, turning towards the target gains nearly nothing,
because what is wrong is the distance. When sweeps become slow, every other one turns the joints "by reach"
instead, so that root and tip get the right distance (the idea of Mueller-Cajar & Mukundan, "Triangulation",
2007, with the bend shared by the weights).
"""

import math

from solvers.kernels.chain import (
    NEAR,
    NO_ARC,
    NO_GAIN,
    arc,
    bend_axis,
    first_free,
    place_joints,
    within_length,
)
from vrik.arrays import Q4, V3, Floats, Points, Quats
from vrik.jit import kernel
from vrik.kernels.quat import load4, qconj, qexp, qlog, qmul, qrot, qunit, store4
from vrik.kernels.vec import add, cross, distance, dot, length, load3, scale, store3, sub

STILL = 1e-9
"""A sweep in which no joint turns more than this has stopped. [rad]"""

SLOW = 0.5
"""A sweep that leaves more than this share of the miss is slow: time for a sweep by reach."""

PATIENCE = 3
"""Sweeps by reach that may fail to help before they are given up."""

HELPS = 0.9
"""A sweep by reach, with the plain one after it, helps when at most this share of the miss is left."""

INSIDE = 1e-9
"""Rounding that a joint at its limit may show. [rad]"""


@kernel
def solve(
    positions: Points,
    rotations: Quats,
    offsets: Points,
    weights: Floats,
    target: V3,
    tolerance: float,
    max_step_rad: float,
    max_sweeps: int,
    limits: Floats,
    base: Q4,
) -> int:
    """Turn the joints in place until the tip is on ``target``; returns the sweeps used.

    The chain is as in ``kernels/chain.py``. weights (n,): 0 is rigid, 1 turns all the way. limits (n,)
    largest angle between a segment and the one before [rad], pi or more for none; ``base`` is the world
    rotation before segment 0. A joint that starts outside its limit is brought inside when it turns.
    """
    tip = len(positions) - 1
    place_joints(positions, rotations, offsets)
    goal = within_length(positions, offsets, weights, target)
    by_reach = False
    patience = PATIENCE
    before = math.inf  # miss before the last sweep
    before_reach = math.inf  # miss before the last sweep by reach
    for sweep_number in range(max_sweeps):
        miss = distance(load3(positions, tip), goal)
        if distance(load3(positions, tip), target) <= tolerance or miss <= NEAR * tolerance:
            return sweep_number
        if patience <= 0 and before - miss < NO_GAIN * tolerance:
            return sweep_number
        if by_reach:  # a sweep by reach is judged together with the plain one after it
            by_reach = False
        else:
            if miss >= HELPS * before_reach:
                patience -= 1
            before_reach = math.inf
            by_reach = patience > 0 and sweep_number > 0 and miss > SLOW * before
            if by_reach:
                before_reach = miss
        before = miss
        turned = sweep(positions, rotations, offsets, weights, goal, max_step_rad, limits, base, by_reach)
        if turned < STILL and patience <= 0:
            return sweep_number + 1
    return max_sweeps


@kernel
def sweep(
    positions: Points,
    rotations: Quats,
    offsets: Points,
    weights: Floats,
    target: V3,
    max_step_rad: float,
    limits: Floats,
    base: Q4,
    by_reach: bool,
) -> float:
    """One sweep from tip to root; returns (about) the largest turn that was made. [rad]

    Plain, each joint turns the tip towards the target. By reach, each joint but the first free one
    does its share to make the tip as far from that one as the target is.
    """
    tip = len(positions) - 1
    first = first_free(weights)
    anchor = load3(positions, first)
    reach = distance(anchor, target)
    sharing = 0.0
    for i in range(first + 1, tip):
        sharing += weights[i]
    end = load3(positions, tip)
    largest = 0.0
    for i in range(tip - 1, -1, -1):
        parent = base
        if i > 0:
            parent = load4(rotations, i - 1)
        world = load4(rotations, i)
        local = qmul(qconj(parent), world)
        if weights[i] > 0.0:
            pivot = load3(positions, i)
            aim = not by_reach or i <= first
            if aim:
                turn = scale(arc(sub(end, pivot), sub(target, pivot), world), weights[i])
            else:
                share = min(weights[i] / sharing, 1.0)
                turn = scale(open_to(sub(anchor, pivot), sub(end, pivot), reach, world), share)
                sharing -= weights[i]
            full = length(turn)
            if full > max_step_rad:
                turn = scale(turn, max_step_rad / full)
            change = qexp(turn)
            turned = qmul(qconj(parent), qmul(change, world))
            outside = False
            if limits[i] < math.pi:
                outside = length(qlog(local)) > limits[i] + INSIDE
                turned = within(turned, limits[i])
                change = qmul(qmul(parent, turned), qconj(world))
            moved = add(pivot, qrot(change, sub(end, pivot)))
            if aim:
                better = distance(moved, target) < distance(end, target)
            else:
                better = abs(distance(moved, anchor) - reach) < abs(distance(end, anchor) - reach)
            if better or outside:
                largest = max(largest, 2.0 * length((change[1], change[2], change[3])))
                end = moved
                local = turned
        store4(rotations, i, local)  # relative to the parent until the pass below
    parent = base
    for i in range(tip):
        parent = qunit(qmul(parent, load4(rotations, i)))
        store4(rotations, i, parent)
        store3(positions, i + 1, add(load3(positions, i), qrot(parent, load3(offsets, i + 1))))
    return largest


@kernel
def open_to(anchor: V3, end: V3, reach: float, rotation: Q4) -> V3:
    """Rotation vector that turns ``end`` until it is ``reach`` from ``anchor``, by the law of cosines. [rad]

    Both are seen from the joint that turns. On a line the joint bends about its ``bend_axis``.
    """
    a = length(anchor)
    b = length(end)
    if a < 1e-9 or b < 1e-9:
        return (0.0, 0.0, 0.0)
    normal = cross(anchor, end)
    sine = length(normal)
    now = math.atan2(sine, dot(anchor, end))
    cosine = (a * a + b * b - reach * reach) / (2.0 * a * b)
    wanted = math.acos(min(max(cosine, -1.0), 1.0))
    if sine < NO_ARC * a * b:
        return scale(bend_axis(rotation, scale(end, 1.0 / b)), abs(wanted - now))
    return scale(normal, (wanted - now) / sine)


@kernel
def within(local: Q4, limit_rad: float) -> Q4:
    """``local`` with its angle cut to ``limit_rad``, about the same axis."""
    v = qlog(local)
    angle = length(v)
    if angle <= limit_rad:
        return local
    return qexp(scale(v, limit_rad / angle))
