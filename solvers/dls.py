"""Damped least squares for people: all joints of a chain turn together towards a target."""

from __future__ import annotations

from solvers.config import DlsConfig
from solvers.kernels import dls as kernels
from solvers.old_chain import ChainSolution, checked_vector, solution, turning_chain
from vrik.arrays import Floats, Points, Quats, Vec3

_DEFAULT = DlsConfig()


def solve_dls(
    root_world: Vec3,
    rotations_world: Quats,
    offsets: Points,
    target_world: Vec3,
    *,
    weights: Floats | None = None,
    config: DlsConfig = _DEFAULT,
) -> ChainSolution:
    """Turn the joints of a chain so that its tip meets a target, smoothly through straight and folded.

    Args:
        root_world: (3,) where the first joint is and stays. [m]
        rotations_world: (n, 4) canonical world rotations of the segments; the last row belongs to the
            effector and is returned unchanged.
        offsets: (n, 3) each joint seen from the one before, in the rest pose; row 0 is not used. [m]
        target_world: (3,) where the tip should be. [m]
        weights: (n,) how much each joint takes part, 0 (rigid) to 1; all 1 when left out.
        config: Damping, step and stopping rule.

    Returns:
        The turned chain with rotations. Out of reach it lies nearly straight towards the target, with
        ``reached`` false.

    Raises:
        ValueError: If a shape is wrong, a number is not finite, or a weight is not from 0 to 1.

    Source:
        Nakamura & Hanafusa, J. Dynamic Systems, Measurement and Control 108 (1986).
    """
    chain = turning_chain(root_world, rotations_world, offsets, weights)
    target = checked_vector("target_world", target_world)

    steps = kernels.solve(
        chain.positions,
        chain.rotations,
        chain.offsets,
        chain.weights,
        target,
        config.tolerance_m,
        config.max_step_rad,
        config.max_steps,
        config.damping,
    )
    return solution(
        chain.positions, chain.rotations, chain.lengths, target, config.tolerance_m, steps, config.max_steps
    )
