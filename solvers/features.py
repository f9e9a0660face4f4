"""What a prior is told about a frame, as numbers that mean the same for every person and frame rate."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solvers.kernels import features as _kernels
from vrik.arrays import Bools, Floats, Points
from vrik.frames import BodyTargets

FEATURES_VERSION = 1
"""Changes whenever the layout or the meaning of a number does; a fitted prior states the one it needs."""


def _axes(name: str) -> tuple[str, ...]:
    return tuple(f"{name}.{axis}" for axis in "xyz")


NAMES: tuple[str, ...] = (
    "dt_s",
    "head.height",
    *_axes("head.forward"),
    *_axes("head.up"),
    *_axes("head.velocity"),
    "head.yaw_rate",
    *(
        name
        for side in ("left_hand", "right_hand")
        for name in (
            *_axes(f"{side}.from_head"),
            *_axes(f"{side}.fingers"),
            *_axes(f"{side}.thumb"),
            *_axes(f"{side}.velocity"),
            f"{side}.weight",
            f"{side}.age_s",
        )
    ),
)
"""Layout of the feature vector: axes of the head's yaw frame (+X right, +Y up, -Z forward), lengths over
stature, velocities in statures a second, rates in rad/s."""


@dataclass(slots=True, eq=False)
class FeatureState:
    """Memory behind the velocities: last positions (3, 3) [m], velocities (3, 3) [m/s], yaw and its rate."""

    last_position: Points
    velocity: Points
    heading: Floats
    seen: Bools

    @classmethod
    def fresh(cls) -> FeatureState:
        """Nothing has moved yet."""
        return cls(np.zeros((3, 3)), np.zeros((3, 3)), np.zeros(2), np.zeros(3, np.bool_))


def features(
    targets: BodyTargets, stature_m: float, floor_y: float, dt_s: float, state: FeatureState, out: Floats
) -> None:
    """Write the features of one frame into ``out`` (len(NAMES),) and advance ``state``.

    Args:
        targets: Bone poses behind the devices.
        stature_m: The person's height. [m]
        floor_y: Height of the floor. [m]
        dt_s: Time since the frame before; 0 for the first and for repeated time stamps. [s]
    """
    _kernels.features(
        targets.position,
        targets.rotation,
        targets.position_weight,
        targets.age_s,
        stature_m,
        floor_y,
        dt_s,
        state.last_position,
        state.velocity,
        state.heading,
        state.seen,
        out,
    )
