"""pyfabrik on the problem file: ``python run_pyfabrik.py PROBLEMS RESULTS``, where it is installed.

Timed: ``move_to``. It has no limit of rounds of its own and can loop for ever: the limit is put in here by
way of the tolerance, which it reads once a round.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from pyfabrik import Fabrik3D
from vectormath import Vector3

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tools.peers.measure import Floats, Given, Measured, Settings, cannot, matrix, measure, run


class CappedFabrik(Fabrik3D):  # type: ignore[misc]
    """Stops after ``cap`` rounds: from then on any distance is within the tolerance."""

    cap = 100
    rounds = 0
    wanted = 1e-3

    @property
    def tolerance(self) -> float:
        """Read before every round. [m]"""
        self.rounds += 1
        return self.wanted if self.rounds <= self.cap + 1 else float("inf")

    @tolerance.setter
    def tolerance(self, value: float) -> None:
        self.wanted = value


class Fabrik:
    """pyfabrik set up for one problem of ball joints."""

    def __init__(self, given: Given, settings: Settings) -> None:
        points, turned = [np.zeros(3)], np.eye(3)
        for (z, x), offset in zip(given.start, given.offsets[1:], strict=True):
            about_z = matrix(np.array([np.cos(z / 2), 0.0, 0.0, np.sin(z / 2)]))
            about_x = matrix(np.array([np.cos(x / 2), np.sin(x / 2), 0.0, 0.0]))
            turned = turned @ about_z @ about_x
            points.append(points[-1] + turned @ offset)
        self.start = [Vector3(*point) for point in points]
        self.solver = CappedFabrik(list(self.start), settings.tolerance_m)
        self.solver.cap = settings.max_rounds

    def reset(self) -> None:
        """Back to the start pose."""
        self.solver.joints = list(self.start)

    def target(self, position: Floats, rotation: Floats | None) -> Any:
        """Positions only."""
        return Vector3(*position)

    def solve(self, target: Any) -> None:
        """From the present points."""
        self.solver.rounds = 0
        self.solver.move_to(target)

    def tip(self) -> tuple[Floats, Floats | None]:
        """Its last joint."""
        return np.asarray(self.solver.joints[-1], np.float64), None


def solve_all(given: Given, settings: Settings) -> list[Measured]:
    """It knows points with distances, no axes."""
    if len(given.hinges):
        return cannot("pyfabrik", given, "no hinges, no limits, no rotations")
    return measure("pyfabrik", given, Fabrik(given, settings), settings)


if __name__ == "__main__":
    run(solve_all)
