"""A recording played through the pipeline into streams and a page, as ``replay`` and ``demo`` do it."""

from __future__ import annotations

import json
import sys
import time
import webbrowser
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from vrik.cli import console, show
from vrik.cli.app import Terminated
from vrik.cli.options import PersonOptions
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


def play(session: Session) -> int:
    """Play it, show how it goes, and sum it up. Ctrl-C and SIGTERM end it cleanly, with the page written."""
    targets = [parse_target(url) for url in session.to or (DEFAULT_TARGET,)]
    _check_page(session)
    from recordings import ReplayClock
    from vrik.loop import Loop
    from vrik.pipeline import Pipeline
    from vrik.sinks.page import PageSink
    from vrik.sources.recording import RecordingSource

    clock = ReplayClock(session.speed)
    source = RecordingSource(session.path)
    calibration = session.person.measure(source)
    for note in (*source.recording.info.notes, *calibration.notes):
        console.say(f"note: {note}")
    streams = _open(targets, calibration.body)
    page = None
    if session.page is not None:
        page = PageSink(session.page, calibration.body, title=session.title, roles=calibration.roles)
    loop = Loop(Pipeline(calibration, session.pipeline), [*streams, *([page] if page else [])], clock)
    ended: BaseException | None = None
    try:
        with _kernels(session) as warming, _shown(session, loop, calibration) as every_frame:

            def after_frame() -> None:
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


def _check_page(session: Session) -> None:
    """Find out before the session, not after it, that the page has no place."""
    if session.page is None:
        return
    folder = session.page.parent
    if session.page.is_dir() or not folder.is_dir():
        what = "is a folder" if session.page.is_dir() else f"cannot be written: there is no folder {folder}"
        raise UsageError(f"the page {session.page} {what}; name a file such as body.html")


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
    if session.json or session.plain or not sys.stdout.isatty():
        every_s = JSON_EVERY_S if session.json else LOG_EVERY_S
        due = time.monotonic() + every_s

        def after_frame() -> None:
            nonlocal due
            if time.monotonic() >= due:
                due = time.monotonic() + every_s
                _print_status(session, loop, calibration)

        yield after_frame
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
