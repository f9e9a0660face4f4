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
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from vrik.cli.stop import stop_if_asked

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as Bar

BAR_AFTER_S = 1.0
"""Work that takes less time than this shows no progress bar. [s]"""

REDRAW_S = 0.1
"""A progress bar moves this often. [s]"""


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

    class ResultConsole(Console):
        """Leaves a reader that has gone (``| head``) to the exit codes; rich would end the program with 1."""

        def on_broken_pipe(self) -> None:
            raise  # rich calls this while it handles the BrokenPipeError

    width = None if sys.stdout is not None and sys.stdout.isatty() else 120
    return ResultConsole(highlight=False, emoji=False, markup=False, width=width)


def stderr_console() -> Console:
    """For progress."""
    from rich.console import Console

    return Console(stderr=True, highlight=False, emoji=False, markup=False)


class Progress(Protocol):
    """What :func:`progress` yields."""

    def __call__(self, done: int, total: int | None = None) -> None:
        """Say how many steps are done, and of how many, once that is known."""


@contextmanager
def progress(title: str, total: int | None = None) -> Iterator[Progress]:
    """A bar on stderr once the work takes over a second; nothing where stderr is no terminal.

    It moves from side to side until the number of steps is known, and then shows the time left. When the
    steps or their number begin anew, so does the time left.

    Args:
        title: What is being done.
        total: How many steps there are, when it is known.

    Yields:
        ``at(done, total)``: call it with the number of steps done so far.
    """
    if sys.stderr is None or not sys.stderr.isatty():
        yield lambda done, total=None: stop_if_asked()
        return
    bar = _bar(title, total)
    task = bar.task_ids[0]
    timer = threading.Timer(BAR_AFTER_S, bar.start)
    timer.daemon = True
    timer.start()
    shown = 0.0

    def at(done: int, total: int | None = None) -> None:
        nonlocal shown
        stop_if_asked()
        now = time.monotonic()
        if done == total or now - shown >= REDRAW_S:  # called a hundred thousand times a second
            shown = now
            if done < bar.tasks[0].completed:
                bar.reset(task, total=total)
            bar.update(task, completed=done, total=total or bar.tasks[0].total)

    try:
        yield at
    finally:
        timer.cancel()
        timer.join()
        bar.stop()


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """A bar for whatever inside takes its time to read a recording."""
    from recordings.base import listening

    with progress(f"reading {path}") as at, listening(at):
        yield


def warm_up() -> None:
    """Make all kernels ready; says so only when they really have to be compiled."""
    from vrik import jit
    from vrik.warm import warm_up as prepare

    bars: list[Bar] = []
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


def _bar(title: str, total: int | None) -> Bar:
    from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
    from rich.text import Text

    class Steps(ProgressColumn):
        """Done and all, once all is known."""

        def render(self, task: Task) -> Text:
            known = task.total is not None
            return Text(f"{int(task.completed)}/{int(task.total or 0)}" if known else "")

    bar = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        Steps(),
        TimeRemainingColumn(elapsed_when_finished=True),
        console=stderr_console(),
        transient=True,
    )
    bar.add_task(title, total=total)
    return bar


def many(count: int, thing: str) -> str:
    """A number with its noun: 1 frame, 2 frames."""
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"


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
