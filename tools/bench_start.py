"""How long vrik takes to start: its help, the first compilation ever, and the first datagram of a replay.

    python tools/bench_start.py [--json] [--rounds 15]

Every figure is taken from outside, in fresh processes. Help is timed turn by turn with
``python -c "import tyro"``, so that a busy machine disturbs both alike.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from importlib import resources
from pathlib import Path

from vrik.cli.commands import COMMANDS

VRIK = [sys.executable, "-m", "vrik"]
TIMEOUT_S = 120.0


@dataclass(frozen=True, slots=True)
class StartTimes:
    """What was measured."""

    help_s: float
    """Median of ``vrik --help``. [s]"""

    import_tyro_s: float
    """Median of ``python -c "import tyro"``. [s]"""

    help_over_tyro: float
    """Their ratio; the budget is 1.8."""

    first_compile_s: float
    """``warm_up`` in a process with an empty cache folder, imports included. [s]"""

    later_warm_up_s: float
    """The same once more, with what the first one kept. [s]"""

    first_datagram_s: float | None
    """From ``vrik replay`` to its first datagram, compiled before; None without that command. [s]"""

    first_datagram_ever_s: float | None
    """The same with an empty cache folder. [s]"""


def measure(rounds: int) -> StartTimes:
    """Take all figures; the compilations dominate, about a minute on two cores."""
    help_s, tyro_s = interleaved(
        [[*VRIK, "--help"], [sys.executable, "-c", "import tyro"]],
        rounds,
    )
    with tempfile.TemporaryDirectory() as empty, tempfile.TemporaryDirectory() as other:
        warm_up = [sys.executable, "-c", "import vrik; vrik.warm_up()"]
        first_s = seconds_of(warm_up, VRIK_CACHE_DIR=empty)
        later_s = seconds_of(warm_up, VRIK_CACHE_DIR=empty)
        replays = "replay" in COMMANDS
        datagram_s = first_datagram_s(empty) if replays else None
        datagram_ever_s = first_datagram_s(other) if replays else None
    return StartTimes(help_s, tyro_s, help_s / tyro_s, first_s, later_s, datagram_s, datagram_ever_s)


def interleaved(commands: list[list[str]], rounds: int) -> list[float]:
    """Median seconds of each command, run in turn. [s]"""
    times: list[list[float]] = [[] for _ in commands]
    for _ in range(rounds):
        for command, taken in zip(commands, times, strict=True):
            taken.append(seconds_of(command))
    return [statistics.median(taken) for taken in times]


def seconds_of(command: list[str], **environment: str) -> float:
    """Wall time of one run. [s]"""
    begun = time.perf_counter()
    subprocess.run(command, env={**os.environ, **environment}, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - begun


def first_datagram_s(cache_folder: str) -> float:
    """From starting ``vrik replay`` of a bundled session to its first datagram on a loopback socket. [s]"""
    session = sorted(Path(str(resources.files("recordings") / "samples")).glob("*.mcap"))[0]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        receiver.bind(("127.0.0.1", 0))
        receiver.settimeout(TIMEOUT_S)
        target = f"vmc://127.0.0.1:{receiver.getsockname()[1]}"
        begun = time.perf_counter()
        process = subprocess.Popen(
            [*VRIK, "replay", str(session), "--no-page", "--to", target],
            env={**os.environ, "VRIK_CACHE_DIR": cache_folder},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            receiver.recv(65536)
            return time.perf_counter() - begun
        finally:
            process.terminate()
            process.wait()


def main() -> None:
    """Print the figures as a list or, with ``--json``, as one JSON document."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", action="store_true", help="one JSON document")
    parser.add_argument("--rounds", type=int, default=15, help="runs of each quick command")
    options = parser.parse_args()
    figures = asdict(measure(options.rounds))
    if options.json:
        print(json.dumps(figures, indent=2))
        return
    for name, value in figures.items():
        print(f"{name:22} {'not measured' if value is None else f'{value:8.3f}'}")


if __name__ == "__main__":
    main()
