"""A recording played through the pipeline into streams and a page, as ``replay`` and ``demo`` do it."""

from __future__ import annotations

import json
import sys
import tempfile
import threading
import webbrowser
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from vrik.cli import console, show
from vrik.cli.options import PersonOptions, check_settings
from vrik.cli.stop import Terminated, stop_if_asked
from vrik.config import PipelineConfig
from vrik.errors import NetworkError, UsageError, VrikError
from vrik.sinks import Sink, Target, open_sink, parse_target

if TYPE_CHECKING:
    from vrik.body import BodyModel
    from vrik.frames import Calibration
    from vrik.loop import Loop
    from vrik.sinks.page import PageSink
    from vrik.warm import Warming

DEFAULT_TARGET = "vmc://127.0.0.1:39539"
"""Where avatar programs listen for VMC unless they are told otherwise."""

REFRESH_HZ = 4.0
LOG_EVERY_S = 5.0
JSON_EVERY_S = 1.0
STUCK_S = 1.0
"""A session that is interrupted waits this long for a line that nobody reads. [s]"""


@dataclass(frozen=True, slots=True)
class Session:
    """What to play and where to.

    Args:
        path: The recording.
        title: Heading of the table and of the page.
        to: Target URLs.
        speed: 1 as recorded, 0 without waiting.
        page: HTML page to write; None for none.
        page_wanted: Whether the user named the page: then failing to write it is an error.
        open_page: Open it in the browser at the end.
        plain: Lines instead of a table.
        json: One JSON object a line on stdout.
    """

    path: Path
    title: str
    to: tuple[str, ...]
    speed: float = 1.0
    page: Path | None = None
    page_wanted: bool = False
    open_page: bool = False
    plain: bool = False
    json: bool = False
    person: PersonOptions = field(default_factory=PersonOptions)
    pipeline: PipelineConfig = field(default_factory=PipelineConfig)
    columns: Path | None = None


def play(session: Session) -> int:
    """Play it, show how it goes, and sum it up. Ctrl-C and SIGTERM end it cleanly, with the page written."""
    targets = [parse_target(url) for url in session.to or (DEFAULT_TARGET,)]
    check_settings(session.pipeline)
    page_path = _page_path(session)
    from recordings import ReplayClock
    from vrik.loop import Loop
    from vrik.pipeline import Pipeline
    from vrik.sinks.page import PageSink
    from vrik.sources.recording import RecordingSource

    clock = ReplayClock(session.speed)
    with console.reading(session.path):
        source = RecordingSource(session.path, session.columns)
        calibration = session.person.measure(source)
    for note in (*source.recording.info.notes, *calibration.notes):
        console.say(f"note: {note}")
    streams = _open(targets, calibration.body)
    page = None
    if page_path is not None:
        page = PageSink(page_path, calibration.body, title=session.title, roles=calibration.roles)
    loop = Loop(Pipeline(calibration, session.pipeline), [*streams, *([page] if page else [])], clock)
    ended: BaseException | None = None
    try:
        with _kernels(session) as warming, _shown(session, loop, calibration) as every_frame:
            loop.plain = warming is not None and warming.compiling

            def after_frame() -> None:
                stop_if_asked()
                if warming is not None and warming.compiling:
                    warming.poll()
                    loop.plain = warming.compiling
                every_frame()

            loop.run(source.frames(), after_frame)
    except (KeyboardInterrupt, Terminated) as stop:
        ended = stop
    finally:
        for stream in streams:
            stream.close()
    problem = _finish(session, loop, calibration, page)
    if ended is not None:
        raise ended
    if problem is not None:
        raise problem
    return 0


def _page_path(session: Session) -> Path | None:
    """Where the page goes. Finds out before the session, not after it, that it has no place there.

    Returns:
        None for no page: not wanted, or, where the user named none, the usual place cannot be written.

    Raises:
        UsageError: If the page that the user named cannot be.
    """
    page = session.page
    if page is None:
        return None
    folder, why = page.parent, ""
    if page.is_dir():
        why = "it is a folder"
    elif not folder.is_dir():
        why = f"there is no folder {folder}"
    elif page.is_file() or not page.exists():  # else a pipe or a device
        try:
            tempfile.TemporaryFile(dir=folder).close()
        except OSError as error:
            why = error.strerror or str(error)
    if not why:
        return page
    sentence = f"cannot write the page {page}: {why}"
    if session.page_wanted:
        raise UsageError(f"{sentence}; name a file such as body.html, in a folder that can be written")
    console.say(f"{sentence}; playing without it")
    return None


