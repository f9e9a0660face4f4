"""From joints that a network names to a guess that the solvers can use.

The joints are seen from the head, in the axes of its heading, over stature, and have no lengths of their own:
places are taken where the person's bones may follow (hips, ankles), directions everywhere else.
"""

from solvers.kernels.features import HEAD
from solvers.kernels.rules import CHEST_ROLE, WAIST_ROLE
from vrik.arrays import V3, Floats, Points, Quats
from vrik.jit import entry, kernel
from vrik.kernels.quat import carry, load4, qalign, qrot, qslerp, qturn, qyaw, store4
from vrik.kernels.vec import add, dot, load3, mix, scale, store3, sub, unit_or

HIPS, SPINE, HEAD_BONE = 0, 1, 5
LEFT_UPPER_ARM, RIGHT_UPPER_ARM, LEFT_UPPER_LEG, RIGHT_UPPER_LEG = 7, 11, 14, 18
LOWEST_HIPS = 0.06
"""Hips are never nearer to the floor than this. [statures]"""
STRAIGHT = 0.01
"""A middle joint that is this near to its limb's line shares its direction with the usual one. [statures]"""
NEAR = 0.035
"""A sole lower than this is put on the floor: a mean of many gaits never quite sets one down. [statures]"""
LANDS, LEAVES = 0.04, 0.06
"""A foot is on the floor when its sole is below the one, and until it is above the other. [statures]"""


@kernel
def off_line(root: V3, middle: V3, end: V3, usual: V3) -> V3:
    """Way from the line between root and end to the middle joint, and a little of the usual direction."""
    line = unit_or(sub(end, root), (0.0, -1.0, 0.0))
    way = sub(middle, root)
    return add(sub(way, scale(line, dot(way, line))), scale(usual, STRAIGHT))


@kernel
def settled(sole: float, near: float) -> float:
    """Height of a sole above the floor: nothing below ``near``, as it was from twice that on."""
    return min(max(2.0 * (sole - near), 0.0), max(sole, 0.0))


@kernel
def turn_of(
    tpose: Points, joints: Points, left: int, right: int, low: int, high: int
) -> tuple[float, float, float, float]:
    """Canonical rotation of a part with joints to both sides (exact) and one above the other (nearly)."""
    x, up = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0)
    return qalign(
        unit_or(sub(load3(tpose, right), load3(tpose, left)), x),
        unit_or(sub(load3(tpose, high), load3(tpose, low)), up),
        unit_or(sub(load3(joints, right), load3(joints, left)), x),
        unit_or(sub(load3(joints, high), load3(joints, low)), up),
    )


@entry
@kernel
def guess(
    joints: Points,
    position: Points,
    rotation: Quats,
    weight: Floats,
    tpose: Points,
    stature_m: float,
    floor_y: float,
    state: Floats,
    pelvis_position: Points,
    pelvis_rotation: Quats,
    chest_rotation: Quats,
    ankle_position: Points,
    foot_rotation: Quats,
    elbow_pole: Points,
    knee_pole: Points,
    contact: Floats,
) -> None:
    """Fill the guess (see ``solvers.guess.Guess``; single rows are (1, .) arrays) for one frame.

    joints (22, 3) as the network says, overwritten by their places in the world [m]. position, rotation,
    weight: per role. tpose (22, 3) [m]. state (2,): which feet were on the floor. Trackers on waist and
    chest replace their part.
    """
    head = load3(position, HEAD)
    level = qturn(qyaw(load4(rotation, HEAD)))
    for j in range(len(joints)):
        store3(joints, j, carry(level, head, scale(load3(joints, j), stature_m)))

    pelvis = load3(joints, HIPS)
    pelvis = (pelvis[0], max(pelvis[1], floor_y + LOWEST_HIPS * stature_m), pelvis[2])
    store3(pelvis_position, 0, mix(pelvis, load3(position, WAIST_ROLE), weight[WAIST_ROLE]))
    turn = turn_of(tpose, joints, LEFT_UPPER_LEG, RIGHT_UPPER_LEG, HIPS, SPINE)
    turn = qslerp(turn, load4(rotation, WAIST_ROLE), weight[WAIST_ROLE])
    store4(pelvis_rotation, 0, turn)
    front = qrot(turn, (0.0, 0.0, -1.0))
    chest = turn_of(tpose, joints, LEFT_UPPER_ARM, RIGHT_UPPER_ARM, HIPS, HEAD_BONE)
    chest = qslerp(chest, load4(rotation, CHEST_ROLE), weight[CHEST_ROLE])
    store4(chest_rotation, 0, chest)

    for side in range(2):
        mirror = -1.0 if side == 0 else 1.0
        arm = LEFT_UPPER_ARM if side == 0 else RIGHT_UPPER_ARM
        hang = qrot(chest, (0.3 * mirror, -0.9, 0.3))
        pole = off_line(load3(joints, arm), load3(joints, arm + 1), load3(position, 1 + side), hang)
        # A hand that fades away leaves an elbow that hangs.
        store3(elbow_pole, side, mix(hang, unit_or(pole, hang), weight[1 + side]))

        leg = LEFT_UPPER_LEG if side == 0 else RIGHT_UPPER_LEG
        hip, knee = load3(joints, leg), load3(joints, leg + 1)
        ankle, toes = load3(joints, leg + 2), load3(joints, leg + 3)
        store3(knee_pole, side, unit_or(off_line(hip, knee, ankle, front), front))
        shin = unit_or(sub(knee, ankle), (0.0, 1.0, 0.0))
        rest = sub(load3(tpose, leg + 3), load3(tpose, leg + 2))
        turn = qalign(
            unit_or(rest, (0.0, 0.0, -1.0)),
            (0.0, 1.0, 0.0),
            unit_or(sub(toes, ankle), front),
            add((0.0, 1.0, 0.0), scale(shin, 0.5)),
        )
        store4(foot_rotation, side, turn)
        sole = min(ankle[1] - tpose[leg + 2, 1], toes[1] - tpose[leg + 3, 1]) - floor_y
        limit = LEAVES if state[side] > 0.0 else LANDS
        state[side] = 1.0 if sole < limit * stature_m else 0.0
        contact[side] = state[side]
        rise = settled(sole, NEAR * stature_m) - sole
        store3(ankle_position, side, (ankle[0], ankle[1] + rise, ankle[2]))
