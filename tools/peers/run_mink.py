"""mink on the problem file: ``python run_mink.py PROBLEMS RESULTS``, where it and mujoco are installed.

Timed: rounds of ``solve_ik`` and ``integrate_inplace`` until the tip is near enough, as mink's examples do.
Its QP solver is daqp, which it brings along. MuJoCo's own ball joints and hinges.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import mink
import mujoco
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tools.peers.measure import Floats, Given, Measured, Settings, measure, run

DT_S = 1.0
"""Steps are whole: velocity times this is what the tasks ask for. [s]"""

LM_DAMPING = 1e-3
"""Of 0 and the powers of ten from 1e-4 to 1 a quick one; 1 misses fewest rotations and takes longest."""


class Mink:
    """mink set up for one problem."""

    def __init__(self, given: Given, settings: Settings) -> None:
        self.configuration = mink.Configuration(mujoco.MjModel.from_xml_string(model_xml(given)))
        turn_cost = 1.0 if given.oriented else 0.0
        self.task = mink.FrameTask("tip", "site", position_cost=1.0, orientation_cost=turn_cost)
        self.task.lm_damping = LM_DAMPING
        self.limits = [mink.ConfigurationLimit(self.configuration.model)] if len(given.limits) else []
        self.settings = settings
        self.oriented = given.oriented
        self.start = start_of(given)

    def reset(self) -> None:
        """Back to the start pose."""
        self.configuration.update(self.start)

    def target(self, position: Floats, rotation: Floats | None) -> Any:
        """Its own kind of pose."""
        turn = mink.SO3.identity() if rotation is None else mink.SO3(wxyz=rotation)
        return mink.SE3.from_rotation_and_translation(turn, position)

    def solve(self, target: Any) -> None:
        """Round by round."""
        self.task.set_target(target)
        for _ in range(self.settings.max_rounds):
            miss = self.task.compute_error(self.configuration)
            near = float(np.linalg.norm(miss[:3])) <= self.settings.tolerance_m
            if near and (not self.oriented or np.linalg.norm(miss[3:]) <= self.settings.tolerance_rad):
                return
            velocity = mink.solve_ik(
                self.configuration, [self.task], DT_S, solver="daqp", damping=1e-6, limits=self.limits
            )
            self.configuration.integrate_inplace(velocity, DT_S)

    def tip(self) -> tuple[Floats, Floats | None]:
        """By MuJoCo's forward kinematics."""
        pose = self.configuration.get_transform_frame_to_world("tip", "site")
        return np.asarray(pose.translation()), np.asarray(pose.rotation().as_matrix())


def model_xml(given: Given) -> str:
    """The chain as an MJCF document; masses mean nothing here but must be there."""
    opened = closed = ""
    for i in range(len(given.start)):
        at = " ".join(f"{v:.17g}" for v in (given.offsets[i] if i else np.zeros(3)))
        joint = '<joint type="ball"/>'
        if len(given.hinges):
            axis = " ".join(f"{v:g}" for v in given.hinges[i])
            low, high = given.limits[i]
            joint = f'<joint type="hinge" axis="{axis}" limited="true" range="{low:.17g} {high:.17g}"/>'
        opened += f'<body pos="{at}">{joint}<geom type="sphere" size="0.01" mass="0.1"/>'
        closed += "</body>"
    at = " ".join(f"{v:.17g}" for v in given.offsets[-1])
    body = f'{opened}<site name="tip" pos="{at}"/>{closed}'
    return f'<mujoco><compiler angle="radian"/><worldbody>{body}</worldbody></mujoco>'


def start_of(given: Given) -> Floats:
    """MuJoCo's coordinates of the start pose: angles, or quaternions wxyz of ball joints."""
    if len(given.hinges):
        return given.start.ravel().copy()
    half = given.start / 2.0
    (cz, cx), (sz, sx) = np.cos(half).T, np.sin(half).T
    return np.stack([cz * cx, cz * sx, sz * sx, sz * cx], axis=1).ravel()


def solve_all(given: Given, settings: Settings) -> list[Measured]:
    """All problems."""
    return measure("mink", given, Mink(given, settings), settings)


if __name__ == "__main__":
    run(solve_all)
