"""The small TOML file that says what the columns of a table hold. ``docs/generic-csv.md`` explains it."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np

from recordings.csv_text import SEPARATORS
from vrik.arrays import Floats
from vrik.errors import UsageError
from vrik.frames import ROLES, DeviceClass

FOLDER_MAP = "vrik-columns.toml"
"""A mapping of this name serves all tables of its folder."""

TABLE_SUFFIXES = (".csv", ".tsv", ".txt", ".log", ".dat")

LENGTHS_M = {"m": 1.0, "cm": 0.01, "mm": 0.001, "in": 0.0254, "ft": 0.3048}
ANGLES_RAD = {"deg": math.pi / 180.0, "rad": 1.0}
TIMES_S = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "100ns": 1e-7}
AXES = {
    "openvr": ("x", "y", "-z"),
    "unity": ("x", "y", "z"),
    "unreal": ("y", "z", "x"),
    "ros": ("-y", "z", "x"),
    "z-up": ("x", "z", "y"),
}
"""Which of the file's axes point right, up and forward."""
CLASSES = {
    "hmd": DeviceClass.HMD,
    "controller": DeviceClass.CONTROLLER,
    "tracker": DeviceClass.GENERIC_TRACKER,
    "base station": DeviceClass.TRACKING_REFERENCE,
}
ORDERS = tuple("".join(letters) for letters in permutations("xyz"))

_KEYS = frozenset((
    "separator", "decimal", "skip_rows", "header", "missing", "unit", "angle", "axes", "quaternion_order",
    "euler_order", "stature_m", "time", "device",
))  # fmt: skip
_TIME_KEYS = frozenset(("column", "unit", "rate_hz"))
_DEVICE_KEYS = frozenset(("name", "class", "role", "model", "position", "quaternion", "euler", "valid"))

Column = str | int
"""A name in the header, or a number counted from 1."""


@dataclass(frozen=True, slots=True)
class DeviceColumns:
    """Where one device's numbers are."""

    name: str
    device_class: DeviceClass
    role: str
    model: str
    position: tuple[Column, ...]
    """Three, or none for a device that only turns."""
    rotation: tuple[Column, ...]
    """Four of a quaternion, or three angles."""
    valid: Column | None


@dataclass(frozen=True, slots=True, eq=False)
class ColumnMap:
    """What a mapping file says, checked."""

    path: Path
    separator: str
    decimal: str
    skip_rows: int
    header: bool
    missing: tuple[str, ...]
    metres: float
    """Metres in the file's unit of length."""
    radians: float
    axes: Floats
    """(3, 3) signed permutation: OpenVR's axes from the file's."""
    quaternion_order: str
    euler_order: str
    stature_m: float | None
    time: Column | None
    time_s: float
    """Seconds in the file's unit of time."""
    rate_hz: float
    devices: tuple[DeviceColumns, ...]


def own_map(path: Path) -> Path | None:
    """The mapping file that is named like a table: NAME.csv.toml or NAME.toml beside it."""
    if path.suffix.lower() not in TABLE_SUFFIXES:
        return None
    beside = (path.with_name(path.name + ".toml"), path.with_suffix(".toml"))
    return next((candidate for candidate in beside if candidate.is_file()), None)


def folder_map(path: Path) -> Path | None:
    """The mapping file for all tables of a folder."""
    candidate = path.with_name(FOLDER_MAP)
    return candidate if path.suffix.lower() in TABLE_SUFFIXES and candidate.is_file() else None


def read_map(path: Path) -> ColumnMap:
    """Read a mapping file and check everything that can be checked without the table.

    Raises:
        UsageError: With the one thing that is wrong first.
    """
    try:
        stated = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise UsageError(
            f"cannot read the mapping {path}: {error.strerror or error}; check the path"
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"the mapping {path.name} is no TOML: {error}") from error
    try:
        return _checked(path, stated)
    except ValueError as fault:
        raise UsageError(f"the mapping {path.name} does not work: {fault}") from fault


def _checked(path: Path, stated: Mapping[str, Any]) -> ColumnMap:
    _only(stated, _KEYS, "at its top")
    time = _table(stated, "time")
    _only(time, _TIME_KEYS, "in [time]")
    if ("column" in time) == ("rate_hz" in time):
        raise ValueError("[time] needs either column and its unit, or rate_hz")
    rate_hz = _number(time, "rate_hz", 1e-3, 1e5) or 0.0
    devices = stated.get("device")
    if not isinstance(devices, list) or not devices or not all(isinstance(d, dict) for d in devices):
        raise ValueError("it names no device; write a [[device]] with name, position and quaternion for each")
    found = tuple(_device(d) for d in devices)
    names = [d.name for d in found]
    roles = [d.role for d in found if d.role]
    for what, words in (("name", names), ("role", roles)):
        if again := sorted({w for w in words if words.count(w) > 1}):
            raise ValueError(f"two devices have the {what} {again[0]!r}; give each its own")
    skip_rows = stated.get("skip_rows", 0)
    if type(skip_rows) is not int or not 0 <= skip_rows <= 10_000:
        raise ValueError(f"skip_rows is {skip_rows!r}; expected how many lines to pass over, 0 to 10000")
    header = stated.get("header", True)
    if not isinstance(header, bool):
        raise ValueError(f"header is {header!r}; expected true or false")
    missing = stated.get("missing", [])
    if not isinstance(missing, list) or not all(isinstance(word, str) for word in missing):
        raise ValueError('missing must be a list of words, for example ["NA", "-"]')
    return ColumnMap(
        path=path,
        separator=_choice(stated, "separator", ("", *SEPARATORS), ""),
        decimal=_choice(stated, "decimal", ("", ".", ","), ""),
        skip_rows=skip_rows,
        header=header,
        missing=tuple(word.strip() for word in missing),
        metres=LENGTHS_M[_choice(stated, "unit", LENGTHS_M, "m")],
        radians=ANGLES_RAD[_choice(stated, "angle", ANGLES_RAD, "deg")],
        axes=_axes(stated.get("axes")),
        quaternion_order=_choice(stated, "quaternion_order", ("xyzw", "wxyz"), "xyzw"),
        euler_order=_choice(stated, "euler_order", ("", *ORDERS), "") or _need_order(devices),
        stature_m=_number(stated, "stature_m", 0.5, 2.6),
        time=_columns([time["column"]], 1, "[time] column")[0] if "column" in time else None,
        time_s=TIMES_S[_choice(time, "unit", TIMES_S, "s")],
        rate_hz=rate_hz,
        devices=found,
    )


