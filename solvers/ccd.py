"""Cyclic coordinate descent for people: a chain of rotations reaches a target, joint by joint."""

from __future__ import annotations

import math

import numpy as np

from solvers import old_chain
from solvers.chain import Chain, ChainPose, ChainSolution, Target, check_fits, judged
from solvers.config import CcdConfig, ChainConfig
from solvers.kernels import ccd as kernels
from solvers.limits import SwingTwist
from vrik import quat
from vrik.arrays import Floats, Points, Quat, Quats, Vec3

_OLD_DEFAULT = CcdConfig()


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


def solve_ccd(
    root_world: Vec3,
    rotations_world: Quats,
    offsets: Points,
    target_world: Vec3,
    *,
    weights: Floats | None = None,
    limits_rad: Floats | None = None,
    base_world: Quat | None = None,
    config: CcdConfig = _OLD_DEFAULT,
) -> old_chain.ChainSolution:
    """Turn the joints of a chain so that its tip meets a target.

    Args:
        root_world: (3,) where the first joint is and stays. [m]
        rotations_world: (n, 4) canonical world rotations of the segments; the last row belongs to the
            effector and is returned unchanged.
        offsets: (n, 3) each joint seen from the one before, in the rest pose; row 0 is not used. [m]
        target_world: (3,) where the tip should be. [m]
        weights: (n,) how much each joint takes part, 0 (rigid) to 1; all 1 when left out.
        limits_rad: (n,) largest swing and twist from the segment before; none when left out. [rad]
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
    chain = old_chain.turning_chain(root_world, rotations_world, offsets, weights)
    n = len(chain.offsets)
    target = old_chain.checked_vector("target_world", target_world)
    angles = old_chain.checked_values(
        "limits_rad", np.full(n, math.pi) if limits_rad is None else limits_rad, n
    )
    rows = quat.identity(1) if base_world is None else np.reshape(base_world, (1, -1))
    base = old_chain.checked_rows("base_world", rows, 4, at_least=1)[0]
    limits = [
        None if angle >= math.pi else SwingTwist((0.0, 1.0, 0.0), (angle, angle), -angle, angle)
        for angle in angles[:-1]
    ]
    solved = solve(
        Chain.build(chain.offsets, weights=chain.weights[:-1], limits=limits),
        ChainPose.build(chain.positions[0], chain.rotations[:-1], base),
        Target(np.array(target)),
        ChainConfig(
            tolerance_m=config.tolerance_m, max_step_rad=config.max_step_rad, max_rounds=config.max_sweeps
        ),
    )
    chain.rotations[:-1] = solved.pose.rotations_world
    return old_chain.solution(
        solved.points_world,
        chain.rotations,
        chain.lengths,
        target,
        config.tolerance_m,
        solved.rounds,
        config.max_sweeps,
    )
