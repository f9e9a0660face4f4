"""Two bones in closed form: the law of cosines, and a pole that says to which side to bend.

:func:`solve` turns the joints of a chain: the middle one opens about one axis, the first one then takes the
tip to the target and the middle to its side. ``triangle.bend`` is the same for joints without rotations.

Source: Tolani, Goswami & Badler, "Real-time inverse kinematics techniques for anthropomorphic limbs",
Graphical Models 62 (2000), section 3: the middle joint lies on a circle about the root-target axis. Written
here with the angle of a hinge as the unknown, so that bent rest poses and tilted axes are exact too.
"""

import math

from solvers.kernels.limits import (
    FREE,
    HIGH,
    HINGE,
    KIND,
    LOW,
    OTHER_SWING,
    SIDE,
    SWING,
    axis_of,
    center_of,
    clamp,
    nearest_angle,
)
from solvers.kernels.two_bone_swivel import ALLOWED, allowed_swivel, is_hinge, roll
from vrik.arrays import Q4, V3, Floats, Points, Quats
from vrik.jit import kernel
from vrik.kernels.quat import (
    carry,
    load4,
    qalign,
    qangle,
    qarc,
    qaxis,
    qconj,
    qlog,
    qmul,
    qrot,
    qtwist_angle,
    qunit,
    store4,
)
from vrik.kernels.vec import add, any_normal, cross, distance, dot, load3, reject, scale, store3, sub, unit_or

STRAIGHT = 1e-6
"""Bones with a smaller sine between them lie on one line: their bend has no axis."""


@kernel
def soft_distance(away: float, longest: float, zone: float) -> float:
    """Distance at which the tip is held for a target at ``away``. [m]

    Exact until ``zone`` before the longest reach; from there on it nears that reach and never gets there,
    with the same speed at the border (C1).
    """
    zone = min(zone, longest)
    if zone <= 0.0:
        return min(away, longest)
    start = longest - zone
    if away <= start:
        return away
    return longest - zone * math.exp(-(away - start) / zone)


@kernel
def flex_axis(bone: V3) -> V3:
    """Axis of a bend about which nothing is known: what comes after ``bone`` goes to the front (-Z)."""
    axis = cross(bone, (0.0, 0.0, -1.0))
    if dot(axis, axis) < 0.01:
        axis = cross(bone, (0.0, 1.0, 0.0))
    return unit_or(axis, any_normal(bone))


@kernel
def hinge_parts(
    upper: V3, lower: V3, local: Q4, limits: Floats, i: int
) -> tuple[Q4, V3, Q4, float, float, float]:
    """How joint ``i`` bends: ``before * turn(axis, angle) * after``; and its angle now, lowest, highest.

    ``upper`` and ``lower`` are the bones before and after it, each in its own frame. A joint without an axis
    of its own bends in the plane it is bent in and keeps all else as it is.
    """
    still = (1.0, 0.0, 0.0, 0.0)
    axis = axis_of(limits, i)
    before = center_of(limits, i)
    if limits[i, KIND] == HINGE:
        now = qtwist_angle(qmul(qconj(before), local), axis)
        return (before, axis, still, now, limits[i, LOW], limits[i, HIGH])
    if is_hinge(limits, i):
        side = (limits[i, SIDE], limits[i, SIDE + 1], limits[i, SIDE + 2])
        if limits[i, OTHER_SWING] > limits[i, SWING]:
            side = cross(axis, side)
        most = max(limits[i, SWING], limits[i, OTHER_SWING])
        there = qmul(qconj(before), local)
        twist = qtwist_angle(there, axis)
        now = dot(qlog(qmul(there, qaxis(axis, -twist))), side)
        return (
            before,
            side,
            qaxis(axis, nearest_angle(twist, limits[i, LOW], limits[i, HIGH])),
            now,
            -most,
            most,
        )
    bone = unit_or(upper, (0.0, -1.0, 0.0))
    bent = cross(bone, unit_or(qrot(local, lower), bone))
    if dot(bent, bent) < STRAIGHT * STRAIGHT:
        return (still, flex_axis(bone), local, 0.0, -math.inf, math.inf)
    return (still, unit_or(bent, bone), local, 0.0, -math.inf, math.inf)


