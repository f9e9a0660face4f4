"""One step of all joints at once: within their limits, with wishes for the freedom that is left over.

A step that would run a joint into its stop is made again without the blocked direction, so that the other
joints take over (clamped least squares: Baerlocher & Boulic, The Visual Computer 20 (2004)). Wishes go
through the null space of J: they move joints, not the tip (Liegeois, IEEE Trans. Systems, Man and Cybernetics
7 (1977)).
"""

import math

from solvers.kernels.jacobian_bend import sideways
from solvers.kernels.jacobian_limits import hold_stopped, middle_turn
from solvers.kernels.jacobian_rows import (
    AXIS,
    DRIFT,
    EFFECT,
    ERROR,
    FREEDOMS,
    HELD,
    TRUNCATED,
    TURN,
    Work,
    decompose,
    part3,
    pulled,
    put3,
    set_effects,
    set_pull,
)
from solvers.kernels.limits import constrain
from solvers.kernels.symmetric import VALUES
from vrik.arrays import Q4, V3, Floats, Points, Quats
from vrik.jit import kernel
from vrik.kernels.quat import load4, qconj, qexp, qmul, qrot, qunit, store4
from vrik.kernels.vec import add, cross, dot, length, load3, reject, scale, store3, sub

BLOCKS = 6
"""How often a step is made anew because joints were stopped."""

NULL = 1e-6
"""Singular values below this share of the largest belong to the null space."""


@kernel
def make_step(
    points: Points,
    rotations: Quats,
    limits: Floats,
    base: Q4,
    method: int,
    n: int,
    damping: float,
    border: float,
    scaled: float,
    most: float,
    room: float,
    work: Work,
) -> tuple[float, float, float]:
    """Fill the turns of all joints, none of them larger than ``most`` and ``room``. [rad]

    Freedoms and error (its ``n`` rows) are set. With an infinite room it is found here: |error| /
    (2 ``damping`` s), s the largest singular value. Returns the share of |error|^2 that goes as long as no
    joint is stopped, the largest turn and the room.
    """
    gain = 0.0
    turn = 0.0
    for block in range(BLOCKS):
        if block > 0:
            if not hold_stopped(rotations, limits, base, work.joints, work.freedoms):
                break
            add_held(points, scaled, -1.0, work.joints, work.system)
        set_effects(points, scaled, work.joints, work.freedoms)
        largest = decompose(n, work.joints, work.freedoms, work.system)
        taken = set_pull(method, n, largest, damping, border, work.system)
        if block > 0:
            add_held(points, scaled, 1.0, work.joints, work.system)
        turn = set_turns(n, work)
        if block == 0:
            gain = taken
            if room == math.inf and damping > 0.0 and largest > 0.0:
                room = error_size(n, work.system) / (2.0 * damping * math.sqrt(largest))
        if turn > min(most, room):
            share = min(most, room) / turn
            turn *= share
            shorten(share, block == 0, work.joints, work.system)
    return (gain, turn, room)


@kernel
def set_turns(n: int, work: Work) -> float:
    """The step of each joint, what its stop dictates and J^T y; returns the largest turn. [rad]"""
    largest = 0.0
    for i in range(len(work.joints)):
        turn = part3(work.joints, i, HELD)
        for c in range(3 * i, 3 * i + int(work.joints[i, FREEDOMS])):
            turn = add(turn, scale(part3(work.freedoms, c, AXIS), pulled(c, n, work.freedoms, work.system)))
        put3(work.joints, i, TURN, turn)
        largest = max(largest, length(turn))
    return largest


@kernel
def error_size(n: int, system: Floats) -> float:
    """|error|. [m]"""
    square = 0.0
    for a in range(n):
        square += system[ERROR, a] * system[ERROR, a]
    return math.sqrt(square)


@kernel
def shorten(share: float, aim_too: bool, joints: Floats, system: Floats) -> None:
    """Turn by this share only, and with ``aim_too`` let the step do only this share of the error."""
    for i in range(len(joints)):
        put3(joints, i, TURN, scale(part3(joints, i, TURN), share))
    if aim_too:
        for a in range(6):
            system[ERROR, a] *= share


