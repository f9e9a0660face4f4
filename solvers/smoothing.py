"""Smoothing that does not know the frame rate: what is left of a step halves every half-life.

A blend by a fixed share each frame is faster at 120 Hz than at 30. Here the share comes from the time that
has passed, ``1 - 2 ** (-dt / half_life)``: two steps of dt leave what one step of 2 dt leaves.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from solvers.chain import Target
from vrik import quat
from vrik.arrays import Points, Quats, Vec3


def alpha(dt_s: float, half_life_s: float) -> float:
    """Share of the way to go in ``dt_s``; 1 without a half-life, 0 without time."""
    if dt_s <= 0.0:
        return 0.0
    return 1.0 if half_life_s <= 0.0 else float(1.0 - 2.0 ** (-dt_s / half_life_s))


def toward(now: Points, goal: ArrayLike, dt_s: float, half_life_s: float) -> Points:
    """Positions (..., 3) after ``dt_s`` of following ``goal``. [m]"""
    now = np.asarray(now, np.float64)
    return np.asarray(now + (np.asarray(goal, np.float64) - now) * alpha(dt_s, half_life_s))


def toward_rotation(now: Quats, goal: Quats, dt_s: float, half_life_s: float) -> Quats:
    """Rotations (..., 4) after ``dt_s`` of following ``goal`` on the short way."""
    return quat.slerp(now, goal, alpha(dt_s, half_life_s))


def toward_direction(now: Vec3, goal: Vec3, dt_s: float, half_life_s: float) -> Vec3:
    """Unit direction (3,) after ``dt_s`` of turning to ``goal`` on the short way."""
    a, b = (np.asarray(v, np.float64) / max(float(np.linalg.norm(v)), 1e-12) for v in (now, goal))
    share, normal = alpha(dt_s, half_life_s), np.cross(a, b)
    sine, cosine = float(np.linalg.norm(normal)), float(a @ b)
    if sine < 1e-12:  # the same, or straight back: there is no short way
        return np.asarray(a if cosine > 0.0 and share < 1.0 else b)
    turn = quat.from_rotvec(normal / sine * np.arctan2(sine, cosine) * share)
    return quat.rotate(turn, a)


class TargetSmoother:
    """Follows a target: its position, rotation and pole, each with the same half-life.

    It counts time, not calls: asked again about the same instant (by a second chain with the same target) it
    answers the same and smooths nothing twice. No solver smooths, so this is the one place that does.

    Args:
        half_life_s: Time in which what is left of a step halves; 0 follows at once. [s]
    """

    def __init__(self, half_life_s: float) -> None:
        if not half_life_s >= 0.0:
            raise ValueError(f"half_life_s is {half_life_s:g}; it cannot be negative")
        self.half_life_s = half_life_s
        self._shown: Target | None = None
        self._time_s = 0.0

    def reset(self) -> None:
        """Take the next target as it is."""
        self._shown = None

    def step(self, target: Target, time_s: float) -> Target:
        """The smoothed target at ``time_s``; what is not smoothed (weights) is passed on. [s]

        A rotation or pole that appears is taken as it is; one that goes is forgotten. ValueError for a
        number that is not finite: it would never be forgotten again.
        """
        if not np.isfinite([*target.point, *target.turn, *target.side, time_s]).all():
            raise ValueError(f"time_s is not finite: {time_s}")
        shown = self._shown
        if shown is None:
            self._shown, self._time_s = target, time_s
            return target
        dt = time_s - self._time_s
        if dt <= 0.0:
            return shown
        life = self.half_life_s
        rotation, pole = target.rotation, target.pole
        if rotation is not None and shown.rotation is not None:
            rotation = toward_rotation(shown.rotation, rotation, dt, life)
        if pole is not None and shown.pole is not None:
            pole = toward_direction(shown.pole, pole, dt, life)
        position = toward(shown.position, target.position, dt, life)
        self._shown = replace(target, position=position, rotation=rotation, pole=pole)
        self._time_s = time_s
        return self._shown