@kernel
def opening(upper: V3, lower: V3, axis: V3) -> tuple[float, float, float]:
    """Of two bones joined by a hinge: the angle at which the tip is farthest, and squared reach there.

    Returns angle, middle and half range of the squared reach: ``reach^2 = middle + half * cos(a - angle)``.
    Both bones are seen from the hinge at angle 0.
    """
    u = dot(upper, axis)
    v = dot(lower, axis)
    a = dot(upper, lower) - u * v
    b = dot(upper, cross(axis, lower))
    middle = dot(upper, upper) + dot(lower, lower) + 2.0 * u * v
    return (math.atan2(b, a), middle, 2.0 * math.sqrt(a * a + b * b))


@kernel
def branch_of(straight: float, now: float, low: float, high: float) -> float:
    """To which side of straight a hinge bends: where it has more room; 1 or -1."""
    if high == math.inf:
        return 1.0
    room = (0.5 * (low + high) - straight + math.pi) % (2.0 * math.pi) - math.pi
    if abs(room) < 1e-6 or abs(room) > math.pi - 1e-6:  # as much to either side: as it is bent now
        room = (now - straight + math.pi) % (2.0 * math.pi) - math.pi
    return 1.0 if room >= -1e-12 else -1.0


@kernel
def side_in_bone(upper: V3, run: V3, hinge: V3) -> V3:
    """Where the middle joint points, off the root-tip line ``run``; in a straight limb, will point."""
    off = reject(upper, run)
    if dot(off, off) > 1e-8 * dot(upper, upper):
        return unit_or(off, cross(run, hinge))
    return cross(run, hinge)