@kernel
def add_held(points: Points, scaled: float, sign: float, joints: Floats, system: Floats) -> None:
    """Add to the error what the held turns do to tip and last joint, times ``sign``."""
    tip = load3(points, len(joints))
    for i in range(len(joints)):
        held = scale(part3(joints, i, HELD), sign)
        put3(system, ERROR, 0, add(part3(system, ERROR, 0), cross(held, sub(tip, load3(points, i)))))
        put3(system, ERROR, 3, add(part3(system, ERROR, 3), scale(held, scaled)))


@kernel
def make_drifts(
    points: Points,
    rotations: Quats,
    weights: Floats,
    limits: Floats,
    base: Q4,
    pole: V3,
    to_middle: float,
    n: int,
    most: float,
    work: Work,
) -> float:
    """Fill the drifts, to the middle of all ranges and the pole, that leave the tip; returns the largest.

    (I - J^+ J) z, by the decomposition that the step was made with; the error is used up.
    """
    joints, rows, system = work.joints, work.freedoms, work.system
    parent = base
    side = swivel_to(points, weights, pole)
    for a in range(6):
        system[ERROR, a] = 0.0
    for i in range(len(joints)):
        world = load4(rotations, i)
        wish = scale(qrot(parent, middle_turn(qmul(qconj(parent), world), limits, i)), to_middle)
        if weights[i] > 0.0:
            wish = add(wish, side)
            side = (0.0, 0.0, 0.0)
        put3(joints, i, DRIFT, wish)
        parent = world
        for c in range(3 * i, 3 * i + int(joints[i, FREEDOMS])):
            for a in range(n):
                system[ERROR, a] += rows[c, EFFECT + a] * dot(part3(rows, c, AXIS), wish)
    largest = 0.0
    for k in range(n):
        largest = max(largest, system[VALUES, k])
    set_pull(TRUNCATED, n, largest, NULL, 0.0, system)
    size = 0.0
    for i in range(len(joints)):
        drift = (0.0, 0.0, 0.0)
        for c in range(3 * i, 3 * i + int(joints[i, FREEDOMS])):
            axis = part3(rows, c, AXIS)
            drift = add(drift, scale(axis, dot(axis, part3(joints, i, DRIFT)) - pulled(c, n, rows, system)))
        put3(joints, i, DRIFT, drift)
        size = max(size, length(drift))
    if size > most:
        for i in range(len(joints)):
            put3(joints, i, DRIFT, scale(part3(joints, i, DRIFT), most / size))
    return size


@kernel
def swivel_to(points: Points, weights: Floats, pole: V3) -> V3:
    """Turn of the whole chain about its line to the tip that brings its bend to the pole's side. [rad]"""
    run, bend = sideways(points, weights)
    wanted = reject(pole, run)
    if dot(bend, bend) == 0.0 or length(wanted) < 1e-3 * length(pole):
        return (0.0, 0.0, 0.0)
    return scale(run, math.atan2(dot(cross(bend, wanted), run), dot(bend, wanted)))


@kernel
def try_step(
    points: Points,
    rotations: Quats,
    offsets: Points,
    limits: Floats,
    base: Q4,
    share: float,
    stray: float,
    work: Work,
) -> None:
    """Put the pose after ``share`` of the step and ``stray`` of the drifts, inside limits, into ``work``."""
    was = base
    parent = base
    at = load3(points, 0)
    store3(work.points, 0, at)
    for i in range(len(rotations)):
        world = load4(rotations, i)
        before = qmul(qconj(was), world)
        turn = add(scale(part3(work.joints, i, TURN), share), scale(part3(work.joints, i, DRIFT), stray))
        after = qmul(qexp(qrot(qconj(was), turn)), before)
        was = world
        parent = qunit(qmul(parent, constrain(before, after, limits, i, True)))
        store4(work.rotations, i, parent)
        at = add(at, qrot(parent, load3(offsets, i + 1)))
        store3(work.points, i + 1, at)
