"""OSC frames as templates: every byte is laid out once, only the numbers change from frame to frame.

Building OSC messages anew costs milliseconds a frame. A stream, however, repeats the same messages with
the same text; so a :class:`FrameTemplate` writes addresses, type tags, names and bundle headers once and
remembers where the numbers are. A frame is then: put the numbers in their slots, send. The bytes are
those that python-osc's builders give (a test compares them).

Source: OpenSoundControl 1.0 specification (Wright, 2002).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

BUNDLE_HEADER = b"#bundle\x00" + bytes(7) + b"\x01"
"""A bundle's name and the time tag "immediately". Receivers that schedule would wait for any later one."""

_NOT_IN_ADDRESS = frozenset(" #*,?[]{}\0")

Argument = str | bool | int | float


@dataclass(frozen=True, slots=True)
class Message:
    """One OSC message: an address and its arguments.

    The Python type decides the tag: str ``s``, int ``i``, float ``f``, True ``T``, False ``F``. Whole
    numbers that a receiver expects as floats must be floats (``0.0``), for most receivers are strict.

    Raises:
        ValueError: If the address or a string cannot be written, or an int needs more than 32 bits.
        TypeError: If an argument is of another type.
    """

    address: str
    arguments: tuple[Argument, ...] = ()

    def __post_init__(self) -> None:
        if not self.address.startswith("/") or _NOT_IN_ADDRESS & set(self.address):
            raise ValueError(f"{self.address!r} is no OSC address")
        _encode(self)

    @property
    def size(self) -> int:
        """Encoded length, a multiple of 4. [bytes]"""
        return len(self.encode())

    def encode(self) -> bytes:
        """The message as it goes over the wire."""
        return _encode(self)[0]


class FrameTemplate:
    """The datagrams of one frame, each an immediate bundle of whole messages.

    Messages keep their order. A new datagram begins with each part, and wherever the next message would
    make the current one longer than ``max_datagram``.

    Args:
        parts: What a frame consists of, with any numbers.
        max_datagram: Longest datagram. [bytes]

    Raises:
        ValueError: If a single message in its bundle is longer than ``max_datagram``.
    """

    datagrams: tuple[memoryview, ...]
    """Read-only windows onto the frame's bytes. What is written below shows here at once."""

    floats: NDArray[np.float32]
    """(n,) the whole frame as big-endian floats; write them at ``slots``."""

    ints: NDArray[np.int32]
    """The same memory as big-endian ints."""

    words: NDArray[np.uint32]
    """The same memory as it is, for kernels: see ``big_endian`` in ``vrik/kernels/vmc.py``."""

    slots: tuple[tuple[int, ...], ...]
    """For each message of all parts, where its ints and floats are, in words of four bytes."""

    def __init__(self, parts: Sequence[Sequence[Message]], max_datagram: int) -> None:
        frame = bytearray()
        starts: list[int] = []
        slots: list[tuple[int, ...]] = []
        for part in parts:
            room = 0
            for message in part:
                content, numbers = _encode(message)
                needed = 4 + len(content)
                least = len(BUNDLE_HEADER) + needed
                if least > max_datagram:
                    raise ValueError(f"{message.address} needs {least} bytes, more than {max_datagram}")
                if needed > room:
                    starts.append(len(frame))
                    frame += BUNDLE_HEADER
                    room = max_datagram - len(BUNDLE_HEADER)
                frame += struct.pack(">i", len(content))
                slots.append(tuple((len(frame) + n) // 4 for n in numbers))
                frame += content
                room -= needed

        window = memoryview(frame).toreadonly()
        ends = [*starts[1:], len(frame)]
        self.datagrams = tuple(window[a:b] for a, b in zip(starts, ends, strict=True))
        self.slots = tuple(slots)
        self.floats = np.frombuffer(frame, ">f4")
        self.ints = np.frombuffer(frame, ">i4")
        self.words = np.frombuffer(frame, np.uint32)


def _encode(message: Message) -> tuple[bytes, list[int]]:
    """The bytes of a message, and where in them its ints and floats begin."""
    tags = ","
    for argument in message.arguments:
        tags += _tag(argument)
    content = _string(message.address) + _string(tags)
    numbers = []
    for argument, tag in zip(message.arguments, tags[1:], strict=True):
        if tag == "s":
            content += _string(str(argument))
        elif tag in "if":
            numbers.append(len(content))
            try:
                content += struct.pack(">" + tag, argument)
            except (struct.error, OverflowError) as error:
                raise ValueError(f"{argument!r} does not fit into 32 bits") from error
    return content, numbers


def _tag(argument: Argument) -> str:
    if isinstance(argument, bool):  # before int, for a bool is an int
        return "T" if argument else "F"
    if isinstance(argument, str):
        return "s"
    if isinstance(argument, int):
        return "i"
    if isinstance(argument, float):
        return "f"
    raise TypeError(f"an OSC argument is str, int, float or bool, not {type(argument).__name__}")


def _string(text: str) -> bytes:
    """UTF-8, one to four NULs, a multiple of 4. What UTF-8 cannot hold becomes a question mark."""
    if "\0" in text:
        raise ValueError(f"{text!r} holds a NUL, which ends an OSC string")
    encoded = text.encode("utf-8", "replace")
    return encoded + bytes(4 - len(encoded) % 4)
