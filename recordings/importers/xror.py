"""XROR (BOXRR-23): one BSON document; the frames are an fpzip-compressed table of 32-bit numbers.

The first column is the time [s]; then come the axes that each device lists: x, y, z in Unity's axes and
metres, i, j, k and the real part (written "l", or "1") of its rotation. Reading it needs the packages
``bson`` (of pymongo) and ``fpzip``: the extra ``xror``.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from recordings.base import Recording, RecordingInfo, reading
from recordings.importers.axes import is_measured, nanoseconds, openvr_from_unity, tell_sign_flips
from recordings.importers.fpzip_frames import Unpacked, unpack
from recordings.importers.frame_blocks import FrameBlocks, spans
from vrik.errors import DamagedRecordingError, RecordingError
from vrik.frames import DeviceClass, TrackedDevice

AXES = ("x", "y", "z", "i", "j", "k", "l")
CLASSES = {
    "HMD": DeviceClass.HMD,
    "CONTROLLER": DeviceClass.CONTROLLER,
    "TRACKER": DeviceClass.GENERIC_TRACKER,
}
ROLES = {
    "HEAD": "head",
    "HAND_LEFT": "left_hand",
    "HAND_RIGHT": "right_hand",
    "PELVIS": "waist",
    "SPINE_CHEST": "chest",
    "FOOT_LEFT": "left_foot",
    "FOOT_RIGHT": "right_foot",
    "KNEE_LEFT": "left_knee",
    "KNEE_RIGHT": "right_knee",
    "ELBOW_LEFT": "left_elbow",
    "ELBOW_RIGHT": "right_elbow",
}

_FIRST_KEYS = (b"$schema\0", b"$id\0", b"info\0", b"frames\0", b"events\0", b"_id\0")


class XrorImporter:
    """Reads ``.xror``."""

    name = "xror"
    summary = "XROR (BOXRR-23) recordings; needs the packages pymongo and fpzip"
    suffixes = (".xror",)

    def recognises(self, head: bytes, path: Path) -> bool:
        """A BSON document whose first key is one of XROR's and that has ``info`` near its start."""
        if len(head) < 16 or int.from_bytes(head[:4], "little") < 16:
            return False
        known = any(head.startswith(key, 5) for key in _FIRST_KEYS)
        return known and 1 <= head[4] <= 0x13 and b"\x03info\0" in head

    def open(self, path: Path) -> Recording:
        """Read the whole file; its frames are unpacked in a process of their own, and put aside in blocks.

        Raises:
            RecordingError: If a package is missing, or the devices have no pose that could be used.
            DamagedRecordingError: If the document is cut or its frames do not fit its devices.
        """
        bson, fpzip = _package("bson"), _package("fpzip")
        if bson is None or fpzip is None or not hasattr(bson, "decode"):
            raise RecordingError(
                f"{path.name} is an XROR recording and needs two more packages: pip install pymongo fpzip"
            )
        data = path.read_bytes()
        stated = int.from_bytes(data[:4], "little")
        if stated != len(data):
            raise DamagedRecordingError(
                f"{path.name} states {stated} bytes and has {len(data)}, and its frames cannot be unpacked "
                "from a part; copy or download it again"
            )
        try:
            document: Any = bson.decode(data)
            del data
            listed = document["info"]["hardware"]["devices"]
            table = unpack(bytes(document["frames"]))
        except Exception as fault:  # two foreign decoders, with their own errors each
            raise DamagedRecordingError(
                f"{path.name} is a broken XROR file ({type(fault).__name__}: {fault}); "
                "copy or download it again"
            ) from fault
        del document
        return _recording(path, listed, table)


def _recording(path: Path, listed: Any, table: Unpacked) -> Recording:
    """Frames of a table whose columns the listed devices name."""
    counts: dict[str, int] = {}
    notes: list[str] = []
    devices: list[TrackedDevice] = []
    columns: list[list[int]] = []
    at = 1
    for i, entry in enumerate(listed if isinstance(listed, list) else []):
        stated = entry if isinstance(entry, dict) else {}
        raw = stated.get("axes")
        axes = ["l" if axis in ("1", "w") else axis for axis in (raw if isinstance(raw, list) else [])]
        name, joint = str(stated.get("name", "")), str(stated.get("joint", ""))
        if set(AXES) <= set(axes):
            role = ROLES.get(joint, "")
            role = "" if role in (d.role for d in devices) else role
            kind = CLASSES.get(str(stated.get("type", "")), DeviceClass.GENERIC_TRACKER)
            devices.append(TrackedDevice(f"xror-{i}-{(joint or name or 'device').lower()}", kind, role, name))
            columns.append([at + axes.index(axis) for axis in AXES])
        else:
            notes.append(f"device {i} ({joint or name or 'no name'}) has no full pose and is left out")
        at += len(axes)
    if at != table.columns:
        raise DamagedRecordingError(
            f"{path.name} has {table.columns} columns where its devices list {at}; copy it again"
        )
    if not devices:
        raise RecordingError(
            f"{path.name} has no device with x, y, z, i, j, k and l; there is nothing to solve"
        )
    rows = len(table)
    if rows > 2 and np.all(table.rows(rows - 2, rows) == -1.0):
        rows -= 2  # the writer pads tables that fpzip cannot pack with two rows of -1
    blocks, times, wrong = FrameBlocks(devices), [np.zeros(0)], 0
    for begin, end in spans(rows):
        block = table.rows(begin, end)
        times.append(np.asarray(block[:, 0], np.float64))
        samples = block[:, columns]
        position, rotation = openvr_from_unity(samples[..., :3], samples[..., [6, 3, 4, 5]])
        valid = is_measured(position, rotation)
        wrong += int(np.count_nonzero(~valid))
        blocks.add(position, rotation, valid)
        reading(end, rows)
    time_ns, replaced = nanoseconds(np.concatenate(times))
    if replaced:
        counts["times out of order"] = replaced
        notes.append(f"times that are unreadable or step back: {replaced}; they repeat the time before")
    if wrong:
        counts["placeholder samples"] = wrong
    tell_sign_flips(blocks.flips, counts, notes)
    info = RecordingInfo(path, XrorImporter.name, tuple(devices), counts=counts, notes=tuple(notes))
    return blocks.recording(info, time_ns)


def _package(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        return None
