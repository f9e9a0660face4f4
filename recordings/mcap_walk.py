"""Walks the records of any MCAP file, however it ends.

The usual readers trust the lengths they find: a cut file then asks for exabytes. Here every length is
held against the bytes that are left before anything is read, and a chunk is decompressed only as far as
its stated size, so memory stays within a few chunks.

Source: the MCAP specification, https://mcap.dev/spec.
"""

from __future__ import annotations

import io
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

from recordings.mcap_marks import (
    CHUNK,
    DATA_END,
    MAGIC,
    MAX_CHUNK_BYTES,
    MAX_RECORD_BYTES,
    MAX_SUMMARY_BYTES,
    RECORD,
    STEP,
    bears_out,
    find_chunk,
    is_attachment,
    is_chunk,
    is_header,
)
from recordings.mcap_parts import Part, find_parts
from vrik.errors import DamagedRecordingError

MAX_ATTACHMENT_BYTES = 1 << 20
"""A larger attachment is passed over. [bytes]"""

MAX_ATTACHMENTS = 8
"""No more of them are kept."""

_MESSAGE = struct.Struct("<HIQQ")  # channel, sequence, log time, publish time
_MESSAGE_RECORD = struct.Struct("<BQHIQQ")  # both in one
_LONGEST_NAME = 200
_MOST_NAMES = 64
_PRIVATE = 0x80
"""Opcodes from here on are free for anybody; such records are skipped."""

