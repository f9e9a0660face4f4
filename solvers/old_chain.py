"""What every chain solver takes and gives back: checked joints and targets in, a ``ChainSolution`` out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from vrik import quat
from vrik.arrays import V3, Floats, Points, Quats, Vec3

StopReason: TypeAlias = Literal["reached", "out_of_reach", "no_progress", "max_rounds"]
"""Why a solver stopped: the target is met, bones of these lengths cannot meet it, more rounds would gain
nothing (limits, rigid joints), or the rounds were used up."""


@dataclass(frozen=True, slots=True, eq=False)
class ChainSolution:
    """A chain after solving, and how well it meets its target.

    Args:
        joints_world: (n, 3) joint positions, root first. [m]
        rotations_world: (n, 4) canonical world rotations of the segments, or None from a solver that
            works on positions alone.
        reached: Whether the tip is within the tolerance of the target.
        residual_m: Distance from tip to target. [m]
        rounds: Rounds, sweeps or steps used; 0 when none was needed.
        stopped_because: ``reached``, ``out_of_reach``, ``no_progress`` or ``max_rounds``.
    """

    joints_world: Points
    rotations_world: Quats | None
    reached: bool
    residual_m: float
    rounds: int
    stopped_because: StopReason


def bone_lengths(joints: Points) -> Floats:
    """(n, 3) joints to the (n - 1,) lengths of the bones between them. [m]"""
    return np.asarray(np.linalg.norm(np.diff(joints, axis=0), axis=1))


def checked_rows(name: str, rows: ArrayLike, width: int, at_least: int = 2) -> Floats:
    """A float64 copy of an (n, width) array; ValueError for another shape or a number that is not finite."""
    copy = np.array(rows, np.float64, order="C")
    if copy.ndim != 2 or copy.shape[1] != width or len(copy) < at_least:
        raise ValueError(f"{name} has shape {copy.shape}, expected (n, {width}) with n >= {at_least}")
    if not np.isfinite(copy).all():
        raise ValueError(f"{name} holds a number that is not finite")
    return copy


def checked_values(name: str, values: ArrayLike, count: int, *, largest: float = np.inf) -> Floats:
    """A float64 copy of ``count`` numbers from 0 to ``largest``; ValueError otherwise."""
    copy = np.array(values, np.float64, order="C")
    if copy.shape != (count,):
        raise ValueError(f"{name} has shape {copy.shape}, expected ({count},)")
    if not np.isfinite(copy).all() or (copy < 0.0).any() or (copy > largest).any():
        raise ValueError(f"{name} must be finite and from 0 to {largest:g}")
    return copy


def checked_vector(name: str, vector: Vec3) -> V3:
    """A (3,) array as a tuple; ValueError for another shape or a number that is not finite."""
    values = np.asarray(vector, np.float64)
    if values.shape != (3,):
        raise ValueError(f"{name} has shape {values.shape}, expected (3,)")
    if not np.isfinite(values).all():
        raise ValueError(f"{name} is not finite: {values.tolist()}")
    return (float(values[0]), float(values[1]), float(values[2]))


def solution(
    joints: Points,
    rotations: Quats | None,
    lengths: Floats,
    target: V3,
    tolerance_m: float,
    rounds: int,
    max_rounds: int,
) -> ChainSolution:
    """Judge a solved chain: is its tip on ``target``, and could bones this long reach it at all."""
    residual = float(np.linalg.norm(joints[-1] - np.array(target)))
    away = float(np.linalg.norm(joints[0] - np.array(target)))
    total = float(lengths.sum())
    nearest = 2.0 * float(lengths.max()) - total
    reason: StopReason = "max_rounds" if rounds >= max_rounds else "no_progress"
    if residual <= tolerance_m:
        reason = "reached"
    elif away > total or away < nearest:
        reason = "out_of_reach"
    return ChainSolution(joints, rotations, reason == "reached", residual, int(rounds), reason)


@dataclass(frozen=True, slots=True, eq=False)
class TurningChain:
    """What a solver with rotations works on: own copies, checked.

    Args:
        positions: (n, 3) joints in the world. [m]
        rotations: (n, 4) canonical world rotations of the segments; the last row is the effector's.
        offsets: (n, 3) each joint seen from the one before, in the rest pose. [m]
        weights: (n,) how much each joint takes part, 0 to 1.
        lengths: (n - 1,) bone lengths. [m]
    """

    positions: Points
    rotations: Quats
    offsets: Points
    weights: Floats
    lengths: Floats


def turning_chain(
    root_world: Vec3, rotations_world: Quats, offsets: Points, weights: Floats | None
) -> TurningChain:
    """Check and copy the inputs of a solver with rotations; ValueError says which one is wrong."""
    rest = checked_rows("offsets", offsets, 3)
    n = len(rest)
    rotations = quat.normalize(checked_rows("rotations_world", rotations_world, 4))
    if len(rotations) != n:
        raise ValueError(f"rotations_world has {len(rotations)} rows, offsets has {n}")
    shares = checked_values("weights", np.ones(n) if weights is None else weights, n, largest=1.0)
    positions = np.empty((n, 3))
    positions[:] = checked_vector("root_world", root_world)
    for i in range(1, n):
        positions[i] = positions[i - 1] + quat.rotate(rotations[i - 1], rest[i])
    return TurningChain(positions, rotations, rest, shares, bone_lengths(positions))
