"""What a prior says about the parts that no device is on: soft goals for the solvers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vrik import quat
from vrik.arrays import Floats, Points, Quat, Quats, Vec3


@dataclass(frozen=True, slots=True, eq=False)
class Guess:
    """Soft goals in the world; rows of (2, .) arrays are left, right.

    Args:
        pelvis_position: (3,) hips joint. [m]
        pelvis_rotation: (4,) canonical.
        chest_rotation: (4,) canonical rotation of the upper chest.
        ankle_position: (2, 3) ankle joints. [m]
        foot_rotation: (2, 4) canonical.
        elbow_pole: (2, 3) direction from the shoulder-wrist line to the elbow.
        knee_pole: (2, 3) direction from the hip-ankle line to the knee.
        contact: (2,) 1 where the foot stands on the floor, 0 where it does not.
        confidence: (6,) pelvis, chest, elbows left and right, feet left and right: the least weight
            among the devices that the guess rests on.
    """

    pelvis_position: Vec3
    pelvis_rotation: Quat
    chest_rotation: Quat
    ankle_position: Points
    foot_rotation: Quats
    elbow_pole: Points
    knee_pole: Points
    contact: Floats
    confidence: Floats

    def arrays(self) -> tuple[Points, Quats, Quats, Points, Quats, Points, Points, Floats]:
        """What a kernel of a prior fills, as rows: all but ``confidence``."""
        return (
            self.pelvis_position[None],
            self.pelvis_rotation[None],
            self.chest_rotation[None],
            self.ankle_position,
            self.foot_rotation,
            self.elbow_pole,
            self.knee_pole,
            self.contact,
        )

    @classmethod
    def fresh(cls) -> Guess:
        """Arrays to be filled; a prior overwrites all of them each frame."""
        return cls(
            np.zeros(3),
            quat.identity(),
            quat.identity(),
            np.zeros((2, 3)),
            quat.identity(2),
            np.tile([0.0, -1.0, 0.5], (2, 1)),
            np.tile([0.0, 0.0, -1.0], (2, 1)),
            np.ones(2),
            np.zeros(6),
        )
