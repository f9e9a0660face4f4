"""How much memory an hour of recording takes, kind by kind and command by command.

    python tools/soak_recordings.py                            one hour of every kind: two hours on two cores
    python tools/soak_recordings.py --kinds bvh slimevr-pfs    these
    python tools/soak_recordings.py --minutes 5                quicker
    python tools/soak_recordings.py --only inspect repair      these commands

Makes a recording of each kind from the bundled session (``soak_kinds.py``), runs each command on it in a
process of its own, and prints the largest resident memory of that process and how long it took; ``baseline``
is a process that only loads numpy, numba and the solver, which is compiled before. Exit code 1 if one takes
more than ``LIMIT_MB``.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tools.soak_kinds import BODILESS, KINDS, can_make

LIMIT_MB = 300
NO_BODY = 1
"""Exit code of ``solve`` where there is no head, or a head alone."""

_MEASURE = """
import resource, sys
from vrik.cli.app import main
code = main(sys.argv[1:])
print("peak", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)
sys.exit(code)
"""
_BASELINE = """
import resource, sys
import vrik.pipeline, vrik.warm
vrik.warm.warm_up()
print("peak", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)
"""


def commands(kind: str, source: Path, folder: Path) -> dict[str, list[str]]:
    """Name to arguments of what is measured; more of it for vrik's own format."""
    name, to = str(source), str(folder / "made")
    some = {
        "inspect": ["inspect", name, "--json"],
        "convert to mcap": ["convert", name, f"{to}-c.mcap"],
        "solve to mcap": ["solve", name, "-o", f"{to}-s.mcap"],
    }
    if kind != "vrik":
        return some
    return some | {
        "repair": ["repair", name, f"{to}-repaired.mcap"],
        "convert to jsonl": ["convert", name, f"{to}-c.jsonl"],
        "convert to npz": ["convert", name, f"{to}-c.npz"],
        "solve to npz": ["solve", name, "-o", f"{to}-s.npz"],
        "solve to jsonl": ["solve", name, "-o", f"{to}-s.jsonl"],
        "replay": ["replay", name, "--speed", "0", "--no-page", "--plain"],
    }


def peak_mb(program: str, args: list[str], allowed: tuple[int, ...] = (0,)) -> tuple[float, float]:
    """Largest resident memory [MB] and time [s] of a process.

    Raises:
        RuntimeError: If its exit code is none of those ``allowed``.
    """
    begun = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", program, *args], capture_output=True, text=True)
    seconds = time.perf_counter() - begun
    if done.returncode not in allowed:
        raise RuntimeError(f"{' '.join(args)}: {done.stderr}")
    unit = 1.0 if sys.platform == "darwin" else 1024.0  # bytes there, kilobytes elsewhere
    return int(done.stderr.rsplit("peak", 1)[1]) * unit / 1e6, seconds


def measure(kind: str, minutes: float, only: list[str] | None, quiet: bool) -> dict[str, dict[str, float]]:
    """Make a recording and run the commands on it. Command to figures."""
    figures: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source = KINDS[kind](folder, minutes)
        if not quiet:
            print(f"{kind}, {source.stat().st_size / 1e6:.0f} MB", flush=True)
        for command, args in commands(kind, source, folder).items():
            if only and not command.startswith(tuple(only)):
                continue
            allowed = (0, NO_BODY) if kind in BODILESS and args[0] == "solve" else (0,)
            memory, seconds = peak_mb(_MEASURE, args, allowed)
            figures[command] = {"peak_mb": round(memory, 1), "seconds": round(seconds, 1)}
            if not quiet:
                print(f"  {command:18} {memory:6.0f} MB {seconds:7.1f} s", flush=True)
            for made in folder.glob("made-*"):
                made.unlink()
    return figures


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS), help="kinds of recording")
    parser.add_argument("--minutes", type=float, default=60.0, help="length of each recording")
    parser.add_argument("--only", nargs="+", help="commands whose name begins so")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args()
    peak_mb(_BASELINE, [])  # compiles, where that has not been done: takes more memory once
    memory, seconds = peak_mb(_BASELINE, [])
    if not options.json:
        print(f"baseline             {memory:6.0f} MB {seconds:7.1f} s", flush=True)
    document: dict[str, object] = {"minutes": options.minutes, "baseline_mb": round(memory, 1)}
    most = memory
    for kind in options.kinds:
        if not can_make(kind):
            print(f"{kind}: left out, its packages are not installed", file=sys.stderr, flush=True)
            continue
        figures = measure(kind, options.minutes, options.only, options.json)
        document[kind] = figures
        most = max([most, *(figure["peak_mb"] for figure in figures.values())])
    if options.json:
        print(json.dumps(document, indent=2))
    return int(most > LIMIT_MB)


if __name__ == "__main__":
    sys.exit(main())
