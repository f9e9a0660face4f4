"""Imports point one way: vrik core <- solvers, calibration, recordings <- the rest of vrik."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MIDDLE = ("solvers", "calibration", "recordings")
PACKAGES = ("vrik", *MIDDLE)

CORE = (
    "arrays",
    "jit",
    "quat",
    "pose",
    "skeleton",
    "kinematics",
    "body",
    "frames",
    "errors",
    "files",
    "config",
    "kernels",
)
"""Modules of ``vrik`` that everything else may use."""

LIGHT = ("vrik", "vrik.config", "vrik.errors", "vrik.cli", "vrik.cli.commands", "solvers.config")
"""What ``vrik --help`` may load."""

HEAVY = {"numpy", "numba", "scipy", "mcap"}

LAZY = {"scipy", "openvr", "viser", "rerun", "zenoh", "matplotlib"}
"""Slow or optional: imported only inside the function that needs them."""

STDLIB = set(sys.stdlib_module_names)
DEPENDENCIES = {
    "numpy",
    "numba",
    "scipy",
    "pythonosc",
    "mcap",
    "lz4",
    "zstandard",
    "tyro",
    "rich",
    "platformdirs",
}
OPTIONAL = LAZY - DEPENDENCIES


def sources(package: str) -> list[Path]:
    return sorted((ROOT / package).rglob("*.py"))


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(tree: ast.AST, *, top_level: bool = False) -> Iterator[str]:
    """Modules that a file imports; ``if TYPE_CHECKING`` counts for direction, not for what is loaded."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports hide the direction"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif top_level and loads_nothing(node):
            continue
        else:
            yield from imported(node, top_level=top_level)


def loads_nothing(node: ast.AST) -> bool:
    """Whether a statement at the top of a file does not run its imports when the file is loaded."""
    if isinstance(node, ast.If):
        return "TYPE_CHECKING" in ast.unparse(node.test)
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)


def is_core(module: str) -> bool:
    parts = module.split(".")
    return parts[0] == "vrik" and len(parts) > 1 and parts[1] in CORE


CORE_FILES = [p for p in sources("vrik") if is_core(module_name(p))]
MIDDLE_FILES = [p for package in MIDDLE for p in sources(package)]
ALL_FILES = [p for package in PACKAGES for p in sources(package)]


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def test_the_walk_sees_the_whole_core() -> None:
    """Otherwise a renamed module would drop out of these tests unseen."""
    assert {module_name(p).split(".")[1] for p in CORE_FILES} == set(CORE)
    assert all(sources(package) for package in MIDDLE)


@pytest.mark.parametrize("path", CORE_FILES, ids=name_of)
def test_the_core_imports_nothing_above_it(path: Path) -> None:
    for module in imported(ast.parse(path.read_text(encoding="utf-8"))):
        if module.split(".")[0] in PACKAGES:
            assert is_core(module), f"{name_of(path)} imports {module}"


@pytest.mark.parametrize("path", MIDDLE_FILES, ids=name_of)
def test_solvers_calibration_and_recordings_know_only_the_core_and_themselves(path: Path) -> None:
    own = module_name(path).split(".")[0]
    for module in imported(ast.parse(path.read_text(encoding="utf-8"))):
        if module.split(".")[0] in PACKAGES:
            assert is_core(module) or module.split(".")[0] == own, f"{name_of(path)} imports {module}"


@pytest.mark.parametrize("path", ALL_FILES, ids=name_of)
def test_slow_and_optional_packages_are_imported_where_they_are_needed(path: Path) -> None:
    """At the top of a file scipy would cost every start 0.2 s, and an extra would be no extra."""
    loaded = {m.split(".")[0] for m in imported(ast.parse(path.read_text(encoding="utf-8")), top_level=True)}

    assert not loaded & LAZY


@pytest.mark.parametrize("path", ALL_FILES, ids=name_of)
def test_only_declared_dependencies_are_imported(path: Path) -> None:
    roots = {m.split(".")[0] for m in imported(ast.parse(path.read_text(encoding="utf-8")))}

    assert roots <= STDLIB | DEPENDENCIES | OPTIONAL | set(PACKAGES) | {"__future__"}


@pytest.mark.parametrize("path", [p for p in ALL_FILES if "kernels" not in p.parts], ids=name_of)
def test_only_kernels_and_the_wrapper_know_numba(path: Path) -> None:
    if module_name(path) == "vrik.jit":
        return

    roots = {m.split(".")[0] for m in imported(ast.parse(path.read_text(encoding="utf-8")))}

    assert "numba" not in roots


def test_settings_errors_and_the_command_table_load_nothing_slow() -> None:
    code = f"import sys, json, {', '.join(LIGHT)}; print(json.dumps(sorted(sys.modules)))"

    loaded = json.loads(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout)

    assert not HEAVY & set(loaded)
