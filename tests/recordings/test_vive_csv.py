"""The six-device Vive CSV: the real sessions, and tables that are cut, blank or written with commas."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from calibration import calibrate
from recordings import open_recording
from recordings.base import LoadedRecording, read_all
from recordings.importers.vive_csv import ViveCsvImporter
from vrik import quat
from vrik.errors import DamagedRecordingError, RecordingError
from vrik.frames import DeviceClass

FOLDER = "data/vr/nolicence/vive_csv"
MOVING = (
    "arm_raise_3",
    "beat_saber_1",
    "calibration",
    "crouch_walking_1",
    "jumping_jacks_1",
    "sitting_standing_2",
    "squatting_1",
    "walking_3",
)
POSE = ("tx", "ty", "tz", "rx", "ry", "rz")


def open_csv(path: Path) -> LoadedRecording:
    recording = ViveCsvImporter().open(path)
    return LoadedRecording(recording.info, read_all(recording))


def row_of(recording: LoadedRecording, serial: str) -> int:
    return [d.serial for d in recording.info.devices].index(serial)


def in_head(recording: LoadedRecording, serial: str) -> np.ndarray:
    """Positions of a device as seen from the headset. [m]"""
    frames, head, k = recording.frames, row_of(recording, "HMD0"), row_of(recording, serial)
    return quat.rotate(
        quat.conjugate(frames.rotation[:, head]), frames.position[:, k] - frames.position[:, head]
    )


def table(rows: list[str], devices: tuple[str, ...] = ("HMD0", "controller3"), separator: str = ",") -> str:
    names = ["timestamp", *(f"{d}_{axis}" for d in devices for axis in POSE)]
    return separator.join(names) + "\n" + "".join(row + "\n" for row in rows)


def plain_row(i: int) -> str:
    return f"{i / 60:.6f},0.0,170.0,{i}.5,0.0,90.0,0.0,30.0,120.0,-20.0,10.0,20.0,30.0"


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8", newline="")
    return path


@pytest.mark.parametrize("name", MOVING)
def test_a_real_session_is_whole_upright_and_has_its_hands_in_front(shared: Path, name: str) -> None:
    """Up and front together prove the order of the angles and the axes: no other order gives both."""
    recording = open_csv(shared / FOLDER / f"{name}.csv")
    frames, head = recording.frames, row_of(recording, "HMD0")
    classes = [d.device_class for d in recording.info.devices]

    assert len(frames) == 600
    assert frames.rate_hz == pytest.approx(60.0, abs=0.01)
    assert frames.duration_s == pytest.approx(9.983, abs=0.001)
    assert frames.valid.all()
    unwrapped = {"walking_3": 2624, "crouch_walking_1": 116}.get(name)
    assert recording.info.counts == ({} if unwrapped is None else {"unwrapped angles": unwrapped})
    assert any("past +-180 degrees" in note for note in recording.info.notes) == (unwrapped is not None)
    assert classes.count(DeviceClass.HMD) == 1
    assert classes.count(DeviceClass.CONTROLLER) == 2
    assert classes.count(DeviceClass.GENERIC_TRACKER) == 3
    assert classes.count(DeviceClass.TRACKING_REFERENCE) == (0 if name == "calibration" else 2)
    assert all(d.role == "" for d in recording.info.devices)
    up = quat.rotate(frames.rotation[:, head], np.array([0.0, 1.0, 0.0])).mean(axis=0)
    assert 0.87 < up[1] < 0.995
    for device in recording.info.devices:
        if device.device_class == DeviceClass.CONTROLLER:
            assert 0.09 < -in_head(recording, device.serial)[:, 2].mean() < 0.40


@pytest.mark.parametrize("name", MOVING)
def test_no_device_of_a_real_session_turns_more_than_it_can_in_a_frame(shared: Path, name: str) -> None:
    """Angles in the files go past 1000 degrees; the heads still turn smoothly."""
    recording = open_csv(shared / FOLDER / f"{name}.csv")
    head = recording.frames.rotation[:, row_of(recording, "HMD0")]

    assert np.degrees(quat.angle(head[1:], head[:-1])).max() < 6.0
    assert (np.sum(head[1:] * head[:-1], axis=-1) > 0).all()


@pytest.mark.parametrize(
    ("name", "head_m", "hip", "hip_m"),
    [
        ("calibration", 1.63, "generic7", 1.00),
        ("walking_3", 1.61, "generic8", 0.98),
        ("squatting_1", 1.56, "generic7", 0.94),
        ("sitting_standing_2", 1.29, "generic8", 0.73),
        ("arm_raise_3", 1.62, "generic9", 0.98),
        ("crouch_walking_1", 1.12, "generic7", 0.72),
        ("beat_saber_1", 1.58, "generic7", 0.96),
        ("jumping_jacks_1", 1.63, "generic7", 0.98),
    ],
)
def test_heads_and_hips_of_the_real_sessions_are_where_they_were(
    shared: Path, name: str, head_m: float, hip: str, hip_m: float
) -> None:
    recording = open_csv(shared / FOLDER / f"{name}.csv")
    heights = np.median(recording.frames.position[:, :, 1], axis=0)

    assert heights[row_of(recording, "HMD0")] == pytest.approx(head_m, abs=0.015)
    assert heights[row_of(recording, hip)] == pytest.approx(hip_m, abs=0.015)
    for foot in {"generic7", "generic8", "generic9"} - {hip}:
        assert 0.08 < heights[row_of(recording, foot)] < 0.18


@pytest.mark.parametrize(
    ("name", "left_hand", "right_hand", "waist", "left_foot", "right_foot"),
    [
        ("calibration", "controller6", "controller3", "generic7", "generic9", "generic8"),
        ("walking_3", "controller3", "controller4", "generic8", "generic9", "generic7"),
        ("squatting_1", "controller3", "controller6", "generic7", "generic9", "generic8"),
        ("sitting_standing_2", "controller3", "controller4", "generic8", "generic9", "generic7"),
        ("arm_raise_3", "controller6", "controller3", "generic9", "generic7", "generic8"),
        ("crouch_walking_1", "controller3", "controller4", "generic7", "generic9", "generic8"),
        ("beat_saber_1", "controller3", "controller6", "generic7", "generic9", "generic8"),
        ("jumping_jacks_1", "controller3", "controller6", "generic7", "generic9", "generic8"),
    ],
)
def test_who_is_left_and_right_in_the_real_sessions(
    shared: Path, name: str, left_hand: str, right_hand: str, waist: str, left_foot: str, right_foot: str
) -> None:
    """Names and order do not tell: it changes from file to file. The head's own left and right do."""
    recording = open_csv(shared / FOLDER / f"{name}.csv")

    roles = calibrate(recording.frames).roles

    assert roles == {
        "HMD0": "head", left_hand: "left_hand", right_hand: "right_hand", waist: "waist",
        left_foot: "left_foot", right_foot: "right_foot",
    }  # fmt: skip
    for left, right in ((left_hand, right_hand), (left_foot, right_foot)):
        assert in_head(recording, left)[:, 0].mean() + 0.1 < in_head(recording, right)[:, 0].mean()


