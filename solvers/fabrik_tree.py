"""FABRIK on a tree for people: several effectors pull at one skeleton, and share the joints between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from solvers.chain import StopReason, checked_rows, checked_vector
from solvers.config import ChainConfig
from solvers.kernels import fabrik_tree as kernels
from vrik import quat
from vrik.arrays import Floats, Ints, Points, Quats, Vec3

_DEFAULT = ChainConfig()


@dataclass(frozen=True, slots=True, eq=False)
class FabrikTree:
    """n nodes, each but the root on a bone from its parent. Make it with :meth:`build`.

    Args:
        parents: (n,) parent of each node, -1 for the root; parents come first.
        offsets: (n, 3) each node seen from its parent, in the rest pose; row 0 is not used. [m]
    """

    parents: Ints
    offsets: Points

    @classmethod
    def build(cls, parents: Sequence[int], offsets: ArrayLike) -> FabrikTree:
        """Check and copy.

        Raises:
            ValueError: If a parent comes after its child, a shape is wrong or a number is not finite.
        """
        rest = checked_rows("offsets", offsets, 3)
        rows = np.array(parents, np.int64)
        if rows.shape != (len(rest),):
            raise ValueError(f"{rows.size} parents for {len(rest)} offsets")
        if rows[0] != -1 or (rows[1:] < 0).any() or (rows[1:] >= np.arange(1, len(rows))).any():
            raise ValueError("parents must be -1 for node 0, and for all others a node that comes before")
        return cls(rows, rest)

    @property
    def lengths(self) -> Floats:
        """(n,) length of the bone to each node; 0 for the root. [m]"""
        lengths = np.linalg.norm(self.offsets, axis=1)
        lengths[0] = 0.0
        return np.asarray(lengths)

    def rest(self, root_world: ArrayLike = (0.0, 0.0, 0.0)) -> TreePose:
        """The rest pose with its root at ``root_world``."""
        return TreePose(np.array(checked_vector("root_world", root_world)), quat.identity(len(self.parents)))

    def points(self, pose: TreePose) -> Points:
        """(n, 3) where the nodes are in a pose. [m]"""
        found = np.empty_like(self.offsets)
        found[0] = pose.root_world
        for i in range(1, len(found)):
            found[i] = found[self.parents[i]] + quat.rotate(pose.rotations_world[i], self.offsets[i])
        return found


@dataclass(frozen=True, slots=True, eq=False)
class TreePose:
    """How a tree lies.

    Args:
        root_world: (3,) the root. [m]
        rotations_world: (n, 4) canonical world rotation of the bone that ends at each node, so that each bone
            of a shared joint has its own; row 0 is that of what the root hangs on.
    """

    root_world: Vec3
    rotations_world: Quats


@dataclass(frozen=True, slots=True, eq=False)
class TreeSolution:
    """A tree after solving.

    Args:
        points_world: (n, 3) nodes. [m]
        pose: Rotations; the warm start of the next frame.
        residual_m: Distance of each effector from its target, by node. [m]
        reached: Whether all are within the tolerance.
        rounds: Rounds used; 0 when none was needed.
        stopped_because: ``reached``, ``out_of_reach`` (a single target is too far from a fixed root),
            ``no_progress`` (targets that do not go together, too near) or ``max_rounds``.
    """

    points_world: Points
    pose: TreePose
    residual_m: Mapping[int, float]
    reached: bool
    rounds: int
    stopped_because: StopReason


def solve_tree(
    tree: FabrikTree,
    start: TreePose,
    targets: Mapping[int, ArrayLike],
    *,
    weights: Mapping[int, float] | None = None,
    fixed_root: bool = True,
    config: ChainConfig = _DEFAULT,
) -> TreeSolution:
    """Bend a tree so that several of its nodes meet targets together, keeping every bone length.

    A joint that several branches share goes to the mean of where they want it, weighted by the targets beyond
    each; the last part of each branch is then solved as a chain of its own. Branches without a target are
    carried along unbent. Bones keep their twist, as in :func:`solvers.fabrik.solve`.

    Args:
        tree: Bones.
        start: How it lies: the warm start.
        targets: Position (3,) by node. Any node may have one, also one in the middle of a branch. [m]
        weights: How much each target counts where not all can be met; 1 when left out, 0: no target.
        fixed_root: Whether the root stays; a free one is pulled along.
        config: ``tolerance_m`` and ``max_rounds`` are used.

    Returns:
        The tree with the least weighted sum of misses that was found.

    Raises:
        ValueError: If there is no such node, a weight is negative, or a shape or number is wrong.

    Source:
        Aristidou & Lasenby, "FABRIK", Graphical Models 73 (2011), section 4.2.
    """
    n = len(tree.parents)
    goals, pulls = np.zeros((n, 3)), np.zeros(n)
    for node, position in targets.items():
        if not 0 <= node < n:
            raise ValueError(f"a target for node {node}, the tree has nodes 0 to {n - 1}")
        goals[node] = checked_vector(f"target of node {node}", position)
        pulls[node] = 1.0 if weights is None else weights.get(node, 1.0)
    if not np.isfinite(pulls).all() or (pulls < 0.0).any():
        raise ValueError("weights must be finite and not negative")
    if start.rotations_world.shape != (n, 4):
        raise ValueError(f"the pose has {len(start.rotations_world)} nodes, the tree {n}")
    if fixed_root:
        pulls[0] = 0.0
    beyond = pulls.copy()
    for i in range(n - 1, 0, -1):
        beyond[tree.parents[i]] += beyond[i]

    points, lengths = tree.points(start), tree.lengths
    rounds = kernels.solve_tree(
        points,
        lengths,
        tree.parents,
        goals,
        pulls,
        beyond,
        bool(fixed_root),
        float(config.tolerance_m),
        int(config.max_rounds),
        np.zeros((3 * n, 3)),
        np.zeros(n),
    )
    turned = np.empty((n, 4))
    kernels.turn_bones(points, start.rotations_world, tree.offsets, tree.parents, beyond, turned)

    misses = {node: float(np.linalg.norm(points[node] - goals[node])) for node in targets}
    reached = all(miss <= config.tolerance_m for node, miss in misses.items() if pulls[node] > 0.0)
    reason: StopReason = "max_rounds" if rounds >= config.max_rounds else "no_progress"
    if reached:
        reason = "reached"
    elif fixed_root and any(
        _too_far(tree, points[0], node, goals[node]) for node in targets if pulls[node] > 0.0
    ):
        reason = "out_of_reach"
    return TreeSolution(points, TreePose(points[0].copy(), turned), misses, reached, int(rounds), reason)


def _too_far(tree: FabrikTree, root: Vec3, node: int, target: Vec3) -> bool:
    """Whether the bones from the root to ``node`` are too short."""
    total, lengths, row = 0.0, tree.lengths, node
    while row > 0:
        total += lengths[row]
        row = int(tree.parents[row])
    return bool(np.linalg.norm(target - root) > total)
