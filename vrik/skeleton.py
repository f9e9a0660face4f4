"""Bones and their rest pose: the 22 solved bones, and any other skeleton a file may hold.

Two ways of writing a rotation are in use, and a :class:`Skeleton` converts between them:

* *canonical*: how far a bone has turned from the rest pose, in world axes; identity at rest.
  Everything vrik solves is canonical.
* *node*: the rotation of the file's own node, which at rest may be anything.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vrik import quat
from vrik.arrays import Floats, Ints, Points, Quats

BONES = (
    "hips",
    "spine",
    "chest",
    "upperChest",
    "neck",
    "head",
    "leftShoulder",
    "leftUpperArm",
    "leftLowerArm",
    "leftHand",
    "rightShoulder",
    "rightUpperArm",
    "rightLowerArm",
    "rightHand",
    "leftUpperLeg",
    "leftLowerLeg",
    "leftFoot",
    "leftToes",
    "rightUpperLeg",
    "rightLowerLeg",
    "rightFoot",
    "rightToes",
)
"""The solved bones, VRM 1.0 humanoid names, parents first. Their index is their row in every array."""

BONE = {name: i for i, name in enumerate(BONES)}

PARENTS: Ints = np.array(
    [-1, 0, 1, 2, 3, 4, 3, 6, 7, 8, 3, 10, 11, 12, 0, 14, 15, 16, 0, 18, 19, 20], dtype=np.int64
)
PARENTS.setflags(write=False)

SMPL_FROM_VRM: Ints = np.array(
    [BONE[name] for name in (
        "hips", "leftUpperLeg", "rightUpperLeg", "spine", "leftLowerLeg", "rightLowerLeg", "chest",
        "leftFoot", "rightFoot", "upperChest", "leftToes", "rightToes", "neck", "leftShoulder",
        "rightShoulder", "head", "leftUpperArm", "rightUpperArm", "leftLowerArm", "rightLowerArm",
        "leftHand", "rightHand",
    )],
    dtype=np.int64,
)  # fmt: skip
"""(22,) rows of our arrays in the order of the 22 SMPL body joints: ``smpl = ours[SMPL_FROM_VRM]``."""

SMPL_JOINTS = (
    "pelvis", "left_hip", "right_hip", "spine1", "left_knee", "right_knee", "spine2",
    "left_ankle", "right_ankle", "spine3", "left_foot", "right_foot", "neck", "left_collar",
    "right_collar", "head", "left_shoulder", "right_shoulder", "left_elbow", "right_elbow",
    "left_wrist", "right_wrist",
)  # fmt: skip
"""Names of the 22 SMPL body joints in SMPL's order."""

VRM_FROM_SMPL: Ints = np.argsort(SMPL_FROM_VRM)
"""(22,) the other way: ``ours = smpl[VRM_FROM_SMPL]``."""

MIRROR: Ints = np.array(
    [BONE[n.replace("left", "@").replace("right", "left").replace("@", "right")] for n in BONES],
    dtype=np.int64,
)
"""(22,) row of the same bone on the other side; middle bones map to themselves."""


@dataclass(frozen=True, slots=True, eq=False)
class Skeleton:
    """Named joints, parents first, with a rest pose.

    Args:
        names: n joint names.
        parents: (n,) row of each joint's parent, -1 for the root, always smaller than the own row.
        rest_translation: (n, 3) joint in its parent's rest frame; row 0 in the world. [m]
        rest_rotation: (n, 4) node rotation at rest, relative to the parent; row 0 to the world.

    Raises:
        ValueError: If the shapes disagree or a parent comes after its child.
    """

    names: tuple[str, ...]
    parents: Ints
    rest_translation: Points
    rest_rotation: Quats

    def __post_init__(self) -> None:
        n = len(self.names)
        if self.parents.shape != (n,) or self.rest_translation.shape != (n, 3):
            raise ValueError(f"{n} names need parents ({n},) and rest_translation ({n}, 3)")
        if self.rest_rotation.shape != (n, 4):
            raise ValueError(f"{n} names need rest_rotation ({n}, 4)")
        if n == 0 or self.parents[0] != -1 or np.any(self.parents[1:] >= np.arange(1, n)):
            raise ValueError("joints must be listed parents first, beginning with the root")
        if np.any(self.parents[1:] < 0):
            raise ValueError("only the first joint may be a root")

    @classmethod
    def canonical(cls, tpose_world: Points) -> Skeleton:
        """The 22 solved bones with identity rest rotations.

        Args:
            tpose_world: (22, 3) joints of a T-pose that faces -Z, in the order of ``BONES``. [m]
        """
        return cls(BONES, PARENTS, offsets_of(tpose_world, PARENTS), quat.identity(len(BONES)))

    def rest_world(self) -> tuple[Points, Quats]:
        """Rest pose in the world: positions (n, 3) [m] and node rotations (n, 4)."""
        positions = self.rest_translation.copy()
        rotations = self.rest_rotation.copy()
        for j in range(1, len(self.names)):
            p = self.parents[j]
            positions[j] = positions[p] + quat.rotate(rotations[p], self.rest_translation[j])
            rotations[j] = quat.multiply(rotations[p], self.rest_rotation[j])
        return positions, quat.normalize(rotations)

    def node_from_canonical(self, canonical_world: Quats) -> Quats:
        """Canonical world rotations (..., n, 4) to this skeleton's node rotations in the world."""
        return quat.multiply(canonical_world, self.rest_world()[1])

    def canonical_from_node(self, node_world: Quats) -> Quats:
        """Node rotations in the world (..., n, 4) to canonical world rotations."""
        return quat.multiply(node_world, quat.conjugate(self.rest_world()[1]))

    def locals_from_world(self, node_world: Quats) -> Quats:
        """Node rotations in the world (..., n, 4) to parent-relative ones."""
        local = np.array(node_world, np.float64)
        child = self.parents >= 0
        parents = self.parents[child]
        local[..., child, :] = quat.multiply(
            quat.conjugate(node_world[..., parents, :]), node_world[..., child, :]
        )
        return local


def offsets_of(tpose_world: Points, parents: Ints = PARENTS) -> Points:
    """(n, 3) step from each joint's parent in a rest pose with identity rotations; row 0 is the root. [m]"""
    tpose_world = np.asarray(tpose_world, np.float64)
    offsets = tpose_world.copy()
    offsets[1:] -= tpose_world[parents[1:]]
    return offsets


def bone_lengths(positions: Points, parents: Ints = PARENTS) -> Floats:
    """(..., n, 3) joints to the (..., n - 1) lengths of the bones that end in joints 1 to n - 1. [m]"""
    positions = np.asarray(positions, np.float64)
    return np.asarray(np.linalg.norm(positions[..., 1:, :] - positions[..., parents[1:], :], axis=-1))
