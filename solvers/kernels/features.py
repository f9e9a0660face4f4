"""The frame as a prior sees it: head-yaw axes, lengths over stature."""

import math

from vrik.arrays import Bools, Floats, Points, Quats
from vrik.jit import entry, kernel
from vrik.kernels.quat import load4, qconj, qrot, qturn, qyaw
from vrik.kernels.vec import load3, scale, store3, sub

HEAD = 0
VELOCITY_TIME_S = 0.05
"""Velocities are averaged over about this long, which keeps device noise out of them. [s]"""
FIRST_HAND = 12
HAND_SIZE = 14


@kernel
def wrap(angle_rad: float) -> float:
    """The same angle between -pi and pi. [rad]"""
    return angle_rad - 2.0 * math.pi * math.floor((angle_rad + math.pi) / (2.0 * math.pi))


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
    out: Floats,
) -> None:
    """Fill ``out`` (40,), whose layout is ``solvers.features.NAMES``.

    position, rotation, weight, age_s: per role, of which the first three (head, left hand, right hand)
    are read. last_position (3, 3) [m], velocity (3, 3) [m/s], heading (2,) yaw [rad] and yaw rate
    [rad/s] and seen (3,) are this function's memory.
    """
    keep = math.exp(-dt_s / VELOCITY_TIME_S)
    for r in range(3):
        p = load3(position, r)
        if not seen[r] and weight[r] > 0.0:
            seen[r] = True
            store3(last_position, r, p)
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
        out[base + 13] = min(age_s[r], 10.0)
