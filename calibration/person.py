"""From device poses to a calibrated person: roles, stature, lengths, and how each device is worn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from calibration import mounting, offsets, proportions, samples, stature
from calibration import roles as roles_
from calibration import tpose as tpose_
from calibration.samples import Samples
from vrik import quat
from vrik.arrays import Points
from vrik.body import BodyModel
from vrik.errors import NoUsableFramesError
from vrik.frames import ROLE, ROLES, Calibration, TrackerSequence
from vrik.pose import Pose

MAX_ROWS = 3000
"""Rows that statistics over a whole take look at; more would only cost time."""


def calibrate(
    frames: TrackerSequence,
    *,
    stature_m: float | None = None,
    tpose: TrackerSequence | None = None,
    skeleton_tpose: Points | None = None,
    roles: Mapping[str, str] | None = None,
) -> Calibration:
    """Find out who wears what and how, from whatever there is.

    Args:
        frames: A take. If the person stands in a T-pose somewhere in it, facing any way, it is found.
        stature_m: Their height, if they say it. [m]
        tpose: Frames in which they stand in a T-pose. Anything else in them is noticed, said and not used.
        skeleton_tpose: (22, 3) true joints of a T-pose facing -Z, in the order of ``BONES``. [m]
        roles: Serial number to role, where the user knows better; "" leaves a device out.

    Returns:
        A body, roles by serial number, and ``T_device_bone`` of each role; with what was measured, what was
        assumed, and notes for the user.

    Raises:
        NoUsableFramesError: If nothing that can be worn is ever tracked.
        CalibrationError: If there is no headset, a role map is wrong, or the stated height is no height.
        ValueError: If ``skeleton_tpose`` is not (22, 3) and finite.
    """
    whole = samples.take(frames)
    given = samples.take(tpose) if tpose is not None and len(tpose) else None
    if len(whole) == 0:
        if given is None:
            raise NoUsableFramesError("no usable frames: the recording is empty; record again")
        whole = given
    thin = whole.part(slice(None, None, max(1, -(-len(whole) // MAX_ROWS))))
    known = None if stature_m is None else stature.checked(stature_m)
    worn = roles_.assign(thin, pose=given, chosen=roles, stature_m=known)
    notes = list(worn.notes)

    pose = _find_pose(whole, given, worn.roles, notes)
    height = _stature(thin, pose, worn.roles, known, skeleton_tpose)
    notes += [height.note] if height.note else []
    wrists = None if pose is None else _wrist_distance(pose, worn.roles, height.metres)
    body, arms_fit = proportions.body_from(
        height.metres, wrist_distance_m=wrists, skeleton_tpose=skeleton_tpose
    )
    if wrists is not None and not arms_fit and skeleton_tpose is None:
        notes.append(f"The wrists are {wrists:.2f} m apart in the T-pose, no arms for a stature of "
                     f"{height.metres:.2f} m: average arms are assumed.")  # fmt: skip

    from_pose = {} if pose is None else offsets.in_tpose(pose, worn.roles, body)
    others = [role for role in worn.roles.values() if role not in from_pose]
    from_standing = offsets.while_standing(thin, worn.roles, body) if others else {}
    mounts = {role: mounting.nominal(role, body) for role in others} | from_standing | from_pose
    lengths_known = skeleton_tpose is not None
    measured = [
        ("stature", height.measured),
        ("arm length", arms_fit or lengths_known),
        ("other bone lengths", lengths_known),
        *((f"{r.replace('_', ' ')} mounting", r in from_pose) for r in ROLES if r in mounts),
    ]
    notes += _unseen_straps(others, from_standing)
    return _packed(body, worn.roles, mounts, measured, notes)


def _find_pose(
    whole: Samples, given: Samples | None, worn: Mapping[str, str], notes: list[str]
) -> Samples | None:
    """Rows of a T-pose: the given ones if they are one, else some of the take."""
    if given is not None:
        rows, why_not = tpose_.accept(given, worn)
        if len(rows):
            return given.part(rows)
        notes.append(
            f"The calibration frames show no T-pose: {why_not}. They are not used; stand with both arms "
            "stretched out to the sides, at shoulder height, and look ahead."
        )
    rows = tpose_.find(whole, worn)
    return whole.part(rows) if len(rows) else None


def _stature(
    take: Samples,
    pose: Samples | None,
    worn: Mapping[str, str],
    stated_m: float | None,
    skeleton_tpose: Points | None,
) -> stature.Stature:
    if stated_m is None and skeleton_tpose is not None:
        return stature.Stature(proportions.stature_of(skeleton_tpose), True, "stated")
    serial = {role: s for s, role in worn.items()}
    head = take.column(serial["head"])
    assert head is not None  # roles.assign raises without one
    left, right = (take.column(serial.get(side, "")) for side in ("left_hand", "right_hand"))
    hands = None if left is None or right is None else (left, right)
    eyes = None
    if pose is not None:
        column = pose.column(serial["head"])
        eyes = None if column is None else pose.position[pose.good[:, column], column, 1]
    return stature.estimate(take, head, hands, tpose_eyes=eyes, stated_m=stated_m)


def _wrist_distance(pose: Samples, worn: Mapping[str, str], stature_m: float) -> float | None:
    """Between the wrists of a T-pose, when both hands are seen in it. [m]"""
    serial = {role: s for s, role in worn.items()}
    left, right = (pose.column(serial.get(side, "")) for side in ("left_hand", "right_hand"))
    if left is None or right is None:
        return None
    both = pose.good[:, left] & pose.good[:, right]
    if not both.any():
        return None
    across = np.median(pose.position[both, right] - pose.position[both, left], axis=0)
    return float(np.hypot(across[0], across[2])) - 2.0 * mounting.palm_m(stature_m)


def _unseen_straps(others: Sequence[str], from_standing: Mapping[str, Pose]) -> list[str]:
    body = [role for role in others if mounting.kind_of(role) not in ("head", "hand")]
    stood = [role.replace("_", " ") for role in body if role in from_standing]
    blind = [role.replace("_", " ") for role in body if role not in from_standing]
    said = []
    if stood:
        said.append(f"No T-pose: how {', '.join(stood)} is strapped on is taken from plain standing.")
    if blind:
        said.append(
            f"Nobody stands upright in these frames: {', '.join(blind)} is assumed to be worn unturned."
        )
    held = [role.replace("_", " ") for role in others if role in from_standing and role not in body]
    if held:
        said.append(f"No T-pose: {', '.join(held)} seem to be held like wands, pointing to the thumb.")
    return said


def _packed(
    body: BodyModel,
    worn: dict[str, str],
    mounts: Mapping[str, Pose],
    measured: Sequence[tuple[str, bool]],
    notes: Sequence[str],
) -> Calibration:
    position, rotation = np.zeros((len(ROLES), 3)), quat.identity(len(ROLES))
    for role, T_bone_device in mounts.items():
        T_device_bone = T_bone_device.inverse()
        position[ROLE[role]], rotation[ROLE[role]] = T_device_bone.translation, T_device_bone.rotation
    return Calibration(
        body,
        dict(worn),
        position,
        rotation,
        tuple(name for name, seen in measured if seen),
        tuple(name for name, seen in measured if not seen),
        tuple(notes),
    )
