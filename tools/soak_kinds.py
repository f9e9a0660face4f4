"""Long recordings of every kind that vrik reads, made from the bundled session.

``KINDS`` maps a name to a function that writes one: ``make(folder, minutes) -> path``. The session is played
there and back again and again, so that nobody jumps from its end to its start.
"""

from __future__ import annotations

import importlib.util
import json
import struct
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from recordings import RecordingWriter, open_recording, read_all
from recordings.convert import convert
from recordings.importers.axes import openvr_from_unity
from recordings.importers.bsor import FRAME, MAGIC
from recordings.samples import sample
from vrik import quat
from vrik.arrays import Floats, Points, Quats
from vrik.frames import TrackerSequence

BLOCK_FRAMES = 4096
FEET_M = 0.3048
DEVICES = ("head", "left_hand", "right_hand")


class Block(NamedTuple):
    """Frames of head, left and right hand."""

    time_s: Floats
    position: Points
    """(n, 3, 3) [m]"""
    rotation: Quats
    """(n, 3, 4)"""


@lru_cache
def session() -> TrackerSequence:
    """The bundled session."""
    return read_all(open_recording(sample("session_3points")))


def blocks(minutes: float, rate_hz: float) -> Iterator[Block]:
    """The session as long and at as many frames a second as asked."""
    take = session()
    count = round(minutes * 60 * rate_hz)
    last = len(take) - 1
    for begin in range(0, count, BLOCK_FRAMES):
        i = np.arange(begin, min(begin + BLOCK_FRAMES, count))
        step = np.round(i * (take.rate_hz / rate_hz)).astype(np.int64) % (2 * last)
        rows = last - np.abs(last - step)
        yield Block(i / rate_hz, take.position[rows], take.rotation[rows])


def in_unity(block: Block) -> tuple[Points, Quats]:
    """Positions, and quaternions x, y, z, w, in Unity's axes; that conversion is its own inverse."""
    position, rotation = openvr_from_unity(block.position, block.rotation)
    return position, quat.xyzw_from_wxyz(rotation)


def make_native(folder: Path, minutes: float) -> Path:
    """vrik's own format, 90 Hz."""
    take, path = session(), folder / "hour.mcap"
    last = len(take) - 1
    with RecordingWriter(path, take.devices) as writer:
        for i in range(round(minutes * 60 * 90)):
            frame = take.frame(last - abs(last - i % (2 * last)))
            writer.write(replace(frame, host_time_ns=round(i * 1e9 / 90)))
    return path


def make_npz(folder: Path, minutes: float) -> Path:
    """The accuracy harness's arrays, 90 Hz."""
    convert(make_native(folder, minutes), folder / "hour.npz")
    return folder / "hour.npz"


def make_jsonl(folder: Path, minutes: float) -> Path:
    """The accuracy harness's lines, 90 Hz."""
    convert(make_native(folder, minutes), folder / "hour.jsonl")
    return folder / "hour.jsonl"


def make_bsor(folder: Path, minutes: float) -> Path:
    """Beat Saber, 90 Hz."""
    path = folder / "hour.bsor"
    text = b"".join(struct.pack("<i", 1) + b"x" for _ in range(13))
    numbers = struct.pack("<4i", 0, 0, 0, 0) + struct.pack("<fBffff", 18, 0, 1.7, 0, 0, 0)
    with path.open("wb") as stream:
        stream.write(MAGIC + b"\x01\x00" + text + numbers)
        stream.write(b"\x01" + struct.pack("<i", round(minutes * 60 * 90)))
        for block in blocks(minutes, 90):
            frames = np.zeros(len(block.time_s), FRAME)
            frames["time"] = block.time_s
            frames["poses"]["position"], frames["poses"]["rotation"] = in_unity(block)
            stream.write(frames.tobytes())
    return path


def table(path: Path, header: list[str], rows: Iterator[Any], number: str = "%.6f") -> Path:
    """Lines of numbers with commas, from blocks of columns or of finished lines."""
    with path.open("w") as stream:
        if header:
            stream.write(",".join(header) + "\n")
        for block in rows:
            if isinstance(block, list):
                stream.writelines(line + "\n" for line in block)
            else:
                np.savetxt(stream, block, fmt=number, delimiter=",")
    return path


