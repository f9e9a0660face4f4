"""The accuracy harness's trackers file, ``.npz``: device poses made from motion capture.

Arrays ``t, names, pos, rot, valid`` and optionally ``height_m, calib_pos, calib_rot, skeleton_tpose, meta``;
metres, seconds, OpenVR axes, quaternions (w, x, y, z). Nothing in it is ever unpickled.
"""

from __future__ import annotations

import json
import zipfile
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np

from recordings.base import Recording, RecordingInfo, reading
from recordings.importers.axes import is_measured, nanoseconds, rows_of, tell_sign_flips
from recordings.importers.frame_blocks import FrameBlocks
from recordings.importers.harness import frames_of, harness_devices, skeleton_of, stature_of, tell
from recordings.importers.npz_members import Member
from vrik.arrays import Bools
from vrik.errors import DamagedRecordingError, RecordingError, UnknownFormatError
from vrik.frames import TrackedDevice, TrackerSequence

_NEEDED = ("t", "names", "pos", "rot")
_OPTIONAL = ("valid", "height_m", "calib_pos", "calib_rot", "skeleton_tpose", "meta")
_LONG = ("pos", "rot", "valid")
"""Read some rows at a time."""

BLOCK_SAMPLES = 1 << 15
"""How many samples of all devices together are read at a time."""

DEFAULT_RATE_HZ = 60.0
"""Rate of the calibration frames when ``meta`` does not state one."""


class HarnessNpzImporter:
    """Reads trackers ``.npz``."""

    name = "harness-npz"
    summary = "trackers file of the accuracy harness (numpy archive)"
    suffixes = (".npz",)

    def recognises(self, head: bytes, path: Path) -> bool:
        """Any numpy archive: a zip whose first member is an ``.npy``. What is in it, ``open`` tells."""
        if not head.startswith(b"PK\x03\x04") or len(head) < 30:
            return False
        return head[30 : 30 + int.from_bytes(head[26:28], "little")].endswith(b".npy")

    def open(self, path: Path) -> Recording:
        """Read it block by block.

        Raises:
            UnknownFormatError: If the archive holds something else; the message says what.
            DamagedRecordingError: If the archive is cut or an array cannot be read.
            RecordingError: If an array has the wrong shape.
        """
        try:
            with zipfile.ZipFile(path) as archive:
                return _read(path, archive)
        except RecordingError:
            raise
        except Exception as fault:  # zipfile, zlib and numpy have a dozen kinds of error for broken archives
            raise DamagedRecordingError(
                f"{path.name} is a numpy archive that cannot be read ({_one_line(fault)}); "
                "it may be cut, or hold Python objects, which are never loaded: write it again as plain "
                "arrays"
            ) from fault


def _read(path: Path, archive: zipfile.ZipFile) -> Recording:
    """The recording in an open archive."""
    names = [name.removesuffix(".npy") for name in archive.namelist()]
    missing = [name for name in _NEEDED if name not in names]
    if missing:
        raise UnknownFormatError(_what_it_is(path, names, missing))
    members = {name: Member(archive, name) for name in (*_NEEDED, *_OPTIONAL) if name in names}
    arrays = {name: member.whole() for name, member in members.items() if name not in _LONG}
    devices = harness_devices([str(n) for n in np.ravel(arrays["names"])], path)
    k = len(devices)
    time_s = rows_of((-1,), arrays["t"])
    shapes = {"pos": (3,), "rot": (4,), "valid": ()}
    fits = time_s is not None and all(
        members[name].shape == (len(time_s), k, *inner) and members[name].dtype.kind in "biuf"
        for name, inner in shapes.items()
        if name in members
    )
    if time_s is None or not fits:
        told = ", ".join(f"{name} {members[name].shape}" for name in (*_NEEDED, "valid") if name in members)
        raise RecordingError(
            f"{path.name}: the arrays do not fit together ({told}); "
            "expected t (T,), names (K,), pos (T, K, 3), rot (T, K, 4), valid (T, K)"
        )
    counts: dict[str, int] = {}
    notes: list[str] = []
    blocks = FrameBlocks(devices)
    step = max(1, BLOCK_SAMPLES // k)
    stated_rows = members["valid"].rows(step) if "valid" in members else repeat(None)
    lost = wrong = done = 0
    for position, rotation, known in zip(
        members["pos"].rows(step), members["rot"].rows(step), stated_rows, strict=False
    ):
        stated: Bools = np.ones((len(position), k), np.bool_) if known is None else np.asarray(known == 1.0)
        valid = stated & is_measured(position, rotation)
        lost += int(np.count_nonzero(~stated))
        wrong += int(np.count_nonzero(stated & ~valid))
        blocks.add(position, rotation, valid)
        done += len(position)
        reading(done, len(time_s))
    time_ns, replaced = nanoseconds(time_s)
    tell(replaced, lost, wrong, counts, notes)
    tell_sign_flips(blocks.flips, counts, notes)
    info = RecordingInfo(
        path,
        HarnessNpzImporter.name,
        devices,
        stature_of(arrays.get("height_m")),
        _calibration(path, arrays, devices),
        skeleton_of(arrays.get("skeleton_tpose"), path),
        counts,
        tuple(notes),
    )
    return blocks.recording(info, time_ns)


def _calibration(
    path: Path, arrays: dict[str, Any], devices: tuple[TrackedDevice, ...]
) -> TrackerSequence | None:
    """The T-pose frames, when they are there."""
    if "calib_pos" not in arrays or "calib_rot" not in arrays:
        return None
    k = len(devices)
    position, rotation = rows_of((-1, k, 3), arrays["calib_pos"]), rows_of((-1, k, 4), arrays["calib_rot"])
    if position is None or rotation is None or len(position) != len(rotation):
        raise RecordingError(
            f"{path.name}: calib_pos {np.shape(arrays['calib_pos'])} and "
            f"calib_rot {np.shape(arrays['calib_rot'])} do not fit {k} devices; "
            f"expected (C, {k}, 3) and (C, {k}, 4)"
        )
    rate = _meta(arrays.get("meta")).get("rate")
    rate_hz = float(rate) if isinstance(rate, int | float) and rate > 0 else DEFAULT_RATE_HZ
    time_s = np.arange(len(position)) / rate_hz
    stated = np.ones((len(position), k), np.bool_)
    return frames_of(time_s, devices, position, rotation, stated, {}, [])


def _one_line(fault: BaseException) -> str:
    return (str(fault).split("\n")[0] or type(fault).__name__).rstrip(".")


def _what_it_is(path: Path, names: list[str], missing: list[str]) -> str:
    """A sentence for a numpy archive that is no trackers file."""
    have = set(names)
    if {"joint_names", "tpose", "fps"} <= have:
        looks = "a motion capture clip: make trackers from it with the harness's trackers.py"
    elif "pos" in have and "names" not in have:
        looks = "a solved body, what 'vrik solve' writes: give the trackers file it came from"
    else:
        looks = f"something else, with the arrays {', '.join(sorted(names)[:8]) or '(none)'}"
    return f"{path.name} has no {', '.join(missing)}, so it is no trackers file; it looks like {looks}"


def _meta(value: Any) -> dict[str, Any]:
    """The JSON text in ``meta``; empty when it is missing or no JSON object."""
    try:
        meta = json.loads(str(value))
    except ValueError:
        return {}
    return meta if isinstance(meta, dict) else {}
