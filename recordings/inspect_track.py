"""Watches the devices of a recording block by block, in memory that does not grow with its length."""

from __future__ import annotations

import math

import numpy as np

from recordings.inspect_report import DeviceReport
from vrik import quat
from vrik.arrays import Bools, Floats, Ints, Points, Quats
from vrik.config import REACH_SHARE
from vrik.frames import DeviceClass, TrackedDevice

JUMP_SPEED_M_S = 20.0
LEAP_SPEED_M_S, LEAP_M = 8.0, 0.1
CALM_SHARE = 0.25
"""A leap is a longer and faster step than these, between two steps of at most this share of its speed."""
PATH_STEP_NS = 100_000_000
"""The travelled path is measured from point to point this far apart. [ns]"""

MIN_STEP_S = 0.001
"""Shorter steps, as of repeated times, count as this long when a speed is needed. [s]"""


BEND_SHARE = 0.55
"""From the head to the hips, seen from above, is less than this even in a deep bow. [statures]"""

HIP_SHARE = 0.4
"""A tracker whose median height is above this is worn at the hips or higher. [statures]"""


class Thinned:
    """Every value, as long as there are few; then every 2nd, 4th, ... so that at most ``limit`` are kept."""

    def __init__(self, limit: int = 1 << 16) -> None:
        self._limit = limit
        self._stride = 1
        self._skip = 0
        self._kept: list[Floats] = []
        self._size = 0

    def add(self, values: Floats) -> None:
        """More values, in order."""
        taken = values[self._skip :: self._stride]
        self._skip = (self._skip - len(values)) % self._stride
        self._kept.append(np.array(taken, np.float64))
        self._size += len(taken)
        while self._size > self._limit:
            kept = np.concatenate(self._kept)
            if len(kept) % 2:
                self._skip += self._stride
            self._kept = [kept[::2]]
            self._size = len(self._kept[0])
            self._stride *= 2

    def percentile(self, percent: float) -> float:
        """Exact while nothing is thinned; NaN without values."""
        return float(np.percentile(np.concatenate(self._kept), percent)) if self._size else math.nan


