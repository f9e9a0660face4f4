"""How each device sits on its bone, from somebody whose pose is known: a T-pose, or plain standing.

A rotation that was seen is always better than one that was guessed: straps and grips turn freely. A
position that was seen carries the error of the body model it is compared with (one to three centimetres),
so it is believed only as far as it differs from the usual place by more than that.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from calibration import grips
from calibration.facing import looks_ahead, yaw_of, yaw_rotation
from calibration.mounting import grip, kind_of, nominal, side_of
from calibration.samples import Samples
from vrik import quat
from vrik.arrays import Bools, Floats, Quats, Vec3
from vrik.body import BodyModel
from vrik.frames import ROLE, ROLE_BONES
from vrik.pose import Pose
from vrik.skeleton import BONE

_FREE = 1e-9  # believed whatever the usual place is
_NEVER = np.inf  # not believed at all

# Spread of the model body against a real one in the T-pose, right, up and back [m]. Heights of head, knees
# and feet are believed: they are what puts the soles on the floor. The head's place tells where the body is,
# so it cannot be checked against the body sideways; and people stand with their feet
# anywhere between closed and half a metre apart.
TPOSE_SPREAD_M: Mapping[str, tuple[float, float, float]] = {
    "head": (_NEVER, _FREE, _NEVER),
    "hand": (0.04, 0.06, 0.06),
    "waist": (0.03, 0.03, 0.03),
    "chest": (0.03, 0.03, 0.03),
    "shoulder": (0.03, 0.03, 0.03),
    "elbow": (0.04, 0.04, 0.05),
    "knee": (_NEVER, _FREE, _NEVER),
    "foot": (_NEVER, _FREE, _NEVER),
}

# The same for somebody who merely stands: nobody knows where their arms are and how far apart their feet.
STANDING_SPREAD_M: Mapping[str, tuple[float, float, float]] = {
    "waist": (0.08, 0.05, 0.08),
    "chest": (0.08, 0.05, 0.08),
    "shoulder": (0.06, 0.06, 0.06),
    "elbow": (_NEVER, _NEVER, _NEVER),
    "knee": (_NEVER, 0.03, _NEVER),
    "foot": (_NEVER, _FREE, _NEVER),
}

HEAD_HEIGHT_LIMIT_M = 0.06
"""A headset farther than this above or below its usual height on the head is not worn so. [m]"""

HAND_LIMIT_M = 0.12
"""A controller's origin is not farther from the middle of the fist than this, long wands included; more is
arms that were not quite in the plane of the body. [m]"""

LOOKED_AWAY_RAD = np.radians(35.0)
"""A head turned more than this in the T-pose looked elsewhere."""

ELBOW_HANGS_SHARE = 0.72
"""An elbow tracker lower than this share of the stature is on an arm that hangs."""

MIN_ROWS = 5


def in_tpose(pose: Samples, roles: Mapping[str, str], body: BodyModel) -> dict[str, Pose]:
    """``T_bone_device`` of every role that is tracked while the person stands in a T-pose.

    Args:
        pose: Rows of the T-pose, facing any way.
        roles: Serial number to role, the head among them.
        body: The person's lengths.
    """
    columns = _columns(pose, roles)
    pose = pose.part(pose.good[:, columns["head"]])
    if len(pose) == 0:
        return {}
    T_world_head = _typical(pose, columns["head"], np.ones(len(pose), np.bool_))
    T_world_body = _stand(T_world_head, _facing(pose, columns), body)
    mounts: dict[str, Pose] = {}
    for role, column in columns.items():
        good = pose.good[:, column]
        if not good.any():
            continue
        T_body_device = T_world_body.inverse() @ _typical(pose, column, good)
        seen = T_body_device.translation - body.tpose[ROLE_BONES[ROLE[role]]]
        usual = nominal(role, body)
        place = _believe(seen, usual.translation, TPOSE_SPREAD_M[kind_of(role)])
        turn = T_body_device.rotation
        if kind_of(role) == "hand":
            away = place - usual.translation
            place = usual.translation + away * min(1.0, HAND_LIMIT_M / max(float(np.linalg.norm(away)), 1e-9))
        if role == "head":
            limit = usual.translation[1] + np.array([-1.0, 1.0]) * HEAD_HEIGHT_LIMIT_M
            place[1] = np.clip(place[1], *limit)
            if quat.angle(turn, usual.rotation) > LOOKED_AWAY_RAD:
                turn = usual.rotation
        mounts[role] = Pose(turn, place)
    return mounts


def while_standing(take: Samples, roles: Mapping[str, str], body: BodyModel) -> dict[str, Pose]:
    """``T_bone_device`` of what can be told from frames in which the person just stands.

    Their bones are taken to be at rest, turned with the head. Body trackers get a rotation and a position;
    elbows a rotation from hanging arms; controllers the grip of wands when they are held so (see
    ``grips``). The head is left out: it is what everything else is measured against.

    Args:
        take: Any device poses.
        roles: Serial number to role, the head among them.
        body: The person's lengths.
    """
    columns = _columns(take, roles)
    upright = _upright(take, columns["head"], body)
    mounts: dict[str, Pose] = {}
    if grips.held_like_wands(take, columns, upright, body):
        for role in columns:
            if kind_of(role) == "hand":
                mounts[role] = Pose(grip(side_of(role), "wand"), nominal(role, body).translation)
    if upright.sum() < MIN_ROWS:
        return mounts
    take = take.part(upright)
    facing = yaw_rotation(yaw_of(take.rotation[:, columns["head"]]))
    head = nominal("head", body).translation + body.tpose[BONE["head"]]
    origin = take.position[:, columns["head"]] - quat.rotate(facing, head)
    origin[:, 1] = 0.0
    for role, column in columns.items():
        kind, good = kind_of(role), take.good[:, column]
        if kind == "elbow":
            good = good & (take.position[:, column, 1] < ELBOW_HANGS_SHARE * body.stature_m)
        if kind in ("head", "hand") or good.sum() < MIN_ROWS:
            continue
        rest = grips.hanging(facing[good], side_of(role)) if kind == "elbow" else facing[good]
        turn = _average(quat.multiply(quat.conjugate(rest), take.rotation[good, column]))
        from_body = quat.rotate(quat.conjugate(facing[good]), take.position[good, column] - origin[good])
        seen = np.median(from_body, axis=0)
        if kind == "foot":
            seen[1] = np.percentile(from_body[:, 1], 20.0)  # the foot that is down, not the one that steps
        seen = seen - body.tpose[ROLE_BONES[ROLE[role]]]
        mounts[role] = Pose(turn, _believe(seen, nominal(role, body).translation, STANDING_SPREAD_M[kind]))
    return mounts


def _columns(samples: Samples, roles: Mapping[str, str]) -> dict[str, int]:
    found = {role: samples.column(serial) for serial, role in roles.items()}
    return {role: column for role, column in found.items() if column is not None}


def _facing(pose: Samples, columns: Mapping[str, int]) -> float:
    """Heading of the body: square to the line between the hands, else that of the head. [rad]"""
    if "left_hand" in columns and "right_hand" in columns:
        both = pose.good[:, columns["left_hand"]] & pose.good[:, columns["right_hand"]]
        if both.any():
            step = pose.position[both, columns["right_hand"]] - pose.position[both, columns["left_hand"]]
            across = np.median(step, axis=0)
            if np.hypot(across[0], across[2]) > 0.4:
                return float(np.arctan2(-across[2], across[0]))
    yaw = yaw_of(pose.rotation[:, columns["head"]])
    return float(np.arctan2(np.sin(yaw).mean(), np.cos(yaw).mean()))


def _stand(T_world_head: Pose, yaw_rad: float, body: BodyModel) -> Pose:
    """``T_world_body``: where on the floor, and facing which way, a T-pose has its eyes at the headset."""
    eyes = nominal("head", body).translation + body.tpose[BONE["head"]]
    T_world_body = Pose.from_yaw(yaw_rad, np.zeros(3))
    place = T_world_head.translation - T_world_body.apply(eyes)
    place[1] = 0.0
    return Pose(T_world_body.rotation, place)


def _typical(samples: Samples, column: int, rows: Bools) -> Pose:
    """Where a device is most of the time."""
    return Pose(_average(samples.rotation[rows, column]), np.median(samples.position[rows, column], axis=0))


def _average(rotations: Quats) -> Quats:
    """Mean rotation, taken again without the rows that are far from the first one."""
    middle = quat.average(rotations)
    away = quat.angle(middle, rotations)
    near = away <= max(2.0 * float(np.median(away)), np.radians(2.0))
    return quat.average(rotations[near]) if near.any() else middle


def _believe(seen: Vec3, usual: Vec3, spread_m: tuple[float, float, float]) -> Vec3:
    """The usual place, moved by what is seen beyond the spread of bodies, axis by axis.

    The part of a difference that is kept is 1 - (spread / difference)^2, and none within the spread.
    Source: James & Stein 1961 (positive-part shrinkage), one axis at a time.
    """
    away: Floats = seen - usual
    ratio = np.asarray(spread_m) / np.maximum(np.abs(away), 1e-12)
    return np.asarray(usual + away * np.maximum(0.0, 1.0 - ratio * ratio))


def _upright(take: Samples, head: int, body: BodyModel) -> Bools:
    """Rows in which the head is level and about as high as it gets on straight legs."""
    eyes = body.tpose[BONE["head"], 1] + nominal("head", body).translation[1]
    height = take.position[:, head, 1]
    ok = take.good[:, head] & looks_ahead(take.rotation[:, head])
    return np.asarray(ok & (np.abs(height - eyes) < 0.05 * body.stature_m))
