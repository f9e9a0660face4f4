"""Walks the records of any MCAP file, however it ends.

The usual readers trust the lengths they find: a cut file then asks for exabytes. Here every length is
held against the bytes that are left before anything is read, and a chunk is decompressed only as far as
its stated size, so memory stays within a few chunks.

Source: the MCAP specification, https://mcap.dev/spec.
"""

from __future__ import annotations

import io
import os
import re
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, TypeAlias

import lz4.frame
import zstandard
from mcap.data_stream import ReadDataStream
from mcap.exceptions import McapError
from mcap.opcode import Opcode
from mcap.records import Attachment, Channel, Header, Metadata, Statistics

from vrik.errors import DamagedRecordingError

MAGIC = b"\x89MCAP0\r\n"
MAX_RECORD_BYTES = 32 << 20
"""A larger record, attachments apart, is taken for a damaged length. [bytes]"""

MAX_CHUNK_BYTES = 32 << 20
"""A chunk that claims to unpack to more than this is not unpacked. [bytes]"""

MAX_ATTACHMENT_BYTES = 1 << 20
"""A larger attachment is passed over. [bytes]"""

MAX_SUMMARY_BYTES = 16 << 20
"""The summary is looked for in this much of the end of a file. [bytes]"""

MAX_ATTACHMENTS = 8
"""No more of them are kept."""

_RECORD = struct.Struct("<BQ")
_CHUNK = struct.Struct("<QQQII")  # start, end, size, crc, length of the compression's name
_MESSAGE = struct.Struct("<HIQQ")  # channel, sequence, log time, publish time
_MESSAGE_RECORD = struct.Struct("<BQHIQQ")  # both in one
_STEP = 64 * 1024
_PRIVATE = 0x80
"""Opcodes from here on are free for anybody; such records are skipped."""

_DATA_END = _RECORD.pack(Opcode.DATA_END, 4)
_LAST = ((Opcode.DATA_END, 4), (Opcode.FOOTER, 20))
_CHUNK_MARK = re.compile(rb"\x04\0\0\0zstd|\x03\0\0\0lz4")
_KEPT = (
    Opcode.HEADER, Opcode.CHANNEL, Opcode.MESSAGE, Opcode.METADATA, Opcode.CHUNK, Opcode.MESSAGE_INDEX,
    Opcode.ATTACHMENT,
)  # fmt: skip


Message: TypeAlias = tuple[int, int, bytes]
"""Channel number, log time [ns], data. A plain tuple, since there are a hundred thousand of them a second."""


@dataclass(slots=True)
class Walk:
    """What was found besides messages; it fills up while the messages are read.

    Args:
        profile: Profile in the header.
        channels: Channels by number.
        metadata: Metadata records by name.
        truncated: Whether the file ends before its end record.
        data_ended: Whether the record that closes the messages was met.
        damaged_chunks: Chunks that could not be unpacked or whose checksum is wrong.
        lost_messages: How many messages of each channel those chunks held, as far as their index says.
        damaged_bytes: How large those chunks are in the file.
        lost_bytes: Bytes that belong to no complete record, at the end or where the file is damaged.
        stated_messages: How many messages of each channel a closed file says it holds; None when it does not
            say so, or its summary does not match its checksum.
        last_sequence: Greatest sequence number met on each channel; 0 where the writer does not number.
        attachments: Small attachments by name.
        at: Bytes of the file that have been gone through.
    """

    profile: str = ""
    channels: dict[int, Channel] = field(default_factory=dict)
    metadata: dict[str, dict[str, str]] = field(default_factory=dict)
    truncated: bool = True
    data_ended: bool = False
    damaged_chunks: int = 0
    lost_messages: dict[int, int] = field(default_factory=dict)
    damaged_bytes: int = 0
    lost_bytes: int = 0
    stated_messages: dict[int, int] | None = None
    last_sequence: dict[int, int] = field(default_factory=dict)
    attachments: dict[str, bytes] = field(default_factory=dict)
    at: int = 0

    def topics(self) -> list[str]:
        """Names of the channels, in the order of the file."""
        return [channel.topic for channel in self.channels.values()]


def walk_messages(path: Path, walk: Walk) -> Iterator[Message]:
    """All messages that can be had, one by one; as :func:`walk_batches`."""
    for batch in walk_batches(path, walk):
        yield from batch


