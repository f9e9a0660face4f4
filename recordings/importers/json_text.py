"""JSON recordings, read value by value: an hour never sits in memory, and a cut file gives what is whole."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from recordings.base import reading
from vrik.errors import DamagedRecordingError

CUT_NOTE = "the file is cut or broken; what stands before that is read"

CHUNK_BYTES = 1 << 17
"""How much is read at a time. [bytes]"""

LONGEST_VALUE = 1 << 26
"""A row or text of more characters than this is none."""

_LONGEST_TOKEN = (
    16  # "-Infinity", an escape, the end of a number: may look wrong only because more is to come
)
_NAN = float("nan")
_SPACE = re.compile(r"[ \t\n\r]*")
_DECODE = json.JSONDecoder().raw_decode


class BrokenJsonError(ValueError):
    """The text stops being JSON. Caught by the readers, which keep what stands before."""


class JsonStream:
    """A JSON document of which only some text around the place of reading is in memory.

    Lists and objects are entered, and in each turn of the loop one value must be read or skipped::

        for key in stream.members():
            if key == "poses" and stream.peek() == "[":
                for row in stream.values():
                    ...
            else:
                stream.skip()
        stream.end()

    All of this raises :class:`BrokenJsonError` where the text is cut, no JSON, or nests too deep to be read.
    """

    def __init__(self, path: Path) -> None:
        self.name = path.name
        self._file = path.open("rb")
        self._size = path.stat().st_size
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")(errors="replace")
        self._text = ""
        self._at = 0
        self._gone = 0  # characters before those in memory
        self._ended = False

    def __enter__(self) -> JsonStream:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def peek(self) -> str:
        """The first character of what comes next; "" at the end of the file."""
        while True:
            match = _SPACE.match(self._text, self._at)
            self._at = match.end() if match else self._at
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._more():
                return ""

    def value(self) -> Any:
        """What comes next, whole.

        A text at the end of what is in memory may be a part of a longer one, so it is tried again with more.
        """
        self.peek()
        while True:
            try:
                value, end = _DECODE(self._text, self._at)
            except RecursionError as fault:
                raise self._broken("far too many brackets open", self._at) from fault
            except json.JSONDecodeError as fault:
                unended = fault.msg.startswith("Unterminated")
                near = unended or fault.pos + _LONGEST_TOKEN >= len(self._text)
                if near and len(self._text) - self._at < LONGEST_VALUE and self._more():
                    continue
                raise self._broken(fault.msg, fault.pos) from fault
            except ValueError as fault:  # a number of thousands of digits
                raise self._broken(str(fault), self._at) from fault
            scalar = self._text[end - 1] not in '}]"'  # "12" may be the beginning of "12.5e3"
            if scalar and end + _LONGEST_TOKEN >= len(self._text) and self._more():
                continue
            self._at = end
            return value

    def values(self) -> Iterator[Any]:
        """The members of the list that comes next."""
        return (self.value() for _ in self._turns("[", "]"))

    def members(self) -> Iterator[str]:
        """The keys of the object that comes next; after each, its value must be read or skipped."""
        for _ in self._turns("{", "}"):
            if self.peek() != '"':
                raise self._broken("Expecting property name enclosed in double quotes", self._at)
            key = str(self.value())
            self._take(":")
            yield key

    def skip(self, depth: int = 3) -> None:
        """Pass over what comes next; lists and objects piece by piece, ``depth`` levels down."""
        opening = self.peek() if depth else ""
        if opening == "{":
            for _ in self.members():
                self.skip(depth - 1)
        elif opening == "[":
            for _ in self._turns("[", "]"):
                self.skip(depth - 1)
        else:
            self.value()

    def end(self) -> None:
        """Nothing may come after the document."""
        if self.peek():
            raise self._broken("Extra data", self._at)

    def _turns(self, opening: str, closing: str) -> Iterator[None]:
        """One turn for each member between two brackets."""
        self._take(opening)
        if self.peek() == closing:
            self._at += 1
            return
        while True:
            yield
            mark = self.peek()
            if mark != closing and mark != ",":
                raise self._broken("Expecting ',' delimiter", self._at)
            self._at += 1
            if mark == closing:
                return

    def _take(self, mark: str) -> None:
        if self.peek() != mark:
            raise self._broken(f"Expecting '{mark}'", self._at)
        self._at += 1

    def _more(self) -> bool:
        """Read on, as much again as is waiting; at the end of the file nothing changes, and it is False."""
        new = ""
        while not new and not self._ended:
            data = self._file.read(max(CHUNK_BYTES, len(self._text) - self._at))
            self._ended = not data
            new = self._decoder.decode(data, final=self._ended)
            reading(self._file.tell(), self._size)
        if new:
            self._gone += self._at
            self._text = self._text[self._at :] + new
            self._at = 0
        return bool(new)

    def _broken(self, what: str, at: int) -> BrokenJsonError:
        return BrokenJsonError(f"{what}: character {self._gone + at}")


def no_row(path: Path, fault: BrokenJsonError) -> DamagedRecordingError:
    """The error for a file in which no row stands before the damage."""
    return DamagedRecordingError(
        f"{path.name} is broken before its first whole row of JSON ({fault}); copy it again from its source"
    )


def number(value: Any) -> float:
    """A JSON number as a float; NaN for anything else."""
    if type(value) is float:
        return value
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