def test_in_the_real_calibration_controller_3_is_on_the_right_and_the_arms_are_out(shared: Path) -> None:
    recording = open_csv(shared / FOLDER / "calibration.csv")
    right, left = in_head(recording, "controller3"), in_head(recording, "controller6")
    apart = (
        recording.frames.position[:, row_of(recording, "controller3")]
        - (recording.frames.position[:, row_of(recording, "controller6")])
    )

    assert right[:, 0].mean() > 0.6
    assert left[:, 0].mean() < -0.6
    assert np.median(np.linalg.norm(apart, axis=-1)) == pytest.approx(1.45, abs=0.06)


def test_a_session_with_nothing_tracked_opens_and_says_so(shared: Path) -> None:
    recording = open_csv(shared / FOLDER / "all_zero.csv")
    frames = recording.frames
    stations = np.array([d.device_class == DeviceClass.TRACKING_REFERENCE for d in recording.info.devices])

    assert len(frames) == 600
    assert not frames.valid[:, ~stations].any()
    assert np.isnan(frames.position[:, ~stations]).all()
    assert frames.valid[:, stations].all()
    assert recording.info.counts == {"placeholder samples": 3600}
    assert any("nothing is tracked" in note for note in recording.info.notes)


def test_centimetres_and_degrees_become_metres_and_rz_ry_rx(tmp_path: Path) -> None:
    frames = open_csv(write(tmp_path / "a.csv", table([plain_row(0)]))).frames
    x, y, z = (quat.from_rotvec(np.radians(a) * np.eye(3)[i]) for i, a in enumerate((10.0, 20.0, 30.0)))

    np.testing.assert_allclose(frames.position[0], [[0.0, 1.7, 0.005], [0.3, 1.2, -0.2]])
    assert quat.angle(frames.rotation[0, 1], quat.multiply(z, quat.multiply(y, x))) < 1e-9
    np.testing.assert_allclose(
        quat.rotate(frames.rotation[0, 0], np.array([0.0, 0.0, -1.0])), [-1.0, 0.0, 0.0], atol=1e-12
    )


