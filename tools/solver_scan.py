"""How calmly each solver takes its chain through a singularity: joint speed and tip error along two paths.

    python -m tools.solver_scan                     peaks of every solver, as a table
    python -m tools.solver_scan --png scan.png      a plot: spikes and oscillation are visible
    python -m tools.solver_scan --json              all numbers

A straight-line target moves at an even speed at 90 Hz and a solver follows it, each frame starting from the
last. ``reach``: from 0.9 of the arm's reach out to 1.1 and back. ``axis``: past the shoulder, along a line
through it. Joint speeds are the largest of all joints, divided by the target's speed. [rad/m]
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from solvers.chain import Chain, ChainPose, Target
from solvers.config import ChainConfig
from solvers.registry import solve_chain
from vrik import quat
from vrik.arrays import Floats, Points

RATE_HZ = 90.0
SPEED_M_S = 0.25
WAIT = 90
"""Frames that the target rests at the far end: whatever moves then oscillates."""

SOLVERS = ("fabrik", "ccd", "dls", "svd", "transpose", "two_bone")
"""Those that bring a tip to a place."""

PANELS = (
    ("FABRIK", ("fabrik", "fabrik, takeover")),
    ("CCD", ("ccd", "ccd, takeover")),
    ("damped least squares", ("dls", "dls, soft reach")),
    ("two_bone", ("two_bone", "two_bone, soft reach")),
    ("for comparison", ("svd", "transpose")),
)
"""Rows of the plot."""

SOFT_M = 0.01
"""Where reach is soft. [m]"""

TAKEOVER = 0.1
"""Smallest over largest singular value at which least squares begins to take over."""

ARM = Chain.build([[0.0, 0.0, 0.0], [-0.30, 0.0, 0.0], [-0.26, 0.0, 0.0]])
"""A left arm in the T-pose without limits, so that solvers and not stops are compared. [m]"""


@dataclass(frozen=True, slots=True, eq=False)
class Scan:
    """One solver along one path of n frames.

    Args:
        path_m: (n,) where the target is on its line, from the shoulder. [m]
        joint_speed: (n,) of the quickest joint, per speed that the target has when it moves. [rad/m]
        tip_error_m: (n,) from the tip to the nearest point within reach. [m]
        dls_share: (n,) part of damped least squares where it takes over.
    """

    path_m: Floats
    joint_speed: Floats
    tip_error_m: Floats
    dls_share: Floats


def paths() -> dict[str, Points]:
    """(n, 3) targets of each path, seen from the shoulder. [m]"""
    step = SPEED_M_S / RATE_HZ
    reach = float(ARM.lengths.sum())
    out = np.arange(0.9 * reach, 1.1 * reach, step)
    radial = np.concatenate([out, np.full(WAIT, out[-1]), out[::-1]])
    past = np.arange(-0.5 * reach, 0.5 * reach, step)
    aside = np.cross([-1.0, 0.2, -0.3], [0.0, 0.0, 1.0])
    aside *= (float(np.ptp(ARM.lengths)) + 0.002) / np.linalg.norm(aside)
    return {
        "reach": radial[:, None] * _unit(-1.0, 0.2, -0.3),
        "axis": past[:, None] * _unit(-1.0, 0.2, -0.3) + aside,
    }


def scan(solver: str, targets: Points, config: ChainConfig) -> Scan:
    """Follow ``targets`` (n, 3) with the arm, warm from frame to frame, and measure."""
    pose = _bent(targets[0])
    joints = ARM.locals_of(pose)
    speeds, errors, shares = [], [], []
    low = float(np.ptp(ARM.lengths))
    high = float(ARM.lengths.sum())
    for target in targets:
        found = solve_chain(ARM, pose, Target(target), solver=solver, config=config)
        turned = quat.angle(joints, ARM.locals_of(found.pose))
        away = float(np.linalg.norm(target))
        nearest = target * (min(max(away, low), high) / max(away, 1e-9))
        speeds.append(float(turned.max()) * RATE_HZ / SPEED_M_S)
        errors.append(float(np.linalg.norm(found.points_world[-1] - nearest)))
        shares.append(found.dls_share)
        pose, joints = found.pose, ARM.locals_of(found.pose)
    line = targets @ _unit(-1.0, 0.2, -0.3)
    return Scan(line, np.array(speeds), np.array(errors), np.array(shares))


def scan_all(solvers: Sequence[str] = SOLVERS) -> dict[str, dict[str, Scan]]:
    """By title (a solver, or one with soft reach or a takeover) and path."""
    runs = {name: (name, ChainConfig()) for name in solvers}
    for name in ("dls", "two_bone"):
        if name in solvers:
            runs[f"{name}, soft reach"] = (name, ChainConfig(soft_reach_m=SOFT_M))
    for name in ("fabrik", "ccd"):
        if name in solvers:
            runs[f"{name}, takeover"] = (name, ChainConfig(takeover_share=TAKEOVER))
    return {
        title: {path: scan(name, targets, config) for path, targets in paths().items()}
        for title, (name, config) in runs.items()
    }


def peaks(scans: dict[str, dict[str, Scan]]) -> list[dict[str, Any]]:
    """A row for each run and path: quickest joint, its speed while the target rests, worst tip error."""
    return [
        {
            "run": title,
            "path": path,
            "peak_rad_per_m": float(found.joint_speed[1:].max()),
            "at_rest_rad_per_m": _rest(found.joint_speed) if path == "reach" else 0.0,
            "worst_error_m": float(found.tip_error_m.max()),
            "largest_dls_share": float(found.dls_share.max()),
        }
        for title, of_path in scans.items()
        for path, found in of_path.items()
    ]


def plot(scans: dict[str, dict[str, Scan]], file: Path) -> None:
    """A row for each kind of solver, what calms it beside it; joint speed and tip error on both paths."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    rows = [(name, [run for run in runs if run in scans]) for name, runs in PANELS]
    rows = [(name, runs) for name, runs in rows if runs]
    figure, axes = pyplot.subplots(
        len(rows), 4, figsize=(15.0, 2.5 * len(rows) + 0.6), sharex="col", squeeze=False
    )
    for row, (name, runs) in zip(axes, rows, strict=True):
        for run, color in zip(runs, ("tab:red", "tab:blue"), strict=False):
            for column, path in enumerate(paths()):
                found = scans[run][path]
                seconds = np.arange(len(found.path_m)) / RATE_HZ
                speed, error = found.joint_speed[1:], found.tip_error_m * 1e3
                row[2 * column].plot(seconds[1:], speed, color=color, linewidth=1.2, label=run)
                row[2 * column + 1].semilogy(seconds, np.maximum(error, 1e-3), color=color, linewidth=1.2)
        for axis in row[::2]:
            axis.set_yscale("symlog", linthresh=1.0)
            axis.set_ylim(0.0, 300.0)
        for axis in row[1::2]:
            axis.set_ylim(5e-4, 100.0)
        for axis in row:
            axis.grid(alpha=0.3)
        row[0].set_ylabel(name, fontweight="bold")
        row[0].legend(fontsize="small", loc="upper right")
    ways = {"reach": "out through full reach, rest, back", "axis": "past the shoulder"}
    for column, path in enumerate(paths()):
        axes[0, 2 * column].set_title(
            f"{ways[path]}:\nquickest joint [rad per m of target]", fontsize="medium"
        )
        axes[0, 2 * column + 1].set_title(f"{ways[path]}:\ntip error [mm]", fontsize="medium")
    for axis in axes[-1]:
        axis.set_xlabel(f"seconds, target at {SPEED_M_S:g} m/s, 90 Hz")
    figure.tight_layout()
    figure.savefig(file, dpi=90)
    pyplot.close(figure)


