"""Skeletons as files have them: any rest rotations, helper bones, twist bones; and the chains in them.

A bone's local rotation means what it means in the file (glTF, FBX, VRM): the turn from its parent's axes to
its own, rest rotation included. Chains are solved in canonical frames, where every bone at rest has the
identity; the change between both is one product on either side, done here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from solvers.chain import Chain, ChainPose, ChainSolution, checked_rows
from solvers.kernels import limits as rows
from solvers.limits import Limit, pack_limits
from vrik import quat
from vrik.arrays import Floats, Ints, Points, Quats, Vec3


@dataclass(frozen=True, slots=True, eq=False)
class RigPose:
    """How a rig stands.

    Args:
        root_world: (3,) the first bone. [m]
        local_rotations: (n, 4) from each parent's axes to the bone's own, as in the file.
    """

    root_world: Vec3
    local_rotations: Quats


@dataclass(frozen=True, slots=True, eq=False)
class Rig:
    """n named bones, each with a parent before it; one root. Make it with :meth:`build`.

    Args:
        names: Of the bones.
        parents: (n,) index of each bone's parent, -1 for the root, which comes first.
        translations: (n, 3) each bone's origin in its parent's own axes. [m]
        rest_rotations: (n, 4) local rotations of the rest pose.
    """

    names: tuple[str, ...]
    parents: Ints
    translations: Points
    rest_rotations: Quats
    _rest_world: Quats

    @classmethod
    def build(
        cls,
        names: Sequence[str],
        parents: ArrayLike,
        translations: ArrayLike,
        rest_rotations: ArrayLike | None = None,
    ) -> Rig:
        """Check and copy; rest rotations are the identity when left out.

        Raises:
            ValueError: If shapes do not fit, a name comes twice, or a parent comes after its child.
        """
        offsets = checked_rows("translations", translations, 3, at_least=1)
        n = len(offsets)
        turns = quat.identity(n) if rest_rotations is None else checked_rows("rest", rest_rotations, 4, 1)
        above = np.array(parents, np.int64)
        if len(names) != n or above.shape != (n,) or len(turns) != n:
            raise ValueError(
                f"{len(names)} names, {above.shape} parents and {len(turns)} rotations for {n} bones"
            )
        if len(set(names)) != n:
            raise ValueError(f"a name comes twice: {sorted({x for x in names if list(names).count(x) > 1})}")
        if above[0] != -1 or (above[1:] < 0).any() or (above >= np.arange(n)).any():
            raise ValueError("bones must come after their parents, and only the first has none (-1)")
        turns = quat.normalize(turns)
        rig = cls(tuple(names), above, offsets, turns, quat.identity(n))
        return replace(rig, _rest_world=rig.world(rig.rest())[1])

    def rest(self, root_world: ArrayLike | None = None) -> RigPose:
        """The rest pose, its first bone where the file has it or at ``root_world``."""
        root = self.translations[0] if root_world is None else np.asarray(root_world, np.float64)
        return RigPose(np.array(root), self.rest_rotations.copy())

    def world(self, pose: RigPose) -> tuple[Points, Quats]:
        """(n, 3) origins [m] and (n, 4) world rotations of a pose's bones, axes as in the file."""
        points, turns = np.empty((len(self.names), 3)), np.empty((len(self.names), 4))
        points[0], turns[0] = pose.root_world, pose.local_rotations[0]
        for j in range(1, len(self.names)):
            p = self.parents[j]
            points[j] = points[p] + quat.rotate(turns[p], self.translations[j])
            turns[j] = quat.multiply(turns[p], pose.local_rotations[j])
        return points, turns

    def index(self, name: str) -> int:
        """Row of a bone; ValueError when there is none of that name."""
        if name not in self.names:
            raise ValueError(f"no bone {name!r}; have: {', '.join(self.names)}")
        return self.names.index(name)

    def path(self, root: str, tip: str) -> list[int]:
        """Rows from ``root`` down to ``tip``, both included; ValueError when one is not above the other."""
        rows_up = [self.index(tip)]
        while rows_up[-1] != self.index(root):
            above = int(self.parents[rows_up[-1]])
            if above < 0:
                raise ValueError(f"{root!r} is not above {tip!r}")
            rows_up.append(above)
        return rows_up[::-1]

    def chain(
        self,
        root: str,
        tip: str,
        *,
        skip: Sequence[str] = (),
        effector_offset: ArrayLike = (0.0, 0.0, 0.0),
        weights: Mapping[str, float] | None = None,
        limits: Mapping[str, Limit] | None = None,
    ) -> RigChain:
        """The chain between two bones, both of which turn.

        Args:
            root: Its first joint.
            tip: Its last joint; the effector is fixed to it.
            skip: Bones between them that are carried along as they are: twist and helper bones.
            effector_offset: (3,) from ``tip`` to the effector in the rest pose, in world axes. [m]
            weights: How much each joint takes part, by name; 1 for those not named.
            limits: By name, in canonical frames of the rest pose.

        Raises:
            ValueError: If a name is unknown, or both ends are skipped.
        """
        path = self.path(root, tip)
        left_out = {self.index(name) for name in skip}
        for name in (*(weights or ()), *(limits or ())):
            self.index(name)
        if left_out & {path[0], path[-1]}:
            raise ValueError("the first and the last joint of a chain cannot be skipped")
        joints = [j for j in path if j not in left_out]
        shares = [1.0 if weights is None else float(weights.get(self.names[j], 1.0)) for j in joints]
        allowed = pack_limits([None if limits is None else limits.get(self.names[j]) for j in joints])
        at_rest = self.world(self.rest())[0]
        tip_at = at_rest[joints[-1]] + np.asarray(effector_offset, np.float64)
        points = np.concatenate([at_rest[joints], tip_at[None]])
        chain = Chain.build(np.diff(points, axis=0, prepend=points[:1]), weights=shares, limits=allowed)
        return RigChain(self, tuple(joints), chain)


