"""What travels between the stages: tracked devices in, targets in the middle, a posed body out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum

import numpy as np

from vrik.arrays import Bools, Floats, Ints, Points, Quats
from vrik.body import BodyModel
from vrik.skeleton import BONE

DEFAULT_PLAYER = "player1"
DEFAULT_SPACE = "space1"

ROLES = (
    "head",
    "left_hand",
    "right_hand",
    "waist",
    "chest",
    "left_shoulder",
    "right_shoulder",
    "left_elbow",
    "right_elbow",
    "left_knee",
    "right_knee",
    "left_foot",
    "right_foot",
)
"""What a device can be worn as. The index of a role is its row in every per-role array."""

ROLE = {name: i for i, name in enumerate(ROLES)}

ROLE_BONES: Ints = np.array(
    [BONE[name] for name in (
        "head", "leftHand", "rightHand", "hips", "upperChest", "leftShoulder", "rightShoulder",
        "leftUpperArm", "rightUpperArm", "leftUpperLeg", "rightUpperLeg", "leftFoot", "rightFoot",
    )],
    dtype=np.int64,
)  # fmt: skip
"""(13,) the bone each role is fixed to: elbow trackers ride on the upper arm, knee trackers on the thigh."""


class DeviceClass(IntEnum):
    """OpenVR's ``ETrackedDeviceClass``."""

    INVALID = 0
    HMD = 1
    CONTROLLER = 2
    GENERIC_TRACKER = 3
    TRACKING_REFERENCE = 4
    DISPLAY_REDIRECT = 5


class TrackingResult(IntEnum):
    """OpenVR's ``ETrackingResult``."""

    UNINITIALIZED = 1
    CALIBRATING_IN_PROGRESS = 100
    CALIBRATING_OUT_OF_RANGE = 101
    RUNNING_OK = 200
    RUNNING_OUT_OF_RANGE = 201
    FALLBACK_ROTATION_ONLY = 300


class DeviceState(IntEnum):
    """How far a role's device can be believed in one frame."""

    ABSENT = 0
    """No device has this role."""
    OK = 1
    HELD = 2
    """Not tracked right now; its last pose is kept."""
    LOST = 3
    """Not tracked for so long that the body no longer follows it."""
    RETURNING = 4
    """Tracked again, and being blended back in."""


def is_tracked(state: Ints) -> Bools:
    """Which of some ``DeviceState`` values are those of a device that is tracked in this very frame."""
    return np.asarray((state == DeviceState.OK) | (state == DeviceState.RETURNING))


@dataclass(frozen=True, slots=True)
class TrackedDevice:
    """One device, known by its serial number.

    Args:
        serial: Unique within a session; what roles are tied to.
        device_class: What kind it is.
        role: What the runtime or the file says it is worn as, one of ``ROLES``; "" when it does not say.
        model: Free text for people.
    """

    serial: str
    device_class: DeviceClass
    role: str = ""
    model: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class TrackerFrame:
    """All device poses at one instant, as the hardware gave them.

    Args:
        host_time_ns: Monotonic time. [ns]
        devices: k devices; the same tuple object as long as the set does not change.
        position: (k, 3) in the standing universe; NaN where unknown. [m]
        rotation: (k, 4) unit quaternions (w, x, y, z).
        valid: (k,) whether the pose may be used.
        result: (k,) ``TrackingResult`` values.
        linear_velocity: (k, 3), or None when the source does not say. [m/s]
        angular_velocity: (k, 3), or None. [rad/s]
        player_id: Whose devices.
        space_id: Which tracking space they are measured in.
    """

    host_time_ns: int
    devices: tuple[TrackedDevice, ...]
    position: Points
    rotation: Quats
    valid: Bools
    result: Ints
    linear_velocity: Points | None = None
    angular_velocity: Points | None = None
    player_id: str = DEFAULT_PLAYER
    space_id: str = DEFAULT_SPACE


