"""Numbers out of separated text, block by block: any line ending, any locale's numbers, any cut.

A clean block is parsed by numpy at the speed of C. A block with blank cells gets them filled first; one with
text where a number should be is read cell by cell. What was met on the way is counted in a ``Tally``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np

from recordings.base import reading
from recordings.csv_text import (
    LONGEST_LINE,
    Header,
    cells_of,
    encoding_of,
    first_lines,
    number_in,
    separator_of,
)
from vrik.arrays import Floats
from vrik.errors import DamagedRecordingError, RecordingError

BLOCK_CHARS = 1 << 20
"""How much text is read at a time."""

RECENT_ROWS = 1000
"""With so many rows before it a last row without a line end is compared."""

_BLANK = 1.7e308
"""Stands for a blank cell while numpy parses a block."""

_WORDS = {"true": 1.0, "false": 0.0}


@dataclass(frozen=True, slots=True)
class Table:
    """How a file is to be read.

    Args:
        path: The file.
        separator: One of ``SEPARATORS``.
        width: How many cells each row must have.
        columns: Which of them are wanted, counted from 0.
        first_line: How many lines stand before the first row.
        decimal: "." or ","; "" takes commas for decimal ones when they do not separate cells.
        missing: Words that mean "no value", besides the empty cell.
        clock: Reads the first of ``columns`` when its cells are no plain numbers; NaN for what is no time.
    """

    path: Path
    separator: str
    width: int
    columns: tuple[int, ...]
    first_line: int = 1
    decimal: str = ""
    missing: tuple[str, ...] = ()
    clock: Callable[[str], float] | None = None

    @classmethod
    def of(
        cls,
        header: Header,
        wanted: Sequence[str],
        tally: Tally,
        clock: Callable[[str], float] | None = None,
    ) -> Table:
        """The columns with some names; those that repeat are counted and told, and the first is read."""
        if again := header.repeated(wanted):
            tally.counts["repeated columns"] = len(again)
            tally.notes.append(f"columns whose name repeats: {', '.join(again)}; the first of each is read")
        columns = tuple(header.at[name] for name in wanted)
        return cls(header.path, header.separator, len(header.names), columns, clock=clock)

    @classmethod
    def without_header(
        cls, path: Path, width: int, columns: tuple[int, ...], clock: Callable[[str], float] | None = None
    ) -> Table:
        """Rows from the first line on.

        Raises:
            RecordingError: If it cannot be read.
        """
        separator = separator_of("".join(first_lines(path, 1)))
        return cls(path, separator, width, columns, first_line=0, clock=clock)


@dataclass(slots=True)
class Tally:
    """What was met while reading."""

    rows: int = 0
    rows_cut: int = 0
    rows_skipped: int = 0
    first_skipped: str = ""
    last_is_short: bool = False
    blank_cells: int = 0
    unreadable_cells: int = 0
    decimal_commas: bool = False
    counts: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def tell(self, table: Table) -> None:
        """Put rows that were left out into ``counts`` and ``notes``.

        Raises:
            DamagedRecordingError: If rows were left out and none was read.
            RecordingError: The same, when decimal commas are why.
        """
        name = table.path.name
        if self.last_is_short and not self.rows_cut:
            self.rows_cut, self.rows_skipped = 1, self.rows_skipped - 1
        if self.rows_skipped and not self.rows and table.separator == ",":
            raise RecordingError(
                f"{name}: {self.first_skipped}, and so has every row; are these decimal commas? "
                "Export it with decimal points, or with semicolons between the cells"
            )
        if (self.rows_cut or self.rows_skipped) and not self.rows:
            raise DamagedRecordingError(f"{name} has no complete row; copy it again from its source")
        if self.rows_cut:
            self.counts["rows cut"] = self.rows_cut
            self.notes.append("the last row is cut and left out")
        if self.rows_skipped:
            self.counts["rows skipped"] = self.rows_skipped
            self.notes.append(
                f"rows with a wrong number of cells, left out: {self.rows_skipped}; "
                f"the first: {self.first_skipped}"
            )
        for what, n in (("blank cells", self.blank_cells), ("unreadable cells", self.unreadable_cells)):
            if n:
                self.counts[what] = n
        if self.decimal_commas:
            self.notes.append("numbers have decimal commas; read as decimal points")


def read_blocks(table: Table, tally: Tally) -> Iterator[Floats]:
    """(n, columns) numbers, NaN where a cell is blank or no number; all rows of the file in order.

    Rows with a wrong number of cells are left out. So is a last line without an end, since its last number
    may be cut; it is believed only if that number has as many decimals, at least one, as in all rows before.

    Raises:
        DamagedRecordingError: If it ends inside the lines before the first row, or a line never ends.
        RecordingError: If it cannot be read.
    """
    try:
        with table.path.open("rb") as head:
            encoding = encoding_of(head.read(4))
        with table.path.open(encoding=encoding, errors="replace") as stream:
            for _ in range(table.first_line):
                if not stream.readline(LONGEST_LINE).endswith("\n"):
                    raise DamagedRecordingError(
                        f"{table.path.name} ends before its first row; copy it again from its source"
                    )
            at, rest = table.first_line + 1, ""
            recent: list[str] = []
            size = table.path.stat().st_size
            while chunk := stream.read(BLOCK_CHARS):
                reading(cast("BinaryIO", stream.buffer).tell(), size)
                text, _, rest = (rest + chunk).rpartition("\n")
                lines = text.split("\n") if text else []
                values = _numbers(lines, at, table, tally)
                at += len(lines)
                recent = (recent + lines)[-RECENT_ROWS:]
                if len(rest) > LONGEST_LINE:
                    raise DamagedRecordingError(
                        f"line {at} of {table.path.name} never ends; copy the file again from its source"
                    )
                if len(values):
                    tally.rows += len(values)
                    yield values
            if _is_whole(rest, recent, table):
                tally.rows += 1
                yield _numbers([rest], at, table, tally)
            else:
                tally.rows_cut = 1 if rest.strip() else 0
    except OSError as error:
        raise RecordingError(f"cannot read {table.path}: {error.strerror or error}") from error


def _is_whole(last: str, recent: Sequence[str], table: Table) -> bool:
    """Whether a last line without an end is a whole row, as far as anybody can know."""

    def decimals(row: str) -> int:
        digits = row.rstrip().rpartition(table.separator)[2].replace(",", ".").rpartition(".")
        return len(digits[2]) if digits[1] and digits[2].isdigit() else 0

    if len(cells_of(last, table.separator)) != table.width or not decimals(last):
        return False
    before = {decimals(row) for row in recent if row.strip()}
    return before == {decimals(last)}


def _numbers(lines: list[str], at: int, table: Table, tally: Tally) -> Floats:
    """The whole rows among some lines, the first of which is line ``at`` of the file."""
    separator, wanted = table.separator, table.width - 1
    if separator == " ":
        lines = [" ".join(line.split()) for line in lines]
    rows, text = lines, "\n".join(lines)
    if '"' in text:
        rows = [line.replace('"', "") for line in lines]
        if any(row.count(separator) > wanted for row in rows):  # cells in quotes hold the separator
            return _cell_by_cell(lines, at, table, tally)
    found = [row.count(separator) for row in rows]
    if found.count(wanted) != len(rows):
        rows = [row for i, row in enumerate(rows) if _fits(row, found[i], at + i, table, tally)]
    elif rows:
        tally.last_is_short = False
    if not rows:
        return np.zeros((0, len(table.columns)))
    if separator != "," and table.decimal != "." and "," in text:
        rows = [row.replace(",", ".") for row in rows]
        tally.decimal_commas = True
    filled = _filled(rows, table)
    try:
        values = _parsed(filled, rows, table)
    except ValueError:
        return _cell_by_cell(rows, at, table, tally)
    if filled is not rows:
        blank = values == _BLANK
        tally.blank_cells += int(np.count_nonzero(blank))
        values[blank] = np.nan
    return values


def _fits(row: str, found: int, line: int, table: Table, tally: Tally) -> bool:
    """Whether a row has as many cells as the header; one empty cell more at its end does no harm."""
    wanted = table.width - 1
    if found == wanted or (found == wanted + 1 and row.endswith(table.separator)):
        tally.last_is_short = False
        return True
    if row.strip():
        tally.first_skipped = tally.first_skipped or (
            f"line {line} has {found + 1} cells instead of {table.width}"
        )
        tally.rows_skipped += 1
        tally.last_is_short = found < wanted
    return False


def _parsed(rows: list[str], written: list[str], table: Table) -> Floats:
    """The wanted columns; a clock reads its cells as written. ValueError when another is no number."""
    columns = table.columns if table.clock is None else table.columns[1:]
    values = np.loadtxt(rows, delimiter=table.separator, usecols=columns, comments=None, ndmin=2)
    if len(values) != len(rows):
        raise ValueError("a row was taken for an empty line")
    if table.clock is None:
        return values
    clock, first = table.clock, table.columns[0]
    times = [clock(row.split(table.separator, first + 1)[first].strip()) for row in written]
    return np.column_stack([times, values])


def _filled(rows: list[str], table: Table) -> list[str]:
    """Rows with a number in each cell that is empty, means "no value", or says true or false.

    The same list, when there is no such cell.
    """
    s = table.separator
    text = "\n" + "\n".join(rows) + "\n"
    numbers = dict.fromkeys(("", *table.missing), repr(_BLANK))
    for word, meaning in _WORDS.items():
        numbers |= dict.fromkeys((word, word.title(), word.upper()), repr(meaning))
    found = False
    for word, value in numbers.items():
        if word and word not in text:
            continue
        for left, right in ((s, s), (s, s), ("\n", s), (s, "\n")):  # twice: neighbours share a separator
            if (cell := left + word + right) in text:
                found = True
                text = text.replace(cell, left + value + right)
    return text[1:-1].split("\n") if found else rows


def _cell_by_cell(lines: Sequence[str], at: int, table: Table, tally: Tally) -> Floats:
    """The slow way, for cells in quotes and text among the numbers."""
    values = []
    for i, line in enumerate(lines):
        cells = cells_of(line, table.separator)
        if _fits(line, len(cells) - 1, at + i, table, tally):
            plain = table.columns if table.clock is None else table.columns[1:]
            numbers = [_number(cells[column], table, tally) for column in plain]
            values.append(
                numbers if table.clock is None else [table.clock(cells[table.columns[0]]), *numbers]
            )
    return np.array(values, np.float64).reshape(len(values), len(table.columns))


def _number(cell: str, table: Table, tally: Tally) -> float:
    """One cell; NaN when it is blank or no number."""
    if not cell or cell in table.missing:
        tally.blank_cells += 1
        return np.nan
    if cell.lower() in _WORDS:
        return _WORDS[cell.lower()]
    commas = table.decimal != "." and cell.count(",") == 1 and "." not in cell
    value = number_in(cell) if commas or "," not in cell else np.nan
    if np.isnan(value) and cell.lower().lstrip("+-") != "nan":
        tally.unreadable_cells += 1
    elif commas:
        tally.decimal_commas = True
    return value