def _open(targets: Sequence[Target], body: BodyModel) -> list[Sink]:
    """Open all targets; one that is unknown is an error only when no other works.

    Raises:
        NetworkError: If none can be opened.
    """
    sinks: list[Sink] = []
    problems: list[NetworkError] = []
    for target in targets:
        try:
            sinks.append(open_sink(target, body))
        except NetworkError as error:
            problems.append(error)
    if problems and not sinks:
        raise problems[0]
    for problem in problems:
        console.say(f"{problem}; the other targets go on")
    return sinks


@contextmanager
def _kernels(session: Session) -> Iterator[Warming | None]:
    """Kernels ready at once: plain Python while they compile, or compiled first where no time counts."""
    if session.speed == 0.0:
        console.warm_up()
        yield None
        return
    from vrik.warm import Warming

    with Warming() as warming:
        if warming.compiling and not session.json:
            console.say("first run: playing in plain Python while a second process compiles")
        yield warming


@contextmanager
def _shown(session: Session, loop: Loop, calibration: Calibration) -> Iterator[Callable[[], None]]:
    """Show how the session goes; yields what to call after each frame."""
    if session.json or session.plain or sys.stdout is None or not sys.stdout.isatty():
        with _Lines(
            JSON_EVERY_S if session.json else LOG_EVERY_S, lambda: _print_status(session, loop, calibration)
        ) as lines:
            yield lines.check
        return
    from rich.live import Live

    live = Live(
        console=console.stdout_console(),
        get_renderable=lambda: show.table(loop.status(), calibration, session.title),
        refresh_per_second=REFRESH_HZ,
        transient=True,
    )
    with live:
        yield lambda: None


class _Lines:
    """Prints now and then from a thread of its own, so that a slow reader never holds up the stream."""

    def __init__(self, every_s: float, write: Callable[[], None]) -> None:
        self._every_s = every_s
        self._write = write
        self._over = threading.Event()
        self._problem: Exception | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        while not self._over.wait(self._every_s):
            try:
                self._write()
            except Exception as problem:  # raised where the session runs, as if it had happened there
                self._problem = problem
                return

    def check(self) -> None:
        """Raise what ended the thread, such as a reader that has gone."""
        problem, self._problem = self._problem, None
        if problem is not None:
            raise problem

    def __enter__(self) -> _Lines:
        self._thread.start()
        return self

    def __exit__(self, kind: object, *failure: object) -> None:
        self._over.set()
        self._thread.join(None if kind is None else STUCK_S)


def _print_status(session: Session, loop: Loop, calibration: Calibration) -> None:
    status = loop.status()
    if session.json:
        document = {"event": "status", **show.document(status, calibration)}
        print(json.dumps(console.plain(document), allow_nan=False), flush=True)
    else:
        print(show.line(status, calibration), flush=True)


def _finish(
    session: Session, loop: Loop, calibration: Calibration, page: PageSink | None
) -> VrikError | None:
    """Write the page and the summary; returns what went wrong, if it matters."""
    problem: VrikError | None = None
    written: Path | None = None
    if page is not None and loop.status().frames:
        try:
            page.close()
            written = page.path.resolve()
        except VrikError as error:
            if session.page_wanted:
                problem = error
            else:
                console.say(f"{error}; nothing else is lost")
    if session.json:
        summary = {"event": "summary", **show.document(loop.status(), calibration)}
        summary |= {"page": str(written) if written else None, "stature_m": calibration.body.stature_m}
        print(json.dumps(console.plain(summary), allow_nan=False), flush=True)
    else:
        out = console.stdout_console()
        out.print(show.table(loop.status(), calibration, session.title))
        out.print("\n".join(show.summary(loop.status(), calibration, written)), soft_wrap=True)
    if written is not None and session.open_page:
        with suppress(webbrowser.Error):
            webbrowser.open(written.as_uri())
    return problem
