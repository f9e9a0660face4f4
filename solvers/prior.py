"""The seam between what is tracked and what must be guessed, and the prior that needs no data file."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from solvers.guess import Guess
from solvers.kernels import rules as _kernels
from vrik.arrays import Floats
from vrik.body import BodyModel
from vrik.frames import BodyTargets


class Prior(Protocol):
    """Guesses the parts of a body that no device is on."""

    features_version: int
    """The ``solvers.features.FEATURES_VERSION`` this prior reads."""

    feet_lead: bool
    """Whether its ankles are where the feet are on their way to; else they glide along under the body, and
    stepping looks ahead for them."""

    def fresh_state(self) -> Floats:
        """Memory for one body, an explicit array: copy it, batch it, reset it."""
        ...

    def guess(
        self,
        features: Floats,
        targets: BodyTargets,
        body: BodyModel,
        floor_y: float,
        state: Floats,
        out: Guess,
    ) -> None:
        """Fill ``out`` for one frame and advance ``state``.

        Args:
            features: As laid out in ``solvers.features.NAMES``.
            targets: Tracked parts; a guess may build on trackers, the solver meets them anyway.
            body: Lengths of the person.
            floor_y: Height of the floor. [m]
            state: Memory from :meth:`fresh_state`.
            out: Overwritten.
        """
        ...


class RulesPrior:
    """Regressions with a handful of terms: pelvis by head height and pitch, chest by the hands, elbows by
    hand place and turn, feet under the pelvis. See ``solvers/kernels/rules.py``.
    """

    features_version = 2
    feet_lead = False

    def fresh_state(self) -> Floats:
        """(2,) the smoothed lead of the right hand, and whether there is one."""
        return np.zeros(2)

    def guess(
        self,
        features: Floats,
        targets: BodyTargets,
        body: BodyModel,
        floor_y: float,
        state: Floats,
        out: Guess,
    ) -> None:
        """See :meth:`Prior.guess`."""
        _kernels.guess(
            features,
            targets.position,
            targets.rotation,
            targets.position_weight,
            body.tpose,
            body.stature_m,
            floor_y,
            state,
            *out.arrays(),
        )
        head, left, right = targets.position_weight[:3]
        both = min(head, left, right)
        out.confidence[:] = (head, both, min(head, left), min(head, right), head, head)
