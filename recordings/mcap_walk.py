"""Walks the records of any MCAP file, however it ends.

The usual readers trust the lengths they find: a cut file then asks for exabytes. Here every length is
held against the bytes that are left before anything is read, and a chunk is decompressed only as far as
its stated size, so memory stays within a few chunks.

Source: the MCAP specification, https://mcap.dev/spec.
"""

from __future__ import annotations

import io
import itertools
import re
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
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
_FOOTER = struct.Struct("<QQI")  # begin of the summary, begin of its offsets, checksum
_CHUNK = struct.Struct("<QQQII")  # start, end, size, crc, length of the compression's name
_MESSAGE = struct.Struct("<HIQQ")  # channel, sequence, log time, publish time
_MESSAGE_RECORD = struct.Struct("<BQHIQQ")  # both in one
_STEP = 64 * 1024
_SEARCH_STEP = 1 << 20
_LONGEST_NAME = 200
_MOST_NAMES = 64
_PRIVATE = 0x80
"""Opcodes from here on are free for anybody; such records are skipped."""

_DATA_END = _RECORD.pack(Opcode.DATA_END, 4)
_LAST = ((Opcode.DATA_END, 4), (Opcode.FOOTER, 20))
_FOOTER_HEAD = _RECORD.pack(Opcode.FOOTER, _FOOTER.size)
_EDGE_MARK = re.compile(re.escape(MAGIC) + b"|" + re.escape(_FOOTER_HEAD))
_CHUNK_MARK = re.compile(rb"\x04\0\0\0zstd|\x03\0\0\0lz4")
_KEPT = (
    Opcode.HEADER, Opcode.CHANNEL, Opcode.MESSAGE, Opcode.METADATA, Opcode.CHUNK, Opcode.MESSAGE_INDEX,
    Opcode.ATTACHMENT,
)  # fmt: skip


Message: TypeAlias = tuple[int, int, bytes]
"""Channel number, log time [ns], data. A plain tuple, since there are a hundred thousand of them a second."""


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
        if starts or _is_header(stream, begin + len(MAGIC)) or _find_chunk(stream, begin, end) < end:
            parts.append(Part(begin, end, junk))
            junk = 0
        elif parts:
            parts[-1] = replace(parts[-1], junk=parts[-1].junk + end - begin)
        else:
            junk += end - begin
    return parts


def _ends_as_one(stream: BinaryIO, size: int) -> bool:
    """Whether the end record of a file says that it begins where the file begins: the usual, closed file."""
    tail = _RECORD.size + _FOOTER.size + len(MAGIC)
    stream.seek(0)
    if stream.read(len(MAGIC)) != MAGIC or size < tail:
        return False
    stream.seek(size - tail)
    end = stream.read(tail)
    summary_at, _, _ = _FOOTER.unpack_from(end, _RECORD.size)
    begin = summary_at - len(_DATA_END) - 4
    if not (end.startswith(_FOOTER_HEAD) and end.endswith(MAGIC) and 0 < begin < size):
        return False
    if size - begin > MAX_SUMMARY_BYTES:
        return False
    stream.seek(begin)
    summary = stream.read(size - begin)
    if not summary.startswith(_DATA_END) or summary.find(MAGIC) != len(summary) - len(MAGIC):
        return False
    return _find_chunk(stream, begin, size) == size


def _edges(stream: BinaryIO, size: int) -> Iterator[int]:
    """Where a recording begins or has ended, in order.

    The magic bytes tell, beside a header or an end record. So does an end record that knows where its summary
    began, counted from the last edge: then the magic bytes of both recordings at a seam may be damaged.
    """
    footer, last = len(_FOOTER_HEAD) + _FOOTER.size, 0
    for start in range(0, size, _SEARCH_STEP):
        stream.seek(start)
        for mark in _EDGE_MARK.finditer(stream.read(_SEARCH_STEP + len(_FOOTER_HEAD) - 1)):
            at = start + mark.start()
            if mark[0] == MAGIC:
                if _is_header(stream, at + len(MAGIC)):
                    last = at
                    yield at
                stream.seek(max(0, at - footer))
                ends = at >= footer and stream.read(len(_FOOTER_HEAD)) == _FOOTER_HEAD
                end = at + len(MAGIC)
            else:
                ends, end = _is_end(stream, at, last), min(size, at + footer + len(MAGIC))
            if ends:
                last = end
                yield end


def _is_end(stream: BinaryIO, at: int, begin: int) -> bool:
    """Whether an end record stands here of a recording that began at ``begin``."""
    stream.seek(at + len(_FOOTER_HEAD))
    summary_at = int.from_bytes(stream.read(8), "little")
    if not _RECORD.size < summary_at <= at - begin:
        return False
    stream.seek(begin + summary_at - len(_DATA_END) - 4)
    return stream.read(len(_DATA_END)) == _DATA_END


def _is_header(stream: BinaryIO, at: int) -> bool:
    """Whether a whole header record stands here."""
    stream.seek(at)
    head = stream.read(_RECORD.size)
    if len(head) < _RECORD.size:
        return False
    opcode, length = _RECORD.unpack(head)
    if opcode != Opcode.HEADER or length > _STEP:
        return False
    return _holds_strings(stream.read(length), length, 2)


