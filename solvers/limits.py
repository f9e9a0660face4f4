"""How far joints may turn, as values: a hinge, or a swing inside an ellipse with a range of twist.

All angles are seen from the parent joint, in the canonical frame of the rest pose (``vrik.skeleton``), where
a joint at rest has the identity. Compiled solvers read them as rows of numbers (:func:`pack_limits`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from solvers.kernels import limits as kernels
from vrik.arrays import Q4, V3, Floats, Quat

Wxyz: TypeAlias = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class Hinge:
    """A joint with one axis: elbow, knee, each joint of a robot's arm.

    Args:
        axis: Direction of the axis in the rest pose; any length but zero.
        low_rad: Smallest angle, positive by the right-hand rule about ``axis``. [rad]
        high_rad: Largest angle. [rad]
        soft_rad: In this zone before either end a turn outwards loses speed. [rad]
        center: Turn from the rest pose in which the angle is zero, (w, x, y, z).
    """

    axis: V3
    low_rad: float = -math.pi
    high_rad: float = math.pi
    soft_rad: float = 0.0
    center: Wxyz = (1.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class SwingTwist:
    """A ball joint: its bone stays inside an elliptic cone and turns about itself within a range.

    Args:
        axis: Direction of the bone in the rest pose; the twist is about it. Any length but zero.
        swing_rad: Largest swing about ``side`` and about ``axis x side``; pi or more is no limit. [rad]
        low_twist_rad: Smallest twist. [rad]
        high_twist_rad: Largest twist. [rad]
        side: Axis of the first swing; what is along ``axis`` is taken out. Any right angle when left out.
        soft_rad: In this zone before a stop a turn outwards loses speed. [rad]
        center: Turn from the rest pose about which the cone lies, (w, x, y, z).
    """

    axis: V3
    swing_rad: tuple[float, float] = (math.pi, math.pi)
    low_twist_rad: float = -math.pi
    high_twist_rad: float = math.pi
    side: V3 | None = None
    soft_rad: float = 0.0
    center: Wxyz = (1.0, 0.0, 0.0, 0.0)


Limit: TypeAlias = Hinge | SwingTwist | None
"""None: the joint turns freely."""


def pack_limits(limits: Sequence[Limit]) -> Floats:
    """(n, LIMIT_WIDTH) rows for the compiled solvers.

    Raises:
        ValueError: If an axis has no length, a range is upside down, or a number is not finite.
    """
    rows = np.zeros((len(limits), kernels.LIMIT_WIDTH))
    for i, limit in enumerate(limits):
        if limit is not None:
            rows[i] = _row(limit)
    return rows


def clamp_rotation(local: Quat, limit: Limit) -> Quat:
    """The parent-relative rotation (4,) that ``limit`` allows and that keeps most of ``local``.

    ValueError when ``local`` is no rotation.
    """
    return np.array(kernels.clamp(_four(local), pack_limits([limit]), 0))


def limit_excess(local: Quat, limit: Limit) -> float:
    """How far a parent-relative rotation (4,) is outside of ``limit``; 0 inside. [rad]

    ValueError when ``local`` is no rotation.
    """
    return float(kernels.excess(_four(local), pack_limits([limit]), 0))


def _row(limit: Hinge | SwingTwist) -> Floats:
    row = np.zeros(kernels.LIMIT_WIDTH)
    axis = _unit("axis", limit.axis)
    row[kernels.AXIS : kernels.AXIS + 3] = axis
    row[kernels.CENTER : kernels.CENTER + 4] = _four(limit.center, "center")
    row[kernels.SOFT] = limit.soft_rad
    if isinstance(limit, Hinge):
        row[kernels.KIND] = kernels.HINGE
        low, high = limit.low_rad, limit.high_rad
        row[kernels.SIDE : kernels.SIDE + 3] = _side_of(axis, None)
    else:
        row[kernels.KIND] = kernels.CONE
        low, high = limit.low_twist_rad, limit.high_twist_rad
        row[kernels.SIDE : kernels.SIDE + 3] = _side_of(axis, limit.side)
        row[kernels.SWING] = min(limit.swing_rad[0], math.pi)
        row[kernels.OTHER_SWING] = min(limit.swing_rad[1], math.pi)
    row[kernels.LOW], row[kernels.HIGH] = low, high
    if not np.isfinite(row).all() or low > high or row[kernels.SOFT :].min() < 0.0 or min(row[10:12]) < 0.0:
        raise ValueError(f"a range is upside down, negative or not finite: {limit}")
    return row


def _four(rotation: ArrayLike, name: str = "local") -> Q4:
    q = np.asarray(rotation, np.float64)
    if q.shape != (4,) or not np.isfinite(q).all() or np.linalg.norm(q) < 1e-9:
        raise ValueError(f"{name} is no rotation: {rotation!r}")
    w, x, y, z = (float(v) for v in q / np.linalg.norm(q))
    return (w, x, y, z)


def _unit(name: str, vector: V3) -> Floats:
    v = np.asarray(vector, np.float64)
    if v.shape != (3,) or not np.isfinite(v).all() or np.linalg.norm(v) < 1e-9:
        raise ValueError(f"{name} has no direction: {vector}")
    return np.asarray(v / np.linalg.norm(v))


def _side_of(axis: Floats, side: V3 | None) -> Floats:
    """Unit vector at a right angle to ``axis``: ``side`` without what is along it, or any."""
    wanted = np.eye(3)[np.argmin(np.abs(axis))] if side is None else _unit("side", side)
    across = wanted - axis * (wanted @ axis)
    if np.linalg.norm(across) < 1e-6:
        raise ValueError(f"side lies along the axis: {side}")
    return np.asarray(across / np.linalg.norm(across))
