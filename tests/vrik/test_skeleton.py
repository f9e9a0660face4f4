"""Bones, their order, their SMPL names, and skeletons with arbitrary rest rotations."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from vrik import quat
from vrik.body import average_tpose
from vrik.kinematics import forward
from vrik.skeleton import (
    BONE,
    BONES,
    MIRROR,
    PARENTS,
    SMPL_FROM_VRM,
    VRM_FROM_SMPL,
    Skeleton,
    bone_lengths,
    offsets_of,
)

SMPL = [
    "pelvis", "left_hip", "right_hip", "spine1", "left_knee", "right_knee", "spine2", "left_ankle",
    "right_ankle", "spine3", "left_foot", "right_foot", "neck", "left_collar", "right_collar", "head",
    "left_shoulder", "right_shoulder", "left_elbow", "right_elbow", "left_wrist", "right_wrist",
]  # fmt: skip
"""The published joint order of the SMPL body model."""

SMPL_NAME = {
    "hips": "pelvis",
    "spine": "spine1",
    "chest": "spine2",
    "upperChest": "spine3",
    "neck": "neck",
    "head": "head",
    "Shoulder": "collar",
    "UpperArm": "shoulder",
    "LowerArm": "elbow",
    "Hand": "wrist",
    "UpperLeg": "hip",
    "LowerLeg": "knee",
    "Foot": "ankle",
    "Toes": "foot",
}
SMPL_PARENTS = [-1, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 9, 12, 13, 14, 16, 17, 18, 19]


def smpl_name(bone: str) -> str:
    for side in ("left", "right"):
        if bone.startswith(side):
            return f"{side}_{SMPL_NAME[bone.removeprefix(side)]}"
    return SMPL_NAME[bone]


def random_quats(n: int, seed: int) -> np.ndarray:
    return quat.wxyz_from_xyzw(Rotation.random(n, rng=np.random.default_rng(seed)).as_quat())


def random_skeleton(seed: int) -> Skeleton:
    """The average body, written as a file may write it: every node turned in its own way at rest."""
    tpose = average_tpose(1.7)
    world = random_quats(len(BONES), seed)
    local = world.copy()
    translation = tpose.copy()
    for j in range(1, len(BONES)):
        p = PARENTS[j]
        local[j] = quat.multiply(quat.conjugate(world[p]), world[j])
        translation[j] = quat.rotate(quat.conjugate(world[p]), tpose[j] - tpose[p])
    return Skeleton(BONES, PARENTS, translation, local)


def test_the_22_bones_are_the_smpl_body_joints() -> None:
    assert [smpl_name(BONES[i]) for i in SMPL_FROM_VRM] == SMPL


def test_both_orders_have_the_same_tree() -> None:
    parents = [-1 if PARENTS[i] < 0 else SMPL.index(smpl_name(BONES[PARENTS[i]])) for i in SMPL_FROM_VRM]

    assert parents == SMPL_PARENTS


def test_the_two_maps_undo_each_other() -> None:
    rows = np.arange(len(BONES))

    np.testing.assert_array_equal(rows[SMPL_FROM_VRM][VRM_FROM_SMPL], rows)


def test_bones_come_parents_first_and_the_table_cannot_be_changed() -> None:
    assert all(PARENTS[j] < j for j in range(len(BONES)))
    with pytest.raises(ValueError, match="read-only"):
        PARENTS[0] = 3


def test_the_mirror_swaps_sides_and_keeps_the_tree() -> None:
    for bone, row in BONE.items():
        twin = BONES[MIRROR[row]]
        swapped = {"left": "right", "right": "left"}
        side = next((s for s in swapped if bone.startswith(s)), "")
        assert twin == (swapped[side] + bone.removeprefix(side) if side else bone)
        if row:
            assert PARENTS[MIRROR[row]] == MIRROR[PARENTS[row]]


def test_the_canonical_skeleton_rests_in_its_t_pose_without_rotation() -> None:
    tpose = average_tpose(1.8)

    positions, rotations = Skeleton.canonical(tpose).rest_world()

    np.testing.assert_allclose(positions, tpose, atol=1e-12)
    np.testing.assert_array_equal(rotations, quat.identity(len(BONES)))


@pytest.mark.parametrize("seed", range(5))
def test_rest_rotations_do_not_move_the_rest_pose(seed: int) -> None:
    positions, _ = random_skeleton(seed).rest_world()

    np.testing.assert_allclose(positions, average_tpose(1.7), atol=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_node_and_canonical_rotations_convert_both_ways(seed: int) -> None:
    skeleton = random_skeleton(seed)
    canonical = random_quats(3 * len(BONES), seed + 50).reshape(3, len(BONES), 4)

    back = skeleton.canonical_from_node(skeleton.node_from_canonical(canonical))

    assert quat.angle(back, canonical).max() < 1e-7


def test_at_rest_canonical_rotations_are_the_identity() -> None:
    skeleton = random_skeleton(2)

    canonical = skeleton.canonical_from_node(skeleton.rest_world()[1])

    assert quat.angle(canonical, quat.identity(len(BONES))).max() < 1e-7


@pytest.mark.parametrize("seed", range(5))
def test_posed_nodes_put_the_joints_where_canonical_kinematics_puts_them(seed: int) -> None:
    """A file's own chain of turned nodes and ours without rest rotations are the same body."""
    skeleton = random_skeleton(seed)
    canonical = random_quats(len(BONES), seed + 90)
    root = np.array([0.3, 1.0, -2.0])
    local = skeleton.locals_from_world(skeleton.node_from_canonical(canonical))

    world = [Rotation.from_quat(quat.xyzw_from_wxyz(local[0]))]
    joints = [root]
    for j in range(1, len(BONES)):
        p = int(PARENTS[j])
        joints.append(joints[p] + world[p].apply(skeleton.rest_translation[j]))
        world.append(world[p] * Rotation.from_quat(quat.xyzw_from_wxyz(local[j])))

    expected = forward(offsets_of(average_tpose(1.7)), canonical, root)
    np.testing.assert_allclose(np.array(joints), expected, atol=1e-9)


def test_bone_lengths_follow_the_parents() -> None:
    tpose = average_tpose(1.7)

    lengths = bone_lengths(np.stack([tpose, 2.0 * tpose]))

    assert lengths.shape == (2, 21)
    np.testing.assert_allclose(lengths[1], 2.0 * lengths[0])
    step = tpose[BONE["leftHand"]] - tpose[BONE["leftLowerArm"]]
    assert lengths[0, BONE["leftHand"] - 1] == pytest.approx(np.linalg.norm(step))


@pytest.mark.parametrize(
    ("parents", "translation", "rotation", "message"),
    [
        ([-1, 0], (2, 3), (3, 4), "need parents"),
        ([-1, 0, 1], (2, 3), (3, 4), "need parents"),
        ([-1, 0, 1], (3, 3), (3, 3), "rest_rotation"),
        ([-1, 2, 0], (3, 3), (3, 4), "parents first"),
        ([0, 0, 1], (3, 3), (3, 4), "parents first"),
        ([-1, 0, -1], (3, 3), (3, 4), "only the first"),
    ],
)
def test_a_skeleton_that_is_no_tree_is_refused(
    parents: list[int], translation: tuple[int, int], rotation: tuple[int, int], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        Skeleton(("a", "b", "c"), np.array(parents), np.zeros(translation), np.zeros(rotation))
