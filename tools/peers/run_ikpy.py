"""ikpy on the problem file: ``python run_ikpy.py PROBLEMS RESULTS``, where it is installed.

Timed: ``Chain.inverse_kinematics_frame`` with its numpy back end. A ball joint is two hinges. SciPy's
optimiser under it knows no tip tolerance, so its callback stops it when the tip is near enough.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
from ikpy.chain import Chain
from ikpy.link import OriginLink, URDFLink

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tools.peers.measure import Floats, Given, Measured, Settings, matrix, measure, run

BALL_AXES = ((0.0, 0.0, 1.0), (1.0, 0.0, 0.0))


class Ikpy:
    """ikpy set up for one problem."""

    def __init__(self, given: Given, settings: Settings) -> None:
        links = [OriginLink()]
        for i in range(len(given.start)):
            at = given.offsets[i] if i else np.zeros(3)
            for j, axis in enumerate([given.hinges[i]] if len(given.hinges) else BALL_AXES):
                links.append(
                    URDFLink(
                        f"joint{i}_{j}",
                        at if j == 0 else np.zeros(3),
                        np.zeros(3),
                        rotation=np.asarray(axis),
                        bounds=tuple(given.limits[i]) if len(given.limits) else None,
                    )
                )
        links.append(URDFLink("tip", given.offsets[-1], np.zeros(3), joint_type="fixed"))
        active = [False] + [True] * (len(links) - 2) + [False]
        self.chain = Chain(links, active_links_mask=active)
        self.start = np.concatenate([[0.0], given.start.ravel(), [0.0]])
        self.angles = self.start
        self.settings = settings
        self.mode = "all" if given.oriented else None

    def reset(self) -> None:
        """Back to the start pose."""
        self.angles = self.start

    def target(self, position: Floats, rotation: Floats | None) -> Any:
        """(4, 4)."""
        frame = np.eye(4)
        frame[:3, 3] = position
        if rotation is not None:
            frame[:3, :3] = matrix(rotation)
        return frame

    def solve(self, target: Any) -> None:
        """From the present angles."""
        self.angles = self.chain.inverse_kinematics_frame(
            target,
            initial_position=self.angles,
            orientation_mode=self.mode,
            optimizer_budget=self.settings.max_rounds,
            optimizer_kwargs={"callback": self._near_enough},
        )

    def tip(self) -> tuple[Floats, Floats | None]:
        """By its forward kinematics."""
        frame = np.asarray(self.chain.forward_kinematics(self.angles))
        return frame[:3, 3], frame[:3, :3]

    def _near_enough(self, *, intermediate_result: Any) -> None:
        miss = intermediate_result.fun
        off = float(np.linalg.norm(miss[3:])) / math.sqrt(8.0)
        turned = 2.0 * math.asin(min(off, 1.0))
        if np.linalg.norm(miss[:3]) <= self.settings.tolerance_m and turned <= self.settings.tolerance_rad:
            raise StopIteration


def solve_all(given: Given, settings: Settings) -> list[Measured]:
    """All problems."""
    return measure("ikpy", given, Ikpy(given, settings), settings)


if __name__ == "__main__":
    run(solve_all)
