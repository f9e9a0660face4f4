"""Settings of the chain solvers. Imports neither numpy nor numba, so that ``vrik --help`` stays quick."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FabrikConfig:
    """When FABRIK stops."""

    tolerance_m: float = 1e-4
    """Tip-to-target distance that counts as reached. [m]"""

    max_rounds: int = 64
    """Backward-and-forward passes before giving up."""


@dataclass(frozen=True, slots=True)
class CcdConfig:
    """How far cyclic coordinate descent turns each joint, and when it stops."""

    tolerance_m: float = 1e-4
    """Tip-to-target distance that counts as reached. [m]"""

    max_step_rad: float = 0.5
    """Largest turn of one joint in one sweep. [rad]"""

    max_sweeps: int = 64
    """Tip-to-root sweeps before giving up."""


@dataclass(frozen=True, slots=True)
class DlsConfig:
    """How damped least squares steps, and when it stops."""

    tolerance_m: float = 1e-4
    """Tip-to-target distance that counts as reached. [m]"""

    max_step_rad: float = 0.5
    """Largest turn of one joint in one step; a longer step is shortened as a whole. [rad]"""

    max_steps: int = 64
    """Steps before giving up."""

    damping: float = 0.05
    """Damping at a full singularity, as a share of the largest singular value."""
