"""A place for what does not fit into memory, gone when its owner is."""

from __future__ import annotations

import weakref
from tempfile import SpooledTemporaryFile
from typing import IO, cast


def file_aside(owner: object, in_memory_bytes: int) -> IO[bytes]:
    """A file that stays in memory up to a size, then goes to disk; closed when nobody has ``owner``."""
    file = SpooledTemporaryFile(max_size=in_memory_bytes)  # noqa: SIM115 - closed by the finalizer
    weakref.finalize(owner, file.close)
    return cast("IO[bytes]", file)
