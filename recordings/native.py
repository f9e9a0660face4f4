"""vrik's own recordings, ``vrik/1``: a profile of MCAP that survives a crash and opens in other tools.

The layout is in ``schema.py``, the writer in ``native_writer.py``, the reader in ``native_reader.py``. Here
are the importer, and the solved frames a recording may hold beside the device poses.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from recordings import schema
from recordings.mcap_parts import begins_like_mcap
from recordings.mcap_walk import Walk
from recordings.native_contents import Event, body_of, check_version, native_batches, topic_of
from recordings.native_reader import NativeRecording
from recordings.native_writer import RecordingWriter
from vrik.errors import NoUsableFramesError, RecordingError
from vrik.frames import DEFAULT_PLAYER, DEFAULT_SPACE, PoseSequence


class NativeImporter:
    """Reads ``vrik/1`` recordings, and says of any other MCAP file what it holds instead."""

    name = "vrik"
    summary = "vrik's own recording (MCAP)"
    suffixes = (".mcap",)

    def recognises(self, head: bytes, path: Path) -> bool:
        """Any MCAP file, also one that is cut inside its first eight bytes, or whose begin is damaged."""
        return begins_like_mcap(head)

    def open(self, path: Path) -> NativeRecording:
        """Open it.

        Raises:
            RecordingError: As for :class:`NativeRecording`.
        """
        return NativeRecording(path)


def read_poses(path: str | Path) -> PoseSequence:
    """The solved frames in a ``vrik/1`` recording.

    Raises:
        NoUsableFramesError: If it holds none.
        DamagedRecordingError: If the body they belong to cannot be read.
        RecordingError: As for :class:`NativeRecording`.
    """
    path = Path(path)
    walk = Walk()
    rows: list[bytes] = []
    about: dict[str, str] = {}
    try:
        for batch in native_batches(path, walk):
            for channel_id, _, data in batch:
                if topic_of(channel_id, walk) == schema.SKELETON and len(data) == schema.POSE_DTYPE.itemsize:
                    rows.append(data)
                    about = walk.channels[channel_id].metadata
    except OSError as error:
        raise RecordingError(f"cannot read {path}: {error.strerror or error}") from error
    check_version(path, walk)
    if not rows:
        raise NoUsableFramesError(f"{path} holds no solved frames; make some with: vrik solve")
    body = body_of(about, path)
    records = np.frombuffer(b"".join(rows), schema.POSE_DTYPE)
    return PoseSequence(
        records["host_time_ns"].astype(np.int64),
        np.ascontiguousarray(records["position"]),
        np.ascontiguousarray(records["rotation"]),
        body,
        np.ascontiguousarray(records["reach_error_m"]),
        records["state"].astype(np.int64),
        about.get("player_id", DEFAULT_PLAYER),
        about.get("space_id", DEFAULT_SPACE),
    )


__all__ = ["Event", "NativeImporter", "NativeRecording", "RecordingWriter", "read_poses"]
