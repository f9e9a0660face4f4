"""Makes every kernel of the pipeline ready before the first real frame, or while the first ones play.

``python -m vrik.warm`` fills the cache and ends. :func:`warm_up` shares the work with one such process,
:class:`Warming` leaves it all the work and plays on meanwhile.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np

from vrik import jit, quat
from vrik.body import BodyModel
from vrik.config import PipelineConfig
from vrik.frames import ROLES, Calibration, DeviceClass, TrackedDevice, TrackerFrame
from vrik.pipeline import Pipeline
from vrik.sinks.vmc import VmcEncoder
from vrik.skeleton import BONE


def warm_up(on_progress: Callable[[int, str], None] | None = None) -> None:
    """Load all kernels from the cache, or compile them; they then run compiled.

    Args:
        on_progress: Called with the number of compilations begun so far and the kernel's name, and
            only when something really has to be compiled.
    """
    begun = 0

    def started(name: str) -> None:
        nonlocal begun
        begun += 1
        if on_progress is not None:
            on_progress(begun, name)

    with jit.on_compile(started):
        if is_ready():
            with jit.compiled_here():
                _run_all()
        else:
            _compile_all()
    jit.run_plain(False)
    if jit.COMPILED and jit.cache_is_writable():
        with suppress(OSError):
            _mark().touch()


def is_ready() -> bool:
    """Whether :func:`warm_up` will find everything in the cache and take no time to speak of."""
    return not jit.COMPILED or _mark().exists()


class Warming:
    """Compiles in another process while this one runs kernels as plain Python, then switches over.

    Use it as a context manager and call :meth:`poll` now and then. Where the cache cannot be written
    there is nothing to hand over, and everything is compiled here first.

    Args:
        on_progress: As for :func:`warm_up`, for what has to be compiled here after all.
    """

    def __init__(self, on_progress: Callable[[int, str], None] | None = None) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._loader: threading.Thread | None = None
        if is_ready() or not jit.cache_is_writable():
            warm_up(on_progress)
            return
        self._process = _other_process("all")
        jit.run_plain(True)

    @property
    def compiling(self) -> bool:
        """Whether kernels still run as plain Python."""
        return self._process is not None

    def poll(self) -> None:
        """Load the machine code, in a thread, as soon as the other process has made it."""
        if self._process is None or self._process.poll() is None or self._process.returncode != 0:
            return
        if self._loader is None:
            self._loader = threading.Thread(target=_load_here, daemon=True)
            self._loader.start()
        elif not self._loader.is_alive():
            _end(self._process)
            self._process = None
            jit.run_plain(False)

    def __enter__(self) -> Warming:
        return self

    def __exit__(self, *failure: object) -> None:
        if self._process is not None:
            _end(self._process)
            self._process = None
        if self._loader is not None:
            self._loader.join()
        jit.run_plain(False)


def _load_here() -> None:
    """Bring the machine code of all entries into this process; other threads go on in plain Python."""
    with jit.compiled_here():
        _run_all()


def _run_all() -> None:
    """Call every entry once, with the types it always gets."""
    for prior in ("rules", "fitted"):
        pipeline = Pipeline(_standing_person(), PipelineConfig(prior=prior))
        encoder = VmcEncoder(pipeline.calibration.body)
        for frame in _standing_frames():
            pose = pipeline.step(frame)
            encoder.encode(pose, pipeline.tracked or frame)


def _compile_all() -> None:
    """Compile every entry; a second process, where there is a core for it, begins at the other end."""
    jit.run_plain(True)
    _run_all()
    helper = _other_process("backwards") if (os.cpu_count() or 1) > 1 and jit.cache_is_writable() else None
    try:
        jit.compile_entries()
    finally:
        if helper is not None:
            _end(helper)


def _other_process(part: str) -> subprocess.Popen[bytes]:
    """``python -m vrik.warm`` with this vrik, whatever folder the user is in."""
    home = str(Path(__file__).resolve().parent.parent)
    path = os.pathsep.join(filter(None, (home, os.environ.get("PYTHONPATH"))))
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "vrik.warm", part],
        env={**os.environ, "PYTHONPATH": path},
        stdin=subprocess.PIPE,  # closed with this process, however it ends
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def _mark() -> Path:
    """An empty file that says the cache holds everything for this code, Python and numba."""
    return jit.cache_folder() / f"ready-{jit.fingerprint()}"


def _standing_person() -> Calibration:
    offsets = np.zeros((len(ROLES), 3))
    return Calibration(BodyModel.average(1.7), {"head": "head"}, offsets, quat.identity(len(ROLES)))


def _standing_frames() -> list[TrackerFrame]:
    devices = (TrackedDevice("head", DeviceClass.HMD, "head"),)
    head = BodyModel.average(1.7).tpose[BONE["head"]][None].copy()
    return [
        TrackerFrame(
            i * 10_000_000, devices, head, quat.identity(1), np.ones(1, np.bool_), np.full(1, 200, np.int64)
        )
        for i in range(3)
    ]


def _end(process: subprocess.Popen[bytes]) -> None:
    """Stop it, if it still runs, and close its pipe."""
    process.terminate()
    process.wait()
    if process.stdin is not None:
        process.stdin.close()


def _main(part: str) -> None:
    """Fill the cache: "all" of it and mark it ready, or "backwards", as the second of two processes.

    Started by another process it ends with that one: its stdin is a pipe that nobody writes to.
    """
    if part:
        threading.Thread(target=_end_with_parent, daemon=True).start()
    jit.run_plain(True)
    _run_all()
    jit.compile_entries(backwards=part == "backwards")
    if part != "backwards":
        _mark().touch()


def _end_with_parent() -> None:
    while os.read(0, 1024):  # unbuffered: a lock held here would abort the interpreter's own end
        pass
    os._exit(1)


if __name__ == "__main__":
    _main(sys.argv[1] if len(sys.argv) > 1 else "")