def make_vive(folder: Path, minutes: float) -> Path:
    """Brekel's recorder, 60 Hz: centimetres and degrees."""
    axes = ("tx", "ty", "tz", "rx", "ry", "rz")
    names = [f"{d}_{axis}" for d in ("HMD0", "controller3", "controller4") for axis in axes]

    def rows() -> Iterator[Any]:
        for block in blocks(minutes, 60):
            turns = np.degrees(quat.to_euler("zyx", block.rotation))[..., ::-1]
            poses = np.concatenate([100.0 * block.position, turns], axis=-1)
            yield np.column_stack([block.time_s, poses.reshape(len(poses), -1)])

    return table(folder / "hour.csv", ["timestamp", *names], rows())


def make_steamvr(folder: Path, minutes: float) -> Path:
    """The elbow and knee study, 5 Hz, with elbows, torso and knees at rest."""
    header = [
        "DateTime",
        *(f"{d}{axis}" for d in ("LController", "RController", "Headset") for axis in "XYZ"),
    ]
    header += [f"{d}Quaternion{axis}" for d in ("LController", "RController", "Headset") for axis in "XYZW"]
    rest = {"LeftElbow": (-0.3, 1.1), "RightElbow": (0.3, 1.1), "Front": (0.0, 1.2), "Back": (0.0, 1.3),
            "LeftKnee": (-0.1, 0.5), "RightKnee": (0.1, 0.5)}  # fmt: skip
    header += [f"{name}{axis}" for name in rest for axis in "XYZ"]
    still = ",".join(f"{x},{y},0.1" for x, y in rest.values()) + ",1"
    start = datetime(2020, 1, 2)

    def rows() -> Iterator[Any]:
        for block in blocks(minutes, 5):
            position, rotation = in_unity(block)
            numbers = np.concatenate(
                [p[:, [1, 2, 0]].reshape(len(p), -1) for p in (position, rotation)], axis=1
            )
            stamps = [start + timedelta(seconds=int(t)) for t in block.time_s]
            yield [
                f"{stamp:%Y-%d-%m--%H-%M-%S}," + ",".join(f"{n:.6f}" for n in row) + f",{still}"
                for stamp, row in zip(stamps, numbers.tolist(), strict=True)
            ]

    return table(folder / "hour.csv", [*header, "Scale"], rows())


def make_quest(folder: Path, minutes: float) -> Path:
    """The Quest's head, 72 Hz, with ticks of 100 ns."""

    def rows() -> Iterator[Any]:
        for block in blocks(minutes, 72):
            position, rotation = in_unity(block)
            ticks = 638_000_000_000_000_000 + np.round(block.time_s * 1e7).astype(np.int64)
            poses = np.concatenate([position[:, 0], rotation[:, 0]], axis=1)
            yield [
                f"{tick},{tick},2024,1,31,13,7,4,628," + ",".join(f"{n:.6f}" for n in row)
                for tick, row in zip(ticks.tolist(), poses.tolist(), strict=True)
            ]

    return table(folder / "hour.txt", [], rows())


def make_arm(folder: Path, minutes: float) -> Path:
    """A forearm and a hand as the shoulder sees them, 90 Hz, in whole arms."""

    def rows() -> Iterator[Any]:
        for block in blocks(minutes, 90):
            _, rotation = in_unity(block)
            turn = block.rotation[:, 1:]
            elbow = 0.52 * quat.rotate(turn[:, 0], np.array([1.0, 0.0, 0.0]))
            hand = elbow + 0.46 * quat.rotate(turn[:, 1], np.array([1.0, 0.0, 0.0]))
            yield np.column_stack([elbow, hand, rotation[:, 1], rotation[:, 2]])

    return table(folder / "hour.csv", [], rows())


