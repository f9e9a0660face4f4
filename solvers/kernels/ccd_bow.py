"""A bow of one plane: a chain that is too long for its target bends in its own plane.

Coordinate descent settles into one of many shapes, and a chain that folds may change from one to
another between two frames. A spine has one way to get shorter: all its joints flex, in shares, to
the side they are flexed to. That one number is found here, so that the shape moves no faster than root, tip
and first guess do.
"""

import math

from solvers.kernels.chain import first_free, place
from vrik.arrays import V3, Floats, Points, Quats
from vrik.jit import kernel
from vrik.kernels.quat import load4, qarc, qaxis, qmul, qunit, store4
from vrik.kernels.vec import cross, distance, dot, load3, scale, sub, unit_or

NARROW = 16
"""Golden sections that find where the chain is longest; the last is a thousandth of the first."""

CLOSE = 12
"""Steps of false position at most."""

STRAIGHT = 0.02
"""A bow with less sag than this share of its chord may change its side."""

SOFT = 0.002
"""Towards straight a chain bends ever faster for the last bit of length. It keeps a quarter of this share of
its length instead, so that the bend's speed stays within bounds; the tip is then short by so much."""

GOLDEN = 0.6180339887498949


@kernel
def bow(
    points: Points,
    rotations: Quats,
    offsets: Points,
    weights: Floats,
    target: V3,
    front: V3,
    side: V3,
    largest_rad: float,
    share: float,
) -> None:
    """Flex the joints about the world axis ``side`` until the tip is as far as the target is, then aim.

    ``points`` hold the frame before on entry: a bow keeps its side. A joint of weight 1 flexes by at most
    ``largest_rad`` either way. ``share`` of it is done, 1 all. In place; the first free joint only aims.
    ``front`` and ``side`` are unit and at a right angle. points (m + 1, 3), rotations (m, 4). Out of reach,
    or nearly, the tip stays short.
    """
    m = len(rotations)
    first = first_free(weights)
    was = side_of_bow(points, first, front)
    place(points, rotations, offsets)
    root = load3(points, first)
    reach = distance(root, target)
    bend = bend_that_fits(points, weights, first, reach, front, side, largest_rad, was)
    turned = 0.0
    for i in range(first, m):
        if i > first:
            turned += weights[i] * bend * share
        store4(rotations, i, qunit(qmul(qaxis(side, turned), load4(rotations, i))))
    place(points, rotations, offsets)
    here = unit_or(sub(load3(points, m), root), front)
    there = unit_or(sub(target, root), here)
    aim = qarc(here, there)
    for i in range(first, m):
        store4(rotations, i, qunit(qmul(aim, load4(rotations, i))))
    place(points, rotations, offsets)


@kernel
def side_of_bow(points: Points, first: int, front: V3) -> float:
    """How far the joints are behind the line from the first free joint to the tip, as a share of it."""
    m = len(points) - 1
    root = load3(points, first)
    chord = sub(load3(points, m), root)
    square = dot(chord, chord)
    if m - first < 2 or square < 1e-12:
        return 0.0
    sag = 0.0
    for i in range(first + 1, m):
        r = sub(load3(points, i), root)
        sag -= dot(sub(r, scale(chord, dot(r, chord) / square)), front)
    return sag / (float(m - first - 1) * math.sqrt(square))


@kernel
def bend_that_fits(
    points: Points, weights: Floats, first: int, reach: float, front: V3, side: V3, largest: float, was: float
) -> float:
    """The flexion at which the tip is ``reach`` away, on the side the bow ``was``.

    A bow that was nearly straight goes to where the first guess is bent already.
    """
    lower = -largest
    upper = largest
    for _ in range(NARROW):
        a = upper - GOLDEN * (upper - lower)
        b = lower + GOLDEN * (upper - lower)
        if square_at(points, weights, first, a, front, side) < square_at(
            points, weights, first, b, front, side
        ):
            lower = a
        else:
            upper = b
    lower = 0.5 * (lower + upper)
    longest = square_at(points, weights, first, lower, front, side)
    gap = longest - reach * reach
    wanted = longest - 0.5 * (gap + math.sqrt(gap * gap + (SOFT * longest) * (SOFT * longest)))
    under = longest - wanted
    upper = largest
    if was < -STRAIGHT or (was <= STRAIGHT and lower > 0.0):
        upper = -largest
    over = square_at(points, weights, first, upper, front, side) - wanted
    if over >= 0.0:
        return upper
    x = lower
    kept = 0
    for _ in range(CLOSE):
        x = lower + (upper - lower) * under / max(under - over, 1e-30)
        at = square_at(points, weights, first, x, front, side) - wanted
        if abs(at) < 1e-9 * longest:
            break
        if at > 0.0:
            lower = x
            under = at
            over = over * 0.5 if kept == 1 else over
            kept = 1
        else:
            upper = x
            over = at
            under = under * 0.5 if kept == 2 else under
            kept = 2
    return x


@kernel
def square_at(points: Points, weights: Floats, first: int, bend: float, front: V3, side: V3) -> float:
    """Square of the distance from the first free joint to the tip, flexed by ``bend``. [m^2]"""
    up = cross(front, side)
    along = 0.0
    x = 0.0
    y = 0.0
    turned = 0.0
    for i in range(first, len(weights)):
        if i > first:
            turned += weights[i] * bend
        bone = sub(load3(points, i + 1), load3(points, i))
        along += dot(bone, side)
        c = math.cos(turned)
        s = math.sin(turned)
        f = dot(bone, front)
        u = dot(bone, up)
        x += c * u - s * f
        y += s * u + c * f
    return along * along + x * x + y * y
