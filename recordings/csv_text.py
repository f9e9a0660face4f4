"""The text of a table: its encoding, its lines, what stands between cells, and the names in its header."""

from __future__ import annotations

import codecs
import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from vrik.errors import RecordingError

SEPARATORS = (";", "\t", ",", "|", " ")
"""What may stand between cells, in the order of looking; a blank stands for any run of blanks."""

LONGEST_LINE = 1 << 22
"""No line of a table has more characters; a file without line ends is not read into memory whole."""


def encoding_of(head: bytes) -> str:
    """UTF-8, or UTF-16 as spreadsheets write it: with its mark, or told by the zeros beside plain letters."""
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    zeros = [byte == 0 for byte in head[:4]]
    if zeros == [False, True, False, True]:
        return "utf-16-le"
    return "utf-16-be" if zeros == [True, False, True, False] else "utf-8-sig"


def is_text(head: bytes) -> bool:
    """Whether a file that begins so can be text."""
    return encoding_of(head).startswith("utf-16") or b"\0" not in head


def lines_of(head: bytes) -> list[str]:
    """The lines a file begins with, without their ends; the last one may go on."""
    text = head.decode(encoding_of(head), errors="replace")
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def names_in(head: bytes) -> list[str]:
    """The cells of the first line of a file that begins so."""
    line = lines_of(head)[0]
    return cells_of(line, separator_of(line))


def looks_like_table(head: bytes) -> bool:
    """Whether a file begins with a line of several cells: a time and some pose at least."""
    return is_text(head) and len(names_in(head)) >= 4


def rows_in(head: bytes, count: int) -> list[list[str]]:
    """The cells of the first ``count`` lines that are complete and not blank."""
    lines = [line for line in lines_of(head)[:-1] if line.strip()][:count]
    separator = separator_of(lines[0]) if lines else ","
    return [cells_of(line, separator) for line in lines]


def first_lines(path: Path, count: int) -> list[str]:
    """The first ``count`` lines without their ends; fewer when the file is shorter.

    Raises:
        RecordingError: If it cannot be read.
    """
    try:
        with path.open("rb") as stream:
            encoding = encoding_of(stream.read(4))
        with path.open(encoding=encoding, errors="replace") as text:
            lines = (text.readline(LONGEST_LINE) for _ in range(count))
            return [line.rstrip("\n") for line in lines if line]
    except OSError as error:
        raise RecordingError(f"cannot read {path}: {error.strerror or error}") from error


def separator_of(line: str) -> str:
    """What stands between the cells of a header."""
    return next((s for s in SEPARATORS if s in line.strip()), ",")


def cells_of(line: str, separator: str) -> list[str]:
    """The cells of one line, without quotes and blanks around them."""
    if separator == " ":
        line = " ".join(line.split())
    if '"' in line:
        try:
            return [
                cell.strip() for cell in next(csv.reader([line], delimiter=separator, skipinitialspace=True))
            ]
        except csv.Error:
            pass  # a cell beyond the reader's limit: no table of numbers has one
    return [cell.strip().strip('"') for cell in line.split(separator)]


def number_in(cell: str) -> float:
    """The number in a cell, with a decimal point or comma; NaN when it is none."""
    try:
        return float(cell.replace(",", ".") if "_" not in cell else "")
    except ValueError:
        return float("nan")


@dataclass(frozen=True, slots=True)
class Header:
    """The names of a table's columns.

    Args:
        path: The table.
        separator: Between its cells.
        names: In their order.
        at: Where each name stands, counted from 0; the first place of a name that repeats.
    """

    path: Path
    separator: str
    names: tuple[str, ...]
    at: dict[str, int]

    @classmethod
    def of(cls, path: Path) -> Header:
        """The first line of a file.

        Raises:
            RecordingError: If it cannot be read.
        """
        line = "".join(first_lines(path, 1))
        separator = separator_of(line)
        names = tuple(cells_of(line, separator))
        return cls(path, separator, names, {name: i for i, name in reversed(list(enumerate(names)))})

    def repeated(self, used: Sequence[str]) -> list[str]:
        """Those of some names that stand more than once."""
        return [name for name in used if self.names.count(name) > 1]
