"""Solve less often: skip what hardly moved, run slow chains at a lower rate, spread bodies over frames.

All of it is off unless asked for. Between two solutions the pose is interpolated, so that what is shown is
one period late and never jumps.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from solvers.blend import blend
from solvers.chain import Chain, ChainPose, ChainSolution, Target
from vrik import quat
from vrik.arrays import V3


@dataclass(frozen=True, slots=True)
class OnDemandConfig:
    """When a chain is solved anew; ValueError for a setting below zero or a phase above 1."""

    still_m: float = 0.0
    """Skip while target and root have moved less than this since the last solution; 0 never skips. [m]"""

    still_rad: float = 0.0
    """And turned less than this. [rad]"""

    rate_hz: float = 0.0
    """Solve this often and interpolate between; 0 is every frame. [Hz]"""

    phase: float = 0.0
    """Part of a period by which this chain comes later than others, 0 to 1: spreads bodies over frames."""

    farthest_m: float = 0.0
    """Do not solve bodies that are farther than this from whoever looks (see :meth:`OnDemand.step`); 0 is
    never. [m]"""

    def __post_init__(self) -> None:
        settings = (self.still_m, self.still_rad, self.rate_hz, self.phase, self.farthest_m)
        if not all(0.0 <= value < math.inf for value in settings) or self.phase > 1.0:
            raise ValueError(f"settings must be finite and not negative, and phase at most 1: {self}")


def phase_of(body: int, bodies: int) -> float:
    """Phase of one of several bodies, so that equally many are solved in each frame."""
    return body / max(bodies, 1)


class OnDemand:
    """Decides, frame by frame, whether one chain has to be solved.

    Args:
        config: When.
    """

    def __init__(self, config: OnDemandConfig) -> None:
        self.config = config
        self.solved = 0
        """How often the solver was called."""
        self.skipped = 0
        """How often it was not."""
        self._asked: tuple[ChainPose, Target] | None = None
        self._before: ChainPose | None = None
        self._last: ChainSolution | None = None
        self._since_s = 0.0
        self._until_s = 0.0

    def step(
        self,
        chain: Chain,
        start: ChainPose,
        target: Target,
        dt_s: float,
        solve: Callable[[Chain, ChainPose, Target], ChainSolution],
        distance_m: float = 0.0,
    ) -> ChainPose:
        """The chain's pose in this frame.

        Args:
            chain: What would be solved.
            start: Where it hangs now, and how it lay; its root and base are always those of the result.
            target: What its tip should meet.
            dt_s: Time since the step before. [s]
            solve: Called when it must.
            distance_m: How far the body is from whoever looks. [m]

        Returns:
            The solution, the last one again, or what lies between the last two.
        """
        config = self.config
        if 0.0 < config.farthest_m < distance_m:
            self.skipped += 1
            self._last = None
            return start
        self._since_s += max(dt_s, 0.0)
        if self._last is None:
            self._until_s = config.phase / config.rate_hz if config.rate_hz > 0.0 else 0.0
            self._solve(chain, start, target, solve)
            self._before = self._last_pose()
        elif self._since_s >= self._until_s - 1e-9 and self._moved(start, target):
            self._before = self._last_pose()
            self._until_s = 1.0 / config.rate_hz if config.rate_hz > 0.0 else 0.0
            self._solve(chain, replace(start, rotations_world=self._before.rotations_world), target, solve)
        else:
            self.skipped += 1
        return self._shown(chain, start)

    def _solve(
        self,
        chain: Chain,
        start: ChainPose,
        target: Target,
        solve: Callable[[Chain, ChainPose, Target], ChainSolution],
    ) -> None:
        self.solved += 1
        self._last = solve(chain, start, target)
        self._asked = (start, target)
        self._since_s = 0.0

    def _last_pose(self) -> ChainPose:
        assert self._last is not None
        return self._last.pose

    def _shown(self, chain: Chain, start: ChainPose) -> ChainPose:
        """What is seen now: the way from the solution before to the last one, on the root of this frame."""
        last, before = self._last_pose(), self._before
        shown = last
        if self.config.rate_hz > 0.0 and before is not None and self._until_s > 0.0:
            shown = blend(chain, before, last, min(self._since_s / self._until_s, 1.0))
        turned = quat.multiply(start.base_world, quat.conjugate(shown.base_world))
        return ChainPose(start.root_world, quat.multiply(turned, shown.rotations_world), start.base_world)

    def _moved(self, start: ChainPose, target: Target) -> bool:
        """Whether anything that was asked for has changed by more than is overlooked."""
        config = self.config
        if config.still_m <= 0.0 or self._asked is None:
            return True
        pose, asked = self._asked
        if math.dist(target.position, asked.position) > config.still_m:
            return True
        if math.dist(start.root_world, pose.root_world) > config.still_m:
            return True
        if float(quat.angle(start.base_world, pose.base_world)) > config.still_rad:
            return True
        if (target.rotation is None) != (asked.rotation is None):
            return True
        if (target.weight, target.rotation_weight) != (asked.weight, asked.rotation_weight):
            return True
        if _between(target.side, asked.side) > config.still_rad:
            return True
        turned = 0.0
        if target.rotation is not None and asked.rotation is not None:
            turned = float(quat.angle(target.rotation, asked.rotation))
        return turned > config.still_rad


def _between(pole: V3, other: V3) -> float:
    """Angle between two poles; endless when only one of them says something. [rad]"""
    a, b = np.array(pole), np.array(other)
    if a.any() != b.any():
        return math.inf
    return math.atan2(float(np.linalg.norm(np.cross(a, b))), float(a @ b))
