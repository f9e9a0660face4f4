"""The byte layout of vrik's own recordings (``vrik/1``, a profile of MCAP), written down once.

A reader needs nothing of vrik: the schema record of each binary channel holds its numpy dtype, so
``numpy.frombuffer(message.data, numpy.dtype(json.loads(schema.data)["numpy_dtype"]))`` reads a message.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from vrik.frames import ROLES
from vrik.skeleton import BONES

FORMAT_VERSION = 1
PROFILE = f"vrik/{FORMAT_VERSION}"
"""The profile in the MCAP header and the ``format`` of the metadata record."""

METADATA_NAME = "vrik"

TRACKERS = "/vrik/trackers"
CALIBRATION = "/vrik/calibration"
DEVICES = "/vrik/devices"
PERSON = "/vrik/person"
PROFILE_TOPIC = "/vrik/profile"
SKELETON = "/vrik/skeleton"
EVENTS = "/vrik/events"

TRACKER_DTYPE = np.dtype(
    [
        ("host_time_ns", "<i8"),
        ("device", "<u2"),
        ("valid", "u1"),
        ("velocities", "u1"),
        ("result", "<i4"),
        ("position", "<f8", (3,)),
        ("rotation", "<f8", (4,)),
        ("linear_velocity", "<f8", (3,)),
        ("angular_velocity", "<f8", (3,)),
    ]
)
"""One device in one frame, 120 bytes. A message of ``/vrik/trackers`` is one frame: k of these in a row."""

HAS_LINEAR = 1
"""Bit of ``velocities``: ``linear_velocity`` was measured."""

HAS_ANGULAR = 2
"""Bit of ``velocities``: ``angular_velocity`` was measured."""

POSE_DTYPE = np.dtype(
    [
        ("host_time_ns", "<i8"),
        ("position", "<f8", (len(BONES), 3)),
        ("rotation", "<f8", (len(BONES), 4)),
        ("local_rotation", "<f8", (len(BONES), 4)),
        ("reach_error_m", "<f8", (len(ROLES),)),
        ("age_s", "<f8", (len(ROLES),)),
        ("state", "<i4", (len(ROLES),)),
        ("reserved", "<i4"),
    ]
)
"""One solved frame. A message of ``/vrik/skeleton`` is one of these."""

AXES = "right-handed, +X right, +Y up, -Z forward, floor at y = 0 (OpenVR standing universe)"
UNITS = "metres, seconds, radians; times in nanoseconds of a monotonic clock"
QUATERNIONS = "w, x, y, z; Hamilton; unit length"

_TRACKER_FIELDS = {
    "host_time_ns": "monotonic time of the frame [ns], the same in all records of a message",
    "device": "index of the device in the lists of /vrik/devices; never reused within a file",
    "valid": "1 when the pose may be used",
    "velocities": "bit 0: linear_velocity was measured, bit 1: angular_velocity was measured",
    "result": "OpenVR ETrackingResult",
    "position": "x, y, z of the device in the world [m]; NaN when unknown",
    "rotation": "w, x, y, z: world from device",
    "linear_velocity": "x, y, z in the world [m/s]",
    "angular_velocity": "x, y, z in the world [rad/s]",
}
_POSE_FIELDS = {
    "host_time_ns": "time of the tracker frame it was solved from [ns]",
    "position": "joints in the world [m]",
    "rotation": "canonical world rotations, identity in a T-pose that faces -Z",
    "local_rotation": "the same relative to the parent bone",
    "reach_error_m": "distance from each tracked role's bone to its target [m]; NaN when not tracked",
    "age_s": "seconds since each role's device was last tracked",
    "state": "0 absent, 1 tracked, 2 held, 3 lost, 4 returning",
    "reserved": "0",
}


def numpy_dtype_json(dtype: np.dtype[Any]) -> dict[str, Any]:
    """A structured dtype in the dictionary form that ``numpy.dtype`` takes back, after a way through JSON."""
    names = dtype.names or ()
    fields: Mapping[str, Any] = dtype.fields or {}
    formats = []
    for name in names:
        base, shape = fields[name][0].base, fields[name][0].shape
        formats.append(f"({','.join(map(str, shape))},){base.str}" if shape else base.str)
    offsets = [fields[name][1] for name in names]
    return {"names": list(names), "formats": formats, "offsets": offsets, "itemsize": dtype.itemsize}


def _schema_text(
    title: str, message: str, dtype: np.dtype[Any], fields: dict[str, str], **more: Any
) -> bytes:
    document = {
        "title": title,
        "message": message,
        "numpy_dtype": numpy_dtype_json(dtype),
        "fields": fields,
        "axes": AXES,
        "units": UNITS,
        "quaternions": QUATERNIONS,
        **more,
    }
    return json.dumps(document, indent=1).encode()


TRACKER_SCHEMA = _schema_text(
    "vrik.TrackerFrame",
    "one frame: as many records as devices were connected, one after the other, little endian",
    TRACKER_DTYPE,
    _TRACKER_FIELDS,
)
POSE_SCHEMA = _schema_text(
    "vrik.PoseFrame",
    "one solved frame: one record, little endian",
    POSE_DTYPE,
    _POSE_FIELDS,
    bones=BONES,
    roles=ROLES,
)

JSON_SCHEMAS: dict[str, tuple[str, dict[str, Any]]] = {
    DEVICES: (
        "vrik.Devices",
        {
            "description": "All devices so far; written on change, and again now and then, unchanged.",
            "properties": {
                "devices": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {
                            "index": {"type": "integer"},
                            "serial": {"type": "string"},
                            "class": {"type": "string", "description": "OpenVR: HMD, CONTROLLER, ..."},
                            "role": {"type": "string", "description": "empty when the runtime does not say"},
                            "model": {"type": "string"},
                        },
                    },
                }
            },
        },
    ),
    PERSON: (
        "vrik.Person",
        {
            "description": "What is known about the person.",
            "properties": {
                "stature_m": {"type": ["number", "null"]},
                "skeleton_tpose": {
                    "type": ["array", "null"],
                    "description": "22 joints of a T-pose that faces -Z, order: " + ", ".join(BONES),
                },
            },
        },
    ),
    PROFILE_TOPIC: ("vrik.Profile", {"description": "The calibration profile in use; written on change."}),
    EVENTS: (
        "vrik.Event",
        {
            "description": "Something that happened: recentre, dropout, role change, mark.",
            "properties": {"name": {"type": "string"}, "data": {"type": "object"}},
        },
    ),
}
"""Topic to schema name and JSON schema of the channels that carry JSON."""


def json_schema(topic: str) -> tuple[str, bytes]:
    """Name and text of the schema of one of the JSON channels."""
    name, document = JSON_SCHEMAS[topic]
    return name, json.dumps({"type": "object", **document}).encode()
