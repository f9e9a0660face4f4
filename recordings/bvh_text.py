"""The text of BVH files: joints and rows of numbers, in file units and file axes.

The format has many dialects, so the reader is generous with blanks, line ends, capitals, exponents, decimal
commas and row counts, and strict about one thing: a value never lands in a neighbour's channel. A row that
cannot be told apart is left out, counted, and named by its line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import TextIOWrapper
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np

from recordings.base import reading
from vrik.arrays import Floats, Ints
from vrik.errors import DamagedRecordingError, RecordingError

BLOCK_CHARS = 1 << 20
"""How much text is read at a time."""

LINE_CHARS = 1 << 22
"""A longer line is no row of numbers."""

HEAD_CHARS = 1 << 24
"""A skeleton that takes more text than this is none."""

QUOTED_CHARS = 40
"""What a message shows of a word in the file."""

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
    """What a file says before its first row of numbers.

    Args:
        path: The file.
        joints: In file order, which is parents first.
        frame_time_s: Step between rows. [s]
        stated: How many rows it says it has; None when it does not.
        lines: How many lines stand before the first row.
    """

    path: Path
    joints: tuple[Joint, ...]
    frame_time_s: float
    stated: int | None
    lines: int

    @property
    def width(self) -> int:
        """How many numbers a row has."""
        return sum(len(joint.channels) for joint in self.joints)


@dataclass(slots=True)
class Rows:
    """What was met among the rows so far."""

    count: int = 0
    """Rows, readable or not."""
    bad: int = 0
    first_bad: str = ""
    last_bad: int = -1
    glued: int = 0
    commas: bool = False
    counts: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def tell(self, text: BvhText) -> None:
        """Once all are read: put what was met into ``counts`` and ``notes``.

        Raises:
            DamagedRecordingError: If there are rows and none could be read.
        """
        if self.bad:
            if self.bad == self.count:
                raise DamagedRecordingError(
                    f"{text.path.name}: {self.first_bad}, and no row is better; export the file again"
                )
            last_is_cut = self.bad == 1 and self.last_bad == self.count - 1
            self.counts["rows cut" if last_is_cut else "rows skipped"] = self.bad
            self.notes.append(
                f"rows that cannot be read, left out: {self.bad}; the first: {self.first_bad} "
                "(or one is no number)"
            )
        if text.stated is not None and text.stated != self.count:
            self.counts["rows stated"] = text.stated
            self.notes.append(
                f"the file states {plural(text.stated, 'frame')} and holds {plural(self.count, 'row')}; "
                "the rows are used"
            )
        if self.glued:
            self.counts["rows with glued numbers"] = self.glued
            self.notes.append(
                f"rows with a blank missing before a minus sign: {self.glued}; the numbers were told apart"
            )
        if self.commas:
            self.notes.append("numbers have decimal commas; read as decimal points")


def read_head(path: Path) -> BvhText:
    """Read a file up to its first row.

    Raises:
        DamagedRecordingError: If the hierarchy is broken or there is no motion.
        RecordingError: If it cannot be read.
    """
    with _open(path) as stream:
        lines: list[str] = []
        left = HEAD_CHARS
        while (line := stream.readline(LINE_CHARS)) and line.strip().upper() != "MOTION" and left > 0:
            lines.append(line)
            left -= len(line)
        if line.strip().upper() != "MOTION":
            raise DamagedRecordingError(
                f"{path.name} has no MOTION section; export it again with the animation"
            )
        joints = _read_hierarchy(lines, path)
        stated: int | None = None
        frame_time_s, at = 0.0, len(lines) + 1
        while (line := stream.readline(LINE_CHARS)) and (":" in line or not line.strip()):
            at += 1
            name, _, value = line.partition(":")
            numbers = _row(value.split(), 1)
            if name.strip().lower() == "frames" and numbers:
                stated = int(min(max(numbers[0], 0.0), 1e12))
            elif name.strip().lower() == "frame time" and numbers:
                frame_time_s = numbers[0]
    if not 1e-5 < frame_time_s < 100.0:
        raise DamagedRecordingError(
            f"{path.name} states no usable 'Frame Time' (found {frame_time_s:g} s); export the file again"
        )
    return BvhText(path, tuple(joints), frame_time_s, stated, at)


def read_rows(text: BvhText, met: Rows) -> Iterator[tuple[Ints, Floats]]:
    """Row numbers (n,) and values (n, width) as written, block by block; unreadable rows are left out.

    Raises:
        DamagedRecordingError: If a line does not end.
        RecordingError: If the file cannot be read.
    """
    size = text.path.stat().st_size
    with _open(text.path) as stream:
        for _ in range(text.lines):
            stream.readline(LINE_CHARS)
        line, rest = text.lines + 1, ""
        while chunk := stream.read(BLOCK_CHARS):
            whole, end, rest = (rest + chunk).rpartition("\n")
            if len(rest) > LINE_CHARS:
                raise DamagedRecordingError(
                    f"{text.path.name} has a line of over {LINE_CHARS} letters; export the file again"
                )
            lines = whole.split("\n") if end else []
            yield _values(lines, line, text.width, met)
            line += len(lines)
            reading(cast("BinaryIO", stream.buffer).tell(), size)
        if rest:
            yield _values([rest], line, text.width, met)


@contextmanager
def _open(path: Path) -> Iterator[TextIOWrapper]:
    """Any line end, no trouble with letters.

    Raises:
        RecordingError: If it cannot be read.
    """
    try:
        with path.open(encoding="utf-8-sig", errors="replace") as stream:
            yield stream
    except OSError as error:
        raise RecordingError(f"cannot read {path}: {error.strerror or error}") from error


def _values(lines: list[str], at: int, width: int, met: Rows) -> tuple[Ints, Floats]:
    """Row numbers and values of some lines, the first of which is line ``at`` of the file."""
    rows = [line for line in lines if line and not line.isspace()]
    first = met.count
    try:
        values, commas = _fast(rows, width)
        met.count += len(rows)
        met.commas = met.commas or commas
        return np.arange(first, met.count), values
    except ValueError:
        pass
    kept: list[int] = []
    numbers: list[list[float]] = []
    for number, line in enumerate(lines, at):
        words = line.split()
        if not words:
            continue
        row = _row(words, width)
        if row is None:
            met.bad += 1
            met.last_bad = met.count
            met.first_bad = met.first_bad or (
                f"line {number} has {plural(len(words), 'value')}, the skeleton {plural(width, 'channel')}"
            )
        else:
            met.glued += len(words) != width
            met.commas = met.commas or "," in line
            kept.append(met.count)
            numbers.append(row)
        met.count += 1
    return np.array(kept, np.int64), np.array(numbers, np.float64).reshape(len(kept), width)


def _fast(rows: list[str], width: int) -> tuple[Floats, bool]:
    """All values, and whether they have decimal commas; ValueError when one row needs a closer look."""
    commas = any("," in row for row in rows)
    if commas:
        if any("." in row for row in rows):
            raise ValueError("points and commas")
        rows = [row.replace(",", ".") for row in rows]
    if not rows or not width:
        raise ValueError("nothing to read")
    values = np.loadtxt(rows, comments=None, ndmin=2)
    if values.shape != (len(rows), width) or not np.all(np.abs(values) < LARGEST):
        raise ValueError("not as many sane numbers as there are channels")
    return values, commas


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
                    raise broken(
                        number, f"OFFSET needs three numbers inside a joint, found '{quoted(part.strip())}'"
                    )
                if open_joints[-1] >= 0:
                    joints[open_joints[-1]].offset = numbers
                elif len(open_joints) > 1:
                    joints[open_joints[-2]].end = numbers
            elif keyword == "channels":
                listed = words[2:]
                if not open_joints or open_joints[-1] < 0 or words[1:2] != [str(len(listed))]:
                    raise broken(
                        number, f"CHANNELS needs a count and as many names, found '{quoted(part.strip())}'"
                    )
                joints[open_joints[-1]].channels = [name.lower() for name in listed]
            elif keyword != "hierarchy":
                raise broken(number, f"'{quoted(words[0])}' is no BVH keyword")
    if not joints or open_joints:
        raise broken(len(lines), "the hierarchy is empty" if not joints else "a } is missing before MOTION")
    return joints


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
        numbers = [float(word if "_" not in word else "") for word in words]
    except ValueError:
        return None
    return numbers if len(numbers) == width and np.all(np.abs(numbers) < LARGEST) else None


def quoted(word: str) -> str:
    """A word of the file as messages show it."""
    return word if len(word) <= QUOTED_CHARS else word[:QUOTED_CHARS] + "..."


def plural(count: int, noun: str) -> str:
    """ "1 row", "2 rows"."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
