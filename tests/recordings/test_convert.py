"""Conversions: what is kept, what is told, and nothing half-written."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

from recordings import convert as convert_module
from recordings import importers, open_recording, read_all, read_poses
from recordings.base import LoadedRecording, RecordingInfo
from recordings.convert import convert
from recordings.exporters.trackers import device_names, write_jsonl, write_npz
from recordings.native import NativeRecording, RecordingWriter
from vrik import quat
from vrik.body import BodyModel
from vrik.errors import RecordingError, UsageError
from vrik.frames import ROLES, DeviceClass, PoseFrame, TrackedDevice, TrackerSequence
from vrik.skeleton import BONE

HEAD = TrackedDevice("LHR-1", DeviceClass.HMD, "head")
LEFT = TrackedDevice("LHR-2", DeviceClass.CONTROLLER, "left_hand")
RIGHT = TrackedDevice("LHR-3", DeviceClass.CONTROLLER)
BASE = TrackedDevice("LHB-1", DeviceClass.TRACKING_REFERENCE)
DEVICES = (BASE, HEAD, LEFT, RIGHT)
WORN = [1, 2, 3]


def make_sequence(n, seed=1, start_ns=5_000_000_000):
    rng = np.random.default_rng(seed)
    valid = rng.random((n, 4)) > 0.2
    valid[:, 1] = True
    return TrackerSequence.build(
        start_ns + np.arange(n) * 11_111_111,
        DEVICES,
        rng.normal(size=(n, 4, 3)),
        quat.normalize(rng.normal(size=(n, 4, 4))),
        valid,
    )


@pytest.fixture
def session(tmp_path):
    """A native recording with everything in it: (path, frames, T-pose)."""
    frames, tpose = make_sequence(300), make_sequence(20, seed=2)
    path = tmp_path / "session.mcap"
    with RecordingWriter(path, DEVICES, profile={"name": "me"}, settings={"floor": 1}) as writer:
        writer.write_person(1.72, BodyModel.average(1.72).tpose)
        writer.write_calibration(tpose)
        for frame in frames:
            writer.write(frame)
        writer.event("mark", name="a")
    return path, frames, tpose


def test_native_to_native_keeps_all(session, tmp_path):
    path, frames, tpose = session

    report = convert(path, tmp_path / "copy.mcap")

    copy = NativeRecording(tmp_path / "copy.mcap")
    assert (report.frames, report.devices, report.left_out) == (300, 4, ())
    assert read_all(copy).position.tobytes() == frames.position.tobytes()
    assert copy.info.devices == DEVICES
    assert copy.info.stature_m == 1.72
    np.testing.assert_array_equal(copy.info.calibration.position, tpose.position)
    assert copy.profile == {"name": "me"}
    assert copy.settings == {"floor": 1}
    assert [(e.name, e.data) for e in copy.events] == [("mark", {"name": "a"})]


def test_native_to_native_keeps_solved_frames(tmp_path):
    frames, turn, many = make_sequence(5), quat.identity(len(BONE)), np.zeros(len(ROLES))
    with RecordingWriter(tmp_path / "a.mcap", DEVICES, body=BodyModel.average(1.72)) as writer:
        for frame in frames:
            writer.write(frame)
            place = np.full((len(BONE), 3), frame.host_time_ns * 1e-9)
            state = many.astype(np.int64)
            writer.write_pose(PoseFrame(frame.host_time_ns, place, turn, turn, many, state, many))

    report = convert(tmp_path / "a.mcap", tmp_path / "b.mcap")

    before, after = read_poses(tmp_path / "a.mcap"), read_poses(tmp_path / "b.mcap")
    assert report.left_out == ()
    np.testing.assert_array_equal(after.position, before.position)
    np.testing.assert_array_equal(after.body.tpose, before.body.tpose)


def test_foreign_attachments_are_named_as_lost(tmp_path):
    with RecordingWriter(tmp_path / "a.mcap", DEVICES) as writer:
        writer._writer.add_attachment(0, 0, "photo.png", "image/png", b"123")
        for frame in make_sequence(5):
            writer.write(frame)

    report = convert(tmp_path / "a.mcap", tmp_path / "b.mcap")

    assert report.left_out == ("attachments that are not vrik's: photo.png",)


def test_a_cut_recording_becomes_a_whole_one(session, tmp_path):
    path, frames, _ = session
    cut = tmp_path / "cut.mcap"
    cut.write_bytes(path.read_bytes()[:-3_000])

    report = convert(cut, tmp_path / "mended.mcap")

    mended = open_recording(tmp_path / "mended.mcap")
    assert any("truncated" in note for note in report.notes)
    assert mended.info.notes == ()
    assert read_all(mended).position.tobytes() == frames.position[: report.frames].tobytes()


def test_npz_holds_what_the_accuracy_harness_expects(session, tmp_path):
    path, frames, tpose = session

    report = convert(path, tmp_path / "out.npz")

    with np.load(tmp_path / "out.npz", allow_pickle=False) as z:
        arrays = {name: z[name] for name in z.files}
    valid = frames.valid[:, WORN]
    assert arrays["names"].tolist() == ["head", "left_hand", "LHR-3"]
    np.testing.assert_array_equal(arrays["valid"], valid)
    np.testing.assert_array_equal(arrays["pos"][valid], frames.position[:, WORN][valid])
    np.testing.assert_array_equal(arrays["rot"][valid], frames.rotation[:, WORN][valid])
    assert np.isnan(arrays["pos"][~valid]).all()
    assert arrays["t"][0] == 0.0
    np.testing.assert_allclose(np.diff(arrays["t"]), 0.011111111, atol=1e-12)
    assert float(arrays["height_m"]) == 1.72
    np.testing.assert_array_equal(
        arrays["calib_pos"][tpose.valid[:, WORN]], tpose.position[:, WORN][tpose.valid[:, WORN]]
    )
    body = BodyModel.average(1.72).tpose
    np.testing.assert_array_equal(arrays["skeleton_tpose"][15], body[BONE["head"]])
    np.testing.assert_array_equal(arrays["skeleton_tpose"][20], body[BONE["leftHand"]])
    assert json.loads(str(arrays["meta"]))["format"] == "vr-trackers-1"
    told = "; ".join(report.left_out)
    for word in ("serial", "base stations", "LHR-3", "times begin at zero", "events", "profile", "settings"):
        assert word in told


def test_jsonl_holds_what_the_accuracy_harness_expects(session, tmp_path):
    path, frames, tpose = session

    report = convert(path, tmp_path / "out.jsonl")

    lines = (tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines()
    header, rows = json.loads(lines[0]), [json.loads(line) for line in lines[1:]]
    assert header["devices"] == ["head", "left_hand", "LHR-3"]
    assert header["height_m"] == 1.72
    np.testing.assert_allclose(
        header["calibration_tpose"]["head"]["pos"], np.median(tpose.position[:, 1], axis=0)
    )
    assert len(rows) == 300 == report.frames
    for i in (0, 7, 299):
        for k, name in zip(WORN, header["devices"], strict=True):
            sample = rows[i]["devices"][name]
            assert sample["valid"] == frames.valid[i, k]
            if sample["valid"]:
                assert sample["pos"] == frames.position[i, k].tolist()
                assert sample["rot"] == frames.rotation[i, k].tolist()
            else:
                assert set(sample) == {"valid"}
    assert any("T-pose" in sentence for sentence in report.left_out)


def test_the_harness_itself_reads_what_is_written(session, tmp_path, shared):
    """Its own loader in a process of its own, since its modules are scripts."""
    path, _, _ = session
    convert(path, tmp_path / "out.npz")
    program = (
        f"import sys; sys.path.insert(0, {str(shared / 'bench' / 'accuracy')!r}); import trackers\n"
        f"z = trackers.load({str(tmp_path / 'out.npz')!r})\n"
        f"trackers.save({str(tmp_path / 'its.jsonl')!r}, z, True)\n"
        "print(sorted(z), z['pos'].shape)"
    )

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)

    assert done.returncode == 0, done.stderr
    assert "calib_pos" in done.stdout
    assert "(300, 3, 3)" in done.stdout
    assert len((tmp_path / "its.jsonl").read_text().splitlines()) == 301


def test_a_headset_without_a_role_is_written_as_the_head():
    headset = TrackedDevice("LHR-9", DeviceClass.HMD)

    assert device_names((headset, RIGHT, LEFT)) == ("head", "LHR-3", "left_hand")


def test_names_are_never_repeated():
    twins = (LEFT, TrackedDevice("LHR-8", DeviceClass.CONTROLLER, "left_hand"), TrackedDevice("LHR-8", 3))

    assert len(set(device_names(twins))) == 3


def test_empty_recordings_are_written_too(tmp_path):
    frames = make_sequence(0)
    info = RecordingInfo(tmp_path / "x", "test", DEVICES)

    write_npz(tmp_path / "x.npz", frames, info)
    write_jsonl(tmp_path / "x.jsonl", LoadedRecording(info, frames).blocks(), info, 0.0)

    with np.load(tmp_path / "x.npz", allow_pickle=False) as z:
        assert z["pos"].shape == (0, 3, 3)
    assert len((tmp_path / "x.jsonl").read_text().splitlines()) == 1


@pytest.mark.parametrize("name", ["out.csv", "out", "out.npz.bak"])
def test_an_unknown_suffix_is_wrong_usage_and_the_valid_ones_are_listed(session, tmp_path, name):
    with pytest.raises(UsageError, match=r"\.mcap, \.npz, \.jsonl"):
        convert(session[0], tmp_path / name)


def test_a_file_is_not_converted_onto_itself(session):
    with pytest.raises(UsageError, match="source itself"):
        convert(session[0], session[0])


def test_a_missing_folder_is_one_sentence(session, tmp_path):
    with pytest.raises(RecordingError, match="no folder"):
        convert(session[0], tmp_path / "nowhere" / "out.npz")


@pytest.mark.parametrize("suffix", [".mcap", ".npz", ".jsonl"])
@pytest.mark.parametrize("fault", [OSError(28, "No space left"), KeyboardInterrupt(), RecordingError("gone")])
def test_a_conversion_that_fails_leaves_nothing_and_the_old_file_as_it_was(
    session, tmp_path, monkeypatch, suffix, fault
):
    target = tmp_path / f"out{suffix}"
    target.write_text("old")

    class Failing:
        info = RecordingInfo(session[0], "test", DEVICES)

        def blocks(self):
            yield make_sequence(50)
            raise fault

    monkeypatch.setattr(convert_module, "open_recording", lambda path: Failing())
    with pytest.raises((RecordingError, KeyboardInterrupt)):
        convert(session[0], target)

    assert target.read_text() == "old"
    assert sorted(p.name for p in tmp_path.iterdir()) == [f"out{suffix}", "session.mcap"]


def test_the_reader_is_named_once_and_can_be_loaded():
    assert len(set(importers.IMPORTERS)) == len(importers.IMPORTERS)
    for importer in importers.importers():
        assert importer.summary
        assert all(suffix.startswith(".") for suffix in importer.suffixes)
