"""FABRIK: forward and backward reaching inverse kinematics, on joint positions alone.

Source: Aristidou & Lasenby, "FABRIK: a fast, iterative solver for the inverse kinematics problem",
Graphical Models 73 (2011), Algorithm 1. Added here: what to do when the bones lie on the line to the
target, when joints coincide, when the target is too near, and two ends for a chain that gains less and
less, as plain FABRIK does near straight and near folded (thousands of rounds for an arm): the whole bend
made larger or smaller until the distance fits, or else the last two bones in closed form.
"""

import math

from solvers.kernels.triangle import bend, side_of
from vrik.arrays import V3, Floats, Points
from vrik.jit import kernel
from vrik.kernels.quat import carry, qarc
from vrik.kernels.vec import add, distance, dot, length, load3, reject, scale, store3, sub, unit_or

ON_LINE = 1e-4
"""Joints nearer to the root-target line than this share of the chain's length count as on it."""

SLOW = 0.5
"""A round that leaves more than this share of the miss is slow: time for one of the two ends."""

FITS = 0.1
"""A bend fits when the tip is as far from the root as the target, but for this share of the tolerance."""


@kernel
def reach(joints: Points, lengths: Floats, target: V3, pole: V3, tolerance: float, max_rounds: int) -> int:
    """Move ``joints`` in place until the tip is on ``target``; the root stays put.

    joints (n, 3) and lengths (n - 1,) in metres; ``pole`` is a world direction, the side to bend to
    when the chain lies on the line to the target. Out of reach it lies straight towards the target,
    too near it is folded on that line. Returns the rounds used.
    """
    tip = len(joints) - 1
    root = load3(joints, 0)
    total = 0.0
    longest = 0
    for i in range(tip):
        total += lengths[i]
        if lengths[i] > lengths[longest]:
            longest = i
    away = distance(target, root)
    if away > 1e-9:
        axis = scale(sub(target, root), 1.0 / away)
    else:  # target on the root: keep the bend that is there, else bend to the pole
        axis = unit_or(sub(load3(joints, 1), root), unit_or(pole, (0.0, -1.0, 0.0)))
    if away >= total:
        lie_straight(joints, lengths, axis)
        return 0
    if away <= 2.0 * lengths[longest] - total:
        fold(joints, lengths, axis, longest)
        return 0

    root_to_tip(joints, lengths, root, axis)  # joints that coincide get their bone length back
    if distance(load3(joints, tip), target) > tolerance and off_line(joints, axis) <= ON_LINE * total:
        lie_on_loop(joints, lengths, axis, side_of(pole, axis), away, total)
        root_to_tip(joints, lengths, root, axis)
    before = math.inf
    for rounds in range(max_rounds):
        miss = distance(load3(joints, tip), target)
        if miss <= tolerance:
            return rounds
        if miss > SLOW * before:
            if tip > 2 and fit_bend(joints, lengths, target, FITS * tolerance):
                return rounds
            if bend_last_two(joints, lengths, target, pole):
                return rounds
        before = miss
        store3(joints, tip, target)
        for i in range(tip - 1, -1, -1):  # tip to root: bones follow the target
            store3(joints, i, place(load3(joints, i + 1), load3(joints, i), lengths[i], axis))
        root_to_tip(joints, lengths, root, axis)
    return max_rounds


@kernel
def bend_last_two(joints: Points, lengths: Floats, target: V3, pole: V3) -> bool:
    """Meet ``target`` by the last two bones alone, in the plane they bend in; false if they cannot."""
    tip = len(joints) - 1
    if tip < 2:
        return False
    start = load3(joints, tip - 2)
    upper = lengths[tip - 2]
    lower = lengths[tip - 1]
    away = distance(target, start)
    if away < 1e-9 or away > upper + lower or away < abs(upper - lower):
        return False
    axis = scale(sub(target, start), 1.0 / away)
    side = unit_or(reject(sub(load3(joints, tip - 1), start), axis), pole)
    b = bend(start, target, upper, lower, side)
    store3(joints, tip - 1, (b[0], b[1], b[2]))
    store3(joints, tip, (b[3], b[4], b[5]))
    return True


