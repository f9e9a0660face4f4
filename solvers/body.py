"""One body, frame after frame: features, guess, steps, then the solvers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from solvers.body_parts import Scratch, SolvedBody, spine_of
from solvers.features import FEATURES_VERSION, NAMES, FeatureState, features
from solvers.guess import Guess
from solvers.kernels import body as _kernels
from solvers.prior import Prior, RulesPrior
from solvers.stepping import SteppingState, step
from vrik.body import BodyModel
from vrik.config import SolveConfig
from vrik.frames import ROLE_BONES, BodyTargets
from vrik.skeleton import PARENTS

COMPILED = ("fabrik", "two_bone", "ccd")
"""The solvers of arms, legs and spine in the compiled body."""


class BodySolver:
    """Meets what is tracked, guesses the rest, and remembers what it must from one frame to the next.

    Args:
        body: Lengths of the person.
        config: How hard to try.
        prior: Who guesses; the rules when not given.
        floor_y: Height of the floor. [m]

    Raises:
        ValueError: If the prior reads another version of the features, or a limb's solver is not known.
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
        stepping = config.stepping
        self._stepping = replace(stepping, lead_s=0.0) if self.prior.feet_lead else stepping
        self._offsets, self._tpose = (
            np.array(body.offsets),
            np.array(body.tpose),
        )  # writable: one machine code
        self._spine = spine_of(config)
        self._compiled = (config.arm_solver, config.leg_solver, config.spine_solver) == COMPILED
        if not self._compiled:
            from solvers.limb_solvers import check_solvers

            check_solvers(config)
        self.reset()

    def reset(self) -> None:
        """Forget all frames."""
        self._features = np.zeros(len(NAMES))
        self._feature_state = FeatureState.fresh()
        self._prior_state = self.prior.fresh_state()
        self._stepping_state = SteppingState.fresh()
        self.guess = Guess.fresh()
        self._scratch = Scratch.fresh()
        self._solved = SolvedBody.in_tpose(self.body)

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
            step(guess, speed[0], speed[2], dt_s, body.stature_m, self._stepping, self._stepping_state)
        scratch = self._scratch
        if not self._compiled:
            from solvers.limb_solvers import pose_with

            lengths = (self._offsets, self._tpose)
            pose_with(lengths, config, targets, guess, self.floor_y, self._spine, scratch, out)
            return out
        _kernels.torso(
            self._offsets,
            targets.position,
            targets.rotation,
            targets.position_weight,
            guess.pelvis_position[None],
            guess.pelvis_rotation[None],
            guess.chest_rotation[None],
            *self._spine,
            config.tolerance_m,
            config.max_rounds,
            scratch.turns,
            scratch.spine,
            out.position,
        )
        _kernels.limbs(
            PARENTS,
            self._offsets,
            self._tpose,
            ROLE_BONES,
            targets.position,
            targets.rotation,
            targets.position_weight,
            guess.ankle_position,
            guess.foot_rotation,
            guess.elbow_pole,
            guess.knee_pole,
            self.floor_y,
            config.tolerance_m,
            config.max_rounds,
            scratch.last_twist,
            scratch.joints,
            scratch.lengths,
            scratch.goal,
            scratch.turns,
            out.position,
            out.rotation,
            out.local_rotation,
            out.reach_error_m,
        )
        return out
