"""From pelvis to head by CCD, then the chest is drawn along where a hand would fall short."""

import math

from solvers.kernels.ccd import descend
from solvers.kernels.ccd_bow import SOFT, bow
from solvers.kernels.chain import first_free, length_after, place, within_length
from solvers.kernels.unbend import unbend
from vrik.arrays import Q4, V3, Floats, Points, Quats
from vrik.jit import kernel
from vrik.kernels.quat import carry, load4, qarc, qaxis, qconj, qexp, qlog, qmul, qrot, qslerp, qunit, store4
from vrik.kernels.vec import add, distance, length, load3, scale, store3, sub, unit_or

HIPS, SPINE, CHEST, UPPER_CHEST, NECK, HEAD = 0, 1, 2, 3, 4, 5
LEFT_SHOULDER, RIGHT_SHOULDER = 6, 10
SPINE_JOINTS = 6
PULL_ROUNDS = 200
"""Pulls at chest and neck before giving up; most poses need a handful, two nearly straight arms many."""
NO_PULL_M = 1e-7
"""A round that changes what both arms fall short by less than this gains nothing more. [m]"""
STRETCH = 0.9995
"""An arm this near to straight is as long as it gets."""
SWING_SPARE = 1.3
"""A collar bone swings a little farther than needed, for the gain falls off towards the end."""
CLAVICLE_LIMIT_RAD = 0.52
"""How far a collar bone follows the hand. Source: 30 degrees, Parger et al. 2018."""
PULL_LIMIT_RAD = 0.6
"""How far one round may turn the chest or the neck after a hand that is out of reach."""
NECK_LIMIT_RAD = 0.6
"""How far the neck may be turned away from the head to let a hand reach."""
SHORTEST_SPINE, LONGEST_SPINE = 0.92, 0.9995
"""Hips to head over the length of the spine's bones; in motion capture 99 of 100 frames are above 0.93."""
FOLDED_SPINE = 0.6
"""The same where a tracker on the waist says so."""
MAX_STEP_RAD = 0.5
"""A joint of the spine turns by at most this much in a sweep."""
BOW_RAD = 1.6
"""Between tracked ends each joint of the spine flexes forward by at most this much; 60 % need 1.05."""
NECK_SHARE, NECK_BACK_RAD = 0.7, 0.09
"""The neck takes this share of the way from the chest's turn to the head's, and leans back from there."""
LUMBAR_SHARE = 0.9
"""A trunk bends at the hips: the first joint above has this much of the chest's turn, the next all of it.

These three are regressions on motion capture: the neck's direction on the head's turn (0.71 and 5 degrees),
the spine's directions on the line from hips to head (1.07).
"""


@kernel
def limited(q: Q4, limit_rad: float) -> Q4:
    """The same turn, but by no more than ``limit_rad``."""
    v = qlog(q)
    angle = length(v)
    if angle <= limit_rad:
        return q
    return qexp(scale(v, limit_rad / angle))


@kernel
def bring_into_reach(pelvis: V3, head: V3, offsets: Points, waist_weight: float) -> V3:
    """The pelvis, no farther from the head than the spine is long and not on top of it."""
    shortest = SHORTEST_SPINE + (FOLDED_SPINE - SHORTEST_SPINE) * waist_weight
    longest = 0.0
    for j in range(SPINE, SPINE_JOINTS):
        longest += length(load3(offsets, j))
    away = distance(pelvis, head)
    wanted = min(max(away, shortest * longest), LONGEST_SPINE * longest)
    direction = unit_or(sub(pelvis, head), (0.0, -1.0, 0.0))
    return add(head, scale(direction, wanted))


@kernel
def spread_turns(rotations: Quats, chest_turn: Q4) -> None:
    """A first guess for the spine's rotations between hips and head, both already set."""
    store4(rotations, SPINE, qslerp(load4(rotations, HIPS), chest_turn, LUMBAR_SHARE))
    store4(rotations, CHEST, chest_turn)
    store4(rotations, UPPER_CHEST, chest_turn)
    neck = qslerp(chest_turn, load4(rotations, HEAD), NECK_SHARE)
    store4(rotations, NECK, qmul(neck, qaxis((1.0, 0.0, 0.0), NECK_BACK_RAD)))


@kernel
def give_way(positions: Points, rotations: Quats, offsets: Points, head: V3, share: float) -> None:
    """Move the hips by ``share`` of what the spine, turned as it is, would miss the head by."""
    tip = load3(positions, HIPS)
    for j in range(SPINE, SPINE_JOINTS):
        tip = carry(load4(rotations, j - 1), tip, load3(offsets, j))
    store3(positions, HIPS, add(load3(positions, HIPS), scale(sub(head, tip), share)))


