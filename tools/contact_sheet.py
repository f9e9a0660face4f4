"""Stick figures of a solved recording, front and side, so that a person can judge poses at a glance.

    python -m tools.contact_sheet FILE OUT.png [--times 1 2.5 5 | --count 12] [--compare TRUTH.npz]

FILE is a skeleton (an ``.npz`` with ``pos`` (n, 22, 3) and ``rot``, as ``vrik solve`` writes it, or a native
recording that holds solved frames), or any recording that vrik can solve. ``--compare`` draws a second
skeleton behind it in grey. Each pair shows the body in its own heading: first as someone in front of it sees
it, then looking to the right.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from recordings import open_recording, read_all, read_poses
from vrik import quat
from vrik.arrays import Bools, Floats, Ints, Points, Quats
from vrik.errors import NoUsableFramesError, RecordingError, VrikError
from vrik.frames import DeviceClass, TrackerSequence
from vrik.skeleton import BONE, PARENTS, VRM_FROM_SMPL

INK, DEVICE_COLOUR = "#3b4351", "#c2185b"
COLOURS = (INK, "#2f6fde", "#e07b1f")
"""Trunk, left and right side."""

LEGEND = "blue: left   orange: right   cross: device (ring: lost)"
BEHIND_COLOURS = ("#c3c8d1",) * 3
CELL_FRONT_M, CELL_SIDE_M, CELL_GAP_M, CELL_HEIGHT_M = 2.0, 1.7, 0.25, 2.45


@dataclass(frozen=True, slots=True, eq=False)
class Figures:
    """A moving skeleton and the devices it was solved from.

    Args:
        t: (n,) times from the start. [s]
        joints: (n, 22, 3) in the order of ``BONES``. [m]
        rotations: (n, 22, 4) canonical, or None when the file has none.
        devices: (n, k, 3) device positions; k may be 0. [m]
        tracked: (n, k) whether each may be believed.
    """

    t: Floats
    joints: Points
    rotations: Quats | None
    devices: Points
    tracked: Bools

    def at(self, times: Floats) -> list[int]:
        """Rows nearest to the given times."""
        return [int(np.argmin(np.abs(self.t - time))) for time in times]


def load_figures(path: Path) -> Figures:
    """Read a skeleton, or solve a recording.

    Raises:
        VrikError: With one sentence, if neither is possible.
    """
    if not path.exists():
        raise RecordingError(f"there is no file {path}")
    if path.suffix.lower() == ".npz":
        with np.load(path, allow_pickle=False) as arrays:
            if "pos" in arrays and arrays["pos"].shape[1:] == (22, 3):
                return _from_arrays({name: arrays[name] for name in arrays.files})
    if path.suffix.lower() == ".mcap":
        try:
            poses = read_poses(path)
        except NoUsableFramesError:
            return solve_figures(path)
        trackers = read_all(open_recording(path))
        rows = np.searchsorted(trackers.time_ns, poses.time_ns).clip(0, max(len(trackers) - 1, 0))
        return _from_frames(poses.time_ns, poses.position, poses.rotation, trackers.part(rows))
    return solve_figures(path)


def solve_figures(path: Path) -> Figures:
    """Run a recording through calibration and solver."""
    from calibration import calibrate  # here, because a finished skeleton needs none of it
    from vrik.pipeline import Pipeline

    recording = open_recording(path)
    info = recording.info
    frames = read_all(recording)
    if len(frames) == 0:
        raise RecordingError(f"{path} holds no frames, so there is nothing to solve")
    person = calibrate(
        frames, stature_m=info.stature_m, tpose=info.calibration, skeleton_tpose=info.skeleton_tpose
    )
    pipeline = Pipeline(person)
    poses = [pipeline.step(frame) for frame in frames]
    joints = np.array([pose.position for pose in poses])
    rotations = np.array([pose.rotation for pose in poses])
    return _from_frames(frames.time_ns, joints, rotations, frames)


def _from_frames(time_ns: Ints, joints: Points, rotations: Quats, trackers: TrackerSequence) -> Figures:
    t = (time_ns - time_ns[0]) * 1e-9
    worn = (DeviceClass.HMD, DeviceClass.CONTROLLER, DeviceClass.GENERIC_TRACKER)  # no base stations
    columns = [i for i, device in enumerate(trackers.devices) if device.device_class in worn]
    return Figures(t, joints, rotations, trackers.position[:, columns], trackers.valid[:, columns])


def _from_arrays(arrays: dict[str, Any]) -> Figures:
    joints = np.asarray(arrays["pos"], np.float64)[:, VRM_FROM_SMPL]
    rotations = np.asarray(arrays["rot"], np.float64)[:, VRM_FROM_SMPL] if "rot" in arrays else None
    n = len(joints)
    t = (
        np.asarray(arrays["t"], np.float64)
        if "t" in arrays
        else np.arange(n) / float(arrays.get("fps", 60.0))
    )
    return Figures(t - t[0] if n else t, joints, rotations, np.zeros((n, 0, 3)), np.zeros((n, 0), bool))


def draw_sheet(
    figures: Figures, times: Floats, out: Path, behind: Figures | None = None, title: str = ""
) -> None:
    """Write a PNG with one pair of views for each time.

    Args:
        figures: What to draw.
        times: When. [s]
        out: The picture.
        behind: A second skeleton, drawn in grey behind the first, at the same times.
        title: One line above.

    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    columns = min(4, len(times))
    rows = -(-len(times) // columns)
    cell = CELL_FRONT_M + CELL_SIDE_M + CELL_GAP_M
    width, height = columns * cell, rows * CELL_HEIGHT_M
    sheet = Figure(figsize=(width * 0.95, height * 0.95 + 0.35), dpi=110, facecolor="white")
    FigureCanvasAgg(sheet)
    axes = sheet.add_axes((0.0, 0.0, 1.0, 1.0 - 0.35 / (height * 0.95 + 0.35)))
    axes.set_xlim(0.0, width)
    axes.set_ylim(-height, 0.0)
    axes.set_aspect("equal")
    axes.axis("off")
    sheet.text(0.012, 0.995, title, ha="left", va="top", fontsize=11, color=INK, weight="bold")
    sheet.text(
        0.988, 0.995, LEGEND + ("   grey: compared" if behind else ""),
        ha="right", va="top", fontsize=9, color=INK,
    )  # fmt: skip
    for number, row in enumerate(figures.at(times)):
        column, line = number % columns, number // columns
        floor = -(line + 1) * CELL_HEIGHT_M + 0.22
        left = column * cell + 0.08
        axes.text(left, floor + 2.13, f"{figures.t[row]:.2f} s", fontsize=9, color=INK, va="top")
        other = behind.at(np.array([figures.t[row]]))[0] if behind else 0
        for centre, half, side in (
            (left + CELL_FRONT_M / 2, CELL_FRONT_M / 2, False),
            (left + CELL_FRONT_M + CELL_SIDE_M / 2, CELL_SIDE_M / 2, True),
        ):
            axes.plot(
                [centre - half + 0.05, centre + half - 0.05],
                [floor, floor],
                color="#9aa1ad",
                lw=0.9,
                zorder=0,
            )
            view = _View(figures.joints[row], side, centre, floor)
            for body, at, layer in ((behind, other, 1.0), (figures, row, 2.0)):
                if body is not None:
                    _draw_body(
                        axes,
                        view,
                        body.joints[at],
                        None if body.rotations is None else body.rotations[at],
                        width=5.0 if layer == 1.0 else 2.4,
                        colours=BEHIND_COLOURS if layer == 1.0 else COLOURS,
                        layer=layer,
                    )
            for place, tracked in zip(figures.devices[row], figures.tracked[row], strict=True):
                if np.isfinite(place).all():
                    x, y = view.flat(place[None])[0]
                    marker, size = ("+", 7.0) if tracked else ("o", 5.0)
                    axes.plot(x, y, marker, ms=size, mew=1.3, mec=DEVICE_COLOUR, mfc="none", zorder=5)
    sheet.savefig(out)


class _View:
    """Where a point of the world is drawn: centred on one body, in its heading."""

    def __init__(self, joints: Points, side: bool, centre: float, floor: float) -> None:
        left = joints[BONE["leftUpperLeg"]] - joints[BONE["rightUpperLeg"]]
        left = left + joints[BONE["leftUpperArm"]] - joints[BONE["rightUpperArm"]]
        left[1] = 0.0
        size = float(np.linalg.norm(left))
        left = left / size if size > 1e-6 else np.array([-1.0, 0.0, 0.0])
        forward = np.array([-left[2], 0.0, left[0]])
        self._across = forward if side else left
        self._depth = -left if side else forward
        self._origin = joints[BONE["hips"]] * [1.0, 0.0, 1.0]
        self._shift = np.array([centre, floor])

    def flat(self, points: Points) -> Points:
        """(n, 3) to (n, 2) on the sheet."""
        moved = points - self._origin
        return np.asarray(np.stack([moved @ self._across, points[:, 1]], axis=-1) + self._shift)

    def nearness(self, point: Points) -> float:
        """Larger is drawn over smaller. [m]"""
        return float((point - self._origin) @ self._depth)


def _draw_body(
    axes: Any,
    view: _View,
    joints: Points,
    rotations: Quats | None,
    *,
    width: float,
    colours: Sequence[str],
    layer: float,
) -> None:
    """Bones as round-ended lines, the head as a ring with a tick to where it looks."""

    def line(points: Points, colour: str, share: float, height: float) -> None:
        flat = view.flat(points)
        axes.plot(
            flat[:, 0],
            flat[:, 1],
            color=colour,
            lw=share * width,
            solid_capstyle="round",
            zorder=layer + height,
        )

    for j in range(1, len(joints)):
        ends = joints[[PARENTS[j], j]]
        colour = colours[0 if j < BONE["leftShoulder"] else _side_of(j)]
        line(ends, colour, 1.0, 0.2 * float(np.tanh(view.nearness(ends.mean(axis=0)))))
    neck, head = joints[BONE["neck"]], joints[BONE["head"]]
    if rotations is None:
        centre = head + 0.09 * (head - neck) / max(float(np.linalg.norm(head - neck)), 1e-9)
    else:
        centre = head + quat.rotate(rotations[BONE["head"]], np.array([0.0, 0.09, -0.02]))
        nose = centre + quat.rotate(rotations[BONE["head"]], np.array([0.0, 0.0, -0.17]))
        line(np.array([centre, nose]), colours[0], 0.8, 0.4)
        for j, tip in ((BONE["leftHand"], -0.15), (BONE["rightHand"], 0.15)):
            finger = joints[j] + quat.rotate(rotations[j], np.array([tip, 0.0, 0.0]))
            line(np.array([joints[j], finger]), colours[_side_of(j)], 0.55, 0.3)
    angle = np.linspace(0.0, 2.0 * np.pi, 40)
    ring = view.flat(centre[None]) + 0.1 * np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    axes.plot(ring[:, 0], ring[:, 1], color=colours[0], lw=0.7 * width, zorder=layer + 0.4)


def _side_of(j: int) -> int:
    """1 for a bone of the left side, 2 for one of the right."""
    left_leg, right_leg = BONE["leftUpperLeg"], BONE["rightUpperLeg"]
    return 1 if j < BONE["rightShoulder"] or left_leg <= j < right_leg else 2


def main() -> int:
    """Draw one sheet; 0 when it is written."""
    parser = argparse.ArgumentParser(description="Stick figures of a solved recording.")
    parser.add_argument("file", type=Path, help="skeleton or recording")
    parser.add_argument("out", type=Path, help="picture to write (.png)")
    parser.add_argument("--times", type=float, nargs="+", help="when, in seconds from the start")
    parser.add_argument("--count", type=int, default=12, help="this many times, evenly spread")
    parser.add_argument("--compare", type=Path, help="a second skeleton, drawn in grey")
    options = parser.parse_args()
    try:
        figures = load_figures(options.file)
        behind = load_figures(options.compare) if options.compare else None
        if len(figures.t) == 0:
            raise RecordingError(f"{options.file} holds no frames, so there is nothing to draw")
        count = max(options.count, 1)
        even = figures.t[-1] * (np.arange(count) + 0.5) / count
        times = np.array(options.times) if options.times else even
        draw_sheet(figures, times, options.out, behind, options.file.name)
    except VrikError as error:
        print(f"contact_sheet: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
