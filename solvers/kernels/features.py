"""The frame as a prior sees it: head-yaw axes, lengths over stature."""

import math

import numpy as np

from vrik.arrays import Q4, V3, Bools, Floats, Points, Quats
from vrik.jit import entry, kernel
from vrik.kernels.quat import load4, qconj, qrot, qturn, qyaw
from vrik.kernels.vec import load3, scale, store3, sub

HEAD = 0
VELOCITY_TIME_S = 0.05
"""Velocities are averaged over about this long, which keeps device noise out of them. [s]"""
FIRST_HAND = 12
HAND_SIZE = 14
HEAD_TRUST = 40
FIRST_PAST = 42
PAST_SIZE = 11
FIRST_ROLE = 108
ROLE_SIZE = 11
NEVER_S = 10.0
"""Ages above this count as this. [s]"""
PAST_S = np.array([0.05, 0.1, 0.2, 0.4, 0.7, 1.0])
"""How long ago the past is looked at. [s]"""
RING_ROWS = 140
"""Rows of the memory of the past."""
RING_STEP_S = 1.0 / 130.0
"""No two rows are nearer than this, so that all rows together always hold more than a second. [s]"""


@kernel
def wrap(angle_rad: float) -> float:
    """The same angle between -pi and pi. [rad]"""
    return angle_rad - 2.0 * math.pi * math.floor((angle_rad + math.pi) / (2.0 * math.pi))


@kernel
def remember(ring: Floats, clock: Floats, position: Points, yaw: float, dt_s: float) -> None:
    """Advance the clock and keep the frame's head, heading and hands, unless the last row is very young.

    ring (RING_ROWS, 11): time [s], head [m], heading counted on through full turns [rad], left and right
    hand [m]. clock (3,): time now [s], rows ever written, heading counted on [rad].
    """
    clock[0] += dt_s
    written = int(clock[1])
    if written == 0:
        clock[2] = yaw
    else:
        clock[2] += wrap(yaw - clock[2])
        if dt_s <= 0.0 or clock[0] - ring[(written - 1) % RING_ROWS, 0] < RING_STEP_S:
            return
    row = written % RING_ROWS
    ring[row, 0] = clock[0]
    ring[row, 4] = clock[2]
    for a in range(3):
        ring[row, 1 + a] = position[0, a]
        ring[row, 5 + a] = position[1, a]
        ring[row, 8 + a] = position[2, a]
    clock[1] += 1.0


@kernel
def past(ring: Floats, clock: Floats, head: V3, back: Q4, size: float, seen: Bools, out: Floats) -> None:
    """Where head and hands were, seen from now: between the two rows about each of ``PAST_S``.

    Before the first frame everything was where it was then.
    """
    written = int(clock[1])
    oldest = max(written - RING_ROWS, 0)
    row = written - 1
    for k in range(len(PAST_S)):
        wanted = clock[0] - PAST_S[k]
        while row > oldest and ring[row % RING_ROWS, 0] > wanted:
            row -= 1
        a = row % RING_ROWS
        b = min(row + 1, written - 1) % RING_ROWS
        between = ring[b, 0] - ring[a, 0]
        t = min(max((wanted - ring[a, 0]) / between, 0.0), 1.0) if between > 0.0 else 0.0
        base = FIRST_PAST + PAST_SIZE * k
        turned = ring[a, 4] + t * (ring[b, 4] - ring[a, 4]) - clock[2]
        out[base + 3] = math.sin(turned)
        out[base + 4] = math.cos(turned)
        for device in range(3):
            known = size if seen[device] else 0.0
            column = 1 if device == 0 else 2 + 3 * device
            first = base if device == 0 else base + 2 + 3 * device
            was = (
                ring[a, column] + t * (ring[b, column] - ring[a, column]) - head[0],
                ring[a, column + 1] + t * (ring[b, column + 1] - ring[a, column + 1]) - head[1],
                ring[a, column + 2] + t * (ring[b, column + 2] - ring[a, column + 2]) - head[2],
            )
            v = qrot(back, was)
            out[first] = known * v[0]
            out[first + 1] = known * v[1]
            out[first + 2] = known * v[2]


