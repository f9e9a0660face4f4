"""Two hind legs on one pelvis: both paws stay where they stand while the spine sways the pelvis.

python docs/examples/quadruped.py
"""

import math

import numpy as np

from solvers import ChainConfig, Goal, Hinge, Rig, SwingTwist, Target, solve_goals

SIDE = {"left": -1.0, "right": 1.0}
names, parents, places = (
    ["chest", "loin", "pelvis"],
    [-1, 0, 1],
    [(0, 0.6, 0), (0, 0.06, 0.25), (0, -0.06, 0.25)],
)
for side, sign in SIDE.items():
    names += [f"{side} thigh", f"{side} thigh twist", f"{side} shin", f"{side} hock", f"{side} paw"]
    top = len(parents)
    parents += [2, top, top, top + 2, top + 3]
    places += [(0.1 * sign, -0.05, 0), (0, -0.1, 0), (0, -0.2, -0.08), (0, -0.18, 0.12), (0, -0.14, -0.03)]
rig = Rig.build(names, parents, places)

X = (1.0, 0.0, 0.0)
wide = math.radians(60.0)
LIMITS = {
    "shin": Hinge(X, -1.6, 0.8),
    "hock": Hinge(X, -0.8, 1.6),
    "thigh": SwingTwist((0, -1, 0), (wide, 0.5), -0.3, 0.3),
}


def sway(frames: int = 90) -> tuple[float, float]:
    """Worst distance of a paw from where it stands, and of the pelvis from where it should be. [m]"""
    stands = {side: rig.world(rig.rest())[0][rig.index(f"{side} paw")] for side in SIDE}
    hips = rig.world(rig.rest())[0][rig.index("pelvis")]
    spine = rig.chain("chest", "loin", effector_offset=(0, -0.06, 0.25))
    legs = {
        side: rig.chain(
            f"{side} thigh",
            f"{side} hock",
            effector_offset=(0, -0.14, -0.03),
            limits={f"{side} {joint}": limit for joint, limit in LIMITS.items()},
        )
        for side in SIDE
    }
    pose, paws, pelvis = rig.rest(), 0.0, 0.0
    for i in range(frames):
        swing = 0.06 * math.sin(2.0 * math.pi * i / frames)
        goals = {"pelvis": Goal("spine", spine, Target(hips + np.array([swing, -0.04, 0.0])), "ccd")}
        for side, leg in legs.items():
            goals[side] = Goal("foot", leg, Target(stands[side]), "fabrik", ChainConfig(tolerance_m=1e-3))
        pose, found = solve_goals(pose, goals)
        paws = max(paws, *(found[side].residual_m for side in SIDE))
        pelvis = max(pelvis, found["pelvis"].residual_m)
    return paws, pelvis


if __name__ == "__main__":
    paws, pelvis = sway()
    print(f"paws off by at most {1000.0 * paws:.1f} mm, pelvis by {1000.0 * pelvis:.1f} mm")
