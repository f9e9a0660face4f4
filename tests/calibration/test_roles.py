"""Which device is worn as what: geometry first, hints unless contradicted, odd devices left out and named."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from calibration import nominal
from calibration.parts import choose
from calibration.roles import assign
from calibration.samples import take
from vrik import quat
from vrik.body import BodyModel
from vrik.errors import CalibrationError
from vrik.frames import ROLE, ROLE_BONES, DeviceClass, TrackedDevice, TrackerSequence
from vrik.pose import Pose

BODY = BodyModel.average(1.75)
N = 300
CLASS = {"head": DeviceClass.HMD, "left_hand": DeviceClass.CONTROLLER, "right_hand": DeviceClass.CONTROLLER}
SIX = ("head", "left_hand", "right_hand", "waist", "left_foot", "right_foot")
TEN = (*SIX, "left_knee", "right_knee", "left_elbow", "right_elbow")

Track = tuple[TrackedDevice, np.ndarray]


def walker(roles: tuple[str, ...], hints: Mapping[str, str] | None = None) -> list[Track]:
    """Devices of somebody who shuffles along a circle in a T-pose; serial numbers say nothing."""
    tracks = []
    angle = np.linspace(0.0, 1.5 * np.pi, N)
    for k, role in enumerate(roles):
        path = np.empty((N, 7))
        place = nominal(role, BODY)
        place = Pose(place.rotation, place.translation + BODY.tpose[ROLE_BONES[ROLE[role]]])
        for i, a in enumerate(angle):
            T = Pose.from_yaw(a, np.array([2.0 * np.sin(a), 0.01 * np.sin(9.0 * a), 2.0 * np.cos(a)])) @ place
            path[i] = (*T.translation, *T.rotation)
        device = TrackedDevice(
            f"D{(7 * k + 3) % 11}",
            CLASS.get(role, DeviceClass.GENERIC_TRACKER),
            (hints or {}).get(role, ""),
        )
        tracks.append((device, path))
    return tracks


def sequence(tracks: list[Track]) -> TrackerSequence:
    paths = np.stack([path for _, path in tracks], axis=1)
    return TrackerSequence.build(
        np.arange(N) * 33_333_333,
        [device for device, _ in tracks],
        paths[..., :3],
        paths[..., 3:],
        np.ones(paths.shape[:2], bool),
    )


def lying(serial: str, device_class: DeviceClass, at: tuple[float, float, float]) -> Track:
    return TrackedDevice(serial, device_class), np.tile([*at, 1.0, 0.0, 0.0, 0.0], (N, 1))


@pytest.mark.parametrize("seed", range(4))
def test_file_order_plays_no_part(seed: int) -> None:
    tracks = walker(TEN)
    truth = {device.serial: role for (device, _), role in zip(tracks, TEN, strict=True)}
    order = np.random.default_rng(seed).permutation(len(TEN))

    found = assign(take(sequence([tracks[i] for i in order])))

    assert found.roles == truth


def test_serials_keep_their_roles_when_indices_swap(shared: Path) -> None:
    """C19: two foot trackers change their device index in mid-session."""
    file = shared / "data" / "cases" / "c19_index_swap.jsonl"
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    serials = ("RIGHTFOOT", "LEFTFOOT")
    position = np.zeros((len(rows), 3, 3))
    position[:, 2] = (0.0, 1.6, 0.0)
    for i, row in enumerate(rows):
        for device in row["devices"]:
            position[i, serials.index(device["serial"])] = device["pos"]
    devices = [TrackedDevice(s, DeviceClass.GENERIC_TRACKER) for s in serials]
    devices.append(TrackedDevice("HEAD", DeviceClass.HMD))
    frames = TrackerSequence.build(
        np.arange(len(rows)) * 11_111_111,
        devices,
        position,
        quat.identity(len(rows), 3),
        np.ones((len(rows), 3), bool),
    )

    found = assign(take(frames))

    assert found.roles["LEFTFOOT"] == "left_foot"
    assert found.roles["RIGHTFOOT"] == "right_foot"


def test_a_wrong_hint_for_the_sides_is_overruled_and_reported() -> None:
    swapped = {"left_hand": "right_hand", "right_hand": "left_hand"}
    tracks = walker(SIX, swapped)

    found = assign(take(sequence(tracks)))

    assert [found.roles[tracks[i][0].serial] for i in (1, 2)] == ["left_hand", "right_hand"]
    assert any("swapped" in note for note in found.notes)


def test_a_right_hint_stays_while_hands_are_crossed() -> None:
    """Crossed in two of three frames is no proof against the runtime."""
    tracks = walker(SIX[:3], {"left_hand": "left_hand", "right_hand": "right_hand"})
    left, right = tracks[1][1], tracks[2][1]
    crossed = slice(0, 2 * N // 3)
    left[crossed], right[crossed] = right[crossed].copy(), left[crossed].copy()

    found = assign(take(sequence(tracks)))

    assert found.roles[tracks[1][0].serial] == "left_hand"
    assert not any("swapped" in note for note in found.notes)


def test_what_the_user_says_wins() -> None:
    tracks = walker(SIX)
    waist, foot = tracks[3][0].serial, tracks[4][0].serial

    found = assign(take(sequence(tracks)), chosen={waist: "chest", foot: ""})

    assert found.roles[waist] == "chest"
    assert foot not in found.roles
    assert any(foot in note and "as asked" in note for note in found.notes)


def test_a_wrong_role_map_is_refused() -> None:
    samples = take(sequence(walker(SIX)))

    with pytest.raises(CalibrationError, match="no role 'tail'"):
        assign(samples, chosen={"D3": "tail"})
    with pytest.raises(CalibrationError, match="given to two devices"):
        assign(samples, chosen={"D3": "chest", "D10": "chest"})


def test_odd_devices_are_left_out_and_named() -> None:
    """S21: base station, tracker on the desk, spare controller, second headset, virtual camera."""
    tracks = walker(SIX)
    odd = [
        lying("BASE", DeviceClass.TRACKING_REFERENCE, (1.0, 2.2, 1.0)),
        lying("DESK", DeviceClass.GENERIC_TRACKER, (0.5, 0.7, 3.0)),
        lying("SPARE", DeviceClass.CONTROLLER, (0.5, 0.7, 3.0)),
        lying("SHELF", DeviceClass.HMD, (0.5, 1.9, 3.0)),
        (TrackedDevice("CAMERA", DeviceClass.GENERIC_TRACKER, "camera"), tracks[0][1] + 0.1),
    ]
    truth = {device.serial: role for (device, _), role in zip(tracks, SIX, strict=True)}

    found = assign(take(sequence(odd + tracks)))

    assert found.roles == truth
    said = " ".join(found.notes)
    assert all(device.serial in said for device, _ in odd)


def test_one_controller_gets_the_side_it_is_on() -> None:
    tracks = walker(("head", "right_hand"))

    found = assign(take(sequence(tracks)))

    assert found.roles[tracks[1][0].serial] == "right_hand"


def test_parts_are_chosen_together() -> None:
    """A lone belt is a waist, two things on the body's axis are waist and chest, a shin is no foot."""
    assert choose([(0.60, 0.01)]) == ["waist"]
    assert choose([(0.74, 0.0), (0.58, 0.02)]) == ["chest", "waist"]
    assert choose([(0.29, 0.08), (0.28, 0.07), (0.05, 0.1), (0.06, 0.1)]) == ["knee", "knee", "foot", "foot"]
    assert choose([(1.3, 0.4)]) == [""]
    assert choose([(0.58, 0.0)], {"waist": 0}) == [""]
