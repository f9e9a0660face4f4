"""``vrik inspect``: what a recording holds, as a table for a person or as JSON for a program."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tyro.conf import Positional, arg

from vrik.cli import console
from vrik.cli.options import Columns

if TYPE_CHECKING:
    from rich.table import Table

    from recordings.inspect_report import InspectReport

KINDS = {
    "HMD": "headset",
    "CONTROLLER": "controller",
    "GENERIC_TRACKER": "tracker",
    "TRACKING_REFERENCE": "base station",
}
"""OpenVR's device classes in plain words."""


@dataclass(frozen=True, slots=True)
class Config:
    """Say what a recording holds: devices, rates, gaps, lost tracking, heights, and what is odd."""

    file: Annotated[Positional[Path], arg(metavar="FILE")]
    """Recording of any kind that vrik reads; its content tells which."""

    columns: Columns = None
    """For a table of numbers: the file that says what its columns hold, else one that lies beside it."""

    json: bool = False
    """Print one JSON document instead of a table."""


def run(config: Config) -> int:
    """Look the file over and print what was found."""
    from recordings.inspect import inspect

    with console.progress(f"reading {config.file}") as at:
        report = inspect(config.file, config.columns, at)
    if config.json:
        console.print_json(report.to_json())
        return 0
    out = console.stdout_console()
    out.print("\n".join(summary(report)), soft_wrap=True)
    for table in tables(report) if report.devices else []:
        out.print()
        out.print(table)
    for title, lines in (
        ("met while reading", [f"{name}: {count}" for name, count in report.counts.items()]),
        ("notes", report.notes),
        ("odd", report.odd or ["nothing"]),
    ):
        if lines:
            out.print("\n".join(["", f"{title}:", *(f"  {line}" for line in lines)]), soft_wrap=True)
    return 0


def summary(report: InspectReport) -> list[str]:
    """What holds for the whole recording, line by line."""
    frames = console.many(report.frames, "frame")
    lines = [
        f"{report.path}",
        f"  format      {report.format}",
        f"  length      {frames}, {report.duration_s:.1f} s, {_rate(report.rate_hz)}",
        f"  gaps        {_gaps(report)}",
        f"  player      {report.player_id}, space {report.space_id}",
    ]
    if math.isfinite(report.head_height_m):
        lines.append(f"  head        {report.head_height_m:.2f} m high when standing")
    if report.stature_m is not None:
        lines.append(f"  stature     {report.stature_m:.2f} m, as the file states")
    if report.calibration_frames:
        lines.append(f"  T-pose      {console.many(report.calibration_frames, 'frame')}")
    return lines


def tables(report: InspectReport) -> list[Table]:
    """How well each device was tracked, and where it was; each fits 80 columns."""
    tracking = _table("device", "kind", "worn as", "tracked", "losses", "longest", "no pose", "jumps")
    movement = _table("device", "lowest", "median", "highest", "path", "extent", "from head", "farthest")
    for d in report.devices:
        longest = f"{d.longest_loss_s:.2f} s" if d.losses else "-"
        tracked = f"{100.0 if d.valid_share == 1.0 else min(99.9, 100.0 * d.valid_share):.1f} %"
        kind = KINDS.get(d.device_class, d.device_class)
        tracking.add_row(
            d.serial,
            kind,
            d.role or "-",
            tracked,
            str(d.losses),
            longest,
            str(d.placeholders),
            str(d.jumps),
        )
        heights = (d.height_min_m, d.height_median_m, d.height_max_m)
        lengths = (*heights, d.travelled_m, d.extent_m, d.head_distance_m, d.farthest_m)
        movement.add_row(d.serial, *(_metres(length) for length in lengths))
    return [tracking, movement]


def _table(name: str, *titles: str) -> Table:
    """Words to the left, figures to the right."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column(name, overflow="fold")
    for title in titles:
        words = title in ("kind", "worn as")
        table.add_column(title, justify="left" if words else "right", no_wrap=True)
    return table


def _gaps(report: InspectReport) -> str:
    text = f"{report.gaps}, the longest {report.longest_gap_s:.2f} s" if report.gaps else "none"
    again = console.many(report.repeated_times, "frame")
    return f"{text}; {again} with the time of the one before" if report.repeated_times else text


def _rate(rate_hz: float) -> str:
    return f"{rate_hz:.1f} Hz" if rate_hz > 0.0 else "no rate"


def _metres(length_m: float) -> str:
    return f"{length_m:.2f} m" if math.isfinite(length_m) else "-"
