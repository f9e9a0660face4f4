"""What the solvers are worth: targets met, misses, limits kept, and how long it takes.

    python tools/bench_solvers.py                       all figures
    python tools/bench_solvers.py --targets 2000        sooner, and coarser
    python tools/bench_solvers.py --markdown            the tables of docs/solvers.md
    python tools/bench_solvers.py --into docs/solvers.md  put them there, between its two marks
    python tools/bench_solvers.py --json                one JSON document

Targets are the places, and rotations where asked for, that forward kinematics gives for random poses within
the limits (``solver_problems.py``). A target is met within 1 mm and 0.01 rad. ``cold`` starts are the rest
pose, ``warm`` ones the answer with each joint turned by up to 0.1 rad. Cold solvers may try other poses, warm
ones may not: ``SETTINGS`` says with what. Times: ``solver_times.py``; bodies: ``solver_bodies.py``.

All of it takes some ten minutes on two free cores.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from solvers.chain import Chain
from solvers.config import ChainConfig
from solvers.many import ChainSolutions, solve_many
from tools.solver_bodies import body_timings, together
from tools.solver_problems import (
    Case,
    Problem,
    cases,
    hinged_arm,
    limb,
    make_problem,
    robot_arm,
    tail,
    worst_excess,
)
from tools.solver_scan import peaks, scan_all
from tools.solver_times import Loop, Timing, count_blocks, middle_and_end, seconds_of, time_loop

TARGETS = 100_000
NEAR_M, NEAR_RAD = 1e-3, 1e-2
POSES = 1000
"""Of a body with three devices."""

WARM = ChainConfig()
COLD = {
    "fabrik": ChainConfig(max_rounds=400, restarts=9),
    "ccd": ChainConfig(max_rounds=400),
    "dls": ChainConfig(restarts=16),
    "svd": WARM,
    "transpose": WARM,
    "two_bone": WARM,
}
"""Settings from the rest pose. CCD tries other starts by itself when it begins far away."""

SETTINGS = {
    "warm": "tolerance 0.1 mm and 0.001 rad, 64 rounds, no restarts: the defaults",
    "cold": "fabrik 400 rounds and 9 restarts, ccd 400 rounds, dls 16 restarts, the others as warm",
}

FOR_COMPARISON = ("svd", "transpose")
"""Slow without reward: they get a tenth of the targets."""

TO_1MM = ChainConfig(tolerance_m=NEAR_M, tolerance_rad=NEAR_RAD)


@dataclass(frozen=True, slots=True)
class Reach:
    """One solver on one case.

    Args:
        case: Its name.
        solver: Its name.
        start: cold or warm.
        targets: How many.
        within: Share met within 1 mm, and 0.01 rad where a rotation is asked for.
        median_miss_m: Distance from tip to target. [m]
        p999_miss_m: 99.9th percentile of the same. [m]
        p999_miss_rad: Of the last joint's rotation; 0 where none is asked for. [rad]
        limit_excess_rad: Of the worst joint of all. [rad]
        length_error_m: Of the worst bone of all. [m]
        not_finite: Solutions with a number that is not finite.
    """

    case: str
    solver: str
    start: str
    targets: int
    within: float
    median_miss_m: float
    p999_miss_m: float
    p999_miss_rad: float
    limit_excess_rad: float
    length_error_m: float
    not_finite: int


def measure(targets: int = TARGETS, only: Sequence[str] | None = None, quick: bool = False) -> dict[str, Any]:
    """Everything, as one document; ``only`` some cases, ``quick`` with few batches and poses."""
    load = [_load()]
    chosen = {name: case for name, case in cases().items() if not only or name in only}
    count_blocks()
    found = {
        "settings": SETTINGS,
        "cases": {name: case.title for name, case in chosen.items()},
        "reach": [asdict(row) for case in chosen.values() for row in reach(case, targets)],
        "soft_zones": soft_zones(targets, 2 if quick else 10),
        "warm_us": {name: warm_times(case, 2 if quick else 10) for name, case in chosen.items()},
        "together": together(20 if quick else POSES),
        "times": [asdict(t) | {"verdict": t.verdict} for t in timings(3 if quick else 40)],
        "scan": peaks(scan_all(("two_bone",)) if quick else scan_all()),
    }
    return {"machine": _machine(), "load": [*load, _load()], **found}


def reach(case: Case, targets: int) -> list[Reach]:
    """All solvers of a case, cold and warm."""
    found = []
    for warm in (False, True):
        problem = make_problem(case.chain, targets, warm=warm)
        for solver in case.solvers:
            count = max(targets // 10, 1) if solver in FOR_COMPARISON else targets
            part = Problem(*(getattr(problem, name)[:count] for name in Problem.__dataclass_fields__))
            solved = _solve(case, part, solver, WARM if warm else COLD[solver])
            found.append(_judged(case, solver, "warm" if warm else "cold", solved))
    return found


def soft_zones(targets: int, share: int = 10) -> list[dict[str, Any]]:
    """Share met warm, with the soft zones of the anatomical limits and without them."""
    found = []
    for name in ("palm+", "toes+", "eyes+"):
        problem = make_problem(cases()[name].chain, max(targets // share, 1), warm=True)
        for solver in ("fabrik", "ccd", "dls"):
            row: dict[str, Any] = {"case": cases()[name].title, "solver": solver}
            for zones in (True, False):
                case = cases(zones)[name]
                met = _judged(case, solver, "warm", _solve(case, problem, solver, WARM)).within
                row["within_soft" if zones else "within_hard"] = met
            found.append(row)
    return found


def warm_times(case: Case, batches: int) -> dict[str, float]:
    """Median time of a warm chain in the compiled loop, by solver. [us]"""
    problem = make_problem(case.chain, 1000, warm=True)
    return {
        solver: time_loop(
            Loop(solver, case.chain, problem, case.turned, WARM),
            case.name,
            batch=200,
            batches=batches,
            plain_rows=0,
        ).median_us
        for solver in case.solvers
    }


def timings(batches: int) -> list[Timing]:
    """Everything that has a bar."""
    arm, tentacle = limb("left", "Arm", 2, free=True), tail(free=True)
    twenty = ChainConfig(tolerance_m=0.0, max_rounds=20)
    step = ChainConfig(tolerance_m=0.0, tolerance_rad=0.0, max_rounds=1)
    fabrik, closed = "arm, FABRIK to 1 mm, ", "arm, two_bone, "
    rows: list[tuple[str, float, str, Chain, bool, ChainConfig]] = [
        (fabrik + "no limits", 5.0, "fabrik", arm, False, TO_1MM),
        (fabrik + "anatomical limits", 5.0, "fabrik", limb("left", "Arm", 2), False, TO_1MM),
        (fabrik + "anatomical limits, to the palm", 5.0, "fabrik", limb("left", "Arm", 3), False, TO_1MM),
        (closed + "no limits", 1.0, "two_bone", arm, False, TO_1MM),
        (closed + "shoulder limits, hinge elbow, rotation", 1.0, "two_bone", hinged_arm(), True, TO_1MM),
        ("10 bones, CCD, 20 sweeps, no limits", 30.0, "ccd", tentacle, False, twenty),
        ("10 bones, CCD, 20 sweeps, cones", 30.0, "ccd", tail(), False, twenty),
        ("10 bones, FABRIK to 1 mm, no limits", 10.0, "fabrik", tentacle, False, TO_1MM),
        ("10 bones, FABRIK to 1 mm, cones", 10.0, "fabrik", tail(), False, TO_1MM),
        ("7 hinges, 6 rows, one DLS step", 8.0, "dls", robot_arm(7), True, step),
    ]
    found = []
    for work, bar_us, solver, chain, turned, config in rows:
        problem = make_problem(chain, 2000, warm=True)
        loop = Loop(solver, chain, problem, turned, config, anew=False)
        per_rounds = 20 if config is twenty else 0
        found.append(time_loop(loop, work, bar_us, batches=batches, per_rounds=per_rounds))
    problem = make_problem(tentacle, 200, warm=True)
    loop = Loop("fabrik", tentacle, problem, False, TO_1MM)
    found.append(time_loop(loop, "200 chains of 10 bones, each", 5.0, batch=200, batches=batches))
    return [*found, _two_hundred(tentacle, problem, batches), *body_timings(1000, batches)]


def _two_hundred(chain: Chain, problem: Problem, batches: int) -> Timing:
    """The same by ``solve_many``, checks and results included."""
    roots = np.zeros((len(problem.targets), 3))

    def call() -> ChainSolutions:
        return solve_many(chain, roots, problem.starts, problem.targets, config=TO_1MM)

    call()
    times = [seconds_of(call) / len(roots) for _ in range(5 * batches)]
    return Timing("the same from Python, by solve_many", 5.0, *middle_and_end(times))


def _solve(case: Case, problem: Problem, solver: str, config: ChainConfig) -> ChainSolutions:
    """All targets; those of least squares that are not met get their restarts in a second call.

    The answer is that of one call: restarts begin when the first try has failed.
    """
    once = replace(config, restarts=0) if solver == "dls" else config
    first = _many(case, problem, solver, once)
    missed = np.flatnonzero(~first.reached)
    if config.restarts == 0 or solver != "dls" or not len(missed):
        return first
    part = Problem(*(getattr(problem, name)[missed] for name in Problem.__dataclass_fields__))
    again = _many(case, part, solver, config)
    for name in ChainSolutions.__dataclass_fields__:
        getattr(first, name)[missed] = getattr(again, name)
    return first


def _many(case: Case, problem: Problem, solver: str, config: ChainConfig) -> ChainSolutions:
    return solve_many(
        case.chain,
        np.zeros((len(problem.targets), 3)),
        problem.starts,
        problem.targets,
        target_rotations=problem.turns if case.turned else None,
        solver=solver,
        config=config,
        workers=os.cpu_count() or 1,
    )


def _judged(case: Case, solver: str, start: str, solved: ChainSolutions) -> Reach:
    sound = np.isfinite(solved.rotations_world).all(axis=(1, 2)) & np.isfinite(solved.points_world).all(
        axis=(1, 2)
    )
    met = sound & (solved.residual_m <= NEAR_M) & (solved.residual_rad <= NEAR_RAD)
    lengths = np.linalg.norm(np.diff(solved.points_world[sound], axis=1), axis=-1)
    return Reach(
        case.name,
        solver,
        start,
        len(met),
        float(met.mean()),
        float(np.median(solved.residual_m[sound])),
        float(np.percentile(solved.residual_m[sound], 99.9)),
        float(np.percentile(solved.residual_rad[sound], 99.9)),
        worst_excess(solved.rotations_world[sound], case.chain.limits),
        float(np.abs(lengths - case.chain.lengths).max()),
        int(len(met) - sound.sum()),
    )


def _machine() -> str:
    python = platform.python_version()
    return f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, Python {python}"


def _load() -> float | None:
    """Programs that want a core, over the last minute; None where the system does not say."""
    return round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else None


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print or write."""
    from tools.solver_table import markdown, put_between, text

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--targets", type=int, default=TARGETS, help=f"for each case and start ({TARGETS})")
    parser.add_argument("--cases", nargs="+", choices=cases(), help="only these")
    parser.add_argument("--quick", action="store_true", help="few batches and poses, for a look")
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument("--json", action="store_true", help="print one JSON document")
    shown.add_argument("--markdown", action="store_true", help="print the tables of docs/solvers.md")
    shown.add_argument("--into", type=Path, help="write the tables into this page, between its marks")
    options = parser.parse_args(arguments)
    figures = measure(options.targets, options.cases, options.quick)
    if options.json:
        print(json.dumps(figures, indent=2))
    elif options.into:
        put_between(options.into, markdown(figures))
    else:
        print(markdown(figures) if options.markdown else text(figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
