"""Rotations out of joint positions, so that no motion, however long, winds a joint up.

Positions do not say how a bone is turned about itself. Taking the smallest turn from frame to frame would
answer it, but a bone that goes round a loop comes home turned by the solid angle of that loop: an hour of
motion adds them up. Here a bone's turn is the smallest one from its rest direction (the swing) after a twist
about itself, and the twist stays: where a bone is decides how it lies, whatever way it came.

The swing is lost at half a turn. Within ``HALF_TURN`` of there it is counted from the opposite direction
instead, and the twist carries on from the frame before: no jump on the way in nor on the way out. A bone
that goes in on one side and comes out on another has turned about itself meanwhile, and keeps that.
"""

import math

from vrik.arrays import Q4, V3, Points
from vrik.jit import kernel
from vrik.kernels.quat import qarc, qaxis, qconj, qmul, qrot, qtwist, qunit
from vrik.kernels.vec import add, cross, dot, load3, reject, scale, store3, sub

HALF_TURN = -0.94
"""Cosine of the swing (160 degrees) from which on it is counted from the opposite direction. Up to there a
bone that moves turns about itself at most tan(80 degrees) = 5.7 times as fast."""

OPPOSITE = -0.9999
"""Directions with a smaller cosine have no smallest turn worth the name."""

NO_DIRECTION: V3 = (0.0, 0.0, 0.0)


@kernel
def flat_turn(rest: V3, before: V3, after: V3) -> Q4:
    """Turn that takes direction ``before`` to ``after`` and is undone by any way back.

    The part of a bone's motion without twist about ``rest``; unit vectors all three. Near half a turn from
    ``rest`` the opposite of ``rest`` takes its place.
    """
    home = rest if dot(rest, after) > HALF_TURN else scale(rest, -1.0)
    if dot(home, before) < OPPOSITE:
        return qarc(before, after)
    return qmul(qarc(home, after), qconj(qarc(home, before)))


@kernel
def keep_twist(before: Q4, rest: V3, after: V3) -> Q4:
    """The parent-relative rotation that points a bone to ``after`` with the twist it had in ``before``.

    ``rest`` and ``after`` are unit directions of the bone, at rest and now, both seen from the parent.
    """
    if dot(rest, after) > HALF_TURN:
        along = before[1] * rest[0] + before[2] * rest[1] + before[3] * rest[2]
        if before[0] * before[0] + along * along > 1e-8:
            return qunit(qmul(qarc(rest, after), qtwist(before, rest)))
    return qunit(qmul(flat_turn(rest, qrot(before, rest), after), before))


@kernel
def keep_swivel(before: Points, joints: Points, rest: V3) -> None:
    """Turn ``joints`` about their root-tip axis until they lie about it as they did ``before``.

    ``before`` is carried along by :func:`flat_turn` from ``rest``, the root-tip direction at rest; what is
    off the axis then counts by the square of its distance. A straight chain stays as it is.
    """
    tip = len(joints) - 1
    root = load3(joints, 0)
    was = unit_chord(before, tip)
    axis = unit_chord(joints, tip)
    if dot(was, was) < 0.5 or dot(axis, axis) < 0.5:
        return
    turn = flat_turn(rest, was, axis)
    same, across = 0.0, 0.0
    for i in range(1, tip):
        wanted = reject(qrot(turn, sub(load3(before, i), load3(before, 0))), axis)
        found = reject(sub(load3(joints, i), root), axis)
        same += dot(found, wanted)
        across += dot(axis, cross(found, wanted))
    if same * same + across * across < 1e-24:
        return
    turn_about(joints, axis, math.atan2(across, same))


@kernel
def swivel_to_pole(joints: Points, pole: V3) -> None:
    """Turn ``joints`` about their root-tip axis until they bend to the side of the world direction ``pole``.

    The bend of a chain is the sum of what its joints have off that axis. Straight chains, and a pole along
    the axis, leave all as it is.
    """
    tip = len(joints) - 1
    root = load3(joints, 0)
    axis = unit_chord(joints, tip)
    if dot(axis, axis) < 0.5:
        return
    bend = NO_DIRECTION
    for i in range(1, tip):
        bend = add(bend, reject(sub(load3(joints, i), root), axis))
    side = reject(pole, axis)
    if dot(bend, bend) < 1e-18 or dot(side, side) < 1e-12 * dot(pole, pole):
        return
    turn_about(joints, axis, math.atan2(dot(axis, cross(bend, side)), dot(bend, side)))


@kernel
def turn_about(joints: Points, axis: V3, angle: float) -> None:
    """Turn all ``joints`` about the unit ``axis`` through the first one; the last is on it and stays."""
    if angle == 0.0:
        return
    root = load3(joints, 0)
    turn = qaxis(axis, angle)
    for i in range(1, len(joints) - 1):
        store3(joints, i, add(root, qrot(turn, sub(load3(joints, i), root))))


@kernel
def unit_chord(joints: Points, tip: int) -> V3:
    """Direction from the first joint to the last, or zero when they share a place."""
    chord = sub(load3(joints, tip), load3(joints, 0))
    square = dot(chord, chord)
    if square < 1e-18:
        return NO_DIRECTION
    return scale(chord, 1.0 / math.sqrt(square))
