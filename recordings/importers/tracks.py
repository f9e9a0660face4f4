"""Times that need work: stamps of whole seconds, and devices whose poses come in tracks of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vrik.arrays import Floats, Ints

JOIN_SHARE = 0.5
"""Poses of two tracks closer than this share of the usual step are of one frame."""


@dataclass(frozen=True, slots=True, eq=False)
class Joined:
    """Tracks side by side, as frames.

    Args:
        time_ns: (n,) times of the frames, non-decreasing. [ns]
        frames: Of each track, (m,) the frame that each of its poses belongs to.
        moved: How many poses were given the time of a neighbour in another track.
        farthest_s: How far at most. [s]
    """

    time_ns: Ints
    frames: tuple[Ints, ...]
    moved: int
    farthest_s: float


def join_on_time(tracks: Sequence[Ints]) -> Joined:
    """Poses of the same moment become one frame; a pose without company gets a frame of its own.

    The track with most poses gives the times. No pose is dropped, also where a track repeats a time or goes
    on longer than the others.

    Args:
        tracks: Of each track, (m,) the non-decreasing times of its poses. [ns]
    """
    if not tracks:
        return Joined(np.zeros(0, np.int64), (), 0, 0.0)
    longest = max(range(len(tracks)), key=lambda i: len(tracks[i]))
    base = tracks[longest]
    steps = np.diff(base)
    near = int(JOIN_SHARE * np.median(steps[steps > 0])) if (steps > 0).any() else 0
    rows = [_matches(times, base, near) for times in tracks]
    alone = [times[at < 0] for times, at in zip(tracks, rows, strict=True)]
    moved = [np.abs(base[at[at >= 0]] - times[at >= 0]) for times, at in zip(tracks, rows, strict=True)]
    shifts = np.concatenate(moved)
    own_rows, own_times = _rows_of_their_own(alone, len(base))
    time_ns = np.concatenate([base, own_times])
    order = np.argsort(time_ns, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    for at, own in zip(rows, own_rows, strict=True):
        at[at < 0] = own
    frames = tuple(place[at] for at in rows)
    farthest = float(shifts.max()) * 1e-9 if len(shifts) else 0.0
    return Joined(time_ns[order], frames, int(np.count_nonzero(shifts)), farthest)


def _matches(time_ns: Ints, base: Ints, near: int) -> Ints:
    """(n,) the row of ``base`` for each time, each used once and in order; -1 where none is near."""
    if np.array_equal(time_ns, base):
        return np.arange(len(base), dtype=np.int64)
    rows = np.full(len(time_ns), -1, np.int64)
    free = 0
    for i, right in enumerate(np.searchsorted(base, time_ns)):
        t, at = int(time_ns[i]), int(right)
        left = at - 1
        if left >= free and (at >= len(base) or t - int(base[left]) <= int(base[at]) - t):
            at = left
        at = max(at, free)
        if at < len(base) and abs(int(base[at]) - t) <= near:
            rows[i] = at
            free = at + 1
    return rows


def _rows_of_their_own(alone: Sequence[Ints], first: int) -> tuple[list[Ints], Ints]:
    """Rows behind ``first`` for poses without company, the same one where tracks agree on the time."""
    keyed = []
    for times in alone:
        new = np.append(True, np.diff(times) != 0)[: len(times)]
        starts = np.maximum.accumulate(np.where(new, np.arange(len(times)), 0))
        keyed.append(np.stack([times, np.arange(len(times)) - starts], axis=1).astype(np.int64))
    unique, inverse = np.unique(np.concatenate(keyed), axis=0, return_inverse=True)
    ends = np.cumsum([len(times) for times in alone])[:-1]
    return [part + first for part in np.split(inverse.reshape(-1), ends)], unique[:, 0]


def spread_inside_seconds(stamps_s: Floats) -> Floats:
    """Times for rows that share stamps of whole seconds: even steps inside each second. [s]

    The first second is filled from its end and the last from its start, at the usual number of rows, because
    a recording begins and ends anywhere in a second. Nothing leaves its second, so nothing goes back.

    Args:
        stamps_s: (n,) non-decreasing whole seconds. [s]
    """
    stamps_s = np.asarray(stamps_s, np.float64)
    if len(stamps_s) == 0:
        return stamps_s
    starts = np.flatnonzero(np.append(True, np.diff(stamps_s) != 0.0))
    sizes = np.diff(np.append(starts, len(stamps_s)))
    group = np.repeat(np.arange(len(starts)), sizes)
    inner = sizes[1:-1] if len(sizes) > 2 else sizes
    usual = float(np.median(inner))
    slots = sizes.astype(np.float64)
    slots[[0, -1]] = np.maximum(slots[[0, -1]], usual)
    index = np.arange(len(stamps_s)) - starts[group]
    if len(starts) > 1:
        index = index + np.where(group == 0, slots[0] - sizes[0], 0.0)
    return np.asarray(stamps_s + index / slots[group])
