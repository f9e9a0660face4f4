"""How fast recordings of each kind become numpy arrays, frames a second.

    python tools/bench_recordings.py                       every kind
    python tools/bench_recordings.py --only vive-csv bsor  some kinds

The files are made here from the bundled session, there and back again: BSOR, each kind of CSV, vrik's own
format and the accuracy harness's two. Each figure is the best of ``ROUNDS`` and takes in opening the file.
"""

from __future__ import annotations

import argparse
import struct
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

from recordings import RecordingWriter, open_recording, read_all
from recordings.convert import convert
from recordings.importers import alyx_csv
from recordings.importers.axes import openvr_from_unity
from recordings.importers.bsor import FRAME, MAGIC
from recordings.samples import sample
from vrik import quat
from vrik.arrays import Floats, Points, Quats

FRAMES = 50_000
ROUNDS = 3
RATE_HZ = 90

_XYZ_XYZW = ("X", "Y", "Z", *(f"Quaternion{axis}" for axis in "XYZW"))

_MAP = """
axes = "openvr"

[time]
column = "t"
unit = "s"

[[device]]
name = "head"
role = "head"
position = ["hx", "hy", "hz"]
quaternion = ["hi", "hj", "hk", "hw"]

[[device]]
name = "left_hand"
role = "left_hand"
position = ["lx", "ly", "lz"]
quaternion = ["li", "lj", "lk", "lw"]

[[device]]
name = "right_hand"
role = "right_hand"
position = ["rx", "ry", "rz"]
quaternion = ["ri", "rj", "rk", "rw"]
"""


def measure(only: list[str] | None = None) -> dict[str, object]:
    """Frames a second by kind of file, most of three devices: six in Vive CSV, nine in SteamVR CSV."""
    with tempfile.TemporaryDirectory() as folder:
        paths = {name: make(Path(folder)) for name, make in MAKERS.items()}
        rates = {name: read_rate(path) for name, path in paths.items() if not only or name in only}
    return {"frames": FRAMES, "frames_per_s": rates}


def read_rate(path: Path) -> int:
    """Frames a second from a file to arrays, the best of ``ROUNDS``."""
    best = float("inf")
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        count = len(read_all(open_recording(path)))
        best = min(best, time.perf_counter() - begun)
    return round(count / best)


def session() -> tuple[Points, Quats]:
    """(FRAMES, 6, 3) and (FRAMES, 6, 4): head, left and right hand, foot, waist, foot of the session."""
    take = read_all(open_recording(sample("session_6points")))
    whole = np.flatnonzero(take.valid.all(axis=1))
    rows = np.concatenate([whole, whole[::-1]])[np.arange(FRAMES) % (2 * len(whole))]
    return take.position[rows], take.rotation[rows]


def make_native(folder: Path) -> Path:
    """The bundled session again and again."""
    take, path = read_all(open_recording(sample("session_3points"))), folder / "long.mcap"
    with RecordingWriter(path, take.devices) as writer:
        for i in range(FRAMES):
            there_and_back = i % (2 * len(take))
            row = min(there_and_back, 2 * len(take) - 1 - there_and_back)
            writer.write(replace(take.frame(row), host_time_ns=round(i * 1e9 / RATE_HZ)))
    return path


def make_bsor(folder: Path) -> Path:
    """Head and hands."""
    path = folder / "long.bsor"
    text = b"".join(struct.pack("<i", 1) + b"x" for _ in range(13))
    info = (
        text + struct.pack("<i", 0) + struct.pack("<i", 0) * 3 + struct.pack("<fBffff", 18, 0, 1.7, 0, 0, 0)
    )
    frames = np.zeros(FRAMES, FRAME)
    position, rotation = openvr_from_unity(*session())
    frames["time"] = np.arange(FRAMES) / RATE_HZ
    frames["poses"]["position"] = position[:, :3]
    frames["poses"]["rotation"] = quat.xyzw_from_wxyz(rotation[:, :3])
    path.write_bytes(MAGIC + b"\x01\x00" + info + b"\x01" + struct.pack("<i", FRAMES) + frames.tobytes())
    return path


def make_vive(folder: Path) -> Path:
    """Six devices with six columns each."""
    devices = ("HMD0", "controller3", "controller4", "generic7", "generic8", "generic9")
    axes = ("tx", "ty", "tz", "rx", "ry", "rz")
    position, rotation = session()
    angles = np.degrees(quat.to_euler("zyx", rotation))[..., ::-1]
    names = ["timestamp", *(f"{device}_{axis}" for device in devices for axis in axes)]
    return _table(folder / "long.csv", names, _beside(seconds(), 100.0 * position, angles))


