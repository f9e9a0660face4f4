"""Unpacks fpzip streams without trusting them.

The package believes the size that a stream states, and a damaged stream makes it read and write where it must
not, which ends the whole program. So the size is looked at first, and the package works in a process of its
own. Source of the header: the format as LLNL's fpzip 1.3 writes it, a range coder from the first byte, with
numbers of 8 to 32 bits in equal steps.
"""

from __future__ import annotations

import io
import subprocess
import sys
import tempfile
import weakref
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

MAGIC = (ord("f"), ord("p"), ord("z"), 0)
MOST_PER_BYTE = 256
"""Numbers that one byte may stand for. Tracked poses take about a byte each, a still device hardly any."""

FREE_NUMBERS = 1 << 20
"""So many are unpacked from any stream."""

_BITS32 = 0xFFFFFFFF
_HEADER_BYTES = 40
_LONGEST_SHAPE = 40


_PROGRAM = """
import sys
import fpzip, numpy
table = numpy.asarray(fpzip.decompress(sys.stdin.buffer.read()))
table = numpy.ascontiguousarray(table.reshape(-1, table.shape[-1]))
sys.stdout.buffer.write(b"%d %c\\n" % (table.shape[1], table.dtype.char.encode()))
sys.stdout.buffer.write(memoryview(table).cast("B"))
"""


class Unpacked:
    """A table that was unpacked into a temporary file, which disappears with this object.

    Args:
        file: It, after one line that states the columns and their type.
        columns: How many.
        kind: Their type.
    """

    def __init__(self, file: IO[bytes], columns: int, kind: np.dtype[Any]) -> None:
        self.columns = columns
        self._file, self._kind, self._begin = file, kind, file.tell()
        self._size = file.seek(0, io.SEEK_END) - self._begin
        weakref.finalize(self, file.close)

    def __len__(self) -> int:
        return self._size // (self.columns * self._kind.itemsize)

    @property
    def numbers(self) -> int:
        """In all of it."""
        return self._size // self._kind.itemsize

    def rows(self, begin: int, end: int) -> NDArray[Any]:
        """(end - begin, columns) of it."""
        width = self.columns * self._kind.itemsize
        self._file.seek(self._begin + begin * width)
        return np.frombuffer(self._file.read((end - begin) * width), self._kind).reshape(-1, self.columns)


def unpack(packed: bytes) -> Unpacked:
    """The table in a stream, with the bits that it states.

    Raises:
        ValueError: If it is no fpzip stream, states more numbers than its bytes can hold, or is damaged.
    """
    count = stated_count(packed)
    file = tempfile.TemporaryFile()  # noqa: SIM115 - closed with what is returned
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM], input=packed, stdout=file, stderr=subprocess.DEVNULL
    )
    file.seek(0)
    shape = file.readline(_LONGEST_SHAPE).split()
    if done.returncode or len(shape) != 2:
        file.close()
        raise ValueError("its frames cannot be unpacked")
    table = Unpacked(file, int(shape[0]), np.dtype(shape[1].decode()))
    if table.numbers != count:
        raise ValueError(f"its frames are {table.numbers} numbers of {count}")
    return table


def stated_count(packed: bytes) -> int:
    """How many numbers a stream unpacks to.

    Raises:
        ValueError: If it is no fpzip stream, or states more numbers than its bytes can hold.
    """
    coder = _RangeDecoder(packed[:_HEADER_BYTES].ljust(_HEADER_BYTES, b"\0"))
    if tuple(coder.number(8) for _ in MAGIC) != MAGIC:
        raise ValueError("the frames are no fpzip stream")
    coder.number(24)  # the version, which the package checks
    coder.number(8)  # number of bits
    count = 1
    for _ in range(4):
        count *= coder.number(32)
    if not 0 < count <= FREE_NUMBERS + MOST_PER_BYTE * len(packed):
        raise ValueError(f"{len(packed)} bytes of frames state to hold {count} numbers")
    return count


class _RangeDecoder:
    """The range decoder of fpzip, for numbers of equal probability."""

    def __init__(self, data: bytes) -> None:
        self._data = iter(data)
        self._low, self._range, self._code = 0, _BITS32, 0
        self._shift(4)

    def number(self, bits: int) -> int:
        """A number of so many bits, the lower half of a long one first."""
        if bits > 16:
            low = self.number(16)
            return (self.number(bits - 16) << 16) | low
        self._range >>= bits
        found = ((self._code - self._low) & _BITS32) // self._range
        self._low = (self._low + self._range * found) & _BITS32
        while not ((self._low ^ (self._low + self._range)) & _BITS32) >> 24:
            self._shift(1)
            self._range = (self._range << 8) & _BITS32
        if not self._range >> 16:
            self._shift(2)
            self._range = -self._low & _BITS32
        return found

    def _shift(self, count: int) -> None:
        for _ in range(count):
            self._code = ((self._code << 8) | next(self._data, 0)) & _BITS32
            self._low = (self._low << 8) & _BITS32
