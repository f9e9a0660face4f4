"""Many bodies, or many frames of one: targets and guesses in, whole bodies out, no object per body."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solvers.body_parts import Scratch, spine_of
from solvers.kernels import body as kernels
from solvers.threads import in_threads
from vrik import quat
from vrik.arrays import Floats, Points, Quats
from vrik.config import SolveConfig
from vrik.frames import ROLE_BONES, ROLES
from vrik.skeleton import PARENTS


@dataclass(frozen=True, slots=True, eq=False)
class Bodies:
    """b bodies: who they are, and how they stood in the frame before.

    Args:
        offsets: (b, 22, 3) each joint from its parent in the T-pose. [m]
        tpose: (b, 22, 3) joints in the T-pose. [m]
        floor_y: (b,) height of the floor under each. [m]
        position: (b, 22, 3) joints; written. [m]
        rotation: (b, 22, 4) canonical world rotations; written.
        local_rotation: (b, 22, 4) relative to the parent; written.
        reach_error_m: (b, 13) distance of each tracked role's bone from its target, NaN without one; written.
        last_twist: (b, 2) the hands' roll; remembered. [rad]
    """

    offsets: Floats
    tpose: Floats
    floor_y: Floats
    position: Floats
    rotation: Floats
    local_rotation: Floats
    reach_error_m: Floats
    last_twist: Floats

    @classmethod
    def in_tpose(cls, tpose: Floats, floor_y: Floats | float = 0.0) -> Bodies:
        """Before the first frame, from (b, 22, 3) T-poses. [m]"""
        rest = np.array(tpose, np.float64, order="C")
        b, n = rest.shape[:2]
        offsets = rest - rest[:, np.maximum(PARENTS, 0)]
        floor = np.broadcast_to(np.asarray(floor_y, np.float64), (b,)).copy()
        still = quat.identity(b, n)
        errors = np.full((b, len(ROLES)), np.nan)
        return cls(offsets, rest, floor, rest.copy(), still, still.copy(), errors, np.zeros((b, 2)))


@dataclass(frozen=True, slots=True, eq=False)
class BodyGoals:
    """What b bodies should meet: rows of ``BodyTargets`` and of ``Guess``.

    Args:
        position: (b, 13, 3) of each role's bone. [m]
        rotation: (b, 13, 4).
        weight: (b, 13) 0 where not tracked.
        pelvis_position: (b, 3) guessed. [m]
        pelvis_rotation: (b, 4).
        chest_rotation: (b, 4).
        ankle_position: (b, 2, 3). [m]
        foot_rotation: (b, 2, 4).
        elbow_pole: (b, 2, 3).
        knee_pole: (b, 2, 3).
    """

    position: Floats
    rotation: Floats
    weight: Floats
    pelvis_position: Points
    pelvis_rotation: Quats
    chest_rotation: Quats
    ankle_position: Floats
    foot_rotation: Floats
    elbow_pole: Floats
    knee_pole: Floats


def solve_bodies(
    bodies: Bodies,
    goals: BodyGoals,
    config: SolveConfig = SolveConfig(),  # noqa: B008  # frozen
    workers: int = 1,
) -> None:
    """Pose all bodies in place, each as :class:`solvers.body.BodySolver` would from the same goals.

    Args:
        bodies: Read and written.
        goals: One row a body.
        config: For all; its solvers must be the default ones, which are compiled.
        workers: Threads; the result does not depend on it. The loops hold no lock.
    """
    weights, limits = spine_of(config)

    def work(begin: int, end: int) -> None:
        scratch = Scratch.fresh()
        kernels.pose_many(
            PARENTS,
            bodies.offsets,
            bodies.tpose,
            ROLE_BONES,
            goals.position,
            goals.rotation,
            goals.weight,
            goals.pelvis_position,
            goals.pelvis_rotation,
            goals.chest_rotation,
            goals.ankle_position,
            goals.foot_rotation,
            goals.elbow_pole,
            goals.knee_pole,
            bodies.floor_y,
            weights,
            limits,
            config.tolerance_m,
            config.max_rounds,
            bodies.last_twist,
            scratch.joints,
            scratch.lengths,
            scratch.goal,
            scratch.turns,
            scratch.spine,
            bodies.position,
            bodies.rotation,
            bodies.local_rotation,
            bodies.reach_error_m,
            begin,
            end,
        )

    in_threads(len(bodies.floor_y), workers, work)
