"""Reads BVH motion files: a skeleton and how it moves, in vrik's axes and metres."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from recordings.bvh_chain import pose
from recordings.bvh_names import Landmarks, landmarks_of
from recordings.bvh_text import BvhText, Rows, read_head, read_rows
from vrik import quat
from vrik.arrays import Ints, Points, Quat, Quats
from vrik.skeleton import Skeleton

UNITS = (
    ("metres", 1.0),
    ("CMU units", 0.0254 / 0.45),
    ("inches", 0.0254),
    ("centimetres", 0.01),
    ("millimetres", 0.001),
)
"""What a BVH may be written in: name and length [m]. CMU: 2.54 / 0.45 cm, as that database states."""

BODY_RANGE_M = (1.0, 2.4)
"""Length from foot over hips to head that makes a unit believable; the units' ranges hardly overlap."""


@dataclass(frozen=True, slots=True, eq=False)
class BvhFile:
    """A skeleton whose motion has not been read yet, turned so that the rest pose faces -Z. n joints.

    Args:
        text: What the file says before its rows.
        skeleton: Names, parents and rest offsets; every rest rotation is the identity.
        landmarks: Which joint is the head, the left hand, ... where the names tell.
        end_sites: Joint row to the offset of its end site. [m]
        unit_m: Length of one file unit. [m]
        unit: Its name.
        turned_rad: Yaw that is applied to the file so that it faces -Z. [rad]
        notes: Sentences about what is odd in the skeleton.
    """

    text: BvhText
    skeleton: Skeleton
    landmarks: Landmarks
    end_sites: dict[int, Points]
    unit_m: float
    unit: str
    turned_rad: float
    notes: tuple[str, ...]

    def blocks(self, joints: Sequence[int], met: Rows) -> Iterator[BvhBlock]:
        """The motion of some joints, in blocks of some thousand rows. ``met`` fills up on the way.

        Raises:
            DamagedRecordingError: If a line does not end.
        """
        turn = _yaw(self.turned_rad)
        back = quat.conjugate(turn)
        for rows, values in read_rows(self.text, met):
            chain = pose(self.text.joints, values, joints)
            yield BvhBlock(
                rows,
                quat.multiply(quat.multiply(turn, chain.local), back),
                quat.normalize(quat.multiply(quat.multiply(turn, chain.rotation), back)),
                quat.rotate(turn, chain.position * self.unit_m),
            )


@dataclass(frozen=True, slots=True, eq=False)
class BvhBlock:
    """Some rows of the motion of m joints.

    Args:
        rows: (t,) row number of each frame in the file; rows that could not be read are missing.
        local_rotation: (t, m, 4) relative to the parent; those of the root to the world.
        rotation: (t, m, 4) in the world; canonical with respect to the file's own rest pose.
        position: (t, m, 3) in the world. [m]
    """

    rows: Ints
    local_rotation: Quats
    rotation: Quats
    position: Points


@dataclass(frozen=True, slots=True, eq=False)
class BvhMotion:
    """A skeleton and all its motion; all joints, t frames. Fields as in ``BvhFile`` and ``BvhBlock``.

    Args:
        frame_time_s: Step between rows. [s]
        counts: What was met on the way, by name.
        notes: Sentences about what is odd.
    """

    skeleton: Skeleton
    landmarks: Landmarks
    end_sites: dict[int, Points]
    frame_time_s: float
    rows: Ints
    local_rotation: Quats
    rotation: Quats
    position: Points
    unit_m: float
    unit: str
    turned_rad: float
    counts: dict[str, int]
    notes: tuple[str, ...]


