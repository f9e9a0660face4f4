"""Damped least squares takes over near a singularity: calmer joints, no jump, and it says so."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from solvers.chain import Chain, ChainPose, ChainSolution, Target
from solvers.config import ChainConfig
from solvers.limits import Hinge, SwingTwist, limit_excess
from solvers.registry import solve_chain
from solvers.singular import singular_values, takeover_share
from vrik import quat

UPPER_M, LOWER_M = 0.30, 0.26
REACH_M = UPPER_M + LOWER_M
ARM = Chain.build([[0.0, 0.0, 0.0], [-UPPER_M, 0.0, 0.0], [-LOWER_M, 0.0, 0.0]])
TOWARDS = np.array([-0.8, -0.36, -0.48])
BORDER = 0.1


def elbow_bent(angle_rad: float) -> ChainPose:
    return ChainPose.build(np.zeros(3), [quat.identity(), quat.from_rotvec(np.array([0.0, angle_rad, 0.0]))])


@pytest.mark.parametrize("angle_rad", [0.0, 0.3, 1.5, 3.0])
def test_singular_values_agree_with_numpy(angle_rad: float) -> None:
    pose = elbow_bent(angle_rad)
    tip = ARM.points(pose)[-1]
    jacobian = np.hstack([np.cross(np.eye(3), tip - point).T for point in ARM.points(pose)[:2]])

    found = singular_values(ARM, pose)

    values = np.linalg.svd(jacobian)[1]
    assert found.smallest == pytest.approx(values[-1], abs=1e-7)
    assert found.largest == pytest.approx(values[0], abs=1e-9)


@given(st.floats(0.0, 1.0), st.floats(0.0, 1e-3), st.floats(0.01, 0.5))
def test_the_share_is_smooth_from_nothing_at_the_border_to_all_at_a_singularity(
    ratio: float, further: float, border: float
) -> None:
    """Between two ratios it changes by at most 1.5 / border times their difference."""
    share, then = takeover_share(ratio, border), takeover_share(ratio + further, border)

    assert 0.0 <= then <= share <= 1.0
    assert share - then <= 1.5 / border * further + 1e-12
    assert takeover_share(border, border) == 0.0
    assert takeover_share(0.0, border) == 1.0


def through_the_reach_limit(solver: str, takeover: float, step_m: float) -> list[ChainSolution]:
    """Out from 0.9 of the reach past its end and back in; each frame starts from the last."""
    config = ChainConfig(takeover_share=takeover)
    out = np.arange(0.9 * REACH_M, 1.03 * REACH_M, step_m)
    pose = elbow_bent(0.8)
    pose = solve_chain(ARM, pose, Target(out[0] * TOWARDS), solver=solver).pose
    found = []
    for away in (*out, *out[::-1]):
        found.append(solve_chain(ARM, pose, Target(away * TOWARDS), solver=solver, config=config))
        pose = found[-1].pose
    return found


def peak_turn(found: list[ChainSolution]) -> float:
    """Largest turn of a joint between two frames. [rad]"""
    joints = [ARM.locals_of(solution.pose) for solution in found]
    return max(float(quat.angle(a, b).max()) for a, b in pairwise(joints))


@pytest.mark.parametrize("solver", ["fabrik", "ccd"])
@pytest.mark.parametrize("step_m", [1e-3, 3e-4])
def test_the_peak_joint_speed_at_full_reach_is_halved(solver: str, step_m: float) -> None:
    """Against the same path without; the tip is off by at most 2 % of the reach over e, and a little."""
    without = through_the_reach_limit(solver, 0.0, step_m)
    taken_over = through_the_reach_limit(solver, BORDER, step_m)

    assert peak_turn(taken_over) <= 0.5 * peak_turn(without)
    for solution in taken_over:
        tip = solution.points_world[-1]
        target = TOWARDS * min(tip @ TOWARDS + solution.residual_m, REACH_M)
        assert np.linalg.norm(tip - target) <= 0.02 * REACH_M / math.e + 1.5e-3
    assert max(solution.dls_share for solution in taken_over) > 0.9
    assert max(solution.dls_share for solution in without) == 0.0


@pytest.mark.parametrize("solver", ["fabrik", "ccd"])
def test_nothing_jumps_where_the_takeover_begins(solver: str) -> None:
    """Frames with a small share turn no more than frames without one just before."""
    found = through_the_reach_limit(solver, BORDER, 2.5e-4)
    shares = [solution.dls_share for solution in found]
    begin = next(i for i, share in enumerate(shares) if share > 0.0)

    around = found[begin - 10 : begin + 10]

    assert shares[begin] < 0.05
    joints = [ARM.locals_of(solution.pose) for solution in around]
    turns = [float(quat.angle(a, b).max()) for a, b in pairwise(joints)]
    assert max(turns) <= 2.0 * min(turns[:8]) + 1e-3


def test_away_from_singularities_and_without_a_border_nothing_is_changed() -> None:
    target = Target(np.array([-0.25, 0.1, -0.2]))
    for border in (0.0, BORDER):
        config = ChainConfig(takeover_share=border)
        alone = solve_chain(ARM, elbow_bent(1.2), target, solver="ccd")
        solved = solve_chain(ARM, elbow_bent(1.2), target, solver="ccd", config=config)

        np.testing.assert_array_equal(solved.pose.rotations_world, alone.pose.rotations_world)
        assert solved.dls_share == 0.0


def test_a_blend_keeps_lengths_and_limits() -> None:
    limits = [SwingTwist((-1, 0, 0), (1.2, 0.6), -0.5, 0.5, side=(0, 1, 0)), Hinge((0, -1, 0), 0.0, 2.6)]
    chain = Chain.build(ARM.offsets, limits=limits)
    config = ChainConfig(takeover_share=0.3)
    rng = np.random.default_rng(4)
    shares = []

    for _ in range(100):
        target = rng.normal(size=3)
        target *= rng.uniform(0.5, 0.6) / np.linalg.norm(target)
        solved = solve_chain(chain, chain.rest(), Target(target), solver="ccd", config=config)
        shares.append(solved.dls_share)

        lengths = np.linalg.norm(np.diff(solved.points_world, axis=0), axis=1)
        np.testing.assert_allclose(lengths, chain.lengths, atol=1e-9)
        for local, limit in zip(chain.locals_of(solved.pose), limits, strict=True):
            assert limit_excess(local, limit) <= 1e-6
    assert max(shares) > 0.0
