"""A-Frame avatar recording: JSON with a track of poses for the camera and for each controller.

``{track: {"poses": [{position {x, y, z}, rotation {x, y, z}, timestamp}], "events": [...]}}``, sometimes
inside ``{"avatar": ..., "recording": {...}}``. Metres, degrees with R = Ry * Rx * Rz, milliseconds of the
page's clock; OpenVR's axes. Tracks are joined on time, so one that goes on longer than the others keeps its
end.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from recordings.base import Recording, RecordingInfo
from recordings.importers.axes import device_for_role, is_measured, nanoseconds
from recordings.importers.frame_blocks import FrameBlocks, spans
from recordings.importers.json_text import CUT_NOTE, BrokenJsonError, JsonStream, no_row, number, vector
from recordings.importers.names import role_of_name
from recordings.importers.samples_aside import MOST_DEVICES, Samples, too_many_devices
from recordings.importers.tracks import join_on_time
from vrik import quat
from vrik.arrays import Floats, Ints, Points, Quats
from vrik.errors import RecordingError

LEFT_BEHIND_M = 0.10
"""A controller that never rises higher above the floor than this is none that somebody holds. [m]"""

LEFT_BEHIND_BOX_M = 0.05
"""And it stays inside a box of this size, without the outermost twentieth at either end. [m]"""

_POSES = re.compile(r'"poses"\s*:\s*\[')


@dataclass(slots=True, eq=False)
class _Track:
    """The poses of one device as they are in the file: a time [ms], a position [m] and three angles [deg]."""

    page_ms: array[float] = field(default_factory=lambda: array("d"))
    poses: Samples = field(default_factory=lambda: Samples(6))

    def add(self, pose: Any) -> None:
        known = pose if isinstance(pose, dict) else {}
        self.poses.add(
            len(self.page_ms), vector(known.get("position"), "xyz") + vector(known.get("rotation"), "xyz")
        )
        self.page_ms.append(number(known.get("timestamp")))


class AframeImporter:
    """Reads the avatar recording ``.json``."""

    name = "aframe"
    summary = "A-Frame avatar recording: head and controllers (JSON)"
    suffixes = (".json",)

    def recognises(self, head: bytes, path: Path) -> bool:
        """By an object in which a list ``poses`` has members with a rotation and a timestamp."""
        text = head.decode("utf-8-sig", errors="replace")
        named = all(f'"{key}"' in text for key in ("position", "rotation", "timestamp"))
        return text.lstrip().startswith("{") and named and _POSES.search(text) is not None

    def open(self, path: Path) -> Recording:
        """Read it to the end; of a cut file, all that stands before the cut.

        A hand's track that lies still at the scene's origin in all of the file is not tracked.

        Raises:
            DamagedRecordingError: If it is broken before its first pose.
            RecordingError: If it has no track of poses.
        """
        tracks, fault = _read(path)
        if not tracks and fault is not None:
            raise no_row(path, fault)
        if not tracks:
            raise RecordingError(
                f'{path.name} has no track with a list "poses"; expected '
                '{"camera": {"poses": [...]}, ...} as the A-Frame avatar recorder writes it'
            )
        counts: dict[str, int] = {}
        notes = [CUT_NOTE] if fault is not None else []
        names = list(tracks)
        notes.extend(_absent(names))
        frames = join_on_time(_times(tracks, counts, notes))
        if frames.moved:
            counts["poses moved in time"] = frames.moved
            notes.append(
                f"tracks have times of their own: {frames.moved} poses are moved to the nearest pose of the "
                f"longest track, by {1000.0 * frames.farthest_s:.1f} ms at most"
            )
        devices = tuple(device_for_role(role_of_name(name), name) for name in names)
        left_behind = np.array(
            [
                device.role in ("left_hand", "right_hand") and _left_behind(track.poses, name, counts, notes)
                for device, (name, track) in zip(devices, tracks.items(), strict=True)
            ],
            np.bool_,
        )
        blocks = FrameBlocks(devices)
        missing, wrong = np.zeros(len(names), np.int64), 0
        for begin, end in spans(len(frames.time_ns)):
            both = [
                track.poses.of_frames(begin, end, at)
                for track, at in zip(tracks.values(), frames.frames, strict=True)
            ]
            present = np.stack([here for _, here in both], axis=1)
            position, rotation = _poses(np.stack([numbers for numbers, _ in both], axis=1))
            measured = is_measured(position, rotation) & present
            missing += (~present).sum(axis=0)
            wrong += int(np.count_nonzero(present & ~measured))
            blocks.add(position, rotation, measured & ~left_behind)
        _tell_missing(missing, wrong, names, counts, notes)
        info = RecordingInfo(path, self.name, devices, counts=counts, notes=tuple(notes))
        return blocks.recording(info, frames.time_ns)


def _read(path: Path) -> tuple[dict[str, _Track], BrokenJsonError | None]:
    """Track name to its poses, and why reading stopped before the end."""
    bare: dict[str, _Track] = {}
    wrapped: dict[str, _Track] | None = None
    with JsonStream(path) as stream:
        try:
            if stream.peek() != "{":
                stream.skip()
            else:
                for key in stream.members():
                    if key != "recording":
                        _read_track(stream, key, bare)
                        continue
                    wrapped = {}
                    if stream.peek() != "{":
                        stream.skip()
                        continue
                    for name in stream.members():
                        _read_track(stream, name, wrapped)
            stream.end()
        except BrokenJsonError as fault:
            tracks = bare if wrapped is None else wrapped
            return {name: track for name, track in tracks.items() if track.page_ms}, fault
    return bare if wrapped is None else wrapped, None


def _read_track(stream: JsonStream, name: str, tracks: dict[str, _Track]) -> None:
    """Add what comes next to the tracks, if it is one."""
    tracks.pop(name, None)
    if stream.peek() != "{":
        stream.skip()
        return
    for key in stream.members():
        if key != "poses":
            stream.skip()
            continue
        tracks.pop(name, None)
        if stream.peek() != "[":
            stream.skip()
            continue
        if len(tracks) == MOST_DEVICES:
            raise too_many_devices(stream.name)
        track = tracks[name] = _Track()
        for pose in stream.values():
            track.add(pose)


def _times(tracks: dict[str, _Track], counts: dict[str, int], notes: list[str]) -> list[Ints]:
    """Times of each track's poses from the first pose of all. [ns]"""
    stamps = [np.array(track.page_ms) for track in tracks.values()]
    starts = [float(ms[np.isfinite(ms)].min()) for ms in stamps if np.isfinite(ms).any()]
    start_ms = min(starts, default=0.0)
    if starts:
        notes.append(f"times begin at zero, where the page's clock was at {start_ms:.1f} ms")
    times, replaced = [], 0
    for ms in stamps:
        with np.errstate(over="ignore"):
            time_ns, wrong = nanoseconds((ms - start_ms) * 1e-3)
        replaced += wrong
        times.append(time_ns)
    if replaced:
        counts["times out of order"] = replaced
        notes.append(f"times that are unreadable or step back: {replaced}; they repeat the time before")
    return times


