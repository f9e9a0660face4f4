"""SlimeVR's pose recordings: PFR (tracker by tracker) and PFS (a stream of packets).

Both are written by Java: big endian, strings as a 16-bit byte count and UTF-8. A frame of one tracker is a
word of flags and then what they announce. ``slimevr_walk.py`` reads the bytes; this file makes frames of
them.

Most trackers of SlimeVR turn only. Such samples keep their rotation, have no position, are not valid, and
are FALLBACK_ROTATION_ONLY. Axes are taken to be OpenVR's, as those of the poses that SlimeVR gets from
SteamVR.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from recordings.base import Recording, RecordingInfo
from recordings.importers.axes import device_for_role, is_measured, nanoseconds
from recordings.importers.blocks import Sequencer
from recordings.importers.slimevr_samples import Track
from recordings.importers.slimevr_walk import (
    Contents,
    looks_like_pfr,
    looks_like_pfs,
    walk_pfr,
    walk_pfs,
)
from recordings.spool import Spool
from vrik import quat
from vrik.arrays import Bools, Floats
from vrik.body import EYE_HEIGHT_SHARE
from vrik.errors import DamagedRecordingError
from vrik.frames import TrackedDevice, TrackingResult

ASSUMED_INTERVAL_S = 0.02
"""PFR does not state its rate; SlimeVR records at 50 Hz unless it is told otherwise."""

PLACES = (
    "head", "neck", "upper_chest", "chest", "waist", "hip", "left_upper_leg", "right_upper_leg",
    "left_lower_leg", "right_lower_leg", "left_foot", "right_foot", "left_lower_arm", "right_lower_arm",
    "left_upper_arm", "right_upper_arm", "left_hand", "right_hand", "left_shoulder", "right_shoulder",
)  # fmt: skip
"""SlimeVR's body places by stored number; fingers, from 20 on, are not worn by vrik."""

ROLE_OF_PLACE = {
    "head": "head",
    "upper_chest": "chest",
    "chest": "chest",
    "hip": "waist",
    "waist": "waist",
    "left_upper_leg": "left_knee",
    "right_upper_leg": "right_knee",
    "left_foot": "left_foot",
    "right_foot": "right_foot",
    "left_upper_arm": "left_elbow",
    "right_upper_arm": "right_elbow",
    "left_hand": "left_hand",
    "right_hand": "right_hand",
    "left_shoulder": "left_shoulder",
    "right_shoulder": "right_shoulder",
}
"""Of two places with one role the first that is listed has it. Neck, lower arms and lower legs have none."""

BLOCK_SAMPLES = 1 << 15
"""How many samples of all trackers together are worked on at a time."""

STATURE_RANGE_M = (1.2, 2.3)
STATURE_AGREES_M = 0.1
"""How far the stated height of the headset may be from where it was seen."""


class SlimeVrImporter:
    """Reads ``.pfr`` and ``.pfs``."""

    name = "slimevr"
    summary = "SlimeVR pose recordings, PFR and PFS"
    suffixes = (".pfr", ".pfs")

    def recognises(self, head: bytes, path: Path) -> bool:
        """By the first tracker's header (PFR), or by packets that follow each other (PFS)."""
        return looks_like_pfr(head) or looks_like_pfs(head)

    def open(self, path: Path) -> Recording:
        """Read the whole file; a cut or damaged one gives every complete frame before the fault.

        Raises:
            DamagedRecordingError: If there is no complete frame.
        """
        with path.open("rb") as stream:
            pfs = looks_like_pfs(stream.read(1 << 16))
        contents = walk_pfs(path) if pfs else walk_pfr(path)
        if contents.fault and not any(track.count for track in contents.samples.tracks):
            raise DamagedRecordingError(
                f"{path.name} holds no complete frame ({contents.fault}); copy it again from its source"
            )
        counts: dict[str, int] = {}
        notes: list[str] = []
        if contents.fault:
            counts["bytes left over"] = contents.size - contents.end
            notes.append(f"the file is cut or damaged: {contents.fault}; what is before that was read")
        elif contents.end < contents.size:
            counts["bytes left over"] = contents.size - contents.end
            notes.append("there are bytes after the last frame; they were not read")
        if contents.lost:
            counts["frames lost"] = contents.lost
        devices = _devices(contents.samples.tracks, notes)
        interval_s = contents.interval_s
        if not interval_s:
            interval_s = ASSUMED_INTERVAL_S
            notes.append(
                f"the file does not state its rate; taken as {1.0 / interval_s:g} Hz, SlimeVR's usual one"
            )
        frames, head_heights = _frames(contents, devices, interval_s, counts, notes)
        stature_m = _stature(contents, head_heights, notes)
        info = RecordingInfo(path, self.name, devices, stature_m, counts=counts, notes=tuple(notes))
        return frames.recording(info)


