"""Which swivel a limb may have: limits of its first joint and of its hand forbid some.

The swivel turns a solved limb about the line from root to target. The nearest one that is allowed is looked
for to both sides; where none is, the one that is least outside.
"""

import math

from solvers.kernels.limits import (
    CONE,
    HIGH,
    HINGE,
    KIND,
    LOW,
    OTHER_SWING,
    SWING,
    axis_of,
    center_of,
    excess,
)
from vrik.arrays import Q4, V3, Floats
from vrik.jit import kernel
from vrik.kernels.quat import qaxis, qconj, qmul, qtwist_angle, qunit
from vrik.kernels.vec import dot

NARROW = 0.75
"""A cone with one swing below this share of the other is a hinge with play, bent about the wider swing."""

SEARCH_STEPS = 12
"""Swivels tried to either side when a limit forbids the wanted one: 15 degrees apart."""

HALVINGS = 26
"""Then the border of what is allowed is found by halving, to 4e-9 rad."""

NEARER = 1e-3
"""Where no swivel is allowed, what a swivel costs beside what is outside: so there is one best. [1/rad]"""

ALLOWED = 1e-9
"""A turn outside of its limits by less is inside. [rad]"""


@kernel
def is_hinge(limits: Floats, i: int) -> bool:
    """Whether joint ``i`` bends about an axis of its own: a hinge, or a cone that is one with play."""
    if limits[i, KIND] == HINGE:
        return True
    one = limits[i, SWING]
    other = limits[i, OTHER_SWING]
    return bool(limits[i, KIND] == CONE and min(one, other) < NARROW * max(one, other))


@kernel
def roll(local: Q4, turn: Q4, bone: V3, limits: Floats) -> Q4:
    """The middle joint's turn with as much of the roll of ``turn`` about ``bone`` as it may have.

    ``turn`` is what hangs on the bone, seen from it. A hinge rolls nothing, nor a joint with another axis.
    """
    kind = limits[1, KIND]
    if kind == HINGE:
        return local
    angle = qtwist_angle(turn, bone)
    if kind == CONE:
        axis = axis_of(limits, 1)
        if dot(axis, bone) < 1.0 - 1e-9:
            return local
        now = qtwist_angle(qmul(qconj(center_of(limits, 1)), local), axis)
        angle = min(max(now + angle, limits[1, LOW]), limits[1, HIGH]) - now
    return qunit(qmul(local, qaxis(bone, angle)))


@kernel
def outside(
    angle: float,
    first: Q4,
    local: Q4,
    ahead: V3,
    bone: V3,
    base: Q4,
    limits: Floats,
    turn: Q4,
    with_hand: bool,
) -> float:
    """How far the first joint, and the hand if asked, are outside of their limits at a swivel. [rad]"""
    turned = qmul(qaxis(ahead, angle), first)
    if with_hand and is_hinge(limits, 1):
        local = roll(local, qmul(qconj(qmul(turned, local)), turn), bone, limits)
    miss = excess(qmul(qconj(base), turned), limits, 0)
    if with_hand:
        miss += excess(qmul(qconj(qmul(turned, local)), turn), limits, 2)
    return miss


@kernel
def allowed_swivel(
    first: Q4, local: Q4, ahead: V3, bone: V3, base: Q4, limits: Floats, turn: Q4, with_hand: bool
) -> float:
    """The swivel nearest to none at which :func:`outside` is zero, or least. [rad]"""
    least = outside(0.0, first, local, ahead, bone, base, limits, turn, with_hand)
    if least <= ALLOWED:
        return 0.0
    best = 0.0
    found = math.inf
    step = math.pi / float(SEARCH_STEPS)
    for i in range(2, 2 * SEARCH_STEPS + 2):  # to one side and the other, farther and farther
        inwards = step if i % 2 == 0 else -step
        angle = -inwards * float(i // 2)
        miss = outside(angle, first, local, ahead, bone, base, limits, turn, with_hand)
        if miss <= ALLOWED:
            out = angle + inwards
            for _ in range(HALVINGS):
                half = 0.5 * (out + angle)
                if outside(half, first, local, ahead, bone, base, limits, turn, with_hand) <= ALLOWED:
                    angle = half
                else:
                    out = half
            if abs(angle) < abs(found):
                found = angle
        elif miss + NEARER * angle * angle < least:
            least = miss + NEARER * angle * angle
            best = angle
        if i % 2 == 1 and found < math.inf:
            return found
    middle = best
    for i in range(4 * HALVINGS):  # nothing is allowed: what is least outside
        angle = middle + step if i % 2 == 0 else middle - step
        miss = outside(angle, first, local, ahead, bone, base, limits, turn, with_hand)
        if miss + NEARER * angle * angle < least:
            least = miss + NEARER * angle * angle
            best = angle
        if i % 2 == 1:
            if best == middle:
                step *= 0.5
            middle = best
    return best