@kernel
def reach_for(
    offsets: Points, positions: Points, rotations: Quats, collar: int, hand: V3, weight: float
) -> float:
    """Swing a collar bone after the hand; returns how far the straight arm still falls short. [m]

    ``collar`` is the row of the shoulder bone; its rotation and the rows of shoulder and upper arm
    positions are set.
    """
    chest = load4(rotations, UPPER_CHEST)
    root = carry(chest, load3(positions, UPPER_CHEST), load3(offsets, collar))
    arm = length(load3(offsets, collar + 2)) + length(load3(offsets, collar + 3))
    bone = qrot(chest, load3(offsets, collar + 1))
    turn = (1.0, 0.0, 0.0, 0.0)
    short = distance(add(root, bone), hand) - STRETCH * arm
    if short > 0.0:
        # Turn the bone so that arm and bone lie in one line to the hand, as far as the joint allows and
        # no farther than the hand needs.
        towards = unit_or(sub(hand, root), (0.0, 1.0, 0.0))
        wanted = limited(qarc(unit_or(bone, (0.0, 1.0, 0.0)), towards), CLAVICLE_LIMIT_RAD)
        gain = distance(add(root, bone), hand) - distance(add(root, qrot(wanted, bone)), hand)
        turn = qslerp(turn, wanted, min(SWING_SPARE * short / max(gain, 1e-6), 1.0) * weight)
    store4(rotations, collar, qunit(qmul(turn, chest)))
    store3(positions, collar, root)
    store3(positions, collar + 1, carry(load4(rotations, collar), root, load3(offsets, collar + 1)))
    return (distance(load3(positions, collar + 1), hand) - STRETCH * arm) * weight


@kernel
def pull_chest(offsets: Points, positions: Points, rotations: Quats, collar: int, hand: V3) -> None:
    """Turn upper chest and neck so that a stretched arm comes nearer to ``hand``; the head stays."""
    arm = length(load3(offsets, collar + 2)) + length(load3(offsets, collar + 3))
    for joint in range(UPPER_CHEST, HEAD):
        pivot = load3(positions, joint + 1)
        shoulder = load3(positions, collar + 1)
        tip = add(shoulder, scale(unit_or(sub(hand, shoulder), (0.0, 1.0, 0.0)), arm))
        q = qarc(unit_or(sub(tip, pivot), (0.0, 1.0, 0.0)), unit_or(sub(hand, pivot), (0.0, 1.0, 0.0)))
        q = limited(q, PULL_LIMIT_RAD)
        turned = qmul(q, load4(rotations, joint))
        if joint == NECK:
            head = load4(rotations, HEAD)
            turned = qmul(head, limited(qmul(qconj(head), turned), NECK_LIMIT_RAD))
        store4(rotations, joint, qunit(turned))
        hang_from_head(offsets, positions, rotations)
        chest = load4(rotations, UPPER_CHEST)
        root = carry(chest, load3(positions, UPPER_CHEST), load3(offsets, collar))
        store3(positions, collar, root)
        store3(positions, collar + 1, add(root, qrot(chest, load3(offsets, collar + 1))))


@kernel
def hang_from_head(offsets: Points, positions: Points, rotations: Quats) -> None:
    """Neck and upper chest positions from the head down, by their rotations."""
    neck = sub(load3(positions, HEAD), qrot(load4(rotations, NECK), load3(offsets, HEAD)))
    store3(positions, NECK, neck)
    upper = sub(neck, qrot(load4(rotations, UPPER_CHEST), load3(offsets, NECK)))
    store3(positions, UPPER_CHEST, upper)


@kernel
def meet(
    positions: Points,
    rotations: Quats,
    offsets: Points,
    weights: Floats,
    limits: Floats,
    target: V3,
    tolerance: float,
    sweeps: int,
    bow_share: float,
    scratch: Quats,
) -> None:
    """Bring the tip of a piece of the spine onto ``target`` by CCD.

    Between two ends that are given (``bow_share`` 1) the spine bows forward instead, in the same way in each
    frame, and what is bent sideways straightens as far as it must. (m + 1, .) rows of joints, the last of
    them the tip; scratch as in ``ccd.solve``.
    """
    m = len(positions) - 1
    first = first_free(weights[:m])
    total = length_after(offsets, first)
    if bow_share > 0.0:
        chest = load4(rotations, CHEST)
        front = qrot(chest, (0.0, 0.0, -1.0))
        side = qrot(chest, (-1.0, 0.0, 0.0))
        bow(positions, rotations[:m], offsets, weights[:m], target, front, side, BOW_RAD, bow_share)
        root = load3(positions, first)
        wanted = (1.0 - 0.25 * SOFT) * min(distance(root, target), total)
        if distance(root, load3(positions, m)) < wanted:
            unbend(positions, rotations[:m], offsets, first, target, wanted, scratch)
        return
    place(positions, rotations[:m], offsets)
    descend(
        positions,
        rotations[:m],
        offsets,
        weights[:m],
        limits[:m],
        load4(rotations, 0),
        within_length(load3(positions, first), total, target),
        (1.0, 0.0, 0.0, 0.0),
        0.0,
        (0.0, 0.0, 0.0),
        tolerance,
        0.0,
        sweeps,
        MAX_STEP_RAD,
        MAX_STEP_RAD,
        1.0,
        total,
        False,
        scratch,
    )