class DeviceTrack:
    """What one device did so far."""

    def __init__(self, device: TrackedDevice, stature_m: float = math.inf) -> None:
        self._device = device
        self._stature_m = stature_m
        self._out_of_reach = 0
        self._farthest_m = math.nan
        self._beside = 0
        self._measured = 0
        self._frames = 0
        self._valid = 0
        self._placeholders = 0
        self._jumps = 0
        self._leaps = 0
        self._leap_longest_m = 0.0
        self._losses = 0
        self._longest_ns = 0
        self._lost_since_ns: int | None = None
        self._was_valid = True
        self._last_ns: int | None = None
        self._low = np.full(3, np.inf)
        self._high = np.full(3, -np.inf)
        self._heights = Thinned()
        self._head_distances = Thinned()
        self._travelled_m = 0.0
        self._path_at: tuple[int, Floats] | None = None
        self._tail_ns: Ints = np.zeros(0, np.int64)
        self._tail_position: Points = np.zeros((0, 3))
        self._tail_valid: Bools = np.zeros(0, np.bool_)
        self._again = 0

    def add(
        self, time_ns: Ints, position: Points, rotation: Quats, valid: Bools, head: Points | None
    ) -> None:
        """The next n frames of this device.

        Args:
            time_ns: (n,) times. [ns]
            position: (n, 3) positions. [m]
            rotation: (n, 4) rotations.
            valid: (n,) whether they may be used.
            head: (n, 3) where the head is, NaN when not tracked; None for the head itself. [m]
        """
        self._frames += len(time_ns)
        self._valid += int(valid.sum())
        no_rotation = np.isfinite(rotation).all(axis=-1) & ~quat.is_rotation(rotation)
        self._placeholders += int(np.sum(~valid & (no_rotation | (position == 0.0).all(axis=-1))))
        self._add_losses(time_ns, valid)
        self._add_jumps(time_ns, position, valid)
        good = position[valid]
        if len(good):
            self._low = np.minimum(self._low, good.min(axis=0))
            self._high = np.maximum(self._high, good.max(axis=0))
            self._heights.add(good[:, 1])
            self._add_path(time_ns[valid], good)
        if head is not None:
            self._add_distances((position - head)[valid])

    def _add_distances(self, from_head: Points) -> None:
        from_head = from_head[np.isfinite(from_head).all(axis=-1)]
        distance = np.linalg.norm(from_head, axis=-1)
        self._head_distances.add(distance)
        self._farthest_m = float(np.fmax(self._farthest_m, distance.max(initial=-math.inf)))
        if self._device.device_class != DeviceClass.TRACKING_REFERENCE:
            self._out_of_reach += int(np.sum(distance > REACH_SHARE * self._stature_m))
        within = from_head[distance <= REACH_SHARE * self._stature_m]
        self._measured += len(within)
        self._beside += int(np.sum(np.hypot(within[:, 0], within[:, 2]) > BEND_SHARE * self._stature_m))

    def _astray_share(self) -> float:
        """As :class:`DeviceReport` says; hands, feet and knees may be that far to the side."""
        kind, role = self._device.device_class, self._device.role
        high = self._heights.percentile(50.0) > HIP_SHARE * self._stature_m
        on_limb = role.endswith(("hand", "foot", "knee"))
        if kind != DeviceClass.GENERIC_TRACKER or on_limb or not high or not self._measured:
            return 0.0
        return self._beside / self._measured

    def _add_losses(self, time_ns: Ints, valid: Bools) -> None:
        before = np.concatenate([[self._was_valid], valid[:-1]])
        for i in np.flatnonzero(valid != before):
            if valid[i]:
                self._end_loss(int(time_ns[i]))
            else:
                self._losses += 1
                last_good_ns = self._last_ns if i == 0 else int(time_ns[i - 1])
                self._lost_since_ns = int(time_ns[i]) if last_good_ns is None else last_good_ns
        self._was_valid = bool(valid[-1])
        self._last_ns = int(time_ns[-1])

    def _end_loss(self, now_ns: int) -> None:
        if self._lost_since_ns is not None:
            self._longest_ns = max(self._longest_ns, now_ns - self._lost_since_ns)
            self._lost_since_ns = None

    def _add_jumps(self, time_ns: Ints, position: Points, valid: Bools) -> None:
        """Count the middle ones of three frames that go far away and come back."""
        time_ns = np.concatenate([self._tail_ns, time_ns])
        position = np.concatenate([self._tail_position, position])
        valid = np.concatenate([self._tail_valid, valid])
        self._tail_ns, self._tail_position, self._tail_valid = time_ns[-3:], position[-3:], valid[-3:]
        step_s = np.maximum(np.diff(time_ns) * 1e-9, MIN_STEP_S)
        self._add_leaps(position, valid, step_s)
        # The first of three kept frames was seen with its neighbours before.
        position, valid, step_s = position[self._again :], valid[self._again :], step_s[self._again :]
        self._again = 1 if len(self._tail_ns) == 3 else 0
        if len(position) < 3:
            return
        fast = np.linalg.norm(np.diff(position, axis=0), axis=-1) > JUMP_SPEED_M_S * step_s
        there_s = step_s[1:] + step_s[:-1]
        back = np.linalg.norm(position[2:] - position[:-2], axis=-1) < JUMP_SPEED_M_S * there_s
        tracked = valid[2:] & valid[1:-1] & valid[:-2]
        self._jumps += int(np.sum(tracked & fast[1:] & fast[:-1] & back))

    def _add_leaps(self, position: Points, valid: Bools, step_s: Floats) -> None:
        """Count the middle ones of three steps, the outer two calm."""
        if len(position) < 4:
            return
        steps = np.linalg.norm(np.diff(position, axis=0), axis=-1)
        speed = steps / step_s
        calm = np.maximum(speed[:-2], speed[2:]) < CALM_SHARE * speed[1:-1]
        tracked = valid[:-3] & valid[1:-2] & valid[2:-1] & valid[3:]
        leaps = tracked & calm & (speed[1:-1] > LEAP_SPEED_M_S) & (steps[1:-1] > LEAP_M)
        self._leaps += int(leaps.sum())
        self._leap_longest_m = max(self._leap_longest_m, float(steps[1:-1][leaps].max(initial=0.0)))

    def _add_path(self, time_ns: Ints, position: Points) -> None:
        """Add up the steps between the first good frames of each tenth of a second."""
        if self._path_at is not None:
            time_ns = np.concatenate([[self._path_at[0]], time_ns])
            position = np.concatenate([self._path_at[1][None], position])
        slot = time_ns // PATH_STEP_NS
        first = np.concatenate([[True], slot[1:] != slot[:-1]])
        points, at_ns = position[first], time_ns[first]
        steps = np.linalg.norm(np.diff(points, axis=0), axis=-1)
        seconds = np.maximum(np.diff(at_ns) * 1e-9, MIN_STEP_S)
        self._travelled_m += float(steps[steps < JUMP_SPEED_M_S * seconds].sum())
        self._path_at = (int(at_ns[-1]), points[-1].copy())

    def report(self) -> DeviceReport:
        """What it did, once all frames are in."""
        if self._last_ns is not None:
            self._end_loss(self._last_ns)
        seen = self._valid > 0
        return DeviceReport(
            serial=self._device.serial,
            device_class=self._device.device_class.name,
            role=self._device.role,
            model=self._device.model,
            valid_share=self._valid / self._frames if self._frames else 0.0,
            losses=self._losses,
            longest_loss_s=self._longest_ns * 1e-9,
            placeholders=self._placeholders,
            jumps=self._jumps,
            leaps=self._leaps,
            leap_longest_m=self._leap_longest_m,
            out_of_reach=self._out_of_reach,
            farthest_m=self._farthest_m if math.isfinite(self._farthest_m) else math.nan,
            astray_share=self._astray_share(),
            height_min_m=float(self._low[1]) if seen else math.nan,
            height_median_m=self._heights.percentile(50.0),
            height_max_m=float(self._high[1]) if seen else math.nan,
            height_standing_m=self._heights.percentile(95.0),
            travelled_m=self._travelled_m if seen else math.nan,
            extent_m=float(np.linalg.norm(self._high - self._low)) if seen else math.nan,
            head_distance_m=self._head_distances.percentile(50.0),
        )
