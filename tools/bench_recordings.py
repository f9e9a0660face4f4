"""How fast recordings of each kind become numpy arrays, frames a second.

    python tools/bench_recordings.py

The files are made here: long ones of BSOR, Vive CSV, another CSV with a mapping file, vrik's own format and
the accuracy harness's two. Each figure is the best of ``ROUNDS`` and takes in opening the file.
"""

from __future__ import annotations

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
from recordings.importers.bsor import FRAME, MAGIC
from recordings.samples import sample

FRAMES = 50_000
ROUNDS = 3
RATE_HZ = 90

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


def measure() -> dict[str, object]:
    """Frames a second by kind of file, each of three devices or, for Vive CSV, six."""
    with tempfile.TemporaryDirectory() as folder:
        paths = {name: make(Path(folder)) for name, make in MAKERS.items()}
        rates = {name: read_rate(path) for name, path in paths.items()}
    return {"frames": FRAMES, "frames_per_s": rates}


def read_rate(path: Path) -> int:
    """Frames a second from a file to arrays, the best of ``ROUNDS``."""
    best = float("inf")
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        count = len(read_all(open_recording(path)))
        best = min(best, time.perf_counter() - begun)
    return round(count / best)


def make_native(folder: Path) -> Path:
    """The bundled session again and again."""
    take, path = read_all(open_recording(sample("session_3points"))), folder / "long.mcap"
    with RecordingWriter(path, take.devices) as writer:
        for i in range(FRAMES):
            writer.write(replace(take.frame(i % len(take)), host_time_ns=round(i * 1e9 / RATE_HZ)))
    return path


def make_bsor(folder: Path) -> Path:
    """Head and hands that move a little."""
    path = folder / "long.bsor"
    text = b"".join(struct.pack("<i", 1) + b"x" for _ in range(13))
    info = (
        text + struct.pack("<i", 0) + struct.pack("<i", 0) * 3 + struct.pack("<fBffff", 18, 0, 1.7, 0, 0, 0)
    )
    frames = np.zeros(FRAMES, FRAME)
    frames["time"] = np.arange(FRAMES) / RATE_HZ
    frames["poses"]["position"] = [[0.0, 1.6, 0.0], [-0.3, 1.0, 0.3], [0.3, 1.0, 0.3]]
    frames["poses"]["position"] += 0.1 * np.sin(frames["time"])[:, None, None]
    frames["poses"]["rotation"] = [0.0, 0.0, 0.0, 1.0]
    path.write_bytes(MAGIC + b"\x01\x00" + info + b"\x01" + struct.pack("<i", FRAMES) + frames.tobytes())
    return path


def make_vive(folder: Path) -> Path:
    """Six devices with six columns each."""
    devices = ("HMD0", "controller3", "controller4", "generic7", "generic8", "generic9")
    axes = ("tx", "ty", "tz", "rx", "ry", "rz")
    names = ["timestamp", *(f"{device}_{axis}" for device in devices for axis in axes)]
    return _table(folder / "long.csv", names, 100.0)


def make_table(folder: Path) -> Path:
    """Three devices with positions and quaternions, and the mapping file beside it."""
    names = ["t", *(f"{device}{axis}" for device in "hlr" for axis in "xyzijkw")]
    path = _table(folder / "other.csv", names, 1.0)
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


def _table(path: Path, names: list[str], scale: float) -> Path:
    t = np.arange(FRAMES) / RATE_HZ
    values = np.tile(0.5 * scale + 0.1 * np.sin(t)[:, None], (1, len(names)))
    values[:, 0] = t
    if scale == 1.0:  # unit quaternions
        values[:, [i for i, name in enumerate(names) if name[-1] in "ijkw"]] = 0.5
    rows = "\n".join(",".join(f"{value:.6f}" for value in row) for row in values.tolist())
    path.write_text(",".join(names) + "\n" + rows + "\n")
    return path


MAKERS: dict[str, Callable[[Path], Path]] = {
    "vrik/1": make_native,
    "bsor": make_bsor,
    "vive-csv": make_vive,
    "generic-csv": make_table,
    "harness-jsonl": make_jsonl,
    "harness-npz": make_npz,
}


if __name__ == "__main__":
    for kind, rate in measure()["frames_per_s"].items():  # type: ignore[attr-defined]
        print(f"{kind:14} {rate:10,} frames/s")