def _device(stated: Mapping[str, Any]) -> DeviceColumns:
    name = stated.get("name")
    if not isinstance(name, str) or not name.strip():
        raise ValueError("a [[device]] has no name; it may be any word, and becomes its serial number")
    _only(stated, _DEVICE_KEYS, f"in the device {name!r}")
    if ("quaternion" in stated) == ("euler" in stated):
        both = "both quaternion and euler" if "euler" in stated else "neither quaternion nor euler"
        raise ValueError(f"the device {name!r} has {both}; give one, or leave the device out")
    role = _choice(stated, "role", ("", *ROLES), "")
    usual = {"head": "hmd", "left_hand": "controller", "right_hand": "controller"}.get(role, "tracker")
    rotation = (
        _columns(stated["quaternion"], 4, f"quaternion of {name!r}")
        if "quaternion" in stated
        else _columns(stated["euler"], 3, f"euler of {name!r}")
    )
    return DeviceColumns(
        name=name,
        device_class=CLASSES[_choice(stated, "class", CLASSES, usual)],
        role=role,
        model=str(stated.get("model", "")),
        position=_columns(stated["position"], 3, f"position of {name!r}") if "position" in stated else (),
        rotation=rotation,
        valid=_columns([stated["valid"]], 1, f"valid of {name!r}")[0] if "valid" in stated else None,
    )


def _need_order(devices: list[Mapping[str, Any]]) -> str:
    if any("euler" in device for device in devices):
        raise ValueError(
            'euler angles need euler_order: "yxz" says R = Ry * Rx * Rz, with the columns in that order too'
        )
    return ""


def _axes(stated: Any) -> Floats:
    """Rows: OpenVR's +X right, +Y up, +Z backward, each as one of the file's axes."""
    if isinstance(stated, str) and stated in AXES:
        right, up, forward = AXES[stated]
    elif isinstance(stated, dict) and set(stated) == {"right", "up", "forward"}:
        right, up, forward = (str(stated[key]) for key in ("right", "up", "forward"))
    else:
        raise ValueError(
            f"axes is {stated!r}; expected one of {', '.join(AXES)}, "
            'or which of the file\'s axes point where: {right = "x", up = "z", forward = "y"}'
        )
    axes = np.zeros((3, 3))
    for row, (word, sign) in enumerate(((right, 1.0), (up, 1.0), (forward, -1.0))):
        letter = word.strip().lstrip("+-")
        if len(word.strip()) - len(letter) > 1 or letter not in ("x", "y", "z"):
            raise ValueError(f"axes names {word!r}; expected x, y or z, with or without a minus")
        axes[row, "xyz".index(letter)] = -sign if word.strip().startswith("-") else sign
    if abs(np.linalg.det(axes)) < 0.5:
        raise ValueError(f"axes uses one axis twice: right {right}, up {up}, forward {forward}")
    return axes


def _only(stated: Mapping[str, Any], known: frozenset[str], where: str) -> None:
    if unknown := sorted(set(stated) - known):
        raise ValueError(f"{unknown[0]!r} {where} is unknown; known are {', '.join(sorted(known))}")


def _table(stated: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = stated.get(key)
    if not isinstance(value, dict):
        raise ValueError(f"it has no [{key}]; write one with column and unit, or with rate_hz")
    return value


def _choice(stated: Mapping[str, Any], key: str, choices: Any, default: str) -> str:
    value = stated.get(key, default)
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{key} is {value!r}; expected one of {', '.join(repr(c) for c in choices if c)}")
    return value


def _number(stated: Mapping[str, Any], key: str, low: float, high: float) -> float | None:
    value = stated.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise ValueError(f"{key} is {value!r}; expected a number from {low:g} to {high:g}")
    return float(value)


def _columns(stated: Any, count: int, what: str) -> tuple[Column, ...]:
    """Names, or numbers from 1."""
    right = isinstance(stated, list) and len(stated) == count
    if not right or not all(isinstance(c, str) or (type(c) is int and c >= 1) for c in stated):
        raise ValueError(f"{what} is {stated!r}; expected {count} column names, or numbers from 1")
    return tuple(c.strip() if isinstance(c, str) else c for c in stated)
