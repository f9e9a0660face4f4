"""Damped least squares: all joints turn together, each as far as it helps, damped where they cannot help.

Sources: Wampler, IEEE Trans. Systems, Man and Cybernetics 16 (1986), for the damped step; Nakamura &
Hanafusa, "Inverse kinematic solutions with singularity robustness for robot manipulator control", ASME
J. Dynamic Systems, Measurement and Control 108 (1986), for damping that follows the smallest singular
value. Each joint has three world axes, so joint i adds w_i^2 (|r|^2 I - r r^T) to J J^T, where r runs
from the joint to the tip: a 3x3 matrix in closed form, six numbers (xx, yy, zz, xy, xz, yz) here.
"""

import math

from solvers.kernels.chain import NEAR, NO_GAIN, bend_off_line, place_joints, within_length
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


@kernel
def solve(
    positions: Points,
    rotations: Quats,
    offsets: Points,
    weights: Floats,
    target: V3,
    tolerance: float,
    max_step_rad: float,
    max_steps: int,
    damping: float,
) -> int:
    """Turn the joints in place until the tip is on ``target``; returns the steps used.

    The chain is as in ``kernels/chain.py``. weights (n,): 0 is rigid, 1 free. ``damping`` is that at a
    full singularity, as a share of the largest singular value. The miss never grows from step to step,
    except once, when a chain on the line to its target is bent off it.
    """
    tip = len(positions) - 1
    place_joints(positions, rotations, offsets)
    goal = within_length(positions, offsets, weights, target)
    bent = False
    before = math.inf
    for step in range(max_steps):
        miss = sub(goal, load3(positions, tip))
        if distance(load3(positions, tip), target) <= tolerance or length(miss) <= NEAR * tolerance:
            return step
        if before - length(miss) < NO_GAIN * tolerance:  # full stretch is neared ever more slowly
            return step
        before = length(miss)
        pull = damped_pull(positions, weights, miss, damping)
        largest = largest_turn(positions, weights, pull)
        if largest < STILL:
            if bent:
                return step
            bent = True
            before = math.inf
            bend_off_line(positions, rotations, offsets, weights, target, max_step_rad)
            place_joints(positions, rotations, offsets)
            continue
        share = min(1.0, max_step_rad / largest)
        halvings = 0
        while halvings < HALVINGS and not (
            distance(tip_after(positions, rotations, offsets, weights, pull, share), goal) < length(miss)
        ):
            share *= 0.5
            halvings += 1
        if halvings == HALVINGS:
            return step + 1
        advance(positions, rotations, offsets, weights, pull, share)
    return max_steps


@kernel
def damped_pull(positions: Points, weights: Floats, miss: V3, damping: float) -> V3:
    """The y of (J J^T + lambda^2 I) y = ``miss``; joint i then turns by w_i^2 (r_i x y). [1/m]

    lambda grows from 0 to ``damping`` times the largest singular value as the smallest one goes from
    ``SINGULAR`` of the largest to 0.
    """
    m = gram(positions, weights, len(positions))
    small, large = outer_eigenvalues(m)
    floor = FLOOR * (m[0] + m[1] + m[2]) + 1e-18
    border = SINGULAR * SINGULAR * large
    square = floor
    if small < border:
        lack = 1.0 - math.sqrt(small / border)
        square += damping * damping * large * lack * lack
    return solve_symmetric(m, square, miss)


@kernel
def gram(positions: Points, weights: Floats, n: int) -> tuple[float, float, float, float, float, float]:
    """J J^T of the first ``n`` joints, the last of them the tip: (xx, yy, zz, xy, xz, yz). [m^2]"""
    tip = load3(positions, n - 1)
    xx = 0.0
    yy = 0.0
    zz = 0.0
    xy = 0.0
    xz = 0.0
    yz = 0.0
    for i in range(n - 1):
        r = scale(sub(tip, load3(positions, i)), weights[i])
        xx += r[1] * r[1] + r[2] * r[2]
        yy += r[0] * r[0] + r[2] * r[2]
        zz += r[0] * r[0] + r[1] * r[1]
        xy -= r[0] * r[1]
        xz -= r[0] * r[2]
        yz -= r[1] * r[2]
    return (xx, yy, zz, xy, xz, yz)


@kernel
def smallest_singular_value(positions: Points, weights: Floats, n: int) -> float:
    """How far one radian moves the tip in the direction it moves worst; 0 for a straight chain. [m]"""
    return math.sqrt(outer_eigenvalues(gram(positions, weights, n))[0])


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
def largest_turn(positions: Points, weights: Floats, pull: V3) -> float:
    """The largest turn of a joint in the whole step. [rad]"""
    tip = load3(positions, len(positions) - 1)
    largest = 0.0
    for i in range(len(positions) - 1):
        r = sub(tip, load3(positions, i))
        largest = max(largest, weights[i] * weights[i] * length(cross(r, pull)))
    return largest


@kernel
def tip_after(
    positions: Points, rotations: Quats, offsets: Points, weights: Floats, pull: V3, share: float
) -> V3:
    """Where the tip would be after ``share`` of the step."""
    n = len(positions)
    tip = load3(positions, n - 1)
    turn = (1.0, 0.0, 0.0, 0.0)
    at = load3(positions, 0)
    for i in range(n - 1):
        r = sub(tip, load3(positions, i))
        turn = qmul(turn, qexp(scale(cross(r, pull), share * weights[i] * weights[i])))
        at = add(at, qrot(turn, qrot(load4(rotations, i), load3(offsets, i + 1))))
    return at


@kernel
def advance(
    positions: Points, rotations: Quats, offsets: Points, weights: Floats, pull: V3, share: float
) -> None:
    """Make ``share`` of the step, joints turning together."""
    n = len(positions)
    tip = load3(positions, n - 1)
    turn = (1.0, 0.0, 0.0, 0.0)
    at = load3(positions, 0)
    for i in range(n - 1):
        r = sub(tip, load3(positions, i))
        turn = qunit(qmul(turn, qexp(scale(cross(r, pull), share * weights[i] * weights[i]))))
        store4(rotations, i, qunit(qmul(turn, load4(rotations, i))))
        store3(positions, i, at)
        at = add(at, qrot(load4(rotations, i), load3(offsets, i + 1)))
    store3(positions, n - 1, at)
