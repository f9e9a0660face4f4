"""Where each device usually sits on its bone.

Distances are for a person of 1.75 m and grow with stature. The head's comes from standard anthropometry
(eyes 7 cm above and 9 cm in front of the skull base), the hand's from a grip held in the fist; the straps
are those of the usual belts and bands: waist and chest in front, upper arm outside just above the elbow,
thigh in front just above the knee, foot on the instep.
"""

from __future__ import annotations

import numpy as np

from vrik import quat
from vrik.arrays import Quat, Vec3
from vrik.body import BodyModel
from vrik.frames import ROLE, ROLE_BONES
from vrik.pose import Pose
from vrik.skeleton import BONE

REFERENCE_STATURE_M = 1.75
PALM_M = 0.09
"""Wrist to the middle of the fist, for the reference stature. [m]"""

# From the named joint to the device in the T-pose that faces -Z: (joint, x, y, z); the side is the left one.
_PLACE = {
    "head": ("head", 0.0, 0.07, -0.09),
    "hand": ("Hand", -PALM_M, 0.0, 0.0),
    "waist": ("hips", 0.0, 0.02, -0.11),
    "chest": ("upperChest", 0.0, 0.05, -0.12),
    "shoulder": ("Shoulder", -0.08, 0.06, 0.02),
    "elbow": ("LowerArm", 0.06, 0.0, 0.045),
    "knee": ("LowerLeg", 0.0, 0.08, -0.07),
    "foot": ("Foot", 0.0, -0.02, -0.09),
}


def kind_of(role: str) -> str:
    """A role without its side: "foot" for "left_foot"."""
    return role.removeprefix("left_").removeprefix("right_")


def side_of(role: str) -> str:
    """ "left", "right", or "" for roles in the middle."""
    kind = kind_of(role)
    return role.removesuffix(kind).rstrip("_")


def nominal(role: str, body: BodyModel) -> Pose:
    """``T_bone_device`` of a device worn as usual: how the role's bone sees it.

    A controller is held in the fist with -Z along the fingers and +Y to the thumb; every other device has
    the axes of its bone.
    """
    joint, x, y, z = _PLACE[kind_of(role)]
    side = side_of(role)
    step = np.array([-x if side == "right" else x, y, z]) * (body.stature_m / REFERENCE_STATURE_M)
    from_bone = body.tpose[BONE[side + joint]] - body.tpose[ROLE_BONES[ROLE[role]]]
    return Pose(grip(side) if kind_of(role) == "hand" else quat.identity(), from_bone + step)


def grip(side: str, held: str = "fist") -> Quat:
    """(4,) rotation of a controller in the hand of an arm that is stretched out to ``side``, palm down.

    Args:
        side: "left" or "right".
        held: "fist" has -Z along the fingers and +Y to the thumb; "wand", as long controllers are held, has
            -Z to the thumb and -Y along the fingers.
    """
    out = -1.0 if side == "left" else 1.0
    along_fingers: Vec3 = np.array([out, 0.0, 0.0])
    to_thumb: Vec3 = np.array([0.0, 0.0, -1.0])
    y_axis, z_axis = (to_thumb, -along_fingers) if held == "fist" else (-along_fingers, -to_thumb)
    return quat.from_matrix(np.stack([np.cross(y_axis, z_axis), y_axis, z_axis], axis=-1))


def palm_m(stature_m: float) -> float:
    """Wrist to the controller's origin. [m]"""
    return PALM_M * stature_m / REFERENCE_STATURE_M
