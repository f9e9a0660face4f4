"""Repair under any damage: every frame of an undamaged chunk is saved, never an exception, counts add up."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recordings import open_recording, read_all
from recordings.mcap_marks import MAGIC
from recordings.mcap_walk import MAX_ATTACHMENT_BYTES, MAX_ATTACHMENTS
from recordings.native import NativeRecording, RecordingWriter
from recordings.repair import repair
from vrik import quat
from vrik.cli.repair import sentences
from vrik.errors import RecordingError, UnsupportedVersionError
from vrik.frames import DeviceClass, TrackedDevice, TrackerSequence

DEVICES = (TrackedDevice("H", DeviceClass.HMD, "head"), TrackedDevice("C", DeviceClass.CONTROLLER))
MESSAGE, CHUNK, DATA_END = 5, 6, 15
N = 60
FEW = settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def sequence(n: int, start_ns: int = 0, seed: int = 1) -> TrackerSequence:
    rng = np.random.default_rng(seed)
    times = start_ns + np.arange(n) * 10_000_000
    rotation = quat.normalize(rng.normal(size=(n, 2, 4)))
    return TrackerSequence.build(times, DEVICES, rng.normal(size=(n, 2, 3)), rotation, np.ones((n, 2), bool))


def write(path: Path, frames: TrackerSequence, flush_every: int = 8, **about: object) -> bytes:
    """A closed recording of small chunks."""
    clock = [0]
    with RecordingWriter(path, DEVICES, now_ns=lambda: clock[0], **about) as writer:  # type: ignore[arg-type]
        for i, frame in enumerate(frames):
            clock[0] += 1_100_000_000 if i % flush_every == flush_every - 1 else 0
            writer.write(frame)
        writer.event("mark", note="end")
    return path.read_bytes()


def chunks(content: bytes) -> list[tuple[int, int]]:
    """(begin, end) of the chunk records."""
    at, found = 8, []
    while content[at] != DATA_END:
        end = at + 9 + int.from_bytes(content[at + 1 : at + 9], "little")
        if content[at] == CHUNK:
            found.append((at, end))
        at = end
    return found


def boundaries(content: bytes) -> list[int]:
    """Where one record ends and the next begins, up to the end of the messages."""
    at, found = 8, [8]
    while content[at] != DATA_END:
        at += 9 + int.from_bytes(content[at + 1 : at + 9], "little")
        found.append(at)
    return found


def frame_times(records: bytes) -> list[int]:
    """Times of the messages on the first channel, the session's."""
    at, times = 0, []
    while at < len(records):
        if records[at] == MESSAGE and records[at + 9] == 1:
            times.append(int.from_bytes(records[at + 15 : at + 23], "little"))
        at += 9 + int.from_bytes(records[at + 1 : at + 9], "little")
    return times


class Whole:
    """An undamaged recording, and which of its frames each chunk holds."""

    def __init__(self, folder: Path) -> None:
        self.frames = sequence(N)
        self.content = write(folder / "whole.mcap", self.frames, settings={"floor": 1})
        self.chunks = chunks(self.content)
        self.times_of_chunk: list[list[int]] = []
        for begin, end in self.chunks:
            records = zstandard.decompress(self.content[begin + 9 + 32 + 4 + 8 : end])
            self.times_of_chunk.append(frame_times(records))

    def must_be_saved(self, touched: list[int], cut: int | None = None) -> set[int]:
        """Times of the frames in chunks in which no byte was touched and nothing was cut off."""
        kept: set[int] = set()
        for (begin, end), times in zip(self.chunks, self.times_of_chunk, strict=True):
            if not any(begin <= at < end for at in touched) and (cut is None or end <= cut):
                kept.update(times)
        return kept


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Whole:
    return Whole(tmp_path_factory.mktemp("any"))


def assert_saved(folder: Path, content: bytes, whole: Whole, wanted: set[int]) -> None:
    (folder / "a.mcap").write_bytes(content)
    try:
        report = repair(folder / "a.mcap", folder / "b.mcap")
    except UnsupportedVersionError:  # both places that state the version were hit
        assert content[17 : whole.chunks[0][0]] != whole.content[17 : whole.chunks[0][0]]
        return
    except RecordingError:
        assert not wanted
        return
    saved = read_all(open_recording(folder / "b.mcap"))
    assert wanted <= set(saved.time_ns.tolist())
    assert report.frames == len(saved)
    assert report.frames + report.frames_lost <= N
    if content[-8:] == whole.content[-8:] and report.lost_by == "statistics":
        assert report.frames + report.frames_lost == N
    rows = np.searchsorted(whole.frames.time_ns, saved.time_ns)
    np.testing.assert_array_equal(saved.position, whole.frames.position[rows])
    assert NativeRecording(folder / "b.mcap").info.notes == ()


