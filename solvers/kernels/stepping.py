"""Feet that stand still until a step is due."""

import math

from solvers.kernels.features import wrap
from vrik.arrays import Bools, Floats, Points, Quats
from vrik.jit import entry, kernel
from vrik.kernels.quat import load4, qmul, qturn, qyaw, store4
from vrik.kernels.vec import add, load3, scale, store3, sub

RUNS = 4.5
"""A foot this many step distances behind may start before the other one lands: running, not walking."""


LETS_GO_S = 0.05
"""A foot that leaves the floor away from its goal nears it within about this time. [s]"""


@kernel
def ease(t: float) -> float:
    """0 to 1 with no speed at either end."""
    return t * t * (3.0 - 2.0 * t)


@entry
@kernel
def step(
    goal: Points,
    goal_rotation: Quats,
    goal_contact: Floats,
    velocity_x: float,
    velocity_z: float,
    dt_s: float,
    step_distance_m: float,
    step_turn_rad: float,
    swing_s: float,
    lift_m: float,
    lead_s: float,
    foot: Points,
    foot_yaw: Floats,
    start: Points,
    start_yaw: Floats,
    swing: Floats,
    placed: Bools,
    ankle: Points,
    rotation: Quats,
    contact: Floats,
) -> None:
    """Turn gliding ankle goals into planted feet and swings (rows: left, right).

    ``foot`` (2, 3) and ``foot_yaw`` (2,) are where the feet are, ``swing`` (2,) how far through a swing
    (negative: planted), ``start`` where it began, ``placed`` (2,) whether the foot is on the floor at
    all. Lengths in metres.
    """
    due = -1
    worst = 1.0
    for side in range(2):
        if goal_contact[side] < 0.5 or not placed[side]:
            continue
        away = math.hypot(
            goal[side, 0] + lead_s * velocity_x - foot[side, 0],
            goal[side, 2] + lead_s * velocity_z - foot[side, 2],
        )
        turned = abs(wrap(qyaw(load4(goal_rotation, side)) - foot_yaw[side]))
        need = max(away / step_distance_m, turned / step_turn_rad)
        if swing[side] < 0.0 and need > worst:
            worst = need
            due = side
    if due >= 0:
        other = 1 - due
        # One foot at a time, unless the body runs away from both.
        if swing[other] < 0.0 or not placed[other] or (swing[other] > 0.6 and worst > RUNS):
            swing[due] = 0.0
            store3(start, due, load3(foot, due))
            start_yaw[due] = foot_yaw[due]
    for side in range(2):
        yaw = qyaw(load4(goal_rotation, side))
        airborne = goal_contact[side] < 0.5
        if airborne or not placed[side]:
            # In the air, or for the first time: the foot is where it is wanted, or soon will be.
            if placed[side]:
                store3(start, side, sub(load3(foot, side), load3(goal, side)))
                start_yaw[side] = wrap(foot_yaw[side] - yaw)
            keep = math.exp(-dt_s / LETS_GO_S)
            store3(start, side, scale(load3(start, side), keep))
            start_yaw[side] *= keep
            store3(foot, side, add(load3(goal, side), load3(start, side)))
            foot_yaw[side] = yaw + start_yaw[side]
            swing[side] = -1.0
            placed[side] = not airborne
        elif swing[side] >= 0.0:
            swing[side] += dt_s / swing_s
            t = min(swing[side], 1.0)
            e = ease(t)
            left = lead_s + (1.0 - t) * swing_s
            foot[side, 0] = start[side, 0] + e * (goal[side, 0] + left * velocity_x - start[side, 0])
            foot[side, 2] = start[side, 2] + e * (goal[side, 2] + left * velocity_z - start[side, 2])
            foot[side, 1] = (
                start[side, 1] + e * (goal[side, 1] - start[side, 1]) + lift_m * math.sin(math.pi * t)
            )
            foot_yaw[side] = start_yaw[side] + e * wrap(yaw - start_yaw[side])
            if t >= 1.0:
                swing[side] = -1.0
                foot[side, 1] = goal[side, 1]
        else:
            foot[side, 1] = goal[side, 1]
        store3(ankle, side, load3(foot, side))
        turn = qturn(foot_yaw[side])
        if airborne:  # a raised foot may point anywhere
            turn = qmul(qturn(foot_yaw[side] - yaw), load4(goal_rotation, side))
        store4(rotation, side, turn)
        contact[side] = 1.0 if swing[side] < 0.0 and placed[side] else 0.0
