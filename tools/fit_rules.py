"""Fit the few numbers of the rules prior (``solvers/kernels/rules.py``) on motion capture, and print them.

    python tools/fit_rules.py --corpus FOLDER

FOLDER holds the compact corpus with its reader ``corpus.py``; left-out subjects keep the figures honest.
"""

from __future__ import annotations

import argparse
import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from vrik import quat
from vrik.arrays import Floats, Quats
from vrik.skeleton import BONE, VRM_FROM_SMPL

HEAD_JOINT_SHARE = 0.896
STEP = 2
"""Every second frame is used."""


def clips(folder: Path) -> Iterator[dict[str, Any]]:
    """All clips of a corpus through the reader that lies beside them, joints in the order of ``BONES``."""
    spec = importlib.util.spec_from_file_location("corpus", folder / "corpus.py")
    if spec is None or spec.loader is None:
        raise SystemExit(f"no corpus.py in {folder}")
    reader = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(reader)
    for clip in reader.clips(str(folder)):
        clip["pos"] = clip["pos"][::STEP, VRM_FROM_SMPL]
        clip["rot"] = clip["rot"][::STEP, VRM_FROM_SMPL]
        yield clip


def heading_back(rotation: Quats) -> Quats:
    """(n, 4) rotation that takes world vectors into the yaw frame of a head-like rotation."""
    forward = quat.rotate(rotation, np.array([0.0, 0.0, -1.0]))
    up = quat.rotate(rotation, np.array([0.0, 1.0, 0.0]))
    w = np.clip((np.abs(forward[:, 1:2]) - 0.7) / 0.25, 0.0, 1.0)
    level = (1.0 - w) * forward + w * np.where(forward[:, 1:2] > 0.0, -1.0, 1.0) * up
    half = -0.5 * np.arctan2(-level[:, 0], -level[:, 2])
    return np.stack([np.cos(half), 0 * half, np.sin(half), 0 * half], axis=-1)


def yaw_of(rotation: Quats) -> Floats:
    """Heading of a nearly upright rotation. [rad]"""
    forward = quat.rotate(rotation, np.array([0.0, 0.0, -1.0]))
    return np.asarray(np.arctan2(-forward[:, 0], -forward[:, 2]))


def least_squares(a: Floats, b: Floats) -> Floats:
    """(columns of a, columns of b) coefficients."""
    return np.asarray(np.linalg.lstsq(a, b, rcond=None)[0])


def rows_of(clip: dict[str, Any]) -> dict[str, Floats]:
    """Inputs and outputs of the rules for one clip."""
    size, position, rotation = clip["height_m"], clip["pos"], clip["rot"]
    head = position[:, BONE["head"]]
    back = heading_back(rotation[:, BONE["head"]])
    forward = quat.rotate(back, quat.rotate(rotation[:, BONE["head"]], np.array([0.0, 0.0, -1.0])))
    up = quat.rotate(back, quat.rotate(rotation[:, BONE["head"]], np.array([0.0, 1.0, 0.0])))
    drop = np.clip(head[:, 1] / size - HEAD_JOINT_SHARE, -0.85, 0.05)
    pitch = np.arcsin(np.clip(forward[:, 1], -1.0, 1.0)) / (0.5 * np.pi)
    left = quat.rotate(back, position[:, BONE["leftHand"]] - head) / size
    right = quat.rotate(back, position[:, BONE["rightHand"]] - head) / size
    rows = {
        "pelvis": quat.rotate(back, position[:, 0] - head) / size,
        "terms": np.stack([np.ones_like(drop), drop, pitch, drop * drop, drop * pitch], axis=-1),
        "tilt": up[:, 0],
        "lead": right[:, 2] - left[:, 2],
        "chest_yaw": yaw_of(quat.multiply(back, rotation[:, BONE["upperChest"]])),
        "pelvis_yaw": yaw_of(quat.multiply(back, rotation[:, 0])),
    }
    for side, mirror in (("left", -1.0), ("right", 1.0)):
        sign = np.array([mirror, 1.0, 1.0])
        chest = quat.conjugate(rotation[:, BONE["upperChest"]])
        shoulder = position[:, BONE[f"{side}UpperArm"]]
        hand = quat.rotate(chest, position[:, BONE[f"{side}Hand"]] - shoulder) * sign / size
        elbow = quat.rotate(chest, position[:, BONE[f"{side}LowerArm"]] - shoulder) * sign / size
        turn = quat.multiply(chest, rotation[:, BONE[f"{side}Hand"]])
        fingers = quat.rotate(turn, np.array([mirror, 0.0, 0.0])) * sign
        thumb = quat.rotate(turn, np.array([0.0, 0.0, -1.0])) * sign
        axis = hand / np.maximum(np.linalg.norm(hand, axis=-1, keepdims=True), 1e-6)
        rows[f"{side}_off"] = elbow - axis * np.sum(elbow * axis, axis=-1, keepdims=True)
        rows[f"{side}_in"] = np.concatenate([np.ones_like(hand[:, :1]), hand, fingers, thumb], axis=-1)
    return rows


def main() -> None:
    """Fit on the whole corpus and print the constants."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--corpus", type=Path, required=True)
    every = [rows_of(clip) for clip in clips(parser.parse_args().corpus) if len(clip["pos"]) > 10]
    data = {name: np.concatenate([rows[name] for rows in every]) for name in every[0]}
    np.set_printoptions(precision=3, suppress=True)

    aside = np.concatenate([data["terms"], data["tilt"][:, None]], axis=-1)
    pelvis = least_squares(aside, data["pelvis"])
    print(
        "PELVIS (side from symmetry is 0 but for the tilt)\n", pelvis[:5, 1:], "\ntilt to side", pelvis[5, 0]
    )
    for name in ("chest_yaw", "pelvis_yaw"):
        near = np.abs(data[name]) < 1.2
        print(name, "by hands", least_squares(data["lead"][near, None], data[name][near]))
    inputs = np.concatenate([data["left_in"], data["right_in"]])
    off = np.concatenate([data["left_off"], data["right_off"]])
    bend = np.linalg.norm(off, axis=-1, keepdims=True)
    # A nearly straight arm has no elbow direction: each frame counts by how far its elbow is off the line.
    print("ELBOW\n", least_squares(inputs * bend, off))


if __name__ == "__main__":
    main()
