"""Other poses to start from, for a chain that got stuck between its limits.

A solver goes downhill from where it starts, and joint limits make valleys that do not lead to the target.
While a target is followed from frame to frame that does not happen and a jump to another pose would be worse
than a miss, so nothing starts anew unless ``ChainConfig.restarts`` asks for it.
"""

from __future__ import annotations

import math

import numpy as np

from solvers.chain import Chain, ChainPose
from solvers.kernels.limits import AXIS, CENTER, FREE, HIGH, HINGE, KIND, LOW, OTHER_SWING, SIDE, SWING
from vrik import quat
from vrik.arrays import Floats, Quat


def other_start(chain: Chain, start: ChainPose, number: int) -> ChainPose:
    """A pose within all limits, spread evenly over them; the same for the same ``number`` (0, 1, ...)."""
    chance = np.random.default_rng(number)
    rotations = np.empty_like(start.rotations_world)
    held = chain.locals_of(start)
    parent = start.base_world
    for i, row in enumerate(chain.limits):
        draw = chance.uniform(size=3)
        rigid = chain.weights[i] <= 0.0
        parent = rotations[i] = quat.multiply(parent, held[i] if rigid else _within(row, draw))
    return ChainPose(start.root_world, quat.normalize(rotations), start.base_world)


def _within(row: Floats, draw: Floats) -> Quat:
    """A turn that the limit ``row`` allows, for three numbers from 0 to 1."""
    if row[KIND] == FREE:
        return quat.from_rotvec(math.pi * (2.0 * draw - 1.0) / math.sqrt(3.0))
    axis, side = row[AXIS : AXIS + 3], row[SIDE : SIDE + 3]
    low, high = max(row[LOW], -math.pi), min(row[HIGH], math.pi)
    twist = quat.from_rotvec(axis * (low + (high - low) * draw[0]))
    if row[KIND] == HINGE:
        return quat.multiply(row[CENTER : CENTER + 4], twist)
    far, around = math.sqrt(draw[1]), 2.0 * math.pi * draw[2]
    swing = side * (row[SWING] * math.cos(around)) + np.cross(axis, side) * (
        row[OTHER_SWING] * math.sin(around)
    )
    return quat.multiply(row[CENTER : CENTER + 4], quat.multiply(quat.from_rotvec(far * swing), twist))
