"""Tracker frames in, pose frames out: condition, venue, calibration, solvers. Nothing here reads a clock."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from solvers.body import BodySolver
from solvers.prior import Prior
from vrik import quat
from vrik.arrays import Ints
from vrik.condition import MAX_STEP_S, Conditioner, conditioned
from vrik.config import PipelineConfig
from vrik.frames import (
    ROLE,
    ROLES,
    BodyTargets,
    Calibration,
    DeviceState,
    PoseFrame,
    PoseSequence,
    TrackedDevice,
    TrackerFrame,
)
from vrik.kernels import condition as _kernels
from vrik.pose import Pose


class Pipeline:
    """Everything between a source and a sink, for one person.

    Args:
        calibration: Lengths, roles and how the devices are worn.
        config: Settings of all stages.
        prior: Guesses what is not tracked; the rules when not given.
    """

    def __init__(
        self,
        calibration: Calibration,
        config: PipelineConfig = PipelineConfig(),  # noqa: B008  # frozen
        prior: Prior | None = None,
    ) -> None:
        self.calibration = calibration
        self.config = config
        space = config.space
        self.T_venue_standing = Pose.from_yaw(
            np.radians(space.yaw_deg), np.array([space.x_m, space.y_m, space.z_m])
        )
        self._conditioner = Conditioner(config.condition)
        self._solver = BodySolver(calibration.body, config.solve, prior)
        self.reset()

    def reset(self) -> None:
        """Forget all frames, as at the start of another take."""
        self._conditioner.reset()
        self._solver.reset()
        self._devices: tuple[TrackedDevice, ...] | None = None
        self._device_of_role = np.full(len(ROLES), -1, np.int64)
        self._time_ns: int | None = None
        n = len(ROLES)
        self._targets = BodyTargets(
            0,
            np.zeros((n, 3)),
            quat.identity(n),
            np.zeros(n),
            np.zeros(n),
            np.zeros(n, np.int64),
            np.full(n, np.inf),
        )
        self._tracked: TrackerFrame | None = None

    @property
    def tracked(self) -> TrackerFrame | None:
        """The last frame as the solvers saw it: conditioned, placed in the venue; None before the first."""
        return self._tracked

    def step(self, frame: TrackerFrame) -> PoseFrame:
        """Solve one frame. Until a head has been tracked, the body stands in its rest pose.

        Returns:
            A pose with arrays of its own and the frame's time, player and space.
        """
        state = self._conditioner.step(frame)
        self._tracked = self._into_venue(conditioned(frame, state))
        if frame.devices is not self._devices:
            self._device_of_role = self._match_roles(frame.devices)
            self._devices = frame.devices
        targets = self._targets
        _kernels.devices_to_bones(
            self._tracked.position,
            self._tracked.rotation,
            state.weight,
            state.state,
            state.age_s,
            self._device_of_role,
            self.calibration.device_bone_position,
            self.calibration.device_bone_rotation,
            targets.position,
            targets.rotation,
            targets.position_weight,
            targets.state,
            targets.age_s,
        )
        dt_s = 0.0 if self._time_ns is None else (frame.host_time_ns - self._time_ns) * 1e-9
        dt_s = min(max(dt_s, 0.0), MAX_STEP_S)
        head = ROLE["head"]
        if targets.state[head] == DeviceState.ABSENT or not np.isfinite(targets.age_s[head]):
            return self._rest(frame)
        self._time_ns = max(frame.host_time_ns, self._time_ns or frame.host_time_ns)
        targets.position_weight[head] = 1.0  # there is no body without a head: a lost one keeps its place
        targets.rotation_weight[:] = targets.position_weight
        solved = self._solver.step(targets, dt_s)
        return PoseFrame(
            frame.host_time_ns,
            solved.position.copy(),
            solved.rotation.copy(),
            solved.local_rotation.copy(),
            solved.reach_error_m.copy(),
            targets.state.copy(),
            targets.age_s.copy(),
            frame.player_id,
            frame.space_id,
        )

    def _into_venue(self, frame: TrackerFrame) -> TrackerFrame:
        """Where ``T_venue_standing`` is applied; nowhere else."""
        T = self.T_venue_standing
        _kernels.into_venue(T.rotation, T.translation, frame.position, frame.rotation)
        return frame

    def _match_roles(self, devices: tuple[TrackedDevice, ...]) -> Ints:
        """(13,) row of each role's device, by serial number; -1 for none."""
        rows = np.full(len(ROLES), -1, np.int64)
        for i, device in enumerate(devices):
            role = self.calibration.roles.get(device.serial)
            if role is not None:
                rows[ROLE[role]] = i
        return rows

    def _rest(self, frame: TrackerFrame) -> PoseFrame:
        """The body in its T-pose at the venue's origin."""
        n = len(self.calibration.body.tpose)
        return PoseFrame(
            frame.host_time_ns,
            self.calibration.body.tpose.copy(),
            quat.identity(n),
            quat.identity(n),
            np.full(len(ROLES), np.nan),
            self._targets.state.copy(),
            self._targets.age_s.copy(),
            frame.player_id,
            frame.space_id,
        )


def solve_frames(pipeline: Pipeline, frames: Iterable[TrackerFrame]) -> Iterator[PoseFrame]:
    """Solve frames one by one as they come."""
    return (pipeline.step(frame) for frame in frames)


def solve_all(pipeline: Pipeline, frames: Iterable[TrackerFrame], count: int) -> PoseSequence:
    """Solve ``count`` frames into one sequence.

    Args:
        pipeline: Fresh or reset.
        frames: At most ``count`` frames.
        count: Rows to make room for.
    """
    bones = len(pipeline.calibration.body.tpose)
    time_ns = np.zeros(count, np.int64)
    position, rotation = np.zeros((count, bones, 3)), quat.identity(count, bones)
    error, state = np.full((count, len(ROLES)), np.nan), np.zeros((count, len(ROLES)), np.int64)
    n = 0
    player_id = space_id = ""
    for pose in solve_frames(pipeline, frames):
        time_ns[n], position[n], rotation[n] = pose.host_time_ns, pose.position, pose.rotation
        error[n], state[n] = pose.reach_error_m, pose.state
        player_id, space_id = pose.player_id, pose.space_id
        n += 1
    return PoseSequence(
        time_ns[:n],
        position[:n],
        rotation[:n],
        pipeline.calibration.body,
        error[:n],
        state[:n],
        player_id,
        space_id,
    )
