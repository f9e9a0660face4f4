"""Files that appear complete or not at all."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from vrik.files import write_whole


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_is_put_in_place_whole(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    path.write_text("old")
    seen: list[str] = []

    def write(part: Path) -> None:
        part.write_text("new")
        seen.append(path.read_text())

    write_whole(path, write)

    assert seen == ["old"]
    assert path.read_text() == "new"
    assert names(tmp_path) == ["out.txt"]


@pytest.mark.parametrize("problem", [ValueError, KeyboardInterrupt, OSError])
def test_what_fails_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, problem: type[BaseException]
) -> None:
    path = tmp_path / "out.txt"
    path.write_text("old")

    def write(part: Path) -> None:
        part.write_text("half")
        raise problem

    with pytest.raises(problem):
        write_whole(path, write)

    assert path.read_text() == "old"
    assert names(tmp_path) == ["out.txt"]


@pytest.mark.skipif(os.name == "nt", reason="Windows asks for rights to make links")
def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link.txt").symlink_to(tmp_path / "real" / "out.txt")

    write_whole(tmp_path / "link.txt", lambda part: part.write_text("new") and None)

    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "real" / "out.txt").read_text() == "new"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_or_device_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    """``-o /dev/null`` once put a regular file in its place."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()), daemon=True)
    reader.start()

    write_whole(pipe, lambda part: part.write_bytes(b"new") and None)

    reader.join(5.0)
    assert read == [b"new"]
    assert pipe.is_fifo()
    assert names(tmp_path) == ["pipe"]
