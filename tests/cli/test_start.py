"""``vrik --help`` answers at once: nothing slow is loaded, and little time is taken."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time

import pytest

from vrik.cli.commands import COMMANDS

HEAVY = {"numpy", "numba", "scipy", "mcap"}
BUDGET = 1.8
"""``vrik --help`` over ``import tyro``."""

LOADED = """
import json, sys
from vrik.cli import main
sys.stdout, out = sys.stderr, sys.stdout
code = main({args!r})
print(json.dumps([code, sorted(sys.modules)]), file=out)
"""


@pytest.mark.parametrize(
    "args", [["--help"], ["--version"], ["nonsense"], *[[c, "--help"] for c in COMMANDS]]
)
def test_help_loads_neither_numpy_nor_numba_nor_scipy_nor_mcap(args: list[str]) -> None:
    done = subprocess.run([sys.executable, "-c", LOADED.format(args=args)], capture_output=True, text=True)

    code, modules = json.loads(done.stdout)
    assert code == (2 if args == ["nonsense"] else 0)
    assert not HEAVY & set(modules)


def test_help_takes_at_most_1_8_times_as_long_as_importing_tyro() -> None:
    """Medians of runs in turn; a few attempts, since the machine may be busy with something else."""
    commands = ([sys.executable, "-m", "vrik", "--help"], [sys.executable, "-c", "import tyro"])
    ratios = []
    for _ in range(4):
        times: tuple[list[float], list[float]] = ([], [])
        for _ in range(7):
            for command, taken in zip(commands, times, strict=True):
                begun = time.perf_counter()
                subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
                taken.append(time.perf_counter() - begun)
        ratios.append(statistics.median(times[0]) / statistics.median(times[1]))
        if ratios[-1] <= BUDGET:
            break

    assert ratios[-1] <= BUDGET, ratios
