"""The recordings in an MCAP file: one, or several that were put one behind the other, whole or damaged."""

from __future__ import annotations

import io
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

from recordings.mcap_marks import (
    DATA_END,
    FOOTER,
    FOOTER_HEAD,
    MAGIC,
    MAX_SUMMARY_BYTES,
    RECORD,
    find_chunk,
    is_header,
)

_SEARCH_STEP = 1 << 20
_EDGE_MARK = re.compile(re.escape(MAGIC) + b"|" + re.escape(FOOTER_HEAD))


@dataclass(frozen=True, slots=True)
class Part:
    """Where in a file one recording lies.

    Args:
        begin: Its first byte.
        end: The first byte behind it.
        junk: Bytes before or behind it that belong to no recording.
    """

    begin: int
    end: int
    junk: int = 0


def begins_like_mcap(head: bytes) -> bool:
    """Whether a file with this begin is MCAP, also when that is damaged: then its inside must tell."""
    if head.startswith(MAGIC) or (0 < len(head) < len(MAGIC) and MAGIC.startswith(head)):
        return True
    return bool(find_parts(io.BytesIO(head)))


def parts_of(path: Path) -> list[Part]:
    """As :func:`find_parts`, for a file by its name."""
    with path.open("rb") as stream:
        return find_parts(stream)


def find_parts(stream: BinaryIO) -> list[Part]:
    """The recordings in a file: one, or several that were put one behind the other.

    A recording begins with the magic bytes and a header, or right behind the end of the one before. Bytes in
    which there is neither a begin nor a chunk are junk; they count with the recording before them.
    """
    size = stream.seek(0, io.SEEK_END)
    if _ends_as_one(stream, size):
        return [Part(0, size)]
    edges = sorted({0, size, *_edges(stream, size)})
    parts: list[Part] = []
    junk = 0
    for begin, end in itertools.pairwise(edges):
        stream.seek(begin)
        head = stream.read(len(MAGIC))
        starts = head == MAGIC or (begin == 0 and MAGIC.startswith(head))
        if starts or is_header(stream, begin + len(MAGIC)) or find_chunk(stream, begin, end) < end:
            parts.append(Part(begin, end, junk))
            junk = 0
        elif parts:
            parts[-1] = replace(parts[-1], junk=parts[-1].junk + end - begin)
        else:
            junk += end - begin
    return parts


def _ends_as_one(stream: BinaryIO, size: int) -> bool:
    """Whether the end record of a file says that it begins where the file begins: the usual, closed file."""
    tail = RECORD.size + FOOTER.size + len(MAGIC)
    stream.seek(0)
    if stream.read(len(MAGIC)) != MAGIC or size < tail:
        return False
    stream.seek(size - tail)
    end = stream.read(tail)
    summary_at, _, _ = FOOTER.unpack_from(end, RECORD.size)
    begin = summary_at - len(DATA_END) - 4
    if not (end.startswith(FOOTER_HEAD) and end.endswith(MAGIC) and 0 < begin < size):
        return False
    if size - begin > MAX_SUMMARY_BYTES:
        return False
    stream.seek(begin)
    summary = stream.read(size - begin)
    if not summary.startswith(DATA_END) or summary.find(MAGIC) != len(summary) - len(MAGIC):
        return False
    return find_chunk(stream, begin, size) == size


def _edges(stream: BinaryIO, size: int) -> Iterator[int]:
    """Where a recording begins or has ended, in order.

    The magic bytes tell, beside a header or an end record. So does an end record that knows where its summary
    began, counted from the last edge: then the magic bytes of both recordings at a seam may be damaged.
    """
    footer, last = len(FOOTER_HEAD) + FOOTER.size, 0
    for start in range(0, size, _SEARCH_STEP):
        stream.seek(start)
        for mark in _EDGE_MARK.finditer(stream.read(_SEARCH_STEP + len(FOOTER_HEAD) - 1)):
            at = start + mark.start()
            if mark[0] == MAGIC:
                if is_header(stream, at + len(MAGIC)):
                    last = at
                    yield at
                stream.seek(max(0, at - footer))
                ends = at >= footer and stream.read(len(FOOTER_HEAD)) == FOOTER_HEAD
                end = at + len(MAGIC)
            else:
                ends, end = _is_end(stream, at, last), min(size, at + footer + len(MAGIC))
            if ends:
                last = end
                yield end


def _is_end(stream: BinaryIO, at: int, begin: int) -> bool:
    """Whether an end record stands here of a recording that began at ``begin``."""
    stream.seek(at + len(FOOTER_HEAD))
    summary_at = int.from_bytes(stream.read(8), "little")
    if not RECORD.size < summary_at <= at - begin:
        return False
    stream.seek(begin + summary_at - len(DATA_END) - 4)
    return stream.read(len(DATA_END)) == DATA_END
