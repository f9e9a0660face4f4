"""Settings that go together for the limbs people ask for: ``ARM``, ``LEG``, ``SPINE``, ``LOOK``, ``TAIL``.

Arms and legs are set as practitioners of game IK do: CCD with 15 to 20 rounds, 1 cm and 15 degrees for arms,
25 to 30 rounds, 5 mm and 10 degrees for legs, targets smoothed over 0.1 to 0.2 s and 0.05 s (read as time
constants; a half-life is 0.69 of one). The others are measured with their own solver, warm, on 2.5 s of a
target that wanders through half of the reach at 60 Hz; the figures stand beside them. Half-lives are ours.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from solvers.chain import Chain, ChainPose, ChainSolution, Target
from solvers.config import ChainConfig
from solvers.registry import solve_chain
from vrik.arrays import Floats


@dataclass(frozen=True, slots=True)
class Preset:
    """Which solver, how long, how exact, who takes part, and how the target is smoothed.

    Args:
        name: What it is for.
        solver: Name of a solver (``solvers.registry``); with ``aim`` the target's position is looked at.
        config: Its settings. Steps are read by CCD and least squares only.
        first_weight: Weight of the first joint.
        last_weight: Weight of the last joint; between them weights run evenly.
        half_life_s: For a ``solvers.smoothing.TargetSmoother``; nothing else smooths. [s]
    """

    name: str
    solver: str
    config: ChainConfig
    first_weight: float
    last_weight: float
    half_life_s: float

    def weights(self, joint_count: int) -> Floats:
        """(joint_count,) weights for ``Chain.build``."""
        return np.linspace(self.first_weight, self.last_weight, joint_count)

    def solve(self, chain: Chain, start: ChainPose, target: Target) -> ChainSolution:
        """Solve a chain this way. The chain's own weights count: build it with :meth:`weights`."""
        return solve_chain(chain, start, target, solver=self.solver, config=self.config)


def _config(tolerance_m: float, rounds: int, step_deg: float, near_step_deg: float) -> ChainConfig:
    return ChainConfig(
        tolerance_m=tolerance_m,
        tolerance_rad=math.radians(1.0),
        max_rounds=rounds,
        max_step_rad=math.radians(step_deg),
        near_step_rad=math.radians(near_step_deg),
        soft_reach_m=0.02,
    )


ARM = Preset("arm", "fabrik", _config(0.01, 20, 15.0, 3.0), 1.0, 1.0, 0.15 * math.log(2.0))
"""Rounds, tolerance, step, smoothing: articles on game IK; FABRIK as in the body. ``two_bone`` is exact."""

LEG = Preset("leg", "ccd", _config(0.005, 30, 10.0, 2.0), 1.0, 1.0, 0.05 * math.log(2.0))
"""Rounds, tolerance, step and smoothing from articles on game IK. ``two_bone`` is exact."""

SPINE = Preset("spine", "ccd", _config(0.002, 20, 8.0, 2.0), 1.0, 0.6, 0.1)
"""Spine to head with anatomical limits: 99 % within 2.0 mm, where 10 rounds leave 5.2 mm and 30 gain nothing.
Weights that fall to the head: largest step of a joint 4.8 degrees a frame; even ones 9.0, rising 10.1."""

LOOK = Preset("look", "aim", _config(0.01, 16, 180.0, 180.0), 0.4, 1.0, 0.12)
"""Upper chest, neck and head take 19, 33, 48 % of a turn. Points up to 60 degrees to the side: exact in one
sweep; up to 120, where limits bind: 99 % within 2.3 degrees after 4 sweeps, 0.12 after 8, exact after 16."""

TAIL = Preset("tail", "ccd", _config(0.005, 20, 10.0, 3.0), 0.4, 1.0, 0.25)
"""Ten bones: 99 % within 4.8 mm, in 4 rounds. Weights that rise to the tip: largest step of a joint 3.1
degrees a frame; even ones 5.7, falling 6.3; with at most 10 rounds single frames step by 29."""

PRESETS = {preset.name: preset for preset in (ARM, LEG, SPINE, LOOK, TAIL)}
"""By name."""
