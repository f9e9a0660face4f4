"""A-Frame avatar recording: JSON with a track of poses for the camera and for each controller.

``{track: {"poses": [{position {x, y, z}, rotation {x, y, z}, timestamp}], "events": [...]}}``, sometimes
inside ``{"avatar": ..., "recording": {...}}``. Metres, degrees with R = Ry * Rx * Rz, milliseconds of the
page's clock; OpenVR's axes. Tracks are joined on time, so one that goes on longer than the others keeps its
end.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

from recordings.base import LoadedRecording, Recording, RecordingInfo
from recordings.importers.axes import device_for_role, is_measured, nanoseconds, tracker_sequence
from recordings.importers.json_text import CUT_NOTE, read_json, read_text, vector
from recordings.importers.names import role_of_name
from recordings.importers.tracks import Track, join_on_time
from vrik import quat
from vrik.arrays import Bools, Floats, Points
from vrik.errors import DamagedRecordingError, RecordingError

LEFT_BEHIND_M = 0.10
"""A controller that never rises higher above the floor than this is none that somebody holds. [m]"""

LEFT_BEHIND_BOX_M = 0.05
"""And it stays inside a box of this size, without the outermost twentieth at either end. [m]"""

_POSES = re.compile(r'"poses"\s*:\s*\[')
_WRAPPED = re.compile(r'"recording"\s*:\s*\{')
_DEPTH = 3  # brackets open around a pose: {track {poses [ ; one more in the wrapped form


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
        """Read it whole; of a cut file, all that stands before the cut.

        A hand's track that lies still at the scene's origin in all of the file is not tracked.

        Raises:
            DamagedRecordingError: If it is broken before its first pose.
            RecordingError: If it has no track of poses.
        """
        text = read_text(path)
        data, cut = read_json(path, text, _DEPTH + bool(_WRAPPED.search(text)))
        recording = data.get("recording", data) if isinstance(data, dict) else None
        tracks = _pose_lists(recording)
        if not tracks and cut:
            raise DamagedRecordingError(
                f"{path.name} is cut before its first pose; copy it again from its source"
            )
        if not tracks:
            raise RecordingError(
                f'{path.name} has no track with a list "poses"; expected '
                '{"camera": {"poses": [...]}, ...} as the A-Frame avatar recorder writes it'
            )
        counts: dict[str, int] = {}
        notes = [CUT_NOTE] if cut else []
        page_ms = [np.array([_stamp(pose) for pose in poses]) for poses in tracks.values()]
        known = np.concatenate([ms[np.isfinite(ms)] for ms in page_ms])
        start_ms = float(known.min()) if len(known) else 0.0
        if len(known):
            notes.append(f"times begin at zero, where the page's clock was at {start_ms:.1f} ms")
        read, replaced = [], 0
        for poses, ms in zip(tracks.values(), page_ms, strict=True):
            with np.errstate(over="ignore"):
                time_ns, wrong = nanoseconds((ms - start_ms) * 1e-3)
            replaced += wrong
            read.append(Track(time_ns, *_poses(poses)))
        if replaced:
            counts["times out of order"] = replaced
            notes.append(f"times that are unreadable or step back: {replaced}; they repeat the time before")
        frames = join_on_time(read)
        if frames.moved:
            counts["poses moved in time"] = frames.moved
            notes.append(
                f"tracks have times of their own: {frames.moved} poses are moved to the nearest pose of the "
                f"longest track, by {1000.0 * frames.farthest_s:.1f} ms at most"
            )
        devices = tuple(device_for_role(role_of_name(name), name) for name in tracks)
        measured = is_measured(frames.position, frames.rotation) & frames.present
        valid = measured & ~_left_behind(
            [d.role for d in devices], frames.position, measured, counts, notes, list(tracks)
        )
        _count_missing(frames.present, measured, list(tracks), counts, notes)
        sequence = tracker_sequence(frames.time_ns, devices, frames.position, frames.rotation, valid)
        info = RecordingInfo(path, self.name, devices, counts=counts, notes=tuple(notes))
        return LoadedRecording(info, sequence)


def _pose_lists(recording: Any) -> dict[str, list[Any]]:
    """Track name to its poses."""
    if not isinstance(recording, dict):
        return {}
    return {
        name: track["poses"]
        for name, track in recording.items()
        if isinstance(track, dict) and isinstance(track.get("poses"), list)
    }


def _stamp(pose: Any) -> float:
    return vector(pose, ("timestamp",))[0] if isinstance(pose, dict) else float("nan")


def _poses(poses: list[Any]) -> tuple[Points, Floats]:
    """(n, 3) positions and (n, 4) rotations; NaN where a pose lacks something."""
    known = [pose if isinstance(pose, dict) else {} for pose in poses]
    place = np.array([vector(pose.get("position"), "xyz") for pose in known]).reshape(-1, 3)
    angles = np.array([vector(pose.get("rotation"), "xyz") for pose in known]).reshape(-1, 3)
    with np.errstate(invalid="ignore"):  # an infinite angle has no sine, and is no rotation
        return place, quat.from_euler("yxz", np.radians(angles[:, [1, 0, 2]]))


def _left_behind(
    roles: list[str],
    position: Points,
    measured: Bools,
    counts: dict[str, int],
    notes: list[str],
    names: list[str],
) -> Bools:
    """(n, k) samples of hands that were never tracked, and stayed where the scene had put them."""
    found = np.zeros_like(measured)
    for i, role in enumerate(roles):
        p = position[measured[:, i], i]
        if role not in ("left_hand", "right_hand") or len(p) < 2:
            continue
        low, high = np.percentile(p, [5.0, 95.0], axis=0)
        if p[:, 1].max() < LEFT_BEHIND_M and np.max(high - low) < LEFT_BEHIND_BOX_M:
            found[:, i] = measured[:, i]
            counts["placeholder samples"] = counts.get("placeholder samples", 0) + len(p)
            notes.append(
                f"{names[i]} lies still {np.median(p[:, 1]):.2f} m above the floor in all of the file: "
                "it was not tracked, and stands where the scene had put it; its poses are marked not valid"
            )
    return found


def _count_missing(
    present: Bools, measured: Bools, names: list[str], counts: dict[str, int], notes: list[str]
) -> None:
    if missing := int(np.count_nonzero(~present)):
        counts["samples not tracked"] = missing
        short = [f"{name} {n}" for name, n in zip(names, (~present).sum(axis=0), strict=True) if n]
        notes.append(f"tracks differ in length; frames without a pose: {', '.join(short)}")
    if wrong := int(np.count_nonzero(present & ~measured)):
        counts["blank samples"] = wrong
        notes.append(f"poses without a usable position or rotation: {wrong}; they are marked not valid")
