"""``vrik convert``: the same recording in another format, and what the other format could not hold."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from vrik.cli import console
from vrik.cli.options import Columns


@dataclass(frozen=True, slots=True)
class Config:
    """Write a recording in another format; the ending of OUT says which: .mcap, .npz or .jsonl."""

    source: Annotated[Positional[Path], arg(metavar="IN")]
    """Recording of any kind that vrik reads."""

    target: Annotated[Positional[Path], arg(metavar="OUT")]
    """File to write. It appears once it is complete."""

    columns: Columns = None
    """For a table of numbers: the file that says what its columns hold, else one that lies beside it."""

    json: bool = False
    """Print one JSON document about what was done."""


def run(config: Config) -> int:
    """Convert, then say what was written and what was left out."""
    from recordings.convert import NAMED_BY_ROLE, convert

    named = config.target.suffix.lower() in NAMED_BY_ROLE
    roles = _roles(config.source, config.columns) if named else {}
    with console.progress(f"writing {config.target}") as at:
        report = convert(config.source, config.target, roles, config.columns, at)
    if config.json:
        console.print_json(report.to_json())
        return 0
    frames, devices = console.many(report.frames, "frame"), console.many(report.devices, "device")
    print(f"{report.target}: {frames} of {devices} as {report.target_format}")
    if report.left_out:
        print(f"  lost: {'; '.join(report.left_out)}")
    for note in report.notes:
        print(f"  note: {note}")
    return 0


def _roles(source: Path, columns: Path | None) -> dict[str, str]:
    """Who wears what, found from the movement, where the file does not say; {} when that cannot be told."""
    from vrik.errors import CalibrationError, NoUsableFramesError
    from vrik.sources.recording import RecordingSource

    with console.reading(source):
        recording = RecordingSource(source, columns)
        if all(device.role for device in recording.recording.info.devices):
            return {}
        try:
            return dict(recording.calibrate().roles)
        except (CalibrationError, NoUsableFramesError):
            return {}