def test_turns_past_360_degrees_are_the_same_rotation(tmp_path: Path) -> None:
    near = open_csv(write(tmp_path / "a.csv", table(["0.0,1,170,1,0,90,0,1,1,1,10,20,30"]))).frames
    far = open_csv(write(tmp_path / "b.csv", table(["0.0,1,170,1,720,-990,0,1,1,1,1090,20,-1050"]))).frames

    assert quat.angle(near.rotation, far.rotation).max() < 1e-9


def test_turns_past_half_a_turn_are_counted_and_told(tmp_path: Path) -> None:
    rows = ["0.0,1,170,1,720,-990,180,1,1,1,10,20,30", "0.1,1,170,1,-180,0,0,1,1,1,inf,200,30"]

    info = open_csv(write(tmp_path / "a.csv", table(rows))).info

    assert info.counts["unwrapped angles"] == 2
    assert any(note.startswith("angles past +-180 degrees: 2") for note in info.notes)
    assert "sign flips" not in info.counts


def test_a_device_that_is_all_zero_in_one_row_is_not_valid_there(tmp_path: Path) -> None:
    rows = [plain_row(0), "0.016667,0.0,170.0,1.5,0.0,90.0,0.0,0,0.0,0.000,0,-0.0,0", plain_row(2)]

    recording = open_csv(write(tmp_path / "a.csv", table(rows)))

    assert recording.frames.valid.tolist() == [[True, True], [True, False], [True, True]]
    assert recording.info.counts == {"placeholder samples": 1}
    assert not any("nothing is tracked" in note for note in recording.info.notes)


@pytest.mark.parametrize("cell", ["", " ", "nan", "lost", "inf"])
def test_a_cell_without_a_number_takes_out_only_its_sample(tmp_path: Path, cell: str) -> None:
    cells = plain_row(1).split(",")
    cells[8] = cell

    recording = open_csv(write(tmp_path / "a.csv", table([plain_row(0), ",".join(cells), plain_row(2)])))

    assert recording.frames.valid.tolist() == [[True, True], [True, False], [True, True]]
    assert np.isfinite(recording.frames.position[recording.frames.valid]).all()


def test_blank_cells_are_counted(tmp_path: Path) -> None:
    cells = plain_row(1).split(",")
    cells[7] = cells[8] = ""

    counts = open_csv(write(tmp_path / "a.csv", table([plain_row(0), ",".join(cells)]))).info.counts

    assert counts == {"blank cells": 2, "blank samples": 1}


@pytest.mark.parametrize("keep", [1, 20, 60])
def test_a_cut_last_row_is_left_out_and_told(tmp_path: Path, keep: int) -> None:
    whole = table([plain_row(0), plain_row(1)])

    recording = open_csv(write(tmp_path / "a.csv", whole + plain_row(2)[:keep]))

    assert len(recording.frames) == 2
    assert recording.info.counts == {"rows cut": 1}
    assert any("cut" in note for note in recording.info.notes)


def test_a_row_of_another_width_is_left_out_and_named(tmp_path: Path) -> None:
    rows = [plain_row(0), plain_row(1) + ",9", plain_row(2)]

    recording = open_csv(write(tmp_path / "a.csv", table(rows)))

    assert len(recording.frames) == 2
    assert recording.info.counts == {"rows skipped": 1}
    assert any("line 3 has 14 cells instead of 13" in note for note in recording.info.notes)


