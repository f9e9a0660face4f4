"""Cyclic coordinate descent for people: a chain of rotations reaches a target, joint by joint."""

from __future__ import annotations

import numpy as np

from solvers.chain import Chain, ChainPose, ChainSolution, Target, check_fits, judged
from solvers.config import ChainConfig
from solvers.kernels import ccd as kernels


def solve(chain: Chain, start: ChainPose, target: Target, config: ChainConfig) -> ChainSolution:
    """Turn the joints of a chain, tip first, each as far as it lowers the cost of place and rotation.

    A joint turns by at most ``near_step_rad`` in one sweep when the tip is at its target, by up to
    ``max_step_rad`` a chain's length away, and makes ``joint_damping`` times its weight of its best turn. A
    hinge turns about its axis. ``rotation_length_m`` says how a radian compares with a metre. A pole turns
    the bend of the start to its side first.

    Args:
        chain: Lengths, weights, limits.
        start: The warm start. Joints outside of their limits are brought inside, but for rigid ones.
        target: Place of the tip and, if given, rotation of the last joint.
        config: Steps and stopping rule.

    Returns:
        The turned chain. Out of reach, or out of the limits, it is as near as the sweeps brought it, with
        ``reached`` false. When the tip began more than a tenth of the chain's length away and is stuck, other
        starts within the limits are tried.

    Raises:
        ValueError: If shapes do not fit or a number is not finite.

    Source:
        Wang & Chen, IEEE Trans. Robotics and Automation 7 (1991).
    """
    check_fits(chain, start)
    goal, turn, pole = target.point, target.turn, target.side
    points = np.empty_like(chain.offsets)
    points[0] = start.root_world
    rotations = start.rotations_world.copy()
    w, x, y, z = (float(v) for v in start.base_world)
    sweeps = kernels.solve(
        points,
        rotations,
        chain.offsets,
        chain.weights,
        chain.limits,
        (w, x, y, z),
        goal,
        turn,
        target.turn_weight,
        pole,
        config.tolerance_m,
        config.tolerance_rad,
        config.max_rounds,
        config.max_step_rad,
        config.near_step_rad,
        config.joint_damping,
        config.rotation_length_m,
        True,
        np.empty((kernels.SCRATCH * len(rotations), 4)),
    )
    return judged(chain, start, rotations, target, config, sweeps)
