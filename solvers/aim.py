"""Aim, or look-at: several joints turn by their shares until something at the tip points at a point."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from solvers.chain import (
    Chain,
    ChainPose,
    ChainSolution,
    StopReason,
    Target,
    check_fits,
    checked_values,
    checked_vector,
)
from solvers.config import ChainConfig
from solvers.kernels import aim as kernels
from vrik import quat
from vrik.arrays import Q4

FRONT = (0.0, 0.0, -1.0)
"""Where a head looks in the rest pose."""

_DEFAULT = ChainConfig()


def aim(
    chain: Chain,
    start: ChainPose,
    axis: ArrayLike,
    point_world: ArrayLike,
    *,
    shares: ArrayLike | None = None,
    config: ChainConfig = _DEFAULT,
) -> ChainSolution:
    """Turn a chain so that the ray from its tip (the eye, the muzzle) meets a point.

    From the root on each joint makes its share of the turn that is left, and the last joint with a share
    makes the rest, so the aim is exact where limits allow. What a limit keeps from one joint the others take
    in further sweeps. Turns are the smallest ones, so nothing rolls; to points behind, beyond a right angle,
    more and more about the joint's own up first, as heads do. Exactly behind, one way round is taken.

    Args:
        chain: Its last offset leads from the last joint to the eye; limits hold.
        start: The pose to turn from: the rest pose, or the animation's. Not the last solution: shares are of
            the turn from here, and on closed paths small turns would add up to a roll.
        axis: (3,) direction of the ray in the last joint's frame.
        point_world: (3,) what to aim at. [m]
        shares: (m,) how much each joint takes part, in any unit; the chain's weights when left out.
        config: ``tolerance_rad`` and ``max_rounds``.

    Returns:
        The turned chain. ``residual_rad`` is the angle between ray and point, ``residual_m`` the point's
        distance from the ray; ``reached`` looks at the angle. A point in the eye itself leaves the chain as
        it is, and counts as reached.

    Raises:
        ValueError: If a shape does not fit, a number is not finite, or axis or shares are all zero.
    """
    check_fits(chain, start)
    point = checked_vector("point_world", point_world)
    ahead = np.array(checked_vector("axis", axis))
    size = float(np.linalg.norm(ahead))
    if size < 1e-9:
        raise ValueError("axis has no length; give the direction the last joint looks in, such as (0, 0, -1)")
    parts = checked_values("shares", chain.weights if shares is None else shares, chain.joint_count)
    if parts.sum() <= 0.0:
        raise ValueError("shares are all zero; at least one joint has to turn")
    x, y, z = (float(v) for v in ahead / size)
    bw, bx, by, bz = (float(v) for v in start.base_world)
    base: Q4 = (bw, bx, by, bz)
    points = chain.points(start)
    rotations = np.array(start.rotations_world, np.float64, order="C")
    rounds = kernels.aim(
        points,
        rotations,
        chain.offsets,
        chain.limits,
        base,
        (x, y, z),
        point,
        parts,
        float(config.tolerance_rad) * 1e-3,
        int(config.max_rounds),
    )
    to = np.array(point) - points[-1]
    ray = quat.rotate(rotations[-1], np.array([x, y, z]))
    away = float(np.linalg.norm(to))
    angle = 0.0 if away < 1e-9 else float(np.arctan2(np.linalg.norm(np.cross(ray, to)), ray @ to))
    miss = away * float(np.sin(min(angle, 0.5 * np.pi)))
    reached = angle <= config.tolerance_rad
    why: StopReason = "reached" if reached else "max_rounds" if rounds >= config.max_rounds else "no_progress"
    pose = ChainPose(start.root_world, rotations, start.base_world)
    return ChainSolution(points, pose, reached, miss, angle, rounds, why)


def solve(chain: Chain, start: ChainPose, target: Target, config: ChainConfig) -> ChainSolution:
    """:func:`aim` as a chain solver: the last joint's front (-Z) looks at the target's position.

    Shares are the chain's weights; the target's rotation and pole are not used.
    """
    return aim(chain, start, FRONT, target.point, config=config)
