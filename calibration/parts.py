"""Which tracker is worn on which part of the body, from where it is on somebody who stands.

Every tracker is described by two numbers, its height and its distance from the body's middle, both over
stature. Each part of the body has a usual place and a spread; the cheapest way of giving parts to trackers
wins, looked at all together, so that a belt never becomes a second chest because it was listed first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

# kind: ((height, its spread, sideways, its spread), ...) over stature. Elbows have a second place, for arms
# that are stretched out.
PLACES: Mapping[str, tuple[tuple[float, float, float, float], ...]] = {
    "waist": ((0.57, 0.06, 0.0, 0.07),),
    "chest": ((0.76, 0.05, 0.0, 0.06),),
    "shoulder": ((0.82, 0.04, 0.11, 0.04),),
    "elbow": ((0.63, 0.06, 0.16, 0.05), (0.82, 0.07, 0.28, 0.08)),
    "knee": ((0.30, 0.05, 0.07, 0.08),),
    "foot": ((0.06, 0.06, 0.08, 0.10),),
}
CAPACITY = {"waist": 1, "chest": 1, "shoulder": 2, "elbow": 2, "knee": 2, "foot": 2}

RARITY = {"waist": 0.0, "chest": 4.0, "shoulder": 6.0, "elbow": 4.0, "knee": 6.0, "foot": 0.0}
"""Extra cost of parts that few people wear trackers on: waist and feet come first in every common set."""

LEAVE_OUT_COST = 30.0
"""A tracker that fits no free part better than this is left out."""


def cost(kind: str, height: float, sideways: float) -> float:
    """Squared distance from the usual place of a part, in spreads.

    Args:
        kind: One of ``PLACES``.
        height: Over stature.
        sideways: Distance from the middle of the body over stature, either side.
    """
    return min(((height - h) / dh) ** 2 + ((sideways - s) / ds) ** 2 for h, dh, s, ds in PLACES[kind])


def choose(places: Sequence[tuple[float, float]], free: Mapping[str, int] = CAPACITY) -> list[str]:
    """The part of each tracker, "" for those that fit none.

    Args:
        places: (height, sideways) of each tracker over stature.
        free: How many trackers each part may still get.
    """
    kinds = tuple(PLACES)

    @cache
    def best(i: int, left: tuple[int, ...]) -> tuple[float, tuple[str, ...]]:
        if i == len(places):
            return 0.0, ()
        rest, names = best(i + 1, left)
        found = (rest + LEAVE_OUT_COST, ("", *names))
        for j, kind in enumerate(kinds):
            if left[j] > 0:
                fewer = (*left[:j], left[j] - 1, *left[j + 1 :])
                rest, names = best(i + 1, fewer)
                here = rest + RARITY[kind] + cost(kind, *places[i])
                if here < found[0]:
                    found = (here, (kind, *names))
        return found

    return list(best(0, tuple(free.get(kind, 0) for kind in kinds))[1])
