"""The OpenVR tracking dump: odd unit, Z up, a tracker on the head, and files that are cut."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from calibration import calibrate
from recordings import open_recording, read_all
from recordings.base import LoadedRecording
from recordings.importers.openvr_json import OpenVrJsonImporter
from vrik import quat
from vrik.errors import DamagedRecordingError, RecordingError
from vrik.frames import DeviceClass
from vrik.pipeline import Pipeline, solve_all
from vrik.skeleton import bone_lengths

FILE = "data/vr/openvr_json/simple_tracking_2min.json"
C = np.array([[-1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, 1.0, 0.0]])


def open_json(path: Path) -> LoadedRecording:
    recording = OpenVrJsonImporter().open(path)
    return LoadedRecording(recording.info, read_all(recording))


@pytest.fixture(scope="module")
def session(shared: Path) -> LoadedRecording:
    return open_json(shared / FILE)


def device(name: str, place: Any, turn: Rotation, color: str, unit: float = 0.28) -> dict[str, Any]:
    """As the program writes it: C * p over the unit, and the angles of C * R."""
    return {
        "position": (C @ np.asarray(place) / unit).tolist(),
        "rotation": Rotation.from_matrix(C @ turn.as_matrix()).as_euler("xyz", degrees=True).tolist(),
        "color": color,
        "name": name,
    }


def write(path: Path, frames: list[Any]) -> Path:
    path.write_text(json.dumps(frames))
    return path


def test_the_real_session_has_its_rate_length_and_devices(session: LoadedRecording) -> None:
    frames = session.frames

    assert len(frames) == 3731
    assert frames.rate_hz == pytest.approx(32.26, abs=0.01)
    assert frames.duration_s == pytest.approx(116.9, abs=0.05)
    assert [(d.serial, d.role, d.device_class) for d in session.info.devices] == [
        ("Left Hand", "left_hand", DeviceClass.CONTROLLER),
        ("Right Hand", "right_hand", DeviceClass.CONTROLLER),
        ("Head", "head", DeviceClass.GENERIC_TRACKER),
    ]
    assert frames.valid.all()
    assert session.info.counts == {}


def test_a_frame_has_the_sum_of_the_steps_before_it(shared: Path, session: LoadedRecording) -> None:
    steps = [row[0] for row in json.loads((shared / FILE).read_text())]

    assert (session.frames.time_ns == np.cumsum([0, *steps[:-1]]) * 1_000_000).all()
    assert (min(steps), max(steps)) == (21, 34)


def test_the_unit_is_told_and_gives_a_person(session: LoadedRecording) -> None:
    """5.94 in the file: 1.66 m with the 0.28 m of the program that wrote it."""
    heights = session.frames.position[:, 2, 1]

    assert heights.max() == pytest.approx(5.9414 * 0.28, abs=0.002)
    assert np.percentile(heights, 95.0) == pytest.approx(1.655, abs=0.003)
    assert any("0.28 m" in note for note in session.info.notes)


def test_up_and_left_are_where_they_were(session: LoadedRecording) -> None:
    """Height is the file's third number; the left hand is left in the head's frame and hangs mostly."""
    frames = session.frames
    inverse = quat.conjugate(frames.rotation[:, 2])
    left, right = (quat.rotate(inverse, frames.position[:, k] - frames.position[:, 2]) for k in (0, 1))

    assert np.mean(right[:, 0] > left[:, 0]) > 0.95
    assert np.median(left[:, 0]) < -0.15
    assert np.median(right[:, 0]) > 0.1
    assert np.median(frames.position[:, 0, 1]) == pytest.approx(0.715, abs=0.01)
    assert quat.rotate(frames.rotation[:, 2], np.array([0.0, 1.0, 0.0]))[:, 1].mean() > 0.95


def test_the_tracker_on_the_head_is_turned_to_a_headset_by_one_constant_and_it_is_told(
    shared: Path, session: LoadedRecording
) -> None:
    """Undone against scipy: what is left over must be the same turn in every frame."""
    angles = np.array([row[1][2]["rotation"] for row in json.loads((shared / FILE).read_text())])
    strapped = Rotation.from_matrix(C.T @ Rotation.from_euler("xyz", angles, degrees=True).as_matrix())
    ours = Rotation.from_quat(quat.xyzw_from_wxyz(session.frames.rotation[:, 2]))

    turn = strapped.inv() * ours

    assert np.degrees((turn[0].inv() * turn).magnitude()).max() < 1e-6
    assert np.degrees(turn[0].magnitude()) > 60.0
    assert any("Head is a tracker" in note and "degrees from upright" in note for note in session.info.notes)


def test_the_real_session_solves_to_a_body_of_constant_lengths(session: LoadedRecording) -> None:
    calibration = calibrate(session.frames)

    poses = solve_all(Pipeline(calibration), session.frames.part(slice(0, 900)))

    assert set(calibration.roles.values()) == {"head", "left_hand", "right_hand"}
    assert 1.65 < calibration.body.stature_m < 1.85
    assert np.isfinite(poses.position).all()
    assert np.isfinite(poses.rotation).all()
    lengths = np.array([bone_lengths(p) for p in poses.position])
    np.testing.assert_allclose(
        lengths, np.broadcast_to(bone_lengths(calibration.body.tpose), lengths.shape), atol=1e-9
    )
    assert np.nanmean(poses.reach_error_m[:, 1:3]) < 0.01


def test_position_and_rotation_of_openvr_come_back(tmp_path: Path) -> None:
    turns = Rotation.random(6, random_state=3)
    places = np.random.default_rng(3).uniform([-1, 1.5, -1], [1, 1.7, 1], (6, 3))
    frames = [[20, [device("Headset", p, t, "k")]] for p, t in zip(places, turns, strict=True)]

    recording = open_json(write(tmp_path / "a.json", frames))

    np.testing.assert_allclose(recording.frames.position[:, 0], places, atol=1e-12)
    expected = quat.wxyz_from_xyzw(turns.as_quat())
    assert quat.angle(recording.frames.rotation[:, 0], expected).max() < 1e-7
    assert recording.info.devices[0].device_class == DeviceClass.HMD


@pytest.mark.parametrize("seed", range(4))
def test_a_tracker_strapped_on_anyhow_comes_out_as_a_headset(tmp_path: Path, seed: int) -> None:
    strap = Rotation.random(random_state=seed)
    frames = []
    for i in range(60):
        yaw = Rotation.from_euler("y", 6.0 * i, degrees=True)
        hands = [yaw.apply([x, 1.2, -0.4]) for x in (-0.2, 0.2)]
        frames.append(
            [20, [
                device("Head", [0.0, 1.6, 0.0], yaw * strap, "g"),
                device("Left Hand", hands[0], yaw, "r"),
                device("Right Hand", hands[1], yaw, "b"),
            ]]
        )  # fmt: skip

    turned = open_json(write(tmp_path / "a.json", frames)).frames.rotation

    assert np.degrees(quat.angle(turned[:, 0], turned[:, 1])).max() < 1e-6


def test_a_file_in_metres_is_read_as_it_is_and_it_is_told(tmp_path: Path) -> None:
    frames = [[20, [device("Head", [0.1, 1.6, 0.2], Rotation.identity(), "k", unit=1.0)]]] * 3

    recording = open_json(write(tmp_path / "a.json", frames))

    np.testing.assert_allclose(recording.frames.position[0, 0], [0.1, 1.6, 0.2])
    assert len(recording.info.notes) == 1
    assert "unit is taken to be the metre: the head, 1.60 in the file" in recording.info.notes[0]


@pytest.mark.parametrize(("unit", "name"), [(0.01, "the centimetre"), (0.001, "the millimetre")])
def test_a_file_in_centimetres_or_millimetres_is_known_by_the_head_and_it_is_told(
    tmp_path: Path, unit: float, name: str
) -> None:
    frames = [[20, [device("Head", [0.1, 1.6, 0.2], Rotation.identity(), "k", unit=unit)]]] * 3

    recording = open_json(write(tmp_path / "a.json", frames))

    np.testing.assert_allclose(recording.frames.position[0, 0], [0.1, 1.6, 0.2])
    (note,) = recording.info.notes
    assert f"unit is taken to be {name}" in note
    assert f"positions are multiplied by {unit:g}" in note


def test_the_highest_device_stands_for_a_head_that_is_not_there(tmp_path: Path) -> None:
    hands = [
        device(f"{side} Hand", [0.2, height, 0.0], Rotation.identity(), "r", unit=0.01)
        for side, height in (("Left", 0.6), ("Right", 1.2))
    ]

    recording = open_json(write(tmp_path / "a.json", [[20, hands]]))

    np.testing.assert_allclose(recording.frames.position[0, :, 1], [0.6, 1.2])
    assert "the highest device, 120.00 in the file" in recording.info.notes[0]


@pytest.mark.parametrize(("height", "told"), [(20.0, "no unit that is known"), (1.6 / 0.28, "feet")])
def test_a_unit_that_may_be_another_is_told_with_the_way_out(
    tmp_path: Path, height: float, told: str
) -> None:
    frames = [[20, [device("Head", [0.0, height, 0.0], Rotation.identity(), "k", unit=1.0)]]]

    recording = open_json(write(tmp_path / "a.json", frames))

    assert recording.frames.position[0, 0, 1] == pytest.approx(height * 0.28)
    assert "positions are multiplied by 0.28" in recording.info.notes[0]
    assert told in recording.info.notes[1]
    assert "bring" in recording.info.notes[1]
    assert "positions to metres" in recording.info.notes[1]


def test_a_number_without_end_loses_nothing_before_it(tmp_path: Path) -> None:
    head = device("Head", [0.0, 1.6, 0.0], Rotation.identity(), "k")
    text = json.dumps([[20, [head]]] * 3)
    (tmp_path / "a.json").write_text(text[:-1] + ", [" + "9" * 5000 + ", []]]")

    recording = open_json(tmp_path / "a.json")

    assert len(recording.frames) == 3
    assert recording.info.notes[0].startswith("the file is cut or broken")


def test_a_file_with_a_name_for_each_frame_is_one_sentence(tmp_path: Path) -> None:
    frames = [[20, [device(f"Head {i}", [0.0, 1.6, 0.0], Rotation.identity(), "k")]] for i in range(65)]

    with pytest.raises(RecordingError, match="more than 64 devices"):
        open_json(write(tmp_path / "a.json", frames))


def test_a_device_that_is_off_or_missing_is_not_valid_and_counted(tmp_path: Path) -> None:
    head = device("Head", [0.0, 1.6, 0.0], Rotation.identity(), "k")
    off = {"position": [0, 0, 0], "rotation": [0, 0, 0], "color": "r", "name": "Left Hand"}

    recording = open_json(write(tmp_path / "a.json", [[20, [off, head]], [20, [head]], [20, [off, head]]]))

    assert recording.frames.valid.tolist() == [[False, True]] * 3
    assert recording.info.counts == {"placeholder samples": 2, "samples not tracked": 1}


def test_a_place_that_is_infinite_is_not_valid_and_raises_no_warning(tmp_path: Path) -> None:
    head = device("Head", [0.0, 1.6, 0.0], Rotation.identity(), "k")
    lost = {**head, "position": [float("inf"), 0.0, 1.6]}

    recording = open_json(write(tmp_path / "a.json", [[20, [head]], [20, [lost]], [20, [head]]]))

    assert recording.frames.valid[:, 0].tolist() == [True, False, True]
    assert recording.info.counts == {"placeholder samples": 1}


@pytest.mark.parametrize("step", [-5, None, "fast", float("nan"), 1e300])
def test_a_step_that_is_none_counts_as_zero(tmp_path: Path, step: Any) -> None:
    head = device("Head", [0.0, 1.6, 0.0], Rotation.identity(), "k")

    recording = open_json(write(tmp_path / "a.json", [[20, [head]], [step, [head]], [20, [head]]]))

    assert recording.frames.time_ns.tolist() == [0, 20_000_000, 20_000_000]
    assert recording.info.counts == {"times out of order": 1}


@pytest.mark.parametrize("text", ["[]", "[[]]", "[[1, 2]]", "{}", "3"])
def test_other_json_is_one_sentence(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.json").write_text(text)

    with pytest.raises(RecordingError, match="no frame"):
        open_json(tmp_path / "a.json")


@pytest.mark.parametrize("text", ["[" * 100_000, "[[" + "9" * 5000 + ", []]]", "\x00", '[["'])
def test_json_that_cannot_be_read_is_one_sentence(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.json").write_text(text)

    with pytest.raises(DamagedRecordingError):
        open_json(tmp_path / "a.json")


@pytest.fixture(scope="module")
def small(shared: Path) -> bytes:
    return json.dumps(json.loads((shared / FILE).read_text())[:12]).encode()


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(share=st.floats(0.0, 1.0))
def test_any_cut_gives_the_whole_frames_before_it_or_one_sentence(
    small: bytes, tmp_path: Path, share: float
) -> None:
    """The head's rotation may differ by a constant: it is turned by what is in the file."""
    whole, cut = tmp_path / "whole.json", tmp_path / "cut.json"
    whole.write_bytes(small)
    cut.write_bytes(small[: int(share * len(small))])
    expected = open_json(whole).frames

    try:
        recording = open_recording(cut)
    except RecordingError:
        return

    frames = next(iter(recording.blocks()))
    n = len(frames)
    np.testing.assert_array_equal(frames.time_ns, expected.time_ns[:n])
    np.testing.assert_array_equal(frames.position, expected.position[:n])
    np.testing.assert_array_equal(frames.rotation[:, :2], expected.rotation[:n, :2])
    assert n == 12 or "cut" in recording.info.notes[0]


def test_a_file_cut_before_its_first_whole_frame_is_damaged(small: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(small[:300])

    with pytest.raises(DamagedRecordingError, match="first whole row"):
        open_json(path)
