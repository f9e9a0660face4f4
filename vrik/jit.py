"""The one place that knows the compiler.

``@kernel`` turns a function of numbers, tuples and float64 arrays into machine code on its first
call and keeps the result on disk. The cache folder of a kernel is named after its own file, the
constants it reads and the kernels it calls, so an edit anywhere below it is seen, and two versions
of vrik on one computer never meet. ``VRIK_JIT=0`` leaves every kernel plain Python, for debugging.

Kernels that Python calls are marked ``@entry`` as well: :func:`run_plain` switches them all to plain
Python and back, so that a first run moves at once while another process compiles.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import threading
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])

COMPILED = os.environ.get("VRIK_JIT", "1") != "0"
"""False when ``VRIK_JIT=0``: every kernel then runs as plain Python."""

_python: dict[Any, types.FunctionType] = {}
_digests: dict[Any, str] = {}
_plain: dict[Any, Any] = {}


def cache_folder() -> Path:
    """Where machine code is kept: ``VRIK_CACHE_DIR``, else the user's cache folder."""
    chosen = os.environ.get("VRIK_CACHE_DIR")
    if chosen:
        return Path(chosen) / "kernels"
    import platformdirs

    return Path(platformdirs.user_cache_dir("vrik", appauthor=False)) / "kernels"


def cache_is_writable() -> bool:
    """False when machine code cannot be kept: every start then compiles anew, in memory."""
    return _writable(cache_folder())


def kernel(function: F) -> F:
    """Compile ``function`` with numba on first use; keeps its signature for readers and type checkers.

    A kernel reads numbers and arrays, writes into arrays it is given, and calls only other kernels
    and ``math``. Division by zero gives inf or nan rather than an exception, so a kernel guards its
    divisions itself.
    """
    python = cast(types.FunctionType, function)
    if not COMPILED:
        _python[function] = python
        return function
    import numba

    digest = _digest(python)
    keep = cache_is_writable()
    with _numba_cache_in(cache_folder() / digest[:16]):
        compiled = numba.njit(cache=keep, nogil=True, error_model="numpy")(function)
    if keep:
        _forgive_damaged_cache(compiled)
    _take_any_number(compiled)
    _python[compiled] = python
    _digests[compiled] = digest
    return cast(F, compiled)


class _Entry:
    """A kernel called from Python; compiled, or plain while :func:`run_plain` says so."""

    __slots__ = ("compiled", "run", "types")

    def __init__(self, compiled: Callable[..., Any]) -> None:
        self.compiled = compiled
        self.types: tuple[Any, ...] | None = None
        self.run: Callable[..., Any] = self.run_either if _running_plain else compiled

    def __call__(self, *args: Any) -> Any:
        return self.run(*args)

    def run_either(self, *args: Any) -> Any:
        """Plain, but for a thread inside :func:`compiled_here`."""
        if getattr(_here, "compiled", False):
            return self.compiled(*args)
        if self.types is None:
            import numba

            self.types = tuple(numba.typeof(arg) for arg in args)
        return plain(self.compiled)(*args)


_entries: list[_Entry] = []
_running_plain = False
_here = threading.local()


def entry(compiled: F) -> F:
    """Mark a kernel as one that Python calls, so that :func:`run_plain` can switch it."""
    if not COMPILED:
        return compiled
    switch = _Entry(compiled)
    _entries.append(switch)
    return cast(F, switch)


def run_plain(on: bool) -> None:
    """Let all entries, also those imported later, run as plain Python, or compiled again.

    Both give the same numbers but for the last digits; plain Python takes some 25 times as long.
    """
    global _running_plain
    _running_plain = on and COMPILED
    for switch in _entries:
        switch.run = switch.run_either if _running_plain else switch.compiled


def compile_entries(backwards: bool = False) -> None:
    """Compile, or load, each entry that has run plain, for the types it was given then.

    Those with most code come first, or last with ``backwards``: two processes that share a cache and go
    different ways meet in the middle.
    """
    called = [switch for switch in _entries if switch.types is not None]
    for switch in sorted(called, key=lambda switch: len(_below(switch.compiled)), reverse=not backwards):
        cast(Any, switch.compiled).compile(switch.types)


@contextmanager
def compiled_here() -> Iterator[None]:
    """Run entries compiled in this thread, whatever :func:`run_plain` says: loads their machine code."""
    _here.compiled = True
    try:
        yield
    finally:
        _here.compiled = False


def fingerprint() -> str:
    """Names the machine code of all entries imported so far: their digests, numba and this Python."""
    import platform
    import sys

    import numba

    parts = [sys.version, numba.__version__, platform.machine(), platform.processor()]
    parts += sorted(_digests[switch.compiled] for switch in _entries)
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def kernels() -> dict[str, Callable[..., Any]]:
    """All kernels imported so far, by ``module.name``."""
    return {f"{f.__module__}.{f.__name__}": k for k, f in _python.items()}


