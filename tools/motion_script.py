"""What a person does and when: keys for trunk, gaze and arms, and a schedule of footsteps.

Everything between the keys is eased so that position, speed and acceleration are continuous. Feet stay
exactly where a step has put them until the next one; on the floor they only roll over heel or ball.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from vrik import quat
from vrik.arrays import Floats, Ints, Points, Quats, Vec3
from vrik.body import BodyModel
from vrik.skeleton import BONE

CHANNELS = (
    "crouch",
    "back",
    "aside",
    "lean",
    "bend",
    "twist",
    "tilt",
    "look_yaw",
    "look_pitch",
    "look_roll",
    "knees_out",
)
"""Key channels: pelvis lower, behind and right of the feet [m]; pelvis pitched forward; chest bent forward,
turned left and bent right against the pelvis; head turned left, down and tilted right; knees apart [rad]."""

SIDES = ("left", "right")
HEEL_BEHIND_ANKLE_M = 0.05
HEEL_OFF_SHARE, FLAT_SHARE = 0.45, 0.3
"""How long the heel rises before lifting, and the sole comes down after landing, over the swing time."""

TOE_OUT_RAD = float(np.radians(6.0))

X_AXIS, Y_AXIS, Z_AXIS = np.eye(3)


def ease(s: Floats) -> Floats:
    """0 to 1 with zero speed and acceleration at both ends."""
    s = np.clip(s, 0.0, 1.0)
    return np.asarray(s**3 * (10.0 - 15.0 * s + 6.0 * s * s))


def turn(axis: Vec3, angle_rad: Floats | float) -> Quats:
    """Turns about one axis, (n, 4) or (4,)."""
    return quat.from_rotvec(np.asarray(angle_rad, np.float64)[..., None] * axis)


@dataclass(frozen=True, slots=True)
class Step:
    """One foot leaves the floor and comes down elsewhere.

    Args:
        foot: 0 left, 1 right.
        lift_s, land_s: When.
        x, z: New place of the ankle on the floor. [m]
        yaw: New direction of the foot, positive to the left. [rad]
        height_m: How high the sole is carried.
        heel_off, heel_strike: Toe-down pitch at the start and toe-up pitch at the end of the swing. [rad]
    """

    foot: int
    lift_s: float
    land_s: float
    x: float
    z: float
    yaw: float
    height_m: float = 0.05
    heel_off: float = 0.5
    heel_strike: float = 0.22

    @property
    def rise_s(self) -> float:
        """When the heel begins to rise. [s]"""
        return self.lift_s - HEEL_OFF_SHARE * (self.land_s - self.lift_s)

    @property
    def flat_s(self) -> float:
        """When the sole is flat on the floor again. [s]"""
        return self.land_s + FLAT_SHARE * (self.land_s - self.lift_s)


@dataclass(frozen=True, slots=True, eq=False)
class ArmPose:
    """One arm against the chest, for the right arm; the left one is its mirror image.

    Args:
        upper: (4,) canonical rotation of the upper arm.
        elbow: Flexion. [rad]
        roll: Turn of the hand about the forearm; positive raises the thumb. [rad]
        wrist: Bend of the hand towards its back. [rad]
    """

    upper: Quats
    elbow: float
    roll: float = 0.0
    wrist: float = 0.0


def arm_reaching(
    body: BodyModel, wrist: Vec3, elbow_towards: Vec3, roll: float = 0.0, bend: float = 0.0
) -> ArmPose:
    """The right arm with its wrist at a place.

    Args:
        body: Whose arm.
        wrist: (3,) from the right shoulder, in the chest's axes; pulled in when out of reach. [m]
        elbow_towards: (3,) direction in which the elbow points.
        roll, bend: As ``ArmPose.roll`` and ``ArmPose.wrist``. [rad]
    """
    a, b = (float(np.linalg.norm(body.offsets[BONE[name]])) for name in ("rightLowerArm", "rightHand"))
    away = float(np.clip(np.linalg.norm(wrist), abs(a - b) + 0.02, 0.99 * (a + b)))
    ahead = wrist / np.linalg.norm(wrist)
    pole = elbow_towards - np.dot(elbow_towards, ahead) * ahead
    pole = pole / np.linalg.norm(pole)
    along = (a * a - b * b + away * away) / (2.0 * away)
    out = np.sqrt(max(a * a - along * along, 0.0))
    elbow = (ahead * along + pole * out) / a
    flexed = ahead * out - pole * along
    flexed = flexed / np.linalg.norm(flexed)  # where the forearm goes when the elbow bends: at rest -Z
    upper = quat.from_matrix(np.stack([elbow, np.cross(elbow, flexed), -flexed], axis=1))
    inside = (a * a + b * b - away * away) / (2.0 * a * b)
    return ArmPose(upper, float(np.pi - np.arccos(np.clip(inside, -1.0, 1.0))), roll, bend)


HANGING = ArmPose(
    quat.multiply(turn(Z_AXIS, np.radians(-82.0)), turn(X_AXIS, np.radians(8.0))), np.radians(14.0)
)
T_POSE = ArmPose(turn(Z_AXIS, np.radians(-1.5)), np.radians(3.0))


@dataclass
class Script:
    """What a person does and when; chapters append to it.

    Args:
        body: Who moves.
        now_s: Where the next chapter starts. [s]
        keys: For each channel, (time [s], value) in order of time.
        arms: For each arm (left, right), (time [s], pose).
        steps: Footsteps in order of time.
        place: (2,) where the person stands, x and z. [m]
        yaw: Which way the person faces, positive to the left. [rad]
    """

    body: BodyModel
    now_s: float = 0.0
    keys: dict[str, list[tuple[float, float]]] = field(
        default_factory=lambda: {c: [(0.0, 0.0)] for c in CHANNELS}
    )
    arms: tuple[list[tuple[float, ArmPose]], list[tuple[float, ArmPose]]] = field(
        default_factory=lambda: ([(0.0, T_POSE)], [(0.0, T_POSE)])
    )
    steps: list[Step] = field(default_factory=list)
    place: Floats = field(default_factory=lambda: np.zeros(2))
    yaw: float = 0.0

    def key(self, after_s: float, over_s: float, **values: float) -> None:
        """Ease channels to new values, beginning ``after_s`` from now and taking ``over_s``."""
        for name, value in values.items():
            start = self.now_s + after_s
            track = self.keys[name]
            if start < track[-1][0] - 1e-9:
                raise ValueError(f"{name} is still moving at {start:.2f} s")
            track += [(start, track[-1][1]), (start + over_s, value)]

    def arm(self, side: int, after_s: float, over_s: float, pose: ArmPose) -> None:
        """Ease one arm (0 left, 1 right) to a new pose."""
        start = self.now_s + after_s
        track = self.arms[side]
        if start < track[-1][0] - 1e-9:
            raise ValueError(f"arm {side} is still moving at {start:.2f} s")
        track += [(start, track[-1][1]), (start + over_s, pose)]

    def foot_place(self, foot: int, place: Floats, yaw: float) -> tuple[float, float]:
        """Where a foot belongs when the person stands at ``place`` facing ``yaw``: x and z. [m]"""
        half = float(self.body.tpose[BONE["rightFoot"], 0]) * (1.0 if foot else -1.0)
        return float(place[0] + half * np.cos(yaw)), float(place[1] - half * np.sin(yaw))

    def step(self, foot: int, after_s: float, over_s: float, place: Floats, yaw: float, **how: float) -> None:
        """Bring one foot under a person who would stand at ``place`` facing ``yaw``."""
        x, z = self.foot_place(foot, place, yaw)
        lift = self.now_s + after_s
        out = -TOE_OUT_RAD if foot else TOE_OUT_RAD
        before = [s for s in self.steps if s.foot == foot][-1:]
        if before and lift - HEEL_OFF_SHARE * over_s < before[0].flat_s:
            raise ValueError(f"foot {foot} is not yet flat on the floor when it lifts at {lift:.2f} s")
        self.steps.append(Step(foot, lift, lift + over_s, x, z, yaw + out, **how))

    def wait(self, seconds: float) -> None:
        """Go on later."""
        self.now_s += seconds


def _between(times: list[float], t: Floats) -> tuple[Ints, Floats]:
    """Row of the key before each time, and the eased share of the way to the next key."""
    at = np.array(times)
    i = np.clip(np.searchsorted(at, t, side="right") - 1, 0, max(len(at) - 2, 0))
    span = np.maximum(at[np.minimum(i + 1, len(at) - 1)] - at[i], 1e-9)
    return np.asarray(i, np.int64), ease((t - at[i]) / span)


def eased(track: list[tuple[float, float]], t: Floats) -> Floats:
    """A key channel at times ``t``."""
    i, s = _between([time for time, _ in track], t)
    value = np.array([v for _, v in track])
    j = np.minimum(i + 1, len(value) - 1)
    return np.asarray(value[i] + s * (value[j] - value[i]))


def arm_at(track: list[tuple[float, ArmPose]], t: Floats) -> tuple[Quats, Floats, Floats, Floats]:
    """Upper arm (n, 4), elbow, roll and wrist (n,) at times ``t``."""
    i, s = _between([time for time, _ in track], t)
    j = np.minimum(i + 1, len(track) - 1)
    upper = np.array([pose.upper for _, pose in track])
    mixed = [np.array([getattr(pose, name) for _, pose in track]) for name in ("elbow", "roll", "wrist")]
    elbow, roll, wrist = (m[i] + s * (m[j] - m[i]) for m in mixed)
    return quat.slerp(upper[i], upper[j], s), elbow, roll, wrist


def sole_at(script: Script, side: int, t: Floats) -> tuple[Points, Floats, Floats]:
    """Place (n, 2) [m], yaw (n,) [rad] and how much a foot is in the air (n,), without heel and toe roll."""
    x, z = script.foot_place(side, np.zeros(2), 0.0)
    place = np.tile([x, z], (len(t), 1))
    yaw = np.full(len(t), -TOE_OUT_RAD if side else TOE_OUT_RAD)
    air = np.zeros(len(t))
    for step in script.steps:
        if step.foot == side:
            s = ease((t - step.lift_s) / (step.land_s - step.lift_s))
            place += s[:, None] * (np.array([step.x, step.z]) - place)
            yaw += s * (step.yaw - yaw)
            air += (t > step.lift_s) & (t < step.land_s)
    return place, yaw, air


def foot_at(script: Script, side: int, t: Floats, body: BodyModel) -> tuple[Points, Quats, Quats]:
    """Ankle (n, 3) [m], foot and toe rotation (n, 4): on the floor the foot rolls over ball or heel."""
    place, yaw, _ = sole_at(script, side, t)
    lift, pitch, on_ball = np.zeros(len(t)), np.zeros(len(t)), np.ones(len(t))
    for step in (s for s in script.steps if s.foot == side):
        s = np.clip((t - step.lift_s) / (step.land_s - step.lift_s), 0.0, 1.0)
        lift += step.height_m * 64.0 * s**3 * (1.0 - s) ** 3
        swing = step.land_s - step.lift_s
        on_ball -= ease(s) * (t < step.flat_s)  # tips about the heel until the sole is flat
        beats = (
            step.rise_s,
            step.lift_s + 0.12 * swing,
            step.land_s,
            step.flat_s,
        )
        pitch += eased(list(zip(beats, (0.0, step.heel_off, -step.heel_strike, 0.0), strict=True)), t)
    ball = body.offsets[BONE[SIDES[side] + "Toes"]]
    ankle = np.array([0.0, body.ankle_height_m, 0.0])
    heel = np.array([0.0, 0.0, HEEL_BEHIND_ANKLE_M])
    tipped = turn(X_AXIS, -pitch)
    over_ball = ankle + ball - quat.rotate(tipped, ball)
    over_heel = heel + quat.rotate(tipped, ankle - heel)
    local = on_ball[:, None] * over_ball + (1.0 - on_ball[:, None]) * over_heel
    heading = turn(Y_AXIS, yaw)
    joint = quat.rotate(heading, local) + np.stack([place[:, 0], lift, place[:, 1]], axis=-1)
    toes = quat.multiply(heading, turn(X_AXIS, (0.75 * on_ball - 1.0) * pitch))
    return joint, quat.multiply(heading, tipped), toes
