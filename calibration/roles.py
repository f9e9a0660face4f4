"""Which device is worn as what.

In this order: what the user says; what the runtime or the file says, unless the geometry contradicts it in
more than four of five clear frames, which is reported; then the class of the device and where it is, seen
from the head over the whole take. File order, device index and names play no part, so a role stays with
its serial number however the devices are listed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from calibration import parts, stature
from calibration.facing import from_head, looks_ahead
from calibration.mounting import kind_of
from calibration.samples import Samples
from vrik import quat
from vrik.arrays import Bools, Floats, Ints, Points
from vrik.body import EYE_HEIGHT_SHARE
from vrik.errors import CalibrationError, NoUsableFramesError
from vrik.frames import ROLES, DeviceClass, TrackedDevice

MIN_ROWS = 3
"""A device with fewer good samples than this counts as never tracked."""

CLEAR_M = 0.15
"""Two devices this far apart sideways tell left from right in that frame. [m]"""
CONTRADICTED = 0.8
"""Share of the clear frames that must contradict a stated side before it is overruled."""
MIN_CLEAR_SHARE = 0.2
DOUBT_M = 0.03
"""Below this mean sideways distance the sides are a guess, and are said to be. [m]"""

STILL_M = 0.01
FAR_SHARE = 0.75
HAND_REACH_SHARE = 0.9
"""Sideways or forward distance from the head over stature beyond which nothing is worn."""

_WORN = (DeviceClass.HMD, DeviceClass.CONTROLLER, DeviceClass.GENERIC_TRACKER)
_CLASS_NAMES = {
    DeviceClass.HMD: "headset",
    DeviceClass.CONTROLLER: "controller",
    DeviceClass.GENERIC_TRACKER: "tracker",
    DeviceClass.TRACKING_REFERENCE: "base station",
}


@dataclass(frozen=True, slots=True)
class Assignment:
    """Who wears what where.

    Args:
        roles: Serial number to role; devices that are not listed are left out.
        notes: Sentences for the user.
    """

    roles: dict[str, str]
    notes: tuple[str, ...] = ()


@dataclass(eq=False)
class _Case:
    """The work in progress: what is settled, what is open, and the evidence."""

    take: Samples
    pose: Samples | None
    roles: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    hinted: set[str] = field(default_factory=set)
    head: int = -1
    stature_m: float = 0.0
    seen: Points = field(default_factory=lambda: np.zeros((0, 0, 3)))
    ahead: Bools = field(default_factory=lambda: np.zeros(0, np.bool_))
    upright: Bools = field(default_factory=lambda: np.zeros(0, np.bool_))

    def open(self, device_class: DeviceClass) -> list[int]:
        """Columns of a class whose device has no role yet and is not left out."""
        return [
            i
            for i, d in enumerate(self.take.devices)
            if d.device_class == device_class and d.serial not in self.roles and d.serial not in self.left_out
        ]

    def free(self, role: str) -> bool:
        return role not in self.roles.values()


def assign(
    take: Samples,
    *,
    pose: Samples | None = None,
    chosen: Mapping[str, str] | None = None,
    stature_m: float | None = None,
) -> Assignment:
    """Give each device its role.

    Args:
        take: Device poses over time.
        pose: Poses of the person standing in a T-pose, if there are any: the best evidence for sides.
        chosen: What the user says, serial number to role; "" leaves a device out.
        stature_m: Standing height when it is known. [m]

    Raises:
        NoUsableFramesError: If nothing that can be worn is ever tracked.
        CalibrationError: If there is no headset, or ``chosen`` names an unknown role or one role twice.
    """
    case = _Case(take, pose)
    _hear_the_user(case, chosen or {})
    _leave_out_the_unusable(case)
    _find_the_head(case)
    _look_around(case, stature_m)
    _hear_the_runtime(case)
    _leave_out_the_odd(case)
    _give_hands(case)
    _give_parts(case)
    return Assignment(case.roles, (*case.notes, *_left_out_sentences(case)))


def _hear_the_user(case: _Case, chosen: Mapping[str, str]) -> None:
    present = {d.serial for d in case.take.devices}
    for serial, role in chosen.items():
        if role and role not in ROLES:
            raise CalibrationError(f"no role '{role}' for device '{serial}'; have: {', '.join(ROLES)}")
        if role and not case.free(role):
            raise CalibrationError(f"the role '{role}' is given to two devices; give it to one of them")
        if serial not in present:
            case.notes.append(f"The role map names a device '{serial}' that is not in these frames.")
        if role:
            case.roles[serial] = role
        elif serial in present:
            case.left_out[serial] = "as asked"


def _leave_out_the_unusable(case: _Case) -> None:
    counts = case.take.good.sum(axis=0)
    if case.pose is not None:
        for i, device in enumerate(case.take.devices):
            column = case.pose.column(device.serial)
            counts[i] += 0 if column is None else np.count_nonzero(case.pose.good[:, column])
    worn = np.array([d.device_class in _WORN or bool(d.role) for d in case.take.devices], np.bool_)
    if not np.any(counts[worn] > 0):
        named = _listed(case.take.devices) or "no device at all"
        raise NoUsableFramesError(
            f"no usable frames: nothing that can be worn is ever tracked ({named}); "
            "record again with the headset and the controllers switched on and in view"
        )
    for i, (device, count) in enumerate(zip(case.take.devices, counts, strict=True)):
        if device.serial in case.roles or device.serial in case.left_out:
            continue
        if device.device_class == DeviceClass.TRACKING_REFERENCE:
            case.left_out[device.serial] = "base station"
        elif device.role and device.role not in ROLES:
            case.left_out[device.serial] = f"the runtime says it is a '{device.role}'"
        elif device.device_class not in _WORN and not device.role:
            case.left_out[device.serial] = "nothing that is worn"
        elif count < min(MIN_ROWS, len(case.take)):
            case.left_out[device.serial] = "never tracked"
        elif not device.role and device.device_class == DeviceClass.GENERIC_TRACKER and _never_turns(case, i):
            case.left_out[device.serial] = "only its positions are known"


def _never_turns(case: _Case, i: int) -> bool:
    """Whether a device moves and never turns: its source has positions only, and the identity stands in."""
    good = case.take.good[:, i]
    turns = np.any(case.take.rotation[good, i] != quat.identity())
    return not turns and _spread(case.take.position[good, i]) > 0.0


def _find_the_head(case: _Case) -> None:
    take = case.take
    for serial, role in case.roles.items():
        column = take.column(serial)
        if role == "head" and column is not None:
            case.head = column
    if case.head < 0:
        stated = [i for i, d in enumerate(take.devices) if d.role == "head" and _is_open(case, d)]
        candidates = stated or case.open(DeviceClass.HMD)
        if candidates:
            case.head = max(candidates, key=lambda i: _prominence(take, i, candidates))
            case.roles[take.devices[case.head].serial] = "head"
            for i in candidates:
                if i != case.head:
                    case.left_out[take.devices[i].serial] = "a second headset"
    if case.head < 0 or not take.good[:, case.head].any():
        untracked = [d.serial for d in take.devices if d.device_class == DeviceClass.HMD]
        what = f"the headset {untracked[0]} is never tracked" if untracked else "no headset"
        raise CalibrationError(
            f"{what}; found {_listed(take.devices)}. A body hangs from its head: "
            "record the headset too, or name the device worn on the head as role 'head'"
        )


def _prominence(take: Samples, i: int, candidates: Sequence[int]) -> tuple[bool, bool, float]:
    """Tracked about as much as the best; moving; high up."""
    most = max(int(take.good[:, j].sum()) for j in candidates)
    good = take.good[:, i]
    p = take.position[good, i]
    return (
        bool(good.sum() >= 0.8 * most),
        bool(_spread(p) > STILL_M),
        float(np.median(p[:, 1])) if len(p) else -np.inf,
    )


def _look_around(case: _Case, stature_m: float | None) -> None:
    take, head = case.take, case.head
    good = take.good[:, head]
    case.seen = from_head(take, head)
    case.ahead = good & looks_ahead(take.rotation[:, head])
    if case.ahead.sum() < MIN_ROWS:
        case.ahead = good
    eyes = stature.standing_eye_height(take, head)
    case.stature_m = stature_m or max(eyes / EYE_HEIGHT_SHARE, 0.5)
    case.upright = case.ahead & (take.position[:, head, 1] > 0.94 * eyes)
    if case.upright.sum() < MIN_ROWS:
        case.upright = case.ahead


def _hear_the_runtime(case: _Case) -> None:
    counts = case.take.good.sum(axis=0)
    by_trust = sorted(range(len(case.take.devices)), key=lambda i: -int(counts[i]))
    for i in by_trust:
        device = case.take.devices[i]
        if not device.role or not _is_open(case, device):
            continue
        if case.free(device.role):
            case.roles[device.serial] = device.role
            case.hinted.add(device.serial)
        else:
            case.left_out[device.serial] = f"another device is called {device.role} and is tracked more"
    for kind in ("hand", "foot", "knee", "elbow", "shoulder"):
        _check_sides(case, kind)


def _check_sides(case: _Case, kind: str) -> None:
    by_role = {case.roles[s]: s for s in case.hinted}
    left, right = by_role.get("left_" + kind), by_role.get("right_" + kind)
    if left is None or right is None:
        return
    apart = _apart(case, left, right)
    clear = np.abs(apart) > CLEAR_M
    enough = max(MIN_ROWS, MIN_CLEAR_SHARE * len(apart))
    if clear.sum() >= enough and np.mean(apart[clear] < 0.0) > CONTRADICTED:
        case.roles[left], case.roles[right] = "right_" + kind, "left_" + kind
        case.notes.append(
            f"{left} is called left_{kind} but is on the right in {np.mean(apart[clear] < 0.0):.0%} of the "
            f"clear frames: left and right {kind} are swapped."
        )


def _leave_out_the_odd(case: _Case) -> None:
    """Things that lie about: still while the head moves, or out of any limb's reach."""
    take = case.take
    head_moved = _spread(take.position[take.good[:, case.head], case.head])
    for i, device in enumerate(take.devices):
        stated = device.serial in case.hinted
        if i == case.head or not (stated or _is_open(case, device)):
            continue
        both = take.good[:, i] & take.good[:, case.head]
        if both.sum() < MIN_ROWS:
            continue
        still = _spread(take.position[take.good[:, i], i]) < STILL_M
        away = float(np.median(np.hypot(case.seen[both, i, 0], case.seen[both, i, 2])))
        hand = kind_of(device.role) == "hand" or device.device_class == DeviceClass.CONTROLLER
        reach = (HAND_REACH_SHARE if hand else FAR_SHARE) * case.stature_m
        reason = ""
        if still and head_moved > (0.3 if hand else 0.8):
            reason = "lies still while the head moves"
        elif not stated and away > reach:
            reason = f"{away:.1f} m from the head"
        if reason:
            case.left_out[device.serial] = reason
            case.roles.pop(device.serial, None)


