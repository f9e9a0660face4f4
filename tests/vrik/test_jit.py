"""Kernels: the same numbers compiled and plain, and a cache that never gets in the way."""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import os
import pkgutil
import subprocess
import sys
import textwrap
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vrik import jit

ROWS = 6

SMALL = """
import json, sys
from vrik import jit
seen = []
with jit.on_compile(seen.append):
    from vrik.kernels import vec
    answer = vec.distance((0.0, 0.0, 0.0), (3.0, 4.0, 0.0))
print(json.dumps({"answer": answer, "compiled": seen, "numba": "numba" in sys.modules,
                  "keeps": jit.cache_is_writable()}))
"""


def core_kernels() -> dict[str, Callable[..., Any]]:
    """Kernels that any arrays of the right shape will do for; the others are compared in their own tests."""
    modules = [f"vrik.kernels.{name}" for name in ("vec", "quat", "kinematics")]
    for module in modules:
        importlib.import_module(module)
    return {name: k for name, k in jit.kernels().items() if name.rpartition(".")[0] in modules}


def parameters_of(function: types.FunctionType) -> list[str]:
    """Annotations as written: ``Points`` and ``Quats`` are one type to Python but two shapes to us."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    definition = tree.body[0]
    assert isinstance(definition, ast.FunctionDef)
    return [ast.unparse(a.annotation) for a in definition.args.args if a.annotation is not None]


def random_argument(annotation: str, rng: np.random.Generator) -> Any:
    match annotation:
        case "float":
            return float(rng.uniform(-1.0, 1.0))
        case "int":
            return int(rng.integers(0, ROWS))
        case "V3":
            v = rng.normal(size=3)
            return tuple((v / np.linalg.norm(v)).tolist())
        case "Q4":
            q = rng.normal(size=4)
            return tuple((q / np.linalg.norm(q)).tolist())
        case "Points":
            return rng.normal(size=(ROWS, 3))
        case "Quats":
            q = rng.normal(size=(ROWS, 4))
            return q / np.linalg.norm(q, axis=1, keepdims=True)
        case "Ints":  # parents, each before its child
            return np.array([-1] + [int(rng.integers(0, j)) for j in range(1, ROWS)])
    raise AssertionError(f"this test knows no random value for a parameter of type {annotation}")


def copies(values: list[Any]) -> list[Any]:
    return [v.copy() if isinstance(v, np.ndarray) else v for v in values]


def run(code: str, **environment: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **environment}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


@pytest.mark.skipif(not jit.COMPILED, reason="VRIK_JIT=0: there is nothing to compare")
@pytest.mark.parametrize("name", sorted(core_kernels()))
def test_a_kernel_gives_the_same_compiled_and_plain(name: str) -> None:
    compiled = core_kernels()[name]
    plain = jit.plain(compiled)
    rng = np.random.default_rng(7)
    for _ in range(20):
        arguments = [random_argument(a, rng) for a in parameters_of(plain)]
        fast, slow = copies(arguments), copies(arguments)

        result, expected = compiled(*fast), plain(*slow)

        if expected is not None:
            np.testing.assert_allclose(result, expected, rtol=1e-10, atol=1e-10)
        for a, b in zip(fast, slow, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10)


@pytest.mark.skipif(not jit.COMPILED, reason="VRIK_JIT=0: there is nothing to compare")
def test_plain_kernels_call_plain_kernels() -> None:
    """Otherwise a debugger could not step into them."""
    from vrik.kernels import quat

    twin = jit.plain(quat.qrot)

    assert isinstance(twin, types.FunctionType)
    assert isinstance(twin.__globals__["cross"], types.FunctionType)


@pytest.mark.parametrize("package", ["vrik", "solvers"])
def test_every_function_in_a_kernels_folder_is_a_kernel(package: str) -> None:
    """A plain function there would be missed by warm-up and by these tests."""
    folder = importlib.import_module(f"{package}.kernels")
    for module_info in pkgutil.iter_modules(folder.__path__):
        module = importlib.import_module(f"{package}.kernels.{module_info.name}")
        tree = ast.parse(inspect.getsource(module))

        names = {f"{module.__name__}.{d.name}" for d in tree.body if isinstance(d, ast.FunctionDef)}

        assert names <= set(jit.kernels())


def function(body: str, **names: Any) -> types.FunctionType:
    scope: dict[str, Any] = dict(names)
    exec(f"def f(x):\n    return {body}\n", scope)
    made: types.FunctionType = scope["f"]
    return made


def test_the_digest_is_the_same_for_the_same_code() -> None:
    assert jit._digest(function("x + C", C=1.0)) == jit._digest(function("x + C", C=1.0))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (function("x + 1.0"), function("x + 2.0")),
        (function("x + 1.0"), function("x - 1.0")),
        (function("x + C", C=1.0), function("x + C", C=2.0)),
        (function("x + C", C=(1.0, 2.0)), function("x + C", C=(1.0, 3.0))),
        (function("x + C[0]", C=np.zeros(2)), function("x + C[0]", C=np.ones(2))),
        (function("[C * i for i in x]", C=1.0), function("[C * i for i in x]", C=2.0)),
        (function("[2.0 * i for i in x]"), function("[3.0 * i for i in x]")),
    ],
)
def test_the_digest_sees_code_and_constants(one: types.FunctionType, other: types.FunctionType) -> None:
    """It names the cache folder, so what it misses would run as old machine code."""
    assert jit._digest(one) != jit._digest(other)


INNER = "@kernel\ndef inner(x: float) -> float:\n    return x * {}\n\n\n"
OUTER = "@kernel\ndef outer(x: float) -> float:\n    return inner(x)\n\n\n"


@pytest.mark.skipif(not jit.COMPILED, reason="VRIK_JIT=0: there are no digests")
@pytest.mark.parametrize("where", ["above", "below", "in another file"])
def test_the_digest_sees_a_change_in_a_called_kernel(where: str, tmp_path: Path) -> None:
    """A stale file in the cache would run old machine code."""
    digests = []
    for factor in (2.0, 3.0):
        folder = tmp_path / str(factor)
        folder.mkdir()
        inner = INNER.format(factor)
        head, called = "from vrik.jit import kernel\n\n\n", {"above": inner + OUTER, "below": OUTER + inner}
        if where == "in another file":
            (folder / "called.py").write_text(head + inner)
            head += "from called import inner\n\n\n"
        (folder / "edited.py").write_text(head + called.get(where, OUTER))
        code = (
            f"import sys, json; sys.path[:0] = [{str(folder)!r}]\n"
            "import edited; from vrik import jit; print(json.dumps(jit._digests[edited.outer]))"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        digests.append(done.stdout)

    assert digests[0] != digests[1]


def test_vrik_jit_0_runs_everything_as_plain_python() -> None:
    result = run(SMALL, VRIK_JIT="0")

    assert result["answer"] == 5.0
    assert result["compiled"] == []
    assert not result["numba"]


def test_on_compile_tells_real_compilations_only(tmp_path: Path) -> None:
    first = run(SMALL, VRIK_JIT="1", VRIK_CACHE_DIR=str(tmp_path / "with space and ü"))
    second = run(SMALL, VRIK_JIT="1", VRIK_CACHE_DIR=str(tmp_path / "with space and ü"))

    assert "distance" in first["compiled"]
    assert second["compiled"] == []
    assert first["answer"] == second["answer"] == 5.0


def test_two_processes_may_fill_an_empty_cache_at_once(tmp_path: Path) -> None:
    environment = {**os.environ, "VRIK_JIT": "1", "VRIK_CACHE_DIR": str(tmp_path)}
    both = [
        subprocess.Popen([sys.executable, "-c", SMALL], env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]

    answers = [json.loads(process.communicate()[0])["answer"] for process in both]

    assert answers == [5.0, 5.0]
    assert run(SMALL, VRIK_JIT="1", VRIK_CACHE_DIR=str(tmp_path))["answer"] == 5.0


def test_without_a_writable_cache_kernels_compile_in_memory(tmp_path: Path) -> None:
    """The folder's parent is a file, which no user may write into, root included."""
    (tmp_path / "file").write_text("")

    result = run(SMALL, VRIK_JIT="1", VRIK_CACHE_DIR=str(tmp_path / "file" / "cache"))

    assert result["answer"] == 5.0
    assert not result["keeps"]
    assert "distance" in result["compiled"]


