"""A chain that is solved less often is never seen to jump, and never solved without need."""

from __future__ import annotations

import math

import numpy as np

from solvers.chain import Chain, ChainPose, ChainSolution, Target
from solvers.ondemand import OnDemand, OnDemandConfig, phase_of
from solvers.registry import solve_chain

CHAIN = Chain.from_points([(0.0, 0.0, 0.0), (0.0, -0.3, 0.1), (0.0, -0.6, 0.0)])
DT = 1.0 / 90.0


def goal(i: int) -> Target:
    """Moves at most 0.35 m/s on a small circle."""
    around = i * DT * 2.0
    return Target(
        np.array([0.15 * math.cos(around), -0.35, 0.15 * math.sin(around)]), pole=np.array([0.0, 0.0, 1.0])
    )


def solve(chain: Chain, start: ChainPose, target: Target) -> ChainSolution:
    return solve_chain(chain, start, target, solver="fabrik")


def tips(config: OnDemandConfig, frames: int = 90) -> tuple[np.ndarray, OnDemand]:
    demand, pose, seen = OnDemand(config), CHAIN.rest(), []
    for i in range(frames):
        pose = demand.step(CHAIN, pose, goal(i), DT, solve)
        seen.append(CHAIN.points(pose)[-1])
    return np.array(seen), demand


def test_by_default_every_frame_is_solved() -> None:
    seen, demand = tips(OnDemandConfig())

    assert (demand.solved, demand.skipped) == (90, 0)
    np.testing.assert_allclose(seen, [goal(i).position for i in range(90)], atol=2e-4)


def test_at_a_lower_rate_it_comes_one_period_late_and_does_not_jump() -> None:
    """15 of 90 frames a second are solved; the tip's steps stay near those of the target."""
    seen, demand = tips(OnDemandConfig(rate_hz=15.0), 180)

    assert 28 <= demand.solved <= 32
    steps = np.linalg.norm(np.diff(seen[12:], axis=0), axis=1)
    of_target = 0.3 * DT
    assert steps.max() < 1.5 * of_target
    late = np.array([goal(i - 6).position for i in range(12, 180)])
    assert np.linalg.norm(seen[12:] - late, axis=1).max() < 0.01


def test_a_chain_is_skipped_while_nothing_moves() -> None:
    demand, pose = OnDemand(OnDemandConfig(still_m=0.001, still_rad=0.01)), CHAIN.rest()
    for i in range(50):
        target = Target(goal(0).position + np.array([0.0005 * (i % 2), 0.0, 0.0]))
        pose = demand.step(CHAIN, pose, target, DT, solve)
    moved = demand.step(CHAIN, pose, goal(30), DT, solve)

    assert (demand.solved, demand.skipped) == (2, 49)
    np.testing.assert_allclose(CHAIN.points(moved)[-1], goal(30).position, atol=2e-4)


def test_a_turn_alone_is_a_move() -> None:
    demand, pose = OnDemand(OnDemandConfig(still_m=0.001, still_rad=0.01)), CHAIN.rest()
    for angle in (0.0, 0.0, 0.5):
        turn = np.array([math.cos(angle / 2), 0.0, math.sin(angle / 2), 0.0])
        pose = demand.step(CHAIN, pose, Target(goal(0).position, turn), DT, solve)

    assert (demand.solved, demand.skipped) == (2, 1)


def test_another_pole_is_a_move() -> None:
    """And so is a pole that appears or goes; the position may be any three numbers."""
    demand, pose = OnDemand(OnDemandConfig(still_m=0.001, still_rad=0.01)), CHAIN.rest()
    for pole in ((0.0, 0.0, 1.0), (0.0, 0.0, 2.0), (1.0, 0.0, 0.0), None):
        pose = demand.step(CHAIN, pose, Target((0.15, -0.35, 0.0), pole=pole), DT, solve)

    assert (demand.solved, demand.skipped) == (3, 1)


def test_a_skipped_chain_still_hangs_on_its_body() -> None:
    """The root moves with the body in every frame, by less than would call the solver."""
    demand = OnDemand(OnDemandConfig(still_m=1.0))
    first = demand.step(CHAIN, CHAIN.rest(), goal(0), DT, solve)
    moved = ChainPose(np.array([0.2, 0.1, 0.0]), first.rotations_world, first.base_world)

    second = demand.step(CHAIN, moved, goal(0), DT, solve)

    np.testing.assert_array_equal(second.root_world, moved.root_world)
    np.testing.assert_allclose(second.rotations_world, first.rotations_world, atol=1e-12)


def test_a_body_far_away_is_not_solved() -> None:
    demand, start = OnDemand(OnDemandConfig(farthest_m=20.0)), CHAIN.rest()

    far = demand.step(CHAIN, start, goal(0), DT, solve, distance_m=25.0)
    near = demand.step(CHAIN, start, goal(0), DT, solve, distance_m=5.0)

    assert far is start
    assert (demand.solved, demand.skipped) == (1, 1)
    np.testing.assert_allclose(CHAIN.points(near)[-1], goal(0).position, atol=2e-4)


def test_bodies_are_spread_over_frames() -> None:
    """After the first frame no frame solves more than a third of six bodies at a third of the rate."""
    bodies = [OnDemand(OnDemandConfig(rate_hz=30.0, phase=phase_of(b, 6))) for b in range(6)]
    poses, solved = [CHAIN.rest()] * 6, []
    for i in range(30):
        before = sum(body.solved for body in bodies)
        poses = [body.step(CHAIN, pose, goal(i), DT, solve) for body, pose in zip(bodies, poses, strict=True)]
        solved.append(sum(body.solved for body in bodies) - before)

    assert max(solved[3:]) <= 3
    assert sum(solved[3:]) == 6 * 9
