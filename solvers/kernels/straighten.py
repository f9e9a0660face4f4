"""Damped least squares for a place alone and joints that turn freely: the 3x3 case, in closed form.

``solvers.jacobian`` is the general solver, with hinges, limits and rotations; this one is for the last bit
that a bow leaves, inside the compiled body. Each joint has three world axes, so joint i adds
w_i^2 (|r|^2 I - r r^T) to J J^T, where r runs from the joint to the tip: six numbers (xx, yy, zz, xy, xz,
yz).

Sources: Wampler, IEEE Trans. Systems, Man and Cybernetics 16 (1986), for the damped step; Nakamura &
Hanafusa, "Inverse kinematic solutions with singularity robustness for robot manipulator control", ASME
J. Dynamic Systems, Measurement and Control 108 (1986), for damping that follows the smallest singular value.
"""

import math

from solvers.kernels.chain import place
from vrik.arrays import V3, Floats, Points, Quats
from vrik.jit import kernel
from vrik.kernels.quat import load4, qexp, qmul, qrot, qunit, store4
from vrik.kernels.vec import add, cross, distance, length, load3, scale, store3, sub

SINGULAR = 0.2
"""Damping begins where the smallest singular value falls below this share of the largest."""

FLOOR = 1e-9
"""Damping that is always there, as a share of the trace of J J^T: the 3x3 system can then be solved."""

HALVINGS = 8
"""How often a step that makes the miss larger is halved before giving up."""

STILL = 1e-9
"""A step in which no joint turns more than this goes nowhere. [rad]"""

NO_GAIN = 0.01
"""A step that gains less than this share of the tolerance is not worth another one."""

DAMPING = 0.05
"""At a full singularity, as a share of the largest singular value."""

MAX_STEP_RAD = 0.3
"""No joint turns farther in one step; a longer step is shortened as a whole. [rad]"""


@kernel
def straighten(
    points: Points,
    rotations: Quats,
    offsets: Points,
    weights: Floats,
    target: V3,
    tolerance: float,
    max_steps: int,
) -> int:
    """Turn the joints in place until the tip is on ``target``; returns the steps used.

    points (m + 1, 3), rotations (m, 4), weights (m,). The miss never grows from step to step.
    """
    tip = len(rotations)
    place(points, rotations, offsets)
    before = math.inf
    for step in range(max_steps):
        miss = sub(target, load3(points, tip))
        if length(miss) <= tolerance or before - length(miss) < NO_GAIN * tolerance:
            return step
        before = length(miss)
        pull = damped_pull(points, weights, miss)
        largest = largest_turn(points, weights, pull)
        if largest < STILL:
            return step
        share = min(1.0, MAX_STEP_RAD / largest)
        halvings = 0
        while halvings < HALVINGS and not (
            distance(tip_after(points, rotations, offsets, weights, pull, share), target) < length(miss)
        ):
            share *= 0.5
            halvings += 1
        if halvings == HALVINGS:
            return step + 1
        advance(points, rotations, offsets, weights, pull, share)
    return max_steps


@kernel
def damped_pull(points: Points, weights: Floats, miss: V3) -> V3:
    """The y of (J J^T + lambda^2 I) y = ``miss``; joint i then turns by w_i^2 (r_i x y). [1/m]

    lambda grows from 0 to ``DAMPING`` times the largest singular value as the smallest one goes from
    ``SINGULAR`` of the largest to 0.
    """
    m = gram(points, weights, len(points))
    small, large = outer_eigenvalues(m)
    floor = FLOOR * (m[0] + m[1] + m[2]) + 1e-18
    border = SINGULAR * SINGULAR * large
    square = floor
    if small < border:
        lack = 1.0 - math.sqrt(small / border)
        square += DAMPING * DAMPING * large * lack * lack
    return solve_symmetric(m, square, miss)


@kernel
def gram(points: Points, weights: Floats, n: int) -> tuple[float, float, float, float, float, float]:
    """J J^T of the first ``n`` joints, the last of them the tip: (xx, yy, zz, xy, xz, yz). [m^2]"""
    tip = load3(points, n - 1)
    xx = 0.0
    yy = 0.0
    zz = 0.0
    xy = 0.0
    xz = 0.0
    yz = 0.0
    for i in range(n - 1):
        r = scale(sub(tip, load3(points, i)), weights[i])
        xx += r[1] * r[1] + r[2] * r[2]
        yy += r[0] * r[0] + r[2] * r[2]
        zz += r[0] * r[0] + r[1] * r[1]
        xy -= r[0] * r[1]
        xz -= r[0] * r[2]
        yz -= r[1] * r[2]
    return (xx, yy, zz, xy, xz, yz)


