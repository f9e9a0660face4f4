"""Stepping: guessed ankles glide, planted feet do not. A layer between prior and solver."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solvers.guess import Guess
from solvers.kernels import stepping as _kernels
from vrik.arrays import Bools, Floats, Points
from vrik.config import SteppingConfig


@dataclass(slots=True, eq=False)
class SteppingState:
    """Where both feet are: ``foot`` (2, 3) [m], ``yaw`` (2,) [rad], ``swing`` (2,) share of a swing or -1."""

    foot: Points
    yaw: Floats
    start: Points
    start_yaw: Floats
    swing: Floats
    placed: Bools

    @classmethod
    def fresh(cls) -> SteppingState:
        """Feet that have not touched the floor yet."""
        return cls(
            np.zeros((2, 3)),
            np.zeros(2),
            np.zeros((2, 3)),
            np.zeros(2),
            np.full(2, -1.0),
            np.zeros(2, np.bool_),
        )


def step(
    guess: Guess,
    velocity_x: float,
    velocity_z: float,
    dt_s: float,
    stature_m: float,
    config: SteppingConfig,
    state: SteppingState,
) -> None:
    """Replace ``guess.ankle_position``, ``foot_rotation`` and ``contact`` by feet that step.

    Args:
        guess: Goals that move with the body; overwritten.
        velocity_x: Where the body is going, world +X. [m/s]
        velocity_z: World +Z. [m/s]
        dt_s: Time since the frame before. [s]
        stature_m: Step lengths scale with it. [m]
        config: When and how.
        state: Advanced by one frame.

    Source:
        A planted foot stays until its goal is some 10 cm away, then one short swing: measured on motion
        capture to cut skating to a third at 0.2 cm cost; see docs/body.md.
    """
    _kernels.step(
        guess.ankle_position,
        guess.foot_rotation,
        guess.contact,
        velocity_x,
        velocity_z,
        dt_s,
        config.distance_share * stature_m,
        np.radians(config.turn_deg),
        config.swing_s,
        config.lift_share * stature_m,
        config.lead_s,
        state.foot,
        state.yaw,
        state.start,
        state.start_yaw,
        state.swing,
        state.placed,
        guess.ankle_position,
        guess.foot_rotation,
        guess.contact,
    )
