"""SlimeVR recordings, written here from the format's description: whole, cut, damaged, with wrong counts."""

from __future__ import annotations

import struct
import tracemalloc
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recordings import RecordingWriter, open_recording, read_all
from recordings.importers import slimevr, slimevr_samples, slimevr_walk
from recordings.importers.slimevr import SlimeVrImporter
from vrik import quat
from vrik.body import EYE_HEIGHT_SHARE
from vrik.errors import DamagedRecordingError, RecordingError
from vrik.frames import TrackerSequence, TrackingResult

HEAD, WAIST, HIP, LEFT_LOWER_LEG, LEFT_FOOT, LEFT_HAND, RIGHT_HAND = 0, 4, 5, 8, 10, 16, 17


@dataclass(frozen=True)
class Frame:
    """One tracker in one frame, as SlimeVR has it."""

    rotation_xyzw: tuple[float, ...] | None = None
    position: tuple[float, ...] | None = None
    place: int | None = None
    designation: str = ""
    acceleration: tuple[float, ...] | None = None
    raw_xyzw: tuple[float, ...] | None = None

    def data(self) -> bytes:
        parts = (
            (1, text(self.designation) if self.designation else None),
            (2, floats(self.rotation_xyzw)),
            (4, floats(self.position)),
            (8, None if self.place is None else struct.pack(">i", self.place)),
            (16, floats(self.acceleration)),
            (32, floats(self.raw_xyzw)),
        )
        flags = sum(bit for bit, part in parts if part is not None)
        return struct.pack(">i", flags) + b"".join(part for _, part in parts if part is not None)


def text(words: str) -> bytes:
    data = words.encode()
    return struct.pack(">H", len(data)) + data


def floats(values: tuple[float, ...] | None) -> bytes | None:
    return None if values is None else struct.pack(f">{len(values)}f", *values)


def turned(i: int) -> tuple[float, ...]:
    return (0.0, float(np.sin(0.1 * i)), 0.0, float(np.cos(0.1 * i)))


NOTHING = Frame()


def pose(i: int, place: int, x: float = 0.0, y: float = 1.6) -> Frame:
    return Frame(
        turned(i), (x, y + 0.01 * i, -0.2), place, acceleration=(9.0, 9.0, 9.0), raw_xyzw=(1, 0, 0, 0)
    )


def tracks(n: int = 6) -> dict[str, list[Frame]]:
    return {
        "HMD": [pose(i, HEAD) for i in range(n)],
        "Left": [pose(i, LEFT_HAND, -0.3, 1.1) for i in range(n)],
        "Right": [pose(i, RIGHT_HAND, 0.3, 1.1) for i in range(n)],
        "Hüfte": [Frame(turned(i), place=HIP) for i in range(n)],
    }


def pfr(content: dict[str, list[Frame]]) -> bytes:
    data = struct.pack(">i", len(content))
    for name, frames in content.items():
        data += text(name) + struct.pack(">i", len(frames)) + b"".join(f.data() for f in frames)
    return data


def packets(
    content: dict[str, list[Frame]], interval_s: float = 0.01, skip: tuple[int, ...] = ()
) -> list[bytes]:
    made = [b"\0" + struct.pack(">f", interval_s)]
    made += [b"\1" + bytes([i]) + text(name) for i, name in enumerate(content)]
    for number in range(max(map(len, content.values()))):
        for i, frames in enumerate(content.values()):
            if number < len(frames) and number not in skip:
                made.append(b"\2" + bytes([i]) + struct.pack(">i", number) + frames[number].data())
    return made


def proportions(hmd_m: float, floor_m: float) -> bytes:
    return (
        b"\3"
        + struct.pack(">ffH", hmd_m, floor_m, 2)
        + b"".join(text(k) + struct.pack(">f", 0.3) for k in ("NECK", "CHEST"))
    )