@dataclass(frozen=True, slots=True, eq=False)
class RigChain:
    """A chain and the bones of a rig that are its joints. Made by :meth:`Rig.chain`.

    Args:
        rig: Whose.
        joints: Rows of the joints, root first.
        chain: As the rig at rest has it.
    """

    rig: Rig
    joints: tuple[int, ...]
    chain: Chain

    def read(self, pose: RigPose) -> tuple[Chain, ChainPose]:
        """The chain as it is in a pose, and how it lies.

        Bones that are skipped may be turned by an animation: what lies between two joints is then another
        stiff piece than at rest, and the limits of the joint below are seen from its true parent.
        """
        rig, joints = self.rig, list(self.joints)
        points, turns = rig.world(pose)
        canonical = quat.multiply(turns, quat.conjugate(rig._rest_world))
        above = rig.parents[joints]
        parents = np.where((above >= 0)[:, None], canonical[np.maximum(above, 0)], quat.identity())
        offsets, limits = self.chain.offsets.copy(), self.chain.limits.copy()
        for i in range(1, len(joints)):
            back = quat.conjugate(canonical[joints[i - 1]])
            offsets[i] = quat.rotate(back, points[joints[i]] - points[joints[i - 1]])
            carried = quat.multiply(back, parents[i])
            if limits[i, rows.KIND] != rows.FREE:
                center = limits[i, rows.CENTER : rows.CENTER + 4]
                center[:] = quat.multiply(carried, center)
        start = ChainPose(points[joints[0]], canonical[joints], parents[0])
        return replace(self.chain, offsets=offsets, limits=limits), start

    def write(self, pose: RigPose, solution: ChainSolution | ChainPose) -> RigPose:
        """The rig with its joints as solved; every other bone keeps its local rotation and comes along."""
        rig = self.rig
        solved = solution.pose if isinstance(solution, ChainSolution) else solution
        locals_ = pose.local_rotations.copy()
        world = rig.world(pose)[1]
        done: dict[int, Floats] = {}
        for joint, turn in zip(self.joints, solved.rotations_world, strict=True):
            done[joint] = quat.multiply(turn, rig._rest_world[joint])
        for j in range(self.joints[0], len(rig.names)):
            p = int(rig.parents[j])
            above = world[p] if p >= 0 else quat.identity()
            if j in done:
                locals_[j] = quat.normalize(quat.multiply(quat.conjugate(above), done[j]))
            world[j] = quat.multiply(above, locals_[j])
        return RigPose(pose.root_world, locals_)
