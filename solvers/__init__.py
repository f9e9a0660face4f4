"""Solvers: chains of bones that reach targets, and the body made of them.

Each solver is two files with one name: here the typed front with checks and a result, in ``kernels/``
the compiled loop that the body calls directly. Names are loaded when they are first used, so that
``import solvers`` stays quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from solvers.anatomy import limit_of, limits_of
    from solvers.blend import CrossFade, combined
    from solvers.chain import Chain, ChainPose, ChainSolution, Target, judged
    from solvers.config import ChainConfig
    from solvers.fabrik_tree import FabrikTree, TreePose, TreeSolution, solve_tree
    from solvers.limits import Hinge, SwingTwist, clamp_rotation, limit_excess
    from solvers.many import ChainSolutions, solve_many
    from solvers.ondemand import OnDemand, OnDemandConfig
    from solvers.plan import Goal, solve_goals
    from solvers.registry import register_solver, solve_chain, solver_names
    from solvers.rig import Rig, RigChain, RigPose
    from solvers.smoothing import TargetSmoother
    from solvers.swivel import SwivelState, swivel_angle, with_swivel

_HOME = {
    "Chain": "chain",
    "ChainConfig": "config",
    "ChainPose": "chain",
    "ChainSolution": "chain",
    "ChainSolutions": "many",
    "CrossFade": "blend",
    "FabrikTree": "fabrik_tree",
    "Goal": "plan",
    "Hinge": "limits",
    "OnDemand": "ondemand",
    "OnDemandConfig": "ondemand",
    "Rig": "rig",
    "RigChain": "rig",
    "RigPose": "rig",
    "SwingTwist": "limits",
    "SwivelState": "swivel",
    "Target": "chain",
    "TargetSmoother": "smoothing",
    "TreePose": "fabrik_tree",
    "TreeSolution": "fabrik_tree",
    "clamp_rotation": "limits",
    "combined": "blend",
    "judged": "chain",
    "limit_excess": "limits",
    "limit_of": "anatomy",
    "limits_of": "anatomy",
    "register_solver": "registry",
    "solve_chain": "registry",
    "solve_goals": "plan",
    "solve_many": "many",
    "solve_tree": "fabrik_tree",
    "solver_names": "registry",
    "swivel_angle": "swivel",
    "with_swivel": "swivel",
}

__all__ = [
    "Chain",
    "ChainConfig",
    "ChainPose",
    "ChainSolution",
    "ChainSolutions",
    "CrossFade",
    "FabrikTree",
    "Goal",
    "Hinge",
    "OnDemand",
    "OnDemandConfig",
    "Rig",
    "RigChain",
    "RigPose",
    "SwingTwist",
    "SwivelState",
    "Target",
    "TargetSmoother",
    "TreePose",
    "TreeSolution",
    "clamp_rotation",
    "combined",
    "judged",
    "limit_excess",
    "limit_of",
    "limits_of",
    "register_solver",
    "solve_chain",
    "solve_goals",
    "solve_many",
    "solve_tree",
    "solver_names",
    "swivel_angle",
    "with_swivel",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"solvers.{_HOME[name]}"), name)
    raise AttributeError(f"module 'solvers' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