def _devices(tracks: list[Track], notes: list[str]) -> tuple[TrackedDevice, ...]:
    """A device for each tracker, with the role of the place it says it is worn at."""
    places = [track.place.lower().removeprefix("body:") for track in tracks]
    places = [PLACES[int(p)] if p.isdecimal() and int(p) < len(PLACES) else p for p in places]
    taken: dict[str, int] = {}
    for place, role in ROLE_OF_PLACE.items():
        for i, worn in enumerate(places):
            if worn == place:
                taken.setdefault(role, i)
    role_of = {i: role for role, i in taken.items()}
    devices, serials = [], set()
    for i, track in enumerate(tracks):
        serial = track.name or f"tracker{i}"
        while serial in serials:
            serial += "-2"
        serials.add(serial)
        devices.append(device_for_role(role_of.get(i, ""), serial, places[i]))
        if places[i] and i not in role_of:
            why = (
                "another tracker is worn there" if places[i] in ROLE_OF_PLACE else "vrik wears nothing there"
            )
            notes.append(f"{serial} is at {places[i]} and gets no role: {why}")
        if track.moved_place:
            notes.append(f"{serial} changes its place on the body within the file; the first one is used")
    return tuple(devices)


def _frames(
    contents: Contents,
    devices: tuple[TrackedDevice, ...],
    interval_s: float,
    counts: dict[str, int],
    notes: list[str],
) -> tuple[Spool, Floats]:
    """A row for each frame number that appears, and the heights of the head where it was seen [m].

    Numbers that are left out leave a gap in time.
    """
    numbers = contents.samples.numbers()
    time_ns, _ = nanoseconds(np.asarray(numbers * interval_s, np.float64))
    spool, sequencer = Spool(), Sequencer(devices)
    head = next((i for i, d in enumerate(devices) if d.role == "head"), None)
    heights = [np.zeros(0)]
    met = dict.fromkeys(("samples without data", "samples that only turn", "placeholder samples"), 0)
    ever_turned, ever_valid = np.zeros(len(devices), np.bool_), np.zeros(len(devices), np.bool_)
    step = max(1, BLOCK_SAMPLES // len(devices))
    for begin in range(0, len(numbers), step):
        block = slice(begin, begin + step)
        values = contents.samples.of_frames(numbers[block])
        position, rotation = values[..., 4:], values[..., [3, 0, 1, 2]]
        valid = is_measured(position, rotation)
        unplaced = np.isnan(position).all(axis=-1)
        turned: Bools = np.asarray(unplaced & quat.is_rotation(rotation))
        silent: Bools = np.asarray(unplaced & np.isnan(rotation).all(axis=-1))
        frames = sequencer.sequence(time_ns[block], position, rotation, valid | turned)
        result = np.where(turned, TrackingResult.FALLBACK_ROTATION_ONLY, frames.result).astype(np.int64)
        spool.add(replace(frames, valid=valid, result=result))
        for name, what in zip(met, (silent, turned, ~valid & ~turned & ~silent), strict=True):
            met[name] += int(np.count_nonzero(what))
        ever_turned |= turned.any(axis=0)
        ever_valid |= valid.any(axis=0)
        if head is not None:
            heights.append(position[valid[:, head], head, 1])
    counts.update({name: count for name, count in met.items() if count})
    only = [d.serial for i, d in enumerate(devices) if ever_turned[i] and not ever_valid[i]]
    if only:
        notes.append(f"no position, and so of no use for solving: {', '.join(only)}")
    if holes := int(np.count_nonzero(np.diff(numbers) > 1)):
        counts["holes in the frame numbers"] = holes
    return spool, np.concatenate(heights)


def _stature(contents: Contents, heights: Floats, notes: list[str]) -> float | None:
    """From the headset's height that SlimeVR was set to, when the headset was seen there. [m]"""
    if contents.hmd_height_m is None:
        return None
    eyes_m = contents.hmd_height_m - contents.floor_height_m
    notes.append(f"SlimeVR was set to a headset {eyes_m:.2f} m above the floor")
    stature_m = eyes_m / EYE_HEIGHT_SHARE
    low, high = STATURE_RANGE_M
    if not low <= stature_m <= high:
        return None
    if len(heights) and abs(np.percentile(heights, 95) - contents.floor_height_m - eyes_m) > STATURE_AGREES_M:
        notes.append("that does not fit where the headset was seen, and is not used as the person's height")
        return None
    return stature_m
