"""Ctrl-C and SIGTERM end the work cleanly, also when the exception they raise is lost on the way.

A signal may arrive inside an import or a callback of some library that swallows every exception. So it
is remembered as well, and whoever works in steps asks :func:`stop_if_asked` at each of them.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Terminated(BaseException):
    """SIGTERM arrived: unwinds like Ctrl-C, so that files and sockets are closed."""


_ENDINGS: dict[int, type[BaseException]] = {
    signal.SIGINT: KeyboardInterrupt,
    signal.SIGTERM: Terminated,
}
_asked: list[type[BaseException]] = []


def stop_if_asked() -> None:
    """Raise what an earlier signal raised, if somebody swallowed it."""
    if _asked:
        raise _asked.pop()


@contextmanager
def signals_end_the_work() -> Iterator[None]:
    """SIGINT raises KeyboardInterrupt and SIGTERM :class:`Terminated` in the main thread inside the block."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        _asked[:] = [_ENDINGS[number]]
        raise _ENDINGS[number]

    heeded = [number for number in _ENDINGS if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, stop) for number in heeded}
    try:
        yield
    finally:
        _asked.clear()
        for number, handler in before.items():
            signal.signal(number, handler)
