"""How joints move the tip: freedoms, the columns of the Jacobian, and the step that a filter makes of them.

A ball joint has three freedoms (world axes), a hinge one. A small turn w about a freedom's axis a moves the
tip by w (a x r), r from the joint to the tip, and turns the last joint by w a. Rotations count in metres: a
radian is ``scaled`` metres, and without a rotation target there are three rows only. A joint's weight scales
its columns, so a joint with half the weight makes a quarter of the turn.

With G = J J^T = sum of s_k^2 u_k u_k^T, every method is a filter f on singular values: joints turn by J^T y,
y = sum of f(s_k) (u_k . e) u_k.

Sources: Buss, "Introduction to inverse kinematics with Jacobian transpose, pseudoinverse and damped least
squares methods" (2004); Nakamura & Hanafusa, ASME J. Dynamic Systems, Measurement and Control 108 (1986), for
damping that follows the smallest singular value; Maciejewski & Klein, J. Robotic Systems 5 (1988), for
damping each singular direction by its own value.
"""

import math
from typing import NamedTuple

import numpy as np

from solvers.kernels.limits import HINGE, KIND, axis_of, center_of
from solvers.kernels.symmetric import SIZE, VALUES, VECTORS, eigen
from vrik.arrays import Q4, V3, Floats, Points, Quats
from vrik.jit import kernel
from vrik.kernels.quat import load4, qconj, qlog, qmul, qrot
from vrik.kernels.vec import add, any_normal, cross, dot, length, load3, scale, sub

DAMPED, TRUNCATED, TRANSPOSED = 0, 1, 2
"""Filters: damped least squares, truncated pseudo-inverse, best step along the gradient."""

FREEDOMS, TURN, DRIFT, HELD, JOINT_WIDTH = 0, 1, 4, 7, 10
"""Columns of ``Work.joints``: how many axes a joint may turn about in this step; its turn; a turn besides
that leaves the tip where it is; the part of its turn that its stop dictates: world rotation vectors. [rad]"""

AXIS, EFFECT, FREEDOM_WIDTH = 0, 3, 9
"""Columns of ``Work.freedoms``: world axis times the joint's weight, and what it does to tip and last
joint."""

ERROR, PULL, SYSTEM_ROWS = VALUES + 1, VALUES + 2, VALUES + 3
"""Rows of ``Work.system`` after those of an eigenvalue table: what the step should do, and y."""

FLOOR = 1e-12
"""Squared singular values below this share of the largest are none."""


class Work(NamedTuple):
    """Scratch of one solve of m joints, so that nothing is allocated in the loop. Made by :meth:`fresh`.

    It is few and wide arrays, for each one costs compile time in every kernel that takes it.
    """

    joints: Floats
    """(m, JOINT_WIDTH) the step."""
    freedoms: Floats
    """(3 m, FREEDOM_WIDTH) three rows a joint, of which as many are used as it has freedoms: J^T."""
    system: Floats
    """(SYSTEM_ROWS, 6) J J^T, its eigenvectors and eigenvalues, the error and y."""
    rotations: Quats
    """(2 m, 4) the pose that is tried, and one to go back to."""
    points: Points
    """(m + 1, 3) the pose that is tried. [m]"""

    @classmethod
    def fresh(cls, joint_count: int) -> "Work":
        """For chains of that many joints."""
        m = joint_count
        return cls(
            np.zeros((m, JOINT_WIDTH)),
            np.zeros((3 * m, FREEDOM_WIDTH)),
            np.zeros((SYSTEM_ROWS, SIZE)),
            np.zeros((2 * m, 4)),
            np.zeros((m + 1, 3)),
        )


@kernel
def part3(rows: Floats, i: int, c: int) -> V3:
    """Three numbers of row ``i``, from column ``c``."""
    return (rows[i, c], rows[i, c + 1], rows[i, c + 2])


@kernel
def put3(rows: Floats, i: int, c: int, v: V3) -> None:
    """Write three numbers into row ``i``, from column ``c``."""
    rows[i, c] = v[0]
    rows[i, c + 1] = v[1]
    rows[i, c + 2] = v[2]


@kernel
def turn_missing(last: Q4, turn: Q4, scaled: float) -> V3:
    """World turn from the last joint's rotation to ``turn``, times ``scaled``; none when that is 0. [m]"""
    if scaled <= 0.0:
        return (0.0, 0.0, 0.0)
    return scale(qlog(qmul(turn, qconj(last))), scaled)


@kernel
def set_freedoms(
    rotations: Quats, weights: Floats, limits: Floats, base: Q4, joints: Floats, rows: Floats
) -> None:
    """Axes about which each joint may turn; a joint of weight 0 has none. Nothing is held."""
    parent = base
    for i in range(len(rotations)):
        put3(joints, i, HELD, (0.0, 0.0, 0.0))
        weight = weights[i]
        if weight <= 0.0:
            joints[i, FREEDOMS] = 0.0
        elif limits[i, KIND] == HINGE:
            joints[i, FREEDOMS] = 1.0
            axis = qrot(qmul(parent, center_of(limits, i)), axis_of(limits, i))
            put3(rows, 3 * i, AXIS, scale(axis, weight))
        else:
            joints[i, FREEDOMS] = 3.0
            put3(rows, 3 * i, AXIS, (weight, 0.0, 0.0))
            put3(rows, 3 * i + 1, AXIS, (0.0, weight, 0.0))
            put3(rows, 3 * i + 2, AXIS, (0.0, 0.0, weight))
        parent = load4(rotations, i)


