"""Bone lengths: tables scaled by stature, with arms as long as a T-pose shows them."""

from __future__ import annotations

import numpy as np

from vrik.arrays import Points
from vrik.body import HEAD_JOINT_SHARE, BodyModel
from vrik.skeleton import BONE

ARM_SCALE_RANGE = (0.6, 1.5)
"""Arms outside this range of the average for the stature are a wrong pose, not a body."""


def body_from(
    stature_m: float, *, wrist_distance_m: float | None = None, skeleton_tpose: Points | None = None
) -> tuple[BodyModel, bool]:
    """The body of a person.

    Args:
        stature_m: Standing height. [m]
        wrist_distance_m: Distance between the wrists with both arms stretched out to the sides. [m]
        skeleton_tpose: (22, 3) true joints of a T-pose facing -Z; taken exactly as they are. [m]

    Returns:
        The body, and whether its arms were fitted to ``wrist_distance_m``: they are not when they would be
        outside ``ARM_SCALE_RANGE`` of the average.

    Raises:
        ValueError: If ``skeleton_tpose`` is not (22, 3) and finite.
    """
    if skeleton_tpose is not None:
        return BodyModel(stature_m, skeleton_tpose), False
    body = BodyModel.average(stature_m)
    if wrist_distance_m is None:
        return body, False
    tpose = np.array(body.tpose)
    shoulder = tpose[BONE["rightUpperArm"], 0]
    scale = (0.5 * wrist_distance_m - shoulder) / (tpose[BONE["rightHand"], 0] - shoulder)
    if not ARM_SCALE_RANGE[0] < scale < ARM_SCALE_RANGE[1]:
        return body, False
    for side in ("left", "right"):
        root = tpose[BONE[side + "UpperArm"]]
        for bone in ("LowerArm", "Hand"):
            tpose[BONE[side + bone]] = root + scale * (tpose[BONE[side + bone]] - root)
    return BodyModel(stature_m, tpose), True


def stature_of(skeleton_tpose: Points) -> float:
    """Stature that goes with given T-pose joints. [m]"""
    return float(np.asarray(skeleton_tpose)[BONE["head"], 1]) / HEAD_JOINT_SHARE
