"""Blending: between an animation and its solution, from one solver to another, and of several targets.

Poses are blended joint by joint, as turns seen from the parent, so bones keep their lengths. A weighted mean
of positions would shorten them: half way between an arm out and an arm up the hand is 30 % too near.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from solvers.chain import Chain, ChainPose, Target, check_fits, checked_rows
from vrik import quat
from vrik.arrays import Floats, Points, Quat, Quats, Vec3

ROTATION_LENGTH_M = 0.3
"""A radian between rotations counts as much as this distance between points (as in ``ChainConfig``). [m]"""

NEARLY_FREE = 1e-6
"""How much the rotation that is there counts beside the targets: enough to decide what they leave open."""


def blend(chain: Chain, given: ChainPose, solved: ChainPose, weight: float) -> ChainPose:
    """A pose between a given one (an animation, say) and a solved one.

    Args:
        chain: The chain of both.
        given: What weight 0 is, exactly.
        solved: What weight 1 is, exactly.
        weight: 0 to 1.

    Raises:
        ValueError: If the weight is not from 0 to 1, or a pose has another number of joints.
    """
    if not 0.0 <= weight <= 1.0:
        raise ValueError(f"weight is {weight:g}; it must be from 0 to 1")
    check_fits(chain, given)
    check_fits(chain, solved)
    if weight == 0.0:
        return given
    if weight == 1.0:
        return solved
    locals_ = quat.slerp(chain.locals_of(given), chain.locals_of(solved), weight)
    base = quat.slerp(given.base_world, solved.base_world, weight)
    root = given.root_world + weight * (solved.root_world - given.root_world)
    return _posed(root, base, locals_)


class CrossFade:
    """Goes over from one solver, or one target, to another without a jump.

    At a switch it remembers how far the pose that was shown is from the new one; that difference is what
    fades out, while the new one moves as it likes. Switching in the middle of a fade is no jump either.

    Args:
        chain: The chain.
        duration_s: Time until only the new one is left. [s]
    """

    def __init__(self, chain: Chain, duration_s: float) -> None:
        if not duration_s > 0.0:
            raise ValueError(f"duration_s is {duration_s:g}; it must be above 0")
        self.chain, self.duration_s = chain, duration_s
        self._shown: ChainPose | None = None
        self._left: tuple[Vec3, Quat, Quats] | None = None
        self._passed_s = 0.0
        self._switch = False

    @property
    def weight(self) -> float:
        """How much of the new one is shown: 0 at the switch, 1 when the fade is over."""
        t = 1.0 if self._left is None else min(self._passed_s / self.duration_s, 1.0)
        return 0.0 if self._switch else t * t * (3.0 - 2.0 * t)

    def switch(self) -> None:
        """From the next step on, poses come from somewhere else."""
        self._switch = self._shown is not None

    def step(self, pose: ChainPose, dt_s: float) -> ChainPose:
        """What to show for ``pose``, ``dt_s`` after the last step; at a switch, what was shown last."""
        check_fits(self.chain, pose)
        locals_ = self.chain.locals_of(pose)
        if self._switch and self._shown is not None:
            self._left = (
                self._shown.root_world - pose.root_world,
                quat.multiply(quat.conjugate(pose.base_world), self._shown.base_world),
                quat.multiply(quat.conjugate(locals_), self.chain.locals_of(self._shown)),
            )
            self._passed_s, self._switch = 0.0, False
        else:
            self._passed_s += dt_s
        weight = self.weight
        if self._left is None or weight >= 1.0:
            self._left, self._shown = None, pose
            return pose
        root, base, left = self._left
        part = quat.slerp(quat.identity(), base, 1.0 - weight)
        self._shown = _posed(
            pose.root_world + (1.0 - weight) * root,
            quat.normalize(quat.multiply(pose.base_world, part)),
            quat.multiply(locals_, quat.slerp(quat.identity(len(left)), left, 1.0 - weight)),
        )
        return self._shown


def combined(
    targets: Sequence[Target], *, offsets: ArrayLike | None = None, near: Quat | None = None
) -> Target:
    """One target for several on the same effector, each with its weight.

    Args:
        targets: At least one with a weight above zero.
        offsets: (n, 3) which point of the effector each is for, seen from the tip in the last joint's frame;
            all the tip when left out. With offsets the effector is laid onto the targets as a rigid body. [m]
        near: (4,) the effector's rotation now; it decides what the targets leave open.

    Returns:
        Without offsets the mean position, mean rotation and mean pole by weight. With offsets the rotation
        that brings the points nearest to their targets, and where the tip then is. The rotation is None when
        no target has one and no points are given.

    Raises:
        ValueError: If no weight is above 0, shapes disagree, or points off the tip leave the rotation open.

    Source:
        Markley et al., "Averaging quaternions" (2007), for the mean of rotations; Horn, "Closed-form solution
        of absolute orientation using unit quaternions", J. Opt. Soc. Am. A 4 (1987), for points. One matrix
        holds both, as in Davenport's q-method.
    """
    weights = np.array([target.weight for target in targets], np.float64)
    if not len(weights) or not np.isfinite(weights).all() or (weights < 0.0).any() or weights.sum() <= 0.0:
        raise ValueError("combined needs at least one target with a weight above 0, and none below")
    goals = checked_rows("positions", [target.point for target in targets], 3, at_least=1)
    points = np.zeros_like(goals) if offsets is None else checked_rows("offsets", offsets, 3, at_least=1)
    if len(points) != len(goals):
        raise ValueError(f"{len(points)} offsets for {len(goals)} targets")
    share = weights / weights.sum()
    goal_mean, point_mean = share @ goals, share @ points
    attitude = _pulls(share, goals - goal_mean, points - point_mean)
    turned = 0.0
    for target, part in zip(targets, share, strict=True):
        if target.turn_weight > 0.0:
            q = np.array(target.turn)
            turned += target.turn_weight * part
            attitude += ROTATION_LENGTH_M**2 * target.turn_weight * part * np.outer(q, q)
    if near is not None:
        now = quat.normalize(np.asarray(near, np.float64))
        attitude += NEARLY_FREE * ROTATION_LENGTH_M**2 * np.outer(now, now)
    sizes, axes = np.linalg.eigh(attitude)
    known = sizes[-1] - sizes[-2] > 1e-9 * ROTATION_LENGTH_M**2 * NEARLY_FREE
    wanted = turned > 0.0 or (offsets is not None and near is not None) or np.ptp(points, axis=0).max() > 1e-9
    rotation = axes[:, -1] if known and wanted else None
    position = goal_mean
    if point_mean.any():
        if rotation is None:
            raise ValueError(
                "targets off the tip leave the effector's rotation open: give near, its rotation now"
            )
        position = goal_mean - quat.rotate(rotation, point_mean)
    return Target(
        position,
        rotation,
        float(weights.sum()),
        max(turned, float(rotation is not None)),
        _pole(targets, share),
    )


def _posed(root: Vec3, base: Quat, locals_: Quats) -> ChainPose:
    rotations, parent = np.empty_like(locals_), base
    for i, local in enumerate(locals_):
        parent = rotations[i] = quat.normalize(quat.multiply(parent, local))
    return ChainPose(np.asarray(root), rotations, base)


def _pulls(share: Floats, goals: Points, points: Points) -> Floats:
    """(4, 4) Horn's matrix: the largest eigenvector turns ``points`` nearest to ``goals``. [m^2]"""
    s = (points * share[:, None]).T @ goals
    (xx, xy, xz), (yx, yy, yz), (zx, zy, zz) = s
    return np.array(
        [
            [xx + yy + zz, yz - zy, zx - xz, xy - yx],
            [yz - zy, xx - yy - zz, xy + yx, zx + xz],
            [zx - xz, xy + yx, yy - xx - zz, yz + zy],
            [xy - yx, zx + xz, yz + zy, zz - xx - yy],
        ]
    )


def _pole(targets: Sequence[Target], share: Floats) -> Vec3 | None:
    poles = [
        part * np.asarray(target.pole, np.float64) / max(float(np.linalg.norm(target.pole)), 1e-12)
        for target, part in zip(targets, share, strict=True)
        if target.pole is not None
    ]
    mean = np.sum(poles, axis=0) if poles else np.zeros(3)
    size = float(np.linalg.norm(mean))
    return np.asarray(mean / size) if size > 1e-9 else None
