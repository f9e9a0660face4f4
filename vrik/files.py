"""Files that appear complete or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path


def write_whole(path: Path, write: Callable[[Path], None]) -> None:
    """Let ``write`` fill a file beside ``path``, and put it in place once it is complete.

    What is there before stays as it is until then, also when ``write`` raises. A link is followed. A pipe
    or a device such as ``/dev/stdout`` cannot be put in place: it gets a copy.

    Raises:
        OSError: If the system refuses; and whatever ``write`` raises.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file() and not target.is_dir():
        with tempfile.TemporaryDirectory() as folder:
            made = Path(folder, target.name)
            write(made)
            with made.open("rb") as source, path.open("wb") as sink:
                shutil.copyfileobj(source, sink)
        return
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        write(part)
        part.replace(target)
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)
