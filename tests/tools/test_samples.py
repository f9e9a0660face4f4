"""The bundled sessions: a believable person, worn devices, and files that the tool can make again."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from recordings import open_recording, read_all
from recordings.samples import NAMES, sample
from tools.contact_sheet import load_figures
from tools.make_samples import (
    POSITION_STEP_M,
    SESSIONS,
    Session,
    frame_times,
    motion_of,
    track,
    write_session,
)
from tools.motion_model import Motion
from vrik import quat
from vrik.frames import DeviceClass, TrackerSequence
from vrik.skeleton import BONE, bone_lengths

MOTIONS = {session.name: motion_of(session) for session in SESSIONS}


@pytest.fixture(params=SESSIONS, ids=lambda session: session.name)
def session(request: pytest.FixtureRequest) -> Session:
    return request.param


@pytest.fixture
def motion(session: Session) -> Motion:
    return MOTIONS[session.name]


@pytest.fixture
def frames(session: Session) -> TrackerSequence:
    return read_all(open_recording(sample(session.name)))


def test_bones_keep_their_length(motion: Motion) -> None:
    joints, rotations = motion.joints_at(np.linspace(0.0, motion.duration_s, 700))

    np.testing.assert_allclose(bone_lengths(joints), np.tile(motion.body.lengths(), (700, 1)), atol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(rotations, axis=-1), 1.0, atol=1e-12)


@pytest.mark.parametrize("foot", [0, 1])
def test_planted_feet_do_not_move(motion: Motion, foot: int) -> None:
    """From when the sole is flat after a step until the heel rises for the next one."""
    ankle = BONE["rightFoot" if foot else "leftFoot"]
    steps = [s for s in motion.script.steps if s.foot == foot]
    assert len(steps) >= 6

    for step, after in pairwise(steps):
        joints, _ = motion.joints_at(np.linspace(step.flat_s, after.rise_s, 20))
        assert np.ptp(joints[:, [ankle, ankle + 1]], axis=0).max() < 1e-6


def test_feet_stay_above_the_floor(motion: Motion) -> None:
    joints, _ = motion.joints_at(np.arange(0.0, motion.duration_s, 0.01))

    for side in ("left", "right"):
        assert joints[:, BONE[f"{side}Toes"], 1].min() > motion.body.toes_height_m - 1e-3
        assert joints[:, BONE[f"{side}Foot"], 1].min() > motion.body.ankle_height_m - 1e-3


def test_knees_and_elbows_bend_the_human_way(motion: Motion) -> None:
    """In its own frame a shin only ever swings back, a forearm only ever swings to the front."""
    _, rotations = motion.joints_at(np.arange(0.0, motion.duration_s, 0.02))

    for side, sign in (("left", -1.0), ("right", 1.0)):
        thigh, shin = rotations[:, BONE[f"{side}UpperLeg"]], rotations[:, BONE[f"{side}LowerLeg"]]
        down = quat.rotate(quat.multiply(quat.conjugate(thigh), shin), np.array([0.0, -1.0, 0.0]))
        upper, lower = rotations[:, BONE[f"{side}UpperArm"]], rotations[:, BONE[f"{side}LowerArm"]]
        out = quat.rotate(quat.multiply(quat.conjugate(upper), lower), np.array([sign, 0.0, 0.0]))

        assert down[:, 2].min() > 0.0
        assert out[:, 2].max() < 0.0


def test_movement_is_smooth(motion: Motion) -> None:
    """No joint jumps: walking knees reach some 50 m/s2, a jump of a millimetre would be 250 at this rate."""
    joints, _ = motion.joints_at(np.arange(0.0, motion.duration_s, 1.0 / 500.0))

    acceleration = np.linalg.norm(np.diff(joints, 2, axis=0), axis=-1) * 500.0**2

    assert acceleration.max() < 80.0
    assert acceleration[:, BONE["head"]].max() < 15.0


def test_the_session_holds_what_the_demo_promises(motion: Motion) -> None:
    joints, _ = motion.joints_at(np.arange(0.0, motion.duration_s, 0.02))
    hips, head = joints[:, BONE["hips"]], joints[:, BONE["head"]]
    hands = joints[:, [BONE["leftHand"], BONE["rightHand"]]]
    shoulders = joints[:, [BONE["leftUpperArm"], BONE["rightUpperArm"]]]
    assert 20.0 <= motion.duration_s <= 40.0
    assert np.abs(hands[:100, :, 1] - shoulders[:100, :, 1]).max() < 0.05  # two seconds of T-pose
    assert hips[:, 1].min() < 0.6  # crouches and sits
    assert np.ptp(hips[:, [0, 2]], axis=0).max() > 1.5  # walks
    assert (hands[..., 1] - head[:, None, 1]).max() > 0.05  # a hand above the head


def test_the_bundled_file_is_what_the_tool_makes(session: Session, frames: TrackerSequence) -> None:
    """Up to one rounding step, for another numpy may round otherwise."""
    t = frame_times(session, MOTIONS[session.name].duration_s)

    made = track(session, t, *MOTIONS[session.name].joints_at(t))

    assert [d.serial for d in frames.devices] == [d.serial for d in made.devices]
    np.testing.assert_array_equal(frames.time_ns, made.time_ns)
    np.testing.assert_array_equal(frames.valid, made.valid)
    np.testing.assert_allclose(frames.position, made.position, atol=1.01 * POSITION_STEP_M)
    np.testing.assert_allclose(frames.rotation, made.rotation, atol=2e-5)


def test_the_same_bytes_each_time(tmp_path: Path) -> None:
    once, again = tmp_path / "once", tmp_path / "again"
    for folder in (once, again):
        folder.mkdir()

    paths = [write_session(SESSIONS[0], folder) for folder in (once, again)]

    assert paths[0].read_bytes() == paths[1].read_bytes()


def test_a_sample_says_little_about_the_person(session: Session, frames: TrackerSequence) -> None:
    """Calibration has to find stature and tracker roles, as with a user's own recording."""
    info = open_recording(sample(session.name)).info

    assert info.stature_m is None
    assert info.calibration is None
    for device in frames.devices:
        assert bool(device.role) == (device.device_class != DeviceClass.GENERIC_TRACKER)


