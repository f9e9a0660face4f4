"""How controllers are held, when no T-pose shows it: in the fist or like a wand."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from calibration.facing import looks_ahead, yaw_of, yaw_rotation
from calibration.mounting import grip
from calibration.samples import Samples
from vrik import quat
from vrik.arrays import Bools, Quats
from vrik.body import BodyModel
from vrik.skeleton import BONE

HANGING_TILT_RAD = np.radians(80.0)
"""How far below the T-pose an arm hangs."""
HANGING_SHARE = 0.5
"""A controller lower than this share of the stature hangs at the side of somebody who stands."""
WAND_MARGIN = 0.28
"""By how much the wand grip must point more along the arms, in cosines. Over 56 clips of motion capture a
true fist grip reached 0.27 once, when boxing; six of seven takes with wands reach 0.30 to 0.67."""
MIN_ROWS = 15


def held_like_wands(take: Samples, columns: Mapping[str, int], upright: Bools, body: BodyModel) -> bool:
    """Whether the controllers are held like wands (-Z to the thumb) and not in the usual fist grip.

    The arms' direction over the whole take tells the two apart. Where it only hints at wands, arms that
    hang while the person stands must say so too.

    Args:
        take: Device poses.
        columns: Role to column, the head among them.
        upright: (n,) rows in which the person stands.
        body: Their lengths.
    """
    hands = [side for side in ("left", "right") if side + "_hand" in columns]
    facing = yaw_rotation(yaw_of(take.rotation[:, columns["head"]]))
    margin = _wand_margin(take, columns, hands, facing, body)
    if margin > WAND_MARGIN or margin <= 0.0:
        return margin > WAND_MARGIN
    for side in hands:
        column = columns[side + "_hand"]
        low = take.position[:, column, 1] < HANGING_SHARE * body.stature_m
        rows = upright & take.good[:, column] & low
        if rows.sum() >= MIN_ROWS:
            rest = hanging(facing[rows], side)
            turn = quat.average(quat.multiply(quat.conjugate(rest), take.rotation[rows, column]))
            if quat.angle(turn, grip(side, "wand")) < quat.angle(turn, grip(side)):
                return True
    return False


def hanging(facing: Quats, side: str) -> Quats:
    """(n, 4) rotation of the bones of an arm that hangs at the side of a body that faces so."""
    tilt = HANGING_TILT_RAD if side == "left" else -HANGING_TILT_RAD
    return quat.multiply(facing, quat.from_rotvec(np.array([0.0, 0.0, tilt])))


def _wand_margin(
    take: Samples, columns: Mapping[str, int], hands: list[str], facing: Quats, body: BodyModel
) -> float:
    """How much better a wand's fingers point away from the shoulder than a fist's, in cosines."""
    head = columns["head"]
    ahead = take.good[:, head] & looks_ahead(take.rotation[:, head])
    margins = []
    for side in hands:
        column = columns[side + "_hand"]
        rows = ahead & take.good[:, column]
        if rows.sum() < MIN_ROWS:
            continue
        step = body.tpose[BONE[side + "UpperArm"]] - body.tpose[BONE["head"]]
        shoulder = take.position[rows, head] + quat.rotate(facing[rows], step)
        along = take.position[rows, column] - shoulder
        along /= np.maximum(np.linalg.norm(along, axis=-1, keepdims=True), 1e-9)
        fist = quat.rotate(take.rotation[rows, column], np.array([0.0, 0.0, -1.0]))
        wand = quat.rotate(take.rotation[rows, column], np.array([0.0, -1.0, 0.0]))
        margins.append(float(np.mean(np.sum((wand - fist) * along, axis=-1))))
    return float(np.mean(margins)) if margins else 0.0
