"""What every chain solver takes and gives back.

A :class:`Chain` is what does not change: lengths, weights, limits. A :class:`ChainPose` is how it lies before
solving (the warm start: usually the last solution), a :class:`Target` what its tip should meet, and a
:class:`ChainSolution` what came out. Joint i turns everything after it; point i + 1 hangs on joint i, and the
last point is the tip: ``points[i + 1] = points[i] + rotations[i] * offsets[i + 1]``.

Rotations are canonical: seen from the world, and the identity in the rest pose. ``solvers.rig`` makes chains
out of skeletons whose rest rotations are anything.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from solvers.config import ChainConfig
from solvers.kernels.chain import place
from solvers.kernels.limits import LIMIT_WIDTH
from solvers.limits import Limit, pack_limits
from vrik import quat
from vrik.arrays import Q4, V3, Floats, Points, Quat, Quats, Vec3

StopReason: TypeAlias = Literal["reached", "out_of_reach", "no_progress", "max_rounds"]
"""Why a solver stopped: the target is met, bones of these lengths cannot meet it, more rounds would gain
nothing (limits, rigid joints), or the rounds were used up."""

NO_PULL: V3 = (0.0, 0.0, 0.0)
"""A pole that says nothing."""


class Constraint(Protocol):
    """A rule of a user's own for one joint, applied between rounds."""

    def __call__(self, local: Quat) -> Quat:
        """The nearest parent-relative rotation (4,) that is allowed."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Chain:
    """m joints in a row, and a tip. Make it with :meth:`build`.

    Args:
        offsets: (m + 1, 3) each point seen from the joint before it, in the rest pose; row 0 is not used. The
            last row is the tip: an effector offset (palm, grip, finger tip), or zero. [m]
        weights: (m,) how much each joint takes part: 0 is rigid, 1 free.
        limits: (m, LIMIT_WIDTH) packed :data:`solvers.limits.Limit`.
        constraints: A user's own rules, one for each joint or None; empty when there are none.
    """

    offsets: Points
    weights: Floats
    limits: Floats
    constraints: tuple[Constraint | None, ...] = ()

    @classmethod
    def build(
        cls,
        offsets: ArrayLike,
        *,
        weights: ArrayLike | None = None,
        limits: Sequence[Limit] | Floats | None = None,
        constraints: Sequence[Constraint | None] = (),
    ) -> Chain:
        """Check and copy.

        Raises:
            ValueError: If a shape is wrong, a number is not finite, a weight is not from 0 to 1, or a limit
                is upside down.
        """
        rest = checked_rows("offsets", offsets, 3)
        m = len(rest) - 1
        shares = checked_values("weights", np.ones(m) if weights is None else weights, m, largest=1.0)
        if limits is None:
            rows = pack_limits([None] * m)
        elif isinstance(limits, np.ndarray):
            rows = checked_rows("limits", limits, LIMIT_WIDTH, at_least=1)
        else:
            rows = pack_limits(limits)
        if rows.shape[0] != m:
            raise ValueError(f"{rows.shape[0]} limits for {m} joints")
        if constraints and len(constraints) != m:
            raise ValueError(f"{len(constraints)} constraints for {m} joints")
        return cls(rest, shares, rows, tuple(constraints))

    @classmethod
    def from_points(
        cls, points: ArrayLike, *, weights: ArrayLike | None = None, limits: Sequence[Limit] | None = None
    ) -> Chain:
        """From (m + 1, 3) points of the rest pose, root first, tip last. [m]"""
        rest = checked_rows("points", points, 3)
        return cls.build(np.diff(rest, axis=0, prepend=rest[:1]), weights=weights, limits=limits)

    @property
    def joint_count(self) -> int:
        """m."""
        return len(self.weights)

    @property
    def lengths(self) -> Floats:
        """(m,) bone lengths. [m]"""
        return np.asarray(np.linalg.norm(self.offsets[1:], axis=1))

    def rest(self, root_world: ArrayLike = (0.0, 0.0, 0.0), base_world: ArrayLike | None = None) -> ChainPose:
        """The rest pose with its first joint at ``root_world``, turned by ``base_world``."""
        base = quat.identity() if base_world is None else np.asarray(base_world, np.float64)
        return ChainPose.build(root_world, np.tile(base, (self.joint_count, 1)), base)

    def points(self, pose: ChainPose) -> Points:
        """(m + 1, 3) where joints and tip are in a pose. [m]"""
        found = np.empty_like(self.offsets)
        found[0] = pose.root_world
        place(found, np.array(pose.rotations_world, np.float64, order="C"), self.offsets)
        return found

    def locals_of(self, pose: ChainPose) -> Quats:
        """(m, 4) parent-relative rotations of a pose."""
        parents = np.concatenate([pose.base_world[None], pose.rotations_world[:-1]])
        return quat.multiply(quat.conjugate(parents), pose.rotations_world)


@dataclass(frozen=True, slots=True, eq=False)
class ChainPose:
    """How a chain lies. Make it with :meth:`build`, :meth:`Chain.rest` or :attr:`ChainSolution.pose`.

    Args:
        root_world: (3,) the first joint. [m]
        rotations_world: (m, 4) canonical world rotations of the joints.
        base_world: (4,) world rotation of what the first joint hangs on: its limits are seen from there.
    """

    root_world: Vec3
    rotations_world: Quats
    base_world: Quat

    @classmethod
    def build(
        cls, root_world: ArrayLike, rotations_world: ArrayLike, base_world: ArrayLike | None = None
    ) -> ChainPose:
        """Check and copy; ``base_world`` is the identity when left out. ValueError for wrong shapes."""
        root = np.array(checked_vector("root_world", root_world))
        rotations = quat.normalize(checked_rows("rotations_world", rotations_world, 4, at_least=1))
        base = quat.identity() if base_world is None else np.asarray(base_world, np.float64)
        return cls(root, rotations, quat.normalize(checked_rows("base_world", base[None], 4, at_least=1))[0])


@dataclass(frozen=True, slots=True, eq=False)
class Target:
    """What the tip should meet.

    Args:
        position: (3,) where. [m]
        rotation: (4,) world rotation of the last joint, or None: no target. The identity is a target.
        weight: How much this target counts beside others on the same tip (``solvers.blend.combined``).
        rotation_weight: How much the square of its angle counts beside that of its distance.
        pole: (3,) world direction to the side of which the chain bends; None: it keeps the bend it has.
    """

    position: Vec3
    rotation: Quat | None = None
    weight: float = 1.0
    rotation_weight: float = 1.0
    pole: Vec3 | None = None

    @property
    def point(self) -> V3:
        """The position as kernels take it; ValueError when it is none."""
        return checked_vector("position", self.position)

    @property
    def turn(self) -> Q4:
        """The rotation as kernels take it, the identity when there is none (see :attr:`turn_weight`)."""
        if self.rotation is None:
            return (1.0, 0.0, 0.0, 0.0)
        rows = checked_rows("rotation", np.asarray(self.rotation, np.float64)[None], 4, at_least=1)
        w, x, y, z = quat.normalize(rows)[0]
        return (float(w), float(x), float(y), float(z))

    @property
    def turn_weight(self) -> float:
        """``rotation_weight``, or 0 without a rotation; ValueError when it is negative or not finite."""
        return 0.0 if self.rotation is None else checked_weight("rotation_weight", self.rotation_weight)

    @property
    def side(self) -> V3:
        """The pole as kernels take it: ``NO_PULL`` without one."""
        return NO_PULL if self.pole is None else checked_vector("pole", self.pole)


@dataclass(frozen=True, slots=True, eq=False)
class ChainSolution:
    """A chain after solving, and how well it meets its target.

    Args:
        points_world: (m + 1, 3) joints and tip. [m]
        pose: Rotations; the warm start of the next frame.
        reached: Whether position and, if asked for, rotation are within the tolerances.
        residual_m: Distance from tip to target. [m]
        residual_rad: Angle from the last joint's rotation to the target's; 0 when none is asked for. [rad]
        rounds: Rounds, sweeps or steps used; 0 when none was needed.
        stopped_because: ``reached``, ``out_of_reach``, ``no_progress`` or ``max_rounds``.
        dls_share: Part that damped least squares has in it, 0 to 1, where it takes over near a singularity.
        stretch: Factor by which the bones of ``points_world`` are longer than the chain's (two_bone only).
    """

    points_world: Points
    pose: ChainPose
    reached: bool
    residual_m: float
    residual_rad: float
    rounds: int
    stopped_because: StopReason
    dls_share: float = 0.0
    stretch: float = 1.0


class ChainSolver(Protocol):
    """What ``register_solver`` takes: a function with these arguments."""

    def __call__(self, chain: Chain, start: ChainPose, target: Target, config: ChainConfig) -> ChainSolution:
        """Solve ``chain`` from ``start`` towards ``target``."""
        ...


def judged(
    chain: Chain,
    start: ChainPose,
    rotations_world: Quats,
    target: Target,
    config: ChainConfig,
    rounds: int,
    dls_share: float = 0.0,
) -> ChainSolution:
    """Judge solved rotations: is the tip on the target, and could bones of these lengths reach it at all."""
    pose = replace(start, rotations_world=rotations_world)
    points = chain.points(pose)
    goal = target.point
    residual = math.dist(points[-1], goal)
    turned = 0.0
    if target.turn_weight > 0.0:
        turned = float(quat.angle(rotations_world[-1], np.array(target.turn)))
    away = math.dist(points[0], goal)
    lengths = chain.lengths
    total = float(lengths.sum())
    reason: StopReason = "max_rounds" if rounds >= config.max_rounds else "no_progress"
    if residual <= config.tolerance_m and turned <= config.tolerance_rad:
        reason = "reached"
    elif away > total or away < 2.0 * float(lengths.max()) - total:
        reason = "out_of_reach"
    return ChainSolution(points, pose, reason == "reached", residual, turned, int(rounds), reason, dls_share)


def check_fits(chain: Chain, start: ChainPose) -> None:
    """ValueError when a pose has another number of joints than its chain."""
    if len(start.rotations_world) != chain.joint_count:
        raise ValueError(f"the pose has {len(start.rotations_world)} joints, the chain {chain.joint_count}")


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


def checked_weight(name: str, weight: float) -> float:
    """A weight as a float; ValueError when it is negative or not finite."""
    if not 0.0 <= weight < math.inf:
        raise ValueError(f"{name} is {weight}; it must be finite and not negative")
    return float(weight)


def checked_vector(name: str, vector: ArrayLike) -> V3:
    """A (3,) array as a tuple; ValueError for another shape or a number that is not finite."""
    values = np.asarray(vector, np.float64)
    if values.shape != (3,):
        raise ValueError(f"{name} has shape {values.shape}, expected (3,)")
    if not np.isfinite(values).all():
        raise ValueError(f"{name} is not finite: {values.tolist()}")
    return (float(values[0]), float(values[1]), float(values[2]))
