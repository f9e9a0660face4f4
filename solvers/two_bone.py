"""Two bones for people: an arm or a leg reaches a target in closed form."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from solvers.chain import Chain, ChainPose, ChainSolution, Target, check_fits, judged
from solvers.config import ChainConfig
from solvers.kernels import two_bone as kernels
from vrik.arrays import Q4


def solve(chain: Chain, start: ChainPose, target: Target, config: ChainConfig) -> ChainSolution:
    """Bend a limb of two bones so that its tip meets a target, at once and exactly.

    With three joints the last one is the hand (its bone the effector offset, to palm or grip): it takes the
    target's rotation, and the offset is accounted for; without a rotation it stays as it is to the forearm.
    With two, the second bone rolls about itself towards the target's rotation. A rotation of any weight above
    zero is met: nothing has to give way to it.

    The middle joint bends about its hinge axis (a cone much narrower one way counts as a hinge that rolls),
    or in the plane it is bent in. It points to the pole; where that says nothing (no pole, or along the limb)
    it keeps the side it has, carried along with the limb. Limits come before the pole: what the first joint
    may not do the swivel avoids, and without a pole what the hand may not do as well. What no swivel avoids
    is clamped. Soft zones are not used: an answer at once has no speed to lose.

    An answer at once can jump where the answer itself does: near the pole direction (``solvers.swivel`` makes
    a side that does not), and where the swivels that limits allow lie in separate parts and one of them ends.

    Args:
        chain: 2 joints, or 3 with an effector. Weights are 1 (that of the hand may be 0: it stays as it is).
        start: The warm start: the bend without a pole, and the roll of the bones.
        target: What the tip should meet.
        config: ``tolerance_m``, ``tolerance_rad``, ``soft_reach_m``, ``max_stretch``.

    Returns:
        The limb, with ``rounds`` 0. In the last ``soft_reach_m`` before it is straight the tip lags behind
        the target, which the residual shows. With ``max_stretch`` above 1 both bones are lengthened by the
        same factor to meet it after all: ``stretch`` says by how much and ``points_world`` shows it, while
        ``pose`` holds rotations only (``chain.points`` gives bones of their own length). A hand without a
        rotation of its own is part of the second bone and stretches with it.

    Raises:
        ValueError: If the chain has another number of joints, or a weight that only other solvers know.

    Source:
        Tolani, Goswami & Badler, Graphical Models 62 (2000), section 3.
    """
    check_fits(chain, start)
    check_limb(chain)
    m = chain.joint_count
    w, x, y, z = (float(v) for v in start.base_world)
    base: Q4 = (w, x, y, z)
    points = np.empty((m + 1, 3))
    points[0] = start.root_world
    rotations = np.array(start.rotations_world, np.float64, order="C")
    stretch = kernels.solve(
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
        float(config.soft_reach_m),
        float(config.max_stretch),
    )
    found = judged(chain, start, rotations, target, config, 0)
    if stretch <= 1.0:
        return found
    residual = float(np.linalg.norm(points[-1] - np.asarray(target.position, np.float64)))
    reached = residual <= config.tolerance_m and found.residual_rad <= config.tolerance_rad
    return replace(
        found,
        points_world=points,
        residual_m=residual,
        reached=reached,
        stopped_because="reached" if reached else found.stopped_because,
        stretch=stretch,
    )


def check_limb(chain: Chain) -> None:
    """ValueError when a chain is no limb of two bones, or has a weight that only other solvers know."""
    m = chain.joint_count
    if m not in (2, 3):
        raise ValueError(
            f"two_bone solves 2 joints, or 3 with an effector; this chain has {m}: use fabrik, ccd or dls"
        )
    if (chain.weights[:2] != 1.0).any() or (m == 3 and chain.weights[2] not in (0.0, 1.0)):
        weights = ", ".join(f"{w:g}" for w in chain.weights)
        raise ValueError(
            f"two_bone turns its joints fully; these have weights {weights}: set them to 1, or use ccd or dls"
        )
