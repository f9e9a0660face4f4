"""Writes solved bodies: as the accuracy harness's estimate, ``.npz`` or ``.jsonl``, or as ``.mcap``."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from recordings.exporters.npz_stream import NpzStream
from recordings.native_writer import RecordingWriter
from vrik.arrays import Floats
from vrik.body import BodyModel
from vrik.errors import NoUsableFramesError
from vrik.frames import PoseFrame, PoseSequence, TrackerFrame
from vrik.skeleton import SMPL_FROM_VRM, SMPL_JOINTS


def write_npz(poses: PoseSequence | Iterable[PoseSequence], path: Path) -> None:
    """SMPL order: ``t`` (n,) [s], ``pos`` (n, 22, 3) [m], ``rot`` (n, 22, 4) canonical, ``tpose`` (22, 3).

    Args:
        poses: All frames, or pieces of one body in order: only one of them is in memory.
        path: File to make.

    Raises:
        NoUsableFramesError: If there is no piece.
    """
    with NpzStream(path) as stream:
        for piece in _pieces(poses):
            stream.append("t", _seconds(piece))
            stream.append("pos", piece.position[:, SMPL_FROM_VRM])  # float32 would lose bone lengths far out
            stream.append("rot", piece.rotation[:, SMPL_FROM_VRM].astype(np.float32))
            stream.add("tpose", piece.body.tpose[SMPL_FROM_VRM])


def write_jsonl(poses: PoseSequence | Iterable[PoseSequence], path: Path) -> None:
    """First line the T-pose, then one frame a line with each joint's ``pos`` and ``rot`` by SMPL name.

    Args and errors as for :func:`write_npz`.
    """
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        for number, piece in enumerate(_pieces(poses)):
            if number == 0:
                tpose = piece.body.tpose[SMPL_FROM_VRM].round(7).tolist()
                file.write(json.dumps({"tpose": dict(zip(SMPL_JOINTS, tpose, strict=True))}) + "\n")
            for t, position, rotation in zip(_seconds(piece), piece.position, piece.rotation, strict=True):
                places = position[SMPL_FROM_VRM].round(7).tolist()
                turns = rotation[SMPL_FROM_VRM].round(7).tolist()
                joints = {
                    name: {"pos": place, "rot": turn}
                    for name, place, turn in zip(SMPL_JOINTS, places, turns, strict=True)
                }
                file.write(json.dumps({"t": round(float(t), 6), "joints": joints}) + "\n")


def _pieces(poses: PoseSequence | Iterable[PoseSequence]) -> Iterator[PoseSequence]:
    count = 0
    for piece in [poses] if isinstance(poses, PoseSequence) else poses:
        count += 1
        yield piece
    if not count:
        raise NoUsableFramesError("no usable frames: the recording is empty; record again")


def write_mcap(pairs: Iterable[tuple[TrackerFrame, PoseFrame]], body: BodyModel, path: Path) -> int:
    """A native recording of tracker frames with the solved bodies beside them; returns how many.

    Raises:
        NoUsableFramesError: If there are none.
        RecordingError: If the file cannot be written.
    """
    count = 0
    writer: RecordingWriter | None = None
    try:
        for frame, pose in pairs:
            if writer is None:
                writer = RecordingWriter(
                    path, frame.devices, player_id=frame.player_id, space_id=frame.space_id, body=body
                )
            writer.write(frame)
            writer.write_pose(pose)
            count += 1
    finally:
        if writer is not None:
            writer.close()
    if writer is None:
        raise NoUsableFramesError("no usable frames: the recording is empty; record again")
    return count


def _seconds(poses: PoseSequence) -> Floats:
    return np.asarray(poses.time_ns, np.float64) * 1e-9