def _give_hands(case: _Case) -> None:
    open_columns = case.open(DeviceClass.CONTROLLER)
    sides = [side for side in ("left", "right") if case.free(side + "_hand")]
    most = max((int(case.take.good[:, i].sum()) for i in open_columns), default=0)

    def likely(i: int) -> tuple[bool, bool, float]:
        both = case.take.good[:, i] & case.take.good[:, case.head]
        near = np.linalg.norm(case.seen[both, i], axis=-1)
        return (
            _spread(case.take.position[case.take.good[:, i], i]) < STILL_M,
            2 * int(case.take.good[:, i].sum()) < most,
            float(np.median(near)) if len(near) else np.inf,
        )

    open_columns.sort(key=likely)
    for i in open_columns[len(sides) :]:
        case.left_out[case.take.devices[i].serial] = "a controller too many"
    _give_sides(case, "hand", open_columns[: len(sides)])


def _give_parts(case: _Case) -> None:
    columns = case.open(DeviceClass.GENERIC_TRACKER)
    free = {kind: sum(case.free(role) for role in ROLES if kind_of(role) == kind) for kind in parts.CAPACITY}
    kinds = parts.choose([_place(case, i) for i in columns], free)
    for kind in parts.CAPACITY:
        chosen = [i for i, k in zip(columns, kinds, strict=True) if k == kind]
        if parts.CAPACITY[kind] == 1:
            case.roles.update({case.take.devices[i].serial: kind for i in chosen})
        else:
            _give_sides(case, kind, chosen)
    for i, kind in zip(columns, kinds, strict=True):
        if not kind:
            height, side = _place(case, i)
            case.left_out[case.take.devices[i].serial] = (
                f"{height * case.stature_m:.2f} m high and {side * case.stature_m:.2f} m to the side of a "
                "standing body, where nothing is worn"
            )


