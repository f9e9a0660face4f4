"""What commands share to talk to a person or a program: messages, JSON, tables, progress.

Results go to stdout; messages and progress go to stderr, so that a pipe gets results only.
"""

from __future__ import annotations

import io
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

BAR_AFTER_S = 1.0
"""Work that takes less time than this shows no progress bar. [s]"""


def tolerate_any_console() -> None:
    """Letters that the console's encoding lacks are printed as escapes instead of ending the program."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def fail(sentence: str, exit_code: int) -> int:
    """Say on stderr, in one line, why the command ends; returns ``exit_code``.

    Inside an ``except`` block, ``VRIK_TRACEBACK=1`` prints the traceback first.
    """
    if os.environ.get("VRIK_TRACEBACK") == "1" and sys.exc_info()[0] is not None:
        import traceback

        traceback.print_exc()
    say(sentence)
    return exit_code


def say(sentence: str) -> None:
    """One line on stderr for the person at the console."""
    if sys.stderr is None:  # closed: print would take stdout instead
        return
    print("vrik:", " ".join(sentence.split()), file=sys.stderr, flush=True)


def print_json(document: Any) -> None:
    """One JSON document on stdout: arrays become lists, what is not finite becomes null."""
    print(json.dumps(plain(document), indent=2, allow_nan=False))


def stdout_console() -> Console:
    """For tables: colours and lines only where the console can show them, 120 letters wide in a pipe."""
    from rich.console import Console

    width = None if sys.stdout is not None and sys.stdout.isatty() else 120
    return Console(highlight=False, emoji=False, markup=False, width=width)


def stderr_console() -> Console:
    """For progress."""
    from rich.console import Console

    return Console(stderr=True, highlight=False, emoji=False, markup=False)


@contextmanager
def progress(title: str, total: int | None = None) -> Iterator[Callable[[int], None]]:
    """A bar on stderr for work that takes over a second; silent where stderr is no terminal.

    Args:
        title: What is being done.
        total: How many steps there are, when it is known.

    Yields:
        ``at(done)``: call it with the number of steps done so far.
    """
    begun = time.monotonic()
    bars: list[Progress] = []

    def at(done: int) -> None:
        if bars:
            bars[0].update(bars[0].task_ids[0], completed=done)
        elif time.monotonic() - begun >= BAR_AFTER_S and sys.stderr is not None and sys.stderr.isatty():
            bars.append(_bar(title, total))
            bars[0].start()
            bars[0].update(bars[0].task_ids[0], completed=done)

    try:
        yield at
    finally:
        for bar in bars:
            bar.stop()


@contextmanager
def busy(title: str) -> Iterator[None]:
    """A moving bar on stderr once the work takes over a second, for work that cannot say how far it is."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield
        return
    bar = _bar(title, None)
    timer = threading.Timer(BAR_AFTER_S, bar.start)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        bar.stop()


def warm_up() -> None:
    """Make all kernels ready; says so only when they really have to be compiled."""
    from vrik import jit
    from vrik.warm import warm_up as prepare

    bars: list[Progress] = []
    told = False
    title = "compiling, only this once"
    if not jit.cache_is_writable():
        title = f"compiling; {jit.cache_folder()} cannot keep the result, set VRIK_CACHE_DIR to a folder"

    def on_progress(count: int, kernel_name: str) -> None:
        nonlocal told
        if sys.stderr is not None and sys.stderr.isatty():
            if not bars:
                bars.append(_bar(title, len(jit.kernels())))
                bars[0].start()
            bars[0].update(bars[0].task_ids[0], completed=count, total=max(count, len(jit.kernels())))
        elif not told:
            told = True
            say(f"{title}; it takes some 20 s")

    try:
        prepare(on_progress)
    finally:
        for bar in bars:
            bar.stop()


def _bar(title: str, total: int | None) -> Progress:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    steps = [] if total is None else [MofNCompleteColumn()]
    bar = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        *steps,
        TimeElapsedColumn(),
        console=stderr_console(),
        transient=True,
    )
    bar.add_task(title, total=total)
    return bar


def plain(value: Any) -> Any:
    """Numbers, strings, lists and dicts only."""
    if hasattr(value, "tolist"):  # numpy arrays and numbers
        value = value.tolist()
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float):
        return value if value - value == 0.0 else None
    if value is None or isinstance(value, str | int):
        return value
    return str(value)
