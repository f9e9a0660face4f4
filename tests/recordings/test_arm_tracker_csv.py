"""Arm trackers: poses relative to the shoulder, without header, times or head."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recordings import open_recording
from recordings.base import LoadedRecording, read_all
from recordings.importers.arm_tracker_csv import ASSUMED_RATE_HZ, ArmTrackerCsvImporter
from vrik import quat
from vrik.cli.app import main
from vrik.errors import DamagedRecordingError, RecordingError

FILE = "data/vr/arm_trackers/right_arm_shoulder_local.csv"
ROW = "0.5,0,0.1,0.9,0,0.2,0,0.7071068,0,0.7071068,0,0,0,1\n"


def open_csv(path: Path) -> LoadedRecording:
    recording = ArmTrackerCsvImporter().open(path)
    return LoadedRecording(recording.info, read_all(recording))


@pytest.fixture(scope="module")
def session(shared: Path) -> LoadedRecording:
    return open_csv(shared / FILE)


def test_the_real_take_has_all_its_rows_and_says_that_its_times_are_assumed(session: LoadedRecording) -> None:
    """The last row has no line end, but is whole."""
    assert len(session.frames) == 5364
    assert session.frames.valid.all()
    assert session.info.counts == {"times assumed": 5364, "sign flips": 34 + 26}
    assert session.frames.rate_hz == pytest.approx(ASSUMED_RATE_HZ, abs=1e-3)
    assert any("no times" in note and "assumed" in note for note in session.info.notes)
    assert any("relative to a tracker on the shoulder" in note for note in session.info.notes)
    assert [(d.serial, d.role) for d in session.info.devices] == [("forearm", ""), ("hand", "")]


def test_lengths_of_the_real_arm_are_those_of_the_file(session: LoadedRecording) -> None:
    """In its own unit: elbow 0.520, hand 0.464 farther, reach up to 1.05."""
    elbow, hand = session.frames.position[:, 0], session.frames.position[:, 1]

    assert np.linalg.norm(elbow, axis=-1).mean() == pytest.approx(0.520, abs=0.001)
    assert np.linalg.norm(hand - elbow, axis=-1).mean() == pytest.approx(0.464, abs=0.001)
    assert np.linalg.norm(hand, axis=-1).max() == pytest.approx(1.05, abs=0.01)


def test_the_sign_flips_of_the_real_file_are_gone(shared: Path, session: LoadedRecording) -> None:
    raw = np.loadtxt(shared / FILE, delimiter=",")[:, 6:].reshape(-1, 2, 4)
    flips = (np.sum(raw[1:] * raw[:-1], axis=-1) < 0.0).sum(axis=0)
    q = session.frames.rotation

    assert flips.tolist() == [34, 26]
    assert (np.sum(q[1:] * q[:-1], axis=-1) > 0.0).all()


def test_unitys_axes_are_mirrored(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(ROW)

    frames = open_csv(tmp_path / "a.csv").frames

    np.testing.assert_allclose(frames.position[0], [[0.5, 0.0, -0.1], [0.9, 0.0, -0.2]])
    np.testing.assert_allclose(
        quat.rotate(frames.rotation[0, 0], np.array([0.0, 0.0, -1.0])), [1.0, 0.0, 0.0], atol=1e-6
    )


def test_a_wrong_row_and_a_blank_cell_are_counted(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(ROW + ROW.replace("0.9", "") + "1,2\n" + ROW)

    recording = open_csv(tmp_path / "a.csv")

    assert recording.frames.valid.tolist() == [[True, True], [True, False], [True, True]]
    assert recording.info.counts == {
        "rows skipped": 1, "blank cells": 1, "blank samples": 1, "times assumed": 3,
    }  # fmt: skip


def test_other_tables_of_numbers_are_not_taken(tmp_path: Path) -> None:
    importer = ArmTrackerCsvImporter()

    assert importer.recognises(ROW.encode(), Path("a.csv"))
    assert importer.recognises(ROW.replace(",", ";").replace(".", ",").encode(), Path("a.csv"))
    assert not importer.recognises(b",".join([b"1"] * 14) + b"\n", Path("a.csv"))
    assert not importer.recognises(ROW.replace("\n", ",1\n").encode(), Path("a.csv"))
    assert not importer.recognises(b"", Path("a.csv"))


def arm_rows(n: int, seed: int = 0) -> np.ndarray:
    """Arms of the usual lengths in any pose."""
    rng = np.random.default_rng(seed)
    upper, lower = (v / np.linalg.norm(v, axis=-1, keepdims=True) for v in rng.normal(size=(2, n, 3)))
    turns = quat.from_rotvec(rng.normal(size=(n, 2, 3))).reshape(n, 8)
    elbow = 0.52 * upper
    return np.hstack([elbow, elbow + 0.46 * lower, turns])


def as_text(rows: np.ndarray) -> bytes:
    return "".join(",".join(f"{value:.6f}" for value in row) + "\n" for row in rows).encode()


def test_an_arm_in_any_pose_is_recognised() -> None:
    assert ArmTrackerCsvImporter().recognises(as_text(arm_rows(60)), Path("a.csv"))


def in_a_room(rows: np.ndarray) -> np.ndarray:
    return rows + np.array([0.0, 1.4, 0.0] * 2 + [0.0] * 8)


def stretching(rows: np.ndarray) -> np.ndarray:
    return (
        rows
        * np.r_[np.full(6, 1.0), np.full(8, 1.0)]
        * np.where(np.arange(14) < 6, np.linspace(0.6, 1.4, len(rows))[:, None], 1.0)
    )


def in_metres(rows: np.ndarray) -> np.ndarray:
    return rows * np.r_[np.full(6, 0.55), np.full(8, 1.0)]


def without_turns(rows: np.ndarray) -> np.ndarray:
    return rows * np.r_[np.full(6, 1.0), np.full(8, 0.3)]


@pytest.mark.parametrize("change", [in_a_room, stretching, in_metres, without_turns])
def test_other_fourteen_columns_are_told_to_use_a_mapping_file(
    tmp_path: Path, change: Callable[[np.ndarray], np.ndarray]
) -> None:
    """Two unit quaternions are no arm yet: distances must be those of one, and keep."""
    (tmp_path / "a.csv").write_bytes(as_text(change(arm_rows(60))))

    with pytest.raises(RecordingError, match=r"mapping file a\.csv\.toml"):
        open_recording(tmp_path / "a.csv")


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32 - 1), size=st.floats(0.1, 3.0))
def test_two_devices_anywhere_are_no_arm(seed: int, size: float) -> None:
    rows = arm_rows(50, seed)
    rows[:, :6] = np.random.default_rng(seed).uniform(-size, size, (50, 6))

    assert not ArmTrackerCsvImporter().recognises(as_text(rows), Path("a.csv"))


def test_no_complete_row_is_damaged(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(ROW[:20])

    with pytest.raises(DamagedRecordingError, match="no complete row"):
        open_csv(tmp_path / "a.csv")


def test_an_arm_without_a_head_ends_with_one_sentence(
    shared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["solve", str(shared / FILE), "-o", str(tmp_path / "out.npz")])

    assert code == 1
    assert "no headset" in capsys.readouterr().err.strip().splitlines()[-1]
    assert not (tmp_path / "out.npz").exists()


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(end=st.integers(0, 2000))
def test_any_cut_gives_the_whole_rows_before_it_or_one_sentence(
    shared: Path, session: LoadedRecording, tmp_path: Path, end: int
) -> None:
    with (shared / FILE).open("rb") as stream:
        data = stream.read(end)
    (tmp_path / "cut.csv").write_bytes(data)

    try:
        frames = next(iter(open_recording(tmp_path / "cut.csv").blocks()))
    except RecordingError:
        assert data.count(b"\n") == 0
        return

    n = len(frames)
    assert data.count(b"\n") <= n <= data.count(b"\n") + 1
    np.testing.assert_array_equal(frames.position, session.frames.position[:n])
    np.testing.assert_array_equal(frames.rotation, session.frames.rotation[:n])
