"""A robot's arm with six hinges brings its tool to a place and a rotation.

python docs/examples/six_axis_arm.py
"""

import math

import numpy as np

from solvers import Chain, ChainConfig, Hinge, Target, solve_chain
from vrik import quat

X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
full = math.radians(175.0)
half = math.radians(120.0)
AXES = [(Y, full), (Z, half), (Z, half), (Y, full), (Z, half), (Y, full)]
arm = Chain.build(
    offsets=[(0, 0, 0), (0, 0.30, 0), (0, 0.40, 0), (0, 0.20, 0), (0, 0.15, 0), (0, 0.08, 0), (0, 0.10, 0)],
    limits=[Hinge(axis, -most, most) for axis, most in AXES],
)


def reach(tool: np.ndarray, turn: np.ndarray) -> tuple[float, float, list[float]]:
    """Miss [m], miss [rad] and the six joint angles [rad] for a tool place (3,) and rotation (4,)."""
    bent = quat.from_rotvec(
        np.array([axis for axis, _ in AXES]) * np.array([[0.2], [0.4], [0.5], [0.1], [0.4], [0.1]])
    )
    rotations = [bent[0]]
    for local in bent[1:]:
        rotations.append(quat.multiply(rotations[-1], local))
    start = type(arm.rest()).build((0.0, 0.0, 0.0), np.array(rotations))
    config = ChainConfig(tolerance_m=1e-4, tolerance_rad=1e-3, max_rounds=200, restarts=20)
    found = solve_chain(arm, start, Target(tool, turn), solver="dls", config=config)
    locals_ = quat.to_rotvec(arm.locals_of(found.pose))
    angles = [float(v @ np.array(axis)) for v, (axis, _) in zip(locals_, AXES, strict=True)]
    return found.residual_m, found.residual_rad, angles


if __name__ == "__main__":
    miss_m, miss_rad, angles = reach(np.array([0.4, 0.5, 0.2]), quat.from_rotvec(np.array([0.0, 0.3, -2.0])))
    print(f"miss {1000.0 * miss_m:.2f} mm, {math.degrees(miss_rad):.2f} deg")
    print("joints", " ".join(f"{math.degrees(a):.0f}" for a in angles), "deg")
