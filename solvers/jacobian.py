"""Solvers that turn all joints of a chain together: damped least squares, pseudo-inverse, Jacobian transpose.

They share limits, wishes (pole, middle of the ranges) and stopping rules, and differ in how a step is made of
what is missing at the tip. Damped least squares is the one to use; the others are for comparison.
"""

from __future__ import annotations

import math

import numpy as np

from solvers.chain import Chain, ChainPose, ChainSolution, Target, judged
from solvers.config import ChainConfig
from solvers.kernels import jacobian as kernels
from solvers.kernels.jacobian_rows import DAMPED, TRANSPOSED, TRUNCATED, Work
from solvers.restarts import other_start
from vrik.arrays import Q4


def solve_dls(chain: Chain, start: ChainPose, target: Target, config: ChainConfig) -> ChainSolution:
    """Damped least squares: quick where the chain moves freely, calm where it does not.

    Every singular direction is damped by its own singular value, and only near a singularity; the damping is
    reduced as steps go well, so that the tip still arrives. No joint turns farther in a call than
    |error at the start| / (2 ``config.damping`` s), s the largest singular value at the start (the length of
    the chain, about): a target that passes a singularity makes the tip lag behind and not the joints whirl.
    ``config.soft_reach_m`` keeps the chain from full stretch altogether.

    Args:
        chain: Lengths, weights, limits.
        start: The warm start. Joints outside of their limits are brought inside first.
        target: Place, and rotation of the last joint; a radian counts
            ``config.rotation_length_m`` times the root of ``rotation_weight`` metres. The
            pole turns the chain as far as the tip does not mind.
        config: Settings.

    Returns:
        The chain, solved. A target out of reach is answered by the nearest point that the lengths allow.

    Raises:
        ValueError: If a number of the target is not finite.

    Source:
        Nakamura & Hanafusa, ASME J. Dynamic Systems, Measurement and Control 108 (1986); Maciejewski &
        Klein, J. Robotic Systems 5 (1988).
    """
    return _solve(DAMPED, chain, start, target, config)


def solve_svd(chain: Chain, start: ChainPose, target: Target, config: ChainConfig) -> ChainSolution:
    """Pseudo-inverse without the singular values below ``config.damping`` times the largest.

    Along a direction that is left out nothing moves, so a target near full stretch may not be met.
    Arguments, result and errors are those of :func:`solve_dls`.

    Source:
        Buss, "Introduction to inverse kinematics with Jacobian transpose, pseudoinverse and damped least
        squares methods" (2004), section 5.
    """
    return _solve(TRUNCATED, chain, start, target, config)


def solve_transpose(chain: Chain, start: ChainPose, target: Target, config: ChainConfig) -> ChainSolution:
    """Gradient descent with the step that is best for a straight course: <e, J J^T e> / |J J^T e|^2.

    Simple and calm, and slow: several times the rounds of :func:`solve_dls`, whose arguments, result and
    errors it has.

    Source:
        Wolovich & Elliott, "A computational technique for inverse kinematics", CDC 1984; Buss
        (2004), section 3.
    """
    return _solve(TRANSPOSED, chain, start, target, config)


def _solve(method: int, chain: Chain, start: ChainPose, target: Target, config: ChainConfig) -> ChainSolution:
    best = _solve_once(method, chain, start, target, config)
    for number in range(config.restarts):
        if best.reached or best.stopped_because == "out_of_reach":
            break
        again = _solve_once(method, chain, other_start(chain, start, number), target, config)
        if again.reached or _miss(again, target, config) < _miss(best, target, config):
            best = again
    return best


def _miss(solution: ChainSolution, target: Target, config: ChainConfig) -> float:
    turned = solution.residual_rad * config.rotation_length_m * math.sqrt(target.turn_weight)
    return math.hypot(solution.residual_m, turned)


def _solve_once(
    method: int, chain: Chain, start: ChainPose, target: Target, config: ChainConfig
) -> ChainSolution:
    rotations = np.array(start.rotations_world)
    points = np.empty_like(chain.offsets)
    points[0] = start.root_world
    w, x, y, z = (float(v) for v in start.base_world)
    base: Q4 = (w, x, y, z)
    rounds = kernels.solve(
        points,
        rotations,
        chain.offsets,
        chain.weights,
        chain.limits,
        base,
        target.point,
        target.turn,
        float(target.turn_weight),
        target.side,
        method,
        config.tolerance_m,
        config.tolerance_rad,
        config.max_rounds,
        config.max_step_rad,
        config.damping,
        config.singular_share,
        config.limit_avoidance,
        config.rotation_length_m,
        config.soft_reach_m,
        Work.fresh(chain.joint_count),
    )
    return judged(chain, start, rotations, target, config, rounds)
