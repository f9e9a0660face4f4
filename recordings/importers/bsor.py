"""BSOR, Beat Saber Open Replay: head and saber poses of one song.

Little endian, packed. The frames are one numpy structured array, so a file is read at the speed of memory.
Only the sections that hold motion are read (0 and 1). The player's name and id are personal: they are
skipped, never shown. Layout: the format's public description.

The file's time is song time, which stands still before the start and in pauses while the player moves on.
Each frame that repeats the time before gets one usual step of its own, and all later ones come later by as
much: times increase strictly, and a movement made in a pause keeps its speed. How many there were, and by how
much the clock has then moved away from song time, is told.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from recordings.base import Recording, RecordingInfo, reading
from recordings.importers.axes import (
    device_for_role,
    is_measured,
    nanoseconds,
    openvr_from_unity,
    tell_sign_flips,
)
from recordings.importers.frame_blocks import FrameBlocks, spans
from vrik import quat
from vrik.arrays import Ints
from vrik.body import EYE_HEIGHT_SHARE
from vrik.errors import DamagedRecordingError, UnsupportedVersionError

MAGIC = bytes.fromhex("693d2d44")
VERSION = 1
LONGEST_NAME = 100
"""Bytes a string may have and still be believed to be one."""

LONGEST_STEP_NS = 1_000_000_000
"""A longer usual step is no frame's; damaged times can state years. [ns]"""

NO_STEP_NS = 11_111_111
"""The step between frames when song time never moves: that of a headset with 90 Hz. [ns]"""

STATURE_RANGE_M = (1.2, 2.3)
STATURE_AGREES_M = 0.04
"""How far the stated height may be from what the head's height tells. The game adds about 10 cm of its own
to the height of the eyes, and players type in what they like."""

_POSE = np.dtype([("position", "<f4", 3), ("rotation", "<f4", 4)])
FRAME = np.dtype([("time", "<f4"), ("fps", "<i4"), ("poses", _POSE, 3)])
"""One frame, 92 bytes: song time [s], displayed fps, then head, left and right hand (position, x y z w)."""

_ROLES = ("head", "left_hand", "right_hand")
_STRINGS = (
    "mod version", "game version", "start time", "player id", "player name", "platform", "tracking system",
    "hmd", "controller", "map hash", "song", "mapper", "difficulty",
)  # fmt: skip
_MAY_BE_SHORT = ("player name", "song", "mapper")


@dataclass(frozen=True, slots=True)
class _Header:
    """What is used of section 0."""

    hmd: str
    controller: str
    modifiers: str
    player_height_m: float
    speed: float
    end: int


class BsorImporter:
    """Reads ``.bsor``."""

    name = "bsor"
    summary = "Beat Saber Open Replay: head and both sabers"
    suffixes = (".bsor",)

    def recognises(self, head: bytes, path: Path) -> bool:
        """By the four bytes the file begins with."""
        return head.startswith(MAGIC)

    def open(self, path: Path) -> Recording:
        """Read info and frames; a file cut inside the frames gives every complete frame before the cut.

        Raises:
            DamagedRecordingError: If it ends, or makes no sense, before the first frame.
            UnsupportedVersionError: If it states another format version than 1.
        """
        data = path.read_bytes()
        header = _read_header(data, path)
        frames, stated = _read_frames(data, header.end, path)
        counts: dict[str, int] = {}
        notes = ["the hands are the game's saber poses, not raw controller poses"]
        if stated > len(frames):
            counts["frames lost"] = stated - len(frames)
            notes.append(f"the file is cut: it states {stated} frames and holds {len(frames)}")

        devices = tuple(
            device_for_role(role, f"bsor-{role}", header.hmd if role == "head" else "saber")
            for role in _ROLES
        )
        blocks, heights, placeholders, partly = FrameBlocks(devices), [np.zeros(0)], 0, 0
        for begin, end in spans(len(frames)):
            poses = frames["poses"][begin:end]
            with np.errstate(invalid="ignore", over="ignore"):
                position, rotation = openvr_from_unity(
                    poses["position"], quat.wxyz_from_xyzw(poses["rotation"])
                )
            valid = is_measured(position, rotation)
            blocks.add(position, rotation, valid)
            heights.append(position[valid[:, 0], 0, 1])
            whole = int(np.count_nonzero(~valid.any(axis=1)))
            placeholders += whole
            partly += int(np.count_nonzero(~valid)) - 3 * whole
            reading(end * FRAME.itemsize, len(frames) * FRAME.itemsize)
        with np.errstate(invalid="ignore"):  # a damaged time may be no number at all
            song_ns, replaced = nanoseconds(frames["time"])
        if replaced:
            counts["times out of order"] = replaced
            notes.append(
                f"song times that are unreadable or step back: {replaced}; they are taken to stand still"
            )
        time_ns, repeated, step_ns = strictly_increasing(song_ns)
        if repeated:
            counts["repeated times"] = repeated
            notes.append(
                f"frames in which song time stands still (before the start, or in a pause): {repeated}; each "
                f"comes {step_ns * 1e-6:.1f} ms after the one before, so times end "
                f"{repeated * step_ns * 1e-9:.2f} s after song time"
            )
        if placeholders:
            counts["placeholder frames"] = placeholders
            notes.append(f"placeholder frames that hold no pose: {placeholders}; they are marked not valid")
        if partly:
            counts["placeholder samples"] = partly
        tell_sign_flips(blocks.flips, counts, notes)
        if _other_speed(header):
            notes.append(
                "the song was not played at normal speed: times and rate are song time, not clock time"
            )

        if header.controller:
            notes.append(f"controllers, as the file names them: {header.controller}")
        head_m = np.concatenate(heights)
        stature_m = _stature(header.player_height_m, float(np.percentile(head_m, 95)) if len(head_m) else 0.0)
        if stature_m is None and header.player_height_m > 0.0:
            notes.append(
                f"the stated player height, {header.player_height_m:.2f} m, does not fit the head's height"
            )
        info = RecordingInfo(path, self.name, devices, stature_m, counts=counts, notes=tuple(notes))
        return blocks.recording(info, time_ns)