def write(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def opened(path: Path) -> TrackerSequence | str:
    """The frames, or the sentence that says why there are none."""
    try:
        return read_all(open_recording(path))
    except RecordingError as error:
        return str(error)


def test_a_pfr_is_read_with_its_poses_places_and_usual_rate(tmp_path: Path) -> None:
    recording = open_recording(write(tmp_path / "a.pfr", pfr(tracks())))
    frames = read_all(recording)

    assert recording.info.format == "slimevr"
    assert [d.serial for d in frames.devices] == ["HMD", "Left", "Right", "Hüfte"]
    assert [d.role for d in frames.devices] == ["head", "left_hand", "right_hand", "waist"]
    np.testing.assert_array_equal(np.diff(frames.time_ns), 20_000_000)
    np.testing.assert_allclose(frames.position[3, 1], [-0.3, 1.13, -0.2], atol=1e-6)
    assert quat.angle(frames.rotation[3, 0], quat.from_rotvec(np.array([0.0, 0.6, 0.0]))) < 1e-6
    assert any("50 Hz" in note for note in recording.info.notes)


def test_a_tracker_that_only_turns_keeps_its_rotation_and_is_never_a_place(tmp_path: Path) -> None:
    recording = open_recording(write(tmp_path / "a.pfr", pfr(tracks())))
    frames = read_all(recording)

    assert not frames.valid[:, 3].any()
    assert (frames.result[:, 3] == TrackingResult.FALLBACK_ROTATION_ONLY).all()
    assert np.isnan(frames.position[:, 3]).all()
    assert quat.angle(frames.rotation[5, 3], quat.from_rotvec(np.array([0.0, 1.0, 0.0]))) < 1e-6
    assert recording.info.counts == {"samples that only turn": 6}
    assert any("Hüfte" in note and "no position" in note for note in recording.info.notes)


def test_rotations_survive_the_way_through_a_native_file(tmp_path: Path) -> None:
    frames = read_all(open_recording(write(tmp_path / "a.pfr", pfr(tracks()))))
    with RecordingWriter(tmp_path / "b.mcap", frames.devices) as writer:
        for frame in frames:
            writer.write(frame)

    back = read_all(open_recording(tmp_path / "b.mcap"))

    np.testing.assert_allclose(back.rotation, frames.rotation, atol=1e-12)
    np.testing.assert_array_equal(back.result, frames.result)
    np.testing.assert_array_equal(back.valid, frames.valid)
    assert np.isnan(back.position[:, 3]).all()


def test_frames_without_data_are_not_valid_and_counted(tmp_path: Path) -> None:
    content = tracks()
    content["Left"][2:4] = [NOTHING, NOTHING]

    recording = open_recording(write(tmp_path / "a.pfr", pfr(content)))

    assert read_all(recording).valid[:, 1].tolist() == [True, True, False, False, True, True]
    assert recording.info.counts["samples without data"] == 2


def test_tracks_of_uneven_length_keep_all_their_frames(tmp_path: Path) -> None:
    content = tracks()
    content["Left"] = content["Left"][:2]

    frames = read_all(open_recording(write(tmp_path / "a.pfr", pfr(content))))

    assert len(frames) == 6
    assert frames.valid.sum(axis=0).tolist() == [6, 2, 6, 0]


def test_holes_in_the_frame_numbers_of_a_pfs_are_gaps_in_time(tmp_path: Path) -> None:
    recording = open_recording(write(tmp_path / "a.pfs", b"".join(packets(tracks(), skip=(2, 3)))))
    frames = read_all(recording)

    assert frames.time_ns.tolist() == [0, 10_000_000, 40_000_000, 50_000_000]
    assert recording.info.counts["holes in the frame numbers"] == 1
    assert [d.role for d in frames.devices] == ["head", "left_hand", "right_hand", "waist"]


def test_old_designations_and_numbers_mean_the_same_place(tmp_path: Path) -> None:
    content = {
        "HMD": [Frame(turned(0), (0, 1.6, 0), designation="body:head")],
        "foot": [Frame(turned(0), (0, 0.1, 0), LEFT_FOOT)],
        "shin": [Frame(turned(0), (0, 0.3, 0), LEFT_LOWER_LEG)],
        "odd": [Frame(turned(0), (0, 0.4, 0), designation="body:tail")],
    }

    recording = open_recording(write(tmp_path / "a.pfr", pfr(content)))

    assert [d.role for d in recording.info.devices] == ["head", "left_foot", "", ""]
    assert any("shin is at left_lower_leg and gets no role" in note for note in recording.info.notes)


def test_the_hip_is_the_waist_and_a_waist_tracker_only_without_it(tmp_path: Path) -> None:
    both = {"w": [pose(0, WAIST)], "h": [pose(0, HIP)]}
    alone = {"w": [pose(0, WAIST)]}

    first = open_recording(write(tmp_path / "a.pfr", pfr(both)))
    second = open_recording(write(tmp_path / "b.pfr", pfr(alone)))

    assert [d.role for d in first.info.devices] == ["", "waist"]
    assert [d.role for d in second.info.devices] == ["waist"]


def test_two_trackers_of_one_name_stay_two(tmp_path: Path) -> None:
    data = struct.pack(">i", 2) + 2 * (text("IMU") + struct.pack(">i", 1) + pose(0, HIP).data())

    assert [d.serial for d in open_recording(write(tmp_path / "a.pfr", data)).info.devices] == [
        "IMU",
        "IMU-2",
    ]


@pytest.mark.parametrize(("hmd_m", "used"), [(1.6, True), (1.2, False), (float("nan"), False)])
def test_the_stated_headset_height_is_used_when_the_headset_was_seen_there(
    tmp_path: Path, hmd_m: float, used: bool
) -> None:
    data = b"".join(packets(tracks())) + proportions(hmd_m, 0.0)

    info = open_recording(write(tmp_path / "a.pfs", data)).info

    assert info.stature_m == (pytest.approx(1.6 / EYE_HEIGHT_SHARE, abs=1e-3) if used else None)


@settings(max_examples=60, deadline=None)
@given(share=st.floats(0.0, 1.0))
def test_a_pfs_cut_anywhere_keeps_every_complete_packet(
    tmp_path_factory: pytest.TempPathFactory, share: float
) -> None:
    made = packets(tracks())
    whole = b"".join(made)
    cut = whole[: int(share * len(whole))]
    ends = np.cumsum([len(p) for p in made])
    complete = [p for p, end in zip(made, ends, strict=True) if end <= len(cut)]
    samples = sum(1 for p in complete if p[0] == 2)
    path = write(tmp_path_factory.mktemp("cut") / "a.pfs", cut)

    frames = opened(path)

    if isinstance(frames, str):
        assert samples == 0
        assert "\n" not in frames
        return
    assert held(frames) == samples


@settings(max_examples=60, deadline=None)
@given(share=st.floats(0.0, 1.0))
def test_a_pfr_cut_anywhere_keeps_every_complete_frame(
    tmp_path_factory: pytest.TempPathFactory, share: float
) -> None:
    content = tracks()
    whole = pfr(content)
    cut = whole[: int(share * len(whole))]
    samples, at = 0, 4
    for name, track in content.items():
        at += len(text(name)) + 4
        for frame in track:
            at += len(frame.data())
            samples += at <= len(cut)
    path = write(tmp_path_factory.mktemp("cut") / "a.pfr", cut)

    frames = opened(path)

    if isinstance(frames, str):
        assert samples == 0
        assert "\n" not in frames
        return
    assert held(frames) == samples
    assert any("cut" in note for note in open_recording(path).info.notes) == (len(cut) < len(whole))


def held(frames: TrackerSequence) -> int:
    return int(np.count_nonzero(frames.valid | (frames.result == TrackingResult.FALLBACK_ROTATION_ONLY)))


@settings(max_examples=100, deadline=None)
@given(at=st.integers(0, 400), value=st.binary(min_size=1, max_size=4), stream=st.booleans())
def test_damage_anywhere_gives_frames_or_a_sentence(
    tmp_path_factory: pytest.TempPathFactory, at: int, value: bytes, stream: bool
) -> None:
    data = bytearray(b"".join(packets(tracks(3))) if stream else pfr(tracks(3)))
    data[at : at + len(value)] = value
    path = write(tmp_path_factory.mktemp("hurt") / "a.bin", bytes(data))

    frames = opened(path)

    if isinstance(frames, str):
        assert "\n" not in frames
        return
    assert np.isfinite(frames.position[frames.valid]).all()
    assert quat.is_rotation(frames.rotation).all()


def test_counts_that_lie_take_no_memory(tmp_path: Path) -> None:
    lie = struct.pack(">i", 1) + text("HMD") + struct.pack(">i", 2**31 - 1) + pose(0, HEAD).data()
    path = write(tmp_path / "a.pfr", lie)
    tracemalloc.start()

    recording = open_recording(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert len(read_all(recording)) == 1
    assert recording.info.counts["frames lost"] == 2**31 - 2
    assert peak < 20e6


def test_a_huge_frame_number_is_one_row(tmp_path: Path) -> None:
    made = packets(tracks(1))
    data = b"".join(made) + b"\2\0" + struct.pack(">I", 2**32 - 1) + pose(1, HEAD).data()

    assert len(read_all(open_recording(write(tmp_path / "a.pfs", data)))) == 2


def test_a_file_without_a_frame_is_damaged(tmp_path: Path) -> None:
    path = write(tmp_path / "a.pfr", pfr(tracks())[:14])

    with pytest.raises(DamagedRecordingError, match="no complete frame"):
        open_recording(path)


def test_other_files_are_not_taken_for_one(shared: Path) -> None:
    importer = SlimeVrImporter()
    files = [p for p in (shared / "data").rglob("*") if p.is_file() and p.stat().st_size]

    assert not [p for p in files if importer.recognises(p.read_bytes()[:65536], p)]
    assert not importer.recognises(b"", Path("a.pfr"))
    assert not importer.recognises(bytes(65536), Path("a.pfr"))
    assert not importer.recognises(b"\x00\x01" * 99, Path("a.pfs"))


KINDS = (
    lambda i: NOTHING,
    lambda i: Frame(turned(i), place=HIP),
    lambda i: Frame(turned(i), (0.1 * i, 1.0, -0.2)),
    lambda i: Frame(turned(i), (0.1 * i, 1.0, -0.2), HIP, acceleration=(9.0, 9.0, 9.0)),
    lambda i: Frame(turned(i), (0.1 * i, 1.0, -0.2), LEFT_FOOT, raw_xyzw=(1, 0, 0, 0)),
    lambda i: Frame(None, (0.1 * i, 1.0, -0.2), designation="body:hip"),
)


@settings(max_examples=80, deadline=None)
@given(
    runs=st.lists(
        st.tuples(st.lists(st.integers(0, 5), min_size=3, max_size=3), st.integers(1, 60)), max_size=5
    ),
    chunk=st.sampled_from([50, 300, 4000]),
    stream=st.booleans(),
)
def test_frames_alike_are_read_at_once_and_are_the_same_as_one_by_one(
    tmp_path_factory: pytest.TempPathFactory, runs: list[tuple[list[int], int]], chunk: int, stream: bool
) -> None:
    """Frames of one layout follow each other until another comes, anywhere in what is read at a time."""
    plan = [kinds for kinds, count in runs for _ in range(count)] or [[2, 2, 2]]
    content = {name: [KINDS[kinds[k]](i) for i, kinds in enumerate(plan)] for k, name in enumerate("abc")}
    data = b"".join(packets(content)) if stream else pfr(content)
    path = write(tmp_path_factory.mktemp("alike") / "a.bin", data)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(slimevr_walk, "CHUNK_BYTES", chunk)
        patched.setattr(slimevr_samples, "WAITING_SAMPLES", 20)
        patched.setattr(slimevr, "BLOCK_SAMPLES", 30)

        walk = slimevr_walk.walk_pfs(path) if stream else slimevr_walk.walk_pfr(path)
        values = walk.samples.of_frames(walk.samples.numbers())

    assert walk.fault == ""
    assert walk.end == len(data)
    assert [track.name for track in walk.samples.tracks] == ["a", "b", "c"]
    for k, frames in enumerate(content.values()):
        none = (np.nan,) * 4
        stated = [(*(f.rotation_xyzw or none), *(f.position or none[:3])) for f in frames]
        np.testing.assert_allclose(values[:, k], stated, rtol=1e-6)
        places = {str(f.place) if f.place else f.designation for f in frames if f.place or f.designation}
        assert walk.samples.tracks[k].moved_place == (len(places) > 1)


def test_the_last_of_two_samples_with_one_number_counts(tmp_path: Path) -> None:
    made = packets(tracks(30))
    again = b"\2\0" + struct.pack(">I", 7) + pose(99, HEAD).data()

    frames = read_all(open_recording(write(tmp_path / "a.pfs", b"".join(made) + again)))

    assert len(frames) == 30
    assert frames.position[7, 0, 1] == pytest.approx(1.6 + 0.99)
