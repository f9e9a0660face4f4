"""Things a person does in a play space, as chapters of a :class:`~tools.motion_script.Script`."""

from __future__ import annotations

import numpy as np

from tools.motion_script import HANGING, T_POSE, X_AXIS, Script, arm_reaching, turn
from vrik import quat
from vrik.arrays import Floats, Vec3
from vrik.skeleton import BONE

LEFT, RIGHT = 0, 1
STEP_S, SWING_S, STEP_M = 0.55, 0.44, 0.53
"""A calm walk: time from step to step, time in the air, length."""


def t_pose(s: Script, seconds: float = 2.4) -> None:
    """Stand with the arms out, then let them sink."""
    s.key(0.0, 0.4, look_yaw=0.0)
    s.wait(seconds)
    s.arm(LEFT, 0.0, 1.0, HANGING)
    s.arm(RIGHT, 0.06, 1.0, HANGING)
    s.wait(1.1)


def look_around(s: Script) -> None:
    """Left, right, up and back; the shoulders follow a little."""
    s.key(0.0, 0.8, look_yaw=0.95, twist=0.22, look_pitch=0.05)
    s.key(1.0, 1.1, look_yaw=-0.9, twist=-0.2, look_pitch=-0.1)
    s.key(2.2, 0.8, look_yaw=0.15, twist=0.0, look_pitch=-0.45)
    s.key(3.1, 0.6, look_yaw=0.0, look_pitch=0.05)
    s.wait(3.75)


def nod(s: Script) -> None:
    """Yes, yes."""
    for i in range(2):
        s.key(0.7 * i, 0.33, look_pitch=0.38, bend=0.05)
        s.key(0.7 * i + 0.34, 0.33, look_pitch=-0.03, bend=0.0)
    s.wait(1.5)


def reach(
    s: Script,
    side: int,
    wrist: Vec3,
    elbow_towards: Vec3,
    over_s: float = 0.7,
    *,
    after_s: float = 0.0,
    pitched: float = 0.0,
    **pose: float,
) -> None:
    """One hand goes somewhere.

    Args:
        s: Appended to.
        side: Which hand.
        wrist: (3,) from the shoulder: outward, up, back, for an upright chest. [m]
        elbow_towards: (3,) where the elbow points, likewise.
        over_s, after_s: How long it takes, and when it starts. [s]
        pitched: How far the chest will be bent forward then. [rad]
        pose: ``roll`` and ``bend`` of the hand. [rad]
    """
    in_chest = turn(X_AXIS, pitched)
    target, elbow = quat.rotate(in_chest, wrist), quat.rotate(in_chest, elbow_towards)
    s.arm(side, after_s, over_s, arm_reaching(s.body, target, elbow, **pose))


def reaches(s: Script) -> None:
    """Both hands forward, one up high, out to the sides, then down past the knee."""
    low_back = np.array([0.5, -0.8, 0.2])
    for side in (LEFT, RIGHT):
        reach(s, side, np.array([-0.06, -0.08, -0.45]), low_back, roll=0.9)
    s.key(0.0, 0.7, look_pitch=0.2, bend=0.08)
    s.wait(0.9)
    reach(s, RIGHT, np.array([0.05, 0.5, -0.16]), np.array([0.9, 0.0, -0.3]), 0.9, roll=0.3)
    s.arm(LEFT, 0.1, 0.8, HANGING)
    s.key(0.0, 0.8, look_pitch=-0.5, look_yaw=-0.15, bend=-0.08, tilt=-0.10, aside=0.02)
    s.wait(1.1)
    reach(s, RIGHT, np.array([0.5, 0.02, -0.06]), np.array([0.0, -1.0, 0.4]), 0.9, roll=0.5)
    reach(s, LEFT, np.array([0.5, 0.02, -0.06]), np.array([0.0, -1.0, 0.4]), 0.9, roll=0.5)
    s.key(0.0, 0.8, look_pitch=0.0, look_yaw=0.0, bend=0.0, tilt=0.0, aside=0.0)
    s.wait(1.1)
    s.arm(RIGHT, 0.0, 0.9, HANGING)
    reach(s, LEFT, np.array([-0.04, -0.50, -0.16]), np.array([0.6, 0.2, 0.6]), 1.0, pitched=0.92, roll=0.2)
    s.key(0.0, 1.0, lean=0.5, bend=0.42, crouch=0.10, back=0.10, twist=-0.2, look_pitch=0.75, look_yaw=0.1)
    s.wait(1.2)
    s.arm(LEFT, 0.1, 0.9, HANGING)
    s.key(0.0, 0.9, lean=0.0, bend=0.0, crouch=0.0, back=0.0, twist=0.0, look_pitch=0.05, look_yaw=0.0)
    s.wait(1.1)