@dataclass(frozen=True, slots=True, eq=False)
class TrackerSequence:
    """n tracker frames of the same k devices, row by row: what a recording is read into.

    Args:
        time_ns: (n,) non-decreasing times. [ns]
        devices: k devices.
        position: (n, k, 3); NaN where unknown. [m]
        rotation: (n, k, 4) unit quaternions (w, x, y, z).
        valid: (n, k).
        result: (n, k) ``TrackingResult`` values; all RUNNING_OK where valid when the file does not say.
        linear_velocity: (n, k, 3) or None. [m/s]
        angular_velocity: (n, k, 3) or None. [rad/s]

    Raises:
        ValueError: If the shapes disagree.
    """

    time_ns: Ints
    devices: tuple[TrackedDevice, ...]
    position: Points
    rotation: Quats
    valid: Bools
    result: Ints
    linear_velocity: Points | None = None
    angular_velocity: Points | None = None
    player_id: str = DEFAULT_PLAYER
    space_id: str = DEFAULT_SPACE

    def __post_init__(self) -> None:
        n, k = len(self.time_ns), len(self.devices)
        for name, shape in (
            ("position", (n, k, 3)),
            ("rotation", (n, k, 4)),
            ("valid", (n, k)),
            ("result", (n, k)),
            ("linear_velocity", (n, k, 3)),
            ("angular_velocity", (n, k, 3)),
        ):
            array = getattr(self, name)
            if array is not None and array.shape != shape:
                raise ValueError(f"{name} has shape {array.shape}, expected {shape}")

    @classmethod
    def build(
        cls,
        time_ns: Ints,
        devices: Sequence[TrackedDevice],
        position: Points,
        rotation: Quats,
        valid: Bools,
        player_id: str = DEFAULT_PLAYER,
        space_id: str = DEFAULT_SPACE,
    ) -> TrackerSequence:
        """From arrays of a source that knows only valid or not."""
        valid = np.asarray(valid, np.bool_)
        return cls(
            np.asarray(time_ns, np.int64),
            tuple(devices),
            np.ascontiguousarray(position, np.float64),
            np.ascontiguousarray(rotation, np.float64),
            valid,
            np.where(valid, TrackingResult.RUNNING_OK, TrackingResult.RUNNING_OUT_OF_RANGE).astype(np.int64),
            player_id=player_id,
            space_id=space_id,
        )

    def __len__(self) -> int:
        return len(self.time_ns)

    def __iter__(self) -> Iterator[TrackerFrame]:
        return (self.frame(i) for i in range(len(self)))

    def frame(self, i: int) -> TrackerFrame:
        """Row ``i`` as a frame that shares this sequence's memory."""
        return TrackerFrame(
            int(self.time_ns[i]),
            self.devices,
            self.position[i],
            self.rotation[i],
            self.valid[i],
            self.result[i],
            None if self.linear_velocity is None else self.linear_velocity[i],
            None if self.angular_velocity is None else self.angular_velocity[i],
            self.player_id,
            self.space_id,
        )

    def part(self, rows: slice | Ints | Bools) -> TrackerSequence:
        """Some rows as a sequence of their own."""
        return replace(
            self,
            time_ns=self.time_ns[rows],
            position=self.position[rows],
            rotation=self.rotation[rows],
            valid=self.valid[rows],
            result=self.result[rows],
            linear_velocity=None if self.linear_velocity is None else self.linear_velocity[rows],
            angular_velocity=None if self.angular_velocity is None else self.angular_velocity[rows],
        )

    @property
    def duration_s(self) -> float:
        """From the first to the last frame. [s]"""
        return float(self.time_ns[-1] - self.time_ns[0]) * 1e-9 if len(self) > 1 else 0.0

    @property
    def rate_hz(self) -> float:
        """Median frame rate, leaving out repeated times; 0 when it cannot be told. [Hz]"""
        steps = np.diff(self.time_ns)
        steps = steps[steps > 0]
        return float(1e9 / np.median(steps)) if len(steps) else 0.0


