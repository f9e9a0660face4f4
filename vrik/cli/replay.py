"""``vrik replay``: a recording, played to avatar programs as if it were live."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, UseAppendAction, arg

from vrik.cli.options import Columns, PersonOptions, plain_title
from vrik.cli.session import DEFAULT_TARGET, Session, play
from vrik.config import PipelineConfig

PAGE = Path("vrik-replay.html")


@dataclass(frozen=True, slots=True)
class Config:
    """Play a recording: solve it frame by frame at its own pace and stream the skeleton."""

    file: Annotated[Positional[Path], arg(metavar="FILE")]
    """Recording of any kind that vrik reads."""

    to: Annotated[UseAppendAction[tuple[str, ...]], arg(metavar="URL")] = ()
    """Where to send, for example vmc://127.0.0.1:39539?rate=60; may be given several times."""

    speed: float = 1.0
    """1 as recorded, 2 twice as fast, 0 as fast as possible."""

    page: Annotated[Path | None, arg(metavar="FILE.html")] = None
    """HTML page of the moving body to write, instead of vrik-replay.html."""

    no_page: bool = False
    """Write no page."""

    open: bool = False
    """Open the page in the browser at the end."""

    plain: bool = False
    """Lines instead of a live table."""

    json: bool = False
    """One JSON object a line instead of the table; the last one sums up."""

    columns: Columns = None
    """For a table of numbers: the file that says what its columns hold, else one that lies beside it."""

    person: Annotated[PersonOptions, arg(name="")] = field(default_factory=PersonOptions)
    """Who is in the recording."""

    pipeline: Annotated[PipelineConfig, arg(name="")] = field(default_factory=PipelineConfig)
    """Settings of the stages."""


def run(config: Config) -> int:
    """Play the file."""
    return play(
        Session(
            config.file,
            plain_title(config.file),
            config.to or (DEFAULT_TARGET,),
            config.speed,
            None if config.no_page else config.page or PAGE,
            config.page is not None,
            config.open,
            config.plain,
            config.json,
            config.person,
            config.pipeline,
            config.columns,
        )
    )
