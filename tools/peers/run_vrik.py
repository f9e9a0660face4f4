"""vrik on the problem file: ``python run_vrik.py PROBLEMS RESULTS``.

Three lines for each solver, with the same solutions. ``call``: one ``solve_chain`` from Python, with its
checks and its result object. ``many``: the same target from the same pose ``COPIES`` times in one
``solve_many``, divided by that; the checks of its arrays and the judging of its results are in it.
``kernel``: the compiled loop in that alone.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from solvers.chain import ChainPose, Target
from solvers.config import ChainConfig
from solvers.many import _loop, solve_many
from solvers.registry import solve_chain
from tools.peers.measure import Floats, Given, Measured, Settings, matrix, measure, run
from tools.peers.problems import chain_of, world_rotations
from vrik import quat

SOLVERS = ("fabrik", "ccd", "dls")
COPIES = 200


class Call:
    """One solver of ours set up for one problem, called for each target."""

    def __init__(self, given: Given, settings: Settings, solver: str) -> None:
        self.chain = chain_of(given.offsets, given.hinges, given.limits)
        self.config = ChainConfig(settings.tolerance_m, settings.tolerance_rad, settings.max_rounds)
        self.solver = solver
        self.start = ChainPose.build((0.0, 0.0, 0.0), world_rotations(given.hinges, given.start))
        self.pose = self.start

    def reset(self) -> None:
        """Back to the start pose."""
        self.pose = self.start

    def target(self, position: Floats, rotation: Floats | None) -> Any:
        """A :class:`Target`."""
        return Target(position, rotation)

    def solve(self, target: Any) -> None:
        """One ``solve_chain``."""
        self.pose = solve_chain(self.chain, self.pose, target, solver=self.solver, config=self.config).pose

    def tip(self) -> tuple[Floats, Floats | None]:
        """By the chain's forward kinematics."""
        return self.chain.points(self.pose)[-1], matrix(self.pose.rotations_world[-1])


class Many(Call):
    """The same solver, ``COPIES`` times in one ``solve_many``."""

    def target(self, position: Floats, rotation: Floats | None) -> Any:
        """Arrays for ``solve_many``: roots, warm starts, targets, rotations."""
        turns = None if rotation is None else np.tile(rotation, (COPIES, 1))
        warm = np.tile(self.pose.rotations_world, (COPIES, 1, 1))
        return np.zeros((COPIES, 3)), warm, np.tile(position, (COPIES, 1)), turns

    def solve(self, target: Any) -> None:
        """One ``solve_many``."""
        roots, warm, places, turns = target
        found = solve_many(
            self.chain, roots, warm, places, target_rotations=turns, solver=self.solver, config=self.config
        )
        self.pose = ChainPose(self.pose.root_world, found.rotations_world[-1], self.pose.base_world)


class Kernel(Call):
    """The same solver, ``COPIES`` times in its compiled loop."""

    def target(self, position: Floats, rotation: Floats | None) -> Any:
        """The loop with its arrays filled in, and the array in which it leaves the rotations."""
        turned = np.tile(self.pose.rotations_world, (COPIES, 1, 1))
        turns = quat.identity(COPIES) if rotation is None else np.tile(rotation, (COPIES, 1))
        weight = 0.0 if rotation is None else 1.0
        offsets = np.tile(self.chain.offsets, (COPIES, 1, 1))
        points = np.tile(self.chain.points(self.pose), (COPIES, 1, 1))
        chains = (points, turned, offsets, self.chain.weights, self.chain.limits)
        goals = (quat.identity(COPIES), np.tile(position, (COPIES, 1)), turns, weight, np.zeros((COPIES, 3)))
        loop = _loop(self.chain, self.solver, weight, self.config)
        assert loop is not None, f"{self.solver} has no compiled loop"
        return partial(loop, *chains, *goals, rounds=np.zeros(COPIES, np.int64), begin=0, end=COPIES), turned

    def solve(self, target: Any) -> None:
        """The loop."""
        loop, turned = target
        loop()
        self.pose = ChainPose(self.pose.root_world, turned[-1], self.pose.base_world)


def solve_all(given: Given, settings: Settings) -> list[Measured]:
    """All problems, each with all solvers that chains of any length have."""
    rows: list[Measured] = []
    for solver in SOLVERS:
        rows += measure(f"vrik {solver}, kernel", given, Kernel(given, settings, solver), settings, COPIES)
        rows += measure(f"vrik {solver}, many", given, Many(given, settings, solver), settings, COPIES)
        rows += measure(f"vrik {solver}, call", given, Call(given, settings, solver), settings)
    return rows


if __name__ == "__main__":
    run(solve_all)
