"""Axis conversions and the final form of samples."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from recordings.importers.axes import (
    SignFlips,
    device_for_role,
    is_measured,
    nanoseconds,
    openvr_from_unity,
    rows_of,
    sign_flips,
    tell_sign_flips,
    tracker_sequence,
)
from vrik import quat
from vrik.frames import DeviceClass

points = arrays(np.float64, 3, elements=st.floats(-10.0, 10.0))
rotations = arrays(np.float64, 3, elements=st.floats(-3.0, 3.0)).map(quat.from_rotvec)

HEAD = device_for_role("head", "HEAD")


def unity_rotate(q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Unity turns vectors with the same Hamilton formula, read in left-handed axes."""
    return quat.rotate(q, v)


def test_identity_stays_identity() -> None:
    _, rotation = openvr_from_unity(np.zeros(3), quat.identity())

    np.testing.assert_allclose(rotation, quat.identity())


def test_a_turn_to_the_right_in_unity_looks_to_the_right_in_openvr() -> None:
    """Yaw +90 degrees about Unity's Y looks at +X; in OpenVR that is yaw -90 degrees, and still +X."""
    yaw_90 = quat.from_rotvec(np.array([0.0, np.pi / 2, 0.0]))

    _, rotation = openvr_from_unity(np.zeros(3), yaw_90)

    np.testing.assert_allclose(quat.to_rotvec(rotation), [0.0, -np.pi / 2, 0.0], atol=1e-12)
    np.testing.assert_allclose(quat.rotate(rotation, np.array([0.0, 0.0, -1.0])), [1.0, 0.0, 0.0], atol=1e-12)


def test_the_right_stays_on_the_right_and_the_front_in_front() -> None:
    in_unity = np.array([0.3, 1.2, 0.5])  # right, up, in front

    position, _ = openvr_from_unity(in_unity, quat.identity())

    np.testing.assert_allclose(position, [0.3, 1.2, -0.5])


@given(points, rotations)
def test_the_unity_conversion_is_its_own_inverse(position: np.ndarray, rotation: np.ndarray) -> None:
    there = openvr_from_unity(position, rotation)
    back_position, back_rotation = openvr_from_unity(*there)

    np.testing.assert_allclose(back_position, position)
    np.testing.assert_allclose(back_rotation, rotation)


@given(points, rotations, points)
def test_turning_then_converting_equals_converting_then_turning(
    position: np.ndarray, rotation: np.ndarray, arm: np.ndarray
) -> None:
    """The one property that fixes both signs: a point fixed to a device stays fixed to it."""
    tip_unity = position + unity_rotate(rotation, arm)

    tip, _ = openvr_from_unity(tip_unity, rotation)
    place, turn = openvr_from_unity(position, rotation)
    arm_openvr, _ = openvr_from_unity(arm, rotation)

    np.testing.assert_allclose(place + quat.rotate(turn, arm_openvr), tip, atol=1e-9)


@pytest.mark.parametrize(
    ("role", "kind"),
    [
        ("head", DeviceClass.HMD),
        ("left_hand", DeviceClass.CONTROLLER),
        ("right_hand", DeviceClass.CONTROLLER),
        ("waist", DeviceClass.GENERIC_TRACKER),
        ("", DeviceClass.GENERIC_TRACKER),
    ],
)
def test_each_role_gets_its_usual_device(role: str, kind: DeviceClass) -> None:
    assert device_for_role(role, "S").device_class == kind


@pytest.mark.parametrize(
    ("position", "rotation"),
    [
        ([0.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]),
        ([0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 0.0]),
        ([0.0, 1.0, 0.0], [-1.0, -1.0, -1.0, -1.0]),
        ([0.0, np.nan, 0.0], [1.0, 0.0, 0.0, 0.0]),
        ([0.0, np.inf, 0.0], [1.0, 0.0, 0.0, 0.0]),
        ([0.0, 1e30, 0.0], [1.0, 0.0, 0.0, 0.0]),
        ([0.0, 1.0, 0.0], [np.nan, 0.0, 0.0, 1.0]),
    ],
)
def test_placeholders_and_garbage_are_no_measurement(position: list[float], rotation: list[float]) -> None:
    assert not is_measured(np.array(position), np.array(rotation))