def test_decimal_commas_between_semicolons_are_read(tmp_path: Path) -> None:
    rows = [plain_row(i).replace(",", ";").replace(".", ",") for i in range(3)]
    plain = open_csv(write(tmp_path / "a.csv", table([plain_row(i) for i in range(3)])))

    recording = open_csv(write(tmp_path / "b.csv", table(rows, separator=";")))

    np.testing.assert_array_equal(recording.frames.position, plain.frames.position)
    assert any("decimal commas" in note for note in recording.info.notes)


def test_decimal_commas_between_commas_are_refused_with_what_to_do(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", table([plain_row(i).replace(".", ",") for i in range(3)]))

    with pytest.raises(RecordingError, match=r"decimal commas.*semicolons"):
        open_csv(path)


def test_a_table_with_only_a_cut_row_is_damaged(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", table([]) + "0.0,1.0")

    with pytest.raises(DamagedRecordingError, match="no complete row"):
        open_csv(path)


def test_a_header_without_rows_is_an_empty_recording(tmp_path: Path) -> None:
    recording = open_csv(write(tmp_path / "a.csv", table([])))

    assert len(recording.frames) == 0
    assert list(recording.blocks()) == []


def test_button_columns_with_repeated_names_do_not_shift_the_poses(tmp_path: Path) -> None:
    header = (
        "timestamp,controller3_tx,controller3_ty,controller3_tz,controller3_rx,controller3_ry,controller3_rz"
    )
    header += ",Controller3_axisX,Controller3_axisY" * 5 + ",HMD0_tx,HMD0_ty,HMD0_tz,HMD0_rx,HMD0_ry,HMD0_rz"
    row = "0.0,30,120,-20,0,0,0" + ",0.5,0.25" * 5 + ",1,170,2,0,0,0"

    recording = open_csv(write(tmp_path / "a.csv", f"\ufeff{header}\r\n{row}\r\n"))

    assert [d.serial for d in recording.info.devices] == ["controller3", "HMD0"]
    np.testing.assert_allclose(recording.frames.position[0, 1], [0.01, 1.7, 0.02])


def test_a_pose_column_that_repeats_is_counted_and_the_first_is_read(tmp_path: Path) -> None:
    """A table that was pasted together holds a second headset of the same name."""
    header = table([]).strip() + ",HMD0_tx"

    recording = open_csv(write(tmp_path / "a.csv", f"{header}\n{plain_row(0)},999\n"))

    assert recording.frames.position[0, 0, 0] == 0.0
    assert recording.info.counts == {"repeated columns": 1}
    assert "columns whose name repeats: HMD0_tx; the first of each is read" in recording.info.notes


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf_16_is_read_with_and_without_its_mark(tmp_path: Path, encoding: str) -> None:
    text = table([plain_row(i) for i in range(3)])
    plain = open_csv(write(tmp_path / "a.csv", text))
    (tmp_path / "b.csv").write_bytes(text.encode(encoding))

    recording = open_recording(tmp_path / "b.csv")

    assert recording.info.format == "vive-csv"
    np.testing.assert_array_equal(read_all(recording).position, plain.frames.position)


def test_a_device_with_missing_columns_is_left_out_and_told(tmp_path: Path) -> None:
    text = table([plain_row(0)]).replace("controller3_rz", "controller3_other")

    recording = open_csv(write(tmp_path / "a.csv", text))

    assert [d.serial for d in recording.info.devices] == ["HMD0"]
    assert any("controller3" in note for note in recording.info.notes)


def test_no_complete_device_is_one_sentence(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "timestamp,HMD0_tx,HMD0_ty\n0,1,2\n")

    with pytest.raises(RecordingError, match="HMD0_tx, HMD0_ty"):
        open_csv(path)


def test_only_its_columns_are_recognised(shared: Path) -> None:
    importer = ViveCsvImporter()
    steam = shared / "data/vr/nolicence/steamvr_elbows_knees/d_scale_0_587.csv"

    assert importer.recognises(table([]).encode(), Path("a.txt"))
    assert importer.recognises(b"\xef\xbb\xbf" + table([], separator=";").encode(), Path("a.csv"))
    assert not importer.recognises(b"", Path("a.csv"))
    assert not importer.recognises(b"timestamp,x,y\n", Path("a.csv"))
    assert not importer.recognises(steam.read_bytes()[:65536], steam)
    assert not importer.recognises(
        (shared / "data/cases/c23_nan_and_rate_drop.csv").read_bytes(), Path("a.csv")
    )
