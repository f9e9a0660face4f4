"""Near a singularity damped least squares takes over from FABRIK and CCD, gradually, and hands back after it.

Both of them follow a target exactly, also where that makes joints whirl: just before full stretch an elbow
opens without bound for every millimetre. How near that is, the singular values of the position Jacobian tell.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from solvers.chain import Chain, ChainPose, ChainSolution, ChainSolver, Target, judged
from solvers.config import ChainConfig
from solvers.jacobian import solve_dls
from solvers.kernels.jacobian_rows import Work, singular_squares
from solvers.kernels.limits import clamp
from vrik import quat

SOFT_SHARE = 0.02
"""Where least squares takes over, the tip begins to lag this share of the chain's length before full stretch,
unless ``ChainConfig.soft_reach_m`` is more. At full stretch itself it lags 0.37 of that."""


@dataclass(frozen=True, slots=True)
class SingularValues:
    """How far one radian at the joints moves the tip, in its worst and its best direction.

    Args:
        smallest: 0 when there is a direction in which no joint moves the tip. [m]
        largest: About the length of the chain. [m]
    """

    smallest: float
    largest: float

    @property
    def ratio(self) -> float:
        """Smallest over largest, 0 to 1: 0 is a singularity."""
        return self.smallest / self.largest if self.largest > 0.0 else 0.0


def singular_values(chain: Chain, pose: ChainPose) -> SingularValues:
    """Smallest and largest singular value of the tip's position Jacobian; weights scale its columns."""
    w, x, y, z = (float(v) for v in pose.base_world)
    smallest, largest = singular_squares(
        chain.points(pose),
        np.array(pose.rotations_world),
        chain.weights,
        chain.limits,
        (w, x, y, z),
        Work.fresh(chain.joint_count),
    )
    return SingularValues(float(np.sqrt(smallest)), float(np.sqrt(largest)))


def takeover_share(ratio: float, border: float) -> float:
    """Part of damped least squares: 0 from ``border`` on, 1 at a singularity, smooth at both ends."""
    if border <= 0.0 or ratio >= border:
        return 0.0
    depth = 1.0 - ratio / border
    return depth * depth * (3.0 - 2.0 * depth)


def solve_with_takeover(
    solve: ChainSolver, chain: Chain, start: ChainPose, target: Target, config: ChainConfig
) -> ChainSolution:
    """Solve, and blend damped least squares in where the solution is near a singularity.

    Args:
        solve: The solver in charge.
        chain: Lengths, weights, limits.
        start: The warm start of both.
        target: What the tip should meet.
        config: ``takeover_share`` is the border: smallest over largest singular value.

    Returns:
        The solver's own solution outside of the border. Inside, every joint turns part of the way from it to
        that of :func:`solvers.jacobian.solve_dls`, which stays short of full stretch (``SOFT_SHARE``);
        ``dls_share`` says which part, and limits still hold.
    """
    solution = solve(chain, start, target, config)
    share = takeover_share(singular_values(chain, solution.pose).ratio, config.takeover_share)
    if share <= 0.0:
        return solution
    soft_m = max(config.soft_reach_m, SOFT_SHARE * float(chain.lengths.sum()))
    calm = solve_dls(chain, start, target, replace(config, soft_reach_m=soft_m))
    locals_ = quat.slerp(chain.locals_of(solution.pose), chain.locals_of(calm.pose), share)
    parent, rotations = start.base_world, np.empty_like(locals_)
    for i, local in enumerate(locals_):
        w, x, y, z = (float(v) for v in local)
        parent = rotations[i] = quat.multiply(parent, np.array(clamp((w, x, y, z), chain.limits, i)))
    return judged(chain, start, rotations, target, config, solution.rounds + calm.rounds, share)
