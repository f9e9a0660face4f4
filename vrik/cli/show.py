"""How a running session looks: a live table for a person, lines for a log, JSON for a program."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import RenderableType

    from vrik.frames import Calibration
    from vrik.loop import Status
    from vrik.sinks import SinkStats

STATE_WORDS = {0: "absent", 1: "ok", 2: "held", 3: "lost", 4: "returning"}
"""``DeviceState`` in plain words."""


def table(status: Status, calibration: Calibration, title: str) -> RenderableType:
    """The live view: what comes in, how well it is met, what goes out."""
    from rich.console import Group
    from rich.text import Text

    devices = _grid("device", "worn as", "state", "tracked", "error now", "mean", "worst")
    for row, serial, role in worn(status, calibration):
        errors = [f"{mm:.1f} mm" if math.isfinite(mm) else "-" for mm in status.reach_error_mm[row]]
        state = STATE_WORDS[int(status.state[row])]
        devices.add_row(serial, role, state, f"{100.0 * status.tracked_share[row]:.1f} %", *errors)
    streams = _grid("stream", "frames", "left out", "datagrams", "kB", "refused", "errors", "receiver")
    for sink in network(status):
        kilobytes = f"{sink.bytes / 1000.0:.0f}"
        numbers = (sink.frames, sink.dropped, sink.datagrams)
        other = sink.errors - sink.refused
        streams.add_row(
            sink.url, *map(str, numbers), kilobytes, str(sink.refused), str(other), receiver(sink)
        )
    lines: list[RenderableType] = [Text(f"{title}   {headline(status)}"), devices]
    if network(status):
        lines.append(streams)
    return Group(*lines)


def headline(status: Status) -> str:
    """Time, rate and effort in one line."""
    solve, late = status.solve_ms, status.late_ms
    text = (
        f"{status.played_s:.1f} s   {status.rate_hz:.0f} frames/s   "
        f"solving {solve[0]:.2f} ms (99 %: {solve[1]:.2f})   late {late[0]:.1f} ms (99 %: {late[1]:.1f})"
    )
    return text + ("   compiling in the background" if status.plain else "")


def line(status: Status, calibration: Calibration) -> str:
    """The same in one line, for logs."""
    states = " ".join(
        f"{role}={STATE_WORDS[int(status.state[row])]}" for row, _, role in worn(status, calibration)
    )
    sent = " ".join(
        f"{sink.url}: {sink.datagrams} datagrams, {sink.errors} errors, {receiver(sink)}"
        for sink in network(status)
    )
    return "   ".join(part for part in (headline(status), states, sent) if part)


def document(status: Status, calibration: Calibration) -> dict[str, Any]:
    """The same as plain values."""
    return {
        "frames": status.frames,
        "skipped": status.skipped,
        "played_s": status.played_s,
        "elapsed_s": status.elapsed_s,
        "rate_hz": status.rate_hz,
        "solve_ms": dict(zip(("p50", "p99", "max"), status.solve_ms.tolist(), strict=True)),
        "late_ms": dict(zip(("p50", "p99", "max"), status.late_ms.tolist(), strict=True)),
        "compiling": status.plain,
        "devices": [
            {
                "serial": serial,
                "role": role,
                "state": STATE_WORDS[int(status.state[row])],
                "tracked_share": float(status.tracked_share[row]),
                "reach_error_mm": dict(
                    zip(("now", "mean", "worst"), status.reach_error_mm[row].tolist(), strict=True)
                ),
            }
            for row, serial, role in worn(status, calibration)
        ],
        "streams": [
            {name: getattr(sink, name) for name in sink.__dataclass_fields__}
            | {"errors": sink.errors, "receiver": receiver(sink)}
            for sink in network(status)
        ],
    }


def summary(status: Status, calibration: Calibration, page: Path | None) -> list[str]:
    """What a person wants to know at the end, line by line."""
    lines = [
        f"{status.frames} frames, {status.played_s:.1f} s of recording in {status.elapsed_s:.1f} s"
        + (f"; {status.skipped} left out while kernels were compiled" if status.skipped else ""),
        f"body: {calibration.body.stature_m:.2f} m; measured: {', '.join(calibration.measured) or 'nothing'};"
        f" assumed: {', '.join(calibration.assumed) or 'nothing'}",
    ]
    for sink in network(status):
        lines.append(
            f"{sink.url} ({sink.address}): {sink.datagrams} datagrams, {sink.errors} send errors,"
            f" {receiver(sink)}"
        )
        if sink.refusing:
            lines.append("  Start an avatar program that receives VMC on that port, then run this again.")
    if page is not None:
        lines.append(f"page: {page}")
    return lines


def network(status: Status) -> list[SinkStats]:
    """The sinks that send; the page is not one of them."""
    return [sink for sink in status.sinks if "://" in sink.url]


def worn(status: Status, calibration: Calibration) -> list[tuple[int, str, str]]:
    """Row, serial number and role of each worn device, in the order of the roles."""
    from vrik.frames import ROLE

    return sorted((ROLE[role], serial, role) for serial, role in calibration.roles.items())


def receiver(sink: SinkStats) -> str:
    """Whether somebody listens, as far as UDP can tell."""
    if sink.frames == 0:
        return "nothing sent yet"
    if sink.refusing:
        return "nobody listens"
    return "not refusing"


def _grid(name: str, *titles: str) -> Any:
    from rich import box
    from rich.table import Table

    grid = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    grid.add_column(name, overflow="fold")
    for title in titles:
        words = title in ("worn as", "state", "receiver")
        grid.add_column(title, justify="left" if words else "right", no_wrap=True)
    return grid
