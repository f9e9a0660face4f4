"""The figures of ``bench_solvers`` as tables: for the docs, and for a terminal."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

BEGIN = "<!-- made by: python tools/bench_solvers.py --into docs/solvers.md -->"
END = "<!-- end of what was made -->"

USES = {
    "fabrik": "limbs, tails, tentacles; one pose from scratch with `restarts`; trees of chains",
    "ccd": "spines and tails with weights and limits; a place first of all",
    "dls": "place and rotation in motion, hinged robots, wishes beside the target; near singularities",
    "two_bone": "an arm or a leg with a hinge and a pole: exact, at once",
    "svd": "for comparison: short of the target near full stretch",
    "transpose": "for comparison: calm and slow",
}
"""When to use which, in the order of the tables."""

BAR_WITHIN = 0.999
"""Share of targets that must be met within 1 mm."""


def markdown(figures: Mapping[str, Any]) -> str:
    """All tables of docs/solvers.md."""
    rows = figures["reach"]
    cases, counts = figures["cases"], sorted({row["targets"] for row in rows}, reverse=True)
    often = " and ".join(f"{n:,}" for n in counts)
    fewer = " (the fewer for svd and transpose)" if len(counts) > 1 else ""
    parts = [
        _state(figures),
        _solvers(figures),
        "Targets met within 1 mm (and 0.01 rad where a rotation is asked for), cold / warm, %. "
        f"{often} targets for each cell{fewer}. Bold: below 99.9.",
        _by_case(rows, cases, lambda row: _percent(row["within"])),
        "What soft zones cost: met warm with the zones of the anatomical limits (8 degrees) / without, %:",
        _soft(figures["soft_zones"]),
        "99.9th percentile of the distance from tip to target, cold / warm, mm:",
        _by_case(rows, cases, lambda row: f"{1e3 * row['p999_miss_m']:.2f}"),
        "Time of a warm chain in the compiled loop, to 0.1 mm (and 0.001 rad), µs:",
        _warm(figures["warm_us"], cases),
        _worst(rows),
        "Speed and its bars; ratio: how much longer the same kernel takes as plain Python in the same run:",
        _times(figures["times"]),
        _together(figures["together"]),
        "Through the singularities (`tools/solver_scan.py`): quickest joint in rad per metre of target, "
        "and how far the tip then is from the nearest point it could be at:",
        _scan(figures["scan"]),
    ]
    return "\n\n".join(parts)


def text(figures: Mapping[str, Any]) -> str:
    """The same without marks of Markdown."""
    return markdown(figures).replace("**", "").replace("`", "")


def put_between(page: Path, made: str) -> None:
    """Replace what is between the two marks of a page; ValueError when they are not there."""
    before, begin, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{page} has no {BEGIN} before {END}")
    page.write_text(f"{before}{BEGIN}\n\n{made}\n\n{END}{after}", encoding="utf-8")


def _solvers(figures: Mapping[str, Any]) -> str:
    """One row a solver, over all its cases."""
    rows = []
    for solver, use in USES.items():
        own = [row for row in figures["reach"] if row["solver"] == solver]
        times = [case[solver] for case in figures["warm_us"].values() if solver in case]
        if not own:
            continue
        cold, warm = ([row for row in own if row["start"] == start] for start in ("cold", "warm"))
        met = [
            _span([_percent(r["within"]) for r in sorted(of, key=lambda r: r["within"])])
            for of in (cold, warm)
        ]
        miss = _span([f"{1e3 * v:.2g}" for v in sorted(row["median_miss_m"] for row in warm)])
        rows.append([f"`{solver}`", use, *met, miss, _span([f"{t:.1f}" for t in sorted(times)])])
    head = ["solver", "use it for", "met cold, %", "met warm, %", "median miss warm, mm", "warm, µs"]
    return _table(head, rows)


def _by_case(rows: Iterable[Mapping[str, Any]], cases: Mapping[str, str], cell: Callable[[Any], str]) -> str:
    found = {(row["case"], row["solver"], row["start"]): row for row in rows}

    def both(case: str, solver: str) -> str:
        pair = [found.get((case, solver, start)) for start in ("cold", "warm")]
        return " / ".join("" if row is None else cell(row) for row in pair) if any(pair) else ""

    return _table(
        ["", *USES], [[title, *(both(case, solver) for solver in USES)] for case, title in cases.items()]
    )


def _warm(times: Mapping[str, Mapping[str, float]], cases: Mapping[str, str]) -> str:
    def cell(case: str, solver: str) -> str:
        return f"{times[case][solver]:.1f}" if solver in times[case] else ""

    return _table(
        ["", *USES], [[title, *(cell(case, solver) for solver in USES)] for case, title in cases.items()]
    )


def _soft(rows: Sequence[Mapping[str, Any]]) -> str:
    found = {(row["case"], row["solver"]): row for row in rows}
    solvers = list(dict.fromkeys(row["solver"] for row in rows))

    def cell(case: str, solver: str) -> str:
        row = found[case, solver]
        return f"{_percent(row['within_soft'])} / {_percent(row['within_hard'])}"

    titles = dict.fromkeys(row["case"] for row in rows)
    return _table(["", *solvers], [[case, *(cell(case, solver) for solver in solvers)] for case in titles])


def _worst(rows: Sequence[Mapping[str, Any]]) -> str:
    excess, length = (max(row[name] for row in rows) for name in ("limit_excess_rad", "length_error_m"))
    broken, solved = (sum(row[name] for row in rows) for name in ("not_finite", "targets"))
    return (
        f"Over all {solved:,} solutions: no joint is outside of its limit by more than {excess:.0e} rad "
        f"(bar 1e-6), no bone is off its length by more than {length:.0e} m (bar 1e-9), {broken} hold a "
        "number that is not finite."
    )


def _times(rows: Sequence[Mapping[str, Any]]) -> str:
    def row(r: Mapping[str, Any]) -> list[str]:
        ratio = "" if r["plain_ratio"] is None else f"{r['plain_ratio']:.0f}"
        taken = "" if r["allocations"] is None else f"{r['allocations']:g}"
        return [
            r["work"],
            _us(r["median_us"]),
            _us(r["p99_us"]),
            ratio,
            taken,
            _us(r["bar_us"]),
            r["verdict"],
        ]

    head = ["work", "median, µs", "99 %, µs", "ratio", "memory blocks", "bar, µs", ""]
    return _table(head, [row(r) for r in rows])


def _together(found: Mapping[str, float]) -> str:
    return (
        f"Head and both hands of {found['poses']:.0f} random poses of a body, from three devices: all "
        f"three within 1 mm in {_percent(found['within_1mm'], 0.99)} % (bar 99 %), 99th percentile "
        f"{1e3 * found['p99_miss_m']:.2f} mm, worst {1e3 * found['worst_miss_m']:.2f} mm."
    )


def _scan(rows: Sequence[Mapping[str, Any]]) -> str:
    runs = dict.fromkeys(row["run"] for row in rows)
    found = {(row["run"], row["path"]): row for row in rows}

    def cells(run: str) -> list[str]:
        pair = [found[run, path] for path in ("reach", "axis")]
        return [
            value
            for row in pair
            for value in (f"{row['peak_rad_per_m']:.1f}", f"{1e3 * row['worst_error_m']:.2f}")
        ]

    head = ["", "full reach, rad/m", "tip error, mm", "past the shoulder, rad/m", "tip error, mm"]
    return _table(head, [[run, *cells(run)] for run in runs])


def _state(figures: Mapping[str, Any]) -> str:
    load = [f"{value:g}" for value in figures["load"] if value is not None]
    busy = f"; load {' at the start, '.join(load)} at the end" if len(load) == 2 else ""
    settings = "; ".join(f"{start}: {how}" for start, how in figures["settings"].items())
    return f"Measured on {figures['machine']}{busy}. Settings, {settings}."


def _percent(share: float, bar: float = BAR_WITHIN) -> str:
    """Never rounded up: 100 is all of them. Bold below the bar."""
    shown = f"{math.floor(1e5 * share + 1e-6) / 1e3:g}"
    return shown if share >= bar else f"**{shown}**"


def _us(value: float) -> str:
    return f"{value:,.0f}" if value >= 100.0 else f"{value:.3g}"


def _span(values: Sequence[str]) -> str:
    """Lowest to highest of sorted values; empty without any."""
    if not values:
        return ""
    return values[0] if values[0] == values[-1] else f"{values[0]} to {values[-1]}"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [list(head), ["---"] * len(head), *(list(row) for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
