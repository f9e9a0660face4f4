"""Frames and sequences of frames keep their shapes, their times and their identity."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from vrik import quat
from vrik.frames import (
    ROLE,
    ROLE_BONES,
    ROLES,
    DeviceClass,
    TrackedDevice,
    TrackerSequence,
    TrackingResult,
)
from vrik.skeleton import BONES

DEVICES = (TrackedDevice("A", DeviceClass.HMD, "head"), TrackedDevice("B", DeviceClass.CONTROLLER))


def sequence(n: int = 4, **changes: Any) -> TrackerSequence:
    rng = np.random.default_rng(0)
    values: dict[str, Any] = {
        "time_ns": np.arange(n) * 10_000_000,
        "devices": DEVICES,
        "position": rng.normal(size=(n, 2, 3)),
        "rotation": quat.identity(n, 2),
        "valid": np.tile([True, False], (n, 1)),
        "result": np.full((n, 2), 200),
        "linear_velocity": rng.normal(size=(n, 2, 3)),
        "player_id": "p7",
        "space_id": "hall",
        **changes,
    }
    return TrackerSequence(**values)


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("position", (4, 3, 3)),
        ("position", (4, 2)),
        ("rotation", (4, 2, 3)),
        ("valid", (4,)),
        ("result", (3, 2)),
        ("linear_velocity", (4, 3)),
        ("angular_velocity", (4, 2, 4)),
    ],
)
def test_arrays_that_do_not_fit_the_devices_and_times_are_refused(name: str, shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=f"{name} has shape"):
        sequence(**{name: np.zeros(shape)})


def test_frames_are_the_rows_with_player_and_space() -> None:
    whole = sequence()

    frames = list(whole)

    assert len(frames) == len(whole) == 4
    assert [f.host_time_ns for f in frames] == [0, 10_000_000, 20_000_000, 30_000_000]
    assert all(f.devices is DEVICES for f in frames)
    assert {(f.player_id, f.space_id) for f in frames} == {("p7", "hall")}
    np.testing.assert_array_equal(frames[2].position, whole.position[2])
    assert whole.linear_velocity is not None
    assert frames[2].linear_velocity is not None
    np.testing.assert_array_equal(frames[2].linear_velocity, whole.linear_velocity[2])
    assert frames[2].angular_velocity is None


@pytest.mark.parametrize("rows", [slice(1, 3), np.array([1, 2]), np.array([False, True, True, False])])
def test_a_part_holds_the_chosen_rows_of_everything(rows: Any) -> None:
    part = sequence().part(rows)

    assert part.time_ns.tolist() == [10_000_000, 20_000_000]
    assert part.position.shape == (2, 2, 3)
    assert part.linear_velocity is not None
    assert part.linear_velocity.shape == (2, 2, 3)
    assert (part.player_id, part.space_id) == ("p7", "hall")


def test_build_derives_results_from_validity() -> None:
    made = TrackerSequence.build(
        np.array([0]), list(DEVICES), np.zeros((1, 2, 3)), quat.identity(1, 2), np.array([[True, False]])
    )

    assert made.result.tolist() == [[TrackingResult.RUNNING_OK, TrackingResult.RUNNING_OUT_OF_RANGE]]


def test_rate_and_duration_come_from_the_times() -> None:
    """Repeated times, as real files have them, do not count as steps."""
    times = np.array([0, 0, 0, 20, 40, 60]) * 1_000_000

    whole = sequence(6, time_ns=times)

    assert whole.rate_hz == pytest.approx(50.0)
    assert whole.duration_s == pytest.approx(0.06)


@pytest.mark.parametrize("n", [0, 1])
def test_a_sequence_too_short_to_have_a_rate_says_zero(n: int) -> None:
    assert sequence(n).rate_hz == 0.0
    assert sequence(n).duration_s == 0.0


def test_each_role_rides_on_the_bone_it_moves() -> None:
    bones = {role: BONES[ROLE_BONES[ROLE[role]]] for role in ROLES}

    assert bones["head"] == "head"
    assert bones["waist"] == "hips"
    assert bones["left_hand"] == "leftHand"
    assert bones["left_elbow"] == "leftUpperArm"
    assert bones["right_knee"] == "rightUpperLeg"
    assert len(set(bones.values())) == len(ROLES) == 13


def test_device_classes_and_results_have_openvrs_numbers() -> None:
    assert [c.value for c in DeviceClass] == [0, 1, 2, 3, 4, 5]
    assert {r.name: r.value for r in TrackingResult} == {
        "UNINITIALIZED": 1,
        "CALIBRATING_IN_PROGRESS": 100,
        "CALIBRATING_OUT_OF_RANGE": 101,
        "RUNNING_OK": 200,
        "RUNNING_OUT_OF_RANGE": 201,
        "FALLBACK_ROTATION_ONLY": 300,
    }