def main() -> int:
    """Print a table, or JSON, and plot when asked."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--solvers", nargs="+", choices=SOLVERS, default=SOLVERS, help="only these")
    parser.add_argument("--png", type=Path, help="plot into this file")
    parser.add_argument("--json", action="store_true", help="print all numbers as one JSON document")
    options = parser.parse_args()
    scans = scan_all(options.solvers)
    if options.png:
        plot(scans, options.png)
    if options.json:
        print(json.dumps(_plain(scans)))
        return 0
    print(f"{'solver':<22}{'path':<8}{'peak speed':>12}{'at rest':>12}{'peak error':>12}")
    print(f"{'':<30}{'[rad/m]':>12}{'[rad/m]':>12}{'[mm]':>12}")
    for row in peaks(scans):
        speed, rest, error = row["peak_rad_per_m"], row["at_rest_rad_per_m"], row["worst_error_m"] * 1e3
        print(f"{row['run']:<22}{row['path']:<8}{speed:>12.1f}{rest:>12.4f}{error:>12.3f}")
    return 0


def _rest(speed: Floats) -> float:
    """Peak in the second half of the rest at the far end."""
    middle = len(speed) // 2
    return float(speed[middle : middle + WAIT // 2].max())


def _plain(scans: dict[str, dict[str, Scan]]) -> dict[str, Any]:
    return {
        title: {
            path: {name: values.tolist() for name, values in asdict(found).items()}
            for path, found in of_path.items()
        }
        for title, of_path in scans.items()
    }


def _unit(x: float, y: float, z: float) -> Floats:
    v = np.array([x, y, z])
    return np.asarray(v / np.linalg.norm(v))


def _bent(target: Points) -> ChainPose:
    """The arm on ``target``, its elbow down: where every solver starts."""
    rest = ARM.rest()
    start = ChainPose.build(rest.root_world, quat.from_rotvec(np.array([[0.0, 0.5, 0.5], [0.0, -0.5, 0.5]])))
    return solve_chain(ARM, start, Target(target), solver="dls").pose


if __name__ == "__main__":
    sys.exit(main())