@kernel
def limb(
    root: V3,
    first: Q4,
    local: Q4,
    upper: V3,
    lower: V3,
    target: V3,
    pole: V3,
    limits: Floats,
    soft_reach: float,
    max_stretch: float,
) -> tuple[Q4, Q4, float, V3]:
    """Turns of the two joints, limits of the first one aside: world, parent-relative, stretch, root-tip axis.

    ``first`` and ``local`` are the turns now; ``upper`` and ``lower`` the bones, each in its joint's frame.
    """
    parts = hinge_parts(upper, lower, local, limits, 1)
    before, axis, after, now = parts[0], parts[1], parts[2], parts[3]
    low, high = parts[4], parts[5]
    seen = qrot(qconj(before), upper)
    rest = qrot(after, lower)
    straight, middle, half = opening(seen, rest, axis)
    branch = branch_of(straight, now, low, high)
    hinge = scale(qrot(before, axis), branch)

    # Where it runs and points now.
    bone = unit_or(qrot(local, lower), (0.0, -1.0, 0.0))
    run = unit_or(add(upper, qrot(local, lower)), scale(cross(hinge, bone), -1.0))
    was = qrot(first, run)
    pointed = qrot(first, side_in_bone(upper, run, hinge))

    # Where it shall.
    away = distance(target, root)
    wanted = unit_or(pole, (0.0, 0.0, 0.0))
    says = dot(wanted, wanted) > 0.5
    if away > 1e-9:
        ahead = scale(sub(target, root), 1.0 / away)
    else:  # target on the root: every axis will do, so one that lets the middle joint meet its pole
        ahead = unit_or(reject(was, wanted), unit_or(reject(pointed, wanted), was)) if says else was
    if dot(was, ahead) > -1.0 + 1e-9:  # straight back, the middle joint stays where it is
        carried = qarc(was, ahead)
        pointed = qrot(carried, pointed)
        first = qmul(carried, first)
    side = unit_or(reject(wanted, ahead), pointed)
    if (
        says and high == math.inf and abs(now - straight) < STRAIGHT
    ):  # straight and free: bend without a twist
        axis = unit_or(reject(qrot(qconj(first), cross(side, ahead)), unit_or(upper, run)), axis)
        hinge = axis
        straight, middle, half = opening(seen, rest, axis)

    widest = nearest_angle(straight, low, high)
    longest = math.sqrt(max(middle + half * math.cos(widest - straight), 0.0))
    reach = soft_distance(away, longest, soft_reach)
    stretch = 1.0
    if reach > 1e-9:
        stretch = min(max(away / reach, 1.0), max_stretch)
    angle = now
    if half > 1e-18:
        angle = straight + branch * math.acos(min(max((reach * reach - middle) / half, -1.0), 1.0))
    local = qmul(before, qmul(qaxis(axis, nearest_angle(angle, low, high)), after))
    local = clamp(qunit(local), limits, 1)

    bone = unit_or(qrot(local, lower), (0.0, -1.0, 0.0))
    run = unit_or(add(upper, qrot(local, lower)), scale(cross(hinge, bone), -1.0))
    turn = qalign(run, side_in_bone(upper, run, hinge), ahead, side)
    return (turn, local, stretch, ahead)


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
    soft_reach: float,
    max_stretch: float,
) -> float:
    """Turn two joints, and the hand if there is one, so that the tip meets ``target``; returns the stretch.

    points (m + 1, 3), rotations (m, 4) in place, m = 2 or 3; they hold the warm start. Points show the bones
    as long as they are stretched. Which swivel: that of ``pole``, or of the warm start; the nearest that the
    first joint's limits allow; without a pole also the hand's.
    """
    m = len(rotations)
    root = load3(points, 0)
    upper = load3(offsets, 1)
    lower = load3(offsets, 2)
    bone = unit_or(lower, (0.0, -1.0, 0.0))
    first = load4(rotations, 0)
    local = qmul(qconj(first), load4(rotations, 1))
    palm = load3(offsets, m)
    hand = (1.0, 0.0, 0.0, 0.0)
    if m == 3:
        hand = qmul(qconj(load4(rotations, 1)), load4(rotations, 2))
    turns = turn_weight > 0.0 and weights[m - 1] > 0.0
    aimed = turns and m == 3
    stretch = 1.0
    for attempt in range(2):
        goal = target
        reach = lower
        if aimed:
            goal = sub(target, qrot(turn, palm))
        elif m == 3:  # the hand keeps its turn to the forearm: one bone with it
            reach = add(lower, qrot(hand, palm))
        solved = limb(root, first, local, upper, reach, goal, pole, limits, soft_reach, max_stretch)
        turned, bent, stretch, ahead = solved[0], solved[1], solved[2], solved[3]
        asks = aimed and limits[2, KIND] != FREE and dot(pole, pole) < 1e-12
        if limits[0, KIND] != FREE or asks:
            angle = allowed_swivel(turned, bent, ahead, bone, base, limits, turn, asks)
            if angle != 0.0:
                turned = qmul(qaxis(ahead, angle), turned)
            turned = qmul(base, clamp(qmul(qconj(base), turned), limits, 0))
        turned = qunit(turned)
        if turns and (m == 2 or (attempt == 0 and limits[2, KIND] != FREE and is_hinge(limits, 1))):
            bent = roll(bent, qmul(qconj(qmul(turned, bent)), turn), bone, limits)
        store4(rotations, 0, turned)
        store4(rotations, 1, qunit(qmul(turned, bent)))
        if not aimed:
            break
        wished = qmul(qconj(load4(rotations, 1)), turn)
        hand = clamp(wished, limits, m - 1)
        if qangle(hand, wished) <= ALLOWED or dot(palm, palm) < 1e-18:
            break
        aimed = False  # it cannot turn that far: meet the position with the hand as far as it goes
        local = bent
        first = turned
    store3(points, 1, carry(load4(rotations, 0), root, scale(upper, stretch)))
    store3(points, 2, carry(load4(rotations, 1), load3(points, 1), scale(lower, stretch)))
    if m == 3:
        store4(rotations, 2, qunit(qmul(load4(rotations, 1), hand)))
        long = 1.0 if aimed else stretch
        store3(points, 3, carry(load4(rotations, 2), load3(points, 2), scale(palm, long)))
    return stretch