def _poses(numbers: Floats) -> tuple[Points, Quats]:
    """(..., 3) positions and (..., 4) rotations of (..., 6) numbers; NaN where a pose lacks something."""
    with np.errstate(invalid="ignore"):  # an infinite angle has no sine, and is no rotation
        return numbers[..., :3], quat.from_euler("yxz", np.radians(numbers[..., [4, 3, 5]]))


def _left_behind(poses: Samples, name: str, counts: dict[str, int], notes: list[str]) -> bool:
    """Whether a hand was never tracked, and stayed where the scene had put it."""
    seen: list[Points] = []
    for begin, end in spans(len(poses)):
        position, rotation = _poses(poses.part(begin, end))
        seen.append(position[is_measured(position, rotation)])
        if np.any(seen[-1][:, 1] >= LEFT_BEHIND_M):
            return False
    p = np.concatenate([np.zeros((0, 3)), *seen])
    if len(p) < 2:
        return False
    low, high = np.percentile(p, [5.0, 95.0], axis=0)
    if np.max(high - low) >= LEFT_BEHIND_BOX_M:
        return False
    counts["placeholder samples"] = counts.get("placeholder samples", 0) + len(p)
    notes.append(
        f"{name} lies still {np.median(p[:, 1]):.2f} m above the floor in all of the file: "
        "it was not tracked, and stands where the scene had put it; its poses are marked not valid"
    )
    return True


def _absent(names: Sequence[str]) -> list[str]:
    """A sentence about head and hands that have no track; none when all three have one."""
    roles = {role_of_name(name) for name in names}
    absent = [role.replace("_", " ") for role in ("head", "left_hand", "right_hand") if role not in roles]
    return [f"no track for: {', '.join(absent)}; it has {', '.join(names)}"] if absent else []


def _tell_missing(
    missing: Ints, wrong: int, names: Sequence[str], counts: dict[str, int], notes: list[str]
) -> None:
    if missing.any():
        counts["samples not tracked"] = int(missing.sum())
        short = [f"{name} {n}" for name, n in zip(names, missing, strict=True) if n]
        notes.append(f"tracks differ in length; frames without a pose: {', '.join(short)}")
    if wrong:
        counts["blank samples"] = wrong
        notes.append(f"poses without a usable position or rotation: {wrong}; they are marked not valid")
