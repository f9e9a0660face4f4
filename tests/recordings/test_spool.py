"""Frames that are put aside come back as they were, from memory and from a file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import recordings.spool as spool_module
from recordings.base import ROW_ARRAYS, RecordingInfo, join
from recordings.spool import Spool
from vrik.frames import DeviceClass, TrackedDevice, TrackerSequence

DEVICES = (TrackedDevice("A", DeviceClass.HMD), TrackedDevice("B", DeviceClass.CONTROLLER))


def frames(n: int, seed: int, velocities: bool) -> TrackerSequence:
    random = np.random.default_rng(seed)
    k = len(DEVICES)
    rotation = random.normal(size=(n, k, 4))
    rotation /= np.linalg.norm(rotation, axis=-1, keepdims=True)
    return TrackerSequence(
        np.arange(n, dtype=np.int64) + 1000 * seed,
        DEVICES,
        random.normal(size=(n, k, 3)),
        rotation,
        random.random((n, k)) < 0.5,
        random.integers(1, 300, (n, k)),
        random.normal(size=(n, k, 3)) if velocities else None,
        random.normal(size=(n, k, 3)) if velocities else None,
        "someone",
        "hall",
    )


def same(a: TrackerSequence, b: TrackerSequence) -> None:
    for name in ROW_ARRAYS:
        one, other = getattr(a, name), getattr(b, name)
        assert (one is None) == (other is None), name
        if one is not None:
            np.testing.assert_array_equal(one, other, err_msg=name)
    assert (a.devices, a.player_id, a.space_id) == (b.devices, b.player_id, b.space_id)


@pytest.mark.parametrize("velocities", [False, True])
@pytest.mark.parametrize("in_memory", [1 << 24, 100])
def test_what_is_put_aside_comes_back_as_often_as_asked(
    velocities: bool, in_memory: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spool_module, "IN_MEMORY_BYTES", in_memory)
    parts = [frames(5, 1, velocities), frames(0, 2, velocities), frames(20000, 3, velocities)]
    spool = Spool()
    for part in parts:
        spool.add(part)

    recording = spool.recording(RecordingInfo(Path("x"), "test", DEVICES))

    assert recording.frame_count == 20005
    for _ in range(2):
        blocks = list(recording.blocks())
        assert max(len(block) for block in blocks) == spool_module.BLOCK_FRAMES
        same(join(DEVICES, blocks), join(DEVICES, [parts[0], parts[2]]))


def test_times_known_only_at_the_end_replace_those_of_the_parts() -> None:
    spool = Spool()
    spool.add(frames(3, 1, False))
    spool.add(frames(2, 2, False))
    times = np.array([7, 8, 9, 9, 12])

    recording = spool.recording(RecordingInfo(Path("x"), "test", DEVICES), times)

    assert [block.time_ns.tolist() for block in recording.blocks()] == [[7, 8, 9], [9, 12]]


def test_two_readers_of_one_spool_do_not_disturb_each_other() -> None:
    spool = Spool()
    for seed in range(4):
        spool.add(frames(3, seed, False))
    recording = spool.recording(RecordingInfo(Path("x"), "test", DEVICES))

    for one, other in zip(recording.blocks(), recording.blocks(), strict=True):
        same(one, other)


def test_a_spool_without_frames_has_no_blocks() -> None:
    recording = Spool().recording(RecordingInfo(Path("x"), "test", DEVICES))

    assert recording.frame_count == 0
    assert list(recording.blocks()) == []