def walk(s: Script, path: Floats) -> None:
    """Walk along a path with feet on both sides of it, and end standing at its end.

    Args:
        s: Appended to.
        path: (n, 2) places, x and z, beginning where the person stands. [m]
    """
    legs = np.diff(path, axis=0)
    far = np.concatenate([[0.0], np.cumsum(np.linalg.norm(legs, axis=-1))])
    yaws = np.unwrap(np.arctan2(-legs[:, 0], -legs[:, 1]))
    yaws += 2.0 * np.pi * np.round((s.yaw - yaws[0]) / (2.0 * np.pi))
    count = int(np.ceil(far[-1] / STEP_M))
    foot = RIGHT
    for i in range(count + 1):
        at = min(
            (i + 1) * far[-1] / count - 0.5 * far[-1] / count, far[-1]
        )  # each foot lands half a step ahead
        if i == count:
            at = far[-1]
        place = np.array([np.interp(at, far, path[:, k]) for k in (0, 1)])
        yaw = float(np.interp(at, far[:-1], yaws))
        last = i == count
        roll = 0.25 if last or i == 0 else 0.6
        s.step(
            foot, i * STEP_S, SWING_S, place, yaw,
            height_m=0.04, heel_off=roll, heel_strike=0.05 if last else 0.3,
        )  # fmt: skip
        foot = 1 - foot
    s.step(foot, (count + 1) * STEP_S, SWING_S, path[-1], float(yaws[-1]), heel_off=0.3, heel_strike=0.03)
    s.place, s.yaw = np.array(path[-1], np.float64), float(yaws[-1])
    s.wait((count + 2) * STEP_S + 0.3)


def figure_eight(s: Script, size_m: float = 1.15) -> None:
    """Once around an eight (Gerono's lemniscate), beginning and ending at its crossing."""
    u = np.linspace(0.0, 2.0 * np.pi, 721)
    x, z = -size_m * np.sin(u) * np.cos(u), -size_m * np.sin(u)
    back = np.radians(-45.0) + s.yaw  # its first tangent points 45 degrees to the left
    turned = np.stack([x * np.cos(back) + z * np.sin(back), -x * np.sin(back) + z * np.cos(back)], axis=-1)
    walk(s, s.place + turned)


def turn_on_the_spot(s: Script, angle_rad: float, count: int = 4) -> None:
    """Turn with small steps; positive to the left. The inner foot goes first."""
    first = LEFT if angle_rad > 0.0 else RIGHT
    for i in range(count + 1):
        share = min((i + 0.5) / count, 1.0) if i else 0.5 / count
        foot = first if i % 2 == 0 else 1 - first
        s.step(
            foot,
            0.5 * i,
            0.4,
            s.place,
            s.yaw + share * angle_rad,
            height_m=0.035,
            heel_off=0.2,
            heel_strike=0.0,
        )
    foot = first if (count + 1) % 2 == 0 else 1 - first
    s.yaw += angle_rad
    s.step(foot, 0.5 * (count + 1), 0.4, s.place, s.yaw, height_m=0.03, heel_off=0.15, heel_strike=0.0)
    s.wait(0.5 * (count + 1) + 0.6)


def side_steps(s: Script, count: int = 2, step_m: float = 0.32) -> None:
    """Some steps to the right and as many back; the feet close each time."""
    right = np.array([np.cos(s.yaw), -np.sin(s.yaw)])
    start = 0.0
    for direction, lead in ((1.0, RIGHT), (-1.0, LEFT)):
        for _ in range(count):
            s.place = s.place + direction * step_m * right
            s.step(lead, start, 0.36, s.place, s.yaw, height_m=0.04, heel_off=0.1, heel_strike=0.0)
            s.step(
                1 - lead, start + 0.42, 0.36, s.place, s.yaw, height_m=0.04, heel_off=0.15, heel_strike=0.0
            )
            start += 0.84
        start += 0.3
    s.wait(start + 0.2)


