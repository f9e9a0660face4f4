"""The same inverse kinematics for vrik, ikpy, pyfabrik, mink and three.js's CCDIKSolver, side by side.

    python -m tools.bench_peers                                  vrik alone, and how to get the others
    python -m tools.bench_peers --env peers --node peersnode     all that is installed in these two folders
    python -m tools.bench_peers --env peers --json               all numbers as one JSON document

The others live in environments of their own, made once:

    python -m venv peers
    peers/bin/python -m pip install "numpy<2" ikpy pyfabrik mink mujoco
    mkdir peersnode
    npm install --prefix peersnode three

(On Windows peers\\Scripts\\python. Python 3.11 or 3.12, for pyfabrik 0.4 fails with the newest numpy; ikpy
needs SciPy 1.16 or later to stop at a tolerance; node 18 or later.)

Chains of 3 and 10 ball joints, and 7 hinges with limits; the hinges with and without a rotation of the
tip. Every target is reachable: it is where forward kinematics put the tip. ``cold``: each target from the
same start pose; ``warm``: along a path at 90 Hz, each from the last solution. All stop within the
tolerance (1 mm, and 0.01 rad where a rotation is asked for) or after the same number of rounds (100:
FABRIK passes, CCD sweeps, least-squares or QP steps, evaluations of ikpy's cost); no library restarts
from other poses. Residuals come from each library's own forward kinematics. Times are of single calls,
one thread, the quickest of three for each target, then median and 99th percentile over the targets;
imports, compilation, set-up, warm-up and making the target object are not in them. What a call is for
each library stands at the top of its ``tools/peers/run_*``. A run takes some minutes.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tools.peers.measure import Measured, Settings
from tools.peers.problems import Problem, make_problems

ROOT = Path(__file__).resolve().parent.parent
PEERS = ("vrik", "pyfabrik", "ikpy", "mink", "three")
HOW = {"pyfabrik": '"numpy<2" pyfabrik', "ikpy": "ikpy", "mink": "mink mujoco"}
"""What pip must install for each."""

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


@dataclass(frozen=True, slots=True)
class Run:
    """What came out of one library.

    Args:
        peer: Its name.
        version: As installed; empty when it is not.
        problem: Why there are no rows; empty when there are.
        rows: One for each solver, problem and mode.
    """

    peer: str
    version: str
    problem: str
    rows: tuple[Measured, ...] = ()


def write_problems(file: Path, problems: Sequence[Problem], settings: Settings) -> None:
    """The file that every ``run_*`` reads."""
    document = {"settings": asdict(settings), "problems": [asdict(p) for p in problems]}
    file.write_text(json.dumps(document, default=lambda array: array.tolist()))


def run_peer(peer: str, problems: Path, env: Path | None, node: Path | None) -> Run:
    """Run one library in its own environment; never raises because it is missing or fails."""
    try:
        version, command = find_peer(peer, env, node)
    except LookupError as missing:
        return Run(peer, "", str(missing))
    results = problems.with_name(f"{peer}.json")
    arguments = [str(problems), str(results)] + ([str(node)] if peer == "three" else [])
    done = subprocess.run([*command, *arguments], capture_output=True, text=True, env=os.environ | ONE_THREAD)
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        return Run(peer, version, f"failed: {last}")
    return Run(peer, version, "", tuple(Measured(**row) for row in json.loads(results.read_text())))


def find_peer(peer: str, env: Path | None, node: Path | None) -> tuple[str, list[str]]:
    """Version and command of a library; LookupError with what to do when it is not installed."""
    scripts = ROOT / "tools" / "peers"
    if peer == "vrik":
        import vrik

        return vrik.__version__, [sys.executable, str(scripts / "run_vrik.py")]
    if peer == "three":
        package = node / "node_modules" / "three" / "package.json" if node else None
        if package is None or not package.is_file():
            raise LookupError("not installed: npm install --prefix FOLDER three, then --node FOLDER")
        return json.loads(package.read_text())["version"], ["node", str(scripts / "run_three.mjs")]
    python = _python_of(env) if env else None
    ask = f"from importlib.metadata import version; print(version({peer!r}))"
    asked = subprocess.run([python, "-c", ask], capture_output=True, text=True) if python else None
    if asked is None or asked.returncode != 0:
        names = HOW[peer]
        raise LookupError(f"not installed: FOLDER/bin/python -m pip install {names}, then --env FOLDER")
    return asked.stdout.strip(), [str(python), str(scripts / f"run_{peer}.py")]


def summary(row: Measured, settings: Settings) -> dict[str, Any]:
    """Median, 99th percentile, and how near the tip came."""
    times, misses = np.array(row.times_us), np.array(row.residuals_m)
    turned = np.array(row.residuals_rad)
    # A hair more than the tolerance: some libraries round differently when they judge than when they report.
    near = (misses <= settings.tolerance_m * 1.0001) & (turned <= settings.tolerance_rad * 1.0001)
    return {
        "targets": len(times),
        "median_us": float(np.median(times)),
        "p99_us": float(np.percentile(times, 99)),
        "reached": float(near.mean()),
        "median_residual_m": float(np.median(misses)),
        "p99_residual_m": float(np.percentile(misses, 99)),
        "p99_residual_rad": float(np.percentile(turned, 99)),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the problems, run all libraries one after the other, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--env", type=Path, help="virtual environment with ikpy, pyfabrik, mink and mujoco")
    parser.add_argument("--node", type=Path, help="folder with node_modules/three")
    parser.add_argument("--only", nargs="+", choices=PEERS, default=PEERS, help="only these libraries")
    parser.add_argument("--targets", type=int, default=100, help="cold and warm, for each problem (100)")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args(arguments)
    settings = Settings()
    problems = make_problems(options.targets)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "problems.json"
        write_problems(file, problems, settings)
        runs = [run_peer(peer, file, options.env, options.node) for peer in options.only]
    if options.json:
        print(json.dumps(_document(runs, settings), indent=2))
    else:
        _print(runs, problems, settings)
    return 0


def _python_of(env: Path) -> str | None:
    found = [env / "bin" / "python", env / "Scripts" / "python.exe"]
    return next((str(python.absolute()) for python in found if python.is_file()), None)


def _document(runs: Sequence[Run], settings: Settings) -> dict[str, Any]:
    rows = [
        {"solver": row.solver, "problem": row.problem, "mode": row.mode}
        | ({"cannot": row.cannot} if row.cannot else summary(row, settings))
        for run in runs
        for row in run.rows
    ]
    libraries = {run.peer: run.version or run.problem for run in runs}
    failed = {run.peer: run.problem for run in runs if run.version and run.problem}
    return {
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "settings": asdict(settings),
        "libraries": libraries,
        "failed": failed,
        "rows": rows,
    }


def _print(runs: Sequence[Run], problems: Sequence[Problem], settings: Settings) -> None:
    for run in runs:
        print(f"{run.peer:<10}{run.version} {run.problem}".rstrip())
    head = f"{'median':>11}{'p99':>11}{'reached':>9}{'residual':>10}{'p99':>9}"
    for problem in problems if any(run.rows for run in runs) else ():
        asked = f"{settings.tolerance_m * 1e3:g} mm"
        asked += f" and {settings.tolerance_rad:g} rad" if problem.oriented else ""
        for mode, means in (("cold", "from the start pose"), ("warm", "along a path at 90 Hz")):
            print(f"\n{problem.title}, tip to {asked}, {mode}: {means}")
            print(f"{'':<24}{head}{'targets':>9}")
            print(f"{'':<24}{'[us]':>11}{'[us]':>11}{'[%]':>9}{'[mm]':>10}{'[mm]':>9}")
            for row in (r for run in runs for r in run.rows):
                if (row.problem, row.mode) == (problem.name, mode):
                    _print_row(row, settings)


def _print_row(row: Measured, settings: Settings) -> None:
    if row.cannot:
        print(f"{row.solver:<24}   cannot: {row.cannot}")
        return
    found = summary(row, settings)
    print(
        f"{row.solver:<24}{found['median_us']:11.1f}{found['p99_us']:11.1f}{found['reached'] * 100:9.1f}"
        f"{found['median_residual_m'] * 1e3:10.3f}{found['p99_residual_m'] * 1e3:9.3f}{found['targets']:9}"
    )


if __name__ == "__main__":
    sys.exit(main())
