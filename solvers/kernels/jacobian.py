"""All joints turn together: one loop for damped least squares, pseudo-inverse and Jacobian transpose.

Each round makes a step of J^T y (``jacobian_rows``), inside the limits (``jacobian_step``), and takes it only
if the miss does not grow. The methods differ in the filter on singular values alone.

Sources: Wampler, IEEE Trans. Systems, Man and Cybernetics 16 (1986); Nakamura & Hanafusa, ASME J. Dynamic
Systems, Measurement and Control 108 (1986); Buss (2004), see ``jacobian_rows``.
"""

import math

from solvers.kernels.chain import first_free
from solvers.kernels.jacobian_bend import bend, goal_within
from solvers.kernels.jacobian_rows import (
    DAMPED,
    DRIFT,
    ERROR,
    TRANSPOSED,
    TURN,
    Work,
    put3,
    set_freedoms,
    turn_missing,
)
from solvers.kernels.jacobian_step import make_drifts, make_step, try_step
from vrik.arrays import Q4, V3, Floats, Points, Quats
from vrik.jit import kernel
from vrik.kernels.quat import load4, store4
from vrik.kernels.vec import distance, dot, length, load3, store3, sub

NEAR = 0.1
"""A goal that is not the target itself (out of reach, soft) is met within this share of the tolerance."""

NO_GAIN = 0.01
"""A round that gains less than this share of the tolerance is not worth another one."""

STUCK = 1e-3
"""A step that would take away less than this share of the squared miss is none: the chain is on a line."""

LEAST_SHARE = 0.005
"""A step that makes the miss larger is halved, but not below this."""

NO_STEP = 1e-12
"""A step that turns no joint by more than this is none. [rad]"""

STRAY = 100.0
"""A step with wishes may leave the tip this many tolerances off: the next one brings it back."""

STILL = 1e-6
"""Wishes that turn no joint by more than this are met. [rad]"""