def test_an_ordinary_pose_is_a_measurement() -> None:
    assert is_measured(np.array([0.0, 1.7, 0.0]), np.array([0.0, 0.0, 1.0, 0.0]))


def test_samples_that_are_not_valid_are_nan_and_identity_and_do_not_disturb_the_signs() -> None:
    q = quat.from_rotvec(np.array([0.0, 2.0, 0.0]))
    rotation = np.array([q, -q, np.zeros(4), -q])[:, None]
    valid = np.array([True, True, False, True])[:, None]

    frames = tracker_sequence(np.arange(4), [HEAD], np.ones((4, 1, 3)), rotation, valid)

    np.testing.assert_allclose(frames.rotation[:, 0], [q, q, quat.identity(), q])
    assert np.isnan(frames.position[2]).all()
    assert np.isfinite(frames.position[[0, 1, 3]]).all()


@settings(max_examples=50)
@given(arrays(np.float64, (12, 2, 4), elements=st.floats(-1.0, 1.0)), arrays(np.bool_, (12, 2)))
def test_rotations_that_leave_an_importer_are_unit_and_continuous(
    rotation: np.ndarray, valid: np.ndarray
) -> None:
    valid = valid & (np.linalg.norm(rotation, axis=-1) > 0.1)

    frames = tracker_sequence(np.arange(12), [HEAD, HEAD], np.ones((12, 2, 3)), rotation, valid)

    np.testing.assert_allclose(np.linalg.norm(frames.rotation, axis=-1), 1.0)
    for k in range(2):
        seen = frames.rotation[valid[:, k], k]
        assert (np.sum(seen[1:] * seen[:-1], axis=-1) >= -1e-12).all()


@settings(max_examples=50)
@given(arrays(np.float64, (12, 2, 4), elements=st.floats(-1.0, 1.0)), arrays(np.bool_, (12, 2)))
def test_sign_flips_are_those_that_a_walk_through_the_file_meets(q: np.ndarray, valid: np.ndarray) -> None:
    met = 0
    for k in range(2):
        last = None
        for row in np.flatnonzero(valid[:, k]):
            met += last is not None and float(q[row, k] @ last) < 0.0
            last = q[row, k]

    stated = np.where(valid[..., None], q, np.nan)
    in_blocks = SignFlips(2)
    for begin in range(0, 12, 5):
        in_blocks.add(stated[begin : begin + 5], valid[begin : begin + 5])

    assert sign_flips(stated, valid) == met
    assert in_blocks.count == met


def test_sign_flips_are_told_only_where_there_are_some() -> None:
    counts: dict[str, int] = {}
    notes: list[str] = []

    tell_sign_flips(0, counts, notes)
    assert (counts, notes) == ({}, [])
    tell_sign_flips(3, counts, notes)

    assert counts == {"sign flips": 3}
    assert notes[0].startswith("quaternions change sign between neighbours 3 times (the same rotation)")


@given(
    st.lists(
        st.one_of(st.floats(-5.0, 1e6), st.sampled_from([np.nan, np.inf, -np.inf, 1e30])),
        min_size=1,
        max_size=30,
    )
)
def test_times_never_go_back_whatever_the_file_holds(times: list[float]) -> None:
    time_ns, replaced = nanoseconds(np.array(times))

    assert (np.diff(time_ns) >= 0).all()
    assert 0 <= replaced <= len(times)


def test_times_that_stand_still_are_kept_and_times_that_step_back_are_counted() -> None:
    time_ns, replaced = nanoseconds(np.array([0.0, 0.0, 0.5, 0.4, np.nan, 0.6]))

    assert time_ns.tolist() == [0, 0, 500_000_000, 500_000_000, 500_000_000, 600_000_000]
    assert replaced == 2


def test_times_before_the_first_good_one_are_that_one() -> None:
    time_ns, replaced = nanoseconds(np.array([np.nan, 1e30, 2.0, 2.5]))

    assert time_ns.tolist() == [2_000_000_000, 2_000_000_000, 2_000_000_000, 2_500_000_000]
    assert replaced == 2


@pytest.mark.parametrize("value", [None, "text", [[1, 2], [3]], np.zeros((2, 2)), {"a": 1}, [10**400, 0, 0]])
def test_what_has_another_shape_is_no_row(value: object) -> None:
    assert rows_of((3,), value) is None
