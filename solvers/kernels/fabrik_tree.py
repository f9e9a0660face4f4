"""FABRIK on a tree: several effectors, joints that several chains share, a root that stays or follows.

Source: Aristidou & Lasenby, "FABRIK", Graphical Models 73 (2011), section 4.2: a joint that several chains
share (sub-base) goes to the centroid of the places that they want for it. Here the centroid is weighted by
the targets beyond each of them.
"""

from solvers.kernels.fabrik import place, reach
from solvers.kernels.fabrik_turns import keep_twist
from vrik.arrays import V3, Floats, Ints, Points, Quats
from vrik.jit import kernel
from vrik.kernels.quat import load4, qconj, qmul, qnear, qrot, qunit, store4
from vrik.kernels.vec import add, distance, dot, load3, scale, store3, sub, unit_or

NO_GAIN = 0.995
"""A round that leaves more than this share of the worst miss gains nothing."""

PATIENCE = 8
"""Rounds without gain before giving up."""

BRANCH_ROUNDS = 8
"""Rounds in which the end of a branch is solved as a chain, within each round of the tree."""

ASIDE: V3 = (0.0, -1.0, 0.0)
"""Bones without a direction point there, straight branches bend to it."""


@kernel
def solve_tree(
    points: Points,
    lengths: Floats,
    parents: Ints,
    targets: Points,
    weights: Floats,
    beyond: Floats,
    fixed: bool,
    tolerance: float,
    max_rounds: int,
    scratch: Floats,
    spans: Floats,
) -> int:
    """Move ``points`` (n, 3) until each node with a weight is on its target. Returns the rounds used.

    ``parents`` (n,) come before their children, node 0 is the root; ``lengths`` (n,) are those of the bones
    to the parents. ``weights`` (n,) is 0 for nodes without a target, ``beyond`` (n,) the sum of the weights
    of a node and of all after it. ``scratch`` is (3 n, 3), ``spans`` (n,). Nodes with nothing beyond stay
    where they are. The best points found are left.
    """
    n = len(points)
    wanted, best, joints = scratch[:n], scratch[n : 2 * n], scratch[2 * n :]
    root = load3(points, 0)
    outward(points, points, lengths, parents, beyond)
    least = total_miss(points, targets, weights)
    copy_points(points, best)
    idle = 0
    rounds = 0
    while rounds < max_rounds and idle < PATIENCE:
        if worst_miss(points, targets, weights) <= tolerance:
            break
        rounds += 1
        inward(points, wanted, lengths, parents, targets, weights, beyond)
        store3(points, 0, root if fixed else load3(wanted, 0))
        outward(points, wanted, lengths, parents, beyond)
        for i in range(1, n):
            if weights[i] > 0.0 and beyond[i] <= weights[i]:
                target = load3(targets, i)
                end_branch(points, lengths, parents, target, beyond, tolerance, i, joints, spans)
        found = total_miss(points, targets, weights)
        idle = idle + 1 if found > NO_GAIN * least else 0
        if found < least:
            least = found
            copy_points(points, best)
    copy_points(best, points)
    return rounds


@kernel
def inward(
    points: Points,
    wanted: Points,
    lengths: Floats,
    parents: Ints,
    targets: Points,
    weights: Floats,
    beyond: Floats,
) -> None:
    """Ends to root: each node between the places that its target and the bones after it want, by weight."""
    n = len(points)
    for i in range(n):
        store3(wanted, i, scale(load3(targets, i), weights[i]) if weights[i] > 0.0 else (0.0, 0.0, 0.0))
    for i in range(n - 1, -1, -1):
        if beyond[i] <= 0.0:
            store3(wanted, i, load3(points, i))
            continue
        here = scale(load3(wanted, i), 1.0 / beyond[i])
        store3(wanted, i, here)
        if i > 0:
            p = parents[i]
            there = place(here, load3(points, p), lengths[i], ASIDE)
            store3(wanted, p, add(load3(wanted, p), scale(there, beyond[i])))


@kernel
def outward(points: Points, wanted: Points, lengths: Floats, parents: Ints, beyond: Floats) -> None:
    """Root to ends: each bone has its length again."""
    for i in range(1, len(points)):
        if beyond[i] > 0.0:
            store3(points, i, place(load3(points, parents[i]), load3(wanted, i), lengths[i], ASIDE))


@kernel
def end_branch(
    points: Points,
    lengths: Floats,
    parents: Ints,
    target: V3,
    beyond: Floats,
    tolerance: float,
    end: int,
    joints: Points,
    spans: Floats,
) -> None:
    """Solve the last part of a branch as a chain: from the joint that others share to ``end``."""
    bones = 0
    base = end
    while base > 0 and beyond[base] == beyond[end]:
        base = parents[base]
        bones += 1
    row = end
    for k in range(bones, 0, -1):
        store3(joints, k, load3(points, row))
        spans[k - 1] = lengths[row]
        row = parents[row]
    store3(joints, 0, load3(points, row))
    if bones > 0:
        reach(joints[: bones + 1], spans[:bones], target, ASIDE, tolerance, BRANCH_ROUNDS)
    row = end
    for k in range(bones, 0, -1):
        store3(points, row, load3(joints, k))
        row = parents[row]


@kernel
def worst_miss(points: Points, targets: Points, weights: Floats) -> float:
    """Largest distance of a node from its target. [m]"""
    worst = 0.0
    for i in range(len(points)):
        if weights[i] > 0.0:
            worst = max(worst, distance(load3(points, i), load3(targets, i)))
    return worst


@kernel
def total_miss(points: Points, targets: Points, weights: Floats) -> float:
    """Sum of the distances of nodes from their targets, by weight. [m]"""
    total = 0.0
    for i in range(len(points)):
        if weights[i] > 0.0:
            total += weights[i] * distance(load3(points, i), load3(targets, i))
    return total


@kernel
def copy_points(source: Points, into: Points) -> None:
    """All points."""
    for i in range(len(source)):
        store3(into, i, load3(source, i))


@kernel
def turn_bones(
    points: Points, rotations: Quats, offsets: Points, parents: Ints, beyond: Floats, turned: Quats
) -> None:
    """Rotations of the bones that end at each node, from where they lie; each keeps its twist.

    ``rotations`` (n, 4) holds those from before; ``turned`` gets the new ones. Row 0 is what the root hangs
    on and stays. Bones with nothing beyond are carried by their parents, and so are their points.
    """
    store4(turned, 0, load4(rotations, 0))
    for i in range(1, len(points)):
        p = parents[i]
        was = load4(rotations, i)
        parent = load4(turned, p)
        offset = load3(offsets, i)
        local = qmul(qconj(load4(rotations, p)), was)
        rest = unit_or(offset, (0.0, 0.0, 0.0))
        if beyond[i] > 0.0 and dot(rest, rest) > 0.5:
            lies = unit_or(sub(load3(points, i), load3(points, p)), rest)
            local = keep_twist(local, rest, qrot(qconj(parent), lies))
        found = qnear(qunit(qmul(parent, local)), was)
        store4(turned, i, found)
        store3(points, i, add(load3(points, p), qrot(found, offset)))
