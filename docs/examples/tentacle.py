"""A tentacle of twenty joints follows a target around it; each joint bends by at most 25 degrees.

python docs/examples/tentacle.py
"""

import math

import numpy as np

from solvers import Chain, ChainConfig, SwingTwist, Target, solve_chain

JOINTS, BONE_M = 20, 0.05
UP = (0.0, 1.0, 0.0)
bend = math.radians(25.0)
limit = SwingTwist(UP, swing_rad=(bend, bend), low_twist_rad=-0.1, high_twist_rad=0.1)
tentacle = Chain.from_points([(0.0, BONE_M * i, 0.0) for i in range(JOINTS + 1)], limits=[limit] * JOINTS)


def follow(frames: int = 120) -> list[float]:
    """Distance from tip to target, frame by frame, while the target goes once around. [m]"""
    pose, missed = tentacle.rest(), []
    for i in range(frames):
        around = 2.0 * math.pi * i / frames
        target = Target(np.array([0.5 * math.cos(around), 0.6, 0.5 * math.sin(around)]))
        solution = solve_chain(tentacle, pose, target, solver="ccd", config=ChainConfig(tolerance_m=1e-3))
        pose = solution.pose
        missed.append(solution.residual_m)
    return missed


if __name__ == "__main__":
    missed = follow()
    print(f"{len(missed)} frames, worst miss {1000.0 * max(missed):.1f} mm")
