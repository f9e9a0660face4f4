"""The accuracy harness's two trackers files: its own writer read back, and files that are something else."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recordings.base import LoadedRecording, read_all
from recordings.importers import harness_npz
from recordings.importers.harness_jsonl import HarnessJsonlImporter
from recordings.importers.harness_npz import HarnessNpzImporter
from vrik import quat
from vrik.errors import DamagedRecordingError, RecordingError, UnknownFormatError
from vrik.frames import DeviceClass
from vrik.skeleton import BONE

SIX = ["head", "left_hand", "right_hand", "waist", "left_foot", "right_foot"]


def open_file(path: Path) -> LoadedRecording:
    importer = HarnessNpzImporter() if path.suffix == ".npz" else HarnessJsonlImporter()
    recording = importer.open(path)
    return LoadedRecording(recording.info, read_all(recording))


@pytest.fixture(scope="module")
def made(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Two files of one clip as the harness itself writes them: six devices, drop-outs, known skeleton."""
    folder = tmp_path_factory.mktemp("trackers")
    files = {"npz": folder / "trackers.npz", "jsonl": folder / "trackers.jsonl"}
    for kind, path in files.items():
        subprocess.run(
            [
                sys.executable, "-B", str(shared / "bench/accuracy/trackers.py"),
                str(shared / "data/mocap/dev/cmu_02_01.npz"), str(path), "--points", "6", "--dropout", "0.05",
                "--skeleton", "known", *(["--jsonl"] if kind == "jsonl" else []),
            ],
            check=True,
            timeout=60,
        )  # fmt: skip
    return files


def arrays(**changes: Any) -> dict[str, Any]:
    """A small trackers file: 5 frames of two devices; None leaves an array out."""
    content: dict[str, Any] = {
        "t": np.arange(5) / 60.0,
        "names": np.array(["head", "left_hand"]),
        "pos": np.ones((5, 2, 3), np.float32),
        "rot": np.broadcast_to(quat.identity(), (5, 2, 4)).astype(np.float32),
        "valid": np.ones((5, 2), bool),
        "height_m": np.float32(1.7),
        "meta": np.array(json.dumps({"rate": 60.0})),
    }
    content.update(changes)
    return {name: value for name, value in content.items() if value is not None}


def write_npz(path: Path, **changes: Any) -> Path:
    np.savez(path, **arrays(**changes))
    return path


def frame(t: float, **devices: Any) -> dict[str, Any]:
    return {"t": t, "devices": devices}


GOOD = {"valid": True, "pos": [0.0, 1.7, 0.1], "rot": [1.0, 0.0, 0.0, 0.0]}