def test_a_sample_is_small_uneven_and_has_short_drop_outs(session: Session, frames: TrackerSequence) -> None:
    steps_ms = np.diff(frames.time_ns) * 1e-6

    assert sample(session.name).stat().st_size < 1_500_000
    assert frames.rate_hz == pytest.approx(90.0, abs=1.0)
    assert steps_ms.min() > 5.0
    assert 0.3 < steps_ms.std() < 2.0
    for k, device in enumerate(frames.devices):
        expected_s = sum(end - start for serial, start, end in session.lost if serial == device.serial)
        assert (~frames.valid[:, k]).sum() / 90.0 == pytest.approx(expected_s, abs=0.03)


def test_devices_are_worn_where_they_belong(session: Session, frames: TrackerSequence) -> None:
    motion = MOTIONS[session.name]
    joints, _ = motion.joints_at((frames.time_ns - frames.time_ns[0]) * 1e-9 + 1.0 / 90.0)

    for k, worn in enumerate(session.devices):
        away = np.linalg.norm(frames.position[:, k] - joints[:, BONE[worn.bone]], axis=-1)
        near = away[frames.valid[:, k]]
        assert 0.05 < np.median(near) < 0.16
        assert near.std() < 0.01


def test_an_unknown_sample_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="session_3points"):
        sample("nothing")
    assert {s.name for s in SESSIONS} == set(NAMES)


def test_the_contact_sheet_reads_a_dumped_skeleton(tmp_path: Path) -> None:
    motion = MOTIONS["session_3points"]
    write_session(SESSIONS[0], tmp_path, truth=tmp_path)

    figures = load_figures(tmp_path / "session_3points.npz")

    row = figures.at(np.array([10.0]))[0]
    t = frame_times(SESSIONS[0], motion.duration_s)
    np.testing.assert_allclose(figures.joints[row], motion.joints_at(t[row : row + 1])[0][0], atol=1e-9)
    assert figures.t[row] == pytest.approx(10.0, abs=0.01)
