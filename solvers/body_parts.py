"""What a body is solved into and with: the result, the scratch memory, the spine's weights and limits."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from solvers.kernels.ccd import SCRATCH
from solvers.limits import SwingTwist, pack_limits
from vrik import quat
from vrik.arrays import Floats, Points, Quats
from vrik.body import BodyModel
from vrik.config import SolveConfig
from vrik.frames import ROLES
from vrik.skeleton import PARENTS

SPINE_WEIGHTS = (0.0, 1.0, 1.0, 1.0, 0.3, 0.0)
"""How much hips, spine, chest, upperChest, neck and head turn to bring the head to its place."""


@dataclass(frozen=True, slots=True, eq=False)
class SolvedBody:
    """Views of the solver's own arrays: valid until its next step.

    Args:
        position: (22, 3) joints in the world. [m]
        rotation: (22, 4) canonical world rotations.
        local_rotation: (22, 4) relative to the parent bone, sign-continuous.
        reach_error_m: (13,) distance from each tracked role's bone to its target; NaN when not tracked. [m]
    """

    position: Points
    rotation: Quats
    local_rotation: Quats
    reach_error_m: Floats

    @classmethod
    def in_tpose(cls, body: BodyModel) -> SolvedBody:
        """Before the first frame."""
        n = len(PARENTS)
        return cls(body.tpose.copy(), quat.identity(n), quat.identity(n), np.full(len(ROLES), np.nan))


@dataclass(frozen=True, slots=True, eq=False)
class Scratch:
    """What one body is solved in; the names are those of ``kernels.body.pose``.

    Args:
        last_twist: (2,) the hands' roll in the frame before, the only memory here. [rad]
        joints: (3, 3) of the limb that is being solved. [m]
        lengths: (2,) its bones. [m]
        goal: (2, 3) where its end should be, and the direction of its middle joint.
        turns: (22, 4) canonical world rotations in the making.
        spine: Scratch of CCD.
    """

    last_twist: Floats
    joints: Points
    lengths: Floats
    goal: Points
    turns: Quats
    spine: Quats

    @classmethod
    def fresh(cls) -> Scratch:
        """Nothing remembered."""
        spine = np.empty((SCRATCH * len(SPINE_WEIGHTS), 4))
        return cls(
            np.zeros(2), np.zeros((3, 3)), np.zeros(2), np.zeros((2, 3)), quat.identity(len(PARENTS)), spine
        )


def spine_of(config: SolveConfig) -> tuple[Floats, Floats]:
    """(6,) weights and (6, LIMIT_WIDTH) limits of the spine's joints: they swing equally far to all sides."""

    def ball(limit_deg: float) -> SwingTwist:
        limit = math.radians(limit_deg)
        return SwingTwist((0.0, 1.0, 0.0), (limit, limit), -limit, limit)

    spine, neck = ball(config.spine_limit_deg), ball(config.neck_limit_deg)
    return np.array(SPINE_WEIGHTS), pack_limits([None, spine, spine, spine, neck, None])
