"""A person who moves by rule: planted feet, a pelvis that follows them, a spine, and arms by joint angles.

Nothing here is captured. The feet of a :class:`~tools.motion_script.Script` are placed first; the pelvis is
carried over them as high as the legs allow; legs are two-bone chains; hanging arms swing with the stride.
"""

from __future__ import annotations

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.ndimage import gaussian_filter1d, minimum_filter1d

from tools.motion_script import (
    CHANNELS,
    SIDES,
    X_AXIS,
    Y_AXIS,
    Z_AXIS,
    Script,
    arm_at,
    ease,
    eased,
    foot_at,
    sole_at,
    turn,
)
from vrik import quat
from vrik.arrays import Floats, Points, Quats
from vrik.skeleton import BONE, BONES, PARENTS

GRID_HZ = 200.0
STAND_SLACK_M = 0.003
LEG_STRETCH = 0.995
"""Longest leg over its full length: people do not lock their knees when they walk."""


class Motion:
    """A script played by a body: true joints at any time of it.

    Args:
        script: What to do.

    Attributes:
        body: Who moves.
        duration_s: How long the script is. [s]
    """

    def __init__(self, script: Script) -> None:
        self.body = script.body
        self.duration_s = script.now_s
        self.script = script
        grid = np.arange(-1.0, self.duration_s + 1.0, 1.0 / GRID_HZ)
        self._channels = {name: eased(track, grid) for name, track in script.keys.items()}
        self._spline = CubicSpline(grid, self._carry_pelvis(grid))

    def joints_at(self, t: Floats) -> tuple[Points, Quats]:
        """True joints.

        Args:
            t: (n,) times from the start. [s]

        Returns:
            Positions (n, 22, 3) [m] and canonical world rotations (n, 22, 4), in the order of ``BONES``.
        """
        t = np.asarray(t, np.float64)
        row = self._spline(t)
        x, y, z, heading, gaze, stride, load, speed = row.T[:8]
        c = dict(zip(CHANNELS, row.T[8:], strict=True))
        rot = quat.identity(len(t), len(BONES))
        sway, breath = 0.006 * np.sin(0.9 * t + 0.7 * np.sin(0.53 * t)), np.sin(2.0 * np.pi * 0.27 * t)

        hips = turn(Y_AXIS, heading + 0.18 * stride)
        hips = quat.multiply(hips, turn(X_AXIS, -c["lean"] - 0.03 * speed))
        hips = quat.multiply(hips, turn(Z_AXIS, 0.07 * load * speed))
        chest = turn(Y_AXIS, c["twist"] - 0.28 * stride)
        chest = quat.multiply(chest, turn(X_AXIS, -c["bend"] - 0.03 * speed + 0.006 * breath))
        chest = quat.multiply(chest, turn(Z_AXIS, -c["tilt"] - 0.09 * load * speed + sway))
        rot[:, BONE["hips"]] = hips
        for name, share in (("spine", 0.35), ("chest", 0.7), ("upperChest", 1.0)):
            rot[:, BONE[name]] = quat.multiply(
                hips, quat.slerp(quat.identity(len(t)), chest, np.full(len(t), share))
            )
        head = turn(Y_AXIS, gaze + c["look_yaw"] + 0.010 * np.sin(1.31 * t))
        head = quat.multiply(
            head, turn(X_AXIS, -c["look_pitch"] - 0.03 * speed + 0.008 * np.sin(0.83 * t + 1.0))
        )
        rot[:, BONE["head"]] = quat.multiply(head, turn(Z_AXIS, -c["look_roll"] + 0.5 * sway))
        upper_chest = rot[:, BONE["upperChest"]]
        rot[:, BONE["neck"]] = quat.slerp(upper_chest, rot[:, BONE["head"]], np.full(len(t), 0.45))
        for side in (0, 1):
            self._set_arm(side, t, upper_chest, -stride if side else stride, speed, rot)

        feet = [foot_at(self.script, side, t, self.body) for side in (0, 1)]
        pelvis = np.stack([x, y, z], axis=-1)
        for side, (ankle, foot, toes) in enumerate(feet):
            self._set_leg(side, pelvis, ankle, foot, toes, c["knees_out"], rot)
        return _forward(self.body.offsets, rot, pelvis), quat.continuous(rot)

    def _carry_pelvis(self, grid: Floats) -> Floats:
        """(n, 19) pelvis place, heading, gaze, stride, load, speed and all key channels, over the grid."""
        c = self._channels
        feet = [foot_at(self.script, side, grid, self.body) for side in (0, 1)]
        sole = [sole_at(self.script, side, grid) for side in (0, 1)]
        middle = _smooth(0.5 * (sole[0][0] + sole[1][0]), 0.22)
        heading = _smooth(0.5 * (sole[0][1] + sole[1][1]), 0.26)
        right = np.stack([np.cos(heading), -np.sin(heading)], axis=-1)
        ahead = np.stack([-np.sin(heading), -np.cos(heading)], axis=-1)
        apart = sole[1][0] - sole[0][0]
        stride = _smooth(np.sum(apart * ahead, axis=-1), 0.05)
        load = _smooth(sole[0][2] - sole[1][2], 0.09)  # -1 on the left foot, 1 on the right
        speed = np.clip(_smooth(np.linalg.norm(np.gradient(middle, grid, axis=0), axis=-1), 0.35), 0.0, 1.3)
        aside = c["aside"] + 0.03 * load + 0.004 * np.sin(0.9 * grid) + 0.003 * np.sin(1.7 * grid + 2.0)
        aside = _smooth(aside, 0.05)
        along = 0.006 * np.sin(0.7 * grid + 1.0) - c["back"]
        ground = middle + aside[:, None] * right + along[:, None] * ahead
        height = float(self.body.tpose[BONE["hips"], 1]) - STAND_SLACK_M - c["crouch"]
        hips_yaw = turn(Y_AXIS, heading + 0.18 * stride)
        hips_turn = quat.multiply(hips_yaw, turn(X_AXIS, -c["lean"] - 0.03 * speed))
        hips_turn = quat.multiply(hips_turn, turn(Z_AXIS, 0.07 * load * speed))
        for side, (ankle, _, _) in enumerate(feet):
            root, *leg = (self.body.offsets[BONE[SIDES[side] + n]] for n in ("UpperLeg", "LowerLeg", "Foot"))
            length = sum(float(np.linalg.norm(bone)) for bone in leg)
            hip = quat.rotate(hips_turn, root)
            flat = ankle[:, [0, 2]] - ground - hip[:, [0, 2]]
            room = np.maximum((LEG_STRETCH * length) ** 2 - np.sum(flat**2, axis=-1), 0.01)
            height = np.minimum(height, ankle[:, 1] + np.sqrt(room) - hip[:, 1])
        width = int(0.09 * GRID_HZ) * 2 + 1
        height = _smooth(minimum_filter1d(height, width), 0.025)
        gaze = np.interp(grid + 0.3, grid, _smooth(heading, 0.12))
        rest = [_smooth(c[name], 0.04) for name in CHANNELS]
        return np.stack(
            [ground[:, 0], height, ground[:, 1], heading, gaze, stride, load, speed, *rest], axis=-1
        )

    def _set_arm(self, side: int, t: Floats, chest: Quats, stride: Floats, speed: Floats, rot: Quats) -> None:
        """Rotations of one arm, in place; ``stride`` positive swings it forward."""
        upper, elbow, roll, wrist = arm_at(self.script.arms[side], t)
        down = np.clip(-quat.rotate(upper, X_AXIS)[:, 1], 0.0, 1.0) ** 2  # only a hanging arm swings
        swing = 0.7 * down * stride
        upper = quat.multiply(turn(X_AXIS, swing), upper)
        elbow = elbow + down * (0.18 * np.clip(speed, 0.0, 1.0) + 0.35 * np.clip(swing, -0.4, 0.6))
        out = quat.rotate(upper, X_AXIS)
        shrug = 0.5 * ease((out[:, 1] + 0.2) / 1.2)
        protract = -0.22 * out[:, 2] * (1.0 - down)
        shoulder = quat.multiply(turn(Y_AXIS, protract), turn(Z_AXIS, shrug))
        lower = quat.multiply(upper, turn(Y_AXIS, elbow))
        hand = quat.multiply(lower, quat.multiply(turn(X_AXIS, roll), turn(Z_AXIS, wrist)))
        lower = quat.multiply(lower, turn(X_AXIS, 0.5 * roll))
        for name, local in (("Shoulder", shoulder), ("UpperArm", upper), ("LowerArm", lower), ("Hand", hand)):
            mirrored = local if side else local * np.array([1.0, 1.0, -1.0, -1.0])
            rot[:, BONE[SIDES[side] + name]] = quat.normalize(quat.multiply(chest, mirrored))

    def _set_leg(
        self,
        side: int,
        pelvis: Points,
        ankle: Points,
        foot: Quats,
        toes: Quats,
        knees_out: Floats,
        rot: Quats,
    ) -> None:
        """Rotations of one leg, in place: hip and ankle are given, the knee points where the toes do."""
        prefix, sign = SIDES[side], -1.0 if side else 1.0
        offsets = self.body.offsets
        hip = pelvis + quat.rotate(rot[:, BONE["hips"]], offsets[BONE[prefix + "UpperLeg"]])
        a, b = (float(np.linalg.norm(offsets[BONE[prefix + n]])) for n in ("LowerLeg", "Foot"))
        line = ankle - hip
        away = np.linalg.norm(line, axis=-1, keepdims=True)
        line = line / away
        away = np.clip(away, abs(a - b) + 1e-3, a + b - 1e-6)
        ahead = quat.rotate(quat.slerp(toes, rot[:, BONE["hips"]], np.full(len(toes), 0.35)), -Z_AXIS)
        ahead = quat.rotate(turn(Y_AXIS, sign * knees_out), ahead * np.array([1.0, 0.0, 1.0]))
        pole = ahead - np.sum(ahead * line, axis=-1, keepdims=True) * line
        pole = pole / np.linalg.norm(pole, axis=-1, keepdims=True)
        along = (a * a - b * b + away * away) / (2.0 * away)
        out = np.sqrt(np.maximum(a * a - along * along, 0.0))
        knee = line * along + pole * out
        rot[:, BONE[prefix + "UpperLeg"]] = _leg_bone(knee, pole)
        rot[:, BONE[prefix + "LowerLeg"]] = _leg_bone(line * away - knee, pole)
        rot[:, BONE[prefix + "Foot"]] = foot
        rot[:, BONE[prefix + "Toes"]] = toes


def _leg_bone(direction: Points, forward: Points) -> Quats:
    """Canonical rotation of a leg bone that runs along ``direction`` in the plane of ``forward``."""
    up = -direction / np.linalg.norm(direction, axis=-1, keepdims=True)
    right = np.cross(forward, up)
    right = right / np.linalg.norm(right, axis=-1, keepdims=True)
    return quat.from_matrix(np.stack([right, up, np.cross(right, up)], axis=-1))


def _forward(offsets: Points, rot: Quats, pelvis: Points) -> Points:
    """(n, 22, 3) joints of n poses at once."""
    joints = np.empty((len(rot), len(BONES), 3))
    joints[:, 0] = pelvis
    for j in range(1, len(BONES)):
        p = PARENTS[j]
        joints[:, j] = joints[:, p] + quat.rotate(rot[:, p], offsets[j])
    return joints


def _smooth(values: Floats, sigma_s: float) -> Floats:
    """Rounded along the grid."""
    return np.asarray(gaussian_filter1d(values, sigma_s * GRID_HZ, axis=0, mode="nearest", truncate=4.0))