def crouch(s: Script) -> None:
    """Squat to pick something up with the right hand."""
    s.key(0.0, 1.1, crouch=0.44, back=0.16, lean=0.62, bend=0.25, look_pitch=0.7, knees_out=0.3)
    reach(s, RIGHT, np.array([-0.06, -0.52, -0.13]), np.array([0.6, 0.2, 0.6]), 1.1, pitched=0.85, roll=0.3)
    reach(s, LEFT, np.array([0.02, -0.36, -0.15]), np.array([0.7, -0.1, 0.5]), 1.1, pitched=0.85, roll=0.1)
    s.wait(1.6)
    s.key(0.0, 1.1, crouch=0.0, back=0.0, lean=0.0, bend=0.0, look_pitch=0.1, knees_out=0.0)
    reach(s, RIGHT, np.array([-0.05, -0.18, -0.30]), np.array([0.6, -0.8, 0.2]), 1.0, roll=0.8)
    s.arm(LEFT, 0.05, 1.0, HANGING)
    s.wait(1.5)
    s.arm(RIGHT, 0.0, 0.8, HANGING)
    s.wait(0.5)


def sit(s: Script, seconds: float = 2.0) -> None:
    """Down onto a chair that is not there, hands on the thighs, and up again."""
    seat = float(s.body.tpose[BONE["hips"], 1]) * 0.375
    s.key(0.0, 0.7, lean=0.55, bend=0.15, look_pitch=0.25)
    s.key(0.1, 1.2, crouch=seat, back=0.42, knees_out=0.08)
    for side in (LEFT, RIGHT):
        reach(
            s, side, np.array([-0.03, -0.40, -0.24]), np.array([0.35, -0.2, 0.9]), 1.2, after_s=0.1, bend=0.2
        )
    s.key(0.8, 0.8, lean=-0.08, bend=0.1, look_pitch=0.0)
    s.wait(1.7)
    s.key(0.0, 0.6, look_yaw=0.5)
    s.key(0.9, 0.6, look_yaw=0.0)
    s.wait(seconds)
    s.key(0.0, 0.65, lean=0.68, bend=0.15, look_pitch=0.2)
    s.key(0.35, 1.15, crouch=0.0, back=0.0, knees_out=0.0)
    s.key(0.7, 0.85, lean=0.0, bend=0.0, look_pitch=0.0)
    for side in (LEFT, RIGHT):
        s.arm(side, 0.5, 1.0, HANGING)
    s.wait(1.7)


def wave(s: Script, side: int = RIGHT, times: int = 3) -> None:
    """Hello with one hand beside the head."""
    s.key(0.0, 0.6, look_pitch=-0.05, tilt=-0.03)
    out = np.array([0.8, -0.55, 0.1])
    middle = arm_reaching(s.body, np.array([0.16, 0.20, -0.24]), out, roll=0.2)
    ends = [
        arm_reaching(s.body, np.array([x, y, -0.22]), out, roll=0.2) for x, y in ((0.05, 0.22), (0.30, 0.18))
    ]
    s.arm(side, 0.0, 0.7, middle)
    for i in range(2 * times):
        s.arm(side, 0.7 + 0.28 * i, 0.28, ends[i % 2])
    s.wait(0.7 + 0.56 * times)
    s.arm(side, 0.0, 0.8, HANGING)
    s.key(0.0, 0.6, look_pitch=0.0, tilt=0.0)
    s.wait(0.9)


def back_to_t_pose(s: Script, seconds: float = 1.2) -> None:
    """Arms out once more, then down."""
    for side in (LEFT, RIGHT):
        s.arm(side, 0.0, 0.9, T_POSE)
    s.wait(0.9 + seconds)
    for side in (LEFT, RIGHT):
        s.arm(side, 0.0, 0.9, HANGING)
    s.wait(1.0)
