"""The Quest centre-eye log: ticks, a cut last row, a head without hands."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recordings import open_recording
from recordings.base import LoadedRecording, read_all
from recordings.importers.quest_log import QuestLogImporter
from vrik import quat
from vrik.cli.app import main
from vrik.errors import DamagedRecordingError, RecordingError

FILE = "data/vr/quest_center_eye/quest2_traj1.txt"


def open_log(path: Path) -> LoadedRecording:
    recording = QuestLogImporter().open(path)
    return LoadedRecording(recording.info, read_all(recording))


@pytest.fixture(scope="module")
def session(shared: Path) -> LoadedRecording:
    return open_log(shared / FILE)


def line(ticks: int, pose: str = "0.1,1.7,0.2,0,0.7071068,0,0.7071068") -> str:
    return f"{ticks},{ticks + 20},2024,1,31,13,7,4,628,{pose}\n"


START = 638423032246286760


def test_the_real_log_has_its_rate_length_and_head(session: LoadedRecording) -> None:
    frames = session.frames

    assert len(frames) == 9874
    assert frames.rate_hz == pytest.approx(71.85, abs=0.01)
    assert frames.duration_s == pytest.approx(137.1347, abs=0.0001)
    assert [(d.serial, d.role) for d in session.info.devices] == [("centre-eye", "head")]
    assert frames.valid.all()
    assert np.median(frames.position[:, 0, 1]) == pytest.approx(1.760, abs=0.001)
    assert (frames.position[:, 0, 1].min(), frames.position[:, 0, 1].max()) == pytest.approx(
        (1.626, 1.834), abs=1e-3
    )
    assert quat.rotate(frames.rotation[:, 0], np.array([0.0, 1.0, 0.0]))[:, 1].mean() > 0.9


def test_the_cut_last_row_is_kept_out_and_told(shared: Path, session: LoadedRecording) -> None:
    rows = (shared / FILE).read_text().split("\n")

    assert sum(row.count(",") == 15 for row in rows) == 9874
    assert session.info.counts == {"rows cut": 1}
    assert session.info.notes == ("the last row is cut and left out",)


def test_times_are_the_ticks_to_the_last_of_them(shared: Path, session: LoadedRecording) -> None:
    """As floating-point numbers the 18 digits would be off by up to 6 microseconds."""
    ticks = [int(row.split(",")[0]) for row in (shared / FILE).read_text().split("\n")[:9874]]

    assert session.frames.time_ns.tolist() == [100 * (t - ticks[0]) for t in ticks]


def test_the_head_turns_smoothly_from_a_first_frame_with_negative_w(
    shared: Path, session: LoadedRecording
) -> None:
    q = session.frames.rotation[:, 0]
    first = (shared / FILE).read_text().split("\n", 1)[0].split(",")

    assert float(first[15]) < -0.99
    assert (np.sum(q[1:] * q[:-1], axis=-1) > 0.0).all()
    assert quat.angle(q[0], quat.identity()) < 0.02
    assert np.degrees(quat.angle(q[1:], q[:-1])).max() < 25.0


def test_unitys_axes_are_mirrored(tmp_path: Path) -> None:
    """90 degrees about +Y in Unity looks at +X, and so it must here."""
    (tmp_path / "a.txt").write_text(line(START))

    frames = open_log(tmp_path / "a.txt").frames

    np.testing.assert_allclose(frames.position[0, 0], [0.1, 1.7, -0.2])
    np.testing.assert_allclose(
        quat.rotate(frames.rotation[0, 0], np.array([0.0, 0.0, -1.0])), [1.0, 0.0, 0.0], atol=1e-6
    )


def test_ticks_that_step_back_or_are_none_repeat_the_time_before(tmp_path: Path) -> None:
    rows = [line(START), line(START + 140_000), line(START - 5), line(7), line(START + 280_000)]
    (tmp_path / "a.txt").write_text("".join(rows))

    recording = open_log(tmp_path / "a.txt")

    assert recording.frames.time_ns.tolist() == [0, 14_000_000, 14_000_000, 14_000_000, 28_000_000]
    assert recording.info.counts == {"times out of order": 2}


def test_a_blank_cell_and_a_zero_pose_are_not_valid_and_counted(tmp_path: Path) -> None:
    rows = [line(START), line(START + 1, "0.1,,0.2,0,0,0,1"), line(START + 2, "0,0,0,0,0,0,0")]
    (tmp_path / "a.txt").write_text("".join(rows))

    recording = open_log(tmp_path / "a.txt")

    assert recording.frames.valid[:, 0].tolist() == [True, False, False]
    assert recording.info.counts == {"blank cells": 1, "blank samples": 1, "placeholder samples": 1}


def test_semicolons_and_decimal_commas_are_the_same_log(tmp_path: Path) -> None:
    text = "".join(line(START + 140_000 * i) for i in range(4))
    (tmp_path / "a.txt").write_text(text)
    (tmp_path / "b.txt").write_text(text.replace(",", ";").replace(".", ","))

    np.testing.assert_array_equal(
        open_log(tmp_path / "a.txt").frames.position, open_log(tmp_path / "b.txt").frames.position
    )
    assert QuestLogImporter().recognises((tmp_path / "b.txt").read_bytes(), Path("b.txt"))


def test_no_complete_row_is_damaged(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(line(START)[:60])

    with pytest.raises(DamagedRecordingError, match="no complete row"):
        open_log(tmp_path / "a.txt")


def test_a_head_alone_ends_with_one_sentence(
    shared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["solve", str(shared / FILE), "-o", str(tmp_path / "out.npz")])

    said = capsys.readouterr().err.strip().splitlines()
    assert code == 1
    assert "has a head alone" in said[-1]
    assert "at least one hand" in said[-1]
    assert not (tmp_path / "out.npz").exists()


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(end=st.integers(0, 2600))
def test_any_cut_gives_the_whole_rows_before_it_or_one_sentence(
    shared: Path, session: LoadedRecording, tmp_path: Path, end: int
) -> None:
    cut = tmp_path / "cut.txt"
    with (shared / FILE).open("rb") as stream:
        data = stream.read(end)
    cut.write_bytes(data)

    try:
        frames = next(iter(open_recording(cut).blocks()))
    except RecordingError:
        assert data.count(b"\n") == 0
        return

    n = data.count(b"\n")
    assert len(frames) == n
    np.testing.assert_array_equal(frames.time_ns, session.frames.time_ns[:n])
    np.testing.assert_array_equal(frames.position, session.frames.position[:n])
    np.testing.assert_array_equal(frames.rotation, session.frames.rotation[:n])
