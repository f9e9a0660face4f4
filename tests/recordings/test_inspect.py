"""What ``inspect`` finds in recordings whose faults are known, because they were put there."""

from __future__ import annotations

import json
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from recordings.base import LoadedRecording, RecordingInfo
from recordings.inspect import inspect, inspect_recording
from recordings.inspect_track import Thinned
from recordings.native import RecordingWriter
from vrik import quat
from vrik.frames import DeviceClass, TrackedDevice, TrackerSequence

HEAD = TrackedDevice("LHR-1", DeviceClass.HMD, "head")
LEFT = TrackedDevice("LHR-2", DeviceClass.CONTROLLER, "left_hand")
RIGHT = TrackedDevice("LHR-3", DeviceClass.CONTROLLER)
FOOT = TrackedDevice("LHR-4", DeviceClass.GENERIC_TRACKER)
BASE = TrackedDevice("LHB-1", DeviceClass.TRACKING_REFERENCE)
DEVICES = (HEAD, LEFT, RIGHT, FOOT)
STEP_NS = 10_000_000


def standing(n, devices=DEVICES):
    """A person who sways and waves at 100 frames a second; eyes 1.6 m high."""
    t = np.arange(n) * STEP_NS
    s = t * 1e-9
    position = np.zeros((n, len(devices), 3))
    for i, device in enumerate(devices):
        place = {HEAD: (0, 1.6, 0), LEFT: (-0.4, 1.1, -0.2), RIGHT: (0.4, 1.1, -0.2), FOOT: (0.1, 0.1, 0)}
        position[:, i] = place.get(device, (2.0, 2.2, 2.0))
        if device is not BASE:
            position[:, i, 0] += 0.1 * np.sin(s)
    return TrackerSequence.build(
        t, devices, position, quat.identity(n, len(devices)), np.ones((n, len(devices)), bool)
    )


def look_at(frames, block=4096, **info):
    """Inspect frames that come in blocks of any size."""

    class Blocks:
        def __init__(self):
            self.info = RecordingInfo("x", "test", frames.devices, **info)

        def blocks(self):
            for i in range(0, len(frames), block):
                yield frames.part(slice(i, i + block))

    return inspect_recording(Blocks())


def test_a_sound_recording_has_nothing_odd():
    report = look_at(standing(1_000), stature_m=1.75)

    assert report.odd == ()
    assert (report.frames, report.gaps, report.repeated_times) == (1_000, 0, 0)
    assert report.rate_hz == pytest.approx(100.0)
    assert report.duration_s == pytest.approx(9.99)
    assert report.head_height_m == pytest.approx(1.6)
    assert report.stature_m == 1.75
    assert [d.valid_share for d in report.devices] == [1.0] * 4


def faulty():
    """All the faults that a count exists for, some at block borders."""
    frames = standing(2_000)
    frames.time_ns[1_000:] += 250_000_000
    frames.time_ns[1_500:] += 90_000_000
    frames.time_ns[50] = frames.time_ns[49]
    frames.valid[700:800, 1] = False
    frames.valid[900, 1] = False
    frames.valid[:30, 3] = False
    frames.valid[1_990:, 3] = False
    frames.position[:5, 3] = 0.0
    frames.rotation[5:9, 3] = 0.0
    for i in (299, 302, 600):
        frames.position[i, 2] += 5.0
    return frames


@pytest.mark.parametrize("block", [1, 7, 300, 4096])
def test_faults_are_counted_the_same_however_the_blocks_fall(block):
    report = look_at(faulty(), block)
    left, right, foot = report.devices[1:]

    assert (report.gaps, report.repeated_times) == (2, 1)
    assert report.longest_gap_s == pytest.approx(0.26)
    assert left.losses == 2
    assert left.longest_loss_s == pytest.approx(1.01)
    assert left.valid_share == pytest.approx(1_899 / 2_000)
    assert foot.losses == 2
    assert foot.longest_loss_s == pytest.approx(0.30)
    assert foot.placeholders == 9
    assert right.jumps == 3
    assert any("jumps" in sentence and "LHR-3" in sentence for sentence in report.odd)


