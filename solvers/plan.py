"""Several chains of one rig: who is solved first, and what happens to bones that two of them share.

Chains are solved in the order of ``ORDER``: what carries others comes first. Each may turn bones that it
shares with others, so a later one can carry an end away that an earlier one had met. Therefore a last pass
goes through all of them once more, each with the joints that are its own alone: an end is brought back
without disturbing any other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from solvers.chain import ChainSolution, Target
from solvers.config import ChainConfig
from solvers.registry import solve_chain
from solvers.rig import RigChain, RigPose

ORDER = ("spine", "foot", "hand", "look", "tail")
"""Kinds of goals, first to be solved first: feet before hands before looks, the spine before all."""


@dataclass(frozen=True, slots=True, eq=False)
class Goal:
    """One end of a rig and what it should meet.

    Args:
        kind: One of ``ORDER``.
        chain: Whose tip.
        target: What it should meet.
        solver: Name of the solver.
        config: Its settings.
    """

    kind: str
    chain: RigChain
    target: Target
    solver: str = "fabrik"
    config: ChainConfig = ChainConfig()  # noqa: RUF009  # frozen


def solve_goals(
    pose: RigPose, goals: Mapping[str, Goal], order: Sequence[str] = ORDER
) -> tuple[RigPose, dict[str, ChainSolution]]:
    """Bring all ends of a rig to their targets.

    Args:
        pose: How the rig stands: the warm start, and what all bones outside of the chains keep.
        goals: Name to goal; the names are yours.
        order: Kinds, first to be solved first. Goals of one kind keep the order of ``goals``.

    Returns:
        The solved pose, and by name how each end meets its target in the end.

    Raises:
        ValueError: If a kind is not in ``order``.
    """
    for name, goal in goals.items():
        if goal.kind not in order:
            raise ValueError(f"{name} is a {goal.kind!r}; expected one of {', '.join(order)}")
    queue = sorted(goals, key=lambda name: order.index(goals[name].kind))
    used = Counter(joint for goal in goals.values() for joint in goal.chain.joints)
    found: dict[str, ChainSolution] = {}
    for name in queue:
        pose, found[name] = _solve(pose, goals[name], shared=True, used=used)
    if max(used.values(), default=0) > 1:
        for name in queue:
            pose, found[name] = _solve(pose, goals[name], shared=False, used=used)
    return pose, found


def _solve(pose: RigPose, goal: Goal, *, shared: bool, used: Counter[int]) -> tuple[RigPose, ChainSolution]:
    """One chain; without ``shared`` the joints that others use too are rigid."""
    chain, start = goal.chain.read(pose)
    if not shared:
        own = np.array([used[joint] == 1 for joint in goal.chain.joints])
        chain = replace(chain, weights=np.where(own, chain.weights, 0.0))
    solution = solve_chain(chain, start, goal.target, solver=goal.solver, config=goal.config)
    return goal.chain.write(pose, solution), solution
