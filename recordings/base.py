"""What every recording looks like once it is open, whatever file it came from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import numpy as np

from vrik.arrays import Points
from vrik.frames import TrackedDevice, TrackerSequence


@dataclass(frozen=True, slots=True, eq=False)
class RecordingInfo:
    """What can be said about a recording besides its frames.

    Args:
        path: Where it is.
        format: Short name of the format, as ``vrik inspect`` prints it.
        devices: All devices that appear in it.
        stature_m: The person's height when the file states it. [m]
        calibration: Frames of the person standing in a T-pose, when the file carries them.
        skeleton_tpose: (22, 3) true T-pose joints in the order of ``BONES``, when the file states them. [m]
        counts: What was met on the way, by name ("placeholder frames": 1, "rows cut": 1, ...).
        notes: Sentences about what is odd, for a person.
    """

    path: Path
    format: str
    devices: tuple[TrackedDevice, ...]
    stature_m: float | None = None
    calibration: TrackerSequence | None = None
    skeleton_tpose: Points | None = None
    counts: dict[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


class Recording(Protocol):
    """An open recording. Frames come in blocks, so that an hour does not have to fit in memory."""

    @property
    def info(self) -> RecordingInfo:
        """What the file says about itself."""
        ...

    def blocks(self) -> Iterator[TrackerSequence]:
        """The frames in order, some thousands at a time, all with ``info.devices``."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class LoadedRecording:
    """A recording that was small enough to read whole."""

    info: RecordingInfo
    frames: TrackerSequence

    @property
    def frame_count(self) -> int:
        """How many frames there are."""
        return len(self.frames)

    def blocks(self) -> Iterator[TrackerSequence]:
        """All frames as one block; none for an empty recording."""
        if len(self.frames):
            yield self.frames


class Importer(Protocol):
    """Reads one kind of file."""

    name: str
    """Short name: "bsor"."""

    summary: str
    """One line for ``vrik convert --help`` and the docs."""

    suffixes: tuple[str, ...]
    """Usual endings, lower case with the dot. Content decides; these only break a tie."""

    def recognises(self, head: bytes, path: Path) -> bool:
        """Whether a file that begins with ``head`` (up to 64 KiB) is of this kind."""
        ...

    def open(self, path: Path) -> Recording:
        """Open it.

        Raises:
            RecordingError: With one sentence for the user.
        """
        ...


ROW_ARRAYS = ("time_ns", "position", "rotation", "valid", "result", "linear_velocity", "angular_velocity")
"""The fields of a sequence that have a row for each frame."""


Progress: TypeAlias = Callable[[int, int | None], None]
"""Told how much is done (bytes, frames), and of how much, if that is known."""

_LISTENER: ContextVar[Progress | None] = ContextVar("listener", default=None)


@contextmanager
def listening(at: Progress) -> Iterator[None]:
    """Inside, ``at`` is told how far reading is, by whatever reads."""
    token = _LISTENER.set(at)
    try:
        yield
    finally:
        _LISTENER.reset(token)


def reading(done: int, total: int | None = None) -> None:
    """For readers that take their time over ``open``, block by block: bytes gone through, of how many."""
    at = _LISTENER.get()
    if at is not None:
        at(done, total)


PIECE_FRAMES = 1024
"""Whoever works through a recording says at least this often how far that is."""


def frame_count(recording: Recording) -> int | None:
    """How many frames a recording has; None where that is known only after reading it."""
    count = getattr(recording, "frame_count", None)
    return count if isinstance(count, int) else None


def pieces(recording: Recording, at: Progress | None = None) -> Iterator[TrackerSequence]:
    """The frames in blocks of at most ``PIECE_FRAMES``.

    Args:
        recording: Any.
        at: Told how many frames have been gone through, and of how many, if that is known.
    """
    total, done = frame_count(recording), 0
    for block in recording.blocks():
        for begin in range(0, len(block), PIECE_FRAMES):
            piece = block.part(slice(begin, begin + PIECE_FRAMES))
            yield piece
            done += len(piece)
            if at is not None:
                at(done, total)


def read_all(recording: Recording) -> TrackerSequence:
    """All frames of a recording in one sequence (of length 0 when there are none)."""
    return join(recording.info.devices, list(recording.blocks()))


def join(devices: tuple[TrackedDevice, ...], blocks: Sequence[TrackerSequence]) -> TrackerSequence:
    """Blocks of the same devices, one after the other; no frames when there is no block."""
    if len(blocks) == 1:
        return blocks[0]
    if not blocks:
        k = len(devices)
        return TrackerSequence.build(
            np.zeros(0, np.int64), devices, np.zeros((0, k, 3)), np.zeros((0, k, 4)), np.zeros((0, k), bool)
        )

    def joined(name: str) -> Any:
        parts = [getattr(block, name) for block in blocks]
        return None if any(part is None for part in parts) else np.concatenate(parts)

    return replace(blocks[0], **{name: joined(name) for name in ROW_ARRAYS})