def plain(compiled: F) -> F:
    """The same kernel as plain Python, with every kernel it calls plain as well."""
    if not COMPILED:
        return compiled
    if isinstance(compiled, _Entry):
        return cast(F, plain(compiled.compiled))
    if compiled not in _plain:
        python = _python[compiled]
        names: dict[str, Any] = dict(python.__globals__)
        twin = types.FunctionType(python.__code__, names, python.__name__, python.__defaults__)
        _plain[compiled] = twin
        for name in python.__code__.co_names:
            if _is_kernel(names.get(name)):
                names[name] = plain(names[name])
    return cast(F, _plain[compiled])


@contextmanager
def on_compile(started: Callable[[str], None]) -> Iterator[None]:
    """Call ``started(kernel name)`` whenever numba really compiles inside the block (not on a cache hit)."""
    if not COMPILED:
        yield
        return
    from numba.core import event

    class Listener(event.Listener):  # type: ignore[misc]  # numba has no types
        """Passes on the beginning of each compilation."""

        def on_start(self, happening: Any) -> None:
            started(str(happening.data["dispatcher"].py_func.__name__))

        def on_end(self, happening: Any) -> None:
            pass

    with event.install_listener("numba:compile", Listener()):
        yield


def _below(compiled: Any) -> set[Any]:
    """A kernel and all kernels it calls, directly or not."""
    python = _python[compiled]
    found = {compiled}
    for name in python.__code__.co_names:
        value = python.__globals__.get(name)
        if _is_kernel(value):
            found |= _below(value)
    return found


def _is_kernel(value: object) -> bool:
    try:
        return value in _python
    except TypeError:  # unhashable: an array or a list
        return False


def _digest(function: types.FunctionType) -> str:
    """Hash of a function's code, its file, the global numbers it reads and the kernels it calls.

    The file, because a kernel may call one that stands below it, which does not exist yet.
    """
    parts = [_file_digest(function.__code__.co_filename), repr(function.__defaults__)]
    names: list[str] = []
    codes = [function.__code__]
    for code in codes:
        codes += [c for c in code.co_consts if isinstance(c, types.CodeType)]  # a comprehension has its own
        parts += [code.co_code.hex(), repr([c for c in code.co_consts if not isinstance(c, types.CodeType)])]
        parts.append(repr(code.co_varnames))
        names += code.co_names
    for name in names:
        value = function.__globals__.get(name)
        parts.append(name)
        if _is_kernel(value):
            parts.append(_digests[value])
        elif value is not None and not isinstance(value, types.ModuleType | types.FunctionType | type):
            parts.append(repr(value.tolist() if hasattr(value, "tolist") else value))
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


@cache
def _file_digest(path: str) -> str:
    """Hash of a source file; the same for all files that cannot be read."""
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError:
        return ""


@cache
def _writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return False
    return True


def _take_any_number(compiled: Any) -> None:
    """Let ``load3(rows, 0)`` and ``load3(rows, 1)`` be one function: numba makes one for each literal."""
    from numba.core.types import unliteral  # type: ignore[attr-defined]  # numba has no types

    template = compiled.get_call_template

    def for_plain_types(args: Any, kws: Any) -> Any:
        plain_kws = {name: unliteral(arg) for name, arg in dict(kws).items()}
        return template(tuple(unliteral(arg) for arg in args), plain_kws)

    compiled.get_call_template = for_plain_types


def _forgive_damaged_cache(compiled: Any) -> None:
    """A damaged, full or mixed-up cache costs a compilation and never ends the program.

    Two processes that fill one cache at the same time may file one signature's code under
    another's (numba takes no lock), so what is loaded is checked as well.
    """
    stored = compiled._cache
    load, save = stored.load_overload, stored.save_overload

    def load_if_sound(signature: Any, context: Any) -> Any:
        try:
            found = load(signature, context)
        except Exception:  # whatever unpickling garbage may raise
            with suppress(OSError):
                stored.flush()
            return None
        wanted = tuple(getattr(signature, "args", signature))
        return found if found is not None and tuple(found.signature.args) == wanted else None

    def save_if_possible(signature: Any, data: Any) -> None:
        with suppress(OSError):
            save(signature, data)

    stored.load_overload, stored.save_overload = load_if_sound, save_if_possible


@contextmanager
def _numba_cache_in(folder: Path) -> Iterator[None]:
    """Let numba choose ``folder`` for the function decorated inside; other users of numba keep theirs."""
    from numba import config

    before = config.CACHE_DIR
    config.CACHE_DIR = str(folder)
    try:
        yield
    finally:
        config.CACHE_DIR = before