def make_steamvr(folder: Path) -> Path:
    """Head and hands, six places, stamps of whole seconds, a floor below zero."""
    position, rotation = openvr_from_unity(*session())
    position = position - np.array([0.0, 1.0, 0.0])
    knees = 0.5 * (position[:, [3, 5]] + position[:, [4]])
    places = np.concatenate([position[:, 1:3], position[:, [4, 4]], knees], axis=1)
    names = [f"{d}{axis}" for d in ("Headset", "LController", "RController") for axis in _XYZ_XYZW]
    for place in ("LeftElbow", "RightElbow", "Front", "Back", "LeftKnee", "RightKnee"):
        names += [place + axis for axis in "XYZ"]
    poses = np.concatenate([position[:, :3], quat.xyzw_from_wxyz(rotation[:, :3])], axis=-1)
    clock = [divmod(int(t), 60) for t in seconds()]
    stamps = [f"2017-28-4--{10 + m // 60}-{m % 60}-{s}" for m, s in clock]
    return _table(folder / "steamvr.csv", ["DateTime", *names], _beside(poses, places), stamps)


def make_quest(folder: Path) -> Path:
    """The head."""
    position, rotation = openvr_from_unity(*session())
    ticks = (638423032246286760 + np.round(1e7 * seconds()).astype(np.int64)).tolist()
    starts = [f"{tick},{tick + 20},2024,1,31,13,7,4,628" for tick in ticks]
    values = _beside(position[:, 0], quat.xyzw_from_wxyz(rotation[:, 0]))
    return _table(folder / "quest.txt", [], values, starts)


def make_arm(folder: Path) -> Path:
    """Forearm and hand, turned as the hands of the session are."""
    _, rotation = session()
    elbow = quat.rotate(rotation[:, 1], np.array([0.52, 0.0, 0.0]))
    hand = elbow + quat.rotate(rotation[:, 2], np.array([0.46, 0.0, 0.0]))
    return _table(folder / "arm.csv", [], _beside(elbow, hand, quat.xyzw_from_wxyz(rotation[:, 1:3])))


def make_alyx(folder: Path) -> Path:
    """Head and hands."""
    position, rotation = session()
    poses = np.concatenate([100.0 * position[:, :3], quat.xyzw_from_wxyz(rotation[:, :3])], axis=-1)
    names = [alyx_csv.TIME, *(f"{device}_{part}" for device in alyx_csv.ROLES for part in alyx_csv.PARTS)]
    return _table(folder / "alyx.csv", names, _beside(1000.0 * seconds(), poses))


def make_table(folder: Path) -> Path:
    """Three devices with positions and quaternions, and the mapping file beside it."""
    position, rotation = session()
    poses = np.concatenate([position[:, :3], quat.xyzw_from_wxyz(rotation[:, :3])], axis=-1)
    names = ["t", *(f"{device}{axis}" for device in "hlr" for axis in "xyzijkw")]
    path = _table(folder / "other.csv", names, _beside(seconds(), poses))
    path.with_name("other.csv.toml").write_text(_MAP)
    return path


def make_jsonl(folder: Path) -> Path:
    """The native one, as lines of the accuracy harness."""
    convert(folder / "long.mcap", folder / "long.jsonl")
    return folder / "long.jsonl"


def make_npz(folder: Path) -> Path:
    """The native one, as arrays of the accuracy harness."""
    convert(folder / "long.mcap", folder / "long.npz")
    return folder / "long.npz"


def seconds() -> Floats:
    """The time of each frame. [s]"""
    return np.arange(FRAMES) / RATE_HZ


def _beside(*columns: Floats) -> Floats:
    """Numbers of each frame in one row."""
    return np.hstack([part.reshape(FRAMES, -1) for part in columns])


def _table(path: Path, names: list[str], values: Floats, starts: list[str] | None = None) -> Path:
    """Rows of numbers, which may begin with ready cells; with a header if there are names."""
    with path.open("w") as stream:
        if names:
            stream.write(",".join(names) + "\n")
        for i, row in enumerate(values.tolist()):
            numbers = ",".join([f"{value:.6f}" for value in row])
            stream.write(f"{starts[i]},{numbers}\n" if starts else f"{numbers}\n")
    return path


MAKERS: dict[str, Callable[[Path], Path]] = {
    "vrik/1": make_native,
    "bsor": make_bsor,
    "vive-csv": make_vive,
    "steamvr-csv": make_steamvr,
    "alyx-csv": make_alyx,
    "arm-tracker-csv": make_arm,
    "quest-log": make_quest,
    "generic-csv": make_table,
    "harness-jsonl": make_jsonl,
    "harness-npz": make_npz,
}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", choices=MAKERS, help="kinds to measure")
    for kind, rate in measure(parser.parse_args().only)["frames_per_s"].items():  # type: ignore[attr-defined]
        print(f"{kind:16} {rate:10,} frames/s")
