"""Recordings that come with the package, made by this project's own ``tools/make_samples.py``."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

NAMES = ("session_3points", "session_6points")
"""A headset and two controllers; the same with trackers on waist and feet."""


def sample(name: str) -> Path:
    """The file of a bundled recording.

    Args:
        name: One of ``NAMES``.

    Raises:
        ValueError: If there is none of that name.
    """
    if name not in NAMES:
        raise ValueError(f"no sample named {name!r}; have: {', '.join(NAMES)}")
    return Path(str(resources.files(__name__) / f"{name}.mcap"))
