"""BVH as a source of tracker poses: what a headset, controllers and trackers on that body would measure.

Device frames are those of the accuracy harness: headset between the eyes, looking along -Z; controllers in
the fist with -Z along the fingers and +Y to the thumb; trackers at the waist and on the insteps, identity in
the T-pose. :func:`recordings.bvh_file.read_bvh` gives the skeleton itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from recordings.base import Recording, RecordingInfo
from recordings.bvh_file import BvhFile, open_bvh, rest_of
from recordings.bvh_text import Rows, quoted
from recordings.importers.axes import device_for_role, is_measured, tracker_sequence
from recordings.importers.blocks import Sequencer
from recordings.spool import Spool
from vrik import quat
from vrik.arrays import Points, Quat, Quats, Vec3
from vrik.body import HEAD_JOINT_SHARE
from vrik.errors import RecordingError
from vrik.frames import TrackedDevice

REFERENCE_STATURE_M = 1.75
"""The device offsets below are for a person of this height, and grow with it."""

LEVEL_ARMS_RAD = np.radians(20.0)
"""Rest arms within this of horizontal make the rest pose a T-pose."""

FLOOR_TOLERANCE_M = 0.05


@dataclass(frozen=True, slots=True, eq=False)
class _Mount:
    """How a device sits on its joint. Source: the accuracy harness's device table."""

    landmark: str
    offset: Vec3
    """In the joint's canonical frame, for REFERENCE_STATURE_M. [m]"""
    rotation: Quat
    limb: Vec3
    """Where the bone that ends in this joint points in a T-pose; zero: taken to be at rest as in a T-pose."""


_S = float(np.sqrt(0.5))
_MOUNTS = {
    "head": _Mount("head", np.array([0.0, 0.07, -0.09]), quat.identity(), np.zeros(3)),
    "left_hand": _Mount(
        "left_hand", np.array([-0.09, 0.0, 0.0]), np.array([0.5, -0.5, 0.5, -0.5]), np.array([-1.0, 0.0, 0.0])
    ),
    "right_hand": _Mount(
        "right_hand", np.array([0.09, 0.0, 0.0]), np.array([0.5, -0.5, -0.5, 0.5]), np.array([1.0, 0.0, 0.0])
    ),
    "waist": _Mount("hips", np.array([0.0, 0.02, -0.11]), quat.identity(), np.zeros(3)),
    "left_foot": _Mount("left_foot", np.array([0.0, -0.02, -0.09]), quat.identity(), np.zeros(3)),
    "right_foot": _Mount("right_foot", np.array([0.0, -0.02, -0.09]), quat.identity(), np.zeros(3)),
}


