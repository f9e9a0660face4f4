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
    """The report, line by line, then those of further recordings that stood behind its end."""
    state = "is undamaged" if report.undamaged else "was damaged"
    if report.recordings > 1:
        state = (
            f"held {report.recordings} recordings, one behind the other; they go on in time and are one now"
        )
    elif report.further:
        state = f"held {1 + len(report.further)} recordings, one behind the other; this is the first"
    lines = [f"{report.target}: {report.source} {state}", *_lines(report)]
    for number, further in enumerate(report.further, 2):
        lines.append(f"{further.target}: recording {number} in {report.source}; it is no continuation")
        lines.extend(_lines(further))
    return lines


def _lines(report: RepairReport) -> list[str]:
    """What was saved and lost of one recording."""
    saved = [f"{console.many(report.frames, 'frame')} of {console.many(report.devices, 'device')}"]
    for count, what in (
        (report.solved_frames, "solved frame"),
        (report.tpose_frames, "T-pose frame"),
        (report.events, "event"),
    ):
        if count:
            saved.append(console.many(count, what))
    lines = [f"  saved: {', '.join(saved)}"]
    if not report.undamaged:
        told = report.frames_lost or (report.lost_by == "bytes" and report.bytes_lost)
        lost = [console.many(report.frames_lost, "frame") + (f" ({HOW[report.lost_by]})" if told else "")]
        if report.solved_frames_lost:
            lost.append(console.many(report.solved_frames_lost, "solved frame"))
        if report.bytes_lost:
            lost.append(console.many(report.bytes_lost, "byte"))
        lines.append(f"  lost: {', '.join(lost)}")
    if report.start_damaged:
        lines.append("  its first bytes were damaged; they are right again")
    if report.goes_on:
        lines.append(
            "  messages stood behind an end record; another recording may begin there whose start is damaged"
        )
    if report.chunks_damaged:
        lines.append(f"  damaged chunks: {report.chunks_damaged}")
    if report.end_unknown:
        lines.append("  the file lacks its end: what may have followed the last frame is not known")
    elif report.truncated:
        lines.append("  the file lacked its index")
    if report.messages_left_out:
        left_out = console.many(report.messages_left_out, "message")
        lines.append(f"  left out, since unreadable or not vrik's: {left_out}")
    if report.attachments_left_out:
        lines.append(f"  left out, since not vrik's: attached {', '.join(report.attachments_left_out)}")
    return lines
