"""Settings of the chain solvers. Imports neither numpy nor numba, so that ``vrik --help`` stays quick."""

import math
from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True)
class ChainConfig:
    """How a chain is solved and when to stop; each solver reads what concerns it (see docs/solvers.md).

    Raises:
        ValueError: If a setting is negative or not finite.
    """

    tolerance_m: float = 1e-4
    """Tip-to-target distance that counts as reached. [m]"""

    tolerance_rad: float = 1e-3
    """Angle to the target's rotation that counts as reached. [rad]"""

    max_rounds: int = 64
    """Rounds, sweeps or steps before giving up."""

    max_step_rad: float = 0.5
    """Largest turn of one joint in one sweep or step while the tip is far from its target. [rad]"""

    near_step_rad: float = 0.1
    """The same when the tip is nearly there. [rad]"""

    joint_damping: float = 1.0
    """CCD: share of its turn that a joint makes, 0 to 1; less spreads the bend over more joints."""

    damping: float = 0.05
    """Least squares: damping at a full singularity, as a share of the largest singular value."""

    singular_share: float = 0.2
    """Least squares: damping begins where the smallest singular value is this share of the largest."""

    limit_avoidance: float = 0.0
    """Least squares: pull towards the middle of the joints' ranges that does not move the tip; 0 is none."""

    rotation_length_m: float = 0.3
    """A radian of rotation error counts as much as this distance. [m]"""

    restarts: int = 0
    """Least squares: further tries from other poses when the target is not met because of limits. For single
    poses only: from frame to frame a chain would jump."""

    takeover_share: float = 0.0
    """Damped least squares is blended into FABRIK and CCD where the smallest singular value is below this
    share of the largest; 0 is never."""

    soft_reach_m: float = 0.0
    """Two-bone and least squares: the limb begins to lag behind its target this far before it is straight, so
    that its middle joint never snaps. [m]"""

    max_stretch: float = 1.0
    """Two-bone: bones may become this much longer to meet a target out of reach; 1 is never."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not (math.isfinite(value) and value >= 0):
                raise ValueError(f"{field.name} is {value}; it must be finite and not negative")
