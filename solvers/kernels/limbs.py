"""Arms by FABRIK to the wrist, legs in closed form to the ankle, and the turns of their bones."""

import math

from solvers.kernels.fabrik import reach, turn_to_pole
from solvers.kernels.two_bone import bend, side_of
from vrik.arrays import Q4, V3, Floats, Points, Quats
from vrik.jit import kernel
from vrik.kernels.quat import (
    carry,
    load4,
    qalign,
    qaxis,
    qconj,
    qmul,
    qrot,
    qslerp,
    qtwist_angle,
    qunit,
    store4,
)
from vrik.kernels.vec import add, cross, distance, length, load3, mix, scale, store3, sub, unit_or

HAND_ROLE, ELBOW_ROLE, KNEE_ROLE, FOOT_ROLE = 1, 7, 9, 11
FOREARM_TWIST_SHARE = 0.5
"""How much of the hand's roll the forearm takes. Source: 57 % in VirtualMotionCapture, half here."""
BACK_ROLL_RAD, MOST_ROLL_RAD = math.radians(240.0), math.radians(300.0)
"""From here to there the forearm turns back, to where the restarted count has it."""
MIN_LEG_SHARE = 0.3
"""An ankle is kept at least this share of the leg's length from the hip."""


@kernel
def steer(pole: V3, middle: V3, root: V3, end: V3, weight: float) -> V3:
    """The pole, turned towards where a tracker says the middle joint is."""
    if weight <= 0.0:
        return pole
    seen = unit_or(sub(middle, mix(root, end, 0.5)), pole)
    return mix(unit_or(pole, seen), seen, weight)


@kernel
def hand_roll(forearm: Q4, hand: Q4, axis: V3, last: Floats, side: int) -> float:
    """The hand's roll about the forearm, counted on through half turns. [rad]

    ``last`` (2,) remembers it; a count that has run beyond ``MOST_ROLL_RAD`` starts again on the other side.
    """
    angle = qtwist_angle(qmul(qconj(forearm), hand), axis)
    if angle - last[side] > math.pi:
        angle -= 2.0 * math.pi
    elif angle - last[side] < -math.pi:
        angle += 2.0 * math.pi
    if abs(angle) > MOST_ROLL_RAD:
        angle -= math.copysign(2.0 * math.pi, angle)
    last[side] = angle
    return angle


@kernel
def forearm_turn(roll: float) -> float:
    """How far the forearm turns with the hand's roll: a share, and back before the count restarts. [rad]

    No wrist rolls that far; a controller that does must not make the forearm jump.
    """
    share = FOREARM_TWIST_SHARE
    if abs(roll) <= BACK_ROLL_RAD:
        return share * roll
    t = (abs(roll) - BACK_ROLL_RAD) / (MOST_ROLL_RAD - BACK_ROLL_RAD)
    end = share * (MOST_ROLL_RAD - 2.0 * math.pi)
    return math.copysign(1.0, roll) * (share * BACK_ROLL_RAD + t * (end - share * BACK_ROLL_RAD))


@kernel
def solve_arm(
    side: int,
    offsets: Points,
    position: Points,
    rotation: Quats,
    weight: Floats,
    elbow_pole: Points,
    tolerance: float,
    rounds: int,
    last_twist: Floats,
    joints: Points,
    lengths: Floats,
    positions: Points,
    rotations: Quats,
) -> None:
    """Upper arm, forearm and hand of one side; the shoulder joint is already placed.

    position, rotation, weight: role targets. joints (3, 3) and lengths (2,) are scratch.
    """
    mirror = -1.0 if side == 0 else 1.0
    upper = 7 if side == 0 else 11
    fore, hand = upper + 1, upper + 2
    root = load3(positions, upper)
    lengths[0] = length(load3(offsets, fore))
    lengths[1] = length(load3(offsets, hand))
    chest = load4(rotations, 3)
    w = weight[HAND_ROLE + side]
    # Without a hand the arm hangs beside the body, a little bent.
    hang = add(root, scale(qrot(chest, (0.12 * mirror, -1.0, -0.08)), 0.97 * (lengths[0] + lengths[1])))
    target = mix(hang, load3(position, HAND_ROLE + side), w)
    rest_upper = scale(load3(offsets, fore), 1.0 / max(lengths[0], 1e-9))
    rest_fore = scale(load3(offsets, hand), 1.0 / max(lengths[1], 1e-9))

    e = ELBOW_ROLE + side
    tracked = carry(load4(rotation, e), load3(position, e), load3(offsets, fore))
    pole = steer(load3(elbow_pole, side), tracked, root, target, weight[e])
    pole = unit_or(pole, (0.0, -1.0, 0.0))
    ahead = unit_or(sub(target, root), (0.0, -1.0, 0.0))
    middle = add(root, scale(unit_or(add(ahead, pole), pole), lengths[0]))
    store3(joints, 0, root)
    store3(joints, 1, middle)
    store3(joints, 2, add(middle, scale(ahead, lengths[1])))
    reach(joints, lengths, target, pole, tolerance, rounds)
    turn_to_pole(joints, pole)

    out_side = (0.0, 0.0, 1.0)  # in the T-pose the elbow's point looks back
    hinge = cross(ahead, side_of(pole, ahead))
    bone = unit_or(sub(load3(joints, 1), root), ahead)
    store4(rotations, upper, qalign(rest_upper, out_side, bone, cross(hinge, bone)))
    bone = unit_or(sub(load3(joints, 2), load3(joints, 1)), ahead)
    forearm = qalign(rest_fore, out_side, bone, cross(hinge, bone))
    hand_turn = qslerp(forearm, load4(rotation, HAND_ROLE + side), w)
    twist = forearm_turn(hand_roll(forearm, hand_turn, rest_fore, last_twist, side))
    store4(rotations, fore, qunit(qmul(forearm, qaxis(rest_fore, twist))))
    store4(rotations, hand, hand_turn)
    for j in range(upper, hand):
        store3(positions, j + 1, carry(load4(rotations, j), load3(positions, j), load3(offsets, j + 1)))


