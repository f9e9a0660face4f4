"""Where tracker frames come from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from vrik.frames import TrackerFrame

__all__ = ["PoseSource"]


class PoseSource(Protocol):
    """Gives tracker frames, oldest first; a recording is as good as a headset."""

    def frames(self) -> Iterator[TrackerFrame]:
        """The frames, each as soon as it is there. May be asked again only where the source can rewind."""
        ...

    def close(self) -> None:
        """Let go of devices or files."""
        ...
