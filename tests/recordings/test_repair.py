"""Repair: every undamaged frame is saved as it was, what is lost is counted, and lies cost no memory."""

from __future__ import annotations

import json
import struct
import tracemalloc
from dataclasses import replace
from functools import cache
from pathlib import Path

import lz4.frame
import numpy as np
import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recordings import open_recording, read_all, read_poses, schema
from recordings.native import NativeRecording, RecordingWriter
from recordings.repair import repair
from vrik import quat
from vrik.body import BodyModel
from vrik.errors import DamagedRecordingError, RecordingError, UnknownFormatError, UsageError
from vrik.frames import ROLES, DeviceClass, PoseFrame, TrackedDevice, TrackerSequence
from vrik.skeleton import BONES

DEVICES = (TrackedDevice("H", DeviceClass.HMD, "head"), TrackedDevice("C", DeviceClass.CONTROLLER))
N = 1_500
CHUNK, INDEX, STATISTICS, DATA_END, FOOTER = 6, 7, 11, 15, 2


def sequence(n: int = N) -> TrackerSequence:
    rng = np.random.default_rng(5)
    rotation = quat.normalize(rng.normal(size=(n, 2, 4)))
    made = TrackerSequence.build(
        np.arange(n) * 11_111_111, DEVICES, rng.normal(size=(n, 2, 3)), rotation, np.ones((n, 2), bool)
    )
    return replace(made, player_id="p2")


def pose(time_ns: int) -> PoseFrame:
    position = np.full((len(BONES), 3), time_ns * 1e-9)
    turn, many = quat.identity(len(BONES)), np.zeros(len(ROLES))
    return PoseFrame(time_ns, position, turn, turn, many, many.astype(np.int64), many)


def write(path: Path, frames: TrackerSequence, full: bool = False) -> bytes:
    """A closed recording; ``full`` adds everything else that a recording can hold."""
    body = BodyModel.average(1.8)
    about = {"profile": {"name": "anna"}, "settings": {"floor": 1}, "body": body} if full else {}
    with RecordingWriter(path, DEVICES, player_id="p2", **about) as writer:  # type: ignore[arg-type]
        if full:
            writer.write_person(1.8, body.tpose)
            writer.write_calibration(frames.part(slice(0, 7)))
        for i, frame in enumerate(frames):
            writer.write(frame)
            if full and i % 10 == 0:
                writer.write_pose(pose(frame.host_time_ns))
        if full:
            writer.event("mark", note="end")
    return path.read_bytes()


@pytest.fixture(scope="module")
def frames() -> TrackerSequence:
    return sequence()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, frames: TrackerSequence) -> bytes:
    return write(tmp_path_factory.mktemp("repair") / "whole.mcap", frames)


def records(content: bytes) -> list[tuple[int, int, int]]:
    """(opcode, offset, size with its head) of the top-level records."""
    at, found = 8, []
    while at + 9 <= len(content) - 8:
        size = 9 + int.from_bytes(content[at + 1 : at + 9], "little")
        found.append((content[at], at, size))
        at += size
    return found


def nth_chunk(content: bytes, n: int) -> tuple[int, int]:
    return [(at, size) for opcode, at, size in records(content) if opcode == CHUNK][n]


def damaged(path: Path, content: bytes | bytearray) -> Path:
    path.write_bytes(content)
    return path


def assert_same(saved: TrackerSequence, frames: TrackerSequence) -> None:
    kept = np.isin(frames.time_ns, saved.time_ns)
    assert saved.time_ns.tolist() == frames.time_ns[kept].tolist()
    np.testing.assert_array_equal(saved.position, frames.position[kept])
    np.testing.assert_array_equal(saved.rotation, frames.rotation[kept])


