"""FABRIK for people: a chain of any length reaches a target with its tip."""

from __future__ import annotations

import numpy as np

from solvers.config import FabrikConfig
from solvers.kernels import fabrik as kernels
from solvers.old_chain import (
    ChainSolution,
    bone_lengths,
    checked_rows,
    checked_values,
    checked_vector,
    solution,
)
from vrik.arrays import Floats, Points, Vec3

_NO_POLE = np.zeros(3)
_DEFAULT = FabrikConfig()


def solve_fabrik(
    joints_world: Points,
    target_world: Vec3,
    *,
    pole_world: Vec3 = _NO_POLE,
    lengths_m: Floats | None = None,
    config: FabrikConfig = _DEFAULT,
) -> ChainSolution:
    """Bend a chain so that its tip meets a target, keeping every bone length.

    Args:
        joints_world: (n, 3) current joint positions, root first, n >= 2. [m]
        target_world: (3,) where the tip should be. [m]
        pole_world: (3,) direction to bend to when the chain lies on the line to the target; the middle
            joint of a limb of three is always turned to this side. Zeros: keep the bend there is.
        lengths_m: (n - 1,) bone lengths; those of ``joints_world`` when left out. [m]
        config: Stopping rule.

    Returns:
        The bent chain, without rotations. Out of reach it lies straight towards the target with
        ``reached`` false; that is an answer, not an error.

    Raises:
        ValueError: If a shape is wrong or a number is not finite.

    Source:
        Aristidou & Lasenby, "FABRIK", Graphical Models 73 (2011), Algorithm 1.
    """
    joints = checked_rows("joints_world", joints_world, 3)
    target = checked_vector("target_world", target_world)
    pole = checked_vector("pole_world", pole_world)
    lengths = checked_values(
        "lengths_m", bone_lengths(joints) if lengths_m is None else lengths_m, len(joints) - 1
    )

    rounds = kernels.reach(joints, lengths, target, pole, config.tolerance_m, config.max_rounds)
    if len(joints) == 3:
        kernels.turn_to_pole(joints, pole)
    return solution(joints, None, lengths, target, config.tolerance_m, rounds, config.max_rounds)
