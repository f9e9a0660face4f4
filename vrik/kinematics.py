"""Forward kinematics with checked shapes; the loops are in ``vrik/kernels/kinematics.py``."""

from __future__ import annotations

import numpy as np

from vrik.arrays import Ints, Points, Quats, Vec3
from vrik.kernels import kinematics as _kernels
from vrik.skeleton import PARENTS


def forward(offsets: Points, rotations_world: Quats, root_world: Vec3, parents: Ints = PARENTS) -> Points:
    """Joint positions of a posed skeleton.

    Args:
        offsets: (n, 3) step from each joint's parent at rest. [m]
        rotations_world: (n, 4) canonical world rotations.
        root_world: (3,) where the first joint is. [m]
        parents: (n,) parents, each before its child.

    Returns:
        (n, 3) joints in the world. [m]

    Raises:
        ValueError: If the number of rows differs.
    """
    n = len(parents)
    if np.shape(offsets) != (n, 3) or np.shape(rotations_world) != (n, 4):
        raise ValueError(f"expected offsets ({n}, 3) and rotations ({n}, 4)")
    positions = np.empty((n, 3))
    positions[0] = root_world
    # Copies: numba compiles read-only arrays, such as PARENTS, as a type of their own.
    _kernels.forward(
        np.array(parents, np.int64, order="C"),
        np.array(offsets, np.float64, order="C"),
        np.array(rotations_world, np.float64, order="C"),
        positions,
    )
    return positions