@pytest.mark.parametrize("block", [1, 2, 3, 500, 4096])
def test_a_step_that_no_limb_could_make_is_a_leap_however_the_blocks_fall(block):
    """From calm to calm; a fast swing that speeds up and slows down is none."""
    frames = faulty()
    frames.position[700:, 2] += (0.2, 0.0, 0.0)
    swing = np.concatenate(
        [np.full(1_000, 0.0), 0.5 - 0.5 * np.cos(np.linspace(0.0, np.pi, 12)), np.ones(988)]
    )
    frames.position[:, 1, 1] += swing

    left, right = look_at(frames, block).devices[1:3]

    assert right.leaps == 1
    assert right.leap_longest_m == pytest.approx(0.2, abs=0.01)
    assert left.leaps == 0


def test_the_travelled_path_is_that_of_the_motion_and_not_of_the_noise():
    frames = standing(6_000)
    rng = np.random.default_rng(1)
    frames.position[:] += rng.normal(0.0, 0.0005, frames.position.shape)

    report = look_at(frames)

    truth = np.abs(np.diff(0.1 * np.sin(frames.time_ns * 1e-9))).sum()
    assert report.devices[0].travelled_m == pytest.approx(truth, rel=0.08)


@pytest.mark.parametrize(("unit", "size"), [("feet", 0.3048), ("centimetres", 0.01), ("inches", 0.0254)])
def test_a_wrong_unit_is_named(unit, size):
    frames = standing(500)
    frames.position[:] /= size

    report = look_at(frames)

    assert any(unit in sentence and "1.60 m" in sentence for sentence in report.odd)


def test_a_sitting_origin_is_named():
    frames = standing(500)
    frames.position[..., 1] -= 1.6

    assert any("sitting origin" in sentence for sentence in look_at(frames).odd)


def test_devices_that_cannot_be_right_are_named():
    frames = standing(3_000)
    frames.position[:, 1, 2] -= 4.0
    frames.position[:, 2] = (0.4, 1.1, -0.2)
    frames.valid[:, 3] = False

    odd = look_at(frames).odd

    assert any("left_hand (LHR-2)" in s and "4." in s and "out of reach" in s for s in odd)
    assert any("LHR-3 never moves" in s for s in odd)
    assert any("LHR-4 is never tracked" in s for s in odd)
    assert len(odd) == 3


def test_a_foot_may_stand_still_for_a_while():
    short, long = standing(1_000), standing(3_000)
    for frames in (short, long):
        frames.position[:, 3] = (0.1, 0.1, 0.0)

    assert look_at(short).odd == ()
    assert any("LHR-4 never moves" in s for s in look_at(long).odd)


def test_nothing_tracked_is_one_sentence_even_when_base_stations_are():
    frames = standing(100, (*DEVICES, BASE))
    frames.valid[:, :4] = False

    report = look_at(frames)

    assert len(report.odd) == 1
    assert "nothing is tracked" in report.odd[0]


def test_no_headset_and_no_frames_are_named():
    assert any("no headset" in s for s in look_at(standing(100, (LEFT, RIGHT))).odd)
    assert look_at(standing(0)).odd == ("there are no frames in it",)


def test_json_holds_no_nan_and_says_the_same():
    frames = standing(100)
    frames.valid[:, 3] = False
    frames.position[:, 3] = np.nan

    document = json.loads(json.dumps(look_at(frames).to_json(), allow_nan=False))

    assert document["devices"][3]["height_median_m"] is None
    assert document["devices"][0]["role"] == "head"
    assert document["head_height_m"] == pytest.approx(1.6)
    assert isinstance(document["odd"], list)


def test_a_file_is_inspected(tmp_path):
    with RecordingWriter(tmp_path / "x.mcap", player_id="p2", space_id="hall") as writer:
        for frame in replace(standing(10), player_id="p2", space_id="hall"):
            writer.write(frame)

    report = inspect(tmp_path / "x.mcap")

    assert (report.format, report.player_id, report.space_id, report.frames) == ("vrik/1", "p2", "hall", 10)


