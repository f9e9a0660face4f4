"""Reads the problem file and times one library on it. Needs numpy only: it runs in other environments."""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

WARM_UP = 5
"""Calls that are not timed, before the first that is."""


@dataclass(frozen=True)
class Settings:
    """What counts as reached, and how long to try. All libraries get the same."""

    tolerance_m: float = 1e-3
    """[m]"""

    tolerance_rad: float = 0.01
    """Where a rotation is asked for. [rad]"""

    max_rounds: int = 100
    """Rounds, sweeps, steps or evaluations before giving up."""

    repeats: int = 3
    """Times that each target is solved; the quickest counts, for shared machines are noisy."""

    patience_s: float = 20.0
    """A set of targets that takes longer is cut short. [s]"""


@dataclass(frozen=True)
class Given:
    """One problem as read from the file; fields as in ``tools.peers.problems.Problem``."""

    name: str
    offsets: Floats
    hinges: Floats
    limits: Floats
    start: Floats
    oriented: bool
    cold: Goals
    warm: Goals


@dataclass(frozen=True)
class Goals:
    """(n, 3) positions and (n, 4) rotations, wxyz."""

    positions: Floats
    rotations: Floats


@dataclass(frozen=True)
class Measured:
    """One solver on one set of targets: a time and a miss for each."""

    solver: str
    problem: str
    mode: str
    """``cold`` or ``warm``."""

    times_us: list[float] = field(default_factory=list)
    residuals_m: list[float] = field(default_factory=list)
    residuals_rad: list[float] = field(default_factory=list)
    cannot: str = ""
    """Why this library cannot do it; empty when it can."""


class Peer(Protocol):
    """One library, set up for one problem."""

    def reset(self) -> None:
        """Back to the start pose. Not timed."""
        ...

    def target(self, position: Floats, rotation: Floats | None) -> Any:
        """A place for the tip (3,) and a rotation (4,) wxyz in the library's own form. Not timed."""
        ...

    def solve(self, target: Any) -> None:
        """From the present pose to what :meth:`target` gave. Timed."""
        ...

    def tip(self) -> tuple[Floats, Floats | None]:
        """Position and rotation matrix of the tip, by the library's own forward kinematics."""
        ...


def read_problems(file: Path) -> tuple[Settings, list[Given]]:
    """What ``bench_peers`` wrote."""
    document = json.loads(file.read_text())
    return Settings(**document["settings"]), [_given(p) for p in document["problems"]]


def measure(solver: str, given: Given, peer: Peer, settings: Settings, copies: int = 1) -> list[Measured]:
    """Both sets of targets of a problem: cold, each from the start pose; warm, each from the last solution.

    Times are divided by ``copies``, the times that one ``solve`` does the work.
    """
    for goals in (given.cold, given.warm):
        for place, turn in _rows(given, goals)[:WARM_UP]:
            peer.reset()
            peer.solve(peer.target(place, turn))
    cold, warm = Measured(solver, given.name, "cold"), Measured(solver, given.name, "warm")
    _time(cold, _rows(given, given.cold), peer, settings, copies)
    _time(warm, _rows(given, given.warm), peer, settings, copies)
    return [cold, warm]


def cannot(solver: str, given: Given, why: str) -> list[Measured]:
    """For a problem that a library has no means for."""
    return [Measured(solver, given.name, mode, cannot=why) for mode in ("cold", "warm")]


def matrix(q: Floats) -> Floats:
    """(3, 3) of a quaternion (w, x, y, z)."""
    w, x, y, z = (float(v) for v in q)
    return np.array(
        [
            [1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - w * z), 2.0 * (x * z + w * y)],
            [2.0 * (x * y + w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - w * x)],
            [2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y)],
        ]
    )


def angle_between(a: Floats, b: Floats) -> float:
    """Between two rotation matrices, whose difference has the size 2 sqrt(2) sin(angle / 2). [rad]"""
    return 2.0 * math.asin(min(float(np.linalg.norm(a - b)) / math.sqrt(8.0), 1.0))


def run(solve_all: Callable[[Given, Settings], Sequence[Measured]]) -> None:
    """The main program of a library: ``python run_X.py PROBLEMS RESULTS``."""
    settings, problems = read_problems(Path(sys.argv[1]))
    found = [asdict(row) for given in problems for row in solve_all(given, settings)]
    Path(sys.argv[2]).write_text(json.dumps(found))


def _rows(given: Given, goals: Goals) -> list[tuple[Floats, Floats | None]]:
    rotations = list(goals.rotations) if given.oriented else [None] * len(goals.positions)
    return list(zip(goals.positions, rotations, strict=True))


def _time(
    row: Measured, goals: list[tuple[Floats, Floats | None]], peer: Peer, settings: Settings, copies: int
) -> None:
    """Fill a row; the quickest of all repeats counts for each target."""
    ends = time.perf_counter() + settings.patience_s
    for repeat in range(settings.repeats):
        peer.reset()
        for i, (place, turn) in enumerate(goals[: len(row.times_us)] if repeat else goals):
            if row.times_us and time.perf_counter() > ends:
                return
            if row.mode == "cold":
                peer.reset()
            target = peer.target(place, turn)
            begin = time.perf_counter_ns()
            peer.solve(target)
            spent_us = (time.perf_counter_ns() - begin) / 1e3 / copies
            if repeat:
                row.times_us[i] = min(row.times_us[i], spent_us)
                continue
            tip, turned = peer.tip()
            row.times_us.append(spent_us)
            row.residuals_m.append(float(np.linalg.norm(tip - place)))
            off_rad = 0.0 if turn is None or turned is None else angle_between(turned, matrix(turn))
            row.residuals_rad.append(off_rad)


def _given(plain: dict[str, Any]) -> Given:
    def goals(of: dict[str, Any]) -> Goals:
        return Goals(np.array(of["positions"]).reshape(-1, 3), np.array(of["rotations"]).reshape(-1, 4))

    arrays = {name: np.array(plain[name], np.float64) for name in ("offsets", "hinges", "limits", "start")}
    return Given(
        name=plain["name"],
        oriented=plain["oriented"],
        cold=goals(plain["cold"]),
        warm=goals(plain["warm"]),
        **arrays,
    )
