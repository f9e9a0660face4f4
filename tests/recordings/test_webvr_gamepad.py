"""WebVR gamepad records: two controllers in a sitting space, with velocities, without a head."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recordings import open_recording, read_all
from recordings.base import LoadedRecording
from recordings.importers.webvr_gamepad import WebVrGamepadImporter
from vrik import quat
from vrik.cli.app import main
from vrik.errors import DamagedRecordingError, RecordingError
from vrik.frames import DeviceClass

FILE = "data/vr/nolicence/webvr_gamepad/openvr_gamepads.json"


def open_json(path: Path) -> LoadedRecording:
    recording = WebVrGamepadImporter().open(path)
    return LoadedRecording(recording.info, read_all(recording))


@pytest.fixture(scope="module")
def session(shared: Path) -> LoadedRecording:
    return open_json(shared / FILE)


def pad(hand: str = "left", **changes: Any) -> dict[str, Any]:
    pose = {
        "hasPosition": True,
        "hasOrientation": True,
        "position": {"0": -0.1, "1": -0.6, "2": -0.2},
        "orientation": {"0": 0.0, "1": 0.7071068, "2": 0.0, "3": 0.7071068},
        "linearVelocity": {"0": 0.1, "1": 0.2, "2": 0.3},
        "angularVelocity": None,
    }
    return {"id": "OpenVR Gamepad", "connected": True, "hand": hand, "pose": {**pose, **changes}}


def write(path: Path, rows: list[tuple[Any, dict[str, Any]]]) -> Path:
    values = [{"recordedAt": t, "data": {**pads, "length": 4}} for t, pads in rows]
    path.write_text(json.dumps({"startedAt": 1483366141374, "values": values}))
    return path


def test_the_real_record_has_its_rate_length_and_two_hands(session: LoadedRecording) -> None:
    assert len(session.frames) == 99
    assert session.frames.rate_hz == pytest.approx(100.0, abs=0.01)
    assert session.frames.duration_s == pytest.approx(0.977, abs=1e-6)
    assert [(d.serial, d.role, d.device_class) for d in session.info.devices] == [
        ("gamepad0", "left_hand", DeviceClass.CONTROLLER),
        ("gamepad1", "right_hand", DeviceClass.CONTROLLER),
    ]
    assert session.frames.valid.all()
    assert session.info.counts == {}
    assert session.frames.position[:, 0, 0].max() < session.frames.position[:, 1, 0].min()


def test_heights_below_zero_stay_and_are_told_to_be_from_the_seat(session: LoadedRecording) -> None:
    assert np.median(session.frames.position[:, 0, 1]) == pytest.approx(-0.610, abs=0.002)
    assert np.median(session.frames.position[:, 1, 1]) == pytest.approx(-0.525, abs=0.002)
    assert any("sitting origin" in note for note in session.info.notes)


def test_the_stated_velocities_are_in_the_axes_of_the_positions(session: LoadedRecording) -> None:
    """Over tenths of a second they follow the change of the poses, each axis its own."""
    frames = session.frames
    assert frames.linear_velocity is not None
    assert frames.angular_velocity is not None
    dt_s = (frames.time_ns[10:] - frames.time_ns[:-10])[:, None] * 1e-9
    for k in (0, 1):
        p, q = frames.position[:, k], frames.rotation[:, k]
        moved = (p[10:] - p[:-10]) / dt_s
        turned = quat.to_rotvec(quat.multiply(q[10:], quat.conjugate(q[:-10]))) / dt_s
        for seen, stated in ((moved, frames.linear_velocity[:, k]), (turned, frames.angular_velocity[:, k])):
            mean = np.stack([stated[i : i + 11].mean(axis=0) for i in range(len(seen))])
            for axis in range(3):
                assert np.corrcoef(seen[:, axis], mean[:, axis])[0, 1] > 0.65


def test_arrays_come_as_objects_with_digit_keys_or_as_lists(tmp_path: Path) -> None:
    listed = pad(position=[-0.1, -0.6, -0.2], orientation=[0.0, 0.7071068, 0.0, 0.7071068])

    frames = open_json(write(tmp_path / "a.json", [(10, {"0": pad()}), (20, {"0": listed})])).frames

    assert frames.valid.all()
    np.testing.assert_array_equal(frames.position[0], frames.position[1])
    np.testing.assert_allclose(
        quat.rotate(frames.rotation[:, 0], np.array([0.0, 0.0, -1.0])), [[-1.0, 0.0, 0.0]] * 2, atol=1e-6
    )


@pytest.mark.parametrize(
    ("broken", "count"),
    [
        (pad(hasPosition=False), "samples not tracked"),
        ({**pad(), "connected": False}, "samples not tracked"),
        (None, "samples not tracked"),
        ({"hand": "left", "pose": None}, "samples not tracked"),
        (pad(position=None), "placeholder samples"),
        (pad(orientation={"0": 0, "1": 0, "2": 0, "3": 0}), "placeholder samples"),
    ],
)
def test_a_gamepad_without_a_pose_is_not_valid_and_counted(tmp_path: Path, broken: Any, count: str) -> None:
    path = write(tmp_path / "a.json", [(10, {"0": pad()}), (20, {"0": broken}), (30, {"0": pad()})])

    recording = open_json(path)

    assert recording.frames.valid[:, 0].tolist() == [True, False, True]
    assert recording.info.counts == {count: 1}


def test_a_gamepad_without_a_hand_has_no_role(tmp_path: Path) -> None:
    recording = open_json(write(tmp_path / "a.json", [(10, {"0": pad(hand="")})]))

    assert [(d.role, d.device_class) for d in recording.info.devices] == [("", DeviceClass.CONTROLLER)]


def test_sign_flips_are_turned_and_told(tmp_path: Path) -> None:
    """Also over a record in which the pad is not tracked."""
    flipped = pad(orientation={"0": 0.0, "1": -0.7071068, "2": 0.0, "3": -0.7071068})
    pads = [pad(), flipped, pad(hasPosition=False), pad(), pad()]

    recording = open_json(write(tmp_path / "a.json", [(10 * i, {"0": p}) for i, p in enumerate(pads)]))

    assert recording.info.counts == {"samples not tracked": 1, "sign flips": 2}
    assert any("change sign between neighbours 2 times" in note for note in recording.info.notes)
    np.testing.assert_allclose(
        recording.frames.rotation[[1, 3, 4], 0], recording.frames.rotation[[0, 0, 0], 0]
    )


def test_a_gamepad_that_comes_later_is_not_tracked_before(tmp_path: Path) -> None:
    late = {"1": pad("right"), "0": pad()}

    recording = open_json(write(tmp_path / "a.json", [(10, {"0": pad()}), (20, late)]))

    assert [d.serial for d in recording.info.devices] == ["gamepad0", "gamepad1"]
    assert recording.frames.valid.tolist() == [[True, False], [True, True]]


def test_a_slot_that_no_browser_gives_is_no_gamepad(tmp_path: Path) -> None:
    pads = {"0": pad(), "9" * 5000: pad(), "-1": pad(), "length": 4}

    recording = open_json(write(tmp_path / "a.json", [(10, pads)]))

    assert [d.serial for d in recording.info.devices] == ["gamepad0"]


def test_no_gamepad_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match="no gamepad with a pose"):
        open_json(write(tmp_path / "a.json", [(10, {})]))


def test_hands_without_a_head_end_with_one_sentence(
    shared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["solve", str(shared / FILE), "-o", str(tmp_path / "out.npz")])

    assert code == 1
    assert "no headset" in capsys.readouterr().err.strip().splitlines()[-1]
    assert not (tmp_path / "out.npz").exists()


@pytest.fixture(scope="module")
def small(shared: Path) -> bytes:
    data = json.loads((shared / FILE).read_text())
    return json.dumps({**data, "values": data["values"][:6]}, indent="\t").encode()


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(share=st.floats(0.0, 1.0))
def test_any_cut_gives_the_whole_records_before_it_or_one_sentence(
    small: bytes, session: LoadedRecording, tmp_path: Path, share: float
) -> None:
    (tmp_path / "cut.json").write_bytes(small[: int(share * len(small))])

    try:
        recording = open_recording(tmp_path / "cut.json")
    except RecordingError:
        return

    frames = next(iter(recording.blocks()))
    n = len(frames)
    np.testing.assert_array_equal(frames.time_ns, session.frames.time_ns[:n])
    np.testing.assert_array_equal(frames.position, session.frames.position[:n])
    assert n == 6 or "cut" in recording.info.notes[0]


def test_a_file_cut_before_its_first_record_is_damaged(small: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(small[:500])

    with pytest.raises(DamagedRecordingError, match="first whole row"):
        open_json(tmp_path / "a.json")