def make_alyx(folder: Path, minutes: float) -> Path:
    """The sessions of "Who Is Alyx?", 60 Hz: centimetres and milliseconds."""
    parts = ["pos_x", "pos_y", "pos_z", "rot_x", "rot_y", "rot_z", "rot_w"]
    names = [f"{d}_{part}" for d in ("hmd", "left_controller", "right_controller") for part in parts]

    def rows() -> Iterator[Any]:
        for block in blocks(minutes, 60):
            poses = np.concatenate([100.0 * block.position, quat.xyzw_from_wxyz(block.rotation)], axis=-1)
            yield np.column_stack([1000.0 * block.time_s, poses.reshape(len(poses), -1)])

    return table(folder / "hour.csv", ["delta_time_ms", *names], rows())


def make_generic(folder: Path, minutes: float) -> Path:
    """A table of one's own, 90 Hz, with its mapping file."""
    path = folder / "hour.csv"
    maps = ['axes = "openvr"\n[time]\ncolumn = "t"\nunit = "s"\n']
    for d in DEVICES:
        place, turn = [f"{d}_{a}" for a in "xyz"], [f"{d}_{a}" for a in "ijkw"]
        maps.append(
            f'[[device]]\nname = "{d}"\nrole = "{d}"\n'
            f"position = {json.dumps(place)}\nquaternion = {json.dumps(turn)}\n"
        )
    path.with_name("hour.csv.toml").write_text("\n".join(maps))

    def rows() -> Iterator[Any]:
        for block in blocks(minutes, 90):
            poses = np.concatenate([block.position, quat.xyzw_from_wxyz(block.rotation)], axis=-1)
            yield np.column_stack([block.time_s, poses.reshape(len(poses), -1)])

    return table(path, ["t", *(f"{d}_{a}" for d in DEVICES for a in "xyzijkw")], rows())


def items(path: Path, head: str, tail: str, parts: Iterator[list[str]]) -> Path:
    """A JSON list between ``head`` and ``tail``."""
    with path.open("w") as stream:
        stream.write(head)
        for i, part in enumerate(parts):
            stream.write(("," if i else "") + ",".join(part))
        stream.write(tail)
    return path


def make_aframe(folder: Path, minutes: float) -> Path:
    """A-Frame, 90 Hz: one device after the other."""
    path = folder / "hour.json"

    def poses(k: int) -> Iterator[list[str]]:
        for block in blocks(minutes, 90):
            turns = np.degrees(quat.to_euler("yxz", block.rotation[:, k]))[:, [1, 0, 2]]
            yield [
                json.dumps({
                    "position": dict(zip("xyz", row[:3], strict=True)),
                    "rotation": dict(zip("xyz", row[3:6], strict=True)),
                    "timestamp": row[6],
                })
                for row in np.column_stack([block.position[:, k], turns, 1000.0 * block.time_s]).tolist()
            ]  # fmt: skip

    with path.open("w") as stream:
        for k, name in enumerate(("camera", "left", "right")):
            part = items(folder / "part", f'"{name}":{{"poses":[', '],"events":[]}', poses(k))
            stream.write("{" if k == 0 else ",")
            with part.open() as text:
                while piece := text.read(1 << 20):
                    stream.write(piece)
            part.unlink()
        stream.write("}")
    return path


def make_openvr(folder: Path, minutes: float) -> Path:
    """The OpenVR dump, 32 Hz: feet, Z up, and Euler angles of the permuted matrix."""
    swap = np.array([[-1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, 1.0, 0.0]])

    def frames() -> Iterator[list[str]]:
        for block in blocks(minutes, 31.25):
            place = block.position @ swap.T / FEET_M
            turn = quat.to_euler("zyx", quat.from_matrix(swap @ quat.to_matrix(block.rotation)))[..., ::-1]
            yield [
                json.dumps([32, [
                    {"position": p[k], "rotation": r[k], "color": "r", "name": name}
                    for k, name in ((1, "Left Hand"), (2, "Right Hand"), (0, "Head"))
                ]])
                for p, r in zip(place.tolist(), np.degrees(turn).tolist(), strict=True)
            ]  # fmt: skip

    return items(folder / "hour.json", "[", "]", frames())


