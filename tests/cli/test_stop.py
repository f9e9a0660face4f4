"""A signal ends the work even when a library swallows the exception it raises."""

from __future__ import annotations

import os
import signal
from contextlib import suppress

import pytest

from vrik.cli.stop import Terminated, signals_end_the_work, stop_if_asked

needs_signals = pytest.mark.skipif(os.name == "nt", reason="Windows sends no such signals")


@needs_signals
@pytest.mark.parametrize(
    ("number", "ending"), [(signal.SIGTERM, Terminated), (signal.SIGINT, KeyboardInterrupt)]
)
def test_a_swallowed_signal_is_raised_at_the_next_step(
    number: signal.Signals, ending: type[BaseException]
) -> None:
    with signals_end_the_work():
        stop_if_asked()
        with suppress(BaseException):  # as some import hooks do
            os.kill(os.getpid(), number)

        with pytest.raises(ending):
            stop_if_asked()
        stop_if_asked()


@needs_signals
def test_the_handlers_of_the_program_around_come_back() -> None:
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}

    with signals_end_the_work():
        assert signal.getsignal(signal.SIGTERM) != before[signal.SIGTERM]

    assert {number: signal.getsignal(number) for number in before} == before
