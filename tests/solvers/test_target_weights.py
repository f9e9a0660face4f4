"""Weights of a target mean the same to every solver."""

from __future__ import annotations

import numpy as np
import pytest

from solvers import Chain, ChainConfig, ChainPose, Hinge, Target, solve_chain
from vrik import quat

PLANAR = Chain.from_points(
    [(0.0, 0.0, 0.0), (0.3, 0.0, 0.0), (0.6, 0.0, 0.0)], limits=[Hinge((0.0, 0.0, 1.0), -2.0, 2.0)] * 2
)
START = ChainPose.build((0.0, 0.0, 0.0), quat.from_rotvec(np.array([[0.0, 0.0, 0.3], [0.0, 0.0, 0.6]])))


@pytest.mark.parametrize("solver", ["fabrik", "ccd", "dls", "svd"])
@pytest.mark.parametrize("weight", [1.0, 3.0])
def test_a_compromise_of_place_and_rotation_does_not_depend_on_the_solver(solver: str, weight: float) -> None:
    """Least of |miss|^2 + rotation_weight (rotation_length |angle|)^2, against all angles tried.

    CCD weighs chords instead of angles, which is 0.4 % here.
    """
    place, turn, length_m, turn_weight = np.array([0.4, 0.3, 0.0]), 2.4, 0.3, 0.25
    a, b = np.meshgrid(np.linspace(0.0, 1.0, 801), np.linspace(0.5, 2.0, 1201), indexing="ij")
    miss = (0.3 * (np.cos(a) + np.cos(b)) - place[0]) ** 2 + (0.3 * (np.sin(a) + np.sin(b)) - place[1]) ** 2
    best = float((miss + turn_weight * (length_m * (turn - b)) ** 2).min())
    rotation = quat.from_rotvec(np.array([0.0, 0.0, turn]))

    found = solve_chain(
        PLANAR,
        START,
        Target(place, rotation, weight=weight, rotation_weight=turn_weight),
        solver=solver,
        config=ChainConfig(max_rounds=1000, rotation_length_m=length_m),
    )

    cost = found.residual_m**2 + turn_weight * (length_m * found.residual_rad) ** 2
    assert best > 1e-3
    assert cost == pytest.approx(best, rel=5e-3)
