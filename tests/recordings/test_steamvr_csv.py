"""SteamVR CSV with elbows, torso and knees: second stamps, blanks, scale, the floor, and positions only."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from calibration import calibrate
from recordings import open_recording
from recordings.base import LoadedRecording, read_all
from recordings.importers.steamvr_csv import SteamVrCsvImporter
from recordings.importers.tracks import spread_inside_seconds
from vrik import quat
from vrik.errors import DamagedRecordingError, RecordingError
from vrik.frames import DeviceClass, TrackerSequence
from vrik.pipeline import Pipeline, solve_all
from vrik.skeleton import bone_lengths

FOLDER = "data/vr/nolicence/steamvr_elbows_knees"
A, B, C, D = FILES = ("a_tpose_start_knee_dropouts", "b_knee_dropouts", "c_torso_dropouts", "d_scale_0_587")
PLACED = ("LeftElbow", "RightElbow", "Front", "Back", "LeftKnee", "RightKnee")


def open_csv(path: Path) -> LoadedRecording:
    recording = SteamVrCsvImporter().open(path)
    return LoadedRecording(recording.info, read_all(recording))


def raw(shared: Path, name: str) -> list[dict[str, str]]:
    with (shared / FOLDER / f"{name}.csv").open(newline="") as stream:
        return list(csv.DictReader(stream))


def raw_flips(shared: Path, name: str) -> int:
    """Neighbouring rows of the file whose quaternions have opposite signs, over the three devices."""
    rows, flips = raw(shared, name), 0
    for device in ("Headset", "LController", "RController"):
        q = np.array([[float(r[f"{device}Quaternion{axis}"]) for axis in "XYZW"] for r in rows])
        flips += int((np.sum(q[1:] * q[:-1], axis=-1) < 0.0).sum())
    return flips


def row(recording: LoadedRecording, serial: str) -> int:
    return [d.serial for d in recording.info.devices].index(serial)


@pytest.mark.parametrize(
    ("name", "n", "length_s", "standing_m", "floor_m", "flips", "blank"),
    [
        (A, 260, 51.8, 1.711, 0.98, 20, {"LeftKnee": 20, "RightKnee": 21}),
        (B, 872, 174.2, 1.586, 1.01, 23, {"LeftKnee": 27, "RightKnee": 30}),
        (C, 388, 77.4, 1.798, 1.08, 4, {"Front": 96, "Back": 94}),
        (D, 1058, 211.6, 1.868, 1.04, 10, {}),
    ],
)
def test_a_real_session_has_its_rate_length_head_height_and_blanks(
    shared: Path,
    name: str,
    n: int,
    length_s: float,
    standing_m: float,
    floor_m: float,
    flips: int,
    blank: dict[str, int],
) -> None:
    recording = open_csv(shared / FOLDER / f"{name}.csv")
    frames = recording.frames
    lost = {d.serial: int((~frames.valid[:, k]).sum()) for k, d in enumerate(recording.info.devices)}

    assert len(frames) == n
    assert frames.rate_hz == pytest.approx(5.0, abs=0.01)
    assert frames.duration_s == pytest.approx(length_s, abs=0.01)
    assert np.percentile(frames.position[:, 0, 1], 95.0) == pytest.approx(standing_m, abs=0.005)
    assert {serial: count for serial, count in lost.items() if count} == blank
    total = sum(blank.values())
    expected = {"blank cells": 3 * total, "blank samples": total} if total else {}
    assert recording.info.counts == {"sign flips": flips, **expected}
    assert raw_flips(shared, name) == flips
    assert any(f"the floor is {floor_m:.2f} m below" in note for note in recording.info.notes)
    assert any("spread evenly inside each second" in note for note in recording.info.notes)


@pytest.mark.parametrize("name", FILES)
def test_devices_are_what_the_columns_say(shared: Path, name: str) -> None:
    devices = open_csv(shared / FOLDER / f"{name}.csv").info.devices

    assert [(d.serial, d.role) for d in devices[:3]] == [
        ("Headset", "head"), ("LController", "left_hand"), ("RController", "right_hand"),
    ]  # fmt: skip
    assert tuple(d.serial for d in devices[3:]) == PLACED
    assert all(d.role == "" and d.device_class == DeviceClass.GENERIC_TRACKER for d in devices[3:])
    assert all("position only" in d.model for d in devices[3:])


@pytest.mark.parametrize("name", FILES)
def test_real_rows_stay_inside_the_second_of_their_stamp(shared: Path, name: str) -> None:
    stamps = [r["DateTime"].split("--")[1].split("-") for r in raw(shared, name)]
    seconds = np.array([3600 * int(h) + 60 * int(m) + int(s) for h, m, s in stamps])

    time_ns = open_csv(shared / FOLDER / f"{name}.csv").frames.time_ns
    start_s = seconds[0] + (1.0 - Counter(seconds.tolist())[int(seconds[0])] / 5.0)

    steps = np.diff(time_ns)
    assert (steps > 0).all()
    assert steps.max() <= 300_000_000
    # Times count from the stamp of the first row, in whole seconds.
    np.testing.assert_array_equal(time_ns // 1_000_000_000, seconds - seconds[0])
    assert time_ns[0] * 1e-9 == pytest.approx(start_s - seconds[0], abs=1e-6)


@pytest.mark.parametrize("name", FILES)
def test_left_right_front_and_up_are_where_they_were(shared: Path, name: str) -> None:
    """Seen from the head: hands on their sides, the front of the torso before its back, and below."""
    recording = open_csv(shared / FOLDER / f"{name}.csv")
    frames = recording.frames
    inverse = quat.conjugate(frames.rotation[:, 0])
    seen = {
        d.serial: quat.rotate(inverse, frames.position[:, k] - frames.position[:, 0])
        for k, d in enumerate(recording.info.devices)
    }

    apart = seen["RController"][:, 0] - seen["LController"][:, 0]
    assert np.mean(apart > 0.0) > 0.98
    assert np.median(seen["LController"][:, 0]) < -0.2
    assert np.median(seen["RController"][:, 0]) > 0.1
    assert np.median(seen["RController"][:, 2]) < -0.1
    assert np.nanmedian(seen["RightElbow"][:, 0] - seen["LeftElbow"][:, 0]) > 0.3
    if name != C:  # there the person looks at the floor
        assert np.nanmedian(seen["Front"][:, 2] - seen["Back"][:, 2]) < -0.2
    heights = np.nanmedian(frames.position[:, :, 1], axis=0)
    assert heights[0] > heights[row(recording, "Front")] > heights[row(recording, "LeftKnee")] > 0.4


def test_scale_is_multiplied_back_to_a_person_and_told(shared: Path) -> None:
    recording = open_csv(shared / FOLDER / f"{D}.csv")
    values = np.array([[float(r["HeadsetX"]), float(r["LeftKneeX"])] for r in raw(shared, D)])
    frames = recording.frames
    over_knee = frames.position[:, 0, 1] - frames.position[:, row(recording, "LeftKnee"), 1]

    np.testing.assert_allclose(frames.position[:, 0, 0], values[:, 0] * 0.5874643, rtol=1e-9)
    assert np.percentile(over_knee, 90.0) == pytest.approx(1.30, abs=0.03)
    assert any("multiplied by the file's Scale, 0.587" in note for note in recording.info.notes)
    for other in (A, B, C):
        assert not any("Scale" in n for n in open_csv(shared / FOLDER / f"{other}.csv").info.notes)


@pytest.mark.parametrize("name", FILES)
def test_a_real_session_solves_without_taking_positions_for_poses(shared: Path, name: str) -> None:
    """Bodies are plausible and of constant length; the six trackers are heard of, and steer nothing."""
    frames = open_csv(shared / FOLDER / f"{name}.csv").frames

    calibration = calibrate(frames)
    poses = solve_all(Pipeline(calibration), frames)

    assert calibration.roles == {"Headset": "head", "LController": "left_hand", "RController": "right_hand"}
    assert any("only its positions are known" in n and "LeftKnee" in n for n in calibration.notes)
    assert 1.6 < calibration.body.stature_m < 2.05
    assert np.isfinite(poses.position).all()
    assert np.isfinite(poses.rotation).all()
    lengths = np.array([bone_lengths(p) for p in poses.position])
    np.testing.assert_allclose(
        lengths, np.broadcast_to(bone_lengths(calibration.body.tpose), lengths.shape), atol=1e-9
    )
    assert poses.position[..., 1].min() > -0.02
    assert 0.8 < np.median(poses.position[:, 0, 1]) < 1.25


@settings(max_examples=100, deadline=None)
@given(sizes=st.lists(st.integers(1, 9), min_size=1, max_size=12), gap=st.integers(1, 4))
def test_spread_times_stay_in_their_second_and_never_go_back(sizes: list[int], gap: int) -> None:
    stamps = np.repeat(np.arange(len(sizes)) * float(gap), sizes)

    times = spread_inside_seconds(stamps)

    assert (np.floor(times + 1e-9) == stamps).all()
    assert (np.diff(times) > 0.0).all()


def header(shared: Path) -> list[str]:
    return list(raw(shared, A)[0])


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(order=st.permutations(range(41)), semicolons=st.booleans(), quoted=st.booleans())
def test_any_column_order_and_any_locale_give_the_same(
    shared: Path, tmp_path: Path, order: list[int], semicolons: bool, quoted: bool
) -> None:
    names, rows = header(shared), raw(shared, A)[:12]
    assert len(names) == 41
    plain, mixed = tmp_path / "plain.csv", tmp_path / "mixed.csv"
    mark = ";" if semicolons else ","
    quote = '"' if quoted else ""

    def cell(text: str) -> str:
        return quote + (text.replace(".", ",") if semicolons else text) + quote

    plain.write_text("\n".join([",".join(names), *(",".join(r[c] for c in names) for r in rows)]) + "\n")
    picked = [names[i] for i in order]
    lines = [
        mark.join(quote + c + quote for c in picked),
        *(mark.join(cell(r[c]) for c in picked) for r in rows),
    ]
    mixed.write_text("\r\n".join(lines) + "\r\n")

    expected, recording = open_csv(plain), open_csv(mixed)

    assert SteamVrCsvImporter().recognises(mixed.read_bytes(), mixed)
    np.testing.assert_array_equal(recording.frames.time_ns, expected.frames.time_ns)
    np.testing.assert_array_equal(recording.frames.position, expected.frames.position)
    np.testing.assert_array_equal(recording.frames.rotation, expected.frames.rotation)


@pytest.fixture(scope="module")
def first(shared: Path) -> TrackerSequence:
    return open_csv(shared / FOLDER / f"{A}.csv").frames


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(end=st.integers(0, 6000))
def test_any_cut_gives_the_whole_rows_before_it_or_one_sentence(
    shared: Path, first: TrackerSequence, tmp_path: Path, end: int
) -> None:
    """Heights may differ by a constant: the floor is found from what is there."""
    data = (shared / FOLDER / f"{A}.csv").read_bytes()[:end]
    (tmp_path / "cut.csv").write_bytes(data)

    try:
        recording = open_recording(tmp_path / "cut.csv")
    except RecordingError:
        assert data.count(b"\n") <= 1
        return

    frames = next(iter(recording.blocks()), None)
    n = data.count(b"\n") - 1
    assert (0 if frames is None else len(frames)) == n
    if frames is not None:
        np.testing.assert_array_equal(frames.position[..., [0, 2]], first.position[:n, :, [0, 2]])
        np.testing.assert_array_equal(frames.rotation, first.rotation[:n])
        shift = frames.position[..., 1] - first.position[:n, :, 1]
        assert np.nanmax(shift) - np.nanmin(shift) < 1e-9


def test_a_stamp_that_is_none_repeats_the_second_before(shared: Path, tmp_path: Path) -> None:
    names, rows = header(shared), raw(shared, A)[:6]
    rows[3]["DateTime"] = "2017-40-40--15-10-38"
    text = "\n".join([",".join(names), *(",".join(r[c] for c in names) for r in rows)]) + "\n"
    (tmp_path / "a.csv").write_text(text)

    recording = open_csv(tmp_path / "a.csv")

    assert recording.info.counts == {"times out of order": 1}
    assert (np.diff(recording.frames.time_ns) > 0).all()


def test_without_knees_the_floor_comes_from_the_head_and_is_said_to_be_assumed(
    shared: Path, tmp_path: Path
) -> None:
    names = [c for c in header(shared) if "Knee" not in c]
    rows = raw(shared, A)
    text = "\n".join([",".join(names), *(",".join(r[c] for c in names) for r in rows)]) + "\n"
    (tmp_path / "a.csv").write_text(text)

    recording = open_csv(tmp_path / "a.csv")

    assert np.percentile(recording.frames.position[:, 0, 1], 95.0) == pytest.approx(1.59, abs=1e-6)
    assert any("assumed to be 1.59 m" in note for note in recording.info.notes)


def test_a_floor_at_zero_is_left_alone(shared: Path, tmp_path: Path) -> None:
    names, rows = header(shared), raw(shared, A)
    for r in rows:
        for c in names:
            if c.endswith("Y") and "Quaternion" not in c and r[c]:
                r[c] = repr(float(r[c]) + 0.98)
    text = "\n".join([",".join(names), *(",".join(r[c] for c in names) for r in rows)]) + "\n"
    (tmp_path / "a.csv").write_text(text)

    recording = open_csv(tmp_path / "a.csv")

    assert recording.frames.position[0, 0, 1] == float(rows[0]["HeadsetY"])
    assert not any("floor" in note for note in recording.info.notes)


def test_no_complete_row_and_no_headset_are_one_sentence(shared: Path, tmp_path: Path) -> None:
    names = ",".join(header(shared))
    (tmp_path / "a.csv").write_text(names + "\n2017-28-4--15-10-37,1,2")
    (tmp_path / "b.csv").write_text(names.replace("HeadsetQuaternionW", "Other") + "\n")

    with pytest.raises(DamagedRecordingError, match="no complete row"):
        open_csv(tmp_path / "a.csv")
    with pytest.raises(RecordingError, match="lacks a column of the headset"):
        open_csv(tmp_path / "b.csv")
