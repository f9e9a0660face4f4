"""The whole body: torso first, then arms and legs; turns kept sign-continuous, errors measured."""

import math

from solvers.kernels.limbs import solve_arm, solve_leg
from solvers.kernels.torso import solve as solve_torso
from vrik.arrays import Floats, Ints, Points, Quats
from vrik.jit import entry, kernel
from vrik.kernels.kinematics import forward, locals_from_world
from vrik.kernels.quat import load4, qnear, qunit, store4
from vrik.kernels.vec import distance, load3

HEAD_ROLE, WAIST_ROLE = 0, 3
LEFT_FOOT, LEFT_TOES = 16, 17


@kernel
def finish(
    parents: Ints,
    offsets: Points,
    role_bones: Ints,
    position: Points,
    weight: Floats,
    turns: Quats,
    positions: Points,
    rotations: Quats,
    local_rotations: Quats,
    reach_error: Floats,
) -> None:
    """Exact bone lengths, signs near to those of the frame before, and how well each role is met."""
    for j in range(len(parents)):
        store4(rotations, j, qnear(qunit(load4(turns, j)), load4(rotations, j)))
    forward(parents, offsets, rotations, positions)
    locals_from_world(parents, rotations, local_rotations, local_rotations)
    for r in range(len(role_bones)):
        reach_error[r] = math.nan
        if weight[r] > 0.0:
            reach_error[r] = distance(load3(positions, role_bones[r]), load3(position, r))


@kernel
def pose_torso(
    offsets: Points,
    position: Points,
    rotation: Quats,
    weight: Floats,
    pelvis_position: Points,
    pelvis_rotation: Quats,
    chest_rotation: Quats,
    spine_weights: Floats,
    spine_limits: Floats,
    tolerance: float,
    sweeps: int,
    turns: Quats,
    spine_scratch: Quats,
    positions: Points,
) -> None:
    """Hips to head and collar bones, into ``positions`` and ``turns``; arguments as in :func:`pose`."""
    solve_torso(
        load3(pelvis_position, 0),
        load4(pelvis_rotation, 0),
        load4(chest_rotation, 0),
        load3(position, HEAD_ROLE),
        load4(rotation, HEAD_ROLE),
        weight[WAIST_ROLE],
        position[1:3],
        weight[1:3],
        offsets,
        spine_weights,
        spine_limits,
        tolerance,
        sweeps,
        spine_scratch,
        positions,
        turns,
    )


@kernel
def pose_limbs(
    parents: Ints,
    offsets: Points,
    tpose: Points,
    role_bones: Ints,
    position: Points,
    rotation: Quats,
    weight: Floats,
    ankle_position: Points,
    foot_rotation: Quats,
    elbow_pole: Points,
    knee_pole: Points,
    floor_y: float,
    tolerance: float,
    sweeps: int,
    last_twist: Floats,
    joints: Points,
    lengths: Floats,
    goal: Points,
    turns: Quats,
    positions: Points,
    rotations: Quats,
    local_rotations: Quats,
    reach_error: Floats,
) -> None:
    """Arms and legs on a torso that is placed, and the end; arguments as in :func:`pose`."""
    for side in range(2):
        solve_arm(
            side,
            offsets,
            position,
            rotation,
            weight,
            elbow_pole,
            tolerance,
            sweeps,
            last_twist,
            joints,
            lengths,
            goal,
            positions,
            turns,
        )
        solve_leg(
            side,
            offsets,
            floor_y,
            tpose[LEFT_FOOT, 1],
            tpose[LEFT_TOES, 1],
            position,
            rotation,
            weight,
            ankle_position,
            foot_rotation,
            knee_pole,
            joints,
            lengths,
            goal,
            positions,
            turns,
        )
    finish(
        parents,
        offsets,
        role_bones,
        position,
        weight,
        turns,
        positions,
        rotations,
        local_rotations,
        reach_error,
    )


@kernel
def pose(
    parents: Ints,
    offsets: Points,
    tpose: Points,
    role_bones: Ints,
    position: Points,
    rotation: Quats,
    weight: Floats,
    pelvis_position: Points,
    pelvis_rotation: Quats,
    chest_rotation: Quats,
    ankle_position: Points,
    foot_rotation: Quats,
    elbow_pole: Points,
    knee_pole: Points,
    floor_y: float,
    spine_weights: Floats,
    spine_limits: Floats,
    tolerance: float,
    sweeps: int,
    last_twist: Floats,
    joints: Points,
    lengths: Floats,
    goal: Points,
    turns: Quats,
    spine_scratch: Quats,
    positions: Points,
    rotations: Quats,
    local_rotations: Quats,
    reach_error: Floats,
) -> None:
    """Pose the body in place: positions (22, 3), rotations and local_rotations (22, 4), reach_error (13,).

    position, rotation, weight: role targets, (13, .). The guess is as in ``solvers.guess.Guess``.
    ``rotations`` and ``local_rotations`` hold the frame before on entry. last_twist (2,) is remembered;
    joints (3, 3), lengths (2,), goal (2, 3) and turns (22, 4) are scratch. Lengths in metres.
    """
    pose_torso(
        offsets,
        position,
        rotation,
        weight,
        pelvis_position,
        pelvis_rotation,
        chest_rotation,
        spine_weights,
        spine_limits,
        tolerance,
        sweeps,
        turns,
        spine_scratch,
        positions,
    )
    pose_limbs(
        parents,
        offsets,
        tpose,
        role_bones,
        position,
        rotation,
        weight,
        ankle_position,
        foot_rotation,
        elbow_pole,
        knee_pole,
        floor_y,
        tolerance,
        sweeps,
        last_twist,
        joints,
        lengths,
        goal,
        turns,
        positions,
        rotations,
        local_rotations,
        reach_error,
    )


torso, limbs = entry(pose_torso), entry(pose_limbs)
"""One body, called from Python: two halves, which two processes can compile at the same time."""


@entry
@kernel
def pose_many(
    parents: Ints,
    offsets: Floats,
    tpose: Floats,
    role_bones: Ints,
    position: Floats,
    rotation: Floats,
    weight: Floats,
    pelvis_position: Floats,
    pelvis_rotation: Floats,
    chest_rotation: Floats,
    ankle_position: Floats,
    foot_rotation: Floats,
    elbow_pole: Floats,
    knee_pole: Floats,
    floor_y: Floats,
    spine_weights: Floats,
    spine_limits: Floats,
    tolerance: float,
    sweeps: int,
    last_twist: Floats,
    joints: Points,
    lengths: Floats,
    goal: Points,
    turns: Quats,
    spine_scratch: Quats,
    positions: Floats,
    rotations: Floats,
    local_rotations: Floats,
    reach_error: Floats,
    begin: int,
    end: int,
) -> None:
    """:func:`pose` for bodies ``begin`` to ``end``: arrays as there, with one more dimension in front."""
    for b in range(begin, end):
        pose(
            parents,
            offsets[b],
            tpose[b],
            role_bones,
            position[b],
            rotation[b],
            weight[b],
            pelvis_position[b : b + 1],
            pelvis_rotation[b : b + 1],
            chest_rotation[b : b + 1],
            ankle_position[b],
            foot_rotation[b],
            elbow_pole[b],
            knee_pole[b],
            floor_y[b],
            spine_weights,
            spine_limits,
            tolerance,
            sweeps,
            last_twist[b],
            joints,
            lengths,
            goal,
            turns,
            spine_scratch,
            positions[b],
            rotations[b],
            local_rotations[b],
            reach_error[b],
        )
