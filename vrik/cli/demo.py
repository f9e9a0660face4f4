"""``vrik demo``: a bundled session, played to an avatar program and onto a page. Needs no hardware."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import UseAppendAction, arg

from vrik.cli.session import DEFAULT_TARGET, Session, play

PAGE = Path("vrik-demo.html")


@dataclass(frozen=True, slots=True)
class Config:
    """Play a bundled session: a whole body from headset and controllers, sent to VMC on this computer."""

    points: Literal[3, 6] = 3
    """3: headset and two controllers. 6: with trackers on waist and feet as well."""

    to: Annotated[UseAppendAction[tuple[str, ...]], arg(metavar="URL")] = ()
    """Where to send, instead of vmc://127.0.0.1:39539; may be given several times."""

    speed: float = 1.0
    """1 as recorded, 2 twice as fast, 0 as fast as possible."""

    page: Annotated[Path, arg(metavar="FILE.html")] = PAGE
    """HTML page of the moving body to write."""

    open: bool = False
    """Open the page in the browser at the end."""

    plain: bool = False
    """Lines instead of a live table."""

    json: bool = False
    """One JSON object a line instead of the table; the last one sums up."""


def run(config: Config) -> int:
    """Play the session."""
    from recordings.samples import sample

    return play(
        Session(
            sample(f"session_{config.points}points"),
            f"vrik demo, {config.points} points",
            config.to or (DEFAULT_TARGET,),
            config.speed,
            config.page,
            config.page != PAGE,
            config.open,
            config.plain,
            config.json,
        )
    )
