"""A rigid transform between two named frames."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vrik import quat
from vrik.arrays import Floats, Points, Quat, Vec3


@dataclass(frozen=True, slots=True, eq=False)
class Pose:
    """Where frame *b* is, seen from frame *a*: read ``T_a_b`` as "a from b".

    Args:
        rotation: (4,) unit quaternion (w, x, y, z).
        translation: (3,) origin of *b* in *a*. [m]
    """

    rotation: Quat
    translation: Vec3

    @classmethod
    def identity(cls) -> Pose:
        """Both frames are the same."""
        return cls(quat.identity(), np.zeros(3))

    @classmethod
    def from_matrix(cls, matrix: Floats) -> Pose:
        """From a (3, 4) or (4, 4) matrix such as OpenVR's; rounding noise and half turns are harmless.

        Raises:
            ValueError: If the 3x3 part is no rotation (all zeros or mirroring, for example).
        """
        matrix = np.asarray(matrix, np.float64)
        r = matrix[:3, :3]
        small = bool(np.all(np.abs(r) < 2.0))  # false for NaN; keeps the products below from overflowing
        turns = small and np.allclose(r @ r.T, np.eye(3), atol=0.02) and np.linalg.det(r) > 0.0
        if not turns or not np.isfinite(matrix[:3, 3]).all():
            raise ValueError("the 3x3 part is no rotation")
        return cls(quat.from_matrix(r), matrix[:3, 3].copy())

    @classmethod
    def from_yaw(cls, yaw_rad: float, translation: Vec3) -> Pose:
        """Turned about +Y (positive turns left) and moved."""
        half = 0.5 * yaw_rad
        return cls(np.array([np.cos(half), 0.0, np.sin(half), 0.0]), np.asarray(translation, np.float64))

    def inverse(self) -> Pose:
        """Swap the two frames: ``T_a_b.inverse()`` is ``T_b_a``."""
        back = quat.conjugate(self.rotation)
        return Pose(back, -quat.rotate(back, self.translation))

    def __matmul__(self, other: Pose) -> Pose:
        """``T_a_b @ T_b_c`` is ``T_a_c``."""
        return Pose(
            quat.normalize(quat.multiply(self.rotation, other.rotation)),
            self.translation + quat.rotate(self.rotation, other.translation),
        )

    def apply(self, points: Points) -> Points:
        """Points (..., 3) of *b* as seen from *a*. [m]"""
        return quat.rotate(self.rotation, points) + self.translation
