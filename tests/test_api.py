"""Everything public is a name of ``vrik``, documented, and costs nothing until it is used."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

import vrik

ROOT = Path(__file__).parent.parent
API = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")


def run(code: str, *path: Path) -> subprocess.CompletedProcess[str]:
    """A fresh interpreter with ``path`` first on its module path."""
    code = f"import sys; sys.path[:0] = {[str(p) for p in path]!r}\n" + code
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)


@pytest.mark.parametrize("name", vrik.__all__)
def test_every_public_name_can_be_imported_from_vrik(name: str) -> None:
    assert getattr(vrik, name) is not None
    assert name in dir(vrik)


@pytest.mark.parametrize("name", vrik.__all__)
def test_the_api_page_lists_every_public_name(name: str) -> None:
    assert f"| `{name}" in API


def test_the_api_page_lists_nothing_else() -> None:
    listed = re.findall(r"^\| `(\w+)", API, re.MULTILINE)

    assert sorted(listed) == sorted(vrik.__all__)


@pytest.mark.parametrize("name", [n for n in vrik.__all__ if n not in ("__version__", "BONES", "ROLES")])
def test_every_public_thing_says_what_it_is(name: str) -> None:
    assert (getattr(vrik, name).__doc__ or "").strip()


def test_type_checkers_see_the_same_names_as_python() -> None:
    """The imports under TYPE_CHECKING and the table of lazy names are written twice."""
    text = Path(vrik.__file__).read_text(encoding="utf-8")
    typed = re.findall(r"^    from (\S+) import (\w+) as \2$", text, re.MULTILINE)

    assert {(name, module) for module, name in typed} == set(vrik._MODULE_OF.items())
    assert {name for _, name in typed} == set(vrik.__all__) - {"__version__"}


def test_importing_vrik_loads_nothing_slow() -> None:
    done = run("import json, vrik; print(json.dumps(sorted(sys.modules)))")

    loaded: list[Any] = json.loads(done.stdout)
    assert not {"numpy", "numba", "scipy", "mcap", "tyro", "rich"} & set(loaded)


def test_a_star_import_works() -> None:
    done = run("from vrik import *; print(Pose.__name__, len(BONES), open_recording.__name__)")

    assert done.stdout.split() == ["Pose", "22", "open_recording"], done.stderr


def test_the_version_is_the_installed_one() -> None:
    assert vrik.__version__ == version("vrik")


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'poze'"):
        vrik.poze  # noqa: B018  # the look-up is what is tested


@pytest.mark.parametrize("name", ["solvers", "calibration", "recordings"])
@pytest.mark.parametrize("as_package", [False, True])
def test_a_foreign_module_of_the_same_name_is_named(tmp_path: Path, name: str, as_package: bool) -> None:
    """A host project may own a ``solvers.py``: it would be imported instead, and fail far from the cause."""
    foreign = tmp_path / name / "__init__.py" if as_package else tmp_path / f"{name}.py"
    foreign.parent.mkdir(exist_ok=True)
    foreign.write_text("")

    done = run("import vrik", tmp_path)

    last = done.stderr.strip().splitlines()[-1]
    assert done.returncode == 1
    assert last.startswith("ImportError: vrik needs its own package")
    assert name in last
    assert str(foreign) in last


def test_a_foreign_module_that_is_already_loaded_is_named(tmp_path: Path) -> None:
    (tmp_path / "solvers.py").write_text("")

    done = run(f"import solvers; sys.path.remove({str(tmp_path)!r}); import vrik", tmp_path)

    assert done.returncode == 1
    assert str(tmp_path / "solvers.py") in done.stderr.splitlines()[-1]


def test_a_folder_of_files_with_such_a_name_does_no_harm(tmp_path: Path) -> None:
    """A folder ``recordings/`` without Python in it is common where recordings are kept."""
    (tmp_path / "recordings").mkdir()

    done = run("import vrik, recordings; print(recordings.__file__)", tmp_path)

    assert done.returncode == 0, done.stderr
    assert str(tmp_path) not in done.stdout


@pytest.mark.parametrize("page", ["README.md", "docs/library.md"])
def test_the_examples_need_no_import_but_vrik(page: str) -> None:
    """An example that reaches into a package shows that something public has no public name."""
    imports = re.findall(
        r"^\s*(?:from|import) +(\S+)", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE
    )

    foreign = {m for m in imports if m.split(".")[0] in ("vrik", "calibration", "recordings", "solvers")}
    assert foreign == {"vrik"}