def make_webvr(folder: Path, minutes: float) -> Path:
    """Two gamepads of a browser, 90 Hz."""

    def values() -> Iterator[list[str]]:
        for block in blocks(minutes, 90):
            place, turn = block.position - [0.0, 1.6, 0.0], quat.xyzw_from_wxyz(block.rotation)
            yield [
                json.dumps({"recordedAt": 1483366141374 + round(1000 * t), "data": {
                    str(k - 1): {"id": "OpenVR Gamepad", "hand": hand, "pose": {
                        "position": dict(enumerate(p[k])), "orientation": dict(enumerate(q[k])),
                        "linearVelocity": {0: 0, 1: 0, 2: 0}, "angularVelocity": {0: 0, 1: 0, 2: 0},
                    }} for k, hand in ((1, "left"), (2, "right"))
                } | {"length": 2}})
                for t, p, q in zip(block.time_s.tolist(), place.tolist(), turn.tolist(), strict=True)
            ]  # fmt: skip

    return items(folder / "hour.json", '{"startedAt":1483366141374,"values":[', "]}", values())


JOINTS = (
    ("root", -1, (0, 93, 0)), *((f"torso_{i}", i - 1, (0, 7, 0)) for i in range(1, 8)),
    ("neck_1", 7, (0, 5, 0)), ("neck_2", 8, (0, 5, 0)), ("head", 9, (0, 5, 0)),
    ("l_shoulder", 7, (2, -5, 3)), ("l_up_arm", 11, (13, 3, -3)), ("l_low_arm", 12, (29, 0, 0)),
    ("l_hand", 13, (24, 0, 0)), ("r_shoulder", 7, (-2, -5, 3)), ("r_up_arm", 15, (-13, 3, -3)),
    ("r_low_arm", 16, (-29, 0, 0)), ("r_hand", 17, (-24, 0, 0)),
    ("l_up_leg", 0, (9, -5, 0)), ("l_low_leg", 19, (0, -40, 0)), ("l_foot", 20, (0, -40, 0)),
    ("l_toes", 21, (0, -6, 12)), ("r_up_leg", 0, (-9, -5, 0)), ("r_low_leg", 23, (0, -40, 0)),
    ("r_foot", 24, (0, -40, 0)), ("r_toes", 25, (0, -6, 12)),
)  # fmt: skip
"""As many as mocopi's skeleton has: name, parent, offset [cm]."""


def make_bvh(folder: Path, minutes: float) -> Path:
    """Motion capture, 60 Hz, six channels for each of 27 joints: the head's path, the limbs swinging."""
    path = folder / "hour.bvh"
    channels = "CHANNELS 6 Xposition Yposition Zposition Zrotation Xrotation Yrotation"

    def joint(i: int) -> str:
        name, parent, offset = JOINTS[i]
        inner = "".join(joint(k) for k, (_, p, _) in enumerate(JOINTS) if p == i)
        kind = "ROOT" if parent < 0 else "JOINT"
        numbers = " ".join(map(str, offset))
        end = inner or "End Site\n{\nOFFSET 0 0.1 0\n}\n"
        return f"{kind} {name}\n{{\nOFFSET {numbers}\n{channels}\n{end}}}\n"

    rows = round(minutes * 60 * 60)
    with path.open("w") as stream:
        stream.write(f"HIERARCHY\n{joint(0)}MOTION\nFrames: {rows}\nFrame Time: 0.016667\n")
        for block in blocks(minutes, 60):
            values = np.zeros((len(block.time_s), len(JOINTS), 6))
            values[..., :3] = [offset for _, _, offset in JOINTS]
            phase = np.arange(3 * len(JOINTS)).reshape(-1, 3)
            values[..., 3:] = 8.0 * np.sin(block.time_s[:, None, None] + phase)
            values[:, 0, [0, 2]] = 100.0 * block.position[:, 0, [0, 2]]
            np.savetxt(stream, values.reshape(len(values), -1), fmt="%.6g")
    return path