RELAX = 0.25
"""Damping is reduced to this share after each step that went as planned, so that the end is met quickly."""


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
    method: int,
    tolerance_m: float,
    tolerance_rad: float,
    max_rounds: int,
    max_step_rad: float,
    damping: float,
    border: float,
    to_middle: float,
    length_m: float,
    soft_m: float,
    work: Work,
) -> int:
    """Turn the joints in place until the tip is on ``target`` and turned as ``turn``; returns the rounds.

    points (m + 1, 3) [m], of which row 0 stays; rotations (m, 4); offsets, weights and limits as in
    ``solvers.chain.Chain``, ``base`` what joint 0 hangs on. Without ``turn_weight`` only the place counts;
    a radian counts ``length_m`` times the root of ``turn_weight`` metres. ``damping`` and ``border`` are
    shares of the largest singular value, ``to_middle`` the share of the way to the middle of
    their ranges that joints go in a round where the tip does not mind.

    No joint turns farther in a call than |error| / (2 damping s), error at the start and s the largest
    singular value there: what damped least squares turns at most in one step.
    """
    m = len(rotations)
    settle(points, rotations, offsets, limits, base, work)
    first = first_free(weights)
    goal = goal_within(load3(points, first), offsets, first, target, soft_m)
    scaled = length_m * math.sqrt(turn_weight)
    n = 6 if scaled > 0.0 else 3
    wishes = to_middle > 0.0 or dot(pole, pole) > 0.0
    met_m = tolerance_m if distance(goal, target) <= 0.0 else NEAR * tolerance_m
    spare = STRAY * tolerance_m if wishes else 0.0
    mending = False
    room = math.inf
    relax = 1.0
    before = math.inf
    gain = 1.0
    bent_at = -1.0
    downhill = False
    rounds = 0
    while rounds < max_rounds and (room > 0.0 or mending):
        if wishes and rounds > max_rounds // 2:  # the rounds that are left bring the tip back exactly
            wishes = False
            settle(points, rotations, offsets, limits, base, work)
        away = sub(goal, load3(points, m))
        turned = turn_missing(load4(rotations, m - 1), turn, scaled)
        miss = math.hypot(length(away), length(turned))
        met = length(away) <= met_m and length(turned) <= tolerance_rad * scaled
        still = not met and before - miss < NO_GAIN * tolerance_m
        if met and not wishes:
            break
        before = miss
        if still and downhill and bent_at < 0.0 and gain <= STUCK:
            bent_at = miss
            before = math.inf
            for i in range(m):
                store4(work.rotations, m + i, load4(rotations, i))
            bend(points, rotations, weights, limits, base, goal, pole, min(max_step_rad, 0.5 * room))
            settle(points, rotations, offsets, limits, base, work)
            room -= min(max_step_rad, 0.5 * room)
            rounds += 1
            continue
        if still and downhill and not wishes:
            break
        downhill = still and not downhill
        rounds += 1
        put3(work.system, ERROR, 0, away)
        put3(work.system, ERROR, 3, turned)
        set_freedoms(rotations, weights, limits, base, work.joints, work.freedoms)
        strength = damping * relax if method == DAMPED else damping
        way = TRANSPOSED if downhill else method
        mending = rounds > 1 and miss <= spare  # what wishes have moved does not count
        allowed = max_step_rad if mending else room
        gain, step, allowed = make_step(
            points, rotations, limits, base, way, n, strength, border, scaled, max_step_rad, allowed, work
        )
        drift = 0.0
        if wishes:
            drift = make_drifts(
                points, rotations, weights, limits, base, pole, to_middle, n, max_step_rad, work
            )
            if drift < STILL and (met or still):
                break
        share = 0.0
        if step > NO_STEP or drift > NO_STEP:
            stray = spare if wishes else 0.0
            share = advance(points, rotations, offsets, limits, base, goal, turn, scaled, miss, stray, work)
        relax *= RELAX if share == 1.0 else 1.0
        if not mending:
            room = max(allowed, STILL) - share * step
    if bent_at >= 0.0:
        turned = turn_missing(load4(rotations, m - 1), turn, scaled)
        if math.hypot(distance(goal, load3(points, m)), length(turned)) >= bent_at:
            for i in range(m):
                store4(rotations, i, load4(work.rotations, m + i))
            settle(points, rotations, offsets, limits, base, work)
    return rounds


@kernel
def settle(points: Points, rotations: Quats, offsets: Points, limits: Floats, base: Q4, work: Work) -> None:
    """Bring every joint into its range and put points where rotations say: bone lengths are exact."""
    for i in range(len(rotations)):
        put3(work.joints, i, TURN, (0.0, 0.0, 0.0))
        put3(work.joints, i, DRIFT, (0.0, 0.0, 0.0))
    try_step(points, rotations, offsets, limits, base, 0.0, 0.0, work)
    take(points, rotations, work)


@kernel
def take(points: Points, rotations: Quats, work: Work) -> None:
    """The pose that was tried becomes the pose."""
    for i in range(len(rotations)):
        store4(rotations, i, load4(work.rotations, i))
        store3(points, i + 1, load3(work.points, i + 1))


@kernel
def advance(
    points: Points,
    rotations: Quats,
    offsets: Points,
    limits: Floats,
    base: Q4,
    goal: V3,
    turn: Q4,
    scaled: float,
    miss: float,
    spare: float,
    work: Work,
) -> float:
    """Make the step, or half of it, or a quarter, until the miss is smaller (or at most ``spare``).

    Where something is to spare, drifts are made smaller before the step is.

    Returns the share made; 0, and nothing has moved, when no share helps.
    """
    m = len(rotations)
    share = 1.0
    stray = 1.0 if spare > 0.0 else 0.0
    while share > LEAST_SHARE:
        try_step(points, rotations, offsets, limits, base, share, stray, work)
        turned = turn_missing(load4(work.rotations, m - 1), turn, scaled)
        now = math.hypot(distance(load3(work.points, m), goal), length(turned))
        if now < miss or now <= spare:
            take(points, rotations, work)
            return share
        if stray > 0.0:
            stray = 0.25 * stray if stray > LEAST_SHARE else 0.0
        else:
            share *= 0.5
    return 0.0
