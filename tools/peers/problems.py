"""Problems that every library is given: chains, start poses, targets that are reachable by construction.

Bones lie along +Y at rest. A ball joint turns about z, then x (no twist, which moves no tip); a hinge about
its own axis. Every target is where the tip is in some pose within the limits; that pose is kept beside it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from solvers.chain import Chain
from solvers.limits import Hinge
from vrik import quat
from vrik.arrays import Floats, Points, Quats

RATE_HZ = 90.0
PATH_HZ = 0.5
"""How often joints swing to and fro on the warm path."""

BALL_AXES = ((0.0, 0.0, 1.0), (1.0, 0.0, 0.0))


@dataclass(frozen=True, slots=True, eq=False)
class Targets:
    """n places for the tip.

    Args:
        positions: (n, 3). [m]
        rotations: (n, 4) world rotations of the last joint, wxyz.
        answers: (n, m, k) angles of a pose that meets them; k is 2 for balls (z, x), 1 for hinges. [rad]
    """

    positions: Points
    rotations: Quats
    answers: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """A chain of m joints, where it starts, and where its tip should go.

    Args:
        name: For the table.
        title: The same in words.
        offsets: (m + 1, 3) as in :class:`solvers.chain.Chain`. [m]
        hinges: Axis of each joint when all are hinges; empty when all are balls.
        limits: (m, 2) smallest and largest angle of the hinges; empty for balls. [rad]
        start: (m, k) angles of the start pose. [rad]
        oriented: Whether the rotations of the targets are asked for, too.
        cold: Targets to be met from the start pose.
        warm: Targets along a path that begins in the start pose, each to be met from the last solution.
    """

    name: str
    title: str
    offsets: Points
    hinges: Points
    limits: Floats
    start: Floats
    oriented: bool
    cold: Targets
    warm: Targets


def make_problems(count: int, seed: int = 4) -> list[Problem]:
    """All problems, with ``count`` targets cold and as many along the path."""
    random = np.random.default_rng(seed)
    arm = _balls("arm", "3 ball joints", [0.30, 0.26, 0.08], 0.4, 1.5, count, random)
    tail = _balls("chain10", "10 ball joints", [0.10] * 10, 0.15, 0.8, count, random)
    robot = _robot(count, random)
    return [arm, tail, robot, replace(robot, name="robot7_turn", oriented=True)]


def chain_of(offsets: Points, hinges: Points, limits: Floats) -> Chain:
    """As vrik's solvers take it; the arrays are those of a :class:`Problem`."""
    if not len(hinges):
        return Chain.build(offsets)
    axes = [(float(x), float(y), float(z)) for x, y, z in hinges]
    rows = zip(axes, limits.tolist(), strict=True)
    return Chain.build(offsets, limits=[Hinge(axis, low, high) for axis, (low, high) in rows])


def world_rotations(hinges: Points, angles: Floats) -> Quats:
    """(..., m, 4) world rotations of the joints for angles (..., m, k); no hinges: ball joints."""
    found = np.empty((*angles.shape[:-1], 4))
    parent = quat.identity(*angles.shape[:-2])
    for i in range(angles.shape[-2]):
        for axis, angle in zip(_axes(hinges, i), np.moveaxis(angles[..., i, :], -1, 0), strict=True):
            parent = quat.multiply(parent, quat.from_rotvec(angle[..., None] * np.asarray(axis)))
        found[..., i, :] = parent
    return found


def _axes(hinges: Points, i: int) -> Sequence[Sequence[float]]:
    return [hinges[i].tolist()] if len(hinges) else BALL_AXES


def _balls(
    name: str,
    title: str,
    lengths: list[float],
    bend: float,
    widest: float,
    count: int,
    random: np.random.Generator,
) -> Problem:
    m = len(lengths)
    start = np.tile([bend, 0.0], (m, 1))
    poses = random.uniform(-widest, widest, (count, m, 2))
    path = _swinging(start, 0.3 if m < 5 else 0.12, count, random)
    return _filled(name, title, lengths, np.empty((0, 3)), np.empty((0, 2)), start, poses, path)


def _robot(count: int, random: np.random.Generator) -> Problem:
    """Seven hinges, turn and bend by turns, with the lengths and ranges of common seven-axis arms."""
    lengths = [0.19, 0.21, 0.19, 0.21, 0.19, 0.08, 0.05]
    turn, bend = [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]
    hinges = np.array([turn, bend, turn, bend, turn, bend, turn])
    high = np.radians([170.0, 120.0, 170.0, 120.0, 170.0, 120.0, 175.0])
    limits = np.stack([-high, high], axis=1)
    start = np.array([0.0, 0.4, 0.0, 0.8, 0.0, 0.6, 0.0])[:, None]
    poses = random.uniform(-high, high, (count, 7))[..., None]
    path = _swinging(start, 0.3, count, random)
    return _filled("robot7", "7 hinges with limits", lengths, hinges, limits, start, poses, path)


def _swinging(start: Floats, size: float, count: int, random: np.random.Generator) -> Floats:
    """(count, m, k) angles at ``RATE_HZ`` that begin at ``start`` and swing by at most twice ``size``."""
    seconds = np.arange(count)[:, None, None] / RATE_HZ
    phase = random.uniform(-math.pi, math.pi, start.shape)
    speed = 2.0 * math.pi * PATH_HZ * random.uniform(0.5, 1.0, start.shape)
    return np.asarray(start + size * (np.sin(speed * seconds + phase) - np.sin(phase)))


def _filled(
    name: str,
    title: str,
    lengths: list[float],
    hinges: Points,
    limits: Floats,
    start: Floats,
    poses: Floats,
    path: Floats,
) -> Problem:
    """The problem with its targets placed by forward kinematics of ``poses`` and ``path``."""
    offsets = np.zeros((len(lengths) + 1, 3))
    offsets[1:, 1] = lengths
    none = Targets(np.empty((0, 3)), np.empty((0, 4)), poses[:0])
    bare = Problem(name, title, offsets, hinges, limits, start, False, none, none)

    def placed(angles: Floats) -> Targets:
        turns = world_rotations(hinges, angles)
        tips = quat.rotate(turns, offsets[1:]).sum(axis=-2)
        return Targets(tips, np.ascontiguousarray(turns[..., -1, :]), angles)

    return replace(bare, cold=placed(poses), warm=placed(path))
