"""All speed figures that the README states, measured here and now.

    python tools/bench.py                     every part, about five minutes on two cores
    python tools/bench.py --only start vmc    some of them
    python tools/bench.py --json              one JSON document

Parts: ``start`` (help, first compilation, first datagram), ``pipeline`` (one step, reading),
``recordings`` (reading each kind of file), ``solvers`` (targets met and times; ``bench_solvers.py`` has more
targets and the tables of the docs), ``vmc`` (encoding a frame against python-osc).

Medians and percentiles; ratios are taken within one run, for shared machines are noisy.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tools import bench_pipeline, bench_recordings, bench_solvers, bench_start, bench_vmc, solver_table

PARTS: dict[str, Callable[[], dict[str, Any]]] = {
    "start": lambda: asdict(bench_start.measure(rounds=15)),
    "pipeline": bench_pipeline.measure,
    "recordings": bench_recordings.measure,
    "solvers": lambda: bench_solvers.measure(targets=5000),
    "vmc": lambda: bench_vmc.measure(rounds=300),
}


def main() -> int:
    """Measure and print; exit code 1 if the VMC bytes differ from python-osc's."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), help="parts to measure")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args()
    figures: dict[str, Any] = {"machine": _machine()}
    for part in options.only:
        figures[part] = PARTS[part]()
    if options.json:
        print(json.dumps(figures, indent=2))
    else:
        for part, values in figures.items():
            if part == "solvers":
                print(solver_table.text(values))
            else:
                _print(part, values)
    return 0 if figures.get("vmc", {}).get("same_bytes", True) else 1


def _machine() -> str:
    python = platform.python_version()
    return f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, Python {python}"


def _print(name: str, value: Any, indent: int = 0) -> None:
    if isinstance(value, dict):
        print(f"{'  ' * indent}{name}")
        for key, inner in value.items():
            _print(str(key), inner, indent + 1)
    else:
        shown = f"{value:.3f}" if isinstance(value, float) else value
        print(f"{'  ' * indent}{name:<{28 - 2 * indent}}{shown}")


if __name__ == "__main__":
    sys.exit(main())
