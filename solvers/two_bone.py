"""Two bones for people: an arm or a leg reaches a target in closed form."""

from __future__ import annotations

import numpy as np

from solvers.kernels import two_bone as kernels
from solvers.old_chain import ChainSolution, checked_values, checked_vector, solution
from vrik.arrays import Vec3

TOLERANCE_M = 1e-6
"""Tip-to-target distance that counts as reached: a closed form is exact but for rounding. [m]"""


def solve_two_bone(
    root_world: Vec3, target_world: Vec3, upper_m: float, lower_m: float, pole_world: Vec3
) -> ChainSolution:
    """Bend a limb so that its end meets a target and its middle joint points to a pole.

    Args:
        root_world: (3,) shoulder or hip. [m]
        target_world: (3,) where the end should be. [m]
        upper_m: Length of the first bone. [m]
        lower_m: Length of the second bone. [m]
        pole_world: (3,) direction in which the elbow or knee points.

    Returns:
        The three joints, without rotations. A target that is too far or too near is met as nearly as
        it can be, with ``reached`` false.

    Raises:
        ValueError: If a shape is wrong, or a number is not finite or a length negative.

    Source:
        Tolani, Goswami & Badler, Graphical Models 62 (2000), section 3.
    """
    root = checked_vector("root_world", root_world)
    target = checked_vector("target_world", target_world)
    pole = checked_vector("pole_world", pole_world)
    lengths = checked_values("upper_m and lower_m", [upper_m, lower_m], 2)

    bent = kernels.bend(root, target, float(upper_m), float(lower_m), pole)
    joints = np.array([root, bent[:3], bent[3:]])
    return solution(joints, None, lengths, target, TOLERANCE_M, 0, 0)
