"""How long solvers take: compiled loops over many chains, and the same loops as plain Python.

Times are those of the processor for the calling thread where the system tells them finely, so that other
programs on a shared machine count little; elsewhere wall time. Each batch starts from fresh warm starts.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from solvers.chain import Chain
from solvers.config import ChainConfig
from solvers.fabrik import scratch_for
from solvers.kernels import many as kernels
from solvers.kernels.ccd import SCRATCH as CCD_SCRATCH
from solvers.kernels.jacobian_rows import DAMPED, TRANSPOSED, TRUNCATED, Work
from tools.solver_problems import Problem
from vrik import jit, quat
from vrik.arrays import Floats

METHODS = {"dls": DAMPED, "svd": TRUNCATED, "transpose": TRANSPOSED}
PLAIN_ROWS = 12
"""Chains that are solved in plain Python, for the ratio."""


@dataclass(frozen=True, slots=True)
class Timing:
    """One figure with its bar.

    Args:
        work: What is done.
        bar_us: What it may take on a quiet machine; 0: no bar. [us]
        median_us: Median over batches of the mean in a batch. [us]
        p99_us: 99th percentile of the same. [us]
        plain_ratio: Times as long as plain Python; None: not measured.
        allocations: Blocks of memory taken in the loop, for one chain or body; None: not counted.
        rounds: Mean rounds used; None: not told.
    """

    work: str
    bar_us: float
    median_us: float
    p99_us: float
    plain_ratio: float | None = None
    allocations: float | None = None
    rounds: float | None = None

    @property
    def verdict(self) -> str:
        """Whether the bar is held: in time, or by being 40 times as fast as plain Python."""
        if self.bar_us <= 0.0:
            return ""
        if self.median_us <= self.bar_us:
            return "held"
        return "ratio held" if self.plain_ratio is not None and self.plain_ratio >= 40.0 else "missed"


def seconds_of(call: Callable[[], object]) -> float:
    """Processor time of this thread if it is told finely, else wall time. [s]"""
    begun = _CLOCK()
    call()
    return (_CLOCK() - begun) * 1e-9


def _clock() -> Callable[[], int]:
    fine = time.get_clock_info("thread_time").resolution <= 1e-6
    return time.thread_time_ns if fine else time.perf_counter_ns


_CLOCK = _clock()


class Loop:
    """The compiled loop of one solver over the chains of a problem, started anew as often as wanted.

    Args:
        solver: One of the six of ``solvers.kernels.many``.
        chain: Of all rows.
        problem: Targets and starts.
        turned: Whether rotations are asked for.
        config: Settings.
        anew: CCD: whether it may try other starts.
    """

    def __init__(
        self,
        solver: str,
        chain: Chain,
        problem: Problem,
        turned: bool,
        config: ChainConfig,
        anew: bool = True,
    ) -> None:
        n, m = problem.starts.shape[:2]
        self.kernel, settings, scratch = _kernel(solver, m, config, anew)
        self.rounds = np.zeros(n, np.int64)
        offsets = np.tile(chain.offsets, (n, 1, 1))
        self._fresh = (_points(problem.starts, offsets), problem.starts)
        self.points, self.rotations = (array.copy() for array in self._fresh)
        fixed = (offsets, chain.weights, chain.limits, quat.identity(n))
        goals = (problem.targets, problem.turns, float(turned), np.zeros((n, 3)))
        self._arguments = (self.points, self.rotations, *fixed, *goals, *settings, *scratch, self.rounds)

    def start(self) -> None:
        """All chains as they were before solving."""
        self.points[:], self.rotations[:] = self._fresh

    def run(self, begin: int, end: int) -> float:
        """Solve these rows; the time it took. [s]"""
        return seconds_of(lambda: self.kernel(*self._arguments, begin, end))

    def run_plain(self, begin: int, end: int) -> float:
        """The same as plain Python. [s]"""
        plain = jit.plain(self.kernel)
        return seconds_of(lambda: plain(*self._arguments, begin, end))

    def allocations(self, end: int) -> float:
        """Blocks of memory that compiled code takes for one more row."""

        def count(rows: int) -> int:
            before = blocks()
            self.kernel(*self._arguments, 0, rows)
            return blocks() - before

        self.start()
        few = count(1)
        self.start()
        return (count(end) - few) / max(end - 1, 1)


def time_loop(
    loop: Loop,
    work: str,
    bar_us: float = 0.0,
    *,
    batch: int = 500,
    batches: int = 40,
    per_rounds: int = 0,
    plain_rows: int = PLAIN_ROWS,
) -> Timing:
    """Solve ``batches`` batches of ``batch`` rows; rows are gone through again and again.

    With ``per_rounds`` times are those of so many rounds, whatever the rounds that were used. The ratio is
    taken on ``plain_rows`` chains.
    """
    n = len(loop.rounds)
    loop.run(0, min(batch, n))
    loop.start()
    means, rounds, at = [], [], 0
    for _ in range(batches):
        if at + batch > n:
            loop.start()
            at = 0
        seconds = loop.run(at, at + batch)
        rounds.append(float(loop.rounds[at : at + batch].mean()))
        means.append(seconds / batch * (per_rounds / max(rounds[-1], 1.0) if per_rounds else 1.0))
        at += batch
    ratio = _ratio(loop, min(plain_rows, batch)) if plain_rows else None
    return Timing(
        work, bar_us, *middle_and_end(means), ratio, loop.allocations(batch), float(np.mean(rounds))
    )


def middle_and_end(seconds: list[float]) -> tuple[float, float]:
    """Median and 99th percentile. [us]"""
    us = np.array(seconds) * 1e6
    return float(np.median(us)), float(np.percentile(us, 99))


def plainly(seconds: Callable[[], float]) -> float:
    """A measurement with all entries switched to plain Python."""
    jit.run_plain(True)
    try:
        return seconds()
    finally:
        jit.run_plain(False)


def _ratio(loop: Loop, rows: int) -> float:
    """Plain Python over compiled, on the same rows."""
    if not jit.COMPILED:
        return 1.0
    compiled = []
    for _ in range(15):
        loop.start()
        compiled.append(loop.run(0, rows))
    loop.start()
    return loop.run_plain(0, rows) / float(np.median(compiled))


def count_blocks() -> None:
    """Let numba count what compiled code allocates; before anything is to be counted."""
    if jit.COMPILED:
        from numba.core.runtime import _nrt_python

        _nrt_python.memsys_enable_stats()


def blocks() -> int:
    """Blocks of memory that compiled code has taken since :func:`count_blocks`."""
    if not jit.COMPILED:
        return 0
    from numba.core.runtime import rtsys

    return int(rtsys.get_allocation_stats().alloc)


def _kernel(
    solver: str, m: int, config: ChainConfig, anew: bool
) -> tuple[Any, tuple[Any, ...], tuple[Any, ...]]:
    """The loop, its settings and its scratch memory, as ``solvers.many`` calls it."""
    reached = (float(config.tolerance_m), float(config.tolerance_rad))
    turn_m, rounds = float(config.rotation_length_m), int(config.max_rounds)
    if solver == "fabrik":
        return kernels.fabrik_many, (*reached, turn_m, rounds, int(config.restarts)), scratch_for(m)
    if solver == "ccd":
        steps = (float(config.max_step_rad), float(config.near_step_rad), float(config.joint_damping))
        return kernels.ccd_many, (*reached, rounds, *steps, turn_m, anew), (np.empty((CCD_SCRATCH * m, 4)),)
    if solver in METHODS:
        tries = (rounds, float(config.max_step_rad))
        damping = (float(config.damping), float(config.singular_share), float(config.limit_avoidance))
        lengths = (turn_m, float(config.soft_reach_m))
        settings = (METHODS[solver], *reached, *tries, *damping, *lengths)
        return kernels.jacobian_many, settings, (Work.fresh(m),)
    return kernels.two_bone_many, (float(config.soft_reach_m), 1.0), ()


def _points(rotations: Floats, offsets: Floats) -> Floats:
    """(n, m + 1, 3) joints and tips, first joints at the origin. [m]"""
    steps = quat.rotate(rotations, offsets[:, 1:])
    return np.concatenate([np.zeros_like(offsets[:, :1]), np.cumsum(steps, axis=1)], axis=1)
