"""The solver library's public names."""

from __future__ import annotations

import subprocess
import sys

import pytest

import solvers


def test_importing_solvers_loads_neither_numpy_nor_numba() -> None:
    code = (
        "import sys, solvers, solvers.config; print(sorted({'numpy', 'numba', 'scipy'} & set(sys.modules)))"
    )

    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert shown.stdout.strip() == "[]"


@pytest.mark.parametrize("name", solvers.__all__)
def test_every_public_name_can_be_loaded(name: str) -> None:
    assert getattr(solvers, name).__name__ == name


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = solvers.nothing
