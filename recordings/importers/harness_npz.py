"""The accuracy harness's trackers file, ``.npz``: device poses made from motion capture.

Arrays ``t, names, pos, rot, valid`` and optionally ``height_m, calib_pos, calib_rot, skeleton_tpose, meta``;
metres, seconds, OpenVR axes, quaternions (w, x, y, z). Nothing in it is ever unpickled.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from recordings.base import LoadedRecording, Recording, RecordingInfo
from recordings.importers.axes import rows_of
from recordings.importers.harness import frames_of, harness_devices, skeleton_of, stature_of
from vrik.errors import DamagedRecordingError, RecordingError, UnknownFormatError

_NEEDED = ("t", "names", "pos", "rot")
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
        """Read it whole.

        Raises:
            UnknownFormatError: If the archive holds something else; the message says what.
            DamagedRecordingError: If the archive is cut or an array cannot be read.
            RecordingError: If an array has the wrong shape.
        """
        arrays = _load(path)
        devices = harness_devices([str(n) for n in np.ravel(arrays["names"])], path)
        k = len(devices)
        counts: dict[str, int] = {}
        notes: list[str] = []
        time_s = rows_of((-1,), arrays["t"])
        n = -1 if time_s is None else len(time_s)
        position, rotation = rows_of((n, k, 3), arrays["pos"]), rows_of((n, k, 4), arrays["rot"])
        stated = rows_of((n, k), arrays.get("valid", np.ones((max(n, 0), k))))
        if time_s is None or position is None or rotation is None or stated is None:
            shapes = ", ".join(f"{a} {np.shape(arrays[a])}" for a in (*_NEEDED, "valid") if a in arrays)
            raise RecordingError(
                f"{path.name}: the arrays do not fit together ({shapes}); "
                "expected t (T,), names (K,), pos (T, K, 3), rot (T, K, 4), valid (T, K)"
            )
        frames = frames_of(time_s, devices, position, rotation, stated == 1.0, counts, notes)

        calibration = None
        meta = _meta(arrays.get("meta"))
        if "calib_pos" in arrays and "calib_rot" in arrays:
            calib_pos, calib_rot = (
                rows_of((-1, k, 3), arrays["calib_pos"]),
                rows_of((-1, k, 4), arrays["calib_rot"]),
            )
            if calib_pos is None or calib_rot is None or len(calib_pos) != len(calib_rot):
                raise RecordingError(
                    f"{path.name}: calib_pos {np.shape(arrays['calib_pos'])} and "
                    f"calib_rot {np.shape(arrays['calib_rot'])} do not fit {k} devices; "
                    f"expected (C, {k}, 3) and (C, {k}, 4)"
                )
            rate = meta.get("rate")
            rate_hz = float(rate) if isinstance(rate, int | float) and rate > 0 else DEFAULT_RATE_HZ
            calib_t = np.arange(len(calib_pos)) / rate_hz
            all_stated = np.ones((len(calib_pos), k), np.bool_)
            calibration = frames_of(calib_t, devices, calib_pos, calib_rot, all_stated, {}, [])
        info = RecordingInfo(
            path,
            self.name,
            devices,
            stature_of(arrays.get("height_m")),
            calibration,
            skeleton_of(arrays.get("skeleton_tpose"), path),
            counts,
            tuple(notes),
        )
        return LoadedRecording(info, frames)


def _load(path: Path) -> dict[str, Any]:
    """The arrays of a trackers file by name."""
    wanted = (*_NEEDED, "valid", "height_m", "calib_pos", "calib_rot", "skeleton_tpose", "meta")
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
            names = list(archive.files)
            missing = [name for name in _NEEDED if name not in names]
            if missing:
                raise UnknownFormatError(_what_it_is(path, names, missing))
            return {name: archive[name] for name in wanted if name in names}
    except UnknownFormatError:
        raise
    except Exception as fault:  # zipfile, zlib and numpy have a dozen kinds of error for broken archives
        raise DamagedRecordingError(
            f"{path.name} is a numpy archive that cannot be read ({_one_line(fault)}); "
            "it may be cut, or hold Python objects, which are never loaded: write it again as plain arrays"
        ) from fault


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
