"""Where solved bodies go: one sink for each target the user names.

    sink = open_sink("vmc://127.0.0.1:39539", calibration.body)
    sink.send(pose, frame)      # once a frame; never raises for a network fault, counts it
    sink.stats()
    sink.close()

Importing this package is quick (no numpy), so that a command line can check its URLs first.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from vrik.sinks.url import Target, parse_target

if TYPE_CHECKING:
    from vrik.body import BodyModel
    from vrik.frames import PoseFrame, TrackerFrame

__all__ = ["Sink", "SinkStats", "Target", "open_sink", "parse_target"]


@dataclass(frozen=True, slots=True)
class SinkStats:
    """What a sink has done so far.

    Args:
        url: The target as a URL.
        address: The address in use, "127.0.0.1:39539": what the host name was resolved to.
        frames: Frames sent.
        dropped: Frames left out to keep to the target's rate.
        datagrams: Datagrams the operating system accepted.
        bytes: Their length in all.
        refused: Datagrams that came back because nothing listens on that port.
        full: Datagrams lost because the send buffer was full.
        too_big: Datagrams (or devices with overlong names) that the network or the limit refuses.
        other: Any other send error.
        last_error: Text of the latest error, "" if there was none.
        held: Numbers that were not finite and were replaced by the last good ones.
        refusing: Whether datagrams are coming back at present: nothing listens there.
    """

    url: str
    address: str
    frames: int = 0
    dropped: int = 0
    datagrams: int = 0
    bytes: int = 0
    refused: int = 0
    full: int = 0
    too_big: int = 0
    other: int = 0
    last_error: str = ""
    held: int = 0
    refusing: bool = False

    @property
    def errors(self) -> int:
        """Send errors of all kinds."""
        return self.refused + self.full + self.too_big + self.other


class Sink(Protocol):
    """Takes one body a frame."""

    def send(self, pose: PoseFrame, frame: TrackerFrame) -> None:
        """Pass on a solved body and the device poses it came from. Network faults are counted, not raised."""
        ...

    def close(self) -> None:
        """Let go of the socket or file; closing twice is harmless."""
        ...

    def stats(self) -> SinkStats:
        """What happened so far."""
        ...


def open_sink(target: str | Target, body: BodyModel, clock: Callable[[], float] = time.monotonic) -> Sink:
    """Open the sink for a target such as ``vmc://127.0.0.1:39539?rate=60&mtu=1400``.

    Args:
        target: A URL, or one that is already parsed.
        body: Whose lengths are sent.
        clock: Seconds that pass for the receiver, for the rate limit.

    Raises:
        UsageError: If the URL is malformed.
        NetworkError: If the host is unknown or has no address that can be reached from here.
    """
    if isinstance(target, str):
        target = parse_target(target)
    from vrik.sinks.vmc import VmcSink

    return VmcSink(target, body, clock)
