"""The same chain many times: other bodies, or other frames. Arrays in, arrays out, no object per body.

Rows do not know of each other, and each gives what :func:`solvers.registry.solve_chain` gives for it. The
compiled loops hold no lock, so threads use all cores when asked.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from solvers.chain import Chain, ChainPose, ChainSolver, Target, checked_weight
from solvers.config import ChainConfig
from solvers.fabrik import scratch_for
from solvers.kernels import many as kernels
from solvers.kernels.ccd import SCRATCH as CCD_SCRATCH
from solvers.kernels.jacobian_rows import DAMPED, TRANSPOSED, TRUNCATED, Work
from solvers.registry import solve_chain
from solvers.threads import in_threads
from solvers.two_bone import check_limb
from vrik import quat
from vrik.arrays import Bools, Floats, Ints, Points, Quats

REASONS = ("reached", "out_of_reach", "no_progress", "max_rounds")
"""What the numbers in :attr:`ChainSolutions.stopped_because` mean."""

_METHODS = {"dls": DAMPED, "svd": TRUNCATED, "transpose": TRANSPOSED}
_DEFAULT = ChainConfig()
_REACHED, _OUT_OF_REACH, _NO_PROGRESS, _MAX_ROUNDS = range(4)


@dataclass(frozen=True, slots=True, eq=False)
class ChainSolutions:
    """n chains after solving; the rows of :class:`solvers.chain.ChainSolution`.

    Args:
        points_world: (n, m + 1, 3) joints and tips. [m]
        rotations_world: (n, m, 4) canonical world rotations: the warm start of the next frame.
        reached: (n,).
        residual_m: (n,) distance from tip to target. [m]
        residual_rad: (n,) angle from the last joint's rotation to the target's; 0 without one. [rad]
        rounds: (n,) rounds used.
        stopped_because: (n,) index into ``REASONS``.
    """

    points_world: Floats
    rotations_world: Floats
    reached: Bools
    residual_m: Floats
    residual_rad: Floats
    rounds: Ints
    stopped_because: Ints


def solve_many(
    chain: Chain,
    roots_world: Points,
    rotations_world: Floats,
    targets: Points,
    *,
    bases_world: Quats | None = None,
    target_rotations: Quats | None = None,
    rotation_weight: float = 1.0,
    poles: Points | None = None,
    offsets: Floats | None = None,
    solver: str | ChainSolver = "fabrik",
    config: ChainConfig = _DEFAULT,
    workers: int = 1,
) -> ChainSolutions:
    """Solve n chains.

    Args:
        chain: Weights and limits of all, and their lengths unless ``offsets`` says otherwise.
        roots_world: (n, 3) first joints. [m]
        rotations_world: (n, m, 4) warm starts.
        targets: (n, 3) where the tips should be. [m]
        bases_world: (n, 4) what the chains hang on; the identity when left out.
        target_rotations: (n, 4) wanted rotations of the last joints; none when left out.
        rotation_weight: As in :class:`solvers.chain.Target`.
        poles: (n, 3) directions to bend to, zeros for none.
        offsets: (n, m + 1, 3) when the chains differ in length. [m]
        solver: Name of any solver, or a function like one. What needs Python for a chain (a user's own
            solver or constraints, restarts of least squares, ``takeover_share``, ``max_stretch``) is done row
            by row.
        config: Settings.
        workers: Threads; the result does not depend on it.

    Raises:
        ValueError: If a shape is wrong or a number is not finite.
    """
    n, m = len(roots_world), chain.joint_count
    none_turned, no_pole = quat.identity(n), np.zeros((n, 3))
    given = {
        "roots": _checked("roots_world", roots_world, (n, 3)),
        "rotations": quat.normalize(_checked("rotations_world", rotations_world, (n, m, 4))),
        "targets": _checked("targets", targets, (n, 3)),
        "bases": quat.normalize(
            _checked("bases_world", none_turned if bases_world is None else bases_world, (n, 4))
        ),
        "turns": quat.normalize(
            _checked(
                "target_rotations", none_turned if target_rotations is None else target_rotations, (n, 4)
            )
        ),
        "poles": _checked("poles", no_pole if poles is None else poles, (n, 3)),
        "offsets": _checked(
            "offsets", np.tile(chain.offsets, (n, 1, 1)) if offsets is None else offsets, (n, m + 1, 3)
        ),
    }
    turn_weight = 0.0 if target_rotations is None else checked_weight("rotation_weight", rotation_weight)
    loop = _loop(chain, solver, turn_weight, config)
    if loop is None:
        return _row_by_row(chain, given, turn_weight, solver, config)
    points = _placed(given["roots"], given["offsets"], given["rotations"])
    rounds = np.zeros(n, np.int64)
    arrays = (points, given["rotations"], given["offsets"], chain.weights, chain.limits, given["bases"])
    goals = (given["targets"], given["turns"], turn_weight, given["poles"])
    in_threads(n, workers, lambda begin, end: loop(*arrays, *goals, rounds=rounds, begin=begin, end=end))
    return _judged(given, given["rotations"], rounds, turn_weight, config)


def _loop(
    chain: Chain, solver: str | ChainSolver, turn_weight: float, config: ChainConfig
) -> Callable[..., None] | None:
    """The compiled loop of a solver with its settings filled in; None when rows need Python."""
    if any(chain.constraints) or config.takeover_share > 0.0 or not isinstance(solver, str):
        return None
    m = chain.joint_count

    def run(
        loop: Any, settings: tuple[Any, ...], scratch: Callable[[], tuple[Any, ...]]
    ) -> Callable[..., None]:
        def one_thread(*arrays: Any, rounds: Ints, begin: int, end: int) -> None:
            loop(*arrays, *settings, *scratch(), rounds, begin, end)

        return one_thread

    reached = (float(config.tolerance_m), float(config.tolerance_rad))
    if solver == "fabrik":
        settings = (*reached, float(config.rotation_length_m), int(config.max_rounds), int(config.restarts))
        return run(kernels.fabrik_many, settings, partial(scratch_for, m))
    if solver == "ccd":
        steps = (float(config.max_step_rad), float(config.near_step_rad), float(config.joint_damping))
        sweeps = (*reached, int(config.max_rounds), *steps, float(config.rotation_length_m), True)
        return run(kernels.ccd_many, sweeps, lambda: (np.empty((CCD_SCRATCH * m, 4)),))
    if solver in _METHODS and config.restarts == 0:
        damping = (float(config.damping), float(config.singular_share), float(config.limit_avoidance))
        lengths = (float(config.rotation_length_m), float(config.soft_reach_m))
        limits = (int(config.max_rounds), float(config.max_step_rad))
        return run(
            kernels.jacobian_many,
            (_METHODS[solver], *reached, *limits, *damping, *lengths),
            lambda: (Work.fresh(m),),
        )
    if solver == "two_bone":
        check_limb(chain)
    if solver == "two_bone" and config.max_stretch <= 1.0:
        return run(kernels.two_bone_many, (float(config.soft_reach_m), 1.0), tuple)
    return None


def _placed(roots: Points, offsets: Floats, rotations: Floats) -> Floats:
    """(n, m + 1, 3) joints and tips of poses."""
    points = np.empty_like(offsets)
    kernels.place_many(points, rotations, offsets, roots)
    return points


def _judged(
    given: dict[str, Floats], rotations: Floats, rounds: Ints, turn_weight: float, config: ChainConfig
) -> ChainSolutions:
    """As :func:`solvers.chain.judged`, for all rows at once."""
    offsets, roots, targets = given["offsets"], given["roots"], given["targets"]
    points = _placed(roots, offsets, rotations)
    residual = np.linalg.norm(points[:, -1] - targets, axis=-1)
    turned = np.zeros(len(roots))
    if turn_weight > 0.0:
        turned = quat.angle(rotations[:, -1], given["turns"])
    lengths = np.linalg.norm(offsets[:, 1:], axis=-1)
    total, away = lengths.sum(axis=1), np.linalg.norm(roots - targets, axis=-1)
    reached = (residual <= config.tolerance_m) & (turned <= config.tolerance_rad)
    reason = np.where(rounds >= config.max_rounds, _MAX_ROUNDS, _NO_PROGRESS)
    reason = np.where((away > total) | (away < 2.0 * lengths.max(axis=1) - total), _OUT_OF_REACH, reason)
    reason = np.where(reached, _REACHED, reason).astype(np.int64)
    return ChainSolutions(points, rotations, np.asarray(reached), residual, turned, rounds, reason)


def _row_by_row(
    chain: Chain, given: dict[str, Floats], turn_weight: float, solver: str | ChainSolver, config: ChainConfig
) -> ChainSolutions:
    """For solvers that are not compiled loops."""
    found = []
    for b in range(len(given["roots"])):
        rotation = given["turns"][b] if turn_weight > 0.0 else None
        pole = given["poles"][b] if given["poles"][b].any() else None
        target = Target(given["targets"][b], rotation, rotation_weight=turn_weight, pole=pole)
        own = Chain(given["offsets"][b], chain.weights, chain.limits, chain.constraints)
        start = ChainPose(given["roots"][b], given["rotations"][b], given["bases"][b])
        found.append(solve_chain(own, start, target, solver=solver, config=config))
    m = chain.joint_count
    return ChainSolutions(
        np.array([s.points_world for s in found]).reshape(-1, m + 1, 3),
        np.array([s.pose.rotations_world for s in found]).reshape(-1, m, 4),
        np.array([s.reached for s in found], np.bool_),
        np.array([s.residual_m for s in found], np.float64),
        np.array([s.residual_rad for s in found], np.float64),
        np.array([s.rounds for s in found], np.int64),
        np.array([REASONS.index(s.stopped_because) for s in found], np.int64),
    )


def _checked(name: str, values: ArrayLike, shape: tuple[int, ...]) -> Floats:
    """A float64 copy; ValueError for another shape or a number that is not finite."""
    copy = np.array(values, np.float64, order="C")
    if copy.shape != shape:
        raise ValueError(f"{name} has shape {copy.shape}, expected {shape}")
    if not np.isfinite(copy).all():
        raise ValueError(f"{name} holds a number that is not finite")
    return copy
