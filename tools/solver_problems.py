"""Chains, and targets that some pose within their limits reaches: what the solvers are measured on.

Limbs have the lengths of an average person and the limits of ``solvers.anatomy``; its soft zones, which hold
joints back on purpose, are off unless they are what is measured. A target is where forward
kinematics puts the tip, and how it turns the last joint, in a pose drawn from all that the limits allow.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from solvers.anatomy import limits_of
from solvers.chain import Chain
from solvers.kernels.limits import (
    AXIS,
    CENTER,
    FREE,
    HIGH,
    HINGE,
    KIND,
    LOW,
    OTHER_SWING,
    SIDE,
    SOFT,
    SWING,
    clamp,
)
from solvers.limits import Hinge, SwingTwist, pack_limits
from vrik import quat
from vrik.arrays import Floats, Points, Quats
from vrik.body import BodyModel
from vrik.jit import kernel
from vrik.kernels.quat import load4, qunit, store4
from vrik.skeleton import BONE

WARM_RAD = 0.1
"""A warm start is the answer with each joint turned by up to this: 500 degrees/s at 90 Hz. [rad]"""

GENERAL = ("fabrik", "ccd", "dls", "svd", "transpose")
"""Solvers that take any chain."""

X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """A chain and what is asked of its tip.

    Args:
        name: Short.
        title: For people.
        chain: m joints, its root at the origin, hung on the identity.
        turned: Whether the rotation of the last joint is asked for, too.
        solvers: Those that fit.
    """

    name: str
    title: str
    chain: Chain
    turned: bool
    solvers: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """n targets for one chain, and where it starts.

    Args:
        starts: (n, m, 4) world rotations before solving.
        answers: (n, m, 4) world rotations of a pose within the limits that meets the targets.
        targets: (n, 3) for the tip. [m]
        turns: (n, 4) for the last joint.
    """

    starts: Quats
    answers: Quats
    targets: Points
    turns: Quats


@cache
def cases(soft: bool = False) -> dict[str, Case]:
    """All that reach is measured on, by name; ``soft``: with the soft zones of the limits."""
    wrist, palm, toes = limb("left", "Arm", 2), limb("left", "Arm", 3), limb("left", "Leg", 3)
    with_closed_form = (*GENERAL, "two_bone")
    found = [
        Case("wrist", "arm to the wrist", wrist, False, with_closed_form),
        Case("palm", "arm to the palm", palm, False, GENERAL),
        Case("palm+", "palm and rotation", palm, True, with_closed_form),
        Case("hinged+", "palm and rotation, hinge elbow", hinged_arm(), True, with_closed_form),
        Case("toes", "leg to the toes", toes, False, GENERAL),
        Case("toes+", "toes and rotation", toes, True, with_closed_form),
        Case("eyes", "spine to the eyes", spine(), False, GENERAL),
        Case("eyes+", "eyes and rotation", spine(), True, GENERAL),
        Case("tail", "tail of 10 bones", tail(), False, GENERAL),
        Case("robot+", "six-axis arm, place and rotation", robot_arm(6), True, GENERAL),
    ]
    return {case.name: case if soft else replace(case, chain=hard(case.chain)) for case in found}


def hard(chain: Chain) -> Chain:
    """The same chain without soft zones."""
    limits = chain.limits.copy()
    limits[:, SOFT] = 0.0
    return replace(chain, limits=limits)


def limb(side: str, part: str, joints: int, free: bool = False) -> Chain:
    """An arm to wrist (2 joints) or palm (3), a leg to ankle or toes; ``free``: without limits."""
    tpose = BodyModel.average(1.75).tpose
    ends = {"Arm": ("UpperArm", "LowerArm", "Hand"), "Leg": ("UpperLeg", "LowerLeg", "Foot")}[part]
    bones = [side + end for end in ends]
    points = [tpose[BONE[bone]] for bone in bones]
    outwards = np.array([-0.08 if side == "left" else 0.08, 0.0, 0.0])
    points.append(points[2] + outwards if part == "Arm" else tpose[BONE[side + "Toes"]])
    limits = None if free else limits_of(bones[:joints])
    return Chain.from_points(points[: joints + 1], limits=limits)


def hinged_arm() -> Chain:
    """The arm to the palm, its elbow a hinge with one axis, which the limits of people are not."""
    loose = limb("left", "Arm", 3)
    elbow = pack_limits([Hinge(Y, math.radians(-145.0), 0.0)])
    return Chain.build(loose.offsets, limits=np.concatenate([loose.limits[:1], elbow, loose.limits[2:]]))


def spine() -> Chain:
    """Five joints from the lowest of the spine to the head, the tip between the eyes."""
    bones = ("spine", "chest", "upperChest", "neck", "head")
    tpose = BodyModel.average(1.75).tpose
    points = [tpose[BONE[bone]] for bone in bones]
    points.append(points[-1] + np.array([0.0, 0.07, -0.09]))
    return Chain.from_points(points, limits=limits_of(bones))


def tail(free: bool = False) -> Chain:
    """Ten bones of 10 cm; each swings by up to 30 degrees and twists by up to 10."""
    cone = SwingTwist(Z, (math.radians(30.0),) * 2, math.radians(-10.0), math.radians(10.0))
    points = [(0.0, 0.0, 0.1 * i) for i in range(11)]
    return Chain.from_points(points, limits=None if free else [cone] * 10)


def robot_arm(axes: int) -> Chain:
    """Six or seven hinges with the ranges of industrial arms; the last three cross in a wrist."""
    turn, bend = math.radians(175.0), math.radians(120.0)
    lengths = {6: (0.30, 0.40, 0.20, 0.15, 0.08, 0.10), 7: (0.19, 0.21, 0.19, 0.21, 0.19, 0.08, 0.05)}[axes]
    kinds = {6: "tbbtbt", 7: "tbtbtbt"}[axes]
    hinges = [Hinge(Y, -turn, turn) if kind == "t" else Hinge(Z, -bend, bend) for kind in kinds]
    return Chain.build([(0.0, 0.0, 0.0), *((0.0, length, 0.0) for length in lengths)], limits=hinges)


def make_problem(chain: Chain, count: int, *, warm: bool, seed: int = 4) -> Problem:
    """``count`` targets; cold starts are the rest pose, warm ones the answer, disturbed (``WARM_RAD``)."""
    random = np.random.default_rng(seed)
    locals_ = random_locals(chain, count, random)
    tips, answers = placed(chain, locals_)
    starts = np.tile(quat.identity(), (count, chain.joint_count, 1))
    if warm:
        shape = (count, chain.joint_count)
        ways = random.normal(size=(*shape, 3))
        ways *= random.uniform(0.0, WARM_RAD, (*shape, 1)) / np.linalg.norm(ways, axis=-1, keepdims=True)
        moved = quat.multiply(locals_, quat.from_rotvec(ways))
        clamp_all(moved, chain.limits)
        starts = placed(chain, moved)[1]
    return Problem(starts, answers, tips, np.ascontiguousarray(answers[:, -1]))


def random_locals(chain: Chain, count: int, random: np.random.Generator) -> Quats:
    """(count, m, 4) turns of each joint against its parent, drawn evenly from what its limit allows."""
    found = np.empty((count, chain.joint_count, 4))
    for i, row in enumerate(chain.limits):
        if row[KIND] == FREE:
            ways = random.normal(size=(count, 3))
            ways *= random.uniform(0.0, 1.5, (count, 1)) / np.linalg.norm(ways, axis=1, keepdims=True)
            found[:, i] = quat.from_rotvec(ways)
            continue
        axis, side = row[AXIS : AXIS + 3], row[SIDE : SIDE + 3]
        turn = quat.from_rotvec(axis * random.uniform(row[LOW], row[HIGH], (count, 1)))
        if row[KIND] != HINGE:
            far, around = np.sqrt(random.uniform(size=count)), random.uniform(-np.pi, np.pi, count)
            first, second = far * row[SWING] * np.cos(around), far * row[OTHER_SWING] * np.sin(around)
            swing = np.outer(first, side) + np.outer(second, np.cross(axis, side))
            turn = quat.multiply(quat.from_rotvec(swing), turn)
        found[:, i] = quat.multiply(row[CENTER : CENTER + 4], turn)
    return found


def placed(chain: Chain, locals_: Quats) -> tuple[Points, Quats]:
    """(n, 3) tips [m] and (n, m, 4) world rotations, by forward kinematics from the origin."""
    world = np.empty_like(locals_)
    parent, tips = quat.identity(len(locals_)), np.zeros((len(locals_), 3))
    for i in range(chain.joint_count):
        world[:, i] = parent = quat.normalize(quat.multiply(parent, locals_[:, i]))
        tips += quat.rotate(parent, chain.offsets[i + 1])
    return tips, world


def locals_of(rotations: Quats) -> Quats:
    """(n, m, 4) turns against the parent, of world rotations; the first joints hang on the identity."""
    parents = np.concatenate([quat.identity(len(rotations))[:, None], rotations[:, :-1]], axis=1)
    return quat.multiply(quat.conjugate(parents), rotations)


def worst_excess(rotations: Quats, limits: Floats) -> float:
    """How far the worst of n chains' joints is outside of its limit. [rad]"""
    locals_ = locals_of(rotations)
    inside = locals_.copy()
    clamp_all(inside, limits)
    return float(quat.angle(locals_, inside).max())


@kernel
def clamp_all(locals_: Floats, limits: Floats) -> None:
    """Bring all joints of n chains, (n, m, 4), inside their limits."""
    for row in locals_:
        for i in range(len(limits)):
            store4(row, i, qunit(clamp(load4(row, i), limits, i)))
