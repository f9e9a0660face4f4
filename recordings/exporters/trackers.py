"""Writes device poses as the accuracy harness's trackers file: ``.npz``, or ``.jsonl`` with one frame a line.

Both name devices by role; a headset is the head, any other device without a role is written under its serial
number, base stations are left out. Times begin at zero, poses of samples that are not valid are left out. The
layout is that of the harness's own ``trackers.py``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from recordings.base import RecordingInfo
from recordings.exporters.npz_stream import NpzStream
from vrik.arrays import Ints
from vrik.frames import DeviceClass, TrackedDevice, TrackerSequence
from vrik.skeleton import SMPL_FROM_VRM

META_FORMAT = "vr-trackers-1"


def worn_devices(devices: Sequence[TrackedDevice]) -> tuple[tuple[TrackedDevice, ...], list[int]]:
    """The devices that a person can wear, and their columns: all but base stations."""
    fixed = (DeviceClass.TRACKING_REFERENCE, DeviceClass.DISPLAY_REDIRECT)
    columns = [i for i, device in enumerate(devices) if device.device_class not in fixed]
    return tuple(devices[i] for i in columns), columns


def device_names(devices: Sequence[TrackedDevice]) -> tuple[str, ...]:
    """A different name for each device: its role, else its serial number, numbered where that is taken."""
    names: list[str] = []
    for device in devices:
        on_head = device.device_class == DeviceClass.HMD and "head" not in names
        wanted = device.role or ("head" if on_head else device.serial) or "device"
        taken = wanted in names
        name = device.serial if taken and device.serial and device.serial not in names else wanted
        number = 2
        while name in names:
            name = f"{wanted} {number}"
            number += 1
        names.append(name)
    return tuple(names)


def write_npz(path: Path, blocks: TrackerSequence | Iterable[TrackerSequence], info: RecordingInfo) -> int:
    """Write a trackers ``.npz`` block by block.

    It holds ``t`` (n,) [s], ``names`` (k,), ``pos`` (n, k, 3) [m], ``rot`` (n, k, 4), ``valid`` (n, k),
    ``meta``; and, where known, ``height_m`` [m], ``calib_pos``, ``calib_rot``, ``skeleton_tpose`` (22, 3) in
    the order of SMPL.

    Args:
        path: File to make.
        blocks: All frames, or blocks of them.
        info: Devices, stature, T-pose frames and true skeleton are taken from it.

    Returns:
        The number of frames.
    """
    devices, columns = worn_devices(info.devices)
    times = [np.zeros(0, np.int64)]
    with NpzStream(path) as stream:
        stream.append("pos", np.zeros((0, len(columns), 3)))
        stream.append("rot", np.zeros((0, len(columns), 4)))
        stream.append("valid", np.zeros((0, len(columns)), np.bool_))
        for block in [blocks] if isinstance(blocks, TrackerSequence) else blocks:
            times.append(block.time_ns.copy())
            valid = block.valid[:, columns]
            stream.append("pos", np.where(valid[..., None], block.position[:, columns], np.nan))
            stream.append("rot", np.where(valid[..., None], block.rotation[:, columns], np.nan))
            stream.append("valid", valid)
        time_ns = np.concatenate(times)
        stream.add("t", (time_ns - time_ns[:1]) * 1e-9)
        stream.add("names", np.array(device_names(devices), np.str_))
        calibration = calibration_of(info, devices)
        if info.stature_m is not None:
            stream.add("height_m", np.float64(info.stature_m))
        if calibration is not None:
            tracked = calibration.valid[..., None]
            stream.add("calib_pos", np.where(tracked, calibration.position, np.nan))
            stream.add("calib_rot", np.where(tracked, calibration.rotation, np.nan))
        if info.skeleton_tpose is not None:
            stream.add("skeleton_tpose", info.skeleton_tpose[SMPL_FROM_VRM])
        meta = _meta(info, _rate_hz(time_ns), calibration is not None)
        stream.add("meta", np.array(json.dumps(meta)))
    return len(time_ns)


def write_jsonl(path: Path, blocks: Iterable[TrackerSequence], info: RecordingInfo, rate_hz: float) -> int:
    """Write a trackers ``.jsonl`` block by block. Its T-pose is one pose a device: the median position.

    Returns:
        The number of frames.
    """
    worn, columns = worn_devices(info.devices)
    names = device_names(worn)
    calibration = calibration_of(info, worn)
    header: dict[str, Any] = {
        "header": _meta(info, rate_hz, calibration is not None),
        "devices": list(names),
    }
    if info.stature_m is not None:
        header["height_m"] = info.stature_m
    if calibration is not None:
        header["calibration_tpose"] = _median_poses(names, calibration)
    if info.skeleton_tpose is not None:
        header["skeleton_tpose"] = info.skeleton_tpose[SMPL_FROM_VRM].tolist()
    count = 0
    start_ns: int | None = None
    with path.open("w", encoding="utf-8", newline="\n") as stream:
        stream.write(json.dumps(header) + "\n")
        for block in blocks:
            if start_ns is None:
                start_ns = int(block.time_ns[0])
            times = ((block.time_ns - start_ns) * 1e-9).tolist()
            positions = block.position[:, columns].tolist()
            rotations = block.rotation[:, columns].tolist()
            valid = block.valid[:, columns].tolist()
            for i, t in enumerate(times):
                devices = {
                    name: {"valid": True, "pos": positions[i][k], "rot": rotations[i][k]}
                    if valid[i][k]
                    else {"valid": False}
                    for k, name in enumerate(names)
                }
                stream.write(json.dumps({"t": t, "devices": devices}) + "\n")
            count += len(block)
    return count


def calibration_of(info: RecordingInfo, devices: Sequence[TrackedDevice]) -> TrackerSequence | None:
    """The T-pose frames with exactly these devices, in their order; None when one of them is not in it."""
    frames = info.calibration
    if frames is None or not len(frames):
        return None
    columns = {device.serial: i for i, device in enumerate(frames.devices)}
    if any(device.serial not in columns for device in devices):
        return None
    order = [columns[device.serial] for device in devices]
    return TrackerSequence(
        frames.time_ns,
        tuple(devices),
        frames.position[:, order],
        frames.rotation[:, order],
        frames.valid[:, order],
        frames.result[:, order],
    )


def _median_poses(names: Sequence[str], calibration: TrackerSequence) -> dict[str, Any]:
    poses: dict[str, Any] = {}
    for k, name in enumerate(names):
        good = calibration.valid[:, k]
        if good.any():
            position = np.median(calibration.position[good, k], axis=0)
            rotation = calibration.rotation[np.argmax(good), k]
            poses[name] = {"pos": position.tolist(), "rot": rotation.tolist()}
    return poses


def _rate_hz(time_ns: Ints) -> float:
    """Median frame rate, leaving out repeated times; 0 when it cannot be told. [Hz]"""
    steps = np.diff(time_ns)
    steps = steps[steps > 0]
    return float(1e9 / np.median(steps)) if len(steps) else 0.0


def _meta(info: RecordingInfo, rate_hz: float, has_calibration: bool) -> dict[str, Any]:
    return {
        "format": META_FORMAT,
        "rate": round(rate_hz, 3),
        "calib": "tpose" if has_calibration else "none",
        "skeleton": "known" if info.skeleton_tpose is not None else "fair",
        "mount": "unknown",
        "floor_y": 0.0,
        "tpose_facing": "-Z",
        "note": f"converted by vrik from {info.path.name} ({info.format})",
    }
