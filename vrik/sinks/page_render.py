"""The HTML text of the page: the template ``page.html`` with the moving body embedded.

Places are 16-bit steps of a millimetre from the middle of what was recorded (coarser only when someone walks
further than 65 m); a minute of three devices is about 500 kB.
"""

from __future__ import annotations

import base64
import html
import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any

import numpy as np

from vrik import quat
from vrik.arrays import Bools, Floats, Points
from vrik.frames import ROLE, DeviceClass, DeviceState, PoseSequence, TrackedDevice, TrackerSequence
from vrik.skeleton import BONE, BONES

UNKNOWN_REACH = 65535
"""In place of a reach error that is not known."""

# Points that are drawn beside the 22 joints: (bone they ride on, place in its axes for a person of 1.72 m).
_EXTRA_POINTS = (
    ("head", (0.0, 0.09, -0.02)),
    ("head", (0.0, 0.09, -0.17)),
    ("leftHand", (-0.11, 0.0, 0.0)),
    ("rightHand", (0.11, 0.0, 0.0)),
    ("leftToes", (0.0, 0.0, -0.05)),
    ("rightToes", (0.0, 0.0, -0.05)),
)
_SKULL, _NOSE, _LEFT_TIP, _RIGHT_TIP, _LEFT_TOE_TIP, _RIGHT_TOE_TIP = range(len(BONES), len(BONES) + 6)
POINT_COUNT = len(BONES) + len(_EXTRA_POINTS)


@dataclass(frozen=True, slots=True, eq=False)
class PageSummary:
    """Numbers of a whole session, of which the page may show only every so many frames.

    Args:
        frames: How many frames were solved.
        duration_s: From the first to the last. [s]
        tracked_share: (k,) how much of the time each device was tracked, 0 to 1.
        reach_mean_m: (13,) mean reach error of each role; NaN where never tracked. [m]
        reach_max_m: (13,) largest. [m]
    """

    frames: int
    duration_s: float
    tracked_share: Floats
    reach_mean_m: Floats
    reach_max_m: Floats

    @classmethod
    def of(cls, poses: PoseSequence, tracker: TrackerSequence) -> PageSummary:
        """From sequences that hold every frame."""
        known = np.isfinite(poses.reach_error_m)
        error = np.where(known, poses.reach_error_m, 0.0)
        count = known.sum(axis=0)
        seen = count > 0
        mean = np.where(seen, error.sum(axis=0) / np.maximum(count, 1), np.nan)
        largest = np.where(seen, error.max(axis=0, initial=0.0), np.nan)
        duration_s = float(poses.time_ns[-1] - poses.time_ns[0]) * 1e-9 if len(poses) else 0.0
        share = tracker.valid.sum(axis=0) / max(len(tracker), 1)
        return cls(len(poses), duration_s, share, mean, largest)


def render_page(
    poses: PoseSequence,
    tracker: TrackerSequence | None = None,
    *,
    title: str = "vrik",
    roles: Mapping[str, str] | None = None,
    summary: PageSummary | None = None,
) -> str:
    """The page as one HTML text.

    Args:
        poses: Solved frames, all of which are embedded.
        tracker: The device poses of the same frames, or None.
        title: Heading; plain text.
        roles: Serial number to role, from the calibration.
        summary: Numbers to show when ``poses`` are only a part; computed from them otherwise.

    Raises:
        ValueError: If ``tracker`` has another number of frames, or a pose is not finite.
    """
    if tracker is not None and len(tracker) != len(poses):
        raise ValueError(f"{len(poses)} poses but {len(tracker)} tracker frames")
    if not (np.isfinite(poses.position).all() and np.isfinite(poses.rotation).all()):
        raise ValueError("a page needs finite poses")
    if tracker is None:
        n = len(poses)
        nothing = np.zeros((n, 0), bool)
        tracker = TrackerSequence.build(poses.time_ns, (), np.zeros((n, 0, 3)), np.zeros((n, 0, 4)), nothing)
    data = _data(poses, tracker, summary or PageSummary.of(poses, tracker), dict(roles or {}))
    template = resources.files("vrik.sinks").joinpath("page.html").read_text(encoding="utf-8")
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False).replace(
        "<", "\\u003c"
    )
    head, tail = template.split("__DATA__")
    return head.replace("__TITLE__", html.escape(title)) + text + tail