def test_a_damaged_cache_is_compiled_anew(tmp_path: Path) -> None:
    """A power cut may leave half a file; it must not end every later start."""
    run(SMALL, VRIK_JIT="1", VRIK_CACHE_DIR=str(tmp_path))
    for suffix in (".nbi", ".nbc"):
        damaged = list(tmp_path.rglob(f"*{suffix}"))
        for path in damaged:
            path.write_bytes(path.read_bytes()[:20])

        after = run(SMALL, VRIK_JIT="1", VRIK_CACHE_DIR=str(tmp_path))

        assert damaged
        assert "distance" in after["compiled"]
        assert after["answer"] == 5.0
    assert run(SMALL, VRIK_JIT="1", VRIK_CACHE_DIR=str(tmp_path))["compiled"] == []


SESSION = """
import sys
from pathlib import Path
import numpy as np
import recordings, vrik
session = sorted((Path(recordings.__file__).parent / "samples").glob("*.mcap"))[-1]
frames = vrik.read_all(vrik.open_recording(session))
pipeline = vrik.Pipeline(vrik.calibrate(frames))
poses = [pipeline.step(frame) for frame in frames.part(slice(0, None, 30))]
np.savez(sys.argv[1], position=[p.position for p in poses], rotation=[p.rotation for p in poses])
"""


@pytest.mark.skipif(not jit.COMPILED, reason="VRIK_JIT=0: there is nothing to compare")
def test_a_session_is_solved_the_same_compiled_and_plain(tmp_path: Path) -> None:
    """All kernels of the pipeline, together and on the values they meet."""
    solved = []
    for mode in ("0", "1"):
        out = tmp_path / f"{mode}.npz"
        command = [sys.executable, "-c", SESSION, str(out)]
        done = subprocess.run(command, env={**os.environ, "VRIK_JIT": mode}, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        solved.append(np.load(out))

    plain, compiled = solved
    assert len(plain["position"]) > 50
    for name in ("position", "rotation"):
        assert np.isfinite(plain[name]).all()
        np.testing.assert_allclose(compiled[name], plain[name], atol=1e-7)