def walk_batches(path: Path, walk: Walk) -> Iterator[list[Message]]:
    """All messages that can be had, in the order of the file, those of a chunk together.

    Args:
        path: An MCAP file.
        walk: Filled on the way: a channel is known before its first message comes.

    Raises:
        DamagedRecordingError: If the file does not begin as MCAP does.
        OSError: If it cannot be read.
    """
    with path.open("rb") as stream:
        size = os.fstat(stream.fileno()).st_size
        if stream.read(len(MAGIC)) != MAGIC:
            raise DamagedRecordingError(f"{path} does not begin as an MCAP file does")
        _read_summary(stream, size, walk)
        walk.truncated = not _has_footer(stream, size)
        stream.seek(len(MAGIC))
        in_damaged_chunk = False
        for opcode, content, whole in _records_of_file(stream, size, walk):
            if opcode == Opcode.CHUNK:
                unpacked, sound = _unpack(content)
                in_damaged_chunk = whole and not sound
                walk.damaged_chunks += in_damaged_chunk
                walk.damaged_bytes += in_damaged_chunk * len(content)
                if sound or not whole:
                    yield _messages(unpacked, walk)
            elif opcode == Opcode.MESSAGE_INDEX:
                if in_damaged_chunk and len(content) >= 6:
                    channel_id, length = struct.unpack_from("<HI", content)
                    walk.lost_messages[channel_id] = walk.lost_messages.get(channel_id, 0) + length // 16
            elif opcode == Opcode.MESSAGE:
                if len(content) >= _MESSAGE.size:
                    channel_id, sequence, log_time, _ = _MESSAGE.unpack_from(content)
                    _number(walk, channel_id, sequence)
                    yield [(channel_id, log_time, content[_MESSAGE.size :])]
            else:
                _note(opcode, content, walk)


def _records_of_file(stream: BinaryIO, size: int, walk: Walk) -> Iterator[tuple[int, bytes, bool]]:
    """(opcode, content, whole) of the data section; only a chunk is handed out when it is cut short.

    Where no record can be, reading goes on at the next chunk that can be found; that may be inside of the
    record before, whose length then was a lie that happened to fit into the file.
    """
    at = before = stream.tell()
    while size - at >= _RECORD.size:
        walk.at = at
        stream.seek(at)
        head = stream.read(_RECORD.size)
        if len(head) < _RECORD.size:
            break
        opcode, length = _RECORD.unpack(head)
        left = size - at - _RECORD.size
        if (opcode, length) in _LAST:
            walk.data_ended = True
            return
        if (
            length <= left
            and (0 < opcode < Opcode.DATA_END or opcode >= _PRIVATE)
            and opcode != Opcode.FOOTER
        ):
            most = MAX_ATTACHMENT_BYTES if opcode == Opcode.ATTACHMENT else MAX_RECORD_BYTES
            if opcode in _KEPT and length <= most:
                content = stream.read(length)
                if len(content) < length:
                    break
                yield opcode, content, True
            before, at = at, at + _RECORD.size + length
            continue
        inside = _find_chunk(stream, before + 1, at)
        if inside < at:
            walk.lost_bytes += inside - before
            before = at = inside
            continue
        next_at = _find_chunk(stream, at + 1, size)
        if opcode == Opcode.CHUNK:
            stream.seek(at + _RECORD.size)
            yield opcode, stream.read(min(next_at - at - _RECORD.size, MAX_CHUNK_BYTES)), False
        walk.lost_bytes += next_at - at
        before = at = next_at
    walk.lost_bytes += size - at


def _find_chunk(stream: BinaryIO, start: int, stop: int) -> int:
    """Where the next packed chunk begins, known by the name of its compression; ``stop`` without one."""
    ahead = _RECORD.size + _CHUNK.size
    for at in range(start, stop, _STEP):
        stream.seek(at)
        for mark in _CHUNK_MARK.finditer(stream.read(_STEP + ahead)):
            begin = at + mark.start() - ahead + 4
            if start <= begin < stop:
                stream.seek(begin)
                opcode, length = _RECORD.unpack(stream.read(_RECORD.size))
                if opcode == Opcode.CHUNK and length <= MAX_RECORD_BYTES:
                    return begin
    return stop


def _has_footer(stream: BinaryIO, size: int) -> bool:
    stream.seek(size - len(MAGIC))
    return stream.read(len(MAGIC)) == MAGIC


def _read_summary(stream: BinaryIO, size: int, walk: Walk) -> None:
    """What the summary of a closed file repeats.

    The channels count when the first chunk is damaged. How many messages there were is believed only if the
    summary matches its checksum.
    """
    begin = max(len(MAGIC), size - MAX_SUMMARY_BYTES)
    stream.seek(begin)
    tail = stream.read(size - begin)
    start = tail.rfind(_DATA_END)
    if start < 0:
        return
    summary = tail[start + len(_DATA_END) + 4 :]
    checksum = int.from_bytes(summary[-len(MAGIC) - 4 : -len(MAGIC)], "little")
    for opcode, begin, end, content in _records(summary):
        matches = opcode == Opcode.STATISTICS and zlib.crc32(summary[: -len(MAGIC) - 4]) == checksum
        if opcode == Opcode.CHANNEL or matches:
            _note(opcode, content[begin:end], walk)


