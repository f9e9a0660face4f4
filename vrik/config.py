"""Settings, each a field with a default, a unit and one line of help.

The command line and the docs are made from these classes. This file imports neither numpy nor numba,
so that ``vrik --help`` stays quick.
"""

from dataclasses import dataclass, field

REACH_SHARE = 1.3
"""No device worn on a body is farther than this from the head; standing feet are at 0.9. [statures]"""


@dataclass(frozen=True, slots=True)
class ConditionConfig:
    """What happens to a device's pose before anything else sees it."""

    hold_s: float = 0.3
    """How long a lost device keeps steering the body with its last pose. [s]"""

    fade_s: float = 0.4
    """How long the body then takes to let go of it. [s]"""

    return_s: float = 0.2
    """How long it takes to follow a device again that came back. [s]"""

    max_speed_m_s: float = 20.0
    """A device that moves faster than this from one frame to the next has jumped, not moved. [m/s]"""

    max_glitch_s: float = 0.1
    """A jump that lasts longer than this is believed. [s]"""

    reach_share: float = REACH_SHARE
    """A worn device farther than this from the head is taken as not tracked. [statures]"""


@dataclass(frozen=True, slots=True)
class SpaceConfig:
    """Where the tracking space lies in the venue (``T_venue_standing``): yaw and position only."""

    yaw_deg: float = 0.0
    """Turn of the tracking space about the vertical, positive to the left. [deg]"""

    x_m: float = 0.0
    """Origin of the tracking space in the venue, +X right. [m]"""

    y_m: float = 0.0
    """Height of the tracking space's floor in the venue. [m]"""

    z_m: float = 0.0
    """Origin of the tracking space in the venue, -Z forward. [m]"""


@dataclass(frozen=True, slots=True)
class SteppingConfig:
    """When a foot that no tracker is on takes a step."""

    enabled: bool = True
    """Off: the feet glide along under the pelvis."""

    distance_share: float = 0.06
    """A step is due when the foot is this far from where it belongs. [statures]"""

    turn_deg: float = 35.0
    """A step is due when the body has turned this far from the foot. [deg]"""

    swing_s: float = 0.25
    """How long a foot is in the air. [s]"""

    lift_share: float = 0.035
    """How high it is lifted. [statures]"""

    lead_s: float = 0.15
    """A step lands where the body will be this much later. [s]"""


@dataclass(frozen=True, slots=True)
class SolveConfig:
    """How hard the solvers try."""

    tolerance_m: float = 1e-4
    """Distance to a target that counts as met. [m]"""

    max_rounds: int = 24
    """Sweeps or rounds of one solver before it gives up."""

    damping: float = 0.05
    """Damping where a limb is solved by least squares, as a share of the largest singular value."""

    neck_limit_deg: float = 70.0
    """Largest angle between upper chest and neck. [deg]"""

    spine_limit_deg: float = 50.0
    """Largest angle between neighbouring parts of the spine. [deg]"""

    arm_solver: str = "fabrik"
    """Which solver bends the arms: any name of ``solvers.solver_names()``."""

    leg_solver: str = "two_bone"
    """Which solver bends the legs."""

    spine_solver: str = "ccd"
    """Which solver bends the spine. Other solvers than these three run outside of the compiled body, more
    slowly."""

    stepping: SteppingConfig = field(default_factory=SteppingConfig)
    """When feet without trackers step."""


@dataclass(frozen=True, slots=True)
class PipelineConfig:
    """Everything between a tracker frame and a pose frame."""

    condition: ConditionConfig = field(default_factory=ConditionConfig)
    """Holding, fading and cutting of device poses."""

    prior: str = "rules"
    """Who guesses what no device is on: rules, fitted (a network fitted on motion capture), or a FILE of
    weights."""

    space: SpaceConfig = field(default_factory=SpaceConfig)
    """Where the tracking space lies in the venue."""

    solve: SolveConfig = field(default_factory=SolveConfig)
    """The solvers."""
