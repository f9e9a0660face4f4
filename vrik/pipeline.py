"""Tracker frames in, pose frames out: condition, venue, calibration, solvers. Nothing here reads a clock."""

from __future__ import annotations

import numpy as np

from solvers.body import BodySolver
from solvers.fitted import open_prior
from solvers.prior import Prior
from vrik import quat
from vrik.arrays import Ints, Points, Quats
from vrik.condition import MAX_STEP_S, Conditioner, FilterState, conditioned
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
    TrackerSequence,
    is_tracked,
)
from vrik.kernels import condition as _kernels
from vrik.pose import Pose


class Pipeline:
    """Everything between a source and a sink, for one person.

    Args:
        calibration: Lengths, roles and how the devices are worn.
        config: Settings of all stages.
        prior: Guesses what is not tracked; the one that ``config`` names when not given.

    Raises:
        PriorError: If the weights that ``config`` names cannot be used.
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
        self._conditioner = Conditioner(config.condition, calibration.roles, calibration.body.stature_m)
        prior = open_prior(config.prior) if prior is None else prior
        self._solver = BodySolver(calibration.body, config.solve, prior, floor_y=space.y_m)
        # Kernels see one layout, whatever a profile was read into.
        self._device_bone_position = np.array(calibration.device_bone_position, np.float64, order="C")
        self._device_bone_rotation = np.array(calibration.device_bone_rotation, np.float64, order="C")
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

    @property
    def out_of_reach(self) -> dict[str, int]:
        """Role to the number of frames in which its device was farther from the head than a body reaches."""
        found = self._conditioner.out_of_reach().items()
        return {self.calibration.roles[serial]: count for serial, count in found}

    def step(self, frame: TrackerFrame) -> PoseFrame:
        """Solve one frame. Until a head has been tracked, the body stands in its rest pose.

        Returns:
            A pose with arrays of its own and the frame's time, player and space.
        """
        state = self._conditioner.step(frame)
        if self._conditioner.devices is not self._devices:
            self._devices = self._conditioner.devices
            self._device_of_role = self._match_roles(self._devices)
        position, rotation = self._into_venue(state)
        self._tracked = conditioned(frame, state, position, rotation)
        targets = self._targets
        _kernels.devices_to_bones(
            position,
            rotation,
            state.weight,
            state.state,
            state.age_s,
            self._device_of_role,
            self._device_bone_position,
            self._device_bone_rotation,
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
        self._time_ns = frame.host_time_ns
        targets.position_weight[head] = 1.0  # there is no body without a head: a lost one keeps its place
        targets.rotation_weight[:] = targets.position_weight
        solved = self._solver.step(targets, dt_s)
        return PoseFrame(
            frame.host_time_ns,
            solved.position.copy(),
            solved.rotation.copy(),
            solved.local_rotation.copy(),
            np.where(is_tracked(targets.state), solved.reach_error_m, np.nan),
            targets.state.copy(),
            targets.age_s.copy(),
            frame.player_id,
            frame.space_id,
        )

    def _into_venue(self, state: FilterState) -> tuple[Points, Quats]:
        """Device poses in the venue: where ``T_venue_standing`` is applied, and nowhere else."""
        T = self.T_venue_standing
        position, rotation = state.position.copy(), state.rotation.copy()
        _kernels.into_venue(T.rotation, T.translation, position, rotation)
        return position, rotation

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


def solve_all(pipeline: Pipeline, frames: TrackerSequence) -> PoseSequence:
    """Solve a sequence from where the pipeline stands; a long recording goes through block by block."""
    count, bones = len(frames), len(pipeline.calibration.body.tpose)
    position, rotation = np.zeros((count, bones, 3)), quat.identity(count, bones)
    error, state = np.full((count, len(ROLES)), np.nan), np.zeros((count, len(ROLES)), np.int64)
    for i, frame in enumerate(frames):
        pose = pipeline.step(frame)
        position[i], rotation[i] = pose.position, pose.rotation
        error[i], state[i] = pose.reach_error_m, pose.state
    return PoseSequence(
        frames.time_ns.copy(),
        position,
        rotation,
        pipeline.calibration.body,
        error,
        state,
        frames.player_id,
        frames.space_id,
    )
