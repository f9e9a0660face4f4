"""From raw device poses to poses one can rely on: nothing NaN, nothing sudden, and an age for each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from vrik import quat
from vrik.arrays import Bools, Floats, Ints, Points, Quats
from vrik.config import ConditionConfig
from vrik.frames import DeviceState, TrackedDevice, TrackerFrame, TrackingResult, is_tracked
from vrik.kernels import condition as _kernels

MAX_STEP_S = 0.5
"""A longer pause between frames counts as this much for holding and blending. [s]"""


@dataclass(slots=True, eq=False)
class FilterState:
    """What is remembered of k devices between frames: those of the frame first, then any gone from it.

    ``position`` (k, 3) [m] and ``rotation`` (k, 4) are the poses to use, ``weight`` (k,) how much of
    them (1 in full, 0 not at all), ``state`` (k,) ``DeviceState`` values and ``age_s`` (k,) how long
    ago the device was last tracked (inf: never).
    """

    position: Points
    rotation: Quats
    weight: Floats
    state: Ints
    age_s: Floats
    seen_position: Points
    from_position: Points
    from_rotation: Quats
    glitch_s: Floats
    blend_s: Floats
    blend_left_s: Floats
    jumped: Bools
    far: Ints
    """(k,) frames in which the device was out of the body's reach, and so taken as not tracked."""

    @classmethod
    def fresh(cls, k: int) -> FilterState:
        """No device has been seen yet."""
        return cls(
            np.zeros((k, 3)),
            quat.identity(k),
            np.zeros(k),
            np.full(k, int(DeviceState.ABSENT), np.int64),
            np.full(k, np.inf),
            np.zeros((k, 3)),
            np.zeros((k, 3)),
            quat.identity(k),
            np.zeros(k),
            np.zeros(k),
            np.zeros(k),
            np.zeros(k, np.bool_),
            np.zeros(k, np.int64),
        )


class Conditioner:
    """Holds, fades and blends device poses; devices are known by serial, so slots may change freely.

    A device that is no longer listed is lost, as one that is listed without a pose. A repeated time
    stamp advances nothing but still replaces the pose; so does one that runs backwards, and time goes
    on from there.

    Args:
        config: Settings.
        roles: Serial number to role of the devices that are worn: one that is farther from the head than
            a body reaches is taken as not tracked in that frame.
        stature_m: The person's height; without it all devices may be anywhere. [m]
    """

    def __init__(
        self,
        config: ConditionConfig = ConditionConfig(),  # noqa: B008  # frozen
        roles: Mapping[str, str] | None = None,
        stature_m: float = np.inf,
    ) -> None:
        self._config = config
        self._roles = dict(roles or {})
        self._stature_m = stature_m
        self.reset()

    def out_of_reach(self) -> dict[str, int]:
        """Serial number to the number of frames in which a worn device was out of the body's reach."""
        counts = zip(self.devices, self.state.far.tolist(), strict=True)
        return {device.serial: count for device, count in counts if count}

    def reset(self) -> None:
        """Forget all devices."""
        self._time_ns: int | None = None
        self._listed: tuple[TrackedDevice, ...] = ()
        self.devices: tuple[TrackedDevice, ...] = ()
        self.state = FilterState.fresh(0)
        self._make_room(0)

    def step(self, frame: TrackerFrame) -> FilterState:
        """Advance to ``frame``; the state returned is this object's own and changes with the next step."""
        if frame.devices is not self._listed:
            self._follow_serials(frame.devices)
        dt_s = 0.0 if self._time_ns is None else (frame.host_time_ns - self._time_ns) * 1e-9
        self._time_ns = frame.host_time_ns
        c, s, k = self._config, self.state, len(frame.devices)
        # Frames may be read-only, of another number type, or views of anything: kernels see one layout.
        np.copyto(self._position[:k], frame.position)
        np.copyto(self._rotation[:k], frame.rotation)
        np.copyto(self._valid[:k], frame.valid)
        np.copyto(self._result[:k], frame.result)
        _kernels.condition(
            self._position,
            self._rotation,
            self._valid,
            self._result,
            min(max(dt_s, 0.0), MAX_STEP_S),
            c.hold_s,
            c.fade_s,
            c.return_s,
            c.max_speed_m_s,
            c.max_glitch_s,
            self._head,
            self._reach_m,
            s.far,
            s.position,
            s.rotation,
            s.seen_position,
            s.from_position,
            s.from_rotation,
            s.age_s,
            s.glitch_s,
            s.blend_s,
            s.blend_left_s,
            s.weight,
            s.state,
            s.jumped,
        )
        return s

    def _follow_serials(self, listed: tuple[TrackedDevice, ...]) -> None:
        """Carry each device's memory to its new row; a device not seen before starts afresh."""
        old = {device.serial: i for i, device in enumerate(self.devices)}
        present = {device.serial for device in listed}
        devices = (*listed, *(d for d in self.devices if d.serial not in present))
        before, self.state = self.state, FilterState.fresh(len(devices))
        for i, device in enumerate(devices):
            j = old.get(device.serial)
            if j is not None:
                for name in FilterState.__dataclass_fields__:
                    getattr(self.state, name)[i] = getattr(before, name)[j]
        self._listed, self.devices = listed, devices
        self._make_room(len(devices))

    def _make_room(self, k: int) -> None:
        self._position, self._rotation = np.zeros((k, 3)), np.zeros((k, 4))
        self._valid, self._result = np.zeros(k, np.bool_), np.zeros(k, np.int64)
        worn = [self._roles.get(device.serial, "") for device in self.devices]
        self._head = next((i for i, role in enumerate(worn) if role == "head"), -1)
        limit_m = self._config.reach_share * self._stature_m
        self._reach_m = np.array([limit_m if role else np.inf for role in worn], np.float64)


def conditioned(frame: TrackerFrame, state: FilterState, position: Points, rotation: Quats) -> TrackerFrame:
    """``frame`` with these poses (rows as in ``state``); valid where the device is tracked in this frame."""
    k = len(frame.devices)
    valid = is_tracked(state.state[:k])
    result = np.where(valid, TrackingResult.RUNNING_OK, TrackingResult.RUNNING_OUT_OF_RANGE)
    return replace(
        frame,
        position=position[:k],
        rotation=rotation[:k],
        valid=valid,
        result=result.astype(np.int64),
    )