_KINDS = {
    DeviceClass.HMD: "Headset",
    DeviceClass.CONTROLLER: "Controller",
    DeviceClass.GENERIC_TRACKER: "Tracker",
}
"""What a device is called that is not worn; other kinds (base stations) are not shown."""


@dataclass(frozen=True, slots=True)
class _Shown:
    """A device in the page: its column in the tracker frames, what it is called, its role's row or -1."""

    column: int
    device: TrackedDevice
    name: str
    role: int


def _shown(devices: tuple[TrackedDevice, ...], roles: dict[str, str]) -> list[_Shown]:
    """The devices to show: worn ones first, from the head down."""
    shown = []
    for column, device in enumerate(devices):
        if device.device_class in _KINDS:
            role = roles.get(device.serial, device.role)
            name = role.replace("_", " ").capitalize() if role else _KINDS[device.device_class]
            shown.append(_Shown(column, device, name, ROLE.get(role, -1)))
    return sorted(shown, key=lambda one: one.role if one.role >= 0 else len(ROLE))


def _data(
    poses: PoseSequence, tracker: TrackerSequence, summary: PageSummary, roles: dict[str, str]
) -> dict[str, Any]:
    """What the script in the page reads."""
    n, shown = len(poses), _shown(tracker.devices, roles)
    columns = [one.column for one in shown]
    share = summary.tracked_share[columns]
    device_points, states = _held_devices(tracker.position[:, columns], tracker.valid[:, columns])
    points = np.concatenate([poses.position, _extra_points(poses), device_points], axis=1)
    steps, origin_m, unit_m = _to_int16(points)
    reach = np.full((n, len(shown)), UNKNOWN_REACH, np.uint16)
    for i, one in enumerate(shown):
        if one.role >= 0:
            error = poses.reach_error_m[:, one.role]
            known = np.isfinite(error)
            reach[known, i] = np.clip(np.round(error[known] * 1e4), 0, UNKNOWN_REACH - 1)
    since_ms = np.round((poses.time_ns - poses.time_ns[0]) * 1e-6) if n else np.zeros(0)
    return {
        "stature_m": poses.body.stature_m,
        "times_ms": _text(since_ms.astype("<u4")),
        "points": _text(steps[:, :POINT_COUNT]),
        "point_count": POINT_COUNT,
        "origin_m": origin_m.tolist(),
        "unit_m": unit_m,
        "device_points": _text(steps[:, POINT_COUNT:]),
        "device_states": _text(states),
        "reach": _text(reach.astype("<u2")),
        "devices": [
            {"name": one.name, "serial": one.device.serial, "tracked_percent": round(100.0 * float(part), 2)}
            for one, part in zip(shown, share, strict=True)
        ],
        "numbers": _numbers(summary, share, [one.role for one in shown]),
        "limbs": _LIMBS,
        "head": [_SKULL, _NOSE],
        "hips": [BONE["leftUpperLeg"], BONE["rightUpperLeg"]],
        "feet": [[BONE[f"{side}Foot"], BONE[f"{side}Toes"]] for side in ("left", "right")],
    }


def _numbers(summary: PageSummary, share: Floats, roles: list[int]) -> list[list[str]]:
    """(name, value, note) of what stands above the views."""
    rate = (summary.frames - 1) / summary.duration_s if summary.duration_s > 0.0 else 0.0
    rows = [
        ["Duration", f"{summary.duration_s:.1f} s", f"{summary.frames} frames"],
        ["Frame rate", f"{rate:.0f} Hz", ""],
    ]
    if len(share):
        lost = 100.0 * (1.0 - float(share.min()))
        note = "always tracked" if lost == 0.0 else f"up to {max(lost, 0.1):.1f} % lost"
        rows.append(["Devices", str(len(share)), note])
    trackers = [role for role in roles if role >= ROLE["waist"]]
    for title, wanted in (
        ("Head reach error", [ROLE["head"]]),
        ("Hand reach error", [ROLE["left_hand"], ROLE["right_hand"]]),
        ("Tracker reach error", trackers),
    ):
        known = [role for role in wanted if np.isfinite(summary.reach_mean_m[role])]
        if known:
            mean, largest = summary.reach_mean_m[known].mean(), summary.reach_max_m[known].max()
            rows.append([title, f"{1e3 * mean:.1f} mm", f"largest {1e3 * largest:.1f}"])
    return rows