def _give_sides(case: _Case, kind: str, columns: Sequence[int]) -> None:
    """Left and right for one or two devices of a kind, whatever sides are still free."""
    sides = [side for side in ("left", "right") if case.free(f"{side}_{kind}")]
    serials = [case.take.devices[i].serial for i in columns]
    if len(serials) == 2 and len(sides) == 2:
        lean = _mean_apart(_apart(case, serials[0], serials[1]))
        ordered = serials if lean >= 0.0 else serials[::-1]
        case.roles.update({ordered[0]: "left_" + kind, ordered[1]: "right_" + kind})
    elif len(serials) == 1 and sides:
        lean = _mean_apart(_sideways(case, serials[0]))
        side = sides[0] if len(sides) == 1 else ("right" if lean >= 0.0 else "left")
        case.roles[serials[0]] = f"{side}_{kind}"
        lean = lean if len(sides) == 2 else np.inf
    else:
        return
    if abs(lean) < DOUBT_M:
        case.notes.append(
            f"Left and right {kind} are hard to tell apart here: check {' and '.join(serials)}."
        )


def _apart(case: _Case, left: str, right: str) -> Floats:
    """How far right of ``left`` the device ``right`` is, in each telling row. [m]

    Both in the calibration pose if they are there; else whenever the head is level.
    """
    for samples, rows, seen in _evidence(case):
        a, b = samples.column(left), samples.column(right)
        if a is None or b is None:
            continue
        both = rows & samples.good[:, a] & samples.good[:, b]
        if both.sum() >= MIN_ROWS:
            return np.asarray(seen[both, b, 0] - seen[both, a, 0])
    return np.zeros(0)


