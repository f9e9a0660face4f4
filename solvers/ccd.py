"""Cyclic coordinate descent for people: a chain of rotations reaches a target, joint by joint."""

from __future__ import annotations

import math

import numpy as np

from solvers.config import CcdConfig
from solvers.kernels import ccd as kernels
from solvers.old_chain import (
    ChainSolution,
    checked_rows,
    checked_values,
    checked_vector,
    solution,
    turning_chain,
)
from vrik import quat
from vrik.arrays import Floats, Points, Quat, Quats, Vec3

_DEFAULT = CcdConfig()


def solve_ccd(
    root_world: Vec3,
    rotations_world: Quats,
    offsets: Points,
    target_world: Vec3,
    *,
    weights: Floats | None = None,
    limits_rad: Floats | None = None,
    base_world: Quat | None = None,
    config: CcdConfig = _DEFAULT,
) -> ChainSolution:
    """Turn the joints of a chain so that its tip meets a target.

    Args:
        root_world: (3,) where the first joint is and stays. [m]
        rotations_world: (n, 4) canonical world rotations of the segments; the last row belongs to the
            effector and is returned unchanged.
        offsets: (n, 3) each joint seen from the one before, in the rest pose; row 0 is not used. [m]
        target_world: (3,) where the tip should be. [m]
        weights: (n,) how much each joint takes part, 0 (rigid) to 1; all 1 when left out.
        limits_rad: (n,) largest angle between a segment and the one before; none when left out. [rad]
        base_world: (4,) world rotation before the first segment, which its limit is measured from;
            the identity when left out.
        config: Step and stopping rule.

    Returns:
        The turned chain with rotations. Out of reach, or out of the limits, it is as near as the sweeps
        brought it, with ``reached`` false.

    Raises:
        ValueError: If a shape is wrong, a number is not finite, or a weight is not from 0 to 1.

    Source:
        Wang & Chen, IEEE Trans. Robotics and Automation 7 (1991).
    """
    chain = turning_chain(root_world, rotations_world, offsets, weights)
    n = len(chain.offsets)
    target = checked_vector("target_world", target_world)
    limits = checked_values("limits_rad", np.full(n, math.pi) if limits_rad is None else limits_rad, n)
    rows = quat.identity(1) if base_world is None else np.reshape(base_world, (1, -1))
    base = quat.normalize(checked_rows("base_world", rows, 4, at_least=1))[0]

    sweeps = kernels.solve(
        chain.positions,
        chain.rotations,
        chain.offsets,
        chain.weights,
        target,
        config.tolerance_m,
        config.max_step_rad,
        config.max_sweeps,
        limits,
        (float(base[0]), float(base[1]), float(base[2]), float(base[3])),
    )
    return solution(
        chain.positions, chain.rotations, chain.lengths, target, config.tolerance_m, sweeps, config.max_sweeps
    )
