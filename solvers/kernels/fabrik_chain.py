"""FABRIK on a chain of joints: which way it is solved, and the quick way for joints that turn freely.

Joints without limits are solved on positions alone (``kernels.fabrik.reach``): rigid joints and bones without
length are taken out first, so that what is left is a row of free bones, and rotations are recovered at the
end (``kernels.fabrik_turns``). Everything else goes to ``kernels.fabrik_limits``.
"""

from solvers.kernels.fabrik import reach
from solvers.kernels.fabrik_limits import OLD, SCRATCH, block, is_met, solve_limited
from solvers.kernels.fabrik_turns import keep_swivel, keep_twist, swivel_to_pole
from solvers.kernels.limits import FREE, KIND
from vrik.arrays import Q4, V3, Floats, Points, Quats
from vrik.jit import kernel
from vrik.kernels.quat import load4, qconj, qmul, qnear, qrot, qunit, store4
from vrik.kernels.vec import add, distance, dot, length, load3, scale, store3, sub, unit_or

NO_BONE = 1e-9
"""A shorter bone has no direction. [m]"""


@kernel
def solve(
    points: Points,
    rotations: Quats,
    offsets: Points,
    weights: Floats,
    limits: Floats,
    base: Q4,
    target: V3,
    turn: Q4,
    turn_weight: float,
    pole: V3,
    tolerance_m: float,
    tolerance_rad: float,
    turn_m: float,
    max_rounds: int,
    restarts: int,
    scratch: Floats,
    numbers: Floats,
) -> int:
    """Turn the joints until the tip is on ``target`` and the last joint has the world rotation ``turn``.

    ``points`` (m + 1, 3) and ``rotations`` (m, 4) hold the warm start and are worked on in place; ``scratch``
    is (6 (m + 1), 4), ``numbers`` (17, max(m + 1, 7)). ``turn_weight`` 0 is no wish; above 1 the rotation
    wins where both cannot be met. ``turn_m`` is the distance that a radian counts as. Returns the rounds.
    """
    if not is_free(weights, limits):
        return solve_limited(
            points, rotations, offsets, weights, limits, base, target, turn, turn_weight, pole,
            tolerance_m, tolerance_rad, turn_m, max_rounds, restarts, scratch, numbers,
        )  # fmt: skip
    turned = turn_weight > 0.0
    rounds = reach_freely(
        points,
        rotations,
        offsets,
        weights,
        base,
        target,
        turn,
        turned,
        pole,
        tolerance_m,
        max_rounds,
        scratch,
        numbers,
    )
    if is_met(points, rotations, target, turn, turn_weight, tolerance_m, tolerance_rad):
        return rounds
    if rounds > 0:  # in reach, but slow: near folded
        return rounds + solve_limited(
            points, rotations, offsets, weights, limits, base, target, turn, turn_weight, pole,
            tolerance_m, tolerance_rad, turn_m, max_rounds - rounds, 0, scratch, numbers,
        )  # fmt: skip
    if turned and turn_weight <= 1.0 and length(load3(offsets, len(rotations))) > NO_BONE:
        return reach_freely(  # out of reach with this rotation: the position counts more
            points, rotations, offsets, weights, base, target, turn, False, pole,
            tolerance_m, max_rounds, scratch, numbers,
        )  # fmt: skip
    return rounds


@kernel
def is_free(weights: Floats, limits: Floats) -> bool:
    """Whether joints either turn as they like or not at all."""
    for i in range(len(weights)):
        if 0.0 < weights[i] < 1.0 or (weights[i] > 0.0 and limits[i, KIND] != FREE):
            return False
    return True


