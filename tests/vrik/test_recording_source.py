"""A recording as a source: all frames, and the person in it, measured in bounded memory."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recordings.base import LoadedRecording, RecordingInfo
from recordings.samples import sample
from vrik import quat
from vrik.body import BodyModel
from vrik.errors import CalibrationError, NoUsableFramesError, RecordingError
from vrik.frames import Calibration, DeviceClass, TrackedDevice, TrackerSequence
from vrik.sources import recording as source_module
from vrik.sources.recording import CAUSAL_S, MAX_CALIBRATION_SAMPLES, RecordingSource

DEVICES = (TrackedDevice("H", DeviceClass.HMD, "head"),)
MOST_FRAMES = MAX_CALIBRATION_SAMPLES // len(DEVICES)


class Long:
    """A made-up recording of blocks; remembers how many blocks are alive at once."""

    def __init__(self, lengths: list[int], kind: str = "made-up", step_ns: int = 10_000_000) -> None:
        self.info = RecordingInfo(Path("long"), kind, DEVICES)
        self.lengths, self.step_ns = lengths, step_ns
        self.most_alive = 0

    def blocks(self) -> Iterator[TrackerSequence]:
        arrays: list[weakref.ref[Any]] = []
        begun = 0
        for n in self.lengths:
            position = np.zeros((n, 1, 3))
            position[:, 0, 0] = np.arange(begun, begun + n)  # x is the frame's number
            arrays.append(weakref.ref(position))
            time_ns = np.arange(begun, begun + n) * self.step_ns
            block = TrackerSequence.build(
                time_ns, DEVICES, position, quat.identity(n, 1), np.ones((n, 1), bool)
            )
            del position
            begun += n
            yield block
            del block
            self.most_alive = max(self.most_alive, sum(ref() is not None for ref in arrays))


@pytest.fixture
def sampled(monkeypatch: pytest.MonkeyPatch) -> Any:
    """``sampled(recording, seconds)``: the numbers of the frames that the person is measured on."""

    def run(recording: Long, **options: Any) -> np.ndarray[Any, Any]:
        seen: list[TrackerSequence] = []

        def calibrate(frames: TrackerSequence, **rest: Any) -> Calibration:
            seen.append(frames)
            roles = {"H": "head", "L": "left_hand"}
            return Calibration(BodyModel.average(1.7), roles, np.zeros((13, 3)), quat.identity(13))

        monkeypatch.setattr(source_module, "open_recording", lambda path: recording)
        monkeypatch.setattr(source_module, "calibrate", calibrate)
        RecordingSource(Path("long")).calibrate(**options)
        return seen[0].position[:, 0, 0].astype(int)

    return run


def test_frames_are_those_of_the_recording_and_can_be_asked_for_again() -> None:
    source = RecordingSource(sample("session_3points"))

    first = [frame.host_time_ns for frame in source.frames()]
    again = [frame.host_time_ns for frame in source.frames()]
    source.close()

    assert first == again
    assert len(first) == sum(map(len, source.recording.blocks()))
    assert first == sorted(first)


def test_a_short_recording_is_looked_at_whole(sampled: Any) -> None:
    assert sampled(Long([1000, 1, 999])).tolist() == list(range(2000))


@pytest.mark.parametrize(
    "lengths",
    [
        [7001] * 90,
        [MOST_FRAMES * 5 + 3],
        [1, 100_000, 3, 600_000, 1],
        [MOST_FRAMES + 1],
    ],
    ids=["many blocks", "one block", "uneven", "one too many"],
)
def test_a_long_recording_is_thinned_out_evenly_from_start_to_end(sampled: Any, lengths: list[int]) -> None:
    rows = sampled(Long(lengths))

    steps = np.diff(rows)
    assert MOST_FRAMES / 2 <= len(rows) + 1 <= MOST_FRAMES + 1
    assert rows[0] == 0
    assert (steps == steps[0]).all()
    assert rows[-1] > sum(lengths) - 1 - steps[0]


def test_memory_does_not_grow_with_the_recording(sampled: Any) -> None:
    """Only copies of the chosen rows are kept, never the blocks they came from."""
    recording = Long([5000] * 60)

    sampled(recording)

    assert recording.most_alive <= 2


def test_seconds_limit_what_is_looked_at(sampled: Any) -> None:
    assert sampled(Long([100, 100, 100]), seconds=1.5).tolist() == list(range(151))


@pytest.mark.parametrize("kind", ["harness-npz", "harness-jsonl"])
def test_files_that_are_solved_as_if_live_show_only_their_first_two_seconds(sampled: Any, kind: str) -> None:
    assert sampled(Long([1000], kind)).max() == round(CAUSAL_S * 100)
    assert sampled(Long([1000], kind), seconds=5.0).max() == 500


def test_time_counts_from_the_first_frame_whatever_the_clock_says(sampled: Any) -> None:
    recording = Long([300])
    blocks = list(recording.blocks())
    shifted = TrackerSequence.build(
        blocks[0].time_ns + 10**18, DEVICES, blocks[0].position, blocks[0].rotation, blocks[0].valid
    )
    recording.blocks = lambda: iter([shifted])  # type: ignore[method-assign]

    assert len(sampled(recording, seconds=1.0)) == 101


def test_no_frames_at_all_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_module, "open_recording", lambda path: Long([]))

    with pytest.raises(NoUsableFramesError, match="empty"):
        RecordingSource(Path("long")).calibrate()


def test_a_stated_height_is_believed_before_the_measured_one() -> None:
    source = RecordingSource(sample("session_3points"))

    assert source.calibrate(stature_m=1.6).body.stature_m == pytest.approx(1.6)
    assert source.calibrate().body.stature_m == pytest.approx(1.71, abs=0.03)


def test_what_is_no_recording_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecordingError):
        RecordingSource(tmp_path / "missing")


def test_a_head_alone_is_no_body_and_that_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """The headset moves and is tracked in every frame; a body would still be a guess from neck to toe."""
    frames = TrackerSequence.build(
        np.arange(90) * 11_000_000,
        DEVICES,
        np.stack([np.linspace(0, 1, 90), np.full(90, 1.6), np.zeros(90)], axis=-1)[:, None],
        quat.identity(90, 1),
        np.ones((90, 1), bool),
    )
    recording = LoadedRecording(RecordingInfo(Path("alone.txt"), "made-up", DEVICES), frames)
    monkeypatch.setattr(source_module, "open_recording", lambda path: recording)

    with pytest.raises(CalibrationError, match=r"alone\.txt has a head alone.*at least one hand"):
        RecordingSource(Path("alone.txt")).calibrate()
