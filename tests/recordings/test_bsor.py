"""BSOR: the real replay, the reported faults, and files that are cut or lie."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recordings.base import LoadedRecording, listening, read_all
from recordings.importers.bsor import FRAME, MAGIC, BsorImporter, strictly_increasing
from vrik import quat
from vrik.errors import DamagedRecordingError, RecordingError, UnsupportedVersionError
from vrik.frames import DeviceClass

FORWARD = np.array([0.0, 0.0, -1.0])
FLIPS = [0, 123, 125]
"""Sign flips of head, left and right hand in the real replay."""


def open_bsor(path: Path) -> LoadedRecording:
    recording = BsorImporter().open(path)
    return LoadedRecording(recording.info, read_all(recording))


def text(value: str, stated: int | None = None) -> bytes:
    raw = value.encode()
    return struct.pack("<i", len(raw) if stated is None else stated) + raw


def info_section(
    name: bytes = text("somebody"), modifiers: str = "", height_m: float = 1.8, speed: float = 0.0
) -> bytes:
    strings = [
        text(s) for s in ("0.9", "1.30", "1700000000", "7656119", "steam", "OpenVR", "HMD X", "Pads", "ABCD")
    ]
    strings = [*strings[:4], name, *strings[4:], text("A song"), text("A mapper"), text("Expert")]
    tail = (
        text("Standard")
        + text("Env")
        + text(modifiers)
        + struct.pack("<fBffff", 18.0, 0, height_m, 0.0, 0.0, speed)
    )
    return MAGIC + b"\x01\x00" + b"".join(strings) + struct.pack("<i", 1000) + tail


def frame_bytes(n: int) -> bytes:
    """Unity axes: head 1.7 m up, hands at the sides and in front, everything looking along +Z."""
    frames = np.zeros(n, FRAME)
    frames["time"] = np.arange(n) / 90.0
    frames["fps"] = 90
    frames["poses"]["position"] = [[0.0, 1.7, 0.1], [-0.3, 1.2, 0.5], [0.3, 1.2, 0.5]]
    frames["poses"]["position"][:, 0, 0] += np.arange(n) * 0.001
    frames["poses"]["rotation"] = [0.0, 0.0, 0.0, 1.0]
    return frames.tobytes()


def replay(n: int = 20, stated: int | None = None, **info: object) -> bytes:
    count = struct.pack("<i", n if stated is None else stated)
    return info_section(**info) + b"\x01" + count + frame_bytes(n)  # type: ignore[arg-type]


def test_the_real_replay_shows_what_was_played(shared: Path) -> None:
    recording = open_bsor(shared / "data/vr/bsor/vivepro2_knuckles.bsor")
    frames, info = recording.frames, recording.info

    assert len(frames) == 15185
    assert frames.rate_hz == pytest.approx(91.0, abs=0.5)
    assert frames.duration_s == pytest.approx(168.7, abs=0.1)
    assert [(d.role, d.device_class) for d in info.devices] == [
        ("head", DeviceClass.HMD),
        ("left_hand", DeviceClass.CONTROLLER),
        ("right_hand", DeviceClass.CONTROLLER),
    ]
    assert info.devices[0].model == "VIVE Pro 2"
    assert info.counts == {"repeated times": 4, "placeholder frames": 1, "sign flips": sum(FLIPS)}
    assert not frames.valid[0].any()
    assert frames.valid[1:].all()
    assert np.median(frames.position[1:, 0, 1]) == pytest.approx(1.80, abs=0.01)
    assert any("saber" in note for note in info.notes)


def test_in_the_real_replay_left_is_left_and_forward_is_forward(shared: Path) -> None:
    frames = open_bsor(shared / "data/vr/bsor/vivepro2_knuckles.bsor").frames.part(slice(1, None))

    to_head = quat.conjugate(frames.rotation[:, 0])
    left, right = (
        quat.rotate(to_head, frames.position[:, k] - frames.position[:, 0]).mean(axis=0) for k in (1, 2)
    )
    ahead = quat.rotate(frames.rotation[:, 0], FORWARD).mean(axis=0)

    assert left[0] < -0.1 < 0.1 < right[0]
    assert left[1] < -0.3
    assert right[1] < -0.3
    assert ahead[2] < -0.9


def test_the_hands_of_the_real_replay_flip_signs_in_the_file_and_not_after_import(shared: Path) -> None:
    """Hundreds of neighbours are the same rotation with the opposite sign (case C53)."""
    path = shared / "data/vr/bsor/vivepro2_knuckles.bsor"
    data = path.read_bytes()
    raw = np.frombuffer(data, FRAME, 15185, data.index(b"\x01" + struct.pack("<i", 15185)) + 5)["poses"][
        "rotation"
    ]
    recording = open_bsor(path)
    frames = recording.frames

    in_file = [int((np.sum(raw[2:, k] * raw[1:-1, k], axis=-1) < 0).sum()) for k in (0, 1, 2)]
    after = np.sum(frames.rotation[2:] * frames.rotation[1:-1], axis=-1)

    assert in_file == FLIPS
    assert 100 <= min(in_file[1:]) <= max(in_file[1:]) <= 480
    assert recording.info.counts["sign flips"] == sum(in_file)
    assert any(f"change sign between neighbours {sum(in_file)} times" in n for n in recording.info.notes)
    assert (after > 0).all()


def test_the_stated_height_of_the_real_replay_does_not_fit_its_head(shared: Path) -> None:
    """It states 1.98 m, the eyes are at 1.80 m: no stature is better than one that is 5 cm too tall."""
    info = open_bsor(shared / "data/vr/bsor/vivepro2_knuckles.bsor").info

    assert info.stature_m is None
    assert any("1.98" in note for note in info.notes)


@pytest.mark.parametrize("name", ["c65_name_short_count.bsor", "c65_name_right_count.bsor"])
def test_a_name_with_a_short_count_does_not_shift_the_rest(shared: Path, name: str) -> None:
    """Case C65: old writers counted UTF-16 units and wrote UTF-8 bytes."""
    recording = open_bsor(shared / "data/cases" / name)

    assert len(recording.frames) == 10
    assert recording.frames.valid.all()
    np.testing.assert_allclose(recording.frames.position[:, 0, 1], 1.7, atol=1e-6)
    assert recording.info.devices[0].model == "Test HMD"


def test_placeholders_are_no_poses_and_equal_times_are_spread(shared: Path) -> None:
    """Case C67. Song time stands still in the first frames: none is dropped, each gets a time of its own."""
    recording = open_bsor(shared / "data/cases/c67_start_of_file.bsor")
    frames = recording.frames

    assert recording.info.counts == {"repeated times": 5, "placeholder frames": 2}
    assert frames.valid.all(axis=1).tolist() == [False] * 2 + [True] * 14
    assert np.isfinite(frames.rotation).all()
    assert (np.diff(frames.time_ns) > 0).all()
    assert any("5; each comes 11.1 ms after" in note and "0.06 s" in note for note in recording.info.notes)
    assert np.isfinite(frames.rate_hz)
    np.testing.assert_allclose(frames.position[-1, 0, 1], 1.7, atol=0.02)


def test_no_personal_data_leaves_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.bsor"
    path.write_bytes(replay(name=text("Jane Doe")))

    info = open_bsor(path).info

    shown = repr((info.devices, info.notes, info.counts))
    assert "Jane" not in shown
    assert "7656119" not in shown


@pytest.mark.parametrize(
    ("height_m", "taken"), [(1.82, True), (1.98, False), (0.0, False), (17.0, False), (np.nan, False)]
)
def test_a_stated_height_is_taken_when_it_fits_the_head(tmp_path: Path, height_m: float, taken: bool) -> None:
    """The head of these files is at 1.70 m, which belongs to a person of 1.82 m."""
    path = tmp_path / "a.bsor"
    path.write_bytes(replay(height_m=height_m))

    stature_m = open_bsor(path).info.stature_m

    assert (stature_m is not None) == taken


@pytest.mark.parametrize("changed", [{"modifiers": "NF,SS"}, {"speed": 0.8}])
def test_a_song_at_another_speed_is_told(tmp_path: Path, changed: dict[str, object]) -> None:
    plain, other = tmp_path / "plain.bsor", tmp_path / "other.bsor"
    plain.write_bytes(replay())
    other.write_bytes(replay(**changed))

    assert not any("speed" in note for note in open_bsor(plain).info.notes)
    assert any("speed" in note for note in open_bsor(other).info.notes)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_a_file_cut_anywhere_gives_a_prefix_or_one_sentence(tmp_path: Path, data: st.DataObject) -> None:
    whole = replay(12)
    size = data.draw(st.integers(0, len(whole)))
    path = tmp_path / "cut.bsor"
    path.write_bytes(whole[:size])
    complete = max(0, size - (len(whole) - 12 * FRAME.itemsize)) // FRAME.itemsize

    if complete == 0:
        with pytest.raises(DamagedRecordingError, match=r"cut\.bsor"):
            open_bsor(path)
        return
    recording = open_bsor(path)

    assert len(recording.frames) == complete
    assert recording.info.counts.get("frames lost", 0) == 12 - complete
    np.testing.assert_allclose(recording.frames.position[:, 0, 0], np.arange(complete) * 0.001, atol=1e-6)


@pytest.mark.parametrize("stated", [-1, -(2**31)])
def test_a_negative_count_is_refused(tmp_path: Path, stated: int) -> None:
    path = tmp_path / "a.bsor"
    path.write_bytes(replay(stated=stated))

    with pytest.raises(DamagedRecordingError, match="states -"):
        open_bsor(path)


def test_a_huge_count_allocates_nothing_and_gives_what_is_there(tmp_path: Path) -> None:
    path = tmp_path / "a.bsor"
    path.write_bytes(replay(20, stated=2**31 - 1))

    recording = open_bsor(path)

    assert len(recording.frames) == 20
    assert recording.info.counts["frames lost"] == 2**31 - 1 - 20


@pytest.mark.parametrize("size", [-5, 2**31 - 1])
def test_an_impossible_string_length_is_refused(tmp_path: Path, size: int) -> None:
    path = tmp_path / "a.bsor"
    path.write_bytes(replay(name=text("x", stated=size)))

    with pytest.raises(DamagedRecordingError, match="info section"):
        open_bsor(path)


def test_a_newer_version_is_refused_with_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "a.bsor"
    path.write_bytes(MAGIC + b"\x07" + replay()[5:])

    with pytest.raises(UnsupportedVersionError, match="version 7"):
        open_bsor(path)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_a_damaged_byte_never_makes_a_pose_that_is_not_finite(tmp_path: Path, data: st.DataObject) -> None:
    raw = bytearray(replay(6))
    for _ in range(4):
        raw[data.draw(st.integers(4, len(raw) - 1))] = data.draw(st.sampled_from([0, 1, 127, 128, 255]))
    path = tmp_path / "bad.bsor"
    path.write_bytes(bytes(raw))

    try:
        frames = open_bsor(path).frames
    except RecordingError:
        return

    assert np.isfinite(frames.position[frames.valid]).all()
    np.testing.assert_allclose(np.linalg.norm(frames.rotation, axis=-1), 1.0)
    assert (np.diff(frames.time_ns) > 0).all()


def test_a_pause_takes_as_long_as_its_frames(tmp_path: Path) -> None:
    """Song time stands still for 30 frames in which the head moves on: no jump, no step of zero."""
    frames = np.frombuffer(frame_bytes(60), FRAME).copy()
    frames["time"][20:50] = frames["time"][20]
    frames["time"][50:] = frames["time"][20] + np.arange(1, 11) / 90.0
    path = tmp_path / "pause.bsor"
    path.write_bytes(info_section() + b"\x01" + struct.pack("<i", 60) + frames.tobytes())

    recording = open_bsor(path)

    assert recording.info.counts["repeated times"] == 29
    np.testing.assert_allclose(np.diff(recording.frames.time_ns), 1e9 / 90.0, rtol=1e-3)


def test_a_song_that_never_starts_gets_the_rate_of_a_headset(tmp_path: Path) -> None:
    frames = np.frombuffer(frame_bytes(10), FRAME).copy()
    frames["time"] = 0.0
    path = tmp_path / "still.bsor"
    path.write_bytes(info_section() + b"\x01" + struct.pack("<i", 10) + frames.tobytes())

    assert open_bsor(path).frames.rate_hz == pytest.approx(90.0, abs=0.01)


def test_only_its_magic_is_recognised(tmp_path: Path) -> None:
    importer = BsorImporter()

    assert importer.recognises(replay()[:100], tmp_path / "a.dat")
    assert not importer.recognises(b"", tmp_path / "a.bsor")
    assert not importer.recognises(b"HIERARCHY", tmp_path / "a.bsor")


def test_years_between_damaged_times_do_not_overflow_the_clock() -> None:
    song_ns = np.array([0, *[9 * 10**18] * 600], np.int64)

    time_ns, repeated, step_ns = strictly_increasing(song_ns)

    assert (time_ns[1:] > time_ns[:-1]).all()
    assert repeated == 599
    assert step_ns < 1_000_000_000


def test_reading_tells_how_far_it_is(tmp_path: Path) -> None:
    (tmp_path / "a.bsor").write_bytes(replay(9_000))
    told: list[tuple[int, int | None]] = []

    with listening(lambda done, total: told.append((done, total))):
        BsorImporter().open(tmp_path / "a.bsor")

    assert len(told) > 1
    assert told[-1] == (9_000 * FRAME.itemsize, 9_000 * FRAME.itemsize)
    assert told == sorted(told)
