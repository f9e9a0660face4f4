"""One way to solve a chain, whoever does it: solvers by name, those of users among them."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import cast

import numpy as np

from solvers.chain import Chain, ChainPose, ChainSolution, ChainSolver, Target, check_fits, judged
from solvers.config import ChainConfig
from vrik import quat

_SOLVERS: dict[str, str | ChainSolver] = {
    "fabrik": "solvers.fabrik:solve",
    "ccd": "solvers.ccd:solve",
    "dls": "solvers.jacobian:solve_dls",
    "svd": "solvers.jacobian:solve_svd",
    "transpose": "solvers.jacobian:solve_transpose",
    "two_bone": "solvers.two_bone:solve",
    "aim": "solvers.aim:solve",
}
"""Name to a function, or to where it is: none is imported before it is used."""

TAKEN_OVER = ("fabrik", "ccd")
"""Damped least squares takes over from these near a singularity, where ``takeover_share`` asks for it."""

_DEFAULT = ChainConfig()


def solver_names() -> tuple[str, ...]:
    """All solvers, ours first."""
    return tuple(_SOLVERS)


def register_solver(name: str, solver: ChainSolver) -> None:
    """Make ``solver`` known as ``name``, everywhere a solver can be chosen.

    Raises:
        ValueError: If another solver has that name.
    """
    if name in _SOLVERS and _SOLVERS[name] is not solver:
        raise ValueError(f"there is a solver named {name!r} already; have: {', '.join(_SOLVERS)}")
    _SOLVERS[name] = solver


def find_solver(name: str) -> ChainSolver:
    """The solver of that name; ValueError with the names there are."""
    if name not in _SOLVERS:
        raise ValueError(f"no solver named {name!r}; have: {', '.join(_SOLVERS)}")
    found = _SOLVERS[name]
    if isinstance(found, str):
        module, function = found.split(":")
        found = cast(ChainSolver, getattr(import_module(module), function))
    return found


def solve_chain(
    chain: Chain,
    start: ChainPose,
    target: Target,
    *,
    solver: str | ChainSolver = "fabrik",
    config: ChainConfig = _DEFAULT,
) -> ChainSolution:
    """Turn the joints of a chain so that its tip meets a target.

    Args:
        chain: Lengths, weights, limits.
        start: How it lies now: the warm start. The first joint stays where it is.
        target: What the tip should meet.
        solver: Name of a registered solver, or a function like one.
        config: Settings.

    Returns:
        The chain, solved. Out of reach, or out of the limits, it is as near as the solver brought it, with
        ``reached`` false; that is an answer, not an error.

    Raises:
        ValueError: If shapes do not fit, a number is not finite, or there is no such solver.
    """
    check_fits(chain, start)
    solve = find_solver(solver) if isinstance(solver, str) else solver
    if config.takeover_share > 0.0 and solver in TAKEN_OVER:
        from solvers.singular import solve_with_takeover

        solve = partial(solve_with_takeover, solve)
    if any(chain.constraints):
        return _with_constraints(chain, start, target, solve, config)
    return solve(chain, start, target, config)


def _with_constraints(
    chain: Chain, start: ChainPose, target: Target, solve: ChainSolver, config: ChainConfig
) -> ChainSolution:
    """Round by round, a user's own constraints applied after each."""

    once = replace(config, max_rounds=1)
    pose = start
    solution = judged(chain, start, start.rotations_world, target, config, 0)
    for used in range(1, config.max_rounds + 1):
        before = pose.rotations_world
        pose = solve(chain, pose, target, once).pose
        locals_ = chain.locals_of(pose)
        parent, rotations = pose.base_world, np.empty_like(pose.rotations_world)
        for i, rule in enumerate(chain.constraints):
            local = locals_[i] if rule is None else quat.normalize(np.asarray(rule(locals_[i]), np.float64))
            parent = rotations[i] = quat.multiply(parent, local)
        pose = replace(pose, rotations_world=rotations)
        solution = judged(chain, pose, rotations, target, config, used)
        if solution.reached or np.max(quat.angle(before, rotations)) < config.tolerance_rad * 1e-3:
            break
    return solution
