"""Swivel of a limb: which way elbow or knee points, as an angle, and as a side that never jumps."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from solvers.chain import NO_PULL, checked_vector
from solvers.kernels import swivel as kernels
from vrik.arrays import V3, Vec3

SwivelStatus: TypeAlias = Literal["defined", "held", "limited"]
"""``defined``: where the pole says. ``held``: the pole says nothing (none, along the limb), the side is kept
and carried along. ``limited``: on the way to where the pole says, at the largest speed."""

_STATUS: tuple[SwivelStatus, SwivelStatus, SwivelStatus] = ("defined", "held", "limited")

RATE_RAD_S = 6.0
"""Half a turn in half a second: an elbow of a bent arm moves 1.5 m/s, 1.7 cm at 90 Hz. Our choice. [rad/s]"""

ZONE = 0.15
"""Sine between limb and pole below which the pole says little: 8.6 degrees. Our choice."""

SWITCH_FROM, SWITCH_TO = 0.85, 0.97
"""Cosine between limb and reference over which the angle changes to the spare reference (32 to 14 deg)."""


def swivel_angle(root: ArrayLike, middle: ArrayLike, tip: ArrayLike, reference: ArrayLike) -> float | None:
    """Angle of a limb's middle joint about the axis from its root to its tip.

    Args:
        root, middle, tip: (3,) joints. [m]
        reference: (3,) world direction whose projection is zero.

    Returns:
        -pi to pi by the right-hand rule, or None where there is no such angle: a straight limb, a tip on the
        root, or a reference along the axis. [rad]

    Source:
        Tolani, Goswami & Badler, Graphical Models 62 (2000), section 3.
    """
    angle = kernels.swivel_of(*_vectors(root=root, middle=middle, tip=tip, reference=reference))
    return None if math.isnan(angle) else angle


def with_swivel(
    root: ArrayLike, middle: ArrayLike, tip: ArrayLike, angle_rad: float, reference: ArrayLike
) -> Vec3:
    """Where the middle joint is at another swivel: (3,), bones keep their lengths. [m]

    It stays where it is when the axis or the reference's projection has no direction.
    """
    start, bend, end, zero = _vectors(root=root, middle=middle, tip=tip, reference=reference)
    if not math.isfinite(angle_rad):
        raise ValueError(f"angle_rad is not finite: {angle_rad}")
    return np.array(kernels.middle_at(start, bend, end, zero, float(angle_rad)))


def hinted_pole(
    root: ArrayLike, middle: ArrayLike, tip: ArrayLike, hint: ArrayLike, hint_weight: float
) -> Vec3:
    """A pole (3,) between the bend a limb has and a hint.

    A pole is met; a hint is a preference: at weight 0 the bend stays, at 1 it points to the hint, between it
    is turned that share of the way. Give the animation's limb, not the last solution: blended into its own
    result a hint would win sooner the more frames there are (to follow it in time, see
    ``solvers.smoothing``). A straight limb has no bend to keep, and a hint along the limb says nothing: the
    other one alone counts.
    """
    if not 0.0 <= hint_weight <= 1.0:
        raise ValueError(f"hint_weight is {hint_weight:g}; it must be from 0 to 1")
    bent = swivel_angle(root, middle, tip, hint)
    if bent is None:
        off = np.asarray(middle, np.float64) - np.asarray(root, np.float64)
        axis = np.asarray(tip, np.float64) - np.asarray(root, np.float64)
        along = axis * (off @ axis) / max(float(axis @ axis), 1e-18)
        return off - along if np.linalg.norm(off - along) > 1e-6 else np.array(hint, np.float64)
    there = with_swivel(root, middle, tip, (1.0 - hint_weight) * bent, hint)
    start, end = np.asarray(root, np.float64), np.asarray(tip, np.float64)
    axis = (end - start) / np.linalg.norm(end - start)
    off = there - start
    return np.asarray(off - axis * (off @ axis))


@dataclass(frozen=True, slots=True, eq=False)
class Swivel:
    """Where a limb's middle joint shall point.

    Args:
        side: (3,) unit world direction at a right angle to the limb: a pole for a solver.
        axis: (3,) unit direction root to tip.
        angle_rad: Angle of ``side`` about ``axis`` from the reference, counted on through whole turns. [rad]
        status: See :data:`SwivelStatus`.
    """

    side: Vec3
    axis: Vec3
    angle_rad: float
    status: SwivelStatus


class SwivelState:
    """Remembers the side of one limb, so that it is continuous where its pole is not.

    From frame to frame, seen from the limb (which is carried along by the smallest turn), the side turns by
    at most ``rate_rad_s * dt + (turn of axis + turn of pole) / zone``, straight limbs, folded limbs and limbs
    that pass through the pole direction included.

    Args:
        reference: (3,) world direction of angle zero.
        spare: (3,) the one used where the limb is nearly along ``reference``, at a right angle to it. The
            angle changes over smoothly, and back to what it was (Tolani et al. switch references too).
        rate_rad_s: Largest speed where the pole says little. [rad/s]
        zone: Sine between limb and pole below which it says little.
    """

    def __init__(
        self,
        reference: ArrayLike = (0.0, -1.0, 0.0),
        spare: ArrayLike = (0.0, 0.0, 1.0),
        *,
        rate_rad_s: float = RATE_RAD_S,
        zone: float = ZONE,
    ) -> None:
        self._reference, self._spare = _vectors(reference=reference, spare=spare)
        if not rate_rad_s > 0.0 or not 0.0 < zone <= 1.0:
            raise ValueError(f"rate_rad_s is {rate_rad_s:g} and zone {zone:g}; above 0, zone at most 1")
        if not np.cross(self._reference, self._spare).any():
            raise ValueError("reference and spare lie on one line; they need two directions")
        self.rate_rad_s, self.zone = rate_rad_s, zone
        self.reset()

    def reset(self) -> None:
        """Forget everything: the next step takes its pole as it is."""
        self._state = np.zeros(kernels.STATE_WIDTH)
        self._angle: float | None = None
        self._shift: float | None = None

    def step(self, root: ArrayLike, tip: ArrayLike, pole: ArrayLike | None, dt_s: float) -> Swivel:
        """Follow ``pole`` for one frame.

        Args:
            root: (3,) first joint. [m]
            tip: (3,) last joint, or the target. [m]
            pole: (3,) world direction, or the bend of a given limb (middle joint minus root); None: none.
            dt_s: Time since the last step. [s]
        """
        start, end = _vectors(root=root, tip=tip)
        way = NO_PULL if pole is None else checked_vector("pole", pole)
        status = kernels.follow(self._state, start, end, way, float(dt_s), self.rate_rad_s, self.zone)
        axis, side = self._state[0:3].copy(), self._state[3:6].copy()
        self._angle = self._counted_on(axis, side)
        return Swivel(side, axis, self._angle, _STATUS[status])

    def _counted_on(self, axis: Vec3, side: Vec3) -> float:
        """The angle from the reference, and from the spare one where the limb is along the first."""
        along, to = _triple(axis), _triple(side)
        still = (0.0, 0.0, 0.0)
        main = kernels.swivel_of(still, to, along, self._reference)
        other = kernels.swivel_of(still, to, along, self._spare)
        cosine = abs(float(np.dot(along, self._reference))) / float(np.linalg.norm(self._reference))
        t = min(max((cosine - SWITCH_FROM) / (SWITCH_TO - SWITCH_FROM), 0.0), 1.0)
        share = t * t * (3.0 - 2.0 * t)
        if math.isnan(main):
            main, share = other, 1.0
        if share == 0.0:
            self._shift = None
            angle = main
        else:
            if self._shift is None:
                self._shift = main - other
            other += self._shift
            angle = other + (1.0 - share) * _wrapped(main - other)
        return angle if self._angle is None else self._angle + _wrapped(angle - self._angle)


def _wrapped(angle: float) -> float:
    return (angle + math.pi) % (2.0 * math.pi) - math.pi


def _triple(v: Vec3) -> V3:
    return (float(v[0]), float(v[1]), float(v[2]))


def _vectors(**named: ArrayLike) -> list[V3]:
    return [checked_vector(name, vector) for name, vector in named.items()]
