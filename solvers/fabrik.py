"""FABRIK for people: a chain of any length reaches a target with its tip, within its joints' limits."""

from __future__ import annotations

import numpy as np

from solvers.chain import Chain, ChainPose, ChainSolution, Target, check_fits, judged
from solvers.config import ChainConfig
from solvers.kernels import fabrik_chain
from vrik.arrays import Q4, Floats


def solve(chain: Chain, start: ChainPose, target: Target, config: ChainConfig) -> ChainSolution:
    """Bend a chain so that its tip meets a target, keeping bone lengths, limits and each joint's twist.

    Joints without limits are solved on positions; each then keeps the twist about its bone that it has
    in ``start``, and the chain its swivel about the root-tip line, so that closed paths end where they
    began. With a pole the chain bends to the side of it.

    With limits, or weights between 0 and 1, both passes carry rotations and stay inside the limits. This
    alone gets stuck for up to a third of targets, so it is not all: when rounds gain little, damped least
    squares goes on from there; if that is stuck as well, it begins from ``start`` itself. With
    ``config.restarts`` it then begins from other poses, at the price of a leap: the middle of all ranges
    first, then one swivel after the other about the root-target line (9 in all are enough, and some 400
    rounds). The best pose is kept. The pole then counts only for where these poses bend to.

    Args:
        chain: Joints, weights (0: rigid, its run moves as one bone), limits. Soft zones slow a joint within
            FABRIK's rounds; only the hard stop decides whether a target is met.
        start: How the chain lies; its first joint stays where it is.
        target: What the tip should meet. Where position and rotation cannot both be met, the rotation is
            if ``rotation_weight`` is above 1, else the position; with limits, the least sum of squares.
        config: ``tolerance_m``, ``tolerance_rad``, ``max_rounds`` (all steps of all attempts together),
            ``rotation_length_m`` and ``restarts`` are used.

    Returns:
        The bent chain. Out of reach it lies straight towards the target with ``reached`` false.

    Raises:
        ValueError: If shapes do not fit or a number is not finite.

    Source:
        Aristidou & Lasenby, "FABRIK", Graphical Models 73 (2011), Algorithm 1; Aristidou, Chrysanthou &
        Lasenby, "Extending FABRIK with model constraints", Computer Animation and Virtual Worlds 27 (2016).
    """
    check_fits(chain, start)
    m = chain.joint_count
    rotations = start.rotations_world.copy()
    points = chain.points(start)
    scratch, numbers = scratch_for(m)
    w, x, y, z = start.base_world
    base: Q4 = (float(w), float(x), float(y), float(z))
    rounds = fabrik_chain.solve(
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
        float(config.tolerance_m),
        float(config.tolerance_rad),
        float(config.rotation_length_m),
        int(config.max_rounds),
        int(config.restarts),
        scratch,
        numbers,
    )
    return judged(chain, start, rotations, target, config, rounds)


def scratch_for(joint_count: int) -> tuple[Floats, Floats]:
    """The two arrays that ``kernels.fabrik_chain.solve`` works in, for chains of ``joint_count`` joints."""
    m = joint_count
    return np.zeros((6 * (m + 1), 4)), np.zeros((17, max(m + 1, 7)))
