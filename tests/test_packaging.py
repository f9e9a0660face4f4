"""The wheel holds the four packages with their data and types, and nothing else."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ("vrik", "calibration", "solvers", "recordings")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Names in a wheel that is built from this checkout without network."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    done = subprocess.run(build, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    (path,) = folder.glob("*.whl")
    return [n for n in zipfile.ZipFile(path).namelist() if not n.endswith("/")]


def in_checkout(suffix: str) -> set[str]:
    return {p.relative_to(ROOT).as_posix() for k in PACKAGES for p in (ROOT / k).rglob(f"*{suffix}")}


def test_it_holds_exactly_the_four_packages(wheel: list[str]) -> None:
    tops = {name.split("/")[0] for name in wheel}

    assert {t for t in tops if not t.endswith(".dist-info")} == set(PACKAGES)
    assert len(tops) == len(PACKAGES) + 1


def test_every_module_is_in_it(wheel: list[str]) -> None:
    assert {n for n in wheel if n.endswith(".py")} == in_checkout(".py")


@pytest.mark.parametrize("package", PACKAGES)
def test_each_package_says_that_it_is_typed(wheel: list[str], package: str) -> None:
    assert f"{package}/py.typed" in wheel


def test_the_sample_sessions_are_in_it(wheel: list[str]) -> None:
    samples = {p.relative_to(ROOT).as_posix() for p in (ROOT / "recordings" / "samples").rglob("*.mcap")}

    assert samples
    assert samples <= set(wheel)


def test_the_licence_is_in_it(wheel: list[str]) -> None:
    assert any(n.endswith(".dist-info/licenses/LICENSE") for n in wheel)


def test_the_command_is_in_it(wheel: list[str]) -> None:
    assert any(n.endswith(".dist-info/entry_points.txt") for n in wheel)


def test_no_tests_tools_or_caches_are_in_it(wheel: list[str]) -> None:
    assert not [n for n in wheel if {"tests", "tools", "docs", "__pycache__"} & set(n.split("/"))]
    assert not [n for n in wheel if n.endswith((".pyc", ".nbi", ".nbc", ".cfg"))]


def test_the_weights_of_the_fitted_prior_are_in_it(wheel: list[str]) -> None:
    assert "solvers/data/prior.npz" in wheel
