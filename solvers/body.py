"""One body, frame after frame: features, guess, steps, then the solvers."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from solvers.features import FEATURES_VERSION, NAMES, FeatureState, features
from solvers.guess import Guess
from solvers.kernels import body as _kernels
from solvers.kernels.ccd import SCRATCH
from solvers.limits import SwingTwist, pack_limits
from solvers.prior import Prior, RulesPrior
from solvers.stepping import SteppingState, step
from vrik import quat
from vrik.arrays import Floats, Points, Quats
from vrik.body import BodyModel
from vrik.config import SolveConfig
from vrik.frames import ROLE_BONES, ROLES, BodyTargets
from vrik.skeleton import PARENTS


@dataclass(frozen=True, slots=True, eq=False)
class SolvedBody:
    """Views of the solver's own arrays: valid until its next step.

    Args:
        position: (22, 3) joints in the world. [m]
        rotation: (22, 4) canonical world rotations.
        local_rotation: (22, 4) relative to the parent bone, sign-continuous.
        reach_error_m: (13,) distance from each tracked role's bone to its target; NaN when not tracked. [m]
    """

    position: Points
    rotation: Quats
    local_rotation: Quats
    reach_error_m: Floats


class BodySolver:
    """Meets what is tracked, guesses the rest, and remembers what it must from one frame to the next.

    Args:
        body: Lengths of the person.
        config: How hard to try.
        prior: Who guesses; the rules when not given.
        floor_y: Height of the floor. [m]

    Raises:
        ValueError: If the prior reads another version of the features.
    """

    def __init__(
        self,
        body: BodyModel,
        config: SolveConfig = SolveConfig(),  # noqa: B008  # frozen
        prior: Prior | None = None,
        floor_y: float = 0.0,
    ) -> None:
        self.body = body
        self.config = config
        self.floor_y = floor_y
        self.prior: Prior = RulesPrior() if prior is None else prior
        if self.prior.features_version != FEATURES_VERSION:
            raise ValueError(
                f"the prior reads features version {self.prior.features_version}, here is {FEATURES_VERSION}"
            )
        self._spine_weights = np.array([0.0, 1.0, 1.0, 1.0, 0.3, 0.0])
        spine, neck = _ball(config.spine_limit_deg), _ball(config.neck_limit_deg)
        self._spine_limits = pack_limits([None, spine, spine, spine, neck, None])
        self.reset()

    def reset(self) -> None:
        """Forget all frames."""
        n = len(PARENTS)
        self._features = np.zeros(len(NAMES))
        self._feature_state = FeatureState.fresh()
        self._prior_state = self.prior.fresh_state()
        self._stepping_state = SteppingState.fresh()
        self.guess = Guess.fresh()
        self._last_twist = np.zeros(2)
        self._joints, self._lengths, self._goal = np.zeros((3, 3)), np.zeros(2), np.zeros((2, 3))
        self._turns = quat.identity(n)
        self._spine_scratch = np.empty((SCRATCH * len(self._spine_weights), 4))
        self._solved = SolvedBody(
            self.body.tpose.copy(), quat.identity(n), quat.identity(n), np.full(len(ROLES), np.nan)
        )

    def step(self, targets: BodyTargets, dt_s: float) -> SolvedBody:
        """Solve one frame.

        Args:
            targets: Must hold a head; the other roles as far as they are tracked.
            dt_s: Time since the frame before, 0 for the first and for repeated time stamps. [s]

        Returns:
            Views of this solver's arrays, overwritten by the next step.
        """
        body, config, guess, out = self.body, self.config, self.guess, self._solved
        features(targets, body.stature_m, self.floor_y, dt_s, self._feature_state, self._features)
        self.prior.guess(self._features, targets, body, self.floor_y, self._prior_state, guess)
        if config.stepping.enabled:
            speed = self._feature_state.velocity[0]
            step(guess, speed[0], speed[2], dt_s, body.stature_m, config.stepping, self._stepping_state)
        _kernels.solve(
            PARENTS,
            body.offsets,
            body.tpose,
            ROLE_BONES,
            targets.position,
            targets.rotation,
            targets.position_weight,
            guess.pelvis_position[None],
            guess.pelvis_rotation[None],
            guess.chest_rotation[None],
            guess.ankle_position,
            guess.foot_rotation,
            guess.elbow_pole,
            guess.knee_pole,
            self.floor_y,
            self._spine_weights,
            self._spine_limits,
            config.tolerance_m,
            config.max_rounds,
            config.damping,
            self._last_twist,
            self._joints,
            self._lengths,
            self._goal,
            self._turns,
            self._spine_scratch,
            out.position,
            out.rotation,
            out.local_rotation,
            out.reach_error_m,
        )
        return out


def _ball(limit_deg: float) -> SwingTwist:
    """A joint of the spine: swings and twists equally far to all sides."""
    limit = math.radians(limit_deg)
    return SwingTwist((0.0, 1.0, 0.0), (limit, limit), -limit, limit)
