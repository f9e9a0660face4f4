"""Quaternions, over arrays and inside kernels, against scipy and against faults seen elsewhere."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from vrik import quat
from vrik.kernels import quat as kq
from vrik.pose import Pose

ORDERS = ["".join(p) for p in itertools.permutations("xyz")]
AXES = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}

unit_quats = (
    st.tuples(*[st.floats(-1.0, 1.0)] * 4)
    .filter(lambda q: np.linalg.norm(q) > 0.1)
    .map(lambda q: np.array(q) / np.linalg.norm(q))
)
vectors = st.tuples(*[st.floats(-3.0, 3.0)] * 3).map(np.array)
unit_vectors = vectors.filter(lambda v: np.linalg.norm(v) > 0.1).map(lambda v: v / np.linalg.norm(v))
few = settings(max_examples=60, deadline=None)


def scipy_of(q: Any) -> Rotation:
    return Rotation.from_quat(quat.xyzw_from_wxyz(np.asarray(q)))


def tup(v: Any) -> tuple[float, ...]:
    return tuple(np.asarray(v, float).tolist())


def assert_same_turn(a: Any, b: Any, tolerance_rad: float = 1e-9) -> None:
    a, b = np.asarray(a), np.asarray(b)
    np.testing.assert_allclose(np.linalg.norm(a, axis=-1), 1.0, atol=1e-9)
    assert np.max(quat.angle(a, b)) <= tolerance_rad


# Each operation in both forms: whole arrays, and tuples inside kernels.
MULTIPLY: list[Callable[..., Any]] = [quat.multiply, lambda a, b: kq.qmul(tup(a), tup(b))]
ROTATE: list[Callable[..., Any]] = [quat.rotate, lambda q, v: kq.qrot(tup(q), tup(v))]
SLERP: list[Callable[..., Any]] = [quat.slerp, lambda a, b, t: kq.qslerp(tup(a), tup(b), float(t))]
ROTVEC: list[Callable[..., Any]] = [quat.to_rotvec, lambda q: kq.qlog(tup(q))]
FROM_ROTVEC: list[Callable[..., Any]] = [quat.from_rotvec, lambda v: kq.qexp(tup(v))]
ANGLE: list[Callable[..., Any]] = [quat.angle, lambda a, b: kq.qangle(tup(a), tup(b))]
UNIT: list[Callable[..., Any]] = [quat.normalize, lambda q: kq.qunit(tup(q))]
FROM_MATRIX: list[Callable[..., Any]] = [
    quat.from_matrix,
    lambda m: kq.qbasis(tup(m[:, 0]), tup(m[:, 1]), tup(m[:, 2])),
]
both = pytest.mark.parametrize


# ---- against scipy


@both("multiply", MULTIPLY)
@few
@given(a=unit_quats, b=unit_quats)
def test_a_product_turns_by_the_second_first(multiply: Any, a: Any, b: Any) -> None:
    assert_same_turn(multiply(a, b), quat.wxyz_from_xyzw((scipy_of(a) * scipy_of(b)).as_quat()))


@both("rotate", ROTATE)
@few
@given(q=unit_quats, v=vectors)
def test_turned_vectors_agree_with_scipy(rotate: Any, q: Any, v: Any) -> None:
    np.testing.assert_allclose(rotate(q, v), scipy_of(q).apply(v), atol=1e-12)


@both("to_rotvec", ROTVEC)
@few
@given(q=unit_quats)
def test_rotation_vectors_take_the_short_way(to_rotvec: Any, q: Any) -> None:
    result = np.asarray(to_rotvec(q))

    assert np.linalg.norm(result) <= np.pi + 1e-12
    assert_same_turn(quat.from_rotvec(result), q, 1e-7)
    if scipy_of(q).magnitude() < np.pi - 1e-6:
        np.testing.assert_allclose(result, scipy_of(q).as_rotvec(), atol=1e-9)


@both("from_rotvec", FROM_ROTVEC)
@few
@given(v=vectors)
def test_rotation_vectors_of_any_length_give_scipys_turn(from_rotvec: Any, v: Any) -> None:
    assert_same_turn(from_rotvec(v), quat.wxyz_from_xyzw(Rotation.from_rotvec(v).as_quat()))


@both("from_rotvec", FROM_ROTVEC)
@both("size", [0.0, 1e-300, 1e-12, 1e-9, 1e-6])
def test_tiny_rotation_vectors_are_not_lost(from_rotvec: Any, size: float) -> None:
    q = np.asarray(from_rotvec(np.array([0.0, size, 0.0])))

    np.testing.assert_allclose(q, [1.0, 0.0, 0.5 * size, 0.0], atol=1e-12, rtol=1e-9)


@both("angle", ANGLE)
@few
@given(a=unit_quats, b=unit_quats)
def test_the_angle_between_two_rotations_ignores_signs(angle: Any, a: Any, b: Any) -> None:
    expected = (scipy_of(a).inv() * scipy_of(b)).magnitude()

    assert angle(a, b) == pytest.approx(expected, abs=1e-7)
    assert angle(a, -b) == pytest.approx(expected, abs=1e-7)


@few
@given(q=unit_quats)
def test_matrices_agree_with_scipy(q: Any) -> None:
    np.testing.assert_allclose(quat.to_matrix(q), scipy_of(q).as_matrix(), atol=1e-12)


@both("from_matrix", FROM_MATRIX)
@few
@given(q=unit_quats)
def test_a_rotation_survives_the_way_through_its_matrix(from_matrix: Any, q: Any) -> None:
    assert_same_turn(from_matrix(scipy_of(q).as_matrix()), q, 1e-7)


def test_the_average_agrees_with_scipy_whatever_the_signs() -> None:
    rng = np.random.default_rng(3)
    near = quat.multiply(
        quat.from_rotvec(rng.normal(size=3)), quat.from_rotvec(0.3 * rng.normal(size=(20, 3)))
    )
    near *= rng.choice([-1.0, 1.0], size=(20, 1))

    assert_same_turn(quat.average(near), quat.wxyz_from_xyzw(scipy_of(near).mean().as_quat()), 1e-7)


@both("slerp", SLERP)
@few
@given(a=unit_quats, step=vectors.map(lambda v: 0.5 * v), t=st.floats(0.0, 1.0))
def test_slerp_goes_the_stated_part_of_the_way(slerp: Any, a: Any, step: Any, t: float) -> None:
    b = quat.multiply(a, quat.from_rotvec(step))

    expected = quat.multiply(a, quat.from_rotvec(quat.to_rotvec(quat.from_rotvec(step)) * t))

    assert_same_turn(slerp(a, b, t), expected, 1e-7)
    assert_same_turn(slerp(a, -b, t), expected, 1e-7)


# ---- Euler angles


@both("order", ORDERS)
@few
@given(q=unit_quats)
def test_euler_angles_of_every_order_give_the_rotation_back(order: str, q: Any) -> None:
    angles = quat.to_euler(order, q)

    assert_same_turn(quat.from_euler(order, angles), q, 1e-5)


@both("order", ORDERS)
@few
@given(angles=st.tuples(st.floats(-3.1, 3.1), st.floats(-1.5, 1.5), st.floats(-3.1, 3.1)))
def test_euler_angles_are_scipys_intrinsic_ones(order: str, angles: tuple[float, float, float]) -> None:
    expected = quat.wxyz_from_xyzw(Rotation.from_euler(order.upper(), angles).as_quat())

    assert_same_turn(quat.from_euler(order, np.array(angles)), expected)
    np.testing.assert_allclose(quat.to_euler(order, expected), angles, atol=1e-7)


@both("order", ORDERS)
@both("middle", [0.5 * np.pi, -0.5 * np.pi])
def test_euler_angles_at_the_lock_are_finite_and_right(order: str, middle: float) -> None:
    for first in np.linspace(-3.0, 3.0, 7):
        q = quat.from_euler(order, np.array([first, middle, 0.7]))
        for noisy in (q, q.astype(np.float32), q * 1.0000002):
            angles = quat.to_euler(order, noisy)

            assert np.isfinite(angles).all()
            assert_same_turn(quat.from_euler(order, angles), q, np.radians(0.05))


def test_c56_pitch_of_90_degrees_rounded_to_32_bit_gives_finite_angles() -> None:
    """Case C56: the sine comes out as 1.0000001 and its arc as NaN."""
    for sign in (1.0, -1.0):
        exact = quat.from_euler("yxz", np.array([np.radians(30.0), sign * 0.5 * np.pi, 0.0]))
        for scale in (1.0, 1.0000002):
            rounded = (exact.astype(np.float32) * np.float32(scale)).astype(np.float64)

            angles = quat.to_euler("yxz", rounded)

            assert np.isfinite(angles).all()
            assert_same_turn(quat.from_euler("yxz", angles), exact, np.radians(0.05))


# ---- half turns, double cover, zeros


@both("from_matrix", FROM_MATRIX)
def test_c17_half_turns_with_rounding_noise_become_quaternions(shared: Path, from_matrix: Any) -> None:
    """Case C17: a root of 1 + trace is negative by rounding, or zero and then divided by."""
    for case in json.loads((shared / "data" / "cases" / "c17_half_turns.json").read_text()):
        matrix = np.array(case["matrix"], float)
        expected = quat.wxyz_from_xyzw(np.array(case["quat_xyzw"], float))

        assert_same_turn(from_matrix(matrix[:, :3]), expected, np.radians(0.1))
        np.testing.assert_array_equal(Pose.from_matrix(matrix).translation, matrix[:, 3])


@both("from_matrix", FROM_MATRIX)
@few
@given(axis=unit_vectors, noise=st.integers(0, 2**32 - 1))
def test_half_turns_about_any_axis_survive_noise(from_matrix: Any, axis: Any, noise: int) -> None:
    exact = 2.0 * np.outer(axis, axis) - np.eye(3)
    matrix = exact + 1e-7 * np.random.default_rng(noise).normal(size=(3, 3))

    assert_same_turn(from_matrix(matrix), np.array([0.0, *axis]), 1e-5)


@both("slerp", SLERP)
def test_c53_slerp_of_a_sign_flipped_pair_takes_the_short_way(shared: Path, slerp: Any) -> None:
    """Case C53: 21 degrees apart, and not 339."""
    case = json.loads((shared / "data" / "cases" / "c53_double_cover.json").read_text())
    q0, q1, want = (
        quat.wxyz_from_xyzw(np.array(case[key], float)) for key in ("q0", "q1", "want_up_to_sign")
    )

    assert_same_turn(slerp(q0, q1, case["t"]), want, 1e-7)


@both("slerp", SLERP)
@both("axis", list(AXES.values()))
@both("sign", [1.0, -1.0])
def test_c55_slerp_across_a_half_turn_does_not_stop(slerp: Any, axis: Any, sign: float) -> None:
    """Case C55: a dot product of exactly zero must not drop the second rotation."""
    far = sign * np.array([0.0, *axis])

    middle = np.asarray(slerp(quat.identity(), far, 0.5))

    assert quat.angle(quat.identity(), middle) == pytest.approx(0.5 * np.pi)
    assert quat.angle(middle, far) == pytest.approx(0.5 * np.pi)


@both("unit", UNIT)
@both("bad", [(0.0, 0.0, 0.0, 0.0), (np.nan, 0.0, 0.0, 1.0), (np.inf, 0.0, 0.0, 0.0)])
def test_c58_what_is_no_rotation_becomes_the_identity(unit: Any, bad: Any) -> None:
    """Case C58: a device sends (0, 0, 0, 0) once, and every pose is NaN from then on."""
    np.testing.assert_array_equal(unit(np.array(bad)), [1.0, 0.0, 0.0, 0.0])


def test_c58_a_zero_quaternion_in_a_file_is_not_a_rotation(shared: Path) -> None:
    samples = json.loads((shared / "data" / "cases" / "c58_zero_quat.json").read_text())
    q = quat.wxyz_from_xyzw(np.array([s["quat"] for s in samples], float))

    assert quat.is_rotation(q).tolist() == [False, True]


def test_placeholders_are_not_rotations() -> None:
    """Real recordings hold zeros, (-1, -1, -1, -1), NaN and huge numbers where nothing was tracked."""
    rows = np.array([[0, 0, 0, 0], [-1, -1, -1, -1], [np.nan, 0, 0, 1], [1e300, 0, 0, 0], [1.01, 0, 0, 0]])

    assert quat.is_rotation(rows).tolist() == [False, False, False, False, True]


def test_a_stream_of_flipped_signs_becomes_continuous() -> None:
    turns = quat.from_rotvec(np.linspace(0.0, 12.0, 200)[:, None] * np.array([0.0, 1.0, 0.0]))
    flipped = turns * np.random.default_rng(1).choice([-1.0, 1.0], size=(200, 1))

    smooth = quat.continuous(flipped)

    assert np.sum(smooth[1:] * smooth[:-1], axis=1).min() > 0.9
    assert_same_turn(smooth, turns, 1e-7)
    np.testing.assert_array_equal(smooth[0], flipped[0])


def test_orders_of_components_are_inverse_of_each_other() -> None:
    q = np.array([[1.0, 2.0, 3.0, 4.0]])

    np.testing.assert_array_equal(quat.xyzw_from_wxyz(q), [[2.0, 3.0, 4.0, 1.0]])
    np.testing.assert_array_equal(quat.wxyz_from_xyzw(quat.xyzw_from_wxyz(q)), q)


# ---- what only kernels have


@few
@given(a=unit_vectors, b=unit_vectors)
def test_the_smallest_arc_takes_one_direction_onto_the_other(a: Any, b: Any) -> None:
    q = kq.qarc(tup(a), tup(b))

    np.testing.assert_allclose(quat.rotate(np.array(q), a), b, atol=1e-6)
    assert scipy_of(q).magnitude() == pytest.approx(np.arccos(np.clip(a @ b, -1.0, 1.0)), abs=1e-4)


@few
@given(a=unit_vectors, off=vectors)
def test_the_arc_between_nearly_opposite_directions_is_a_half_turn(a: Any, off: Any) -> None:
    for size in (0.0, 1e-12, 1e-9, 1e-6, 1e-4, 1e-3):
        b = -a + size * off
        b /= np.linalg.norm(b)

        q = kq.qarc(tup(a), tup(b))

        np.testing.assert_allclose(np.linalg.norm(q), 1.0, atol=1e-9)
        np.testing.assert_allclose(quat.rotate(np.array(q), a), b, atol=1e-4)


@few
@given(q=unit_quats, axis=unit_vectors)
def test_swing_and_twist_give_the_rotation_back(q: Any, axis: Any) -> None:
    twist = np.array(kq.qtwist(tup(q), tup(axis)))
    swing = quat.multiply(q, quat.conjugate(twist))

    assert_same_turn(quat.multiply(swing, twist), q, 1e-7)
    assert np.linalg.norm(np.cross(twist[1:], axis)) < 1e-9
    if abs(q[0]) + abs(q[1:] @ axis) > 1e-3:
        assert abs(swing[1:] @ axis) < 1e-6
        assert_same_turn(twist, quat.from_rotvec(axis * kq.qtwist_angle(tup(q), tup(axis))), 1e-7)
    assert abs(kq.qtwist_angle(tup(q), tup(axis))) <= np.pi + 1e-12


@few
@given(q=unit_quats, axis=unit_vectors, side=unit_vectors)
def test_alignment_recovers_the_turn_of_two_directions(q: Any, axis: Any, side: Any) -> None:
    if np.linalg.norm(np.cross(axis, side)) < 0.05:
        return

    result = kq.qalign(tup(axis), tup(side), tup(quat.rotate(q, axis)), tup(quat.rotate(q, side)))

    assert_same_turn(result, q, 1e-6)


@few
@given(axis=unit_vectors, goal=unit_vectors)
def test_alignment_with_a_side_along_the_axis_still_meets_the_axis(axis: Any, goal: Any) -> None:
    result = np.array(kq.qalign(tup(axis), tup(axis), tup(goal), tup(goal)))

    assert np.isfinite(result).all()
    np.testing.assert_allclose(quat.rotate(result, axis), goal, atol=1e-6)


@both("yaw", np.linspace(-3.0, 3.0, 13))
@both("pitch", [-1.5, -1.2, -0.5, 0.0, 0.5, 1.2, 1.5])
def test_heading_is_the_yaw_at_any_pitch(yaw: float, pitch: float) -> None:
    """Also face down and face up, where the forward axis says nothing."""
    q = quat.from_euler("yx", np.array([yaw, pitch]))

    assert kq.qyaw(tup(q)) == pytest.approx(yaw, abs=1e-9)
    assert_same_turn(kq.qturn(yaw), quat.from_rotvec(np.array([0.0, yaw, 0.0])))


@few
@given(q=unit_quats, reference=unit_quats)
def test_the_nearer_sign_is_the_same_rotation(q: Any, reference: Any) -> None:
    near = np.array(kq.qnear(tup(q), tup(reference)))

    assert near @ reference >= 0.0
    assert_same_turn(near, q, 1e-7)


@few
@given(a=unit_quats, b=unit_quats)
def test_mirrored_rotations_have_the_mirrored_product(a: Any, b: Any) -> None:
    """In the mirror x -> -x a rotation (w, x, y, z) is (w, x, -y, -z)."""
    mirror = np.array([1.0, 1.0, -1.0, -1.0])

    np.testing.assert_allclose(
        quat.multiply(a * mirror, b * mirror), quat.multiply(a, b) * mirror, atol=1e-12
    )
