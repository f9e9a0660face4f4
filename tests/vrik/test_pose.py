"""Rigid transforms obey their axioms and refuse matrices that are none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vrik import quat
from vrik.pose import Pose

vectors = st.tuples(*[st.floats(-3.0, 3.0)] * 3).map(np.array)
poses = st.builds(Pose, vectors.map(quat.from_rotvec), vectors)
few = settings(max_examples=60, deadline=None)


def assert_same(a: Pose, b: Pose) -> None:
    assert quat.angle(a.rotation, b.rotation) < 1e-7
    np.testing.assert_allclose(a.translation, b.translation, atol=1e-9)


def matrix_of(pose: Pose) -> Any:
    matrix = np.eye(4)
    matrix[:3, :3] = quat.to_matrix(pose.rotation)
    matrix[:3, 3] = pose.translation
    return matrix


@few
@given(T=poses)
def test_a_pose_and_its_inverse_cancel_on_both_sides(T: Pose) -> None:
    assert_same(T @ T.inverse(), Pose.identity())
    assert_same(T.inverse() @ T, Pose.identity())
    assert_same(T.inverse().inverse(), T)


@few
@given(a=poses, b=poses, c=poses)
def test_composition_is_associative_and_has_an_identity(a: Pose, b: Pose, c: Pose) -> None:
    assert_same((a @ b) @ c, a @ (b @ c))
    assert_same(a @ Pose.identity(), a)
    assert_same(Pose.identity() @ a, a)


@few
@given(a=poses, b=poses)
def test_composition_is_the_product_of_the_matrices(a: Pose, b: Pose) -> None:
    np.testing.assert_allclose(matrix_of(a @ b), matrix_of(a) @ matrix_of(b), atol=1e-9)


@few
@given(a=poses, b=poses, p=vectors)
def test_points_go_through_one_pose_after_the_other(a: Pose, b: Pose, p: Any) -> None:
    np.testing.assert_allclose((a @ b).apply(p), a.apply(b.apply(p)), atol=1e-9)
    np.testing.assert_allclose(a.inverse().apply(a.apply(p)), p, atol=1e-9)


def test_many_points_are_applied_at_once() -> None:
    T = Pose(quat.from_rotvec(np.array([0.0, 0.3, 0.0])), np.array([1.0, 2.0, 3.0]))
    points = np.random.default_rng(0).normal(size=(2, 5, 3))

    result = T.apply(points)

    assert result.shape == points.shape
    np.testing.assert_allclose(result[1, 4], T.apply(points[1, 4]), atol=1e-12)


@few
@given(T=poses)
def test_a_pose_survives_the_way_through_3x4_and_4x4_matrices(T: Pose) -> None:
    assert_same(Pose.from_matrix(matrix_of(T)), T)
    assert_same(Pose.from_matrix(matrix_of(T)[:3]), T)


def test_positive_yaw_turns_left() -> None:
    T_world_body = Pose.from_yaw(0.5 * np.pi, np.array([1.0, 0.0, 0.0]))

    forward = T_world_body.apply(np.array([0.0, 0.0, -1.0]))

    np.testing.assert_allclose(forward, [0.0, 0.0, 0.0], atol=1e-12)


def test_c22_a_matrix_of_zeros_is_no_pose(shared: Path) -> None:
    """Case C22: devices without hardware report zeros and still say that they are valid."""
    case = json.loads((shared / "data" / "cases" / "c22_zero_matrix.json").read_text())

    with pytest.raises(ValueError, match="no rotation"):
        Pose.from_matrix(np.array(case["matrix"]))


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e200])
def test_a_matrix_that_is_not_a_rotation_is_refused(bad: float) -> None:
    matrix = np.eye(4)
    matrix[0, 0] = bad

    with pytest.raises(ValueError, match="no rotation"):
        Pose.from_matrix(matrix)


def test_a_mirroring_matrix_is_refused() -> None:
    """Its rows are orthonormal, yet no turn gives it."""
    with pytest.raises(ValueError, match="no rotation"):
        Pose.from_matrix(np.diag([-1.0, 1.0, 1.0, 1.0]))
