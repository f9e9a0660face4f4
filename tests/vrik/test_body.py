"""A body's lengths and its T-pose."""

from __future__ import annotations

import numpy as np
import pytest

from vrik.body import BodyModel, average_tpose
from vrik.skeleton import BONE, BONES, MIRROR


def test_the_average_t_pose_is_symmetric_faces_forward_and_stands_on_the_floor() -> None:
    tpose = average_tpose(1.7)

    np.testing.assert_allclose(tpose[MIRROR] * [-1.0, 1.0, 1.0], tpose, atol=1e-12)
    assert tpose[BONE["leftHand"], 0] < 0.0 < tpose[BONE["rightHand"], 0]
    assert tpose[BONE["leftToes"], 2] < tpose[BONE["leftFoot"], 2]
    assert 0.0 < tpose[:, 1].min() < 0.05
    assert tpose[:, 1].max() == tpose[BONE["head"], 1] < 1.7


def test_arms_are_straight_and_level() -> None:
    tpose = average_tpose(1.7)

    for side in ("left", "right"):
        arm = tpose[[BONE[side + part] for part in ("UpperArm", "LowerArm", "Hand")]]
        np.testing.assert_allclose(arm[:, 1:], arm[[0, 0, 0], 1:], atol=1e-12)


def test_every_bone_has_a_length_and_all_scale_with_stature() -> None:
    small, tall = BodyModel.average(1.5), BodyModel.average(2.0)

    assert (small.lengths() > 0.01).all()
    np.testing.assert_allclose(tall.lengths(), small.lengths() * 2.0 / 1.5)


def test_offsets_add_up_to_the_t_pose() -> None:
    body = BodyModel.average(1.7)
    chain = ["hips", "leftUpperLeg", "leftLowerLeg", "leftFoot", "leftToes"]

    np.testing.assert_allclose(
        body.offsets[[BONE[b] for b in chain]].sum(axis=0), body.tpose[BONE["leftToes"]], atol=1e-12
    )


def test_its_skeleton_rests_in_its_t_pose() -> None:
    body = BodyModel.average(1.7)

    np.testing.assert_allclose(body.skeleton().rest_world()[0], body.tpose, atol=1e-12)


def test_ankle_and_toe_heights_are_those_of_the_t_pose() -> None:
    body = BodyModel.average(1.7)

    assert body.ankle_height_m == body.tpose[BONE["rightFoot"], 1]
    assert body.toes_height_m == body.tpose[BONE["rightToes"], 1]


def test_a_body_does_not_change_with_the_array_it_was_made_from() -> None:
    tpose = average_tpose(1.7)
    body = BodyModel(1.7, tpose)
    before = body.lengths()

    tpose *= 2.0

    np.testing.assert_array_equal(body.lengths(), before)
    with pytest.raises(ValueError, match="read-only"):
        body.tpose[0, 0] = 1.0


@pytest.mark.parametrize("tpose", [np.zeros((21, 3)), np.full((len(BONES), 3), np.nan), np.zeros(66)])
def test_a_t_pose_of_the_wrong_shape_or_with_nan_is_refused(tpose: np.ndarray) -> None:
    with pytest.raises(ValueError, match="finite"):
        BodyModel(1.7, tpose)