@kernel
def fit_bend(joints: Points, lengths: Floats, target: V3, close: float) -> bool:
    """Meet ``target`` by making the bend of the whole chain flatter or deeper; false if that cannot be.

    What each bone has along the root-tip line stays, what it has across is multiplied by one number, the
    same for all; the number is found by false position (Illinois) on its square, in which the distance from
    root to tip is nearly linear. Then the chain turns as a whole. A miss of ``close`` is good enough. [m]
    """
    root = load3(joints, 0)
    chord = sub(load3(joints, len(joints) - 1), root)
    away = distance(target, root)
    if away < 1e-9 or length(chord) < 1e-9:
        return False
    axis = unit_or(chord, (0.0, 0.0, 0.0))
    low, over_low = 0.0, length(bent_tip(joints, axis, 0.0)) - away  # flat: too far
    high, over_high = 1.0, length(chord) - away
    while over_high > 0.0:  # not bent enough: deeper
        low, over_low = high, over_high
        high *= 4.0
        if high > 1e4:
            return False
        over_high = length(bent_tip(joints, axis, math.sqrt(high))) - away
    if not over_low > 0.0:
        return False
    much = high
    side = 0
    for _ in range(32):
        much = (low * over_high - high * over_low) / (over_high - over_low)
        over = length(bent_tip(joints, axis, math.sqrt(much))) - away
        if abs(over) <= close:
            break
        if over > 0.0:
            low, over_low = much, over
            if side == 1:
                over_high *= 0.5
            side = 1
        else:
            high, over_high = much, over
            if side == -1:
                over_low *= 0.5
            side = -1
    factor = math.sqrt(much)
    tip = bent_tip(joints, axis, factor)
    turn = qarc(unit_or(tip, axis), scale(sub(target, root), 1.0 / away))
    before = root
    for i in range(len(joints) - 1):
        after = load3(joints, i + 1)
        bone = scale(bent(sub(after, before), axis, factor), lengths[i])
        store3(joints, i + 1, carry(turn, load3(joints, i), bone))
        before = after
    return distance(load3(joints, len(joints) - 1), target) <= 10.0 * close


@kernel
def bent(bone: V3, axis: V3, factor: float) -> V3:
    """Direction of ``bone`` when its part across ``axis`` is ``factor`` times as long."""
    along = dot(bone, axis)
    return unit_or(add(scale(axis, along), scale(sub(bone, scale(axis, along)), factor)), axis)


@kernel
def bent_tip(joints: Points, axis: V3, factor: float) -> V3:
    """Where the tip would be, seen from the root."""
    tip = (0.0, 0.0, 0.0)
    before = load3(joints, 0)
    for i in range(1, len(joints)):
        after = load3(joints, i)
        bone = sub(after, before)
        tip = add(tip, scale(bent(bone, axis, factor), length(bone)))
        before = after
    return tip


@kernel
def turn_to_pole(joints: Points, pole: V3) -> None:
    """Turn the middle of three ``joints`` about the root-tip axis until it is on the side of ``pole``.

    ``pole`` is a world direction. A straight limb, or a pole along the axis, leaves all as it is; with
    the tip on the root every direction is a right angle, and the middle joint goes straight to the pole.
    """
    root = load3(joints, 0)
    middle = sub(load3(joints, 1), root)
    axis = unit_or(sub(load3(joints, 2), root), (0.0, 0.0, 0.0))
    side = unit_or(reject(unit_or(pole, axis), axis), (0.0, 0.0, 0.0))
    off = length(reject(middle, axis))
    if dot(side, side) < 0.5 or off < 1e-9:
        return
    store3(joints, 1, add(root, add(scale(axis, dot(middle, axis)), scale(side, off))))


@kernel
def place(anchor: V3, towards: V3, bone: float, fallback: V3) -> V3:
    """The point ``bone`` metres from ``anchor`` in the direction of ``towards``."""
    return add(anchor, scale(unit_or(sub(towards, anchor), fallback), bone))


@kernel
def root_to_tip(joints: Points, lengths: Floats, root: V3, fallback: V3) -> None:
    """Put the root back where it was and let the bones follow it."""
    store3(joints, 0, root)
    for i in range(len(joints) - 1):
        store3(joints, i + 1, place(load3(joints, i), load3(joints, i + 1), lengths[i], fallback))


@kernel
def lie_straight(joints: Points, lengths: Floats, axis: V3) -> None:
    """All bones along ``axis``."""
    for i in range(len(joints) - 1):
        store3(joints, i + 1, add(load3(joints, i), scale(axis, lengths[i])))


@kernel
def fold(joints: Points, lengths: Floats, axis: V3, longest: int) -> None:
    """The longest bone along ``axis``, all others back against it: the nearest a tip can come to the root."""
    for i in range(len(joints) - 1):
        step = lengths[i] if i == longest else -lengths[i]
        store3(joints, i + 1, add(load3(joints, i), scale(axis, step)))


@kernel
def off_line(joints: Points, axis: V3) -> float:
    """Largest distance of a joint from the line through the root along ``axis``. [m]"""
    root = load3(joints, 0)
    largest = 0.0
    for i in range(1, len(joints)):
        largest = max(largest, length(reject(sub(load3(joints, i), root), axis)))
    return largest


@kernel
def lie_on_loop(joints: Points, lengths: Floats, axis: V3, side: V3, away: float, total: float) -> None:
    """A first guess off the line: joints along an arc from root to target, as high as the bones allow.

    Nearer than stretched the arc widens into a loop, so that no two joints share a place.
    """
    root = load3(joints, 0)
    high = 0.5 * math.sqrt(max(total * total - away * away, 0.0))
    wide = 0.25 * (total - away)
    run = 0.0
    for i in range(1, len(joints)):
        run += lengths[i - 1]
        s = run / total
        along = away * s - wide * math.sin(2.0 * math.pi * s)
        store3(joints, i, add(root, add(scale(axis, along), scale(side, 4.0 * high * s * (1.0 - s)))))
