"""A person's proportions: where the 22 joints are in a T-pose on the floor."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from vrik.arrays import Floats, Points
from vrik.skeleton import BONE, BONES, Skeleton, bone_lengths, offsets_of

EYE_HEIGHT_SHARE = 0.936
"""Eye height over stature. Source: standard anthropometry; see docs/body.md."""

HEAD_JOINT_SHARE = 0.896
"""Height of the head joint (skull base) over stature."""

# Average T-pose over stature: (half width, height, depth towards -Z negative), measured on twelve people
# of public motion capture (CMU, HDM05). Spread between people 0.005 to 0.015 a coordinate.
_SHARES = {
    "hips": (0.000, 0.578, 0.000),
    "spine": (0.000, 0.646, 0.005),
    "chest": (0.000, 0.715, 0.005),
    "upperChest": (0.000, 0.785, 0.003),
    "neck": (0.000, 0.841, -0.001),
    "head": (0.000, 0.896, 0.007),
    "Shoulder": (0.022, 0.792, 0.005),
    "UpperArm": (0.109, 0.819, 0.012),
    "LowerArm": (0.278, 0.819, 0.012),
    "Hand": (0.441, 0.819, 0.012),
    "UpperLeg": (0.051, 0.520, -0.024),
    "LowerLeg": (0.051, 0.284, -0.024),
    "Foot": (0.051, 0.034, -0.024),
    "Toes": (0.051, 0.012, -0.094),
}


def average_tpose(stature_m: float) -> Points:
    """(22, 3) joints of an average person standing in a T-pose at the origin, facing -Z. [m]"""
    joints = np.empty((len(BONES), 3))
    for i, bone in enumerate(BONES):
        part = bone.removeprefix("left").removeprefix("right")
        half, height, depth = _SHARES[part]
        joints[i] = (-half if bone.startswith("left") else half, height, depth)
    return joints * stature_m


@dataclass(frozen=True, slots=True, eq=False)
class BodyModel:
    """The lengths of one person.

    Args:
        stature_m: Standing height. [m]
        tpose: (22, 3) joints of a T-pose facing -Z, soles on y = 0, in the order of ``BONES``. [m]

    Raises:
        ValueError: If ``tpose`` is not (22, 3) and finite.
    """

    stature_m: float
    tpose: Points
    offsets: Points = field(init=False, repr=False)
    """(22, 3) step from each joint's parent at rest; row 0 is the hips over the floor. [m]"""

    def __post_init__(self) -> None:
        tpose = np.array(self.tpose, np.float64, order="C")
        if tpose.shape != (len(BONES), 3) or not np.isfinite(tpose).all():
            raise ValueError(f"tpose must be ({len(BONES)}, 3) and finite")
        tpose.setflags(write=False)
        offsets = offsets_of(tpose)
        offsets.setflags(write=False)
        object.__setattr__(self, "tpose", tpose)
        object.__setattr__(self, "offsets", offsets)

    @classmethod
    def average(cls, stature_m: float) -> BodyModel:
        """A person of average proportions."""
        return cls(float(stature_m), average_tpose(stature_m))

    def skeleton(self) -> Skeleton:
        """These bones with identity rest rotations."""
        return Skeleton.canonical(self.tpose)

    def lengths(self) -> Floats:
        """(21,) bone lengths, for the bones that end in joints 1 to 21. [m]"""
        return bone_lengths(self.tpose)

    @property
    def ankle_height_m(self) -> float:
        """How far the ankle joint is above the sole. [m]"""
        return float(self.tpose[BONE["leftFoot"], 1])

    @property
    def toes_height_m(self) -> float:
        """How far the toe joint is above the sole. [m]"""
        return float(self.tpose[BONE["leftToes"], 1])