@kernel
def other_role(
    out: Floats, base: int, place: V3, turn: Q4, back: Q4, size: float, weight: float, age_s: float
) -> None:
    """What a tracker other than head and hands says, fading to nothing with its weight."""
    for i in range(ROLE_SIZE):
        out[base + i] = 0.0
    if not weight > 0.0:
        return
    where = qrot(back, place)
    forward = qrot(back, qrot(turn, (0.0, 0.0, -1.0)))
    up = qrot(back, qrot(turn, (0.0, 1.0, 0.0)))
    for a in range(3):
        out[base + a] = weight * size * where[a]
        out[base + 3 + a] = weight * forward[a]
        out[base + 6 + a] = weight * up[a]
    out[base + 9] = weight
    out[base + 10] = min(age_s, NEVER_S)


@entry
@kernel
def features(
    position: Points,
    rotation: Quats,
    weight: Floats,
    age_s: Floats,
    stature_m: float,
    floor_y: float,
    dt_s: float,
    last_position: Points,
    velocity: Points,
    heading: Floats,
    seen: Bools,
    ring: Floats,
    clock: Floats,
    out: Floats,
) -> None:
    """Fill ``out`` (218,), whose layout is ``solvers.features.NAMES``.

    position, rotation, weight, age_s: per role, head and hands first. last_position (3, 3) [m], velocity
    (3, 3) [m/s], heading (2,) yaw [rad] and yaw rate [rad/s], seen (3,), ring and clock (see
    :func:`remember`) are this function's memory.
    """
    keep = math.exp(-dt_s / VELOCITY_TIME_S)
    for r in range(3):
        p = load3(position, r)
        if not seen[r] and weight[r] > 0.0:
            seen[r] = True
            store3(last_position, r, p)
            if r > 0:  # it has no past: it was where it is first seen
                for i in range(RING_ROWS):
                    for a in range(3):
                        ring[i, 2 + 3 * r + a] = p[a]
        if seen[r] and dt_s > 0.0:
            step = scale(sub(p, load3(last_position, r)), 1.0 / dt_s)
            for a in range(3):
                velocity[r, a] = keep * velocity[r, a] + (1.0 - keep) * step[a]
            store3(last_position, r, p)
    head = load3(position, HEAD)
    head_turn = load4(rotation, HEAD)
    yaw = qyaw(head_turn)
    if dt_s > 0.0:
        heading[1] = keep * heading[1] + (1.0 - keep) * wrap(yaw - heading[0]) / dt_s
    heading[0] = yaw
    back = qconj(qturn(yaw))
    size = 1.0 / stature_m
    out[0] = dt_s
    out[1] = (head[1] - floor_y) * size
    forward = qrot(back, qrot(head_turn, (0.0, 0.0, -1.0)))
    up = qrot(back, qrot(head_turn, (0.0, 1.0, 0.0)))
    speed = scale(qrot(back, load3(velocity, HEAD)), size)
    for a in range(3):
        out[2 + a] = forward[a]
        out[5 + a] = up[a]
        out[8 + a] = speed[a]
    out[11] = heading[1]
    for side in range(2):
        r = 1 + side
        base = FIRST_HAND + HAND_SIZE * side
        outwards = -1.0 if side == 0 else 1.0
        turn = load4(rotation, r)
        place = scale(qrot(back, sub(load3(position, r), head)), size)
        fingers = qrot(back, qrot(turn, (outwards, 0.0, 0.0)))
        thumb = qrot(back, qrot(turn, (0.0, 0.0, -1.0)))
        moving = scale(qrot(back, load3(velocity, r)), size)
        known = 1.0 if seen[r] else 0.0  # a hand never seen is nowhere
        for a in range(3):
            out[base + a] = known * place[a]
            out[base + 3 + a] = known * fingers[a]
            out[base + 6 + a] = known * thumb[a]
            out[base + 9 + a] = known * moving[a]
        out[base + 12] = weight[r]
        out[base + 13] = min(age_s[r], NEVER_S)
    out[HEAD_TRUST] = weight[HEAD]
    out[HEAD_TRUST + 1] = min(age_s[HEAD], NEVER_S)
    remember(ring, clock, position, yaw, dt_s)
    past(ring, clock, head, back, size, seen, out)
    for r in range(3, len(weight)):
        base = FIRST_ROLE + ROLE_SIZE * (r - 3)
        place = sub(load3(position, r), head)
        other_role(out, base, place, load4(rotation, r), back, size, weight[r], age_s[r])
