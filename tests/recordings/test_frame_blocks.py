"""Frames in blocks are the frames that come at once, and numbers put aside come back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recordings import open_recording, read_all
from recordings.base import RecordingInfo
from recordings.importers import frame_blocks, harness_jsonl, samples_aside
from recordings.importers.axes import device_for_role, sign_flips, tracker_sequence
from recordings.importers.frame_blocks import FrameBlocks
from recordings.importers.samples_aside import MOST_DEVICES, Samples, SamplesByName
from vrik.errors import RecordingError

DEVICES = (device_for_role("head", "a"), device_for_role("left_hand", "b"))


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10_000), cuts=st.lists(st.integers(0, 30), max_size=4), share=st.floats(0.0, 1.0))
def test_frames_that_come_in_blocks_are_those_that_come_at_once(
    seed: int, cuts: list[int], share: float
) -> None:
    random = np.random.default_rng(seed)
    n, k = 30, 2
    position, valid = random.normal(size=(n, k, 3)), random.random((n, k)) < share
    rotation = random.normal(size=(n, k, 4))
    rotation /= np.linalg.norm(rotation, axis=-1, keepdims=True)
    rotation[~valid] = np.nan
    velocity = random.normal(size=(n, k, 3))
    time_ns = np.arange(n)
    blocks = FrameBlocks(DEVICES)

    for begin, end in zip([0, *sorted(cuts)], [*sorted(cuts), n], strict=True):
        rows = slice(begin, end)
        blocks.add(position[rows], rotation[rows], valid[rows], velocity[rows])
    got = read_all(blocks.recording(RecordingInfo(Path("a"), "a", DEVICES), time_ns))

    expected = tracker_sequence(time_ns, DEVICES, position, rotation, valid)
    assert blocks.flips == sign_flips(rotation, valid)
    for name in ("time_ns", "position", "rotation", "valid", "result"):
        np.testing.assert_array_equal(getattr(got, name), getattr(expected, name))
    np.testing.assert_array_equal(got.linear_velocity, velocity)
    assert got.angular_velocity is None


@pytest.mark.parametrize(
    "file",
    [
        "aframe/uneven_track_lengths.json",
        "aframe/left_hand_not_tracked.json",
        "nolicence/webvr_gamepad/openvr_gamepads.json",
        "openvr_json/simple_tracking_2min.json",
    ],
)
def test_a_real_session_is_the_same_in_small_blocks_and_from_the_disk(
    shared: Path, file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = open_recording(shared / "data/vr" / file)
    frames = read_all(expected)
    monkeypatch.setattr(frame_blocks, "BLOCK_FRAMES", 100)
    monkeypatch.setattr(samples_aside, "IN_MEMORY_BYTES", 5000)

    recording = open_recording(shared / "data/vr" / file)

    assert recording.info.counts == expected.info.counts
    assert recording.info.notes == expected.info.notes
    got = read_all(recording)
    np.testing.assert_array_equal(got.time_ns, frames.time_ns)
    np.testing.assert_array_equal(got.valid, frames.valid)
    np.testing.assert_allclose(got.position, frames.position, atol=1e-12)
    np.testing.assert_allclose(got.rotation, frames.rotation, atol=1e-12)


def test_lines_are_the_same_in_small_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pose = '{"pos": [0, 1.6, %d], "rot": [1, 0, 0, %d]}'
    lines = [f'{{"t": {i / 50}, "devices": {{"head": {pose % (i, 0)}}}}}' for i in range(23)]
    lines[7] = '{"t": 0.14, "devices": {}}'
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(['{"devices": ["head", "waist"]}', *lines, "{"]))
    expected = open_recording(path)
    monkeypatch.setattr(harness_jsonl, "BLOCK_FRAMES", 5)

    recording = open_recording(path)

    assert recording.info.counts == expected.info.counts == {"rows cut": 1, "samples not tracked": 24}
    np.testing.assert_array_equal(read_all(recording).position, read_all(expected).position)
    assert [len(block) for block in recording.blocks()] == [5, 5, 5, 5, 3]


def test_samples_come_back_in_the_frames_that_they_belong_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(samples_aside, "_BUFFERED", 8)
    monkeypatch.setattr(samples_aside, "IN_MEMORY_BYTES", 64)
    samples = Samples(2)
    for frame in (1, 2, 5, 6, 7, 9):
        samples.add(frame, [float(frame), -0.5])

    numbers, present = samples.of_frames(2, 9)
    moved, _ = samples.of_frames(0, 3, np.array([2, 0, 1, 3, 4, 5]))

    assert present.tolist() == [True, False, False, True, True, True, False]
    assert numbers[present].tolist() == [[2.0, -0.5], [5.0, -0.5], [6.0, -0.5], [7.0, -0.5]]
    assert np.isnan(numbers[~present]).all()
    assert moved[:, 0].tolist() == [2.0, 5.0, 1.0]
    assert len(samples) == 6


def test_a_device_that_appears_late_is_not_there_before() -> None:
    samples = SamplesByName(1, "a.json")
    samples["first"].add(0, [1.0])
    samples["second"].add(1, [2.0])

    numbers, present = samples.of_frames(["second", "first"], 0, 2)

    assert present.tolist() == [[False, True], [True, False]]
    assert numbers[present].tolist() == [[1.0], [2.0]]


def test_more_devices_than_openvr_has_are_one_sentence() -> None:
    samples: Any = SamplesByName(1, "a.json")

    for i in range(MOST_DEVICES):
        samples[str(i)].add(0, [0.0])

    with pytest.raises(RecordingError, match=r"a\.json names more than 64 devices"):
        samples["one more"]