def _extra_points(poses: PoseSequence) -> Points:
    """(n, 6, 3) skull, nose, finger tips and toe tips. [m]"""
    size = poses.body.stature_m / 1.72
    bones = [BONE[name] for name, _ in _EXTRA_POINTS]
    places = size * np.array([place for _, place in _EXTRA_POINTS])
    return poses.position[:, bones] + quat.rotate(poses.rotation[:, bones], places)


def _held_devices(position: Points, valid: Bools) -> tuple[Points, Any]:
    """(n, k, 3) where each device was last seen [m] and (n, k) ``DeviceState``: absent, tracked or lost."""
    n, k = valid.shape
    tracked: Bools = np.asarray(valid & np.isfinite(position).all(axis=-1), np.bool_)
    seen = np.maximum.accumulate(np.where(tracked, np.arange(n)[:, None], -1), axis=0)
    state = np.where(tracked, DeviceState.OK, np.where(seen < 0, DeviceState.ABSENT, DeviceState.LOST))
    place = np.zeros((n, k, 3))
    for i in range(k):
        rows = np.flatnonzero(tracked[:, i])
        if len(rows):  # before it is first seen, where it will be: so that it does not stretch the scale
            place[:, i] = position[np.maximum(seen[:, i], rows[0]), i]
    return place, state.astype(np.uint8)


def _to_int16(points: Points) -> tuple[Any, Floats, float]:
    """Points (n, m, 3) [m] to steps from an origin (3,) [m], and the size of a step [m]."""
    if points.size == 0:
        return np.zeros(points.shape, "<i2"), np.zeros(3), 1e-3
    low, high = points.min(axis=(0, 1)), points.max(axis=(0, 1))
    origin_m = np.round(0.5 * (low + high), 3)
    unit_m = max(1e-3, float((high - low).max()) / 65000.0)
    return np.round((points - origin_m) / unit_m).astype("<i2"), origin_m, unit_m


def _text(array: Any) -> str:
    """The bytes of an array, row by row, as base64."""
    return base64.b64encode(np.ascontiguousarray(array).tobytes()).decode("ascii")


def _limbs() -> list[list[Any]]:
    """(point, point, width [m], colour) of every stroke of the figure."""
    limbs: list[list[Any]] = [
        [BONE["hips"], BONE["spine"], 0.150, "trunk"],
        [BONE["spine"], BONE["chest"], 0.150, "trunk"],
        [BONE["chest"], BONE["upperChest"], 0.160, "trunk"],
        [BONE["upperChest"], BONE["neck"], 0.100, "trunk"],
        [BONE["neck"], BONE["head"], 0.060, "trunk"],
        [BONE["leftUpperArm"], BONE["rightUpperArm"], 0.080, "trunk"],
        [BONE["leftUpperLeg"], BONE["rightUpperLeg"], 0.115, "trunk"],
    ]
    for side, tip, toe in (("left", _LEFT_TIP, _LEFT_TOE_TIP), ("right", _RIGHT_TIP, _RIGHT_TOE_TIP)):
        chain = [
            ("UpperArm", BONE[f"{side}LowerArm"], 0.062),
            ("LowerArm", BONE[f"{side}Hand"], 0.050),
            ("Hand", tip, 0.040),
            ("UpperLeg", BONE[f"{side}LowerLeg"], 0.088),
            ("LowerLeg", BONE[f"{side}Foot"], 0.064),
            ("Foot", BONE[f"{side}Toes"], 0.048),
            ("Toes", toe, 0.040),
        ]
        limbs.append([BONE[f"{side}UpperArm"], BONE["chest"], 0.100, "trunk"])
        limbs.append([BONE[f"{side}Shoulder"], BONE["chest"], 0.100, "trunk"])
        limbs.append([BONE["spine"], BONE[f"{side}UpperLeg"], 0.100, "trunk"])
        limbs += [[BONE[f"{side}{name}"], end, width, side] for name, end, width in chain]
    return limbs


_LIMBS = _limbs()
