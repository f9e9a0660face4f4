"""Training rows for a fitted prior: what the product would see of recorded motion, and where the joints were.

Every row is made by the product's own conditioning and features (``vrik.condition``, ``solvers.features``),
from bones taken as if each role had a device, worn and measured as badly as in life.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from solvers.features import NAMES, FeatureState, features
from vrik import quat
from vrik.arrays import Bools, Floats, Points, Quats
from vrik.condition import Conditioner
from vrik.config import ConditionConfig
from vrik.frames import ROLE_BONES, ROLES, BodyTargets, DeviceClass, TrackedDevice, TrackerFrame
from vrik.skeleton import SMPL_JOINTS, VRM_FROM_SMPL

HEAD = SMPL_JOINTS.index("head")
FEET = [SMPL_JOINTS.index(name) for name in ("left_ankle", "right_ankle", "left_foot", "right_foot")]

RATE_HZ = (60.0, 120.0)
SPEED = (0.9, 1.1)
"""Motion is played at between these speeds; with lengths over stature, that is what other statures do."""

STATURE_ERROR = 0.01
"""Spread of what a person says of their height, as a share of it."""

NOISE_M, NOISE_DEG = 0.0007, 0.2
"""Noise of a device, frame by frame."""

DROPOUT, DROPOUT_S = 0.03, (0.1, 0.9)
"""Share of time in which a device other than the head is not tracked, and how long that lasts."""

# Where a bone really is against where the calibration thinks it is, constant over a clip.
MOUNT_M = {"head": 0.006, "left_hand": 0.012, "right_hand": 0.012}
MOUNT_DEG = {"head": 1.5, "left_hand": 6.0, "right_hand": 6.0}
TRACKER_M, TRACKER_DEG = 0.012, 4.0

CLIMBS = (0.93, 0.06)
"""Head and lowest sole above this for half of a clip: people on things that are not there. [statures]"""

LIES_S, FALLS_S = 4.0, 1.2
"""How much of a clip is laid down, and how long that takes."""

DEVICES = tuple(TrackedDevice(role, DeviceClass.GENERIC_TRACKER, role) for role in ROLES)


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """One clip as rows.

    Args:
        features: (n, len(NAMES)) as the product computes them, with a tracker on every role.
        joints: (n, 22, 3) from the head, in the axes of its heading, over stature, in the order of ``BONES``.
        dt_s: (n,) time since the row before; 0 for the first.
    """

    features: Floats
    joints: Points
    dt_s: Floats


def clips(folder: Path) -> Iterator[dict[str, Any]]:
    """All clips of a corpus through the reader that lies beside them."""
    spec = importlib.util.spec_from_file_location("corpus", folder / "corpus.py")
    if spec is None or spec.loader is None:
        raise SystemExit(f"no corpus.py in {folder}")
    reader = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(reader)
    yield from reader.clips(str(folder))


def climbs(clip: dict[str, Any]) -> bool:
    """Whether the clip is about steps, ladders or rocks, whose floor is not in the data."""
    above = clip["pos"][:, :, 1] - clip["tpose"][:, 1]
    head, sole = clip["pos"][:, HEAD, 1], above[:, FEET].min(axis=1)
    return bool(
        np.median(head) > CLIMBS[0] * clip["height_m"] and np.median(sole) > CLIMBS[1] * clip["height_m"]
    )


def laid_down(clip: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """A piece of a clip, turned as a whole until it lies on the floor: on the back mostly, or on a side.

    Nobody in the corpus lies. This shows at least which way the body is when the head looks up.
    """
    first = int(rng.integers(max(1, len(clip["pos"]) - int(LIES_S * clip["fps"]))))
    part = slice(first, first + int(LIES_S * clip["fps"]))
    position, rotation = clip["pos"][part], clip["rot"][part]
    t = np.clip(np.arange(len(position)) / clip["fps"] / FALLS_S, 0.0, 1.0)
    share = t * t * (3.0 - 2.0 * t)
    facing = quat.rotate(rotation[0, 0], np.array([1.0, 0.0, 0.0]))
    which = rng.uniform()
    way = 0.0 if which < 0.6 else np.pi if which < 0.75 else rng.uniform(-np.pi, np.pi)
    about = way + np.arctan2(-facing[2], facing[0])  # the axis: 0 is the body's right, so it falls back
    axis = np.array([np.cos(about), 0.0, -np.sin(about)])
    turn = quat.from_rotvec(share[:, None] * np.radians(rng.uniform(60.0, 100.0)) * axis)[:, None]
    pivot = position[:, :1] * np.array([1.0, 0.0, 1.0])
    lying = quat.rotate(turn, position - pivot) + pivot
    lowest, rests = lying[:, :, 1].min(axis=1), position[:, :, 1].min(axis=1)
    lying[:, :, 1] += ((1.0 - share) * rests + share * rng.uniform(0.05, 0.12) - lowest)[:, None]
    return {**clip, "pos": lying, "rot": quat.multiply(turn, rotation)}


def rows_of(clip: dict[str, Any], rng: np.random.Generator | None) -> Rows:
    """One clip as it is, or with everything that goes wrong in life where ``rng`` is given."""
    stature, rate, speed = float(clip["height_m"]), float(clip["fps"]), 1.0
    if rng is not None:
        rate, speed = rng.uniform(*RATE_HZ), rng.uniform(*SPEED)
    count = int((len(clip["pos"]) - 1) / clip["fps"] / speed * rate) + 1
    position, rotation = _between(clip, np.arange(count) * (speed / rate * clip["fps"]))
    bones, turns = position[:, ROLE_BONES].copy(), rotation[:, ROLE_BONES].copy()
    valid = np.ones((count, len(ROLES)), np.bool_)
    if rng is not None:
        bones, turns = _worn(bones, turns, stature, rng)
        valid = _tracked(count, rate, rng)
        stature *= 1.0 + STATURE_ERROR * rng.normal()
    return _seen(bones, turns, valid, position, stature, rate)


def _between(clip: dict[str, Any], at: Floats) -> tuple[Points, Quats]:
    """Joints (n, 22, 3) and turns (n, 22, 4) at fractional frames."""
    position, rotation = clip["pos"][:, VRM_FROM_SMPL], clip["rot"][:, VRM_FROM_SMPL]
    a = np.minimum(at.astype(np.int64), len(position) - 1)
    b = np.minimum(a + 1, len(position) - 1)
    t = (at - a)[:, None, None]
    near = np.where(np.sum(rotation[a] * rotation[b], axis=-1, keepdims=True) < 0.0, -1.0, 1.0)
    return (
        (1.0 - t) * position[a] + t * position[b],
        quat.normalize((1.0 - t) * rotation[a] + t * near * rotation[b]),
    )


def _worn(bones: Points, turns: Quats, stature: float, rng: np.random.Generator) -> tuple[Points, Quats]:
    """Bones behind devices that sit a little elsewhere than calibration thinks, and are a little noisy."""
    for r, role in enumerate(ROLES):
        far, tilt = MOUNT_M.get(role, TRACKER_M), np.radians(MOUNT_DEG.get(role, TRACKER_DEG))
        share = rng.uniform() ** 0.5  # some people wear everything well
        off = rng.normal(0.0, far * share, 3) * (stature / 1.75)
        bones[:, r] += quat.rotate(turns[:, r], off)
        turns[:, r] = quat.multiply(turns[:, r], quat.from_rotvec(rng.normal(0.0, tilt * share, 3)))
    bones += rng.normal(0.0, NOISE_M, bones.shape)
    noise = quat.from_rotvec(rng.normal(0.0, np.radians(NOISE_DEG), bones.shape))
    return bones, quat.normalize(quat.multiply(turns, noise))


def _tracked(count: int, rate: float, rng: np.random.Generator) -> Bools:
    """(count, 13) when each device is tracked; the head always is."""
    valid = np.ones((count, len(ROLES)), np.bool_)
    for r in range(1, len(ROLES)):
        for start in np.flatnonzero(rng.random(count) < DROPOUT / (rate * np.mean(DROPOUT_S))):
            valid[start : start + int(rng.uniform(*DROPOUT_S) * rate), r] = False
    return valid


def _seen(bones: Points, turns: Quats, valid: Bools, position: Points, stature: float, rate: float) -> Rows:
    """What the product makes of the devices, frame by frame."""
    conditioner = Conditioner(ConditionConfig(), {role: role for role in ROLES}, stature)
    state, count = FeatureState.fresh(), len(bones)
    out, joints = np.zeros((count, len(NAMES))), np.zeros((count, 22, 3))
    result = np.where(valid, 200, 201).astype(np.int64)
    dt_s = np.full(count, 1.0 / rate)
    dt_s[0] = 0.0
    for i in range(count):
        frame = TrackerFrame(round(i / rate * 1e9), DEVICES, bones[i], turns[i], valid[i], result[i])
        now = conditioner.step(frame)
        targets = BodyTargets(
            frame.host_time_ns, now.position, now.rotation, now.weight, now.weight, now.state, now.age_s
        )
        features(targets, stature, 0.0, float(dt_s[i]), state, out[i])
        half = -0.5 * state.heading[0]
        back = np.array([np.cos(half), 0.0, np.sin(half), 0.0])
        joints[i] = quat.rotate(back, position[i] - now.position[0]) / stature
    return Rows(out, joints, dt_s)
