"""Rows of numbers out of comma-separated text, when some of it is cut, blank or wrong."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vrik.arrays import Floats


def lines_of(data: bytes) -> tuple[list[str], str]:
    """The finished lines of a text, and what stands behind the last line end."""
    text = data.decode("utf-8-sig", errors="replace").replace("\r\n", "\n").replace("\r", "\n")
    *lines, unfinished = text.split("\n")
    return lines, unfinished


def whole_rows(
    lines: Sequence[str],
    unfinished: str,
    width: int,
    counts: dict[str, int],
    notes: list[str],
    *,
    separator: str = ",",
    first_line: int = 1,
) -> list[str]:
    """The rows with ``width`` cells; a cut last row and rows of another width are left out, counted and told.

    A last row without its line end is believed only if its last number has as many decimals as that of every
    other row: else nobody can know whether it is whole.

    Args:
        lines: As from :func:`lines_of`, without the header.
        unfinished: Likewise.
        width: Cells that a row must have.
        counts: Gets "rows cut" and "rows skipped".
        notes: Gets a sentence for each.
        separator: Between cells.
        first_line: Number of the first of ``lines`` in the file.
    """
    if unfinished.count(separator) + 1 == width and _has_their_decimals(unfinished, lines, separator):
        lines, unfinished = [*lines, unfinished], ""
    cells = [line.count(separator) + 1 for line in lines]
    rows = [line for line, n in zip(lines, cells, strict=True) if n == width]
    wrong = [i for i, line in enumerate(lines) if cells[i] != width and line.strip()]
    cut = bool(unfinished.strip())
    if wrong and not cut and wrong[-1] == len(lines) - 1 and cells[wrong[-1]] < width:
        cut = True
        wrong.pop()
    if cut:
        counts["rows cut"] = 1
        notes.append("the last row is cut and left out")
    if wrong:
        counts["rows skipped"] = len(wrong)
        notes.append(
            f"rows with a wrong number of cells, left out: {len(wrong)}; the first: "
            f"line {wrong[0] + first_line} has {cells[wrong[0]]} cells instead of {width}"
        )
    return rows


def separator_of(line: str) -> str:
    """What stands between the cells of a line: a semicolon or tab if there is one, else a comma."""
    return next((mark for mark in (";", "\t") if mark in line), ",")


def _has_their_decimals(row: str, others: Sequence[str], separator: str) -> bool:
    """Whether the last cell of a row is written with as many decimals, at least one, as in all others."""

    def decimals(line: str) -> int:
        _, point, digits = line.rpartition(separator)[2].replace(",", ".").rpartition(".")
        return len(digits) if point and digits.isdigit() else 0

    return bool(others) and decimals(row) > 0 and {decimals(other) for other in others} == {decimals(row)}


def numbers(
    rows: Sequence[str],
    columns: Sequence[int],
    counts: dict[str, int],
    notes: list[str],
    *,
    separator: str = ",",
) -> Floats:
    """(n, columns) numbers; NaN where a cell is blank or no number, which is counted and told."""
    if not rows:
        return np.zeros((0, len(columns)))
    if separator != "," and any("," in row for row in rows):
        rows = [row.replace(",", ".") for row in rows]
        notes.append("numbers have decimal commas; read as decimal points")
    try:
        return np.loadtxt(rows, delimiter=separator, usecols=columns, comments=None, quotechar='"', ndmin=2)
    except ValueError:  # some cell is blank or no number: slower, cell by cell
        table = [row.split(separator) for row in rows]
        values = np.array([[number(cells[i]) for i in columns] for cells in table])
        bad = sum(number(cells[i]) is NOT_A_NUMBER for cells in table for i in columns)
        if bad:
            counts["unreadable cells"] = bad
            notes.append(f"cells that are blank or no number: {bad}; their samples are marked not valid")
        return values


NOT_A_NUMBER = float("nan")
"""What :func:`number` returns, this very object, for a cell that is none."""


def number(cell: str) -> float:
    """The number in a cell, with a decimal point or comma; or ``NOT_A_NUMBER``."""
    try:
        return float(cell.strip().strip('"').replace(",", "."))
    except ValueError:
        return NOT_A_NUMBER
