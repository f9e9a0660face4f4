"""Fixtures shared by all tests: the test material, tools that may be missing, and small bodies."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

STRICT = os.environ.get("VRIK_STRICT") == "1"


def _missing(reason: str) -> None:
    """Skip with the reason; a failure when every test must run."""
    if STRICT:
        pytest.fail(reason + " (VRIK_STRICT=1 forbids skipping)")
    pytest.skip(reason)


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with ``data/``, ``bench/`` and ``protocols/``."""
    folder = os.environ.get("VRIK_TEST_DATA", "")
    if not folder or not Path(folder, "data").is_dir():
        _missing("VRIK_TEST_DATA does not name the folder with the test material")
    return Path(folder)


@pytest.fixture(scope="session")
def needs_tool() -> Callable[[str], str]:
    """``needs_tool("oscdump")`` is the program's path, or skips the test when it is not installed."""

    def find(name: str) -> str:
        path = shutil.which(name)
        if path is None:
            _missing(f"the program {name} is not installed")
        return str(path)

    return find