def test_an_undamaged_file_is_said_to_be_and_written_with_all_it_holds(
    tmp_path: Path, frames: TrackerSequence
) -> None:
    content = write(tmp_path / "a.mcap", frames, full=True)

    report = repair(tmp_path / "a.mcap", tmp_path / "b.mcap")
    before, after = NativeRecording(tmp_path / "a.mcap"), NativeRecording(tmp_path / "b.mcap")

    assert report.undamaged
    assert (report.frames, report.frames_lost, report.bytes_lost) == (N, 0, 0)
    assert (report.solved_frames, report.tpose_frames, report.events) == (150, 7, 1)
    assert (tmp_path / "a.mcap").read_bytes() == content
    assert_same(read_all(after), frames)
    assert after.info.devices == before.info.devices == DEVICES
    assert after.profile == before.profile == {"name": "anna"}
    assert after.events == before.events
    assert after.info.stature_m == 1.8
    np.testing.assert_array_equal(after.info.skeleton_tpose, before.info.skeleton_tpose)
    assert after.info.calibration is not None
    assert_same(after.info.calibration, frames.part(slice(0, 7)))
    assert after.info.notes == ()
    assert read_all(after).player_id == "p2"
    one, two = read_poses(tmp_path / "a.mcap"), read_poses(tmp_path / "b.mcap")
    np.testing.assert_array_equal(one.position, two.position)
    np.testing.assert_array_equal(one.body.tpose, two.body.tpose)