def test_the_recording_has_several_chunks_with_all_its_frames(whole: Whole) -> None:
    assert len(whole.chunks) > 5
    assert sorted(t for times in whole.times_of_chunk for t in times) == whole.frames.time_ns.tolist()


@FEW
@given(data=st.data())
def test_any_flipped_bytes_cost_only_the_chunks_they_are_in(
    tmp_path: Path, whole: Whole, data: st.DataObject
) -> None:
    size = len(whole.content)
    heads = [at + i for at in boundaries(whole.content) for i in range(48)]
    anywhere = st.one_of(st.integers(0, size - 1), st.sampled_from(heads), st.integers(0, 400))
    flips = data.draw(st.dictionaries(anywhere, st.integers(1, 255), min_size=1, max_size=5))
    hurt = bytearray(whole.content)
    for at, mask in flips.items():
        hurt[at % size] ^= mask

    assert_saved(tmp_path, bytes(hurt), whole, whole.must_be_saved([at % size for at in flips]))


@FEW
@given(data=st.data())
def test_any_cut_keeps_all_chunks_before_it_and_flips_cost_no_others(
    tmp_path: Path, whole: Whole, data: st.DataObject
) -> None:
    """Without the summary, nothing but the first chunk declares the channels."""
    cut = data.draw(st.integers(1, len(whole.content)))
    flips = data.draw(st.dictionaries(st.integers(0, cut - 1), st.integers(1, 255), max_size=2))
    hurt = bytearray(whole.content[:cut])
    for at, mask in flips.items():
        hurt[at] ^= mask

    assert_saved(tmp_path, bytes(hurt), whole, whole.must_be_saved(list(flips), cut))


@FEW
@given(data=st.data())
def test_junk_between_records_costs_no_frame(tmp_path: Path, whole: Whole, data: st.DataObject) -> None:
    places = st.sampled_from([0, *boundaries(whole.content), len(whole.content)])
    record = st.binary(max_size=40).map(lambda b: b[:1] + len(b[1:]).to_bytes(8, "little") + b[1:])
    end = st.just(b"\x0f" + (4).to_bytes(8, "little") + bytes(4))
    junk = data.draw(
        st.dictionaries(places, st.one_of(st.binary(max_size=300), record, end), min_size=1, max_size=4)
    )
    hurt = whole.content
    for at in sorted(junk, reverse=True):
        hurt = hurt[:at] + junk[at] + hurt[at:]

    assert_saved(tmp_path, hurt, whole, whole.must_be_saved([]))


@pytest.mark.parametrize("flipped", [*((i,) for i in range(8)), (0, 1, 2, 3), tuple(range(8))])
def test_a_damaged_start_is_mended_and_other_commands_say_how(
    tmp_path: Path, whole: Whole, flipped: tuple[int, ...]
) -> None:
    hurt = bytearray(whole.content)
    for at in flipped:
        hurt[at] ^= 0x40
    (tmp_path / "a.mcap").write_bytes(hurt)

    notes = open_recording(tmp_path / "a.mcap").info.notes
    report = repair(tmp_path / "a.mcap", tmp_path / "b.mcap")

    assert any("damaged start" in note and "vrik repair" in note for note in notes)
    assert (report.frames, report.frames_lost, report.start_damaged) == (N, 0, True)
    assert not report.undamaged
    assert (tmp_path / "b.mcap").read_bytes().startswith(MAGIC)


def concatenated(folder: Path, second: TrackerSequence, **about: object) -> Path:
    first = write(folder / "1.mcap", sequence(N), profile={"name": "anna"})
    path = folder / "both.mcap"
    path.write_bytes(first + write(folder / "2.mcap", second, **about))
    return path


def test_a_recording_behind_another_that_goes_on_becomes_one_with_it(tmp_path: Path) -> None:
    later = sequence(20, start_ns=5_000_000_000, seed=2)
    path = concatenated(tmp_path, later, profile={"name": "anna"})

    notes = open_recording(path).info.notes
    report = repair(path, tmp_path / "out.mcap")
    saved = read_all(open_recording(tmp_path / "out.mcap"))

    assert any("behind the end" in note and "vrik repair" in note for note in notes)
    assert (report.recordings, report.frames, report.frames_lost, report.further) == (2, N + 20, 0, ())
    assert not report.undamaged
    np.testing.assert_array_equal(saved.position, np.concatenate([sequence(N).position, later.position]))