def open_bvh(path: Path) -> BvhFile:
    """Read the skeleton.

    Raises:
        DamagedRecordingError: If the hierarchy is broken or there is no motion.
        RecordingError: If the file cannot be read.
    """
    text = read_head(path)
    notes: list[str] = []
    joints = text.joints
    parents = np.array([j.parent for j in joints], np.int64)
    offsets = np.array([j.offset for j in joints])
    names = tuple(j.name for j in joints)
    marks = landmarks_of(names, parents)
    unit, unit_m = _unit(offsets, parents, marks, notes)
    turned_rad = _turn(offsets, parents, marks, notes)
    turn = _yaw(turned_rad)
    return BvhFile(
        text,
        Skeleton(names, parents, quat.rotate(turn, offsets * unit_m), quat.identity(len(names))),
        marks,
        {i: quat.rotate(turn, np.array(j.end) * unit_m) for i, j in enumerate(joints) if j.end is not None},
        unit_m,
        unit,
        turned_rad,
        tuple(notes),
    )


def read_bvh(path: Path) -> BvhMotion:
    """Read a whole file, all joints of it.

    Raises:
        DamagedRecordingError: If the hierarchy is broken, or rows are there but none can be read.
        RecordingError: If the file cannot be read.
    """
    file, met = open_bvh(path), Rows()
    n = len(file.skeleton.names)
    blocks = list(file.blocks(range(n), met))
    met.tell(file.text)
    return BvhMotion(
        file.skeleton,
        file.landmarks,
        file.end_sites,
        file.text.frame_time_s,
        np.concatenate([np.zeros(0, np.int64), *(block.rows for block in blocks)]),
        quat.continuous(np.concatenate([np.zeros((0, n, 4)), *(block.local_rotation for block in blocks)])),
        quat.continuous(np.concatenate([np.zeros((0, n, 4)), *(block.rotation for block in blocks)])),
        np.concatenate([np.zeros((0, n, 3)), *(block.position for block in blocks)]),
        file.unit_m,
        file.unit,
        file.turned_rad,
        met.counts,
        (*file.notes, *met.notes),
    )


def _yaw(angle_rad: float) -> Quat:
    return quat.from_rotvec(np.array([0.0, angle_rad, 0.0]))


def rest_of(offsets: Points, parents: Ints) -> Points:
    """(n, 3) joints of the rest pose, for rest rotations that are all the identity."""
    rest = offsets.copy()
    for i in range(1, len(parents)):
        rest[i] += rest[parents[i]]
    return rest


def _unit(offsets: Points, parents: Ints, marks: Landmarks, notes: list[str]) -> tuple[str, float]:
    """Guess the unit from the length foot-hips-head, which does not depend on how the rest pose stands."""

    def to_root(joint: int) -> float:
        length = 0.0
        while joint > 0:
            length += float(np.linalg.norm(offsets[joint]))
            joint = int(parents[joint])
        return length

    foot = marks.get("left_foot", marks.get("right_foot"))
    if foot is None or "head" not in marks:
        notes.append("no head and foot by name, so no height to tell the unit from; taken as centimetres")
        return "centimetres", 0.01
    size = to_root(marks["head"]) + to_root(foot)
    low, high = BODY_RANGE_M
    for unit, unit_m in UNITS:
        if low <= size * unit_m <= high:
            notes.append(
                f"unit guessed from the skeleton's size: {unit} (foot to head {size * unit_m:.2f} m)"
            )
            return unit, unit_m
    notes.append(f"foot to head measures {size:g} file units, which fits no unit; taken as centimetres")
    return "centimetres", 0.01


def _turn(offsets: Points, parents: Ints, marks: Landmarks, notes: list[str]) -> float:
    """Yaw [rad] that makes the rest pose face -Z, from where its left and right joints are."""
    rest = rest_of(offsets, parents)
    across = np.zeros(3)
    for part in ("upper_leg", "foot", "upper_arm", "hand"):
        left, right = marks.get(f"left_{part}"), marks.get(f"right_{part}")
        if left is not None and right is not None:
            step = rest[right] - rest[left]
            length = np.linalg.norm(step)
            across += step / length if length > 1e-9 else 0.0
    right_x, right_z = across[0], across[2]
    if np.hypot(right_x, right_z) < 0.1:
        notes.append("no left and right joints to tell the facing from; taken as facing +Z, as most files do")
        return float(np.pi)
    return float(np.arctan2(right_z, right_x))  # brings "right" to +X; up x right is then forward, -Z