def write_jsonl(path: Path, lines: list[Any], **header: Any) -> Path:
    first = {"header": {"rate": 60}, "devices": ["head", "left_hand"], **header}
    texts = [line if isinstance(line, str) else json.dumps(line) for line in [first, *lines]]
    path.write_text("\n".join(texts) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("kind", ["npz", "jsonl"])
def test_what_the_harness_writes_is_read(made: dict[str, Path], kind: str) -> None:
    recording = open_file(made[kind])
    frames, info = recording.frames, recording.info

    assert [d.role for d in info.devices] == SIX
    assert [d.serial for d in info.devices] == SIX
    assert [d.device_class for d in info.devices[:4]] == [
        DeviceClass.HMD, DeviceClass.CONTROLLER, DeviceClass.CONTROLLER, DeviceClass.GENERIC_TRACKER,
    ]  # fmt: skip
    assert len(frames) == 172
    assert frames.rate_hz == pytest.approx(60.0, abs=0.01)
    assert info.stature_m == pytest.approx(1.692, abs=0.001)
    assert frames.valid[:, 0].all()
    assert info.counts == {"samples not tracked": int((~frames.valid).sum())}
    assert info.counts["samples not tracked"] > 0
    assert np.isnan(frames.position[~frames.valid]).all()
    np.testing.assert_array_equal(frames.rotation[~frames.valid], quat.identity(int((~frames.valid).sum())))
    assert 1.4 < np.median(frames.position[:, 0, 1]) < 1.7


@pytest.mark.parametrize("kind", ["npz", "jsonl"])
def test_calibration_and_skeleton_of_the_harness_are_the_same_t_pose(
    made: dict[str, Path], kind: str
) -> None:
    """The order of the joints is ours, so left and right, head and feet, lie where the devices are."""
    info = open_file(made[kind]).info

    assert info.calibration is not None
    assert info.skeleton_tpose is not None
    place = np.median(info.calibration.position, axis=0)
    assert np.linalg.norm(place[0] - info.skeleton_tpose[BONE["head"]]) < 0.15
    assert np.linalg.norm(place[1] - info.skeleton_tpose[BONE["leftHand"]]) < 0.12
    assert np.linalg.norm(place[2] - info.skeleton_tpose[BONE["rightHand"]]) < 0.12
    assert np.linalg.norm(place[5] - info.skeleton_tpose[BONE["rightFoot"]]) < 0.12
    assert place[1, 0] < -0.6 < 0.6 < place[2, 0]
    ahead = quat.rotate(info.calibration.rotation[0, 1], np.array([0.0, 0.0, -1.0]))
    np.testing.assert_allclose(ahead, [-1.0, 0.0, 0.0], atol=1e-6)


def test_both_kinds_of_file_hold_the_same_frames(made: dict[str, Path]) -> None:
    npz, jsonl = open_file(made["npz"]).frames, open_file(made["jsonl"]).frames

    np.testing.assert_array_equal(npz.valid, jsonl.valid)
    np.testing.assert_allclose(npz.position, jsonl.position, atol=2e-6)
    assert quat.angle(npz.rotation, jsonl.rotation).max() < 1e-5
    np.testing.assert_allclose(npz.time_ns, jsonl.time_ns, atol=1000)


def test_the_calibration_has_its_own_second_of_frames(made: dict[str, Path]) -> None:
    calibration = open_file(made["npz"]).info.calibration

    assert calibration is not None
    assert len(calibration) == 60
    assert calibration.rate_hz == pytest.approx(60.0)


def test_a_file_with_the_least_it_needs_is_read(tmp_path: Path) -> None:
    path = write_npz(tmp_path / "a.npz", valid=None, height_m=None, meta=None)

    recording = open_file(path)

    assert recording.frames.valid.all()
    assert recording.info.stature_m is None
    assert recording.info.calibration is None
    assert recording.info.skeleton_tpose is None


@pytest.mark.parametrize("height", [np.nan, 0.0, 170.0, -1.7])
def test_a_stature_that_no_person_has_is_not_taken(tmp_path: Path, height: float) -> None:
    assert open_file(write_npz(tmp_path / "a.npz", height_m=np.float32(height))).info.stature_m is None


def test_samples_that_are_said_to_be_valid_and_are_not_are_counted(tmp_path: Path) -> None:
    pos, rot = np.ones((5, 2, 3)), np.tile(quat.identity(), (5, 2, 1))
    pos[1, 0, 1] = np.nan
    rot[2, 1] = 0.0

    recording = open_file(write_npz(tmp_path / "a.npz", pos=pos, rot=rot))

    assert recording.info.counts == {"placeholder samples": 2}
    assert not recording.frames.valid[1, 0]
    assert not recording.frames.valid[2, 1]
    assert np.isfinite(recording.frames.rotation).all()


def test_a_pose_that_is_said_not_to_be_valid_is_not_used(tmp_path: Path) -> None:
    valid = np.ones((5, 2), bool)
    valid[3, 1] = False

    recording = open_file(write_npz(tmp_path / "a.npz", valid=valid))

    assert not recording.frames.valid[3, 1]
    assert np.isnan(recording.frames.position[3, 1]).all()
    assert recording.info.counts == {"samples not tracked": 1}


def test_a_device_name_that_is_no_role_keeps_its_name_and_no_role(tmp_path: Path) -> None:
    info = open_file(write_npz(tmp_path / "a.npz", names=np.array(["head", "tail"]))).info

    assert [(d.serial, d.role) for d in info.devices] == [("head", "head"), ("tail", "")]


@pytest.mark.parametrize(
    "changes",
    [
        {"pos": np.ones((5, 2, 4))},
        {"pos": np.ones((4, 2, 3))},
        {"rot": np.ones((5, 3, 4))},
        {"valid": np.ones((5, 3), bool)},
        {"valid": np.array([["yes", "no"]] * 5)},
        {"t": np.ones((5, 1))},
        {"pos": np.array([["a", "b", "c"]])},
        {"names": np.array(["head", "left_hand", "waist"])},
        {"names": np.array(["head", "head"])},
        {"names": np.array([], str)},
        {"calib_pos": np.ones((3, 2, 3)), "calib_rot": np.ones((3, 1, 4))},
        {"skeleton_tpose": np.ones((24, 3))},
        {"skeleton_tpose": np.full((22, 3), np.nan)},
    ],
)
def test_arrays_that_do_not_fit_are_one_sentence(tmp_path: Path, changes: dict[str, Any]) -> None:
    path = write_npz(tmp_path / "a.npz", **changes)

    with pytest.raises(RecordingError, match=r"a\.npz.*expected"):
        open_file(path)


def test_a_clip_is_not_taken_for_trackers(shared: Path) -> None:
    with pytest.raises(UnknownFormatError, match="looks like a motion capture clip"):
        open_file(shared / "data/mocap/dev/cmu_02_01.npz")


def test_an_estimate_is_not_taken_for_trackers(tmp_path: Path) -> None:
    path = tmp_path / "estimate.npz"
    np.savez(path, t=np.zeros(3), pos=np.zeros((3, 22, 3)), rot=np.zeros((3, 22, 4)))

    with pytest.raises(UnknownFormatError, match="looks like a solved body"):
        open_file(path)


def test_any_other_archive_is_named_by_its_arrays(tmp_path: Path) -> None:
    path = tmp_path / "weights.npz"
    np.savez(path, layer_1=np.zeros(3))

    with pytest.raises(UnknownFormatError, match="layer_1"):
        open_file(path)


class Bomb:
    """Would raise when it is unpickled, if anything ever did that."""

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return (exec, ("raise SystemExit('unpickled')",))


def test_python_objects_are_never_loaded(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    np.savez(path, allow_pickle=True, **arrays(names=np.array([Bomb(), Bomb()], object)))

    with pytest.raises(DamagedRecordingError, match="never loaded"):
        open_file(path)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_a_cut_archive_is_recognised_and_one_sentence(tmp_path: Path, data: st.DataObject) -> None:
    whole = write_npz(tmp_path / "whole.npz").read_bytes()
    path = tmp_path / "cut.npz"
    path.write_bytes(whole[: data.draw(st.integers(60, len(whole) - 1))])

    assert HarnessNpzImporter().recognises(path.read_bytes(), path)
    with pytest.raises(RecordingError, match=r"cut\.npz"):
        open_file(path)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_a_damaged_archive_gives_finite_poses_or_one_sentence(tmp_path: Path, data: st.DataObject) -> None:
    raw = bytearray(write_npz(tmp_path / "whole.npz").read_bytes())
    for _ in range(3):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path / "bad.npz"
    path.write_bytes(bytes(raw))

    try:
        frames = open_file(path).frames
    except RecordingError:
        return

    assert np.isfinite(frames.position[frames.valid]).all()


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_blocks_of_any_size_give_the_same_frames(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, order: Any, save: Any
) -> None:
    rng = np.random.default_rng(1)
    rot = quat.normalize(rng.normal(size=(50, 2, 4)))
    content = arrays(t=np.arange(50) / 60, pos=rng.normal(size=(50, 2, 3)), valid=rng.random((50, 2)) > 0.3)
    save(tmp_path / "a.npz", **content | {"rot": np.asarray(rot, order=order)})
    whole = open_file(tmp_path / "a.npz")

    monkeypatch.setattr(harness_npz, "BLOCK_SAMPLES", 14)
    frames = open_file(tmp_path / "a.npz")

    np.testing.assert_array_equal(frames.frames.valid, content["valid"])
    np.testing.assert_array_equal(frames.frames.position[content["valid"]], content["pos"][content["valid"]])
    np.testing.assert_array_equal(frames.frames.rotation, whole.frames.rotation)
    assert frames.info.counts == whole.info.counts
    assert frames.info.counts["samples not tracked"] == np.count_nonzero(~content["valid"])


def test_a_shape_that_lies_takes_no_memory(tmp_path: Path) -> None:
    data = io.BytesIO()
    np.lib.format.write_array(data, np.ones((5, 2, 3)))
    path = write_npz(tmp_path / "a.npz", pos=None)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("pos.npy", data.getvalue().replace(b"(5, 2, 3), }    ", b"(5000000000,), }"))
    tracemalloc.start()

    with pytest.raises(DamagedRecordingError, match="pos has 240 bytes"):
        open_file(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert peak < 10e6


def test_devices_that_a_line_leaves_out_are_not_valid(tmp_path: Path) -> None:
    lines = [
        frame(0.0, head=GOOD, left_hand=GOOD),
        frame(0.1, head=GOOD),
        frame(0.2, head=GOOD, left_hand={"valid": False}),
    ]

    recording = open_file(write_jsonl(tmp_path / "a.jsonl", lines))

    assert recording.frames.valid.tolist() == [[True, True], [True, False], [True, False]]
    assert recording.info.counts == {"samples not tracked": 2}


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "[]",
        "7",
        '{"t": 0.1}',
        '{"devices": {}}',
        {"t": 0.1, "devices": {"head": {"valid": True, "pos": [1, 2], "rot": [1, 0, 0, 0]}}},
        {"t": 0.1, "devices": {"head": {"valid": True}}},
        {"t": 10**400, "devices": {}},
        {"t": "soon", "devices": {}},
        {"t": 0.1, "devices": {"head": 5}},
    ],
)
def test_a_line_that_is_no_frame_is_left_out_and_named(tmp_path: Path, line: Any) -> None:
    lines = [frame(0.0, head=GOOD), line, frame(0.2, head=GOOD)]

    recording = open_file(write_jsonl(tmp_path / "a.jsonl", lines))

    assert recording.frames.time_ns.tolist() == [0, 200_000_000]
    assert recording.info.counts["rows skipped"] == 1
    assert any("line 3" in note for note in recording.info.notes)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_a_cut_file_gives_every_whole_line(tmp_path: Path, data: st.DataObject) -> None:
    raw = write_jsonl(tmp_path / "whole.jsonl", [frame(i / 60, head=GOOD) for i in range(8)]).read_bytes()
    size = data.draw(st.integers(raw.index(b"\n"), len(raw)))
    path = tmp_path / "cut.jsonl"
    path.write_bytes(raw[:size])
    whole = sum(1 for line in raw[:size].split(b"\n")[1:] if line.endswith(b"}}}"))

    recording = open_file(path)

    assert len(recording.frames) == whole


@pytest.mark.parametrize("pose", [{}, {"pos": [0, 1, 2]}, {"pos": [0, 1], "rot": [1, 0, 0, 0]}, 5])
def test_a_calibration_that_is_no_pose_is_one_sentence(tmp_path: Path, pose: Any) -> None:
    path = write_jsonl(tmp_path / "a.jsonl", [], calibration_tpose={"head": pose})

    with pytest.raises(RecordingError, match="calibration_tpose of head"):
        open_file(path)


def test_sign_flips_of_lines_are_turned_and_told(tmp_path: Path) -> None:
    flipped = {**GOOD, "rot": [-1.0, 0.0, 0.0, 0.0]}
    lines = [frame(i / 60, head=pose) for i, pose in enumerate([GOOD, flipped, flipped, GOOD])]

    recording = open_file(write_jsonl(tmp_path / "a.jsonl", lines))

    assert recording.info.counts == {"samples not tracked": 4, "sign flips": 2}
    assert (recording.frames.rotation[:, 0, 0] == 1.0).all()


def test_a_line_without_end_is_no_frame(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recordings.importers.harness_jsonl.LONGEST_LINE", 1000)
    lines = [frame(0.0, head=GOOD), "7" * 5000, frame(0.2, head=GOOD), "[" * 1000]

    recording = open_file(write_jsonl(tmp_path / "a.jsonl", lines))

    assert len(recording.frames) == 2
    assert recording.info.counts["rows skipped"] == 2
    assert any("line 3" in note for note in recording.info.notes)


def test_a_device_that_the_calibration_leaves_out_is_not_valid_in_it(tmp_path: Path) -> None:
    info = open_file(write_jsonl(tmp_path / "a.jsonl", [], calibration_tpose={"head": GOOD})).info

    assert info.calibration is not None
    assert info.calibration.valid.tolist() == [[True, False]]


def test_each_kind_is_recognised_by_its_content_only(shared: Path, made: dict[str, Path]) -> None:
    npz, jsonl = HarnessNpzImporter(), HarnessJsonlImporter()
    other_lines = shared / "data/cases/c19_index_swap.jsonl"  # "devices" are objects, not names

    assert npz.recognises(made["npz"].read_bytes()[:65536], Path("a.bin"))
    assert jsonl.recognises(made["jsonl"].read_bytes()[:65536], Path("a.txt"))
    assert not npz.recognises(made["jsonl"].read_bytes(), made["jsonl"])
    assert not jsonl.recognises(made["npz"].read_bytes()[:65536], made["npz"])
    assert not jsonl.recognises(other_lines.read_bytes(), other_lines)
    assert not npz.recognises(b"", Path("a.npz"))
    assert not jsonl.recognises(b"", Path("a.jsonl"))
    assert not npz.recognises(b"PK\x03\x04" + bytes(22) + b"\x08\x00\x00\x00word.xml", Path("a.docx"))
