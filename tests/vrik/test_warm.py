"""The first start ever: the body moves at once in plain Python, and compiled code takes over."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from vrik import jit, warm

needs_compiler = pytest.mark.skipif(not jit.COMPILED, reason="VRIK_JIT=0: there is nothing to compile")

FIRST_START = """
import json, time
begun = time.monotonic()
from vrik import jit, warm
from vrik.pipeline import Pipeline
import numpy as np

compiled = []
with jit.on_compile(compiled.append):
    ready = warm.is_ready()
    with warm.Warming() as warming:
        compiling = warming.compiling
        pipeline = Pipeline(warm._standing_person())
        frames = warm._standing_frames()
        plain = pipeline.step(frames[0])
        first_s = time.monotonic() - begun
        while warming.compiling and time.monotonic() - begun < 180.0:
            warming.poll()
            pipeline.step(frames[-1])
            time.sleep(0.05)
        taken_over = not warming.compiling
    pipeline.reset()
    difference = float(np.abs(pipeline.step(frames[0]).position - plain.position).max())
print(json.dumps({"ready": ready, "compiling": compiling, "first_s": first_s, "taken_over": taken_over,
                  "difference": difference, "compiled": compiled, "ready_after": warm.is_ready()}))
"""


def start(folder: Path) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-c", FIRST_START],
        env={**os.environ, "VRIK_JIT": "1", "VRIK_CACHE_DIR": str(folder)},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


@needs_compiler
def test_the_first_start_moves_at_once_and_the_second_finds_everything(tmp_path: Path) -> None:
    """Takes half a minute: everything is really compiled, in a process beside the one that plays."""
    first, second = start(tmp_path), start(tmp_path)

    assert not first["ready"]
    assert first["compiling"]
    assert first["first_s"] < 20.0
    assert first["taken_over"]
    assert first["ready_after"]
    assert first["difference"] < 1e-7
    assert first["compiled"] == [], "the process that plays must not compile"

    assert second["ready"]
    assert not second["compiling"]
    assert second["compiled"] == []


class Finished:
    """A process that has ended."""

    stdin = None

    def __init__(self, returncode: int) -> None:
        self.returncode = returncode

    def poll(self) -> int:
        return self.returncode

    def terminate(self) -> None:
        pass

    def wait(self) -> int:
        return self.returncode


@needs_compiler
def test_when_compiling_fails_plain_python_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warm, "is_ready", lambda: False)
    monkeypatch.setattr(warm, "_other_process", lambda part: Finished(3))

    with warm.Warming() as warming:
        for _ in range(5):
            warming.poll()
            time.sleep(0.01)
        assert warming.compiling
        assert jit._running_plain

    assert not jit._running_plain


@needs_compiler
def test_machine_code_is_loaded_in_a_thread_while_this_one_stays_plain(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    threads: list[int] = []
    go = threading.Event()

    def load() -> None:
        threads.append(threading.get_ident())
        go.wait(10.0)

    monkeypatch.setattr(warm, "is_ready", lambda: False)
    monkeypatch.setattr(warm, "_other_process", lambda part: Finished(0))
    monkeypatch.setattr(warm, "_load_here", load)

    with warm.Warming() as warming:
        warming.poll()
        warming.poll()
        assert warming.compiling
        assert jit._running_plain
        go.set()
        end = time.monotonic() + 10.0
        while warming.compiling and time.monotonic() < end:
            warming.poll()
        assert not warming.compiling
        assert not jit._running_plain

    assert len(threads) == 1
    assert threads[0] != threading.get_ident()


@needs_compiler
def test_compiled_here_is_for_one_thread_only() -> None:
    """The loader runs machine code while the session's thread goes on in plain Python."""
    from vrik.kernels.condition import into_venue

    switch: Any = into_venue
    seen: dict[str, bool] = {}

    def look(name: str) -> None:
        seen[name] = getattr(jit._here, "compiled", False)

    try:
        jit.run_plain(True)
        assert switch.run != switch.compiled
        with jit.compiled_here():
            look("inside")
            other = threading.Thread(target=look, args=("elsewhere",))
            other.start()
            other.join()
        look("after")
    finally:
        jit.run_plain(False)

    assert seen == {"inside": True, "elsewhere": False, "after": False}
    assert switch.run is switch.compiled


def test_progress_is_told_only_when_something_compiles() -> None:
    told: list[tuple[int, str]] = []
    warm.warm_up()

    warm.warm_up(lambda count, name: told.append((count, name)))

    assert told == []
    assert warm.is_ready() or not jit.cache_is_writable()
