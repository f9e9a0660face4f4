"""How far the joints of people turn: a :class:`~solvers.limits.Limit` for each of the 22 solved bones.

Turns are those of ``vrik.skeleton``: seen from the parent bone, the identity in the T-pose that faces -Z with
palms down. So an arm that hangs has turned by 75 degrees, and a forearm that has not turned is straight.

Sources, named beside each number:

* AAOS: American Academy of Orthopaedic Surgeons, "Joint Motion: Method of Measuring and Recording" (1965),
  the ranges that clinics print.
* SlimeVR: twist and swing of its constraints (full cones, so half of each to a side).
* IKTweaks: spine +-30, neck +30 / -15 degrees.
* games: thigh X +-80, Y +-30, calf X -110..10, Y +-20 (articles on game IK).
* mocap: 56 clips of the CMU and HDM05 databases, 26668 frames, sides taken together. Each joint lies inside
  in at least 99.5 % of the frames; a range is wider than its source where that needed it. These skeletons
  bend the trunk nearly all in the lowest joint, roll the hand without the forearm, and have ankles and
  wrists that are noisy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from solvers.limits import Hinge, Limit, SwingTwist, Wxyz
from vrik.arrays import V3
from vrik.skeleton import BONES

UP, DOWN, FRONT, RIGHT = (0.0, 1.0, 0.0), (0.0, -1.0, 0.0), (0.0, 0.0, -1.0), (1.0, 0.0, 0.0)
PITCH, YAW, ROLL = RIGHT, UP, (0.0, 0.0, 1.0)

SOFT_RAD = math.radians(8.0)
"""Width of the soft zone inside each range: about what clinics call the end feel. Our choice."""


def mirrored(limit: Limit) -> Limit:
    """The same limit for the joint on the other side of the body (x to -x)."""
    if limit is None:
        return None
    w, x, y, z = limit.center
    center = (w, x, -y, -z)
    ax, ay, az = limit.axis
    if isinstance(limit, Hinge):  # an axis of turning: what stays is its part along x
        return Hinge((ax, -ay, -az), limit.low_rad, limit.high_rad, limit.soft_rad, center)
    side = None if limit.side is None else (-limit.side[0], limit.side[1], limit.side[2])
    low, high = -limit.high_twist_rad, -limit.low_twist_rad
    return SwingTwist((-ax, ay, az), limit.swing_rad, low, high, side, limit.soft_rad, center)


def limit_of(bone: str) -> Limit:
    """The limit of one bone; ValueError with the names there are."""
    if bone not in LIMITS:
        raise ValueError(f"no bone named {bone!r}; have: {', '.join(BONES)}")
    return LIMITS[bone]


def limits_of(bones: Sequence[str]) -> tuple[Limit, ...]:
    """Limits for the joints of a chain, as ``Chain.build`` takes them."""
    return tuple(limit_of(bone) for bone in bones)


def _turn(axis: V3, angle_deg: float, then: V3 = UP, then_deg: float = 0.0) -> Wxyz:
    """Rotation vector of two parts, in degrees, as a quaternion."""
    x, y, z = (math.radians(a * angle_deg + b * then_deg) for a, b in zip(axis, then, strict=True))
    angle = math.sqrt(x * x + y * y + z * z)
    s = math.sin(0.5 * angle) / angle if angle > 0.0 else 0.5
    return (math.cos(0.5 * angle), x * s, y * s, z * s)


def _joint(
    bone: V3,
    side: V3,
    swing_deg: tuple[float, float],
    twist_deg: tuple[float, float],
    center: Wxyz = (1.0, 0.0, 0.0, 0.0),
) -> SwingTwist:
    swing = (math.radians(swing_deg[0]), math.radians(swing_deg[1]))
    low, high = math.radians(twist_deg[0]), math.radians(twist_deg[1])
    return SwingTwist(bone, swing, low, high, side, SOFT_RAD, center)


# Trunk and head: swing about PITCH (+ bends back), then about ROLL; twist about UP (+ turns left).
_MIDDLE: dict[str, Limit] = {
    # The root goes where the body goes.
    "hips": None,
    # AAOS: thoracolumbar flexion 80, extension 25, side 35, rotation 45, of three joints together; IKTweaks
    # 30 for each. mocap: one joint does it all, flexion 98 and extension 44, side 31, rotation 37.
    "spine": _joint(UP, PITCH, (75.0, 38.0), (-40.0, 40.0), _turn(PITCH, -27.0)),
    # IKTweaks 30; SlimeVR twist 30. mocap: flexion 18, extension 30, side 18, rotation 12.
    "chest": _joint(UP, PITCH, (38.0, 30.0), (-30.0, 30.0)),
    # IKTweaks 30; SlimeVR twist 45, reduced to that of the chest. mocap: rigid.
    "upperChest": _joint(UP, PITCH, (38.0, 30.0), (-30.0, 30.0)),
    # AAOS: cervical flexion, extension and side 45, rotation 60 (with the head). mocap: rotation 58, side
    # 29.
    "neck": _joint(UP, PITCH, (50.0, 42.0), (-62.0, 62.0)),
    # The upper neck: a good third of the cervical range (AAOS); mocap: 21, 18, 16.
    "head": _joint(UP, PITCH, (40.0, 30.0), (-35.0, 35.0)),
}

# The right side; the left is its mirror image.
_RIGHT_SIDE: dict[str, Limit] = {
    # Collar bone. Swing about YAW (+ forward), about ROLL (+ up). SlimeVR: swing 15, no twist. AAOS gives
    # no range; elevation about 40 and depression 10, forward and back 25 in anatomy books. mocap: rigid.
    "Shoulder": _joint(RIGHT, YAW, (28.0, 28.0), (-10.0, 10.0), _turn(ROLL, 15.0)),
    # AAOS: flexion and abduction 180, extension 60, rotation 70 in and 90 out, shoulder blade included.
    # SlimeVR: swing 90, twist 60. mocap: 100 from a middle that is 30 forward and 20 down; twist 104 in and
    # 86 out at 99.5 %, whole turns above the head.
    "UpperArm": _joint(RIGHT, YAW, (100.0, 100.0), (-115.0, 115.0), _turn(YAW, 30.0, ROLL, -20.0)),
    # AAOS: flexion 150, extension 0 to 10; pronation and supination 80. SlimeVR: flexion 0 to 180, 20
    # loose. mocap: flexion 148 about an axis that lies 30 degrees off YAW, as their elbows look back and
    # down in the T-pose: with the elbow looking back as ours, 31 of swing and 44 of twist.
    "LowerArm": _joint(RIGHT, YAW, (82.0, 40.0), (-90.0, 85.0), _turn(YAW, 75.0)),
    # Swing about ROLL (+ extends), about YAW (+ to the thumb). AAOS: extension 70, flexion 80, thumb side
    # 20, other 30; SlimeVR: swing 60, twist 60. mocap: 81 and 77, the hand bone takes the forearm's roll:
    # twist -107 to 93.
    "Hand": _joint(RIGHT, ROLL, (98.0, 75.0), (-125.0, 105.0)),
    # Swing about PITCH (+ lifts the knee), about ROLL (+ outwards). AAOS: flexion 120, extension 30,
    # abduction 45, adduction 30, rotation 45; games: 80 and 30; SlimeVR: swing 90, twist 60. mocap: flexion
    # 116 with abduction 89, twist -37 to 60.
    "UpperLeg": _joint(DOWN, PITCH, (95.0, 72.0), (-55.0, 65.0), _turn(PITCH, 45.0, ROLL, 20.0)),
    # Swing about PITCH (- bends). AAOS: flexion 135, extension 0 to 10; games: -110 to 10, other axis 20;
    # SlimeVR: 0 to 180, 25 loose. mocap: flexion 159 (sitting on the heels), and no other turn.
    "LowerLeg": _joint(DOWN, PITCH, (88.0, 12.0), (-20.0, 20.0), _turn(PITCH, -75.0)),
    # Swing about PITCH (+ lifts the toes), about YAW (+ turns left). AAOS: up 20, down 50, inversion 35,
    # eversion 15; SlimeVR: swing 30, twist 30. mocap: up 76, down 51, sideways 51.
    "Foot": _joint(FRONT, PITCH, (75.0, 62.0), (-35.0, 35.0), _turn(PITCH, 8.0)),
    # AAOS, big toe: up 70, down 45. mocap: up 51, down 62.
    "Toes": _joint(FRONT, PITCH, (68.0, 8.0), (-8.0, 8.0)),
}

LIMITS: dict[str, Limit] = {
    bone: (
        mirrored(_RIGHT_SIDE[bone[4:]])
        if bone.startswith("left")
        else _RIGHT_SIDE[bone[5:]]
        if bone.startswith("right")
        else _MIDDLE[bone]
    )
    for bone in BONES
}
"""All 22 bones, in the order of ``BONES``."""
