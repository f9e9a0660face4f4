"""The rules prior: where pelvis, chest, elbows and feet are when nothing tracks them.

PELVIS, ELBOW and the turns by hands are regressions on motion capture, made again by
``tools/fit_rules.py``; STANCE holds means by pelvis height of the same data; what is added by hand brings
a person who stands in the rest pose there. Lengths are over stature; axes are
those of the head's yaw frame unless said otherwise (+X right, -Z forward).
"""

import math

import numpy as np

from solvers.kernels.features import FIRST_HAND, HAND_SIZE
from vrik.arrays import Q4, V3, Floats, Points, Quats
from vrik.jit import entry, kernel
from vrik.kernels.quat import carry, load4, qarc, qconj, qmul, qrot, qslerp, qturn, qyaw, store4
from vrik.kernels.vec import distance, load3, mix, scale, store3, sub, unit_or

HEAD_JOINT_SHARE = 0.896
HEAD_ROLE, WAIST_ROLE, CHEST_ROLE = 0, 3, 4
HIPS, NECK, HEAD, LEFT_UPPER_ARM, RIGHT_UPPER_ARM = 0, 4, 5, 7, 11
LEFT_UPPER_LEG, LEFT_FOOT = 14, 16

# Head joint to pelvis: up and back. Rows: 1, drop, pitch, drop^2, drop * pitch, where drop is head height
# minus 0.896 and pitch is the headset's over 90 degrees (down negative).
PELVIS = np.array(
    [
        [-0.308, -0.009],
        [0.056, -0.370],
        [-0.009, -0.144],
        [0.868, -0.507],
        [0.478, 0.255],
    ]
)
PELVIS_AGAINST_TILT = -0.213
"""The pelvis goes to the other side when the head tilts."""

CHEST_YAW_BY_HANDS = -1.69
"""The shoulders turn after the hand that is ahead. [rad a stature]"""
PELVIS_YAW_BY_HANDS = -1.39
MAX_YAW_RAD = 1.2
STRAIGHT_BY_HAND = 0.4
"""How much the hand's roll, not the arm's direction alone, says where a straight arm's elbow points."""
NEARLY_STRAIGHT, STRAIGHT = 0.985, 1.0
"""Shoulder to hand over the arm's length: between these the regression, made for bent arms, lets go."""

STANDING = 0.578
"""Pelvis height of someone who stands straight; knees then point ahead, and outwards the more they bend."""
KNEES_OUT = 0.25

YAW_TIME_S = 0.15
"""Chest and pelvis follow the hands' turn within about this time. [s]"""

PELVIS_TILT_SHARE = 0.4
"""How much of the trunk's tilt the pelvis takes; the upper chest takes all of it."""

# Feet from the pelvis by pelvis height: height, distance to the side, back. The last row is the rest pose.
STANCE = np.array(
    [
        [0.28, 0.090, -0.180],
        [0.40, 0.130, -0.050],
        [0.48, 0.100, -0.010],
        [0.56, 0.064, 0.013],
        [0.578, 0.051, -0.024],
    ]
)

# Elbow off the shoulder-wrist line in the chest's frame, right arm. Rows: 1, hand from shoulder (3, over
# stature), direction of the fingers (3), of the thumb (3).
ELBOW = np.array(
    [
        [0.410, -0.294, -0.021],
        [-0.442, 0.435, 1.636],
        [1.404, 0.391, -1.856],
        [-0.024, 1.690, 0.771],
        [-0.379, -0.123, -0.136],
        [-0.126, -0.293, 0.102],
        [-0.085, -0.207, -0.436],
        [-0.205, -0.044, -0.103],
        [-0.047, -0.207, 0.071],
        [-0.026, -0.037, -0.246],
    ]
)


@kernel
def table(rows: Floats, x: float, column: int) -> float:
    """Linear between the rows of a table whose first column rises; constant beyond its ends."""
    if x <= rows[0, 0]:
        return float(rows[0, column])
    for i in range(1, len(rows)):
        if x <= rows[i, 0]:
            t = (x - rows[i - 1, 0]) / (rows[i, 0] - rows[i - 1, 0])
            return float(rows[i - 1, column] + t * (rows[i, column] - rows[i - 1, column]))
    return float(rows[len(rows) - 1, column])


