"""Rows shared out among threads: compiled loops hold no lock."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np


def in_threads(n: int, workers: int, work: Callable[[int, int], None]) -> None:
    """Call ``work(begin, end)`` for pieces that make up n rows, at most ``workers`` at a time."""
    if workers <= 1 or n < 2:
        work(0, n)
        return
    edges = np.linspace(0, n, min(workers, n) + 1).astype(int).tolist()
    with ThreadPoolExecutor(len(edges) - 1) as pool:
        for done in [pool.submit(work, begin, end) for begin, end in pairwise(edges)]:
            done.result()