def _records(content: bytes) -> Iterator[tuple[int, int, int, bytes]]:
    """(opcode, begin, end, content) of the whole records in an unpacked chunk or summary."""
    at, size = 0, len(content)
    while size - at >= _RECORD.size:
        opcode, length = _RECORD.unpack_from(content, at)
        at += _RECORD.size
        if length > size - at:
            return
        yield opcode, at, at + length, content
        at += length


def _messages(content: bytes, walk: Walk) -> list[Message]:
    """The messages of an unpacked chunk. This loop sets the reading speed."""
    found: list[Message] = []
    last: dict[int, int] = {}
    at, size = 0, len(content)
    unpack, head, is_message = _MESSAGE_RECORD.unpack_from, _MESSAGE_RECORD.size, int(Opcode.MESSAGE)
    while size - at >= _RECORD.size:
        if content[at] == is_message and size - at >= head:
            _, length, channel_id, sequence, log_time, _ = unpack(content, at)
            end = at + _RECORD.size + length
            if end > size:
                break
            if length >= _MESSAGE.size:
                found.append((channel_id, log_time, content[at + head : end]))
                last[channel_id] = sequence
        else:
            opcode, length = _RECORD.unpack_from(content, at)
            end = at + _RECORD.size + length
            if end > size or opcode == 0:  # no record has this number: a chunk of zeros
                break
            if opcode == Opcode.CHANNEL:
                _note(opcode, content[at + _RECORD.size : end], walk)
        at = end
    for channel_id, sequence in last.items():
        _number(walk, channel_id, sequence)
    return found


def _number(walk: Walk, channel_id: int, sequence: int) -> None:
    if sequence > walk.last_sequence.get(channel_id, 0):
        walk.last_sequence[channel_id] = sequence


def _note(opcode: int, content: bytes, walk: Walk) -> None:
    """Remember a record that is no message; one that does not parse is as good as missing."""
    stream = ReadDataStream(io.BytesIO(content))
    try:
        if opcode == Opcode.CHANNEL:
            channel = Channel.read(stream)
            walk.channels[channel.id] = channel
        elif opcode == Opcode.HEADER:
            walk.profile = Header.read(stream).profile
        elif opcode == Opcode.METADATA:
            record = Metadata.read(stream)
            walk.metadata.setdefault(record.name, record.metadata)
        elif opcode == Opcode.ATTACHMENT:
            attachment = Attachment.read(stream)
            if len(walk.attachments) < MAX_ATTACHMENTS:
                walk.attachments.setdefault(attachment.name, attachment.data)
        elif opcode == Opcode.STATISTICS:
            walk.stated_messages = dict(Statistics.read(stream).channel_message_counts)
    except (McapError, struct.error, UnicodeDecodeError, OverflowError):
        return


def _unpack(content: bytes) -> tuple[bytes, bool]:
    """The records of a chunk as far as they can be unpacked, and whether that is all of it, unchanged."""
    if len(content) < _CHUNK.size:
        return b"", False
    _, _, size, checksum, name_length = _CHUNK.unpack_from(content)
    at = _CHUNK.size + name_length + 8
    if name_length > 64 or at > len(content) or size > MAX_CHUNK_BYTES:
        return b"", False
    name = content[_CHUNK.size : at - 8]
    unpacked = _decompress(name, content[at:], size)
    if len(unpacked) < size:
        return unpacked, False
    sound = checksum == 0 or zlib.crc32(unpacked) == checksum
    return (unpacked, True) if sound else (b"", False)


def _decompress(name: bytes, packed: bytes, size: int) -> bytes:
    """Up to ``size`` bytes; what came out before a fault or the end of the data is kept."""
    if name == b"":
        return packed[:size]
    parts: list[bytes] = []
    left = size
    try:
        if name == b"zstd":
            reader = zstandard.ZstdDecompressor().stream_reader(packed)
            while left > 0 and (part := reader.read(min(left, _STEP))):
                parts.append(part)
                left -= len(part)
        elif name == b"lz4":
            unpacker = lz4.frame.LZ4FrameDecompressor()
            part = unpacker.decompress(packed, max_length=min(left, _STEP))
            while part:
                parts.append(part)
                left -= len(part)
                if left <= 0 or unpacker.eof:
                    break
                part = unpacker.decompress(b"", max_length=min(left, _STEP))
    except (zstandard.ZstdError, RuntimeError, EOFError):
        pass  # the parts so far are whole
    return b"".join(parts)
