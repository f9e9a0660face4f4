"""Forward kinematics against a chain of scipy rotations."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from vrik import jit, quat
from vrik.body import BodyModel
from vrik.kernels import kinematics as kernels
from vrik.kinematics import forward
from vrik.skeleton import BONES, MIRROR, PARENTS, bone_lengths

BODY = BodyModel.average(1.75)
ROOT = np.array([1.0, 0.9, -3.0])


def random_turns(seed: int) -> Rotation:
    return Rotation.random(len(BONES), rng=np.random.default_rng(seed))


@pytest.mark.parametrize("seed", range(5))
def test_joints_agree_with_a_chain_of_scipy_rotations(seed: int) -> None:
    local = random_turns(seed)
    world = [local[0]]
    joints = [ROOT]
    for j in range(1, len(BONES)):
        p = int(PARENTS[j])
        joints.append(joints[p] + world[p].apply(BODY.offsets[j].copy()))
        world.append(world[p] * local[j])

    rotations = np.empty((len(BONES), 4))
    kernels.world_from_locals(PARENTS.copy(), quat.wxyz_from_xyzw(local.as_quat()), rotations)
    result = forward(BODY.offsets, rotations, ROOT)

    np.testing.assert_allclose(result, np.array(joints), atol=1e-12)


def test_without_rotation_the_body_stands_in_its_t_pose() -> None:
    result = forward(BODY.offsets, quat.identity(len(BONES)), BODY.tpose[0])

    np.testing.assert_allclose(result, BODY.tpose, atol=1e-12)


def test_no_rotation_changes_a_bone_length() -> None:
    for seed in range(5):
        rotations = quat.wxyz_from_xyzw(random_turns(seed).as_quat())

        np.testing.assert_allclose(
            bone_lengths(forward(BODY.offsets, rotations, ROOT)), BODY.lengths(), atol=1e-12
        )


def test_turning_every_bone_alike_turns_the_whole_body() -> None:
    q = quat.from_rotvec(np.array([0.3, -1.2, 0.5]))

    result = forward(BODY.offsets, np.tile(q, (len(BONES), 1)), ROOT)

    np.testing.assert_allclose(result, ROOT + quat.rotate(q, BODY.tpose - BODY.tpose[0]), atol=1e-12)


def test_a_mirrored_pose_gives_mirrored_joints() -> None:
    rotations = quat.wxyz_from_xyzw(random_turns(8).as_quat())
    mirrored = rotations[MIRROR] * np.array([1.0, 1.0, -1.0, -1.0])
    flip = np.array([-1.0, 1.0, 1.0])

    result = forward(BODY.offsets, mirrored, ROOT * flip)

    np.testing.assert_allclose(result, forward(BODY.offsets, rotations, ROOT)[MIRROR] * flip, atol=1e-12)


def test_local_and_world_rotations_convert_both_ways_near_the_previous_signs() -> None:
    world = quat.wxyz_from_xyzw(random_turns(4).as_quat())
    previous = quat.wxyz_from_xyzw(random_turns(5).as_quat())
    local, back = np.empty_like(world), np.empty_like(world)

    kernels.locals_from_world(PARENTS.copy(), world, previous, local)
    kernels.world_from_locals(PARENTS.copy(), local, back)

    assert quat.angle(back, world).max() < 1e-7
    assert (np.sum(local * previous, axis=1) >= 0.0).all()


def test_arrays_that_are_not_contiguous_or_not_float64_are_taken() -> None:
    rotations = quat.wxyz_from_xyzw(random_turns(1).as_quat())
    awkward = np.asfortranarray(rotations.astype(np.float32))

    result = forward(BODY.offsets[:, ::-1][:, ::-1], awkward, ROOT)

    np.testing.assert_allclose(result, forward(BODY.offsets, rotations, ROOT), atol=1e-5)


@pytest.mark.skipif(not jit.COMPILED, reason="VRIK_JIT=0: nothing is compiled")
def test_read_only_arrays_need_no_compilation_of_their_own() -> None:
    """numba has another type for them, and start-up has a budget."""
    code = """
import numpy as np
from vrik import BodyModel, jit, kinematics, quat
fixed = BodyModel.average(1.7).offsets
for offsets in (fixed, np.array(fixed), np.asfortranarray(fixed)):
    kinematics.forward(offsets, quat.identity(22), np.zeros(3))
print(len(jit.kernels()["vrik.kernels.kinematics.forward"].signatures))
"""

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)

    assert done.stdout.strip() == "1", done.stderr


@pytest.mark.parametrize(("offsets", "rotations"), [((21, 3), (22, 4)), ((22, 3), (22, 3)), ((3,), (22, 4))])
def test_wrong_shapes_are_refused(offsets: tuple[int, ...], rotations: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"expected offsets \(22, 3\)"):
        forward(np.zeros(offsets), np.zeros(rotations), ROOT)
