"""Arrays of an ``.npz``, whole or some rows at a time. Nothing is unpickled, no stated size is believed."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy

from vrik.arrays import Floats

WHOLE_BYTES = 1 << 26
"""A larger array is not read whole. [bytes]"""

_HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}


class Member:
    """One array of the archive.

    Args:
        archive: Open zip file.
        name: Name of the array.

    Raises:
        ValueError: If it holds Python objects, or its size is not what its shape says.
    """

    def __init__(self, archive: zipfile.ZipFile, name: str) -> None:
        self._archive = archive
        self._entry = archive.getinfo(f"{name}.npy")
        with archive.open(self._entry) as stream:
            self.shape, self.dtype, fortran = self._header(stream)
            begin = stream.tell()
        if self.dtype.hasobject:
            raise ValueError(f"{name} holds Python objects")
        count = 1
        for length in self.shape:  # Python's integers do not overflow
            count *= length
        if self._entry.file_size - begin != count * self.dtype.itemsize:
            raise ValueError(
                f"{name} has {self._entry.file_size - begin} bytes of data for the shape {self.shape}"
            )
        self.in_rows = not fortran or len(self.shape) < 2
        """Whether the rows of the first axis stand one after the other."""

    def whole(self) -> Any:
        """All of it.

        Raises:
            ValueError: If it is larger than ``WHOLE_BYTES``.
        """
        if self._entry.file_size > WHOLE_BYTES:
            raise ValueError(f"{self._entry.filename} has {self._entry.file_size} bytes")
        with self._archive.open(self._entry) as stream:
            return npy.read_array(stream, allow_pickle=False)

    def rows(self, step: int) -> Iterator[Floats]:
        """``step`` rows at a time, as numbers.

        Raises:
            ValueError: If it is no array of numbers, or the data ends early.
        """
        if self.dtype.kind not in "biuf":
            raise ValueError(f"{self._entry.filename} holds no numbers")
        if not self.in_rows:
            whole = self.whole()
            yield from (np.asarray(whole[i : i + step], np.float64) for i in range(0, len(whole), step))
            return
        row = int(np.prod(self.shape[1:], dtype=np.int64)) * self.dtype.itemsize
        with self._archive.open(self._entry) as stream:
            self._header(stream)
            for begin in range(0, self.shape[0], step):
                size = min(step, self.shape[0] - begin) * row
                data = stream.read(size)
                if len(data) < size:
                    raise ValueError(f"{self._entry.filename} ends early")
                values = np.frombuffer(data, self.dtype).reshape(-1, *self.shape[1:])
                yield np.asarray(values, np.float64)

    @staticmethod
    def _header(stream: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any], bool]:
        version = npy.read_magic(stream)
        if version not in _HEADERS:
            raise ValueError(f"array format {version}")
        shape, fortran, dtype = _HEADERS[version](stream)
        return shape, dtype, fortran
