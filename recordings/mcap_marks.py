"""What the bytes of an MCAP file can be: the shapes of its records, told without believing any length.

Source: the MCAP specification, https://mcap.dev/spec.
"""

from __future__ import annotations

import re
import struct
from typing import BinaryIO

from mcap.opcode import Opcode

MAGIC = b"\x89MCAP0\r\n"
MAX_RECORD_BYTES = 32 << 20
"""A larger record, attachments apart, is taken for a damaged length. [bytes]"""

MAX_CHUNK_BYTES = 32 << 20
"""A chunk that claims to unpack to more than this is not unpacked. [bytes]"""

MAX_SUMMARY_BYTES = 16 << 20
"""The summary is looked for in this much of the end of a file. [bytes]"""

STEP = 64 * 1024
"""How much is read at a time where something is looked for. [bytes]"""

RECORD = struct.Struct("<BQ")
FOOTER = struct.Struct("<QQI")  # begin of the summary, begin of its offsets, checksum
CHUNK = struct.Struct("<QQQII")  # start, end, size, crc, length of the compression's name
DATA_END = RECORD.pack(Opcode.DATA_END, 4)
FOOTER_HEAD = RECORD.pack(Opcode.FOOTER, FOOTER.size)
CHUNK_MARK = re.compile(rb"\x04\0\0\0zstd|\x03\0\0\0lz4")


def is_header(stream: BinaryIO, at: int) -> bool:
    """Whether a whole header record stands here."""
    stream.seek(at)
    head = stream.read(RECORD.size)
    if len(head) < RECORD.size:
        return False
    opcode, length = RECORD.unpack(head)
    if opcode != Opcode.HEADER or length > STEP:
        return False
    return holds_strings(stream.read(length), length, 2)


def holds_strings(content: bytes, length: int, count: int) -> bool:
    """Whether the content is exactly so many strings, each behind its length."""
    at = 0
    for _ in range(count):
        at += 4 + int.from_bytes(content[at : at + 4], "little")
    return at == length == len(content)


def bears_out(opcode: int, length: int, content: bytes) -> bool:
    """Whether the content is as long as it says itself."""
    if len(content) != length:
        return False
    if opcode == Opcode.CHUNK and length >= CHUNK.size:
        at = CHUNK.size + CHUNK.unpack_from(content)[4]
        return bool(length == at + 8 + int.from_bytes(content[at : at + 8], "little"))
    if opcode == Opcode.MESSAGE_INDEX and length >= 6:
        entries = int.from_bytes(content[2:6], "little")
        return length == 6 + entries and entries % 16 == 0
    return opcode == Opcode.HEADER and holds_strings(content, length, 2)


def is_attachment(stream: BinaryIO, at: int, stop: int) -> bool:
    """Whether the lengths in an attachment add up to its own, so that what is in it is its own business."""
    at += 16
    for width in (4, 4, 8):
        stream.seek(at)
        at += width + int.from_bytes(stream.read(width), "little")
        if at > stop:
            return False
    return at + 4 == stop


def find_chunk(stream: BinaryIO, start: int, stop: int) -> int:
    """Where the next packed chunk begins, known by the name of its compression; ``stop`` without one."""
    ahead = RECORD.size + CHUNK.size
    for at in range(start, stop, STEP):
        stream.seek(at)
        for mark in CHUNK_MARK.finditer(stream.read(STEP + ahead)):
            begin = at + mark.start() - ahead + 4
            if start <= begin < stop and is_chunk(stream, begin, stop):
                return begin
    return stop


def is_chunk(stream: BinaryIO, at: int, stop: int) -> bool:
    """Whether a packed chunk begins here: most of what its head says must fit, all of it need not."""
    stream.seek(at)
    head = stream.read(RECORD.size + CHUNK.size + 16)
    if len(head) < RECORD.size + CHUNK.size + 4 or not CHUNK_MARK.match(head, RECORD.size + CHUNK.size - 4):
        return False
    opcode, length = RECORD.unpack_from(head)
    first_ns, last_ns, size, _, name_length = CHUNK.unpack_from(head, RECORD.size)
    packed_at = RECORD.size + CHUNK.size + name_length
    packed = int.from_bytes(head[packed_at : packed_at + 8], "little")
    fits = (
        opcode == Opcode.CHUNK,
        length <= MAX_RECORD_BYTES,
        length == packed_at - RECORD.size + 8 + packed,
        first_ns <= last_ns,
        size <= MAX_CHUNK_BYTES,
    )
    return bool(sum(fits) >= 3)