def test_memory_does_not_grow_with_the_length():
    """A quarter of a million frames, made block by block, in less memory than a third of them takes."""
    block = standing(4_096)

    class Long:
        info = RecordingInfo("x", "test", DEVICES)

        def blocks(self):
            for i in range(60):
                yield LoadedRecording(
                    self.info,
                    TrackerSequence.build(
                        block.time_ns + i * 4_096 * STEP_NS,
                        DEVICES,
                        block.position,
                        block.rotation,
                        block.valid,
                    ),
                ).frames

    tracemalloc.start()
    report = inspect_recording(Long())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert report.frames == 245_760
    assert report.rate_hz == pytest.approx(100.0)
    assert peak < 20e6


def test_thinned_values_are_exact_while_few_and_close_when_many():
    few, many = Thinned(1_000), Thinned(1_000)
    values = np.random.default_rng(2).normal(size=100_000)

    few.add(values[:600])
    few.add(values[600:1_000])
    for i in range(0, len(values), 777):
        many.add(values[i : i + 777])

    assert few.percentile(50.0) == np.median(values[:1_000])
    assert many.percentile(95.0) == pytest.approx(np.percentile(values, 95.0), abs=0.15)


def test_thinning_takes_every_so_many_th_value_whatever_the_pieces():
    thinned = Thinned(64)
    values = np.arange(10_007.0)

    for part in np.split(values, np.sort(np.random.default_rng(3).integers(0, len(values), 90))):
        thinned.add(part)

    kept = np.concatenate(thinned._kept)
    assert 32 <= len(kept) <= 64
    assert np.all(np.diff(kept) == kept[1] - kept[0])


def test_the_foot_that_leaps_in_a_real_session_is_told(shared):
    report = inspect(shared / "data" / "vr" / "nolicence" / "vive_csv" / "crouch_walking_1.csv")

    leaps = {device.serial: device.leap_longest_m for device in report.devices if device.leaps}
    assert leaps == {"generic8": pytest.approx(0.21, abs=0.02)}
    assert any("generic8 leaps" in sentence for sentence in report.odd)


def test_opening_and_both_passes_say_how_far_they_are(tmp_path):
    frames = standing(9_000)
    path = tmp_path / "a.mcap"
    with RecordingWriter(path, frames.devices) as writer:
        for frame in frames:
            writer.write(frame)
    told = []

    inspect(path, on_progress=lambda done, total: told.append((done, total)))

    size = path.stat().st_size
    opening = [done for done, total in told if total == size]
    looking = [done for done, total in told if total == 18_000]
    assert len(opening) > 2
    assert opening == sorted(opening)
    assert opening[-1] > 0.5 * size
    assert looking[0] < 9_000
    assert looking[-1] == 18_000
    assert looking == sorted(looking)
    assert len(opening) + len(looking) == len(told)


REACH_FLAGS = {
    "a_tpose_start_knee_dropouts.csv": {"LeftElbow": 3, "Front": 2},
    "b_knee_dropouts.csv": {"Back": 3},
    "d_scale_0_587.csv": {"Back": 1},
}
"""All that is out of a body's reach in the real recordings."""


def test_samples_out_of_a_bodys_reach_are_counted_and_no_others(shared):
    """The farthest that a sound device is worn is 0.94 statures, a foot; these are 2.6 to 3.8 away."""
    files = [p for p in (shared / "data" / "vr").rglob("*.*") if p.suffix in (".csv", ".bsor", ".bvh")]
    assert len(files) > 12

    for file in files:
        report = inspect(file)

        far = {d.serial: d.out_of_reach for d in report.devices if d.out_of_reach}
        assert far == REACH_FLAGS.get(file.name, {}), file.name
        assert sum("out of a body's reach" in sentence for sentence in report.odd) == len(far)
        astray = [d.serial for d in report.devices if d.astray_share > 0.02]
        assert astray == (["generic7"] if file.name == "crouch_walking_1.csv" else []), file.name
        assert any("does not follow the head" in sentence for sentence in report.odd) == bool(astray)
