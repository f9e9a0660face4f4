"""Solvers: chains of bones that reach targets, and the body made of them.

Each solver is two files with one name: here the typed front with checks and a result, in ``kernels/``
the compiled loop that the body calls directly. Names are loaded when they are first used, so that
``import solvers`` stays quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from solvers.ccd import solve_ccd
    from solvers.config import CcdConfig, DlsConfig, FabrikConfig
    from solvers.dls import solve_dls
    from solvers.fabrik import solve_fabrik
    from solvers.old_chain import ChainSolution
    from solvers.two_bone import solve_two_bone

_HOME = {
    "CcdConfig": "config",
    "ChainSolution": "old_chain",
    "DlsConfig": "config",
    "FabrikConfig": "config",
    "solve_ccd": "ccd",
    "solve_dls": "dls",
    "solve_fabrik": "fabrik",
    "solve_two_bone": "two_bone",
}

__all__ = [
    "CcdConfig",
    "ChainSolution",
    "DlsConfig",
    "FabrikConfig",
    "solve_ccd",
    "solve_dls",
    "solve_fabrik",
    "solve_two_bone",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"solvers.{_HOME[name]}"), name)
    raise AttributeError(f"module 'solvers' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
