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


def tracker_arrays(frames: TrackerSequence, info: RecordingInfo) -> dict[str, Any]:
    """The arrays of a trackers file.

    Args:
        frames: All frames.
        info: Stature, T-pose frames and true skeleton are taken from it when it has them.

    Returns:
        ``t`` (n,) [s], ``names`` (k,), ``pos`` (n, k, 3) [m], ``rot`` (n, k, 4), ``valid`` (n, k), ``meta``;
        and, where known, ``height_m`` [m], ``calib_pos``, ``calib_rot``, ``skeleton_tpose`` (22, 3) in the
        order of SMPL.
    """
    start_ns = int(frames.time_ns[0]) if len(frames) else 0
    devices, columns = worn_devices(frames.devices)
    valid = frames.valid[:, columns]
    arrays: dict[str, Any] = {
        "t": (frames.time_ns - start_ns) * 1e-9,
        "names": np.array(device_names(devices), np.str_),
        "pos": np.where(valid[..., None], frames.position[:, columns], np.nan),
        "rot": np.where(valid[..., None], frames.rotation[:, columns], np.nan),
        "valid": valid,
    }
    calibration = calibration_of(info, devices)
    if info.stature_m is not None:
        arrays["height_m"] = np.float64(info.stature_m)
    if calibration is not None:
        arrays["calib_pos"] = np.where(calibration.valid[..., None], calibration.position, np.nan)
        arrays["calib_rot"] = np.where(calibration.valid[..., None], calibration.rotation, np.nan)
    if info.skeleton_tpose is not None:
        arrays["skeleton_tpose"] = info.skeleton_tpose[SMPL_FROM_VRM]
    rate_hz = frames.rate_hz
    arrays["meta"] = np.array(json.dumps(_meta(info, rate_hz, calibration is not None)))
    return arrays


def write_npz(path: Path, frames: TrackerSequence, info: RecordingInfo) -> None:
    """Write a trackers ``.npz``; see :func:`tracker_arrays`."""
    with path.open("wb") as stream:
        np.savez_compressed(stream, **tracker_arrays(frames, info))


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