@kernel
def pelvis_from_head(features: Floats) -> tuple[float, float, float]:
    """Head joint to pelvis in the head's yaw frame, over stature."""
    drop = min(max(features[1] - HEAD_JOINT_SHARE, -0.85), 0.05)
    pitch = math.asin(min(max(features[3], -1.0), 1.0)) / (0.5 * math.pi)
    up = PELVIS[0, 0] + PELVIS[1, 0] * drop + PELVIS[2, 0] * pitch
    back = PELVIS[0, 1] + PELVIS[1, 1] * drop + PELVIS[2, 1] * pitch
    up += PELVIS[3, 0] * drop * drop + PELVIS[4, 0] * drop * pitch
    back += PELVIS[3, 1] * drop * drop + PELVIS[4, 1] * drop * pitch
    return (PELVIS_AGAINST_TILT * features[5], up, back)


@kernel
def hand_lead(features: Floats, state: Floats) -> float:
    """How far the right hand is ahead of the left, over stature, smoothed in ``state`` (2,)."""
    left, right = FIRST_HAND, FIRST_HAND + HAND_SIZE
    both = min(features[left + 12], features[right + 12])
    keep = math.exp(-features[0] / YAW_TIME_S) if state[1] > 0.0 else 0.0
    state[0] = keep * state[0] + (1.0 - keep) * (features[right + 2] - features[left + 2]) * both
    state[1] = 1.0
    return float(state[0])


@kernel
def clip_yaw(angle_rad: float) -> float:
    """Limited to what a spine can turn."""
    return min(max(angle_rad, -MAX_YAW_RAD), MAX_YAW_RAD)


@kernel
def guess_elbow(shoulder: V3, chest: Q4, hand: V3, hand_turn: Q4, mirror: float, stature_m: float) -> V3:
    """Pole of one arm in the world from the hand seen in the chest's frame; ``mirror`` is -1 for the left."""
    back = qconj(chest)
    place = scale(qrot(back, sub(hand, shoulder)), 1.0 / stature_m)
    fingers = qrot(back, qrot(hand_turn, (mirror, 0.0, 0.0)))
    thumb = qrot(back, qrot(hand_turn, (0.0, 0.0, -1.0)))
    off_x, off_y, off_z = ELBOW[0, 0], ELBOW[0, 1], ELBOW[0, 2]
    for a in range(3):
        m = mirror if a == 0 else 1.0
        off_x += m * (place[a] * ELBOW[1 + a, 0] + fingers[a] * ELBOW[4 + a, 0] + thumb[a] * ELBOW[7 + a, 0])
        off_y += m * (place[a] * ELBOW[1 + a, 1] + fingers[a] * ELBOW[4 + a, 1] + thumb[a] * ELBOW[7 + a, 1])
        off_z += m * (place[a] * ELBOW[1 + a, 2] + fingers[a] * ELBOW[4 + a, 2] + thumb[a] * ELBOW[7 + a, 2])
    return unit_or(qrot(chest, (off_x * mirror, off_y, off_z)), (0.0, -1.0, 0.0))


@kernel
def straight_elbow(shoulder: V3, chest: Q4, hand: V3, hand_turn: Q4, mirror: float) -> V3:
    """Where a straight arm's elbow points: back in the T-pose, else turned by the arm and the hand's roll."""
    axis = unit_or(sub(hand, shoulder), (0.0, -1.0, 0.0))
    swing = qmul(qarc(qrot(chest, (mirror, 0.0, 0.0)), axis), chest)
    by_arm = qrot(swing, (0.0, 0.0, 1.0))
    by_hand = qrot(hand_turn, (0.0, 0.0, 1.0))
    return unit_or(mix(by_arm, by_hand, STRAIGHT_BY_HAND), by_arm)


