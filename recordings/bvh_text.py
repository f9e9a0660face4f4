"""The text of BVH files: joints and rows of numbers, in file units and file axes.

The format has many dialects, so the reader is generous with blanks, line ends, capitals, exponents, decimal
commas and row counts, and strict about one thing: a value never lands in a neighbour's channel. A row that
cannot be told apart is left out, counted, and named by its line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from vrik.arrays import Floats, Ints
from vrik.errors import DamagedRecordingError

LARGEST = 1e9
"""No length, angle or count in a motion file is larger."""

_GLUED = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")


@dataclass(slots=True)
class Joint:
    """One joint while the hierarchy is read; offsets in file units."""

    name: str
    parent: int
    offset: list[float] = field(default_factory=lambda: [0.0, 0.0, 0.0])
    channels: list[str] = field(default_factory=list)
    """Lower case: "xposition", "zrotation", ... in file order."""
    end: list[float] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class BvhText:
    """What a file says.

    Args:
        joints: In file order, which is parents first.
        frame_time_s: Step between rows. [s]
        rows: (t,) row numbers of the readable rows.
        values: (t, channels) as written.
        counts: What was met on the way, by name.
        notes: Sentences about what is odd.
    """

    joints: tuple[Joint, ...]
    frame_time_s: float
    rows: Ints
    values: Floats
    counts: dict[str, int]
    notes: tuple[str, ...]


def read_text(path: Path) -> BvhText:
    """Read a whole file.

    Raises:
        DamagedRecordingError: If the hierarchy is broken, or rows are there but none can be read.
    """
    text = path.read_bytes().decode("utf-8-sig", errors="replace")
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    motion_at = next((i for i, line in enumerate(lines) if line.strip().upper() == "MOTION"), None)
    if motion_at is None:
        raise DamagedRecordingError(f"{path.name} has no MOTION section; export it again with the animation")
    joints = _read_hierarchy(lines[:motion_at], path)
    counts: dict[str, int] = {}
    notes: list[str] = []
    frame_time_s, rows, values = _read_motion(lines, motion_at + 1, joints, path, counts, notes)
    return BvhText(tuple(joints), frame_time_s, rows, values, counts, tuple(notes))


def _read_hierarchy(lines: list[str], path: Path) -> list[Joint]:
    """Joints in file order, which is parents first."""

    def broken(number: int, what: str) -> DamagedRecordingError:
        return DamagedRecordingError(f"{path.name}, line {number}: {what}; export the file again")

    joints: list[Joint] = []
    open_joints: list[int] = []  # -1 stands for an end site
    announced: int | None = None
    for number, line in enumerate(lines, 1):
        for part in re.findall(r"[{}]|[^{}]+", line):
            words = part.split()
            if not words:
                continue
            keyword = words[0].lower()
            if keyword == "{":
                if announced is None:
                    raise broken(number, "a { without a joint before it")
                open_joints.append(announced)
                announced = None
            elif keyword == "}":
                if not open_joints:
                    raise broken(number, "a } too many")
                open_joints.pop()
            elif keyword in ("root", "joint"):
                if open_joints and open_joints[-1] < 0:
                    raise broken(number, "a joint inside an end site")
                if joints and not open_joints:
                    raise broken(number, "a second root (one skeleton a file is expected)")
                joints.append(Joint(" ".join(words[1:]), open_joints[-1] if open_joints else -1))
                announced = len(joints) - 1
            elif keyword == "end":
                announced = -1
            elif keyword == "offset":
                numbers = _row(part.split()[1:], 3)
                if numbers is None or not open_joints:
                    raise broken(number, f"OFFSET needs three numbers inside a joint, found '{part.strip()}'")
                if open_joints[-1] >= 0:
                    joints[open_joints[-1]].offset = numbers
                elif len(open_joints) > 1:
                    joints[open_joints[-2]].end = numbers
            elif keyword == "channels":
                listed = words[2:]
                if not open_joints or open_joints[-1] < 0 or words[1:2] != [str(len(listed))]:
                    raise broken(number, f"CHANNELS needs a count and as many names, found '{part.strip()}'")
                joints[open_joints[-1]].channels = [name.lower() for name in listed]
            elif keyword != "hierarchy":
                raise broken(number, f"'{words[0]}' is no BVH keyword")
    if not joints or open_joints:
        raise broken(len(lines), "the hierarchy is empty" if not joints else "a } is missing before MOTION")
    return joints


def _read_motion(
    lines: list[str], at: int, joints: list[Joint], path: Path, counts: dict[str, int], notes: list[str]
) -> tuple[float, Ints, Floats]:
    """Frame time [s], row numbers (t,) and channel values (t, channels)."""
    width = sum(len(j.channels) for j in joints)
    stated: int | None = None
    frame_time_s = 0.0
    number = at
    for number in range(at, len(lines)):
        name, colon, value = lines[number].partition(":")
        if not colon:
            if lines[number].strip():
                break
            continue
        numbers = _row(value.split(), 1)
        if name.strip().lower() == "frames" and numbers:
            stated = int(min(max(numbers[0], 0.0), 1e12))
        elif name.strip().lower() == "frame time" and numbers:
            frame_time_s = numbers[0]
    else:
        number = len(lines)
    if not 1e-5 < frame_time_s < 100.0:
        raise DamagedRecordingError(
            f"{path.name} states no usable 'Frame Time' (found {frame_time_s:g} s); export the file again"
        )
    body = [(i + 1, line) for i, line in enumerate(lines[number:], number) if line.strip()]
    rows, values, bad = [], [], []
    glued = commas = 0
    for row, (line_number, line) in enumerate(body):
        words = line.split()
        numbers = _row(words, width)
        if numbers is None:
            bad.append((line_number, len(words)))
            continue
        glued += len(words) != width
        commas += "," in line
        rows.append(row)
        values.append(numbers)
    if bad:
        told = f"line {bad[0][0]} has {bad[0][1]} values where {width} channels are named"
        if not rows:
            raise DamagedRecordingError(f"{path.name}: {told}, and no row is better; export the file again")
        last_is_cut = bad[-1][0] == body[-1][0] and len(bad) == 1
        counts["rows cut" if last_is_cut else "rows skipped"] = len(bad)
        notes.append(
            f"rows that cannot be read, left out: {len(bad)}; the first: {told} (or one is no number)"
        )
    if stated is not None and stated != len(body):
        counts["rows stated"] = stated
        notes.append(f"the file states {stated} frames and holds {len(body)} rows; the rows are used")
    if glued:
        counts["rows with glued numbers"] = glued
        notes.append(f"rows with a blank missing before a minus sign: {glued}; the numbers were told apart")
    if commas:
        notes.append("numbers have decimal commas; read as decimal points")
    return frame_time_s, np.array(rows, np.int64), np.array(values).reshape(len(rows), width)


def _row(words: list[str], width: int) -> list[float] | None:
    """The numbers of a row, or None unless there are exactly ``width`` sane ones.

    With too few words, numbers may be glued together ("0.0-7.5"): they are told apart by their signs.
    """
    if "," in "".join(words):
        if any("." in word or word.count(",") > 1 for word in words):
            return None
        words = [word.replace(",", ".") for word in words]
    if len(words) < width:
        split = [_GLUED.findall(word) for word in words]
        if any("".join(parts) != word for parts, word in zip(split, words, strict=True)):
            return None
        if any(part[0] not in "+-" for parts in split for part in parts[1:]):
            return None  # "1.5.2": only a sign says where the next number begins
        words = [part for parts in split for part in parts]
    try:
        numbers = [float(word) for word in words]
    except ValueError:
        return None
    return numbers if len(numbers) == width and np.all(np.abs(numbers) < LARGEST) else None
