"""The end of a solve within limits: damped least squares in which joints at their stops keep to what is open.

A step turns all joints at once, by what moves the tip most for the least turn. A joint that would leave its
limits is held, the way it wanted to go is shut for this step, and the step is found anew for the others (an
active set). Shut ways come out of the limit itself, so nothing here knows what kinds of limits there are.

Source: Levenberg-Marquardt as in Sugihara, "Solvability-unconcerned inverse kinematics by the
Levenberg-Marquardt method", IEEE T. Robotics 27 (2011), damping by the rest of the error.
"""

from solvers.kernels.limits import HINGE, KIND, axis_of, center_of, clamp
from vrik.arrays import Q4, V3, Floats, Points, Quats
from vrik.jit import kernel
from vrik.kernels.quat import load4, qconj, qexp, qlog, qmul, qnear, qrot, qunit, store4
from vrik.kernels.vec import add, cross, dot, length, load3, scale, store3, sub

WAYS, SYSTEM = 2, 11
"""First rows in ``numbers`` of the open ways (9 a joint) and of the equations (6 by 7)."""

LARGEST_TURN = 0.6
"""No joint turns more in one step. [rad]"""

PASSES = 4
"""How often ways are shut and the step found anew."""

NO_GAIN = 0.99
"""A step that leaves more than this share of the squared miss gains nothing."""


@kernel
def finish(
    points: Points,
    rotations: Quats,
    offsets: Points,
    weights: Floats,
    limits: Floats,
    base: Q4,
    target: V3,
    turn: Q4,
    length_m: float,
    tolerance_m: float,
    tolerance_rad: float,
    max_steps: int,
    trial: Quats,
    numbers: Floats,
) -> int:
    """Step until the target is met or no step gains. ``length_m`` is what a radian counts as, 0: no rotation.

    ``trial`` holds (m, 4), ``numbers`` the ways and equations. Returns the steps used.
    """
    m = len(rotations)
    size = 3 if length_m <= 0.0 else 6
    damping = 1e-3
    idle = 0
    for steps in range(max_steps):
        miss = sub(target, load3(points, m))
        twist = (0.0, 0.0, 0.0)
        if size == 6:
            twist = qlog(qmul(turn, qconj(load4(rotations, m - 1))))
        if length(miss) <= tolerance_m and length(twist) <= tolerance_rad:
            return steps
        twist = scale(twist, length_m)
        before = dot(miss, miss) + dot(twist, twist)
        open_ways(rotations, weights, limits, base, numbers)
        for _ in range(PASSES):
            solve_step(points, miss, twist, size, length_m, damping, numbers)
            if try_step(points, rotations, limits, base, size, length_m, trial, numbers) == 0:
                break
        tip = tip_of(points, trial, offsets)
        off = sub(target, tip)
        after = dot(off, off)
        if size == 6:
            left = scale(qlog(qmul(turn, qconj(load4(trial, m - 1)))), length_m)
            after += dot(left, left)
        idle = idle + 1 if after > NO_GAIN * before else 0
        if after < before:
            for i in range(m):
                store4(rotations, i, load4(trial, i))
                store3(points, i + 1, add(load3(points, i), qrot(load4(trial, i), load3(offsets, i + 1))))
            damping = max(damping * 0.1, 1e-9)
        else:
            damping = max(damping * 10.0, 1e-4)
        if idle >= 4 or damping > 1e4:
            return steps + 1
    return max_steps


@kernel
def open_ways(rotations: Quats, weights: Floats, limits: Floats, base: Q4, numbers: Floats) -> None:
    """What each joint may turn about, as a projection: everything, the axis of its hinge, or nothing."""
    parent = base
    for i in range(len(rotations)):
        for k in range(9):
            numbers[WAYS + k, i] = 0.0
        if limits[i, KIND] == HINGE:
            axis = qrot(parent, qrot(center_of(limits, i), axis_of(limits, i)))
            for r in range(3):
                for c in range(3):
                    numbers[WAYS + 3 * r + c, i] = weights[i] * axis[r] * axis[c]
        else:
            for r in range(3):
                numbers[WAYS + 4 * r, i] = weights[i]
        parent = load4(rotations, i)


@kernel
def along_ways(numbers: Floats, i: int, g: V3) -> V3:
    """The part of a turn that is open to joint ``i``."""
    w = WAYS
    return (
        numbers[w, i] * g[0] + numbers[w + 1, i] * g[1] + numbers[w + 2, i] * g[2],
        numbers[w + 3, i] * g[0] + numbers[w + 4, i] * g[1] + numbers[w + 5, i] * g[2],
        numbers[w + 6, i] * g[0] + numbers[w + 7, i] * g[1] + numbers[w + 8, i] * g[2],
    )


