"""How fast recordings of each kind become numpy arrays, frames a second.

    python tools/bench_recordings.py                       every kind, some three minutes
    python tools/bench_recordings.py --only vive-csv bsor  some kinds

The files are made here from the bundled session, as for the soak (``soak_kinds.py``). Each figure is the
median of ``ROUNDS`` and takes in opening the file: by the clock, and by the time of the processor, which is
what counts on a machine that others use as well.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

from recordings import open_recording, read_all
from recordings.importers.axes import openvr_from_unity
from recordings.samples import sample
from tools.soak_kinds import KINDS, can_make, table
from vrik import quat
from vrik.arrays import Floats, Points, Quats

MINUTES = 6
"""Of session in each file; 2000 to 32,000 frames, as many a second as is usual for the kind."""

ROUNDS = 5
RATE_HZ = 90
"""Of the tables that are made here. [frames/s]"""

BLANK_EVERY = 10
"""So many rows of the SteamVR table lie between two in which the knees are lost."""


def measure(only: list[str] | None = None) -> dict[str, object]:
    """Frames a second by kind of file: of three devices, but six in Vive CSV and BVH, nine in SteamVR CSV."""
    by_clock, by_processor = {}, {}
    for kind, make in MAKERS.items():
        if can_make(kind) and (not only or kind in only):
            with tempfile.TemporaryDirectory() as folder:
                by_clock[kind], by_processor[kind] = read_rates(make(Path(folder), MINUTES))
    return {"minutes": MINUTES, "frames_per_s": by_clock, "frames_per_processor_s": by_processor}


def read_rates(path: Path) -> tuple[int, int]:
    """Frames a second from a file to arrays, by the clock and by the processor; medians of ``ROUNDS``."""
    took, worked, count = [], [], 0
    for _ in range(ROUNDS):
        begun, begun_s = time.perf_counter(), processor_s()
        count = len(read_all(open_recording(path)))
        took.append(time.perf_counter() - begun)
        worked.append(max(processor_s() - begun_s, 1e-9))
    return round(count / statistics.median(took)), round(count / statistics.median(worked))


def processor_s() -> float:
    """What this process and those it waited for have used. [s]"""
    return sum(os.times()[:4])


def session(minutes: float) -> tuple[Floats, Points, Quats]:
    """Times [s], (n, 6, 3) and (n, 6, 4): head, left and right hand, foot, waist, foot of the session."""
    take = read_all(open_recording(sample("session_6points")))
    whole = np.flatnonzero(take.valid.all(axis=1))
    i = np.arange(round(minutes * 60 * RATE_HZ))
    rows = np.concatenate([whole, whole[::-1]])[i % (2 * len(whole))]
    return i / RATE_HZ, take.position[rows], take.rotation[rows]


def make_vive(folder: Path, minutes: float) -> Path:
    """Six devices with six columns each."""
    devices = ("HMD0", "controller3", "controller4", "generic7", "generic8", "generic9")
    axes = ("tx", "ty", "tz", "rx", "ry", "rz")
    time_s, position, rotation = session(minutes)
    angles = np.degrees(quat.to_euler("zyx", rotation))[..., ::-1]
    poses = np.concatenate([100.0 * position, angles], axis=-1)
    names = ["timestamp", *(f"{device}_{axis}" for device in devices for axis in axes)]
    return table(folder / "vive.csv", names, iter([np.column_stack([time_s, poses.reshape(len(poses), -1)])]))


def make_steamvr(folder: Path, minutes: float) -> Path:
    """Head and hands, six places, stamps of whole seconds, a floor below zero, and lost knees."""
    time_s, world, turn = session(minutes)
    position, rotation = openvr_from_unity(world, turn)
    position = position - np.array([0.0, 1.0, 0.0])
    knees = 0.5 * (position[:, [3, 5]] + position[:, [4]])
    places = np.concatenate([position[:, 1:3], position[:, [4, 4]]], axis=1).reshape(len(time_s), -1)
    poses = np.concatenate([position[:, :3], quat.xyzw_from_wxyz(rotation[:, :3])], axis=-1)
    columns = ("X", "Y", "Z", *(f"Quaternion{axis}" for axis in "XYZW"))
    names = [f"{d}{c}" for d in ("Headset", "LController", "RController") for c in columns]
    for place in ("LeftElbow", "RightElbow", "Front", "Back", "LeftKnee", "RightKnee"):
        names += [place + axis for axis in "XYZ"]
    seen = np.column_stack([poses.reshape(len(time_s), -1), places]).tolist()
    lines = []
    for i, (t, row, knee) in enumerate(zip(time_s, seen, knees.reshape(-1, 6).tolist(), strict=True)):
        minute, second = divmod(int(t), 60)
        lost = i % BLANK_EVERY == BLANK_EVERY - 1
        cells = [f"{number:.6f}" for number in row] + [f"{n:.6f}" if not lost else "" for n in knee]
        lines.append(f"2017-28-4--{10 + minute // 60}-{minute % 60}-{second}," + ",".join(cells))
    return table(folder / "steamvr.csv", ["DateTime", *names], iter([lines]))


MAKERS: dict[str, Callable[[Path, float], Path]] = KINDS | {
    "vive-csv": make_vive,
    "steamvr-csv": make_steamvr,
}
"""Every kind; these two with more devices than in the soak."""


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", choices=MAKERS, help="kinds to measure")
    before = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
    figures: dict[str, Any] = measure(parser.parse_args().only)
    print(f"{'frames/s':16} {'by the clock':>14} {'by the processor':>18}")
    for kind, rate in figures["frames_per_s"].items():
        print(f"{kind:16} {rate:14,} {figures['frames_per_processor_s'][kind]:18,}")
    print(f"load of the machine when it began: {before:.1f} on {os.cpu_count()} cores")