def _tracks(block: Block) -> np.ndarray[Any, Any]:
    """SlimeVR's samples of head and hands, with body place and acceleration."""
    frames = np.zeros(
        (len(block.time_s), 3),
        [("flags", ">i4"), ("rotation", ">4f4"), ("position", ">3f4"), ("place", ">i4"), ("moved", ">3f4")],
    )
    frames["flags"], frames["place"] = 2 | 4 | 8 | 16, (0, 16, 17)
    frames["rotation"], frames["position"] = quat.xyzw_from_wxyz(block.rotation), block.position
    return frames


def make_pfr(folder: Path, minutes: float) -> Path:
    """SlimeVR, 50 Hz, tracker by tracker."""
    path = folder / "hour.pfr"
    with path.open("wb") as stream:
        stream.write(struct.pack(">i", 3))
        for k, name in enumerate((b"HMD", b"Left", b"Right")):
            stream.write(struct.pack(">H", len(name)) + name + struct.pack(">i", round(minutes * 60 * 50)))
            for block in blocks(minutes, 50):
                stream.write(_tracks(block)[:, k].tobytes())
    return path


def make_pfs(folder: Path, minutes: float) -> Path:
    """SlimeVR, 50 Hz, packet by packet."""
    path, begin = folder / "hour.pfs", 0
    with path.open("wb") as stream:
        stream.write(b"\0" + struct.pack(">f", 0.02))
        for k, name in enumerate((b"HMD", b"Left", b"Right")):
            stream.write(b"\1" + bytes([k]) + struct.pack(">H", len(name)) + name)
        for block in blocks(minutes, 50):
            frames = _tracks(block)
            packets = np.zeros(
                frames.shape, [("kind", "u1"), ("k", "u1"), ("number", ">u4"), ("frame", frames.dtype)]
            )
            packets["kind"], packets["k"], packets["frame"] = 2, np.arange(3), frames
            packets["number"] = begin + np.arange(len(frames))[:, None]
            begin += len(frames)
            stream.write(packets.tobytes())
    return path


def make_xror(folder: Path, minutes: float) -> Path:
    """XROR, 90 Hz; needs the packages of the extra ``xror``."""
    bson, fpzip = import_module("bson"), import_module("fpzip")
    rows = []
    for block in blocks(minutes, 90):
        poses = np.concatenate(in_unity(block), axis=-1)
        rows.append(np.column_stack([block.time_s, poses.reshape(len(poses), -1)]).astype(np.float32))
    joints = (("HMD", "HEAD"), ("CONTROLLER", "HAND_LEFT"), ("CONTROLLER", "HAND_RIGHT"))
    devices = [{"name": j, "type": t, "joint": j, "axes": list("xyzijkl")} for t, j in joints]
    document = {
        "$schema": "https://metaguard.github.io/xror/schema/v1.0.0/schema.json",
        "info": {"name": "hour", "hardware": {"devices": devices}},
        "frames": fpzip.compress(np.concatenate(rows)),
        "events": {},
    }
    (folder / "hour.xror").write_bytes(bson.encode(document))
    return folder / "hour.xror"


KINDS: dict[str, Callable[[Path, float], Path]] = {
    "vrik": make_native,
    "bsor": make_bsor,
    "vive-csv": make_vive,
    "steamvr-csv": make_steamvr,
    "aframe": make_aframe,
    "openvr-json": make_openvr,
    "webvr-gamepad": make_webvr,
    "quest-log": make_quest,
    "arm-tracker-csv": make_arm,
    "bvh": make_bvh,
    "harness-npz": make_npz,
    "harness-jsonl": make_jsonl,
    "slimevr-pfr": make_pfr,
    "slimevr-pfs": make_pfs,
    "alyx-csv": make_alyx,
    "xror": make_xror,
    "generic-csv": make_generic,
}
"""Every kind, by the name that ``vrik inspect`` gives it; SlimeVR's has two files."""

BODILESS = ("webvr-gamepad", "quest-log", "arm-tracker-csv")
"""No head, or a head alone: solving these ends with one sentence."""


def can_make(kind: str) -> bool:
    """Whether the packages that a kind needs are installed."""
    return kind != "xror" or all(map(importlib.util.find_spec, ("bson", "fpzip")))