@pytest.mark.parametrize("other", ["time", "player", "profile"])
def test_a_recording_behind_another_that_does_not_go_on_gets_its_own_file(tmp_path: Path, other: str) -> None:
    """Also when the end of the first is damaged."""
    second = sequence(20, start_ns=0 if other == "time" else 5_000_000_000, seed=2)
    if other == "player":
        second = replace(second, player_id="p2")
    about = {"player_id": "p2"} if other == "player" else {}
    about |= {"profile": {"name": "bert"}} if other == "profile" else {}
    path = concatenated(tmp_path, second, **about)
    (tmp_path / "out-2.mcap").write_text("mine")

    report = repair(path, tmp_path / "out.mcap")

    assert (report.frames, report.recordings) == (N, 1)
    (further,) = report.further
    assert further.frames == 20
    assert Path(further.target).name == "out-3.mcap"
    assert (tmp_path / "out-2.mcap").read_text() == "mine"
    np.testing.assert_array_equal(read_all(open_recording(tmp_path / "out-3.mcap")).position, second.position)
    assert json.loads(json.dumps(report.to_json()))["further"][0]["frames"] == 20


@pytest.mark.parametrize("cut", [0, 4, 40, 3_000])
def test_a_recording_behind_one_that_was_cut_is_found(tmp_path: Path, cut: int) -> None:
    first = write(tmp_path / "1.mcap", sequence(N))
    second = write(tmp_path / "2.mcap", sequence(20, seed=2))
    (tmp_path / "both.mcap").write_bytes(first[: len(first) - cut] + second)

    report = repair(tmp_path / "both.mcap", tmp_path / "out.mcap")

    assert report.further[0].frames == 20
    assert report.frames > N - 30


@pytest.mark.parametrize("length", [N, 20])
def test_two_recordings_whose_seam_is_damaged_on_both_sides_stay_two(tmp_path: Path, length: int) -> None:
    """Neither the end mark of the first nor the begin mark of the second is right, nor any offset with it."""
    first = write(tmp_path / "1.mcap", sequence(N))
    second = write(tmp_path / "2.mcap", sequence(length))  # of the same length the offsets of both agree
    seam = first[:-5] + b"#" * 8 + second[3:]
    (tmp_path / "both.mcap").write_bytes(seam)

    report = repair(tmp_path / "both.mcap", tmp_path / "out.mcap")
    read = read_all(open_recording(tmp_path / "both.mcap"))

    assert (report.frames, report.goes_on, report.undamaged) == (N, False, False)
    assert [further.frames for further in report.further] == [length]
    np.testing.assert_array_equal(read.position, sequence(N).position)


def test_messages_behind_a_damaged_end_are_told(tmp_path: Path) -> None:
    """More of the seam is gone than tells where it was: the two become one, and this is said."""
    first = write(tmp_path / "1.mcap", sequence(N))
    second = write(tmp_path / "2.mcap", sequence(20))
    (tmp_path / "both.mcap").write_bytes(first[:-60] + b"#" * 80 + second[40:])

    report = repair(tmp_path / "both.mcap", tmp_path / "out.mcap")
    notes = open_recording(tmp_path / "both.mcap").info.notes

    assert (report.frames, report.goes_on) == (N + 20, True)
    assert any("behind an end record" in note for note in notes)
    assert any("behind an end record" in line for line in sentences(report))


def test_foreign_attachments_are_named_also_those_that_are_large_or_many(tmp_path: Path) -> None:
    with RecordingWriter(tmp_path / "a.mcap", DEVICES, settings={"floor": 1}) as writer:
        writer._writer.add_attachment(0, 0, "film.mp4", "video/mp4", b"0" * (MAX_ATTACHMENT_BYTES + 1))
        for i in range(MAX_ATTACHMENTS):
            writer._writer.add_attachment(0, 0, f"{i}.png", "image/png", b"123")
        for frame in sequence(5):
            writer.write(frame)

    report = repair(tmp_path / "a.mcap", tmp_path / "b.mcap")

    assert set(report.attachments_left_out) == {"film.mp4", *(f"{i}.png" for i in range(MAX_ATTACHMENTS))}
    assert any("film.mp4" in line for line in sentences(report))
    assert NativeRecording(tmp_path / "b.mcap").settings == {"floor": 1}


def test_bytes_behind_the_end_are_told_and_cost_nothing(tmp_path: Path, whole: Whole) -> None:
    (tmp_path / "a.mcap").write_bytes(whole.content + b"some text\n")

    report = repair(tmp_path / "a.mcap", tmp_path / "b.mcap")

    assert (report.frames, report.frames_lost, report.bytes_lost, report.undamaged) == (N, 0, 10, False)
    assert not report.truncated
