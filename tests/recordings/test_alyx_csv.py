""" "Who Is Alyx?" tables: the stated case, and tables in any column order, with gaps, or cut anywhere."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibration import calibrate
from recordings import open_recording, read_all
from recordings.importers.alyx_csv import AlyxCsvImporter
from vrik.errors import DamagedRecordingError, RecordingError
from vrik.frames import TrackerSequence
from vrik.pipeline import Pipeline, solve_all

CASE = "data/cases/c23_nan_and_rate_drop.csv"
DEVICES = ("hmd", "left_controller", "right_controller")
PARTS = ("pos_x", "pos_y", "pos_z", "rot_x", "rot_y", "rot_z", "rot_w")
NAMES = ["delta_time_ms", *(f"{d}_{part}" for d in DEVICES for part in PARTS)]


def row(i: int) -> dict[str, str]:
    cells = {"delta_time_ms": f"{16.7 * (i + 1):.1f}"}
    for d, x in zip(DEVICES, (0.0, -25.0, 25.0), strict=True):
        values = (x, 170.0 - abs(x) + 0.1 * i, -30.0, 0.6, 0.0, 0.0, 0.8)
        cells |= {f"{d}_{part}": f"{v:.3f}" for part, v in zip(PARTS, values, strict=True)}
    return cells


def write(path: Path, rows: list[dict[str, str]], names: list[str] = NAMES, separator: str = ",") -> Path:
    lines = [separator.join(names), *(separator.join(r[name] for name in names) for r in rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def opened(path: Path) -> TrackerSequence | str:
    """The frames, or the sentence that says why there are none."""
    try:
        return read_all(open_recording(path))
    except RecordingError as error:
        return str(error)


def test_the_case_has_its_gap_its_times_and_no_nan_in_the_solved_body(shared: Path) -> None:
    """C23: the left controller is NaN in rows 41 to 45, and the rate sinks to 11 frames a second."""
    recording = open_recording(shared / CASE)
    frames = read_all(recording)
    lost = np.argwhere(~frames.valid)

    poses = solve_all(Pipeline(calibrate(frames)), frames)

    assert recording.info.format == "alyx-csv"
    assert len(frames) == 120
    assert frames.time_ns[-1] == 6402_000_000
    assert np.diff(frames.time_ns).max() == 90_000_000
    assert lost.tolist() == [[row, 1] for row in range(40, 45)]
    assert recording.info.counts == {"blank samples": 5}  # no sign flips
    assert [d.role for d in frames.devices] == ["head", "left_hand", "right_hand"]
    np.testing.assert_allclose(frames.position[0, 1], [-0.25, 1.1, -0.3])
    assert np.isfinite(poses.position).all()
    assert np.isfinite(poses.rotation).all()
    assert len(poses) == 120


def test_rotations_are_read_with_their_real_part_last(tmp_path: Path) -> None:
    frames = read_all(open_recording(write(tmp_path / "a.csv", [row(0), row(1)])))

    np.testing.assert_allclose(frames.rotation[1, 2], [0.8, 0.6, 0.0, 0.0])


@settings(max_examples=25, deadline=None)
@given(order=st.permutations(NAMES), separator=st.sampled_from([",", ";", "\t"]))
def test_any_column_order_gives_the_same_poses(
    tmp_path_factory: pytest.TempPathFactory, order: list[str], separator: str
) -> None:
    folder = tmp_path_factory.mktemp("order")
    rows = [row(i) for i in range(4)]
    plain = read_all(open_recording(write(folder / "plain.csv", rows)))

    frames = read_all(open_recording(write(folder / "mixed.csv", rows, order, separator)))

    np.testing.assert_array_equal(frames.position, plain.position)
    np.testing.assert_array_equal(frames.time_ns, plain.time_ns)


@settings(max_examples=60, deadline=None)
@given(share=st.floats(0.0, 1.0))
def test_a_cut_anywhere_gives_a_prefix_or_a_sentence(
    tmp_path_factory: pytest.TempPathFactory, share: float
) -> None:
    folder = tmp_path_factory.mktemp("cut")
    path = write(folder / "a.csv", [row(i) for i in range(6)])
    whole = read_all(open_recording(path))
    data = path.read_bytes()
    path.write_bytes(data[: int(share * len(data))])

    frames = opened(path)

    if isinstance(frames, str):
        assert "\n" not in frames
        return
    np.testing.assert_array_equal(frames.position, whole.position[: len(frames)])
    np.testing.assert_array_equal(frames.time_ns, whole.time_ns[: len(frames)])


def test_steps_instead_of_times_are_summed_and_told(tmp_path: Path) -> None:
    rows = [row(i) | {"delta_time_ms": "16.7"} for i in range(5)]

    recording = open_recording(write(tmp_path / "a.csv", rows))

    np.testing.assert_allclose(np.diff(read_all(recording).time_ns), 16_700_000, atol=1)
    assert any("summed up" in note for note in recording.info.notes)


def test_sign_flips_are_turned_counted_and_told(tmp_path: Path) -> None:
    """The same rotation with the other sign in rows 2 and 3: two flips of one device."""
    other = {"hmd_rot_x": "-0.6", "hmd_rot_w": "-0.8"}
    rows = [row(i) | (other if i in (2, 3) else {}) for i in range(6)]

    recording = open_recording(write(tmp_path / "a.csv", rows))

    np.testing.assert_allclose(read_all(recording).rotation[:, 0], 6 * [[0.8, 0.6, 0.0, 0.0]])
    assert recording.info.counts == {"sign flips": 2}
    assert any("change sign between neighbours 2 times" in note for note in recording.info.notes)


def test_a_timestamp_and_buttons_do_not_matter(tmp_path: Path) -> None:
    extra = {"timestamp": "2021-01-01 10:00:00", "left_controller_trigger": "0.5"}
    rows = [row(i) | extra for i in range(3)]

    frames = read_all(
        open_recording(write(tmp_path / "a.csv", rows, ["timestamp", *NAMES, "left_controller_trigger"]))
    )

    assert frames.valid.all()
    assert frames.time_ns[0] == 16_700_000


def test_a_device_without_all_columns_is_left_out_and_told(tmp_path: Path) -> None:
    names = [n for n in NAMES if n != "left_controller_rot_w"]

    recording = open_recording(write(tmp_path / "a.csv", [row(0)], names))

    assert [d.serial for d in recording.info.devices] == ["hmd", "right_controller"]
    assert any("left_controller lacks" in note for note in recording.info.notes)


def test_no_whole_row_and_no_whole_device_are_one_sentence(tmp_path: Path) -> None:
    cut = write(tmp_path / "a.csv", [])
    cut.write_text(cut.read_text() + "16.7,1,2")
    poor = tmp_path / "b.csv"
    poor.write_text("delta_time_ms,hmd_pos_x\n1,2\n")

    with pytest.raises(DamagedRecordingError, match="no complete row"):
        open_recording(cut)
    with pytest.raises(RecordingError, match="seven columns"):
        open_recording(poor)


def test_only_its_columns_are_recognised(shared: Path) -> None:
    importer = AlyxCsvImporter()
    vive = next((shared / "data/vr/nolicence/vive_csv").glob("*.csv"))

    assert importer.recognises(",".join(NAMES).encode(), Path("a.txt"))
    assert not importer.recognises(vive.read_bytes()[:65536], vive)
    assert not importer.recognises(b"", Path("a.csv"))
    assert not importer.recognises(b"delta_time_ms,x,y\n", Path("a.csv"))
