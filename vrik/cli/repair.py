"""``vrik repair``: saves what is whole in a damaged recording, and says how much that is."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tyro.conf import Positional, arg

from vrik.cli import console

if TYPE_CHECKING:
    from recordings.repair import RepairReport

HOW = {
    "statistics": "as the file states how many it held",
    "sequence numbers": "as the gaps in their numbers say",
    "index": "as the index of the damaged chunks says",
    "bytes": "only bytes can be told",
}
"""Where the number of lost frames comes from, in words."""


@dataclass(frozen=True, slots=True)
class Config:
    """Save every undamaged frame of one of vrik's own recordings that was cut, garbled or never closed."""

    source: Annotated[Positional[Path], arg(metavar="IN")]
    """Recording of vrik's own format. It stays as it is."""

    target: Annotated[Positional[Path], arg(metavar="OUT")]
    """File to write, ending in .mcap. It appears once it is complete."""

    json: bool = False
    """Print one JSON document about what was saved and lost."""


def run(config: Config) -> int:
    """Repair, then say what was saved and what was lost."""
    from recordings.repair import repair

    with console.progress(f"repairing {config.source}") as at:
        report = repair(config.source, config.target, at)
    if config.json:
        console.print_json(report.to_json())
    else:
        print("\n".join(sentences(report)))
    return 0


def sentences(report: RepairReport) -> list[str]:
    """The report, line by line."""
    saved = [f"{report.frames} frames of {report.devices} devices"]
    for count, what in (
        (report.solved_frames, "solved frames"),
        (report.tpose_frames, "T-pose frames"),
        (report.events, "events"),
    ):
        if count:
            saved.append(f"{count} {what}")
    lines = [f"{report.target}: {report.source} {'is undamaged' if report.undamaged else 'was damaged'}"]
    lines.append(f"  saved: {', '.join(saved)}")
    if not report.undamaged:
        told = report.frames_lost or (report.lost_by == "bytes" and report.bytes_lost)
        lost = [f"{report.frames_lost} frames" + (f" ({HOW[report.lost_by]})" if told else "")]
        if report.solved_frames_lost:
            lost.append(f"{report.solved_frames_lost} solved frames")
        if report.bytes_lost:
            lost.append(f"{report.bytes_lost} bytes")
        lines.append(f"  lost: {', '.join(lost)}")
    if report.chunks_damaged:
        lines.append(f"  damaged chunks: {report.chunks_damaged}")
    if report.end_unknown:
        lines.append("  the file lacks its end: what may have followed the last frame is not known")
    elif report.truncated:
        lines.append("  the file lacked its index")
    if report.messages_left_out:
        lines.append(f"  left out: {report.messages_left_out} messages that are unreadable or not vrik's")
    return lines
