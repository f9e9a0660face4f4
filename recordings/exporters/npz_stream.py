"""An ``.npz`` written row by row: nothing but the rows at hand is in memory.

An ``.npz`` is a zip of ``.npy`` files, and those say how many rows follow before the rows come. So the rows
of each array wait in a file of their own, without a name, until all are there.
"""

from __future__ import annotations

import shutil
import tempfile
import zipfile
from pathlib import Path
from types import TracebackType
from typing import IO, Any

import numpy as np

LEVEL = 1
"""Of deflate: the numbers hardly shrink any further at a higher one, and it takes several times as long."""

_COPY_BYTES = 1 << 20


class NpzStream:
    """Writes arrays that grow along their first axis, and others whole.

    Use it as a context; the file is written at its end, unless an error ended it.

    Args:
        path: File to make, by this very name. The waiting rows lie in the same folder.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._rows: dict[str, tuple[IO[bytes], np.dtype[Any], tuple[int, ...], int]] = {}
        self._whole: dict[str, Any] = {}

    def append(self, name: str, rows: Any) -> None:
        """Add rows to an array; all must have the type and the inner shape of the first ones."""
        rows = np.ascontiguousarray(rows)
        if name not in self._rows:
            made = tempfile.TemporaryFile(dir=self._path.parent)  # noqa: SIM115 - closed in __exit__
            self._rows[name] = (made, rows.dtype, rows.shape[1:], 0)
        waiting, dtype, shape, count = self._rows[name]
        if (rows.dtype, rows.shape[1:]) != (dtype, shape):
            raise ValueError(f"rows of {name} are {rows.dtype} {rows.shape[1:]}, not {dtype} {shape}")
        waiting.write(rows.data)
        self._rows[name] = (waiting, dtype, shape, count + len(rows))

    def add(self, name: str, array: Any) -> None:
        """Add a whole array."""
        self._whole[name] = np.asanyarray(array)

    def __enter__(self) -> NpzStream:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self._write()
        finally:
            for waiting, *_ in self._rows.values():
                waiting.close()

    def _write(self) -> None:
        with zipfile.ZipFile(self._path, "w", zipfile.ZIP_DEFLATED, compresslevel=LEVEL) as archive:
            for name, (waiting, dtype, shape, count) in self._rows.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    head = {
                        "descr": np.lib.format.dtype_to_descr(dtype),
                        "fortran_order": False,
                        "shape": (count, *shape),
                    }
                    np.lib.format.write_array_header_1_0(member, head)
                    waiting.seek(0)
                    shutil.copyfileobj(waiting, member, _COPY_BYTES)
            for name, array in self._whole.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, array, allow_pickle=False)