_LAST = ((Opcode.DATA_END, 4), (Opcode.FOOTER, 20))
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
        passed_over: Names of attachments that are not kept: large ones, and those beyond ``MAX_ATTACHMENTS``.
        at: Bytes of the file that have been gone through.
        part: Where the recording lies in the file.
        behind: Further recordings that stand behind its end.
        start_damaged: Whether the magic bytes at its begin are not those of MCAP.
        goes_on: Whether messages stand behind a record that closes them.
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
    passed_over: list[str] = field(default_factory=list)
    at: int = 0
    part: Part | None = None
    behind: tuple[Part, ...] = ()
    start_damaged: bool = False
    goes_on: bool = False

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
        walk: Filled on the way: a channel is known before its first message comes. Its ``part`` says what
            of the file is walked; the first recording in it, when there is none.

    Raises:
        DamagedRecordingError: If it does not look like MCAP in any place.
        OSError: If it cannot be read.
    """
    with path.open("rb") as stream:
        if walk.part is None:
            parts = find_parts(stream)
            if not parts:
                raise DamagedRecordingError(f"{path} does not begin as an MCAP file does")
            walk.part, walk.behind = parts[0], tuple(parts[1:])
        part = walk.part
        walk.lost_bytes += part.junk
        _read_summary(stream, part, walk)
        walk.truncated = not _has_footer(stream, part)
        in_damaged_chunk = False
        for opcode, content, whole in _records_of_part(stream, part, walk):
            if opcode == Opcode.CHUNK:
                unpacked, sound = _unpack(content)
                in_damaged_chunk = whole and not sound
                walk.damaged_chunks += in_damaged_chunk
                walk.damaged_bytes += in_damaged_chunk * len(content)
                if sound:
                    yield _messages(unpacked, walk)
                elif not whole:
                    yield _in_order(unpacked, walk)
            elif opcode == Opcode.MESSAGE_INDEX:
                if in_damaged_chunk:
                    channel_id, length = struct.unpack_from("<HI", content)
                    walk.lost_messages[channel_id] = walk.lost_messages.get(channel_id, 0) + length // 16
            elif opcode == Opcode.MESSAGE:
                if len(content) >= _MESSAGE.size:
                    channel_id, sequence, log_time, _ = _MESSAGE.unpack_from(content)
                    _number(walk, channel_id, sequence)
                    yield [(channel_id, log_time, content[_MESSAGE.size :])]
            else:
                _note(opcode, content, walk)


def _records_of_part(stream: BinaryIO, part: Part, walk: Walk) -> Iterator[tuple[int, bytes, bool]]:
    """(opcode, content, whole) of the data section; only a chunk is handed out when it is cut short.

    Where no record can be, reading goes on at the next chunk that can be found. A record whose length is not
    borne out by what is in it may be a lie that happens to fit into the file: chunks are looked for in it.
    """
    at, end = part.begin, part.end
    stream.seek(at)
    if stream.read(len(MAGIC)) == MAGIC:
        at += len(MAGIC)
    else:
        walk.start_damaged = True
        if is_header(stream, at + len(MAGIC)):
            at += len(MAGIC)
            walk.lost_bytes += len(MAGIC)
    while end - at >= RECORD.size:
        walk.at = at
        stream.seek(at)
        opcode, length = RECORD.unpack(stream.read(RECORD.size))
        stop = at + RECORD.size + length
        if (opcode, length) in _LAST:
            more_at = find_chunk(stream, at + 1, end)
            if more_at == end:
                walk.data_ended = True
                return
            walk.lost_bytes += more_at - at  # the end is a lie, or what parts two recordings is damaged
            walk.goes_on = True
            at = more_at
            continue
        if opcode != Opcode.CHUNK and is_chunk(stream, at, end):
            opcode = Opcode.CHUNK
        known = 0 < opcode < Opcode.DATA_END and opcode != Opcode.FOOTER
        if stop <= end and (known or opcode >= _PRIVATE):
            most = MAX_ATTACHMENT_BYTES if opcode == Opcode.ATTACHMENT else MAX_RECORD_BYTES
            stream.seek(at + RECORD.size)
            content = stream.read(length) if opcode in _KEPT and length <= most else b""
            sure = bears_out(opcode, length, content) or (
                opcode == Opcode.ATTACHMENT and is_attachment(stream, at + RECORD.size, stop)
            )
            if sure and opcode == Opcode.ATTACHMENT and not content:
                stream.seek(at + RECORD.size + 16)
                name_length = min(int.from_bytes(stream.read(4), "little"), _LONGEST_NAME)
                _pass_over(stream.read(name_length).decode(errors="replace"), walk)
            if sure or find_chunk(stream, at + 1, stop) == stop:
                if content and (sure or opcode != Opcode.MESSAGE_INDEX):
                    yield opcode, content, True
                at = stop
                continue
        next_at = find_chunk(stream, at + 1, end)
        if opcode == Opcode.CHUNK:
            stream.seek(at + RECORD.size)
            yield opcode, stream.read(max(0, min(next_at - at - RECORD.size, MAX_CHUNK_BYTES))), False
        walk.lost_bytes += next_at - at
        at = next_at
    walk.lost_bytes += end - at


def _has_footer(stream: BinaryIO, part: Part) -> bool:
    if part.end - part.begin < 2 * len(MAGIC):
        return False
    stream.seek(part.end - len(MAGIC))
    return stream.read(len(MAGIC)) == MAGIC


def _read_summary(stream: BinaryIO, part: Part, walk: Walk) -> None:
    """What the summary of a closed file repeats.

    The channels count when the first chunk is damaged. How many messages there were is believed only if the
    summary matches its checksum.
    """
    begin = max(part.begin, part.end - MAX_SUMMARY_BYTES)
    stream.seek(begin)
    tail = stream.read(part.end - begin)
    start = tail.rfind(DATA_END)
    if start < 0:
        return
    summary = tail[start + len(DATA_END) + 4 :]
    checksum = int.from_bytes(summary[-len(MAGIC) - 4 : -len(MAGIC)], "little")
    for opcode, begin, end, content in _records(summary):
        matches = opcode == Opcode.STATISTICS and zlib.crc32(summary[: -len(MAGIC) - 4]) == checksum
        if opcode == Opcode.CHANNEL or matches:
            _note(opcode, content[begin:end], walk)


def _records(content: bytes) -> Iterator[tuple[int, int, int, bytes]]:
    """(opcode, begin, end, content) of the whole records in an unpacked chunk or summary."""
    at, size = 0, len(content)
    while size - at >= RECORD.size:
        opcode, length = RECORD.unpack_from(content, at)
        at += RECORD.size
        if length > size - at:
            return
        yield opcode, at, at + length, content
        at += length


def _in_order(content: bytes, walk: Walk) -> list[Message]:
    """The messages at the begin of a chunk that was cut, as long as their numbers go on one by one.

    No checksum covers them any more; a number that is out of order tells that bytes before it are wrong.
    """
    last: dict[int, int] = {}
    found: list[Message] = []
    for opcode, begin, end, _ in _records(content):
        if opcode == Opcode.CHANNEL:
            _note(opcode, content[begin:end], walk)
        elif opcode == Opcode.MESSAGE and end - begin >= _MESSAGE.size:
            channel_id, sequence, log_time, _ = _MESSAGE.unpack_from(content, begin)
            if sequence and last.get(channel_id, sequence - 1) != sequence - 1:
                break
            last[channel_id] = sequence
            found.append((channel_id, log_time, content[begin + _MESSAGE.size : end]))
        elif opcode == 0:
            break
    for channel_id, sequence in last.items():
        _number(walk, channel_id, sequence)
    return found


def _messages(content: bytes, walk: Walk) -> list[Message]:
    """The messages of an unpacked chunk. This loop sets the reading speed."""
    found: list[Message] = []
    last: dict[int, int] = {}
    at, size = 0, len(content)
    unpack, head, is_message = _MESSAGE_RECORD.unpack_from, _MESSAGE_RECORD.size, int(Opcode.MESSAGE)
    while size - at >= RECORD.size:
        if content[at] == is_message and size - at >= head:
            _, length, channel_id, sequence, log_time, _ = unpack(content, at)
            end = at + RECORD.size + length
            if end > size:
                break
            if length >= _MESSAGE.size:
                found.append((channel_id, log_time, content[at + head : end]))
                last[channel_id] = sequence
        else:
            opcode, length = RECORD.unpack_from(content, at)
            end = at + RECORD.size + length
            if end > size or opcode == 0:  # no record has this number: a chunk of zeros
                break
            if opcode == Opcode.CHANNEL:
                _note(opcode, content[at + RECORD.size : end], walk)
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
            else:
                _pass_over(attachment.name, walk)
        elif opcode == Opcode.STATISTICS:
            walk.stated_messages = dict(Statistics.read(stream).channel_message_counts)
    except (McapError, struct.error, UnicodeDecodeError, OverflowError):
        return


def _pass_over(name: str, walk: Walk) -> None:
    if len(walk.passed_over) < _MOST_NAMES:
        walk.passed_over.append(name)


def _unpack(content: bytes) -> tuple[bytes, bool]:
    """The records of a chunk as far as they can be unpacked, and whether that is all of it, unchanged."""
    if len(content) < CHUNK.size:
        return b"", False
    _, _, size, checksum, name_length = CHUNK.unpack_from(content)
    at = CHUNK.size + name_length + 8
    if name_length > 64 or at > len(content) or size > MAX_CHUNK_BYTES:
        return b"", False
    name = content[CHUNK.size : at - 8]
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
            while left > 0 and (part := reader.read(min(left, STEP))):
                parts.append(part)
                left -= len(part)
        elif name == b"lz4":
            unpacker = lz4.frame.LZ4FrameDecompressor()
            part = unpacker.decompress(packed, max_length=min(left, STEP))
            while part:
                parts.append(part)
                left -= len(part)
                if left <= 0 or unpacker.eof:
                    break
                part = unpacker.decompress(b"", max_length=min(left, STEP))
    except (zstandard.ZstdError, RuntimeError, EOFError):
        pass  # the parts so far are whole
    return b"".join(parts)
