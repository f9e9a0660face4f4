"""Makes the bundled sessions: virtual devices on the person of the motion model, with real devices' faults.

    python -m tools.make_samples [OUT_FOLDER] [--truth FOLDER]

Writes ``session_3points.mcap`` and ``session_6points.mcap`` (by default into ``recordings/samples/``); the
same bytes each time. ``--truth`` also writes the true joints as ``session_3points.npz`` and so on: ``t``,
``pos`` (n, 22, 3), ``rot`` (n, 22, 4) in SMPL order, ``tpose``, ``height_m``: for tests and pictures.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from recordings.native_writer import RecordingWriter
from tools import motion_chapters as chapter
from tools.motion_model import Motion
from tools.motion_script import Script
from vrik import quat
from vrik.arrays import Floats, Points, Quats
from vrik.body import BodyModel
from vrik.frames import DeviceClass, TrackedDevice, TrackerSequence
from vrik.skeleton import BONE, SMPL_FROM_VRM

STATURE_M = 1.72
RATE_HZ = 90.0
TIME_JITTER_S = 1e-3
START_NS = 1_000_000_000
POSITION_STEP_M, ROTATION_STEP = 2.0**-16, 2.0**-17
"""Values are rounded to these, finer than the noise, so that the files stay small."""

_LEFT_GRIP = quat.from_matrix(np.array([[0.0, 0.0, 1.0], [-1.0, 0.0, 0.0], [0.0, -1.0, 0.0]]))
_RIGHT_GRIP = quat.from_matrix(np.array([[0.0, 0.0, -1.0], [1.0, 0.0, 0.0], [0.0, -1.0, 0.0]]))


@dataclass(frozen=True, slots=True, eq=False)
class WornDevice:
    """A device and where it is worn.

    Args:
        device: What the recording says about it.
        bone: Bone it rides on.
        place: (3,) in that bone's axes, for a person of 1.75 m. [m]
        rotation: (4,) device in the bone's axes: controllers point -Z along the fingers, +Y to the thumb.
        noise_m, noise_rad: Standard deviation of its sensor noise on each axis.
    """

    device: TrackedDevice
    bone: str
    place: tuple[float, float, float]
    rotation: Quats
    noise_m: float
    noise_rad: float


def _headset() -> WornDevice:
    device = TrackedDevice("VRIK-HMD-0001", DeviceClass.HMD, "head", "model headset")
    return WornDevice(device, "head", (0.0, 0.07, -0.09), quat.identity(), 0.3e-3, np.radians(0.1))


def _controller(serial: str, role: str, bone: str, x: float, grip: Quats) -> WornDevice:
    device = TrackedDevice(serial, DeviceClass.CONTROLLER, role, "model controller")
    return WornDevice(device, bone, (x, 0.0, 0.0), grip, 0.5e-3, np.radians(0.2))


def _tracker(serial: str, bone: str, place: tuple[float, float, float]) -> WornDevice:
    device = TrackedDevice(serial, DeviceClass.GENERIC_TRACKER, "", "model tracker")
    return WornDevice(device, bone, place, quat.identity(), 0.7e-3, np.radians(0.2))


THREE_POINTS = (
    _headset(),
    _controller("VRIK-CTL-0002", "left_hand", "leftHand", -0.09, _LEFT_GRIP),
    _controller("VRIK-CTL-0003", "right_hand", "rightHand", 0.09, _RIGHT_GRIP),
)
SIX_POINTS = (
    *THREE_POINTS,
    _tracker("VRIK-TRK-0004", "rightFoot", (0.0, -0.02, -0.09)),
    _tracker("VRIK-TRK-0005", "hips", (0.0, 0.02, -0.11)),
    _tracker("VRIK-TRK-0006", "leftFoot", (0.0, -0.02, -0.09)),
)
"""Trackers do not know where they are worn and come in no special order: calibration has to find out."""


@dataclass(frozen=True, slots=True, eq=False)
class Session:
    """One bundled recording.

    Args:
        name: File name without its ending.
        seed: Of the noise.
        devices: What the person wears.
        play: Fills the script.
        lost: (serial, from [s], to [s]) drop-outs.
    """

    name: str
    seed: int
    devices: tuple[WornDevice, ...]
    play: Callable[[Script], None]
    lost: tuple[tuple[str, float, float], ...]


def play_three_points(s: Script) -> None:
    """A first look around a virtual room."""
    chapter.t_pose(s)
    chapter.look_around(s)
    chapter.nod(s)
    chapter.reaches(s)
    chapter.figure_eight(s)
    chapter.crouch(s)
    chapter.turn_on_the_spot(s, np.pi)
    chapter.sit(s)
    chapter.wave(s)
    s.wait(0.4)


def play_six_points(s: Script) -> None:
    """The same person with trackers on waist and feet, more on the legs."""
    chapter.t_pose(s)
    chapter.wave(s, chapter.LEFT, times=2)
    chapter.side_steps(s)
    chapter.turn_on_the_spot(s, -0.5 * np.pi, count=2)
    chapter.figure_eight(s, size_m=1.05)
    chapter.look_around(s)
    chapter.sit(s, seconds=1.6)
    chapter.crouch(s)
    s.wait(0.4)


SESSIONS = (
    Session("session_3points", 3, THREE_POINTS, play_three_points, (("VRIK-CTL-0003", 17.2, 17.5),)),
    Session(
        "session_6points", 6, SIX_POINTS, play_six_points,
        (("VRIK-CTL-0002", 8.1, 8.4), ("VRIK-TRK-0006", 15.0, 15.4)),
    ),
)  # fmt: skip


def motion_of(session: Session) -> Motion:
    """The person's true movement in a session."""
    script = Script(BodyModel.average(STATURE_M))
    session.play(script)
    return Motion(script)