@kernel
def take_freedom(joints: Floats, rows: Floats, i: int, direction: V3) -> None:
    """Joint ``i`` no longer turns about ``direction`` (unit), only about what is at a right angle to it."""
    first = 3 * i
    count = joints[i, FREEDOMS]
    a = part3(rows, first, AXIS)
    if count == 3.0:
        across = scale(any_normal(direction), length(a))
        put3(rows, first, AXIS, across)
        put3(rows, first + 1, AXIS, cross(direction, across))
    elif count == 2.0:
        b = part3(rows, first + 1, AXIS)
        along_a = dot(direction, a)
        along_b = dot(direction, b)
        size = math.hypot(along_a, along_b)
        if size > 1e-9 * length(a):
            put3(rows, first, AXIS, add(scale(a, -along_b / size), scale(b, along_a / size)))
    joints[i, FREEDOMS] = count - 1.0


@kernel
def set_effects(points: Points, scaled: float, joints: Floats, rows: Floats) -> None:
    """The Jacobian, a row here for each column of the textbook: ``(axis x r, scaled * axis)``."""
    tip = load3(points, len(joints))
    for i in range(len(joints)):
        r = sub(tip, load3(points, i))
        for c in range(3 * i, 3 * i + int(joints[i, FREEDOMS])):
            axis = part3(rows, c, AXIS)
            put3(rows, c, EFFECT, cross(axis, r))
            put3(rows, c, EFFECT + 3, scale(axis, scaled))


@kernel
def decompose(n: int, joints: Floats, rows: Floats, system: Floats) -> float:
    """J J^T of ``n`` rows and its eigenvectors and eigenvalues; returns the largest, s^2."""
    for a in range(n):
        for b in range(a, n):
            system[a, b] = 0.0
    for i in range(len(joints)):
        for c in range(3 * i, 3 * i + int(joints[i, FREEDOMS])):
            for a in range(n):
                for b in range(a, n):
                    system[a, b] += rows[c, EFFECT + a] * rows[c, EFFECT + b]
    eigen(system, n)
    largest = 0.0
    for k in range(n):
        largest = max(largest, system[VALUES, k])
    return largest


@kernel
def set_pull(method: int, n: int, largest: float, damping: float, border: float, system: Floats) -> float:
    """Fill y for the error; returns the share of |error|^2 that the step J^T y would take away.

    ``largest`` is the largest squared singular value; ``damping`` and ``border`` are shares of its root. A
    singular value below the border is damped, by ``damping`` when it is zero, or dropped when truncated.
    """
    total = 1e-300
    top = 0.0
    bottom = 0.0
    for k in range(n):
        system[PULL, k] = 0.0
        along = 0.0
        for a in range(n):
            along += system[VECTORS + k, a] * system[ERROR, a]
        system[k, 0] = along  # the matrix is used up: room for u_k . e
        total += along * along
        top += system[VALUES, k] * along * along
        bottom += system[VALUES, k] * system[VALUES, k] * along * along
    best = top / bottom if bottom > 0.0 else 0.0  # <e, J J^T e> / |J J^T e|^2
    gain = 0.0
    for k in range(n):
        square = max(system[VALUES, k], 0.0)
        f = filtered(method, square, largest, damping, border, best)
        gain += f * square * (2.0 - f * square) * system[k, 0] * system[k, 0]
        for a in range(n):
            system[PULL, a] += f * system[k, 0] * system[VECTORS + k, a]
    return gain / total


@kernel
def filtered(method: int, square: float, largest: float, damping: float, border: float, best: float) -> float:
    """f(s): what becomes of an error along a singular direction; ``square`` is s^2. [1/m^2]"""
    if square <= FLOOR * largest:
        return 0.0
    if method == TRANSPOSED:
        return best
    if method == TRUNCATED:
        return 1.0 / square if square > damping * damping * largest else 0.0
    lack = max(1.0 - math.sqrt(square / largest) / max(border, 1e-9), 0.0)
    return 1.0 / (square + damping * damping * largest * lack * lack)


@kernel
def pulled(c: int, n: int, rows: Floats, system: Floats) -> float:
    """Product of a freedom's effect and y."""
    along = 0.0
    for a in range(n):
        along += rows[c, EFFECT + a] * system[PULL, a]
    return along


@kernel
def singular_squares(
    points: Points, rotations: Quats, weights: Floats, limits: Floats, base: Q4, work: Work
) -> tuple[float, float]:
    """Smallest and largest squared singular value of the tip's place by all joints. [m^2]"""
    set_freedoms(rotations, weights, limits, base, work.joints, work.freedoms)
    set_effects(points, 0.0, work.joints, work.freedoms)
    largest = decompose(3, work.joints, work.freedoms, work.system)
    smallest = min(work.system[VALUES, 0], work.system[VALUES, 1], work.system[VALUES, 2])
    return (max(smallest, 0.0), max(largest, 0.0))
