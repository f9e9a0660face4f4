"""What a prior is told about a frame, as numbers that mean the same for every person and frame rate."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solvers.kernels import features as _kernels
from vrik.arrays import Bools, Floats, Ints, Points
from vrik.frames import ROLES, BodyTargets

FEATURES_VERSION = 2
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
    "head.weight",
    "head.age_s",
    *(
        name
        for ago in (f"{1000.0 * s:.0f}ms_ago" for s in _kernels.PAST_S)
        for name in (
            *_axes(f"{ago}.head"),
            f"{ago}.yaw_sin",
            f"{ago}.yaw_cos",
            *_axes(f"{ago}.left_hand"),
            *_axes(f"{ago}.right_hand"),
        )
    ),
    *(
        name
        for role in ROLES[3:]
        for name in (
            *_axes(f"{role}.from_head"),
            *_axes(f"{role}.forward"),
            *_axes(f"{role}.up"),
            f"{role}.weight",
            f"{role}.age_s",
        )
    ),
)
"""Layout of the feature vector: axes of the head's yaw frame (+X right, +Y up, -Z forward), lengths over
stature, velocities in statures a second, rates in rad/s, ages in seconds up to 10.

``..._ago`` is where head and hands were, seen from the head as it is now, and how far it has turned since.
What a tracker beyond head and hands says is times its weight, so it is zero where there is none."""


def role_columns(role: str) -> Ints:
    """Where the features of one role beyond head and hands are.

    Raises:
        ValueError: If it has none of its own.
    """
    columns = [i for i, name in enumerate(NAMES) if name.startswith(f"{role}.")]
    if role not in ROLES[3:]:
        raise ValueError(f"no tracker features of {role!r}; have: {', '.join(ROLES[3:])}")
    return np.array(columns, np.int64)


def mirror_columns() -> tuple[Ints, Floats]:
    """Columns and signs with which ``f[columns] * signs`` are the features of the mirror image (x to -x)."""
    other = [n.replace("left", "@").replace("right", "left").replace("@", "right") for n in NAMES]
    signs = [-1.0 if n.endswith((".x", ".yaw_rate", ".yaw_sin")) else 1.0 for n in NAMES]
    return np.array([NAMES.index(n) for n in other], np.int64), np.array(signs)


@dataclass(slots=True, eq=False)
class FeatureState:
    """Memory behind velocities and past: last positions (3, 3) [m], velocities (3, 3) [m/s], yaw and its
    rate, and a ring of earlier frames with its clock (see ``solvers.kernels.features.remember``).
    """

    last_position: Points
    velocity: Points
    heading: Floats
    seen: Bools
    ring: Floats
    clock: Floats

    @classmethod
    def fresh(cls) -> FeatureState:
        """Nothing has moved yet."""
        ring = np.zeros((_kernels.RING_ROWS, _kernels.PAST_SIZE))
        return cls(np.zeros((3, 3)), np.zeros((3, 3)), np.zeros(2), np.zeros(3, np.bool_), ring, np.zeros(3))


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
        state.ring,
        state.clock,
        out,
    )