class BvhImporter:
    """Reads ``.bvh``."""

    name = "bvh"
    summary = "BVH motion capture, as virtual devices at head, hands, waist and feet"
    suffixes = (".bvh",)

    def recognises(self, head: bytes, path: Path) -> bool:
        """By its first word."""
        return head.removeprefix(b"\xef\xbb\xbf").lstrip()[:9].upper() == b"HIERARCHY"

    def open(self, path: Path) -> Recording:
        """Read the skeleton and place virtual devices on it.

        A rest pose with level arms also gives ``info.calibration``: one frame of it, on the floor.

        Raises:
            DamagedRecordingError: If the hierarchy is broken or no row can be read.
            RecordingError: If no joint has a name that tells what it is.
        """
        file = open_bvh(path)
        roles = [role for role, mount in _MOUNTS.items() if mount.landmark in file.landmarks]
        if not roles:
            names = ", ".join(quoted(name) for name in file.skeleton.names[:8])
            raise RecordingError(
                f"{path.name}: no joint is named like a head, hand, hips or foot (found {names}); "
                "rename the joints, for example to Hips, Head, LeftHand, RightHand, LeftFoot, RightFoot"
            )
        notes = list(file.notes)
        missing = [role for role in _MOUNTS if role not in roles]
        if missing:
            notes.append(f"no joint is named like these, so they have no device: {', '.join(missing)}")
        rest = rest_of(file.skeleton.rest_translation, file.skeleton.parents)
        feet = _feet(file)
        floor_at_rest = float(rest[feet, 1].min()) if feet else None
        body = _Body(
            {role: file.landmarks[_MOUNTS[role].landmark] for role in roles},
            {role: _rest_correction(role, rest, file) for role in roles},
            _stature(rest, floor_at_rest, file) / REFERENCE_STATURE_M,
        )
        frames, floor, met = _read(file, body, feet)
        notes += met.notes
        tilt = _rest_arm_tilt(rest, file)
        calibration = None
        if tilt is not None and tilt <= LEVEL_ARMS_RAD and floor_at_rest is not None:
            on_floor = rest - np.array([rest[0, 0], floor_at_rest, rest[0, 2]])
            poses = body.seen(range(len(rest)), on_floor[None], quat.identity(1, len(rest)))
            calibration = tracker_sequence(np.zeros(1, np.int64), body.devices(), *poses, is_measured(*poses))
        elif tilt is not None:
            notes.append(
                f"the arms of the rest pose are {np.degrees(tilt):.0f} degrees off a T-pose; "
                "hand rotations are corrected by the shortest turn"
            )
        if floor is not None and abs(floor) > FLOOR_TOLERANCE_M:
            notes.append(f"the lowest foot or toe is at y = {floor:.2f} m, not on the floor at 0")
        return frames.recording(
            RecordingInfo(
                path,
                self.name,
                body.devices(),
                calibration=calibration,
                counts=met.counts,
                notes=tuple(notes),
            )
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Body:
    """Where the devices sit: joint and its canonical rotation at rest, by role, and the size of the body."""

    joints: dict[str, int]
    corrections: dict[str, Quat]
    size: float
    """1 for the person that the offsets are for."""

    def devices(self) -> tuple[TrackedDevice, ...]:
        """One for each role."""
        return tuple(device_for_role(role, f"bvh-{role}", "virtual, from BVH") for role in self.joints)

    def seen(self, joints: Sequence[int], position: Points, rotation: Quats) -> tuple[Points, Quats]:
        """World poses (t, k, 3) and (t, k, 4) of the devices from (t, m, ...) poses of ``joints``."""
        places, turns = [], []
        for role, joint in self.joints.items():
            mount, column = _MOUNTS[role], joints.index(joint)
            canonical = quat.multiply(rotation[:, column], self.corrections[role])
            places.append(position[:, column] + quat.rotate(canonical, mount.offset * self.size))
            turns.append(quat.multiply(canonical, mount.rotation))
        return np.stack(places, axis=1), np.stack(turns, axis=1)


def _read(file: BvhFile, body: _Body, feet: list[int]) -> tuple[Spool, float | None, Rows]:
    """All frames, the least height of a foot [m], and what was met among the rows."""
    spool, met, sequencer = Spool(), Rows(), Sequencer(body.devices())
    joints = sorted({*body.joints.values(), *feet})
    columns = [joints.index(foot) for foot in feet]
    lowest: float | None = None
    for block in file.blocks(joints, met):
        if feet and len(block.rows):
            lowest = min(float(block.position[:, columns, 1].min()), np.inf if lowest is None else lowest)
        time_ns = np.round(block.rows * (file.text.frame_time_s * 1e9)).astype(np.int64)
        poses = body.seen(joints, block.position, block.rotation)
        spool.add(sequencer.sequence(time_ns, *poses, is_measured(*poses)))
    met.tell(file.text)
    return spool, lowest, met


def _rest_correction(role: str, rest: Points, file: BvhFile) -> Quat:
    """Canonical rotation of the joint at rest: the shortest turn from the T-pose's limb to the rest's."""
    mount = _MOUNTS[role]
    joint = file.landmarks[mount.landmark]
    limb = rest[joint] - rest[file.skeleton.parents[joint]] if joint else np.zeros(3)
    length = float(np.linalg.norm(limb))
    if length < 1e-6 or not mount.limb.any():
        return quat.identity()
    axis = np.cross(mount.limb, limb / length)
    sine, cosine = float(np.linalg.norm(axis)), float(mount.limb @ limb / length)
    if sine < 1e-9:  # straight, or opposite: then any half turn about an upright axis
        return quat.identity() if cosine > 0.0 else np.array([0.0, 0.0, 1.0, 0.0])
    return quat.from_rotvec(axis / sine * np.arctan2(sine, cosine))


def _rest_arm_tilt(rest: Points, file: BvhFile) -> float | None:
    """Larger angle between a rest arm (upper arm to hand) and that of a T-pose; None without arms. [rad]"""
    angles = []
    for side, outward in (("left", -1.0), ("right", 1.0)):
        shoulder, hand = (file.landmarks.get(f"{side}_{part}") for part in ("upper_arm", "hand"))
        if shoulder is not None and hand is not None:
            arm = rest[hand] - rest[shoulder]
            angles.append(float(np.arctan2(np.hypot(arm[1], arm[2]), outward * arm[0])))
    return max(angles) if angles else None


def _feet(file: BvhFile) -> list[int]:
    """Rows of the feet and toes."""
    feet = {file.landmarks[f] for f in ("left_foot", "right_foot") if f in file.landmarks}
    parents = file.skeleton.parents.tolist()
    return sorted(feet | {joint for joint, parent in enumerate(parents) if parent in feet})


def _stature(rest: Points, floor: float | None, file: BvhFile) -> float:
    """Stature from the head joint over the feet at rest; the reference where that makes no sense. [m]"""
    if floor is None or "head" not in file.landmarks:
        return REFERENCE_STATURE_M
    stature_m = float(rest[file.landmarks["head"], 1] - floor) / HEAD_JOINT_SHARE
    return stature_m if 0.8 < stature_m < 2.5 else REFERENCE_STATURE_M