@kernel
def shut_way(numbers: Floats, i: int, n: V3) -> None:
    """Take the unit direction ``n`` out of what joint ``i`` may turn about."""
    for _ in range(2):  # once from the left, once from the right
        for c in range(3):
            column = (numbers[WAYS + c, i], numbers[WAYS + 3 + c, i], numbers[WAYS + 6 + c, i])
            left = sub(column, scale(n, dot(n, column)))
            for r in range(3):
                numbers[WAYS + 3 * r + c, i] = left[r]
        for r in range(3):
            for c in range(r):
                swap = numbers[WAYS + 3 * r + c, i]
                numbers[WAYS + 3 * r + c, i] = numbers[WAYS + 3 * c + r, i]
                numbers[WAYS + 3 * c + r, i] = swap


@kernel
def solve_step(
    points: Points, miss: V3, twist: V3, size: int, length_m: float, damping: float, numbers: Floats
) -> None:
    """Fill and solve (J W J' + damping) y = error; y is left in the last column of the equations."""
    m = len(points) - 1
    tip = load3(points, m)
    trace = 0.0
    for k in range(size):
        pull = unit_row(k)
        swing = unit_row(k - 3)
        column = (0.0, 0.0, 0.0)
        turned = (0.0, 0.0, 0.0)
        for i in range(m):
            arm = sub(tip, load3(points, i))
            w = along_ways(numbers, i, add(cross(arm, pull), scale(swing, length_m)))
            column = add(column, cross(w, arm))
            turned = add(turned, scale(w, length_m))
        for r in range(3):
            numbers[SYSTEM + r, k] = column[r]
            if size == 6:
                numbers[SYSTEM + 3 + r, k] = turned[r]
        trace += numbers[SYSTEM + k, k]
    for k in range(size):
        numbers[SYSTEM + k, k] += damping * trace / float(size) + 1e-30
        numbers[SYSTEM + k, 6] = miss[k] if k < 3 else twist[k - 3]
    for k in range(size):  # symmetric and positive: elimination needs no pivoting
        pivot = max(numbers[SYSTEM + k, k], 1e-30)
        for r in range(k + 1, size):
            factor = numbers[SYSTEM + r, k] / pivot
            for c in range(k, size):
                numbers[SYSTEM + r, c] -= factor * numbers[SYSTEM + k, c]
            numbers[SYSTEM + r, 6] -= factor * numbers[SYSTEM + k, 6]
    for k in range(size - 1, -1, -1):
        total = numbers[SYSTEM + k, 6]
        for c in range(k + 1, size):
            total -= numbers[SYSTEM + k, c] * numbers[SYSTEM + c, 6]
        numbers[SYSTEM + k, 6] = total / max(numbers[SYSTEM + k, k], 1e-30)


@kernel
def unit_row(k: int) -> V3:
    """Axis ``k`` of three, or zero for another number."""
    return (1.0 if k == 0 else 0.0, 1.0 if k == 1 else 0.0, 1.0 if k == 2 else 0.0)


@kernel
def try_step(
    points: Points,
    rotations: Quats,
    limits: Floats,
    base: Q4,
    size: int,
    length_m: float,
    trial: Quats,
    numbers: Floats,
) -> int:
    """Turn the joints by the step into ``trial``, within limits; shut the ways that led out. How many did."""
    m = len(rotations)
    tip = load3(points, m)
    s = SYSTEM
    pull = (numbers[s, 6], numbers[s + 1, 6], numbers[s + 2, 6])
    swing = (0.0, 0.0, 0.0)
    if size == 6:
        swing = scale((numbers[s + 3, 6], numbers[s + 4, 6], numbers[s + 5, 6]), length_m)
    largest = LARGEST_TURN
    for i in range(m):
        arm = sub(tip, load3(points, i))
        largest = max(largest, length(along_ways(numbers, i, add(cross(arm, pull), swing))))
    shrink = LARGEST_TURN / largest
    parent_before, parent = base, base
    shut = 0
    for i in range(m):
        arm = sub(tip, load3(points, i))
        step = scale(along_ways(numbers, i, add(cross(arm, pull), swing)), shrink)
        was = load4(rotations, i)
        free = qmul(qconj(parent_before), qmul(qexp(step), was))
        held = clamp(free, limits, i)
        back = qlog(qmul(held, qconj(free)))
        far = length(back)
        if far > 1e-3 * length(step) and far > 1e-12:
            shut_way(numbers, i, qrot(parent_before, scale(back, 1.0 / far)))
            shut += 1
        parent_before = was
        parent = qnear(qunit(qmul(parent, held)), was)
        store4(trial, i, parent)
    return shut


@kernel
def tip_of(points: Points, rotations: Quats, offsets: Points) -> V3:
    """Where the tip is with these rotations."""
    tip = load3(points, 0)
    for i in range(len(points) - 1):
        tip = add(tip, qrot(load4(rotations, i), load3(offsets, i + 1)))
    return tip
