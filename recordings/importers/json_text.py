"""JSON recordings, whole or cut: what stands before the damage, and values that may be of any type."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from vrik.errors import DamagedRecordingError

CUT_NOTE = "the file is cut or broken; what stands before that is read"

_NAN = float("nan")
_TOKENS = re.compile(r'"(?:[^"\\]|\\.)*"|["\[\]{}]', re.DOTALL)
_CLOSING = {"{": "}", "[": "]"}


def read_text(path: Path) -> str:
    """A file's text, whatever is wrong with its encoding."""
    return path.read_bytes().decode("utf-8-sig", errors="replace")


def read_json(path: Path, text: str, depth: int) -> tuple[Any, bool]:
    """The document in a file, and whether its end is missing.

    Args:
        path: The file, for messages.
        text: What is in it.
        depth: How many brackets are open around a row of the recording; of a broken file, everything up to
            the last whole row is read.

    Raises:
        DamagedRecordingError: If it is broken before its first row.
    """
    try:
        return json.loads(text), False
    except RecursionError as fault:
        raise DamagedRecordingError(f"{path.name} nests far too deep for a recording") from fault
    except ValueError as fault:
        end = fault.pos if isinstance(fault, json.JSONDecodeError) else len(text)
        told = str(fault)
    whole = _up_to_last_row(text[:end], depth)
    try:
        if whole is not None:
            return json.loads(whole), True
    except (ValueError, RecursionError):  # some number has thousands of digits
        pass
    raise DamagedRecordingError(
        f"{path.name} is broken before its first whole row of JSON ({told}); copy it again from its source"
    )


def _up_to_last_row(text: str, depth: int) -> str | None:
    """The text up to the last bracket that leaves ``depth`` open, with those closed; None without one."""
    opened: list[str] = []
    end, closing = 0, ""
    for token in _TOKENS.finditer(text):
        mark = token[0]
        if mark in _CLOSING:
            opened.append(mark)
        elif mark in "]}":
            if not opened or _CLOSING[opened.pop()] != mark:
                break
            if len(opened) == depth:
                end, closing = token.end(), "".join(_CLOSING[m] for m in reversed(opened))
        elif mark == '"':  # a text that never ends
            break
    return text[:end] + closing if end else None


def number(value: Any) -> float:
    """A JSON number as a float; NaN for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return _NAN
    try:
        return float(value)
    except OverflowError:
        return _NAN


def vector(value: Any, keys: Sequence[str]) -> list[float]:
    """Numbers by key from an object, or in order from a list; NaN for each that is not there."""
    if isinstance(value, dict):
        return [number(value.get(key)) for key in keys]
    if isinstance(value, list) and len(value) == len(keys):
        return [number(part) for part in value]
    return [_NAN] * len(keys)