def _holds_strings(content: bytes, length: int, count: int) -> bool:
    """Whether the content is exactly so many strings, each behind its length."""
    at = 0
    for _ in range(count):
        at += 4 + int.from_bytes(content[at : at + 4], "little")
    return at == length == len(content)


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
        if _is_header(stream, at + len(MAGIC)):
            at += len(MAGIC)
            walk.lost_bytes += len(MAGIC)
    while end - at >= _RECORD.size:
        walk.at = at
        stream.seek(at)
        opcode, length = _RECORD.unpack(stream.read(_RECORD.size))
        stop = at + _RECORD.size + length
        if (opcode, length) in _LAST:
            more_at = _find_chunk(stream, at + 1, end)
            if more_at == end:
                walk.data_ended = True
                return
            walk.lost_bytes += more_at - at  # the end is a lie, or what parts two recordings is damaged
            walk.goes_on = True
            at = more_at
            continue
        if opcode != Opcode.CHUNK and _is_chunk(stream, at, end):
            opcode = Opcode.CHUNK
        known = 0 < opcode < Opcode.DATA_END and opcode != Opcode.FOOTER
        if stop <= end and (known or opcode >= _PRIVATE):
            most = MAX_ATTACHMENT_BYTES if opcode == Opcode.ATTACHMENT else MAX_RECORD_BYTES
            stream.seek(at + _RECORD.size)
            content = stream.read(length) if opcode in _KEPT and length <= most else b""
            sure = _bears_out(opcode, length, content) or (
                opcode == Opcode.ATTACHMENT and _is_attachment(stream, at + _RECORD.size, stop)
            )
            if sure and opcode == Opcode.ATTACHMENT and not content:
                stream.seek(at + _RECORD.size + 16)
                name_length = min(int.from_bytes(stream.read(4), "little"), _LONGEST_NAME)
                _pass_over(stream.read(name_length).decode(errors="replace"), walk)
            if sure or _find_chunk(stream, at + 1, stop) == stop:
                if content and (sure or opcode != Opcode.MESSAGE_INDEX):
                    yield opcode, content, True
                at = stop
                continue
        next_at = _find_chunk(stream, at + 1, end)
        if opcode == Opcode.CHUNK:
            stream.seek(at + _RECORD.size)
            yield opcode, stream.read(max(0, min(next_at - at - _RECORD.size, MAX_CHUNK_BYTES))), False
        walk.lost_bytes += next_at - at
        at = next_at
    walk.lost_bytes += end - at


def _bears_out(opcode: int, length: int, content: bytes) -> bool:
    """Whether the content is as long as it says itself."""
    if len(content) != length:
        return False
    if opcode == Opcode.CHUNK and length >= _CHUNK.size:
        at = _CHUNK.size + _CHUNK.unpack_from(content)[4]
        return bool(length == at + 8 + int.from_bytes(content[at : at + 8], "little"))
    if opcode == Opcode.MESSAGE_INDEX and length >= 6:
        entries = int.from_bytes(content[2:6], "little")
        return length == 6 + entries and entries % 16 == 0
    return opcode == Opcode.HEADER and _holds_strings(content, length, 2)


def _is_attachment(stream: BinaryIO, at: int, stop: int) -> bool:
    """Whether the lengths in an attachment add up to its own, so that what is in it is its own business."""
    at += 16
    for width in (4, 4, 8):
        stream.seek(at)
        at += width + int.from_bytes(stream.read(width), "little")
        if at > stop:
            return False
    return at + 4 == stop


def _find_chunk(stream: BinaryIO, start: int, stop: int) -> int:
    """Where the next packed chunk begins, known by the name of its compression; ``stop`` without one."""
    ahead = _RECORD.size + _CHUNK.size
    for at in range(start, stop, _STEP):
        stream.seek(at)
        for mark in _CHUNK_MARK.finditer(stream.read(_STEP + ahead)):
            begin = at + mark.start() - ahead + 4
            if start <= begin < stop and _is_chunk(stream, begin, stop):
                return begin
    return stop


def _is_chunk(stream: BinaryIO, at: int, stop: int) -> bool:
    """Whether a packed chunk begins here: most of what its head says must fit, all of it need not."""
    stream.seek(at)
    head = stream.read(_RECORD.size + _CHUNK.size + 16)
    if len(head) < _RECORD.size + _CHUNK.size + 4 or not _CHUNK_MARK.match(
        head, _RECORD.size + _CHUNK.size - 4
    ):
        return False
    opcode, length = _RECORD.unpack_from(head)
    first_ns, last_ns, size, _, name_length = _CHUNK.unpack_from(head, _RECORD.size)
    packed_at = _RECORD.size + _CHUNK.size + name_length
    packed = int.from_bytes(head[packed_at : packed_at + 8], "little")
    fits = (
        opcode == Opcode.CHUNK,
        length <= MAX_RECORD_BYTES,
        length == packed_at - _RECORD.size + 8 + packed,
        first_ns <= last_ns,
        size <= MAX_CHUNK_BYTES,
    )
    return bool(sum(fits) >= 3)


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