@entry
@kernel
def guess(
    features: Floats,
    position: Points,
    rotation: Quats,
    weight: Floats,
    tpose: Points,
    stature_m: float,
    floor_y: float,
    state: Floats,
    pelvis_position: Points,
    pelvis_rotation: Quats,
    chest_rotation: Quats,
    ankle_position: Points,
    foot_rotation: Quats,
    elbow_pole: Points,
    knee_pole: Points,
    contact: Floats,
) -> None:
    """Fill the guess (see ``solvers.guess.Guess``; single rows are (1, .) arrays) for one frame.

    position, rotation, weight: per role. tpose (22, 3) [m]. state (2,) is the memory of
    :func:`hand_lead`. Trackers on waist and chest replace their part, and what hangs on it follows.
    """
    head = load3(position, HEAD_ROLE)
    head_turn = load4(rotation, HEAD_ROLE)
    yaw = qyaw(head_turn)
    lead = hand_lead(features, state)
    chest_turn = qturn(yaw + clip_yaw(CHEST_YAW_BY_HANDS * lead))
    pelvis_turn = qturn(yaw + clip_yaw(PELVIS_YAW_BY_HANDS * lead))

    level = qturn(yaw)
    # The regression gives the direction; how far it is the person's own spine says.
    trunk_length = distance(load3(tpose, HEAD), load3(tpose, HIPS))
    below = unit_or(pelvis_from_head(features), (0.0, -1.0, 0.0))
    pelvis = carry(level, head, scale(below, trunk_length))
    lowest = floor_y + 0.06 * stature_m
    pelvis = (pelvis[0], max(pelvis[1], lowest), pelvis[2])
    pelvis = mix(pelvis, load3(position, WAIST_ROLE), weight[WAIST_ROLE])
    trunk = unit_or(sub(head, pelvis), (0.0, 1.0, 0.0))
    rest = unit_or(sub(load3(tpose, HEAD), load3(tpose, HIPS)), (0.0, 1.0, 0.0))
    tilt = qmul(level, qmul(qarc(rest, qrot(qconj(level), trunk)), qconj(level)))
    pelvis_turn = qmul(qslerp((1.0, 0.0, 0.0, 0.0), tilt, PELVIS_TILT_SHARE), pelvis_turn)
    pelvis_turn = qslerp(pelvis_turn, load4(rotation, WAIST_ROLE), weight[WAIST_ROLE])
    chest_turn = qmul(tilt, chest_turn)
    chest_turn = qslerp(chest_turn, load4(rotation, CHEST_ROLE), weight[CHEST_ROLE])
    store3(pelvis_position, 0, pelvis)
    store4(pelvis_rotation, 0, pelvis_turn)
    store4(chest_rotation, 0, chest_turn)

    neck = carry(head_turn, head, sub(load3(tpose, NECK), load3(tpose, HEAD)))
    for side in range(2):
        upper_arm = LEFT_UPPER_ARM if side == 0 else RIGHT_UPPER_ARM
        mirror = -1.0 if side == 0 else 1.0
        shoulder = carry(chest_turn, neck, sub(load3(tpose, upper_arm), load3(tpose, NECK)))
        hand, hand_turn = load3(position, 1 + side), load4(rotation, 1 + side)
        pole = guess_elbow(shoulder, chest_turn, hand, hand_turn, mirror, stature_m)
        arm = distance(load3(tpose, upper_arm), load3(tpose, upper_arm + 2))
        straight = min(
            max((distance(shoulder, hand) / arm - NEARLY_STRAIGHT) / (STRAIGHT - NEARLY_STRAIGHT), 0.0), 1.0
        )
        straight_pole = straight_elbow(shoulder, chest_turn, hand, hand_turn, mirror)
        pole = unit_or(mix(pole, straight_pole, straight), straight_pole)
        # A hand that fades away leaves an elbow that hangs.
        store3(elbow_pole, side, mix((0.3 * mirror, -1.0, 0.3), pole, weight[1 + side]))

    heading = qturn(qyaw(pelvis_turn))
    height = (pelvis[1] - floor_y) / stature_m
    leg = tpose[LEFT_UPPER_LEG, 1] - tpose[LEFT_FOOT, 1]
    hip_drop = tpose[0, 1] - tpose[LEFT_UPPER_LEG, 1]
    for side in range(2):
        mirror = -1.0 if side == 0 else 1.0
        aside = table(STANCE, height, 1) * mirror
        stand = carry(heading, pelvis, (aside * stature_m, 0.0, table(STANCE, height, 2) * stature_m))
        sole = floor_y + tpose[LEFT_FOOT, 1]
        hanging = pelvis[1] - hip_drop - leg  # in a jump the feet leave the floor
        store3(ankle_position, side, (stand[0], max(sole, hanging), stand[2]))
        store4(foot_rotation, side, heading)
        contact[side] = 1.0 if hanging < sole + 0.03 else 0.0
        # Knees point ahead and a little outwards; in a low seat they also rise. Where the pelvis is tracked,
        # ahead is its own front, whichever way it lies.
        low = min(max((0.35 - height) / 0.2, 0.0), 1.0) * (1.0 - weight[WAIST_ROLE])
        front = qslerp(heading, pelvis_turn, weight[WAIST_ROLE])
        bent = min(max((STANDING - height) / 0.1, 0.0), 1.0)
        store3(knee_pole, side, qrot(front, (KNEES_OUT * bent * mirror, 0.7 * low, -1.0)))