@kernel
def lowest_ankle(turn: Q4, toes_offset: V3, ankle_height: float, toes_height: float) -> float:
    """How low the ankle may be, so that neither heel nor toes are in the floor (heights: of a flat foot)."""
    return max(ankle_height, toes_height - qrot(turn, toes_offset)[1])


@kernel
def not_too_near(hip: V3, ankle: V3, ahead: V3, nearest: float) -> V3:
    """The ankle, pushed along the floor until it is ``nearest`` metres from the hip."""
    away = distance(hip, ankle)
    if away >= nearest:
        return ankle
    drop = hip[1] - ankle[1]
    level = math.sqrt(max(nearest * nearest - drop * drop, 0.0))
    way = (ankle[0] - hip[0] + 0.05 * ahead[0], 0.0, ankle[2] - hip[2] + 0.05 * ahead[2])
    way = unit_or(way, (0.0, 0.0, -1.0))
    return (hip[0] + level * way[0], ankle[1], hip[2] + level * way[2])


@kernel
def not_under(hip: V3, ankle: V3, lowest: float, reach: float) -> V3:
    """The ankle, drawn along the floor to a low hip where a straight leg would end below ``lowest``."""
    away = distance(hip, ankle)
    if away <= reach:
        return ankle
    rise = lowest - hip[1]
    if (ankle[1] - hip[1]) * reach / away >= rise or abs(rise) >= reach:
        return ankle
    way = unit_or((ankle[0] - hip[0], 0.0, ankle[2] - hip[2]), (0.0, 0.0, -1.0))
    level = math.sqrt(reach * reach - rise * rise)
    return (hip[0] + level * way[0], lowest, hip[2] + level * way[2])


@kernel
def solve_leg(
    side: int,
    offsets: Points,
    floor_y: float,
    ankle_height: float,
    toes_height: float,
    position: Points,
    rotation: Quats,
    weight: Floats,
    ankle_goal: Points,
    foot_goal: Quats,
    knee_pole: Points,
    positions: Points,
    rotations: Quats,
) -> None:
    """Thigh, shin, foot and toes of one side; the hips are already placed."""
    thigh = 14 if side == 0 else 18
    shin, foot, toes = thigh + 1, thigh + 2, thigh + 3
    hip = carry(load4(rotations, 0), load3(positions, 0), load3(offsets, thigh))
    store3(positions, thigh, hip)
    upper = length(load3(offsets, shin))
    lower = length(load3(offsets, foot))
    f = FOOT_ROLE + side
    turn = qslerp(load4(foot_goal, side), load4(rotation, f), weight[f])
    goal = mix(load3(ankle_goal, side), load3(position, f), weight[f])
    lowest = lowest_ankle(turn, load3(offsets, toes), floor_y + ankle_height, floor_y + toes_height)
    goal = (goal[0], max(goal[1], lowest), goal[2])
    ahead = qrot(turn, (0.0, 0.0, -1.0))
    goal = not_too_near(hip, goal, ahead, MIN_LEG_SHARE * (upper + lower))
    goal = not_under(hip, goal, lowest, upper + lower)

    k = KNEE_ROLE + side
    tracked = carry(load4(rotation, k), load3(position, k), load3(offsets, shin))
    pole = steer(load3(knee_pole, side), tracked, hip, goal, weight[k])
    b = bend(hip, goal, upper, lower, unit_or(pole, (0.0, 0.0, -1.0)))
    low = floor_y + ankle_height
    if b[1] < low:  # a knee in the floor: let it point up as far as it must
        pole = (pole[0], pole[1] + 2.0 * (low - b[1]) / upper, pole[2])
        b = bend(hip, goal, upper, lower, unit_or(pole, (0.0, 1.0, 0.0)))
    knee, ankle = (b[0], b[1], b[2]), (b[3], b[4], b[5])
    rest_upper = scale(load3(offsets, shin), 1.0 / max(upper, 1e-9))
    rest_lower = scale(load3(offsets, foot), 1.0 / max(lower, 1e-9))
    front = (0.0, 0.0, -1.0)
    down = (0.0, -1.0, 0.0)
    along = unit_or(sub(goal, hip), down)
    hinge = cross(along, side_of(pole, along))
    bone = unit_or(sub(knee, hip), down)
    store4(rotations, thigh, qalign(rest_upper, front, bone, cross(hinge, bone)))
    bone = unit_or(sub(ankle, knee), down)
    store4(rotations, shin, qalign(rest_lower, front, bone, cross(hinge, bone)))
    store4(rotations, foot, turn)
    store4(rotations, toes, turn)
    for j in range(thigh, toes):
        store3(positions, j + 1, carry(load4(rotations, j), load3(positions, j), load3(offsets, j + 1)))
