"""How long a frame takes from tracker poses to a posed body, and how fast recordings are read."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from calibration import calibrate
from recordings import RecordingWriter, open_recording, read_all
from recordings.samples import NAMES, sample
from vrik.frames import TrackerSequence
from vrik.pipeline import Pipeline
from vrik.warm import warm_up

READ_FRAMES = 100_000


def measure() -> dict[str, object]:
    """Pipeline steps of both bundled sessions, and reading a long native recording."""
    warm_up()
    steps = {name: step_times_us(read_all(open_recording(sample(name)))) for name in NAMES}
    return {"step_us": steps, "native_read": read_rate()}


def step_times_us(frames: TrackerSequence) -> dict[str, float]:
    """Percentiles of one ``Pipeline.step`` over a session, after one pass to warm up. [us]"""
    pipeline = Pipeline(calibrate(frames))
    for frame in frames:
        pipeline.step(frame)
    pipeline.reset()
    times = []
    for frame in frames:
        begun = time.perf_counter_ns()
        pipeline.step(frame)
        times.append((time.perf_counter_ns() - begun) * 1e-3)
    values = np.percentile(times, (50, 90, 99, 100))
    return {name: round(float(v), 1) for name, v in zip(("p50", "p90", "p99", "max"), values, strict=True)}


def read_rate() -> dict[str, float]:
    """Frames a second from a native file of three devices to numpy arrays, the best of three."""
    take = read_all(open_recording(sample(NAMES[0])))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "long.mcap"
        with RecordingWriter(path, take.devices) as writer:
            for i in range(READ_FRAMES):
                writer.write(take.frame(i % len(take)))
        seconds = min(_seconds(lambda: read_all(open_recording(path))) for _ in range(3))
    return {"frames": READ_FRAMES, "frames_per_s": round(READ_FRAMES / seconds)}


def _seconds(call: Callable[[], object]) -> float:
    begun = time.perf_counter()
    call()
    return time.perf_counter() - begun