@dataclass(frozen=True, slots=True, eq=False)
class BodyTargets:
    """What the body must meet in one frame: the bone pose behind each tracked role.

    Args:
        host_time_ns: Time of the frame. [ns]
        position: (13, 3) origin of the role's bone (``ROLE_BONES``). [m]
        rotation: (13, 4) canonical world rotation of that bone.
        position_weight: (13,) 0 not tracked to 1 must be met; between, while a device fades.
        rotation_weight: (13,) likewise.
        state: (13,) ``DeviceState`` values.
        age_s: (13,) seconds since the device was last tracked; 0 when it is, inf when it never was.
    """

    host_time_ns: int
    position: Points
    rotation: Quats
    position_weight: Floats
    rotation_weight: Floats
    state: Ints
    age_s: Floats


@dataclass(frozen=True, slots=True, eq=False)
class PoseFrame:
    """A whole body at one instant.

    Args:
        host_time_ns: The time stamp of the tracker frame it was solved from. [ns]
        position: (22, 3) joints in the world, in the order of ``BONES``. [m]
        rotation: (22, 4) canonical world rotations: identity in the T-pose.
        local_rotation: (22, 4) relative to the parent bone; sign-continuous from frame to frame.
        reach_error_m: (13,) distance from each role's bone to its target; NaN unless it is tracked in this
            very frame. [m]
        state: (13,) ``DeviceState`` of each role.
        age_s: (13,) seconds since each role's device was last tracked.
        player_id: Whose body.
        space_id: Which tracking space it came from.
    """

    host_time_ns: int
    position: Points
    rotation: Quats
    local_rotation: Quats
    reach_error_m: Floats
    state: Ints
    age_s: Floats
    player_id: str = DEFAULT_PLAYER
    space_id: str = DEFAULT_SPACE


@dataclass(frozen=True, slots=True, eq=False)
class PoseSequence:
    """n solved frames of one body: what ``vrik solve`` writes.

    Args:
        time_ns: (n,) times of the tracker frames. [ns]
        position: (n, 22, 3) joints in the world. [m]
        rotation: (n, 22, 4) canonical world rotations.
        body: Whose lengths.
        reach_error_m: (n, 13) as in :class:`PoseFrame`. [m]
        state: (n, 13) ``DeviceState`` values.
    """

    time_ns: Ints
    position: Points
    rotation: Quats
    body: BodyModel
    reach_error_m: Floats
    state: Ints
    player_id: str = DEFAULT_PLAYER
    space_id: str = DEFAULT_SPACE

    def __len__(self) -> int:
        return len(self.time_ns)

    @classmethod
    def join(cls, parts: Sequence[PoseSequence]) -> PoseSequence:
        """One after the other, with the first one's body, player and space.

        Raises:
            ValueError: If there is no part.
        """
        if not parts:
            raise ValueError("nothing to join")
        return replace(
            parts[0],
            time_ns=np.concatenate([part.time_ns for part in parts]),
            position=np.concatenate([part.position for part in parts]),
            rotation=np.concatenate([part.rotation for part in parts]),
            reach_error_m=np.concatenate([part.reach_error_m for part in parts]),
            state=np.concatenate([part.state for part in parts]),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Calibration:
    """A person and how their devices are worn.

    Args:
        body: Lengths.
        roles: Serial number to role; devices that are not listed are left out.
        device_bone_position: (13, 3) origin of the role's bone in the device's frame. [m]
        device_bone_rotation: (13, 4) rotation of the role's bone seen from the device, so that
            ``T_world_bone = T_world_device @ T_device_bone``.
        measured: What was measured, one short phrase each ("stature", "arm length", ...).
        assumed: What was taken from tables instead.
        notes: Sentences for the user: odd devices left out, swaps, doubts.
    """

    body: BodyModel
    roles: dict[str, str]
    device_bone_position: Points
    device_bone_rotation: Quats
    measured: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()
    notes: tuple[str, ...] = field(default=())
