"""Reads BVH motion files: a skeleton and how it moves, in vrik's axes and metres."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from recordings.bvh_names import Landmarks, landmarks_of
from recordings.bvh_text import Joint, read_text
from vrik import quat
from vrik.arrays import Floats, Ints, Points, Quats
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

_CHANNEL = re.compile(r"([xyz])(position|rotation)", re.IGNORECASE)


@dataclass(frozen=True, slots=True, eq=False)
class BvhMotion:
    """A skeleton and its motion, turned so that the rest pose faces -Z. n joints, t frames.

    Args:
        skeleton: Names, parents and rest offsets; every rest rotation is the identity.
        landmarks: Which joint is the head, the left hand, ... where the names tell.
        end_sites: Joint row to the offset of its end site. [m]
        frame_time_s: Step between rows. [s]
        rows: (t,) row number of each frame in the file; rows that could not be read are missing.
        local_rotation: (t, n, 4) relative to the parent; row 0 to the world.
        rotation: (t, n, 4) in the world; canonical with respect to the file's own rest pose.
        position: (t, n, 3) in the world. [m]
        unit_m: Length of one file unit. [m]
        unit: Its name.
        turned_rad: Yaw that was applied to the file so that it faces -Z. [rad]
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


def read_bvh(path: Path) -> BvhMotion:
    """Read a whole file.

    Raises:
        DamagedRecordingError: If the hierarchy is broken, or rows are there but none can be read.
    """
    text = read_text(path)
    joints, notes = text.joints, list(text.notes)
    parents = np.array([j.parent for j in joints], np.int64)
    offsets = np.array([j.offset for j in joints])
    names = tuple(j.name for j in joints)
    marks = landmarks_of(names, parents)
    unit, unit_m = _unit(offsets, parents, marks, notes)
    local, moved = _channels(joints, text.values, offsets)
    turned_rad = _turn(offsets, parents, marks, notes)
    turn = quat.from_rotvec(np.array([0.0, turned_rad, 0.0]))
    offsets, moved = quat.rotate(turn, offsets * unit_m), quat.rotate(turn, moved * unit_m)
    local = quat.multiply(quat.multiply(turn, local), quat.conjugate(turn))
    rotation, position = _forward(parents, local, moved)
    return BvhMotion(
        Skeleton(names, parents, offsets, quat.identity(len(names))),
        marks,
        {i: quat.rotate(turn, np.array(j.end) * unit_m) for i, j in enumerate(joints) if j.end is not None},
        text.frame_time_s,
        text.rows,
        quat.continuous(local),
        quat.continuous(rotation),
        position,
        unit_m,
        unit,
        turned_rad,
        text.counts,
        tuple(notes),
    )


def _channels(joints: tuple[Joint, ...], values: Floats, offsets: Points) -> tuple[Quats, Points]:
    """Local rotations (t, n, 4) and local positions (t, n, 3), in file units.

    Rotations multiply in the order listed. A position channel replaces its part of the offset.
    """
    t, n = len(values), len(joints)
    rotation = quat.identity(t, n)
    position = np.broadcast_to(offsets, (t, n, 3)).copy()
    column = 0
    for i, joint in enumerate(joints):
        order, columns = "", []
        for channel in joint.channels:
            match = _CHANNEL.fullmatch(channel)
            if match and match[2] == "position":
                position[:, i, "xyz".index(match[1])] = values[:, column]
            elif match:
                order += match[1]
                columns.append(column)
            column += 1
        if order:
            rotation[:, i] = quat.from_euler(order, np.radians(values[:, columns]))
    return rotation, position


def _forward(parents: Ints, local: Quats, moved: Points) -> tuple[Quats, Points]:
    """World rotations and positions from local ones."""
    rotation, position = local.copy(), moved.copy()
    for i in range(1, len(parents)):
        p = parents[i]
        rotation[:, i] = quat.multiply(rotation[:, p], local[:, i])
        position[:, i] = position[:, p] + quat.rotate(rotation[:, p], moved[:, i])
    return quat.normalize(rotation), position


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
