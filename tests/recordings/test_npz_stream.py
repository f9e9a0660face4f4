"""Arrays written row by row are the arrays that were given, and memory does not grow with them."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from recordings import LoadedRecording, RecordingInfo, RecordingWriter, open_recording, read_all, sample
from recordings.base import PIECE_FRAMES, pieces
from recordings.convert import convert
from recordings.exporters.npz_stream import NpzStream
from recordings.exporters.poses import write_npz
from vrik import quat
from vrik.body import BodyModel
from vrik.frames import ROLES, PoseSequence


def test_rows_and_whole_arrays_come_back_as_they_were(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    rows = {
        "pos": rng.normal(size=(700, 3, 3)),
        "valid": rng.random((700, 3)) > 0.5,
        "f": np.zeros((0, 4), "<f4"),
    }
    whole = {"names": np.array(["a", "büx"]), "meta": np.array('{"x": 1}'), "height": np.float64(1.8)}

    with NpzStream(tmp_path / "out") as stream:
        for at in range(0, 700, 33):
            for name, array in rows.items():
                stream.append(name, array[at : at + 33])
        for name, array in whole.items():
            stream.add(name, array)

    with np.load(tmp_path / "out", allow_pickle=False) as file:
        assert set(file.files) == {*rows, *whole}
        for name, array in {**rows, **whole}.items():
            assert file[name].dtype == array.dtype
            np.testing.assert_array_equal(file[name], array)
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_rows_of_another_shape_or_an_error_write_nothing(tmp_path: Path) -> None:
    def write() -> None:
        with NpzStream(tmp_path / "out") as stream:
            stream.append("a", np.zeros((2, 3)))
            stream.append("a", np.zeros((2, 4)))

    with pytest.raises(ValueError, match="rows of a"):
        write()

    assert list(tmp_path.iterdir()) == []


def solved(count: int) -> Iterator[PoseSequence]:
    body, n = BodyModel.average(1.8), 500
    for i in range(count):
        turn = quat.identity(n, 22)
        error, state = np.zeros((n, len(ROLES))), np.zeros((n, len(ROLES)), np.int64)
        yield PoseSequence(np.arange(n) + i * n, np.ones((n, 22, 3)), turn, body, error, state)


def test_solved_bodies_are_written_in_the_memory_of_one_piece(tmp_path: Path) -> None:
    peaks = []
    for count in (4, 54):  # 5 minutes at 90 Hz
        tracemalloc.start()
        write_npz(solved(count), tmp_path / "a.npz")
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()

    with np.load(tmp_path / "a.npz") as file:
        assert file["pos"].shape == (27_000, 22, 3)
    assert (peaks[1] - peaks[0]) / 25_000 < 40, "bytes a frame; one has 888"


@pytest.mark.parametrize("suffix", [".npz", ".mcap"])
def test_converting_takes_the_memory_of_some_blocks(tmp_path: Path, suffix: str) -> None:
    take = read_all(open_recording(sample("session_3points")))
    peaks, counts = [], (9_000, 17_000)
    for count in counts:
        with RecordingWriter(tmp_path / "a.mcap", take.devices) as writer:
            for i in range(count):
                writer.write(take.frame(i % len(take)))
        tracemalloc.start()
        convert(tmp_path / "a.mcap", tmp_path / f"b{suffix}")
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()

    assert (peaks[1] - peaks[0]) / (counts[1] - counts[0]) < 100, "bytes a frame; one has 360"


def test_pieces_are_all_frames_in_order_and_say_how_far_they_are(tmp_path: Path) -> None:
    take = read_all(open_recording(sample("session_3points")))
    recording = LoadedRecording(RecordingInfo(tmp_path, "test", take.devices), take)
    told: list[tuple[int, int | None]] = []

    parts = list(pieces(recording, lambda done, of: told.append((done, of))))

    assert max(map(len, parts)) == PIECE_FRAMES
    assert np.concatenate([part.time_ns for part in parts]).tolist() == take.time_ns.tolist()
    assert told[-1] == (len(take), len(take))
    assert len(told) == len(parts) > 2
