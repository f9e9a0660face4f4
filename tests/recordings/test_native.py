"""vrik's own recordings: what goes in comes out, bit for bit."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mcap.reader import make_reader
from mcap.writer import Writer

from recordings import open_recording, read_all, read_poses
from recordings.importers import find_importer
from recordings.native import NativeRecording, RecordingWriter
from vrik import quat
from vrik.body import BodyModel
from vrik.errors import (
    NoUsableFramesError,
    RecordingError,
    UnknownFormatError,
    UnsupportedVersionError,
)
from vrik.frames import DeviceClass, PoseFrame, TrackedDevice, TrackerFrame, TrackerSequence, TrackingResult

HEAD = TrackedDevice("LHR-0001", DeviceClass.HMD, "head", "headset äß")
LEFT = TrackedDevice("LHR-0002", DeviceClass.CONTROLLER, "left_hand")
RIGHT = TrackedDevice("LHR-0003", DeviceClass.CONTROLLER, "right_hand")
WAIST = TrackedDevice("LHR-0004", DeviceClass.GENERIC_TRACKER)
ARRAYS = ("time_ns", "position", "rotation", "valid", "result", "linear_velocity", "angular_velocity")


def make_sequence(n, devices=(HEAD, LEFT, RIGHT), seed=1, velocities=False, **ids):
    rng = np.random.default_rng(seed)
    k = len(devices)
    valid = rng.random((n, k)) > 0.1
    position = rng.normal(size=(n, k, 3))
    position[~valid] = np.nan
    return TrackerSequence(
        np.cumsum(rng.integers(0, 20_000_000, n)),
        tuple(devices),
        position,
        quat.normalize(rng.normal(size=(n, k, 4))),
        valid,
        np.where(valid, 200, rng.choice([1, 101, 201, 300], (n, k))).astype(np.int64),
        rng.normal(size=(n, k, 3)) if velocities else None,
        rng.normal(size=(n, k, 3)) if velocities else None,
        **ids,
    )


def write(path, frames, **settings_):
    with RecordingWriter(path, player_id=frames.player_id, space_id=frames.space_id, **settings_) as writer:
        for frame in frames:
            writer.write(frame)


def assert_same(a, b):
    assert a.devices == b.devices
    assert (a.player_id, a.space_id) == (b.player_id, b.space_id)
    for name in ARRAYS:
        left, right = getattr(a, name), getattr(b, name)
        assert (left is None) == (right is None), name
        if left is not None:
            assert left.dtype == right.dtype, name
            assert left.tobytes() == right.tobytes(), name


@pytest.mark.parametrize("velocities", [False, True])
def test_a_recording_comes_back_bit_for_bit(tmp_path, velocities):
    frames = make_sequence(9_000, velocities=velocities, player_id="Zoë", space_id="hall 2")

    write(tmp_path / "a b ü.mcap", frames)
    recording = open_recording(tmp_path / "a b ü.mcap")

    assert_same(read_all(recording), frames)
    assert [len(b) for b in recording.blocks()] == [4096, 4096, 808]
    assert recording.info.counts == {}
    assert recording.info.notes == ()


coordinate = st.floats(allow_infinity=False, allow_nan=False, width=64)


@settings(max_examples=40, deadline=None)
@given(
    rows=st.lists(
        st.tuples(
            st.integers(-(2**62), 2**62),
            st.lists(coordinate, min_size=3, max_size=3),
            st.lists(st.floats(-1, 1), min_size=4, max_size=4),
            st.booleans(),
            st.sampled_from([1, 100, 101, 200, 201, 300]),
        ),
        max_size=8,
    ),
    k=st.integers(1, 3),
)
def test_any_numbers_come_back_bit_for_bit(tmp_path_factory, rows, k):
    """Tiny, huge and negative zero; times before zero too. Only a false 'valid' is corrected."""
    path = tmp_path_factory.mktemp("any") / "x.mcap"
    rows = sorted(rows, key=lambda row: row[0])
    n = len(rows)
    rotation = np.array([r[2] for r in rows], float).reshape(n, 1, 4).repeat(k, 1)
    frames = TrackerSequence(
        np.array([r[0] for r in rows], np.int64),
        (HEAD, LEFT, WAIST)[:k],
        np.array([r[1] for r in rows], float).reshape(n, 1, 3).repeat(k, 1),
        rotation,
        np.array([r[3] for r in rows], bool).reshape(n, 1).repeat(k, 1) & quat.is_rotation(rotation),
        np.array([r[4] for r in rows], np.int64).reshape(n, 1).repeat(k, 1),
    )

    write(path, frames, devices=frames.devices)

    assert_same(read_all(open_recording(path)), frames)


def test_devices_may_come_and_go_and_every_block_has_all_of_them(tmp_path):
    alone = make_sequence(5_000, (HEAD,))
    pair = make_sequence(100, (WAIST, HEAD), seed=2)
    with RecordingWriter(tmp_path / "x.mcap", devices=(HEAD, LEFT)) as writer:
        for frame in [*alone, *pair]:
            writer.write(frame)

    recording = open_recording(tmp_path / "x.mcap")
    blocks = list(recording.blocks())
    frames = read_all(recording)

    assert recording.info.devices == (HEAD, LEFT, WAIST)
    assert all(block.devices == recording.info.devices for block in blocks)
    assert not frames.valid[:, 1].any()
    assert np.all(frames.result[:, 1] == TrackingResult.UNINITIALIZED)
    assert not frames.valid[:5_000, 2].any()
    np.testing.assert_array_equal(frames.position[5_000:, [2, 0]], pair.position)
    np.testing.assert_array_equal(frames.valid[5_000:, [2, 0]], pair.valid)


def test_a_frame_without_any_device_keeps_its_time(tmp_path):
    empty = TrackerFrame(7, (), np.zeros((0, 3)), np.zeros((0, 4)), np.zeros(0, bool), np.zeros(0, np.int64))
    with RecordingWriter(tmp_path / "x.mcap") as writer:
        writer.write(empty)
        writer.write(make_sequence(1, (HEAD,)).frame(0))

    frames = read_all(open_recording(tmp_path / "x.mcap"))

    assert frames.time_ns[0] == 7
    assert not frames.valid[0, 0]


def test_a_role_learnt_later_holds_for_the_device(tmp_path):
    unnamed = TrackedDevice("LHR-0002", DeviceClass.CONTROLLER)
    with RecordingWriter(tmp_path / "x.mcap") as writer:
        writer.write(make_sequence(1, (HEAD, unnamed)).frame(0))
        writer.write(make_sequence(1, (HEAD, LEFT)).frame(0))

    assert open_recording(tmp_path / "x.mcap").info.devices == (HEAD, LEFT)


@pytest.mark.parametrize("bad", [[0, 0, 0, 0], [-1, -1, -1, -1], [np.nan, 0, 0, 0]])
def test_a_pose_without_a_rotation_is_not_valid_and_not_mended(tmp_path, bad):
    frames = make_sequence(3, (HEAD,))
    frames.valid[:] = True
    frames.position[:] = 1.0
    frames.rotation[1, 0] = bad
    write(tmp_path / "x.mcap", frames)

    recording = open_recording(tmp_path / "x.mcap")
    back = read_all(recording)

    assert back.valid[:, 0].tolist() == [True, False, True]
    np.testing.assert_array_equal(back.rotation[1, 0], bad)
    assert recording.info.counts["samples without a rotation"] == 1


def test_times_never_run_backwards(tmp_path):
    frames = make_sequence(5_000, (HEAD,))
    jumpy = np.arange(5_000) * 100
    jumpy[4_096] = 50
    jumpy[10] = 3
    with RecordingWriter(tmp_path / "x.mcap") as writer:
        for i, frame in enumerate(frames):
            writer.write(
                TrackerFrame(
                    int(jumpy[i]), frame.devices, frame.position, frame.rotation, frame.valid, frame.result
                )
            )

    times = read_all(open_recording(tmp_path / "x.mcap")).time_ns

    assert np.all(np.diff(times) >= 0)
    assert times[4_096] == times[4_095]
    assert times[-1] == jumpy[-1]


def test_person_profile_events_and_t_pose_survive(tmp_path):
    tpose = make_sequence(30, (LEFT, HEAD), seed=3)
    joints = BodyModel.average(1.7).tpose
    profile = {"name": "me", "lengths": [0.1, 0.2]}
    with RecordingWriter(tmp_path / "x.mcap", profile=profile, settings={"hold_s": 0.3}) as writer:
        writer.write_person(1.7, joints)
        writer.write_calibration(tpose)
        for frame in make_sequence(5):
            writer.write(frame)
        writer.event("mark", label="start", host_time_ns=5)
        writer.write_profile({"name": "other"})

    recording = NativeRecording(tmp_path / "x.mcap")

    assert recording.info.stature_m == 1.7
    np.testing.assert_array_equal(recording.info.skeleton_tpose, joints)
    assert set(recording.info.calibration.devices) == {LEFT, HEAD}
    order = [recording.info.calibration.devices.index(d) for d in tpose.devices]
    np.testing.assert_array_equal(recording.info.calibration.position[:, order], tpose.position)
    np.testing.assert_array_equal(recording.info.calibration.time_ns, tpose.time_ns)
    assert recording.profile == {"name": "other"}
    assert [(e.name, e.host_time_ns, e.data) for e in recording.events] == [("mark", 5, {"label": "start"})]
    with (tmp_path / "x.mcap").open("rb") as stream:
        attached = {a.name: json.loads(a.data) for a in make_reader(stream).iter_attachments()}
    assert attached == {"profile.json": profile, "settings.json": {"hold_s": 0.3}}


def make_poses(n, seed=4):
    rng = np.random.default_rng(seed)
    return [
        PoseFrame(
            i * 1_000,
            rng.normal(size=(22, 3)),
            quat.normalize(rng.normal(size=(22, 4))),
            quat.normalize(rng.normal(size=(22, 4))),
            rng.random(13),
            rng.integers(0, 5, 13),
            rng.random(13),
        )
        for i in range(n)
    ]


def test_solved_frames_come_back(tmp_path):
    poses = make_poses(50)
    body = BodyModel.average(1.83)
    with RecordingWriter(tmp_path / "x.mcap", body=body) as writer:
        for pose, frame in zip(poses, make_sequence(50), strict=True):
            writer.write(frame)
            writer.write_pose(pose)

    back = read_poses(tmp_path / "x.mcap")

    assert back.time_ns.tolist() == [p.host_time_ns for p in poses]
    for name in ("position", "rotation", "reach_error_m", "state"):
        np.testing.assert_array_equal(getattr(back, name), np.stack([getattr(p, name) for p in poses]))
    np.testing.assert_array_equal(back.body.tpose, body.tpose)
    assert back.body.stature_m == 1.83
    assert len(read_all(open_recording(tmp_path / "x.mcap"))) == 50


def test_a_recording_without_solved_frames_says_so(tmp_path):
    write(tmp_path / "x.mcap", make_sequence(3))

    with pytest.raises(NoUsableFramesError, match="vrik solve"):
        read_poses(tmp_path / "x.mcap")


def test_a_stranger_reads_it_with_mcap_and_numpy_alone(tmp_path):
    """Index, checksums, topics and dtype as the mcap library sees them."""
    frames = make_sequence(500, player_id="p7", space_id="s9")
    write(tmp_path / "x.mcap", frames)

    with (tmp_path / "x.mcap").open("rb") as stream:
        reader = make_reader(stream, validate_crcs=True)
        metadata = {m.name: m.metadata for m in reader.iter_metadata()}
        found = list(reader.iter_messages(topics=["/vrik/trackers"]))
    schema, channel, _ = found[0]
    dtype = np.dtype(json.loads(schema.data)["numpy_dtype"])
    rows = np.stack([np.frombuffer(message.data, dtype) for _, _, message in found])

    assert schema.name == "vrik.TrackerFrame"
    assert channel.metadata["player_id"] == "p7"
    assert channel.metadata["space_id"] == "s9"
    assert metadata["vrik"]["format"] == "vrik/1"
    assert {"axes", "units", "quaternions", "software"} <= set(metadata["vrik"])
    np.testing.assert_array_equal(rows["position"], frames.position)
    np.testing.assert_array_equal(rows["host_time_ns"][:, 0], frames.time_ns)


def foreign(path, profile, topics, metadata=None):
    with path.open("wb") as stream:
        writer = Writer(stream)
        writer.start(profile, "someone else")
        if metadata:
            writer.add_metadata("vrik", metadata)
        for topic in topics:
            writer.add_message(writer.register_channel(topic, "json", 0), 1, b"{}", 1)
        writer.finish()


def test_another_mcap_file_is_refused_with_the_channels_it_has(tmp_path):
    foreign(tmp_path / "x.mcap", "ros2", ["/pose/head", "/imu"])

    with pytest.raises(UnknownFormatError, match="/pose/head, /imu"):
        open_recording(tmp_path / "x.mcap")


@pytest.mark.parametrize(
    ("profile", "metadata"), [("vrik/2", None), ("vrik/1", {"format": "vrik/12"}), ("vrik/next", None)]
)
def test_an_unknown_version_is_refused_with_what_to_do(tmp_path, profile, metadata):
    foreign(tmp_path / "x.mcap", profile, ["/vrik/trackers"], metadata)

    with pytest.raises(UnsupportedVersionError, match="update"):
        open_recording(tmp_path / "x.mcap")


def test_unknown_channels_are_skipped(tmp_path):
    foreign(tmp_path / "x.mcap", "vrik/1", ["/hr", "/vrik/future"], {"format": "vrik/1"})

    assert len(read_all(open_recording(tmp_path / "x.mcap"))) == 0


def test_a_frame_of_another_player_is_a_mistake_of_the_caller(tmp_path):
    with (
        RecordingWriter(tmp_path / "x.mcap", player_id="a") as writer,
        pytest.raises(ValueError, match="player1"),
    ):
        writer.write(make_sequence(1).frame(0))


def test_a_file_that_cannot_be_made_is_one_sentence(tmp_path):
    with pytest.raises(RecordingError, match="cannot write"):
        RecordingWriter(tmp_path / "no such folder" / "x.mcap")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
def test_a_full_disk_is_one_sentence():
    with pytest.raises(RecordingError, match="any further"):
        RecordingWriter("/dev/full")


def test_nothing_can_be_added_once_it_is_closed(tmp_path):
    writer = RecordingWriter(tmp_path / "x.mcap")
    writer.close()
    writer.close()

    with pytest.raises(RecordingError, match="closed"):
        writer.write(make_sequence(1).frame(0))


def test_missing_folder_empty_and_strange_files_are_one_sentence(tmp_path):
    (tmp_path / "empty.mcap").touch()
    (tmp_path / "text.txt").write_text("hello")

    with pytest.raises(RecordingError, match="no file"):
        open_recording(tmp_path / "missing.mcap")
    with pytest.raises(RecordingError, match="folder"):
        open_recording(tmp_path)
    with pytest.raises(UnknownFormatError, match="empty"):
        open_recording(tmp_path / "empty.mcap")
    with pytest.raises(UnknownFormatError, match=r"\.mcap"):
        open_recording(tmp_path / "text.txt")


def test_content_decides_and_not_the_suffix(tmp_path):
    write(tmp_path / "session.csv", make_sequence(3))

    assert find_importer(tmp_path / "session.csv").name == "vrik"
    assert len(read_all(open_recording(tmp_path / "session.csv"))) == 3