def strictly_increasing(song_ns: Ints) -> tuple[Ints, int, int]:
    """Times in which a frame that repeats the time before comes one usual step after it.

    Args:
        song_ns: (n,) non-decreasing. [ns]

    Returns:
        (n,) times that increase strictly [ns]; how many frames repeated a time; the step each of them got,
        the median of those that moved, if frames can be that far apart [ns].
    """
    steps = np.diff(song_ns)
    moving = steps[steps > 0]
    step_ns = max(1, int(np.median(moving))) if len(moving) else NO_STEP_NS
    if step_ns > LONGEST_STEP_NS:
        step_ns = NO_STEP_NS
    repeats = np.cumsum(np.concatenate([[0], steps == 0])[: len(song_ns)])
    return song_ns + repeats * step_ns, int(repeats[-1]) if len(repeats) else 0, step_ns


def _read_header(data: bytes, path: Path) -> _Header:
    """Section 0, up to the tag of section 1."""
    if len(data) < 6 or not data.startswith(MAGIC):
        raise DamagedRecordingError(
            f"{path.name} ends inside the BSOR header; copy or download it again from its source"
        )
    if data[4] != VERSION:
        raise UnsupportedVersionError(
            f"{path.name} is BSOR version {data[4]}; this vrik reads version {VERSION}: look for a newer one"
        )
    try:
        if data[5] != 0:
            raise ValueError(f"section {data[5]} where the info section should be")
        at = 6
        texts: dict[str, str] = {}
        for field in _STRINGS:
            texts[field], at = _string(data, at, may_be_short=field in _MAY_BE_SHORT)
        at += 4  # score
        for field in ("mode", "environment", "modifiers"):
            texts[field], at = _string(data, at)
        _, _, height, _, _, speed = struct.unpack_from("<fBffff", data, at)
    except (struct.error, ValueError) as fault:
        raise DamagedRecordingError(
            f"{path.name} is broken inside the BSOR info section, before its first frame ({fault}); "
            "copy or download it again from its source"
        ) from fault
    height = float(height) if np.isfinite(height) else 0.0
    return _Header(texts["hmd"], texts["controller"], texts["modifiers"], height, float(speed), at + 21)


def _string(data: bytes, at: int, may_be_short: bool = False) -> tuple[str, int]:
    """A counted string and where it ends.

    Old writers counted UTF-16 units and wrote UTF-8 bytes, so the count may be too small: then the string
    goes on until what follows can be the count of the next one.
    """
    (stated,) = struct.unpack_from("<i", data, at)
    at += 4
    if stated < 0 or stated > len(data) - at:
        raise ValueError(f"a string of {stated} bytes where {len(data) - at} are left")
    size = stated
    if may_be_short:
        longest = min(3 * stated, len(data) - at - 4)  # UTF-8 needs at most 3 bytes for one UTF-16 unit
        size = next((n for n in range(stated, longest + 1) if _can_be_count(data, at + n)), stated)
    return data[at : at + size].decode("utf-8", errors="replace"), at + size


def _can_be_count(data: bytes, at: int) -> bool:
    (count,) = struct.unpack_from("<i", data, at)
    return bool(0 <= count <= LONGEST_NAME)


def _read_frames(data: bytes, at: int, path: Path) -> tuple[np.ndarray, int]:
    """The complete frames of section 1, and how many the file says there are."""
    left = len(data) - at - 5
    if left < 0 or data[at] != 1:
        raise DamagedRecordingError(
            f"{path.name} has no frame section after the BSOR info section; copy or download it again"
        )
    (stated,) = struct.unpack_from("<i", data, at + 1)
    n = min(stated, left // FRAME.itemsize)
    if stated < 0 or (n == 0 and stated > 0):
        raise DamagedRecordingError(
            f"{path.name} states {stated} frames but {left} bytes are left, not enough for one; "
            "copy or download it again"
        )
    return np.frombuffer(data, FRAME, n, at + 5), stated


def _other_speed(header: _Header) -> bool:
    modifiers = {m.strip().upper() for m in header.modifiers.split(",")}
    practised = 0.0 < header.speed < math.inf and abs(header.speed - 1.0) > 1e-3
    return practised or bool(modifiers & {"SS", "FS", "SF"})


def _stature(stated_m: float, head_m: float) -> float | None:
    """The stated height, when a person can have it and the eyes were seen where it puts them."""
    low, high = STATURE_RANGE_M
    agrees = abs(head_m / EYE_HEIGHT_SHARE - stated_m) < STATURE_AGREES_M
    return stated_m if low <= stated_m <= high and agrees else None