def frame_times(session: Session, duration_s: float) -> Floats:
    """(n,) uneven times of the frames. [s]"""
    rng = np.random.default_rng([session.seed, 1])
    t = np.arange(1, int(duration_s * RATE_HZ)) / RATE_HZ
    return np.asarray(t + rng.uniform(-TIME_JITTER_S, TIME_JITTER_S, len(t)))


def track(session: Session, t: Floats, joints: Points, rotations: Quats) -> TrackerSequence:
    """What the devices report.

    Args:
        session: Who wears what.
        t: (n,) times. [s]
        joints: (n, 22, 3) true joints. [m]
        rotations: (n, 22, 4) true canonical rotations.
    """
    rng = np.random.default_rng([session.seed, 2])
    n, k = len(t), len(session.devices)
    position, rotation, valid = np.empty((n, k, 3)), np.empty((n, k, 4)), np.ones((n, k), bool)
    for i, worn in enumerate(session.devices):
        place = np.array(worn.place) * STATURE_M / 1.75 + rng.normal(0.0, 0.004, 3)
        strapped = quat.multiply(worn.rotation, quat.from_rotvec(rng.normal(0.0, np.radians(1.5), 3)))
        bone = rotations[:, BONE[worn.bone]]
        position[:, i] = (
            joints[:, BONE[worn.bone]] + quat.rotate(bone, place) + rng.normal(0.0, worn.noise_m, (n, 3))
        )
        shake = quat.from_rotvec(rng.normal(0.0, worn.noise_rad, (n, 3)))
        rotation[:, i] = quat.multiply(quat.multiply(bone, strapped), shake)
        for serial, start, end in session.lost:
            if serial == worn.device.serial:
                valid[(t >= start) & (t < end), i] = False
    rotation = quat.continuous(rotation)
    last = np.maximum.accumulate(
        np.where(valid, np.arange(n)[:, None], 0), axis=0
    )  # a lost device repeats itself
    position, rotation = (np.take_along_axis(a, last[..., None], axis=0) for a in (position, rotation))
    return TrackerSequence.build(
        START_NS + np.round(t * 1e9).astype(np.int64),
        [worn.device for worn in session.devices],
        np.round(position / POSITION_STEP_M) * POSITION_STEP_M,
        np.round(rotation / ROTATION_STEP) * ROTATION_STEP,
        valid,
    )


def write_session(session: Session, folder: Path, truth: Path | None = None) -> Path:
    """Write one session; returns its file.

    Args:
        session: Which.
        folder: Where to.
        truth: Folder for the true joints, or None.
    """
    motion = motion_of(session)
    t = frame_times(session, motion.duration_s)
    joints, rotations = motion.joints_at(t)
    frames = track(session, t, joints, rotations)
    path = folder / f"{session.name}.mcap"
    with RecordingWriter(path, frames.devices, now_ns=lambda: 0) as writer:
        for frame in frames:
            writer.write(frame)
    if truth is not None:
        np.savez_compressed(
            truth / f"{session.name}.npz",
            t=t,
            pos=joints[:, SMPL_FROM_VRM],
            rot=rotations[:, SMPL_FROM_VRM],
            tpose=motion.body.tpose[SMPL_FROM_VRM],
            height_m=STATURE_M,
        )
    return path


def main() -> None:
    """Make all sessions."""
    parser = argparse.ArgumentParser(description="Make the bundled sessions.")
    samples = Path(__file__).resolve().parents[1] / "recordings" / "samples"
    parser.add_argument("out", type=Path, nargs="?", default=samples, help="folder to write to")
    parser.add_argument("--truth", type=Path, help="folder for the true joints")
    options = parser.parse_args()
    for folder in (options.out, options.truth):
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
    for session in SESSIONS:
        path = write_session(session, options.out, options.truth)
        print(f"{path}: {path.stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
