"""``vrik convert``: the same recording in another format, and what the other format could not hold."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tyro.conf import Positional

from vrik.cli import console


@dataclass(frozen=True, slots=True)
class Config:
    """Write a recording in another format; the ending of OUT says which: .mcap, .npz or .jsonl."""

    source: Positional[Path]
    """Recording of any kind that vrik reads."""

    target: Positional[Path]
    """File to write. It appears once it is complete."""

    json: bool = False
    """Print one JSON document about what was done."""


def run(config: Config) -> int:
    """Convert, then say what was written and what was left out."""
    from recordings.convert import convert

    with console.busy(f"writing {config.target}"):
        report = convert(config.source, config.target)
    if config.json:
        console.print_json(report.to_json())
        return 0
    print(f"{report.target}: {report.frames} frames of {report.devices} devices as {report.target_format}")
    for title, sentences in (("left out", report.left_out), ("note", report.notes)):
        for sentence in sentences:
            print(f"  {title}: {sentence}")
    return 0
