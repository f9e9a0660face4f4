"""A solver and a constraint of one's own, chosen by name like any other.

python docs/examples/own_solver.py
"""

import numpy as np

from solvers import Chain, ChainConfig, ChainPose, ChainSolution, Target, judged, register_solver, solve_chain
from vrik import quat


def random_search(chain: Chain, start: ChainPose, target: Target, config: ChainConfig) -> ChainSolution:
    """Turn joints at random, ever less, and keep what helps: a simple (1+1) evolution strategy."""
    chance, size = np.random.default_rng(1), 0.5
    best = judged(chain, start, start.rotations_world, target, config, 0)
    for rounds in range(1, 40 * config.max_rounds):
        turns = quat.from_rotvec(size * chance.normal(size=(chain.joint_count, 3)))
        tried = judged(chain, start, quat.multiply(turns, best.pose.rotations_world), target, config, rounds)
        if tried.residual_m < best.residual_m:
            best = tried
        else:
            size = max(0.997 * size, 1e-4)
        if best.reached:
            break
    return best


register_solver("random", random_search)


def level(local: np.ndarray) -> np.ndarray:
    """A joint that turns about the vertical only."""
    return quat.normalize(local * np.array([1.0, 0.0, 1.0, 0.0]))


if __name__ == "__main__":
    tail = Chain.from_points([(0.3 * i, 0.0, 0.0) for i in range(4)])
    target = Target(np.array([0.4, 0.1, 0.5]))
    found = solve_chain(tail, tail.rest(), target, solver="random", config=ChainConfig(tolerance_m=1e-3))
    print(f"random search: {1000.0 * found.residual_m:.1f} mm, {found.rounds} rounds")
    door = Chain.build(tail.offsets, constraints=(level, None, None))
    found = solve_chain(door, door.rest(), target, solver="ccd")
    print(f"first joint on a hinge of its own: {1000.0 * found.residual_m:.2f} mm")