def test_repairing_a_repaired_file_changes_nothing(tmp_path: Path, whole: bytes) -> None:
    source = damaged(tmp_path / "a.mcap", whole[: len(whole) // 2])

    first = repair(source, tmp_path / "b.mcap")
    second = repair(tmp_path / "b.mcap", tmp_path / "c.mcap")

    assert not first.undamaged
    assert second.undamaged
    assert second.frames == first.frames


def test_a_file_that_was_never_closed_is_saved_to_its_last_frame(
    tmp_path: Path, whole: bytes, frames: TrackerSequence
) -> None:
    end = next(at for opcode, at, _ in records(whole) if opcode == DATA_END)

    report = repair(damaged(tmp_path / "a.mcap", whole[:end]), tmp_path / "b.mcap")

    assert report.truncated
    assert report.end_unknown
    assert not report.undamaged
    assert (report.frames, report.frames_lost, report.bytes_lost) == (N, 0, 0)
    assert_same(read_all(open_recording(tmp_path / "b.mcap")), frames)


def test_a_lost_footer_loses_no_frame_and_nothing_is_unknown(tmp_path: Path, whole: bytes) -> None:
    report = repair(damaged(tmp_path / "a.mcap", whole[:-20]), tmp_path / "b.mcap")

    assert report.truncated
    assert not report.end_unknown
    assert (report.frames, report.frames_lost) == (N, 0)


@pytest.mark.parametrize(
    ("closed", "zeroed_head", "lost_by"),
    [
        (True, False, "statistics"),
        (True, True, "statistics"),
        (False, False, "sequence numbers"),
        (False, True, "sequence numbers"),
    ],
)
def test_lost_frames_are_counted_whatever_is_left_to_count_by(
    tmp_path: Path, whole: bytes, frames: TrackerSequence, closed: bool, zeroed_head: bool, lost_by: str
) -> None:
    """Flipped bytes in a chunk, or a record without a head, in a file with and without its summary."""
    at, size = nth_chunk(whole, 2)
    end = len(whole) if closed else next(at for opcode, at, _ in records(whole) if opcode == DATA_END)
    hurt = bytearray(whole[:end])
    if zeroed_head:
        hurt[at : at + 60] = bytes(60)
    else:
        hurt[at + size // 2] ^= 0x55

    report = repair(damaged(tmp_path / "a.mcap", hurt), tmp_path / "b.mcap")

    assert report.lost_by == lost_by
    assert 50 < report.frames_lost < 400
    assert report.frames + report.frames_lost == N
    assert report.bytes_lost >= size // 2
    assert_same(read_all(open_recording(tmp_path / "b.mcap")), frames)


def unnumbered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Frames as writers made them that gave no sequence numbers."""
    from mcap.writer import Writer

    plain = Writer.add_message
    monkeypatch.setattr(
        Writer, "add_message", lambda self, c, t, data, p, sequence=0: plain(self, c, t, data, p)
    )


def test_without_numbers_the_index_tells_and_else_bytes(
    tmp_path: Path, frames: TrackerSequence, monkeypatch: pytest.MonkeyPatch
) -> None:
    unnumbered(monkeypatch)
    content = write(tmp_path / "w.mcap", frames)
    at, size = nth_chunk(content, 2)
    content = content[: next(at for opcode, at, _ in records(content) if opcode == DATA_END)]
    flipped, headless = bytearray(content), bytearray(content)
    flipped[at + size // 2] ^= 0x55
    headless[at : at + 60] = bytes(60)

    by_index = repair(damaged(tmp_path / "a.mcap", flipped), tmp_path / "b.mcap")
    by_bytes = repair(damaged(tmp_path / "c.mcap", headless), tmp_path / "d.mcap")

    assert by_index.lost_by == "index"
    assert by_index.frames + by_index.frames_lost == N
    assert by_bytes.lost_by == "bytes"
    assert by_bytes.frames < N
    assert by_bytes.bytes_lost >= size


def test_a_length_that_lies_but_fits_costs_its_own_chunk_only(
    tmp_path: Path, whole: bytes, frames: TrackerSequence
) -> None:
    """It reaches into the middle of a later chunk; the chunks it covers are found again."""
    (at, _), (later, _) = nth_chunk(whole, 2), nth_chunk(whole, 5)
    hurt = bytearray(whole)
    hurt[at + 1 : at + 9] = struct.pack("<Q", later + 77 - at)

    report = repair(damaged(tmp_path / "a.mcap", hurt), tmp_path / "b.mcap")

    assert report.frames >= N - 400
    assert report.frames + report.frames_lost == N
    assert_same(read_all(open_recording(tmp_path / "b.mcap")), frames)


@pytest.mark.parametrize("lost", [200, 3_000])
def test_channels_are_found_in_the_summary_when_the_begin_is_gone_and_all_is_shifted(
    tmp_path: Path, whole: bytes, frames: TrackerSequence, lost: int
) -> None:
    first, _ = nth_chunk(whole, 0)

    report = repair(
        damaged(tmp_path / "a.mcap", whole[: first + 5] + whole[first + 5 + lost :]), tmp_path / "b.mcap"
    )

    assert report.frames >= N - 400
    assert report.frames + report.frames_lost == N
    assert_same(read_all(open_recording(tmp_path / "b.mcap")), frames)


@cache
def bomb(name: str) -> bytes:
    """512 MB of zeros, packed, that begin a frame which itself states 10 GB."""
    block = bytes(16 << 20)
    if name == "zstd":
        packer = zstandard.ZstdCompressor(level=1).compressobj(size=10_000_000_000)
        return b"".join([packer.compress(block) for _ in range(32)])
    packer = lz4.frame.LZ4FrameCompressor()
    return b"".join([packer.begin(10_000_000_000), *(packer.compress(block) for _ in range(32))])


@pytest.mark.parametrize("name", ["zstd", "lz4"])
@pytest.mark.parametrize("stated", [1 << 20, 31 << 20, 10_000_000_000, 2**64 - 1])
def test_a_chunk_that_unpacks_to_gigabytes_takes_little_memory(
    tmp_path: Path, whole: bytes, name: str, stated: int
) -> None:
    at, size = nth_chunk(whole, 2)
    packed = bomb(name)
    content = struct.pack("<QQQII", 0, 0, stated, 0, len(name)) + name.encode()
    content += struct.pack("<Q", len(packed)) + packed
    hurt = whole[:at] + struct.pack("<BQ", CHUNK, len(content)) + content + whole[at + size :]
    source = damaged(tmp_path / "a.mcap", hurt)

    tracemalloc.start()
    report = repair(source, tmp_path / "b.mcap")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert N - 400 < report.frames < N
    assert peak < 200e6


@pytest.mark.parametrize("length", [2**62, 2**32 - 1, 2**64 - 1, 2**31])
@pytest.mark.parametrize("opcode", [CHUNK, 3, 5, 9, 12, 0x80])
def test_a_huge_record_length_takes_no_memory(
    tmp_path: Path, whole: bytes, frames: TrackerSequence, length: int, opcode: int
) -> None:
    at, _ = nth_chunk(whole, 2)
    hurt = bytearray(whole)
    hurt[at : at + 9] = struct.pack("<BQ", opcode, length)

    tracemalloc.start()
    report = repair(damaged(tmp_path / "a.mcap", hurt), tmp_path / "b.mcap")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert report.frames >= N - 400
    assert peak < 50e6
    assert_same(read_all(open_recording(tmp_path / "b.mcap")), frames)


@pytest.mark.parametrize("count", [0, 2**62])
@pytest.mark.parametrize("with_checksum", [True, False])
def test_a_count_that_lies_is_believed_only_with_its_checksum_and_never_below_what_is_there(
    tmp_path: Path, whole: bytes, count: int, with_checksum: bool
) -> None:
    import zlib

    hurt = bytearray(whole)
    statistics = next(at for opcode, at, _ in records(whole) if opcode == STATISTICS)
    counts = statistics + 9 + 8 + 2 + 4 * 4 + 16
    for entry in range(counts + 4, counts + 4 + int.from_bytes(hurt[counts : counts + 4], "little"), 10):
        hurt[entry + 2 : entry + 10] = struct.pack("<Q", count)
    if with_checksum:
        start = int.from_bytes(hurt[-28:-20], "little")
        hurt[-12:-8] = struct.pack("<I", zlib.crc32(hurt[start:-12]))

    report = repair(damaged(tmp_path / "a.mcap", hurt), tmp_path / "b.mcap")

    assert report.frames == N
    assert report.frames_lost == 0 or (with_checksum and count > N)


def test_devices_that_are_described_nowhere_any_more_keep_their_poses(
    tmp_path: Path, frames: TrackerSequence, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RecordingWriter, "_write_devices", lambda self: None)
    write(tmp_path / "a.mcap", frames)
    monkeypatch.undo()

    report = repair(tmp_path / "a.mcap", tmp_path / "b.mcap")
    saved = open_recording(tmp_path / "b.mcap")

    assert report.devices == 2
    assert [device.serial for device in saved.info.devices] == ["unknown0", "unknown1"]
    np.testing.assert_array_equal(read_all(saved).position, frames.position)


@pytest.mark.parametrize("hurt", ["zeros", "huge length"])
def test_a_file_whose_header_is_damaged_is_saved_whole(
    tmp_path: Path, whole: bytes, frames: TrackerSequence, hurt: str
) -> None:
    """The format is stated in the header and after it; the channels tell as well whose file it is."""
    first = nth_chunk(whole, 0)[0]
    content = bytearray(whole)
    if hurt == "zeros":
        content[8 : min(308, first)] = bytes(min(308, first) - 8)
    else:
        content[9:17] = b"\xff" * 8
    path = damaged(tmp_path / "a.mcap", content)

    report = repair(path, tmp_path / "b.mcap")

    assert report.frames == N
    assert report.frames_lost == 0
    assert report.bytes_lost > 0
    assert_same(read_all(open_recording(tmp_path / "b.mcap")), frames)


def test_indices_with_a_hole_are_put_in_order(tmp_path: Path, frames: TrackerSequence) -> None:
    """Device 0 is described nowhere and in no frame; 1 and 5 are."""
    path = tmp_path / "a.mcap"
    with RecordingWriter(path) as writer:
        entries = [{"index": i, "serial": f"S{i}", "class": "CONTROLLER", "role": ""} for i in (1, 5)]
        writer.copy(schema.DEVICES, 0, json.dumps({"devices": entries}).encode())
        for i in range(20):
            rows = np.zeros(2, schema.TRACKER_DTYPE)
            rows["host_time_ns"], rows["device"], rows["valid"] = i, (5, 1), 1
            rows["position"], rows["rotation"] = [[5.0, 0, 0], [1.0, 0, 0]], [1.0, 0, 0, 0]
            writer.copy(schema.TRACKERS, i, rows.tobytes())

    repair(path, tmp_path / "b.mcap")
    saved = open_recording(tmp_path / "b.mcap")

    assert [device.serial for device in saved.info.devices] == ["S1", "S5"]
    np.testing.assert_array_equal(read_all(saved).position[0, :, 0], [1.0, 5.0])


def test_what_cannot_be_repaired_ends_in_one_sentence_and_writes_nothing(
    tmp_path: Path, whole: bytes
) -> None:
    target = tmp_path / "b.mcap"
    first = nth_chunk(whole, 0)[0]
    npz = tmp_path / "a.npz"
    np.savez(npz, t=np.zeros(2), names=np.array(["head"]), pos=np.ones((2, 1, 3)), rot=np.ones((2, 1, 4)))

    with pytest.raises(DamagedRecordingError, match="truncated before its first"):
        repair(damaged(tmp_path / "a.mcap", whole[:first]), target)
    with pytest.raises(UnknownFormatError, match="only vrik's can be repaired"):
        repair(npz, target)
    with pytest.raises(RecordingError, match="there is no file"):
        repair(tmp_path / "none.mcap", target)
    with pytest.raises(UsageError, match=r"ends in \.mcap"):
        repair(damaged(tmp_path / "c.mcap", whole), tmp_path / "b.npz")
    with pytest.raises(UsageError, match="the recording itself"):
        repair(tmp_path / "c.mcap", tmp_path / "c.mcap")

    assert (tmp_path / "c.mcap").read_bytes() == whole
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.mcap", "a.npz", "c.mcap"]


def test_someone_elses_mcap_is_refused_with_what_is_in_it(shared: Path, tmp_path: Path) -> None:
    for name in ("whole", "cut_60", "huge_length", "no_footer"):
        with pytest.raises(UnknownFormatError, match="/pose/head"):
            repair(shared / f"data/cases/c63_{name}.mcap", tmp_path / "b.mcap")

    assert not (tmp_path / "b.mcap").exists()


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_damage_gives_frames_that_were_recorded_or_one_sentence(
    tmp_path: Path, whole: bytes, frames: TrackerSequence, data: st.DataObject
) -> None:
    hurt = bytearray(whole)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(hurt) - 1))
        kind = data.draw(st.sampled_from(["flip", "cut", "insert", "delete", "zeros"]))
        if kind == "flip":
            hurt[at] ^= data.draw(st.integers(1, 255))
        elif kind == "cut":
            del hurt[max(at, 1) :]
        elif kind == "insert":
            hurt[at:at] = data.draw(st.binary(min_size=1, max_size=20))
        elif kind == "delete":
            del hurt[at : at + data.draw(st.integers(1, 5000))]
        else:
            hurt[at : at + 700] = bytes(len(hurt[at : at + 700]))
        if not hurt:
            hurt = bytearray(b"\x89")
    source = damaged(tmp_path / "a.mcap", hurt)

    try:
        report = repair(source, tmp_path / "b.mcap")
    except RecordingError:
        return

    saved = read_all(open_recording(tmp_path / "b.mcap"))
    assert len(saved) == report.frames
    assert_same(saved, frames)
    assert source.read_bytes() == hurt


def test_memory_does_not_grow_with_the_recording(tmp_path: Path) -> None:
    peaks = []
    for n in (6_000, 18_000):
        write(tmp_path / "a.mcap", sequence(n))
        tracemalloc.start()
        repair(tmp_path / "a.mcap", tmp_path / "b.mcap")
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()

    assert peaks[1] - peaks[0] < 60 * 12_000  # bytes a frame: the index of the chunks; a frame has 240


def test_progress_comes_up_to_twice_the_size(tmp_path: Path, whole: bytes) -> None:
    seen: list[tuple[int, int]] = []

    repair(damaged(tmp_path / "a.mcap", whole), tmp_path / "b.mcap", lambda done, of: seen.append((done, of)))

    done = [at for at, _ in seen]
    assert done == sorted(done)
    assert {of for _, of in seen} == {2 * len(whole)}
    assert 1.5 * len(whole) < done[-1] <= 2 * len(whole)
