"""Nonsense is refused with a sentence, before it becomes a NaN or a pose that nobody asked for."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from solvers import (
    Chain,
    ChainConfig,
    ChainSolution,
    Hinge,
    OnDemandConfig,
    Rig,
    SwivelState,
    Target,
    TargetSmoother,
    clamp_rotation,
    limit_excess,
    solve_chain,
    solve_many,
    with_swivel,
)
from solvers.swivel import hinted_pole
from vrik import quat

ARM = Chain.from_points([(0.0, 0.0, 0.0), (0.3, 0.0, 0.0), (0.56, 0.0, 0.0)])
HALF = np.array([0.5, 0.5, 0.5, 0.5])
LIMB = ((0.0, 0.0, 0.0), (0.3, 0.1, 0.0), (0.5, 0.0, 0.0))
RIG = Rig.build(["hip", "knee"], [-1, 0], [(0.0, 0.0, 0.0), (0.0, -0.4, 0.0)])
ROWS = (np.zeros((1, 3)), quat.identity(1, 2), np.full((1, 3), 0.2))


def solved(target: Target) -> ChainSolution:
    return solve_chain(ARM, ARM.rest(), target, solver="fabrik")


def smoothed(target: Target, time_s: float) -> object:
    return TargetSmoother(0.1).step(target, time_s)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: ChainConfig(tolerance_m=math.nan), "tolerance_m is nan"),
        (lambda: ChainConfig(max_rounds=-1), "max_rounds is -1"),
        (lambda: OnDemandConfig(rate_hz=-5.0), "not negative"),
        (lambda: OnDemandConfig(phase=2.0), "phase at most 1"),
        (lambda: solved(Target(np.full(3, 0.2), HALF, rotation_weight=math.nan)), "rotation_weight is nan"),
        (lambda: solved(Target(np.full(3, 0.2), HALF, rotation_weight=-1.0)), "rotation_weight is -1"),
        (
            lambda: solve_many(ARM, *ROWS, target_rotations=HALF[None], rotation_weight=math.nan),
            "rotation_weight is nan",
        ),
        (lambda: Chain.build(ARM.offsets, limits=np.zeros((2, 5))), "limits has shape"),
        (lambda: Chain.build(ARM.offsets, limits=np.full_like(ARM.limits, np.nan)), "limits holds"),
        (lambda: clamp_rotation(np.zeros(4), Hinge((0.0, 1.0, 0.0))), "no rotation"),
        (lambda: limit_excess(np.full(4, np.nan), Hinge((0.0, 1.0, 0.0))), "no rotation"),
        (lambda: with_swivel(*LIMB, math.nan, (0.0, 1.0, 0.0)), "angle_rad is not finite"),
        (lambda: hinted_pole(*LIMB, (0.0, 0.0, 1.0), 2.0), "hint_weight is 2"),
        (lambda: SwivelState((0.0, 1.0, 0.0), (0.0, 2.0, 0.0)), "two directions"),
        (lambda: SwivelState((0.0, 0.0, 0.0)), "two directions"),
        (lambda: smoothed(Target(np.array([math.nan, 0.0, 0.0])), 0.0), "position is not finite"),
        (lambda: smoothed(Target(np.zeros(3)), math.nan), "time_s is not finite"),
        (lambda: RIG.chain("hip", "knee", weights={"kne": 0.5}), "no bone 'kne'"),
        (lambda: RIG.chain("hip", "knee", limits={"kne": Hinge((1.0, 0.0, 0.0))}), "no bone 'kne'"),
    ],
)
def test_nonsense_is_refused(call: Callable[[], object], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        call()


def test_a_target_beyond_all_numbers_is_out_of_reach() -> None:
    """Its square is no number any more."""
    found = solved(Target(np.array([1e200, 0.0, 0.0])))

    assert found.stopped_because == "out_of_reach"
    assert found.residual_m == pytest.approx(1e200)
    assert np.isfinite(found.points_world).all()


def test_a_constraint_without_rounds_leaves_the_start() -> None:
    ruled = Chain.build(ARM.offsets, constraints=(lambda local: local, None))

    found = solve_chain(ruled, ruled.rest(), Target(np.full(3, 0.2)), config=ChainConfig(max_rounds=0))

    assert (found.rounds, found.reached) == (0, False)
    np.testing.assert_array_equal(found.points_world, ruled.points(ruled.rest()))
