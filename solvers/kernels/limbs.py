"""Arms by FABRIK to the wrist, legs in closed form to the ankle, and the turns of their bones."""

import math

from solvers.kernels.fabrik import reach, turn_to_pole
from solvers.kernels.triangle import bend, side_of
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
def arm_goal(
    side: int,
    offsets: Points,
    position: Points,
    rotation: Quats,
    weight: Floats,
    elbow_pole: Points,
    joints: Points,
    lengths: Floats,
    goal: Points,
    positions: Points,
    rotations: Quats,
) -> None:
    """What one arm should do: ``lengths`` (2,), and ``goal`` (2, 3): the wrist, and the elbow's direction.

    ``joints`` (3, 3) get a first place. The shoulder joint is already placed. position, rotation, weight:
    role targets.
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
    e = ELBOW_ROLE + side
    tracked = carry(load4(rotation, e), load3(position, e), load3(offsets, fore))
    pole = steer(load3(elbow_pole, side), tracked, root, target, weight[e])
    pole = unit_or(pole, (0.0, -1.0, 0.0))
    ahead = unit_or(sub(target, root), (0.0, -1.0, 0.0))
    middle = add(root, scale(unit_or(add(ahead, pole), pole), lengths[0]))
    store3(joints, 0, root)
    store3(joints, 1, middle)
    store3(joints, 2, add(middle, scale(ahead, lengths[1])))
    store3(goal, 0, target)
    store3(goal, 1, pole)


@kernel
def orient_arm(
    side: int,
    offsets: Points,
    rotation: Quats,
    weight: Floats,
    last_twist: Floats,
    joints: Points,
    goal: Points,
    positions: Points,
    rotations: Quats,
) -> None:
    """Turn upper arm, forearm and hand so that they lie along solved ``joints``; all as in ``arm_goal``."""
    upper = 7 if side == 0 else 11
    fore, hand = upper + 1, upper + 2
    w = weight[HAND_ROLE + side]
    root, target, pole = load3(positions, upper), load3(goal, 0), load3(goal, 1)
    rest_upper = unit_or(load3(offsets, fore), (0.0, -1.0, 0.0))
    rest_fore = unit_or(load3(offsets, hand), (0.0, -1.0, 0.0))
    ahead = unit_or(sub(target, root), (0.0, -1.0, 0.0))
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
    goal: Points,
    positions: Points,
    rotations: Quats,
) -> None:
    """Upper arm, forearm and hand of one side, by FABRIK; the shoulder joint is already placed."""
    arm_goal(
        side, offsets, position, rotation, weight, elbow_pole, joints, lengths, goal, positions, rotations
    )
    pole = load3(goal, 1)
    reach(joints, lengths, load3(goal, 0), pole, tolerance, rounds)
    turn_to_pole(joints, pole)
    orient_arm(side, offsets, rotation, weight, last_twist, joints, goal, positions, rotations)


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
def leg_goal(
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
    joints: Points,
    lengths: Floats,
    goal: Points,
    positions: Points,
    rotations: Quats,
) -> None:
    """What one leg should do: ``lengths`` (2,), and ``goal`` (2, 3): the ankle, and the knee's direction.

    Foot and toes get their turn here. ``joints`` (3, 3) get a straight leg. The hips are already placed.
    """
    thigh = 14 if side == 0 else 18
    shin, foot, toes = thigh + 1, thigh + 2, thigh + 3
    hip = carry(load4(rotations, 0), load3(positions, 0), load3(offsets, thigh))
    store3(positions, thigh, hip)
    upper = length(load3(offsets, shin))
    lower = length(load3(offsets, foot))
    f = FOOT_ROLE + side
    turn = qslerp(load4(foot_goal, side), load4(rotation, f), weight[f])
    store4(rotations, foot, turn)
    store4(rotations, toes, turn)
    ankle = mix(load3(ankle_goal, side), load3(position, f), weight[f])
    lowest = lowest_ankle(turn, load3(offsets, toes), floor_y + ankle_height, floor_y + toes_height)
    ankle = (ankle[0], max(ankle[1], lowest), ankle[2])
    ahead = qrot(turn, (0.0, 0.0, -1.0))
    ankle = not_too_near(hip, ankle, ahead, MIN_LEG_SHARE * (upper + lower))
    ankle = not_under(hip, ankle, lowest, upper + lower)

    k = KNEE_ROLE + side
    tracked = carry(load4(rotation, k), load3(position, k), load3(offsets, shin))
    pole = steer(load3(knee_pole, side), tracked, hip, ankle, weight[k])
    along = unit_or(sub(ankle, hip), (0.0, -1.0, 0.0))
    lengths[0] = upper
    lengths[1] = lower
    store3(joints, 0, hip)
    store3(joints, 1, add(hip, scale(along, upper)))
    store3(joints, 2, add(hip, scale(along, upper + lower)))
    store3(goal, 0, ankle)
    store3(goal, 1, unit_or(pole, (0.0, 0.0, -1.0)))


@kernel
def bend_leg(joints: Points, lengths: Floats, goal: Points, low: float) -> None:
    """Two bones in closed form; a knee that would be below ``low`` points up as far as it must."""
    hip, ankle, pole = load3(joints, 0), load3(goal, 0), load3(goal, 1)
    b = bend(hip, ankle, lengths[0], lengths[1], pole)
    if b[1] < low:
        pole = (pole[0], pole[1] + 2.0 * (low - b[1]) / lengths[0], pole[2])
        b = bend(hip, ankle, lengths[0], lengths[1], unit_or(pole, (0.0, 1.0, 0.0)))
        store3(goal, 1, pole)
    store3(joints, 1, (b[0], b[1], b[2]))
    store3(joints, 2, (b[3], b[4], b[5]))


@kernel
def orient_leg(
    side: int, offsets: Points, joints: Points, goal: Points, positions: Points, rotations: Quats
) -> None:
    """Turn thigh and shin so that they lie along solved ``joints``; foot and toes hang on them."""
    thigh = 14 if side == 0 else 18
    shin, foot, toes = thigh + 1, thigh + 2, thigh + 3
    hip, knee, ankle = load3(joints, 0), load3(joints, 1), load3(joints, 2)
    front = (0.0, 0.0, -1.0)
    down = (0.0, -1.0, 0.0)
    rest_upper = unit_or(load3(offsets, shin), down)
    rest_lower = unit_or(load3(offsets, foot), down)
    along = unit_or(sub(load3(goal, 0), hip), down)
    hinge = cross(along, side_of(load3(goal, 1), along))
    bone = unit_or(sub(knee, hip), down)
    store4(rotations, thigh, qalign(rest_upper, front, bone, cross(hinge, bone)))
    bone = unit_or(sub(ankle, knee), down)
    store4(rotations, shin, qalign(rest_lower, front, bone, cross(hinge, bone)))
    for j in range(thigh, toes):
        store3(positions, j + 1, carry(load4(rotations, j), load3(positions, j), load3(offsets, j + 1)))


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
    joints: Points,
    lengths: Floats,
    goal: Points,
    positions: Points,
    rotations: Quats,
) -> None:
    """Thigh, shin, foot and toes of one side, in closed form; the hips are already placed."""
    leg_goal(
        side,
        offsets,
        floor_y,
        ankle_height,
        toes_height,
        position,
        rotation,
        weight,
        ankle_goal,
        foot_goal,
        knee_pole,
        joints,
        lengths,
        goal,
        positions,
        rotations,
    )
    bend_leg(joints, lengths, goal, floor_y + ankle_height)
    orient_leg(side, offsets, joints, goal, positions, rotations)