@kernel
def outer_eigenvalues(m: tuple[float, float, float, float, float, float]) -> tuple[float, float]:
    """Smallest and largest eigenvalue of a symmetric positive 3x3 matrix (xx, yy, zz, xy, xz, yz).

    Source: Smith, "Eigenvalues of a symmetric 3x3 matrix", Communications of the ACM 4 (1961).
    """
    mean = (m[0] + m[1] + m[2]) / 3.0
    a = m[0] - mean
    b = m[1] - mean
    c = m[2] - mean
    spread = (a * a + b * b + c * c + 2.0 * (m[3] * m[3] + m[4] * m[4] + m[5] * m[5])) / 6.0
    if spread <= 1e-30 * mean * mean or spread == 0.0:
        return (max(mean, 0.0), max(mean, 0.0))
    p = math.sqrt(spread)
    half = a * (b * c - m[5] * m[5]) - m[3] * (m[3] * c - m[5] * m[4]) + m[4] * (m[3] * m[5] - b * m[4])
    angle = math.acos(min(max(0.5 * half / (p * p * p), -1.0), 1.0)) / 3.0
    smallest = mean + 2.0 * p * math.cos(angle + 2.0 * math.pi / 3.0)
    return (max(smallest, 0.0), mean + 2.0 * p * math.cos(angle))


@kernel
def solve_symmetric(m: tuple[float, float, float, float, float, float], extra: float, b: V3) -> V3:
    """x of (M + ``extra`` I) x = ``b`` for a symmetric positive M; pivots never fall below ``extra``."""
    d0 = max(m[0] + extra, extra)
    l10 = m[3] / d0
    l20 = m[4] / d0
    d1 = max(m[1] + extra - l10 * m[3], extra)
    e21 = m[5] - l20 * m[3]
    l21 = e21 / d1
    d2 = max(m[2] + extra - l20 * m[4] - l21 * e21, extra)
    y1 = b[1] - l10 * b[0]
    y2 = b[2] - l20 * b[0] - l21 * y1
    x2 = y2 / d2
    x1 = y1 / d1 - l21 * x2
    x0 = b[0] / d0 - l10 * x1 - l20 * x2
    return (x0, x1, x2)


@kernel
def largest_turn(points: Points, weights: Floats, pull: V3) -> float:
    """The largest turn of a joint in the whole step. [rad]"""
    tip = load3(points, len(points) - 1)
    largest = 0.0
    for i in range(len(points) - 1):
        r = sub(tip, load3(points, i))
        largest = max(largest, weights[i] * weights[i] * length(cross(r, pull)))
    return largest


@kernel
def tip_after(
    points: Points, rotations: Quats, offsets: Points, weights: Floats, pull: V3, share: float
) -> V3:
    """Where the tip would be after ``share`` of the step."""
    n = len(points)
    tip = load3(points, n - 1)
    turn = (1.0, 0.0, 0.0, 0.0)
    at = load3(points, 0)
    for i in range(n - 1):
        r = sub(tip, load3(points, i))
        turn = qmul(turn, qexp(scale(cross(r, pull), share * weights[i] * weights[i])))
        at = add(at, qrot(turn, qrot(load4(rotations, i), load3(offsets, i + 1))))
    return at


@kernel
def advance(
    points: Points, rotations: Quats, offsets: Points, weights: Floats, pull: V3, share: float
) -> None:
    """Make ``share`` of the step, joints turning together."""
    n = len(points)
    tip = load3(points, n - 1)
    turn = (1.0, 0.0, 0.0, 0.0)
    at = load3(points, 0)
    for i in range(n - 1):
        r = sub(tip, load3(points, i))
        turn = qunit(qmul(turn, qexp(scale(cross(r, pull), share * weights[i] * weights[i]))))
        store4(rotations, i, qunit(qmul(turn, load4(rotations, i))))
        store3(points, i, at)
        at = add(at, qrot(load4(rotations, i), load3(offsets, i + 1)))
    store3(points, n - 1, at)