@kernel
def begin(
    pelvis: V3,
    pelvis_turn: Q4,
    chest_turn: Q4,
    head: V3,
    head_turn: Q4,
    waist_weight: float,
    offsets: Points,
    positions: Points,
    rotations: Quats,
) -> None:
    """A first shape of the spine: hips within reach of the head, and turns between theirs and the chest's.

    Guessed hips give way, so that the spine keeps its shape; hips with a tracker (``waist_weight`` 1) stay.
    """
    store4(rotations, HIPS, pelvis_turn)
    store4(rotations, HEAD, head_turn)
    store3(positions, HIPS, bring_into_reach(pelvis, head, offsets, waist_weight))
    spread_turns(rotations, chest_turn)
    give_way(positions, rotations, offsets, head, 1.0 - waist_weight)


@kernel
def shift_to(positions: Points, n: int, place: V3) -> None:
    """Move the first ``n`` joints, the last of them to ``place``: the hips follow what is still missing."""
    miss = sub(place, load3(positions, n - 1))
    for j in range(n):
        store3(positions, j, add(load3(positions, j), miss))


@kernel
def draw_along(
    hands: Points, hand_weights: Floats, offsets: Points, positions: Points, rotations: Quats
) -> bool:
    """Swing the collar bones after the hands, and draw chest and neck along while an arm is too short.

    The head stays. True when the chest was moved: the spine below must then be solved again.
    """
    pulled = False
    before = math.inf
    for _ in range(PULL_ROUNDS):
        short = 0.0
        for side in range(2):
            collar = LEFT_SHOULDER if side == 0 else RIGHT_SHOULDER
            left = reach_for(offsets, positions, rotations, collar, load3(hands, side), hand_weights[side])
            if left > 0.0:
                pull_chest(offsets, positions, rotations, collar, load3(hands, side))
                short += left
                pulled = True
        if short <= 0.0 or abs(before - short) < NO_PULL_M:
            break
        before = short
    return pulled


@kernel
def place_collars(
    hands: Points, hand_weights: Floats, offsets: Points, positions: Points, rotations: Quats
) -> None:
    """Both collar bones once more, on a chest that has moved."""
    for side in range(2):
        collar = LEFT_SHOULDER if side == 0 else RIGHT_SHOULDER
        reach_for(offsets, positions, rotations, collar, load3(hands, side), hand_weights[side])


@kernel
def solve(
    pelvis: V3,
    pelvis_turn: Q4,
    chest_turn: Q4,
    head: V3,
    head_turn: Q4,
    waist_weight: float,
    hands: Points,
    hand_weights: Floats,
    offsets: Points,
    weights: Floats,
    limits: Floats,
    tolerance: float,
    sweeps: int,
    scratch: Quats,
    positions: Points,
    rotations: Quats,
) -> None:
    """Pose hips to head and both collar bones, in place (rows of ``positions`` and ``rotations``, (22, .)).

    hands (2, 3) wrist targets and their weights (2,); weights (6,), limits (6, .) and scratch (., 4) of
    the spine joints as in ``ccd.solve``. The head is met exactly. Guessed hips give way first, so that the
    spine keeps its shape; hips with a tracker (``waist_weight`` 1) stay, and the spine bows between them and
    the head. What it is still short of, the hips follow.
    """
    begin(pelvis, pelvis_turn, chest_turn, head, head_turn, waist_weight, offsets, positions, rotations)
    n = SPINE_JOINTS
    tip = head
    for part in range(2):  # the whole spine, then what is below a chest that was drawn along
        meet(
            positions[:n],
            rotations[:n],
            offsets[:n],
            weights[:n],
            limits[:n],
            tip,
            tolerance,
            sweeps,
            waist_weight,
            scratch,
        )
        shift_to(positions, n, tip)
        if part == 1:
            place_collars(hands, hand_weights, offsets, positions, rotations)
        elif not draw_along(hands, hand_weights, offsets, positions, rotations):
            break
        n = UPPER_CHEST + 1
        tip = load3(positions, UPPER_CHEST)