def _sideways(case: _Case, serial: str) -> Floats:
    """How far right of the head a device is, in each telling row. [m]"""
    for samples, rows, seen in _evidence(case):
        column = samples.column(serial)
        if column is not None and (rows & samples.good[:, column]).sum() >= MIN_ROWS:
            return np.asarray(seen[rows & samples.good[:, column], column, 0])
    return np.zeros(0)


def _evidence(case: _Case) -> list[tuple[Samples, Bools, Points]]:
    found = [(case.take, case.ahead, case.seen)]
    if case.pose is not None:
        head = case.pose.column(case.take.devices[case.head].serial)
        if head is not None and case.pose.good[:, head].any():
            rows = case.pose.good[:, head] & looks_ahead(case.pose.rotation[:, head])
            found.insert(0, (case.pose, rows, from_head(case.pose, head)))
    return found


def _place(case: _Case, i: int) -> tuple[float, float]:
    """Height and sideways distance of a tracker on the standing body, over stature."""
    take = case.take
    rows: Ints = np.flatnonzero(case.upright & take.good[:, i])
    if len(rows) < MIN_ROWS:
        rows = np.flatnonzero(take.good[:, i])
    height = float(np.median(take.position[rows, i, 1]))
    side = abs(float(np.median(case.seen[rows, i, 0])))
    return height / case.stature_m, side / case.stature_m


def _mean_apart(apart: Floats) -> float:
    """Mean with far values cut, so that a few wild frames do not decide. [m]"""
    return float(np.mean(np.clip(apart, -0.3, 0.3))) if len(apart) else 0.0


def _spread(positions: Points) -> float:
    """Largest extent along an axis, without the outermost twentieth at either end. [m]"""
    if len(positions) == 0:
        return 0.0
    low, high = np.percentile(positions, [5.0, 95.0], axis=0)
    return float(np.max(high - low))


def _is_open(case: _Case, device: TrackedDevice) -> bool:
    return device.serial not in case.roles and device.serial not in case.left_out


def _listed(devices: Sequence[TrackedDevice]) -> str:
    """ "2 controllers (a, b) and 1 tracker (c)"."""
    groups = []
    for device_class, name in _CLASS_NAMES.items():
        serials = [d.serial for d in devices if d.device_class == device_class]
        if serials:
            plural = "s" if len(serials) > 1 else ""
            groups.append(f"{len(serials)} {name}{plural} ({', '.join(serials)})")
    return " and ".join(groups)


def _left_out_sentences(case: _Case) -> list[str]:
    reasons: dict[str, list[str]] = {}
    for serial, reason in case.left_out.items():
        reasons.setdefault(reason, []).append(serial)
    return [f"Left out: {', '.join(serials)} ({reason})." for reason, serials in reasons.items()]