@kernel
def reach_freely(
    points: Points,
    rotations: Quats,
    offsets: Points,
    weights: Floats,
    base: Q4,
    target: V3,
    turn: Q4,
    turned: bool,
    pole: V3,
    tolerance_m: float,
    max_rounds: int,
    scratch: Floats,
    numbers: Floats,
) -> int:
    """Solve on positions, then recover rotations. Returns the rounds used; 0 out of reach or when met."""
    m = len(rotations)
    last = m - 1
    while last >= 0 and weights[last] <= 0.0:
        last -= 1
    if last < 0:
        return 0
    end = m
    goal = target
    ending = load4(rotations, last)
    if turned:  # the last free joint is where the rotation wants it; the bones before it reach for that place
        carried = qmul(qconj(ending), load4(rotations, m - 1))
        arm = qrot(qconj(ending), sub(load3(points, m), load3(points, last)))
        ending = qmul(turn, qconj(carried))
        goal = sub(target, qrot(ending, arm))
        end = last
    bones = numbers[0]
    lengths = numbers[1]
    n = free_bones(points, weights, end, bones)
    rounds = 0
    if n > 0:
        joints = block(scratch, m, SCRATCH)[: n + 1]
        before = block(scratch, m, OLD)[: n + 1]
        k = 0
        first = -1
        for i in range(end):
            if bones[i] > 0.0:
                if first < 0:
                    first = i
                store3(joints, k, load3(points, i))
                lengths[k] = bones[i]
                k += 1
        store3(joints, n, load3(points, end))
        for k in range(n + 1):
            store3(before, k, load3(joints, k))
        parent = load4(rotations, first - 1) if first > 0 else base
        side = pole if dot(pole, pole) > 0.0 else qrot(load4(rotations, first), (0.0, 0.0, -1.0))
        rounds = reach(joints, lengths[:n], goal, side, tolerance_m, max_rounds)
        if dot(pole, pole) > 0.0:
            swivel_to_pole(joints, pole)
        else:
            keep_swivel(before, joints, qrot(parent, rest_direction(offsets, first, end)))
        recover(rotations, base, bones, before, joints, end)
    if turned:
        change = qmul(ending, qconj(load4(rotations, last)))
        for i in range(last, m):
            store4(rotations, i, qnear(qunit(qmul(change, load4(rotations, i))), load4(rotations, i)))
    place_points(points, rotations, offsets)
    return rounds


@kernel
def free_bones(points: Points, weights: Floats, end: int, bones: Floats) -> int:
    """Length from each free joint to the next one before ``end``, 0 for joints left out; how many."""
    following = end
    n = 0
    for i in range(end - 1, -1, -1):
        bones[i] = 0.0
        if weights[i] > 0.0:
            bone = distance(load3(points, i), load3(points, following))
            if bone > NO_BONE:
                bones[i] = bone
                following = i
                n += 1
    return n


@kernel
def rest_direction(offsets: Points, first: int, end: int) -> V3:
    """Direction from joint ``first`` to point ``end`` at rest; of the first bone when they share a place."""
    chord = (0.0, 0.0, 0.0)
    for i in range(first, end):
        chord = add(chord, load3(offsets, i + 1))
    return unit_or(chord, unit_or(load3(offsets, first + 1), (0.0, 1.0, 0.0)))


@kernel
def recover(rotations: Quats, base: Q4, bones: Floats, before: Points, joints: Points, end: int) -> None:
    """Turn the joints so that free bones lie from joint to joint; each keeps its twist, others their bend."""
    parent_before, parent = base, base
    k = 0
    for i in range(len(rotations)):
        was = load4(rotations, i)
        local = qmul(qconj(parent_before), was)
        if i < end and bones[i] > 0.0:
            lay = scale(sub(load3(before, k + 1), load3(before, k)), 1.0 / bones[i])
            lies = scale(sub(load3(joints, k + 1), load3(joints, k)), 1.0 / bones[i])
            local = keep_twist(local, qrot(qconj(was), lay), qrot(qconj(parent), lies))
            k += 1
        parent_before = was
        parent = qnear(qunit(qmul(parent, local)), was)
        store4(rotations, i, parent)


@kernel
def place_points(points: Points, rotations: Quats, offsets: Points) -> None:
    """Fill ``points[1:]`` from the rotations: bone lengths are exact again."""
    for i in range(len(rotations)):
        store3(points, i + 1, add(load3(points, i), qrot(load4(rotations, i), load3(offsets, i + 1))))
