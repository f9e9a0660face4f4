"""Many chains of one kind, one after the other, without Python in between.

Arrays are as each solver has them, with one more dimension in front; ``begin`` and ``end`` are the rows that
one thread does. ``rounds`` (n,) is written.
"""

from solvers.kernels.ccd import solve as ccd
from solvers.kernels.fabrik_chain import solve as fabrik
from solvers.kernels.jacobian import solve as jacobian
from solvers.kernels.jacobian_rows import Work
from solvers.kernels.two_bone import solve as two_bone
from vrik.arrays import Floats, Ints, Points, Quats
from vrik.jit import kernel
from vrik.kernels.quat import load4, qrot
from vrik.kernels.vec import add, load3, store3


@kernel
def place_many(points: Floats, rotations: Floats, offsets: Floats, roots: Points) -> None:
    """Joints and tips of chains that hang on ``roots`` (n, 3), into ``points`` (n, m + 1, 3)."""
    for b in range(len(points)):
        store3(points[b], 0, load3(roots, b))
        for i in range(rotations.shape[1]):
            step = qrot(load4(rotations[b], i), load3(offsets[b], i + 1))
            store3(points[b], i + 1, add(load3(points[b], i), step))


@kernel
def fabrik_many(
    points: Floats, rotations: Floats, offsets: Floats, weights: Floats, limits: Floats, bases: Quats,
    targets: Points, turns: Quats, turn_weight: float, poles: Points,
    tolerance_m: float, tolerance_rad: float, turn_m: float, max_rounds: int, restarts: int,
    scratch: Floats, numbers: Floats, rounds: Ints, begin: int, end: int,
) -> None:  # fmt: skip
    """``fabrik_chain.solve`` for rows ``begin`` to ``end``."""
    for b in range(begin, end):
        rounds[b] = fabrik(
            points[b], rotations[b], offsets[b], weights, limits, load4(bases, b),
            load3(targets, b), load4(turns, b), turn_weight, load3(poles, b),
            tolerance_m, tolerance_rad, turn_m, max_rounds, restarts, scratch, numbers,
        )  # fmt: skip


@kernel
def ccd_many(
    points: Floats, rotations: Floats, offsets: Floats, weights: Floats, limits: Floats, bases: Quats,
    targets: Points, turns: Quats, turn_weight: float, poles: Points,
    tolerance_m: float, tolerance_rad: float, max_rounds: int, max_step_rad: float, near_step_rad: float,
    damping: float, turn_m: float, anew: bool, scratch: Floats, rounds: Ints, begin: int, end: int,
) -> None:  # fmt: skip
    """``ccd.solve`` for rows ``begin`` to ``end``."""
    for b in range(begin, end):
        rounds[b] = ccd(
            points[b], rotations[b], offsets[b], weights, limits, load4(bases, b),
            load3(targets, b), load4(turns, b), turn_weight, load3(poles, b),
            tolerance_m, tolerance_rad, max_rounds, max_step_rad, near_step_rad, damping,
            turn_m, anew, scratch,
        )  # fmt: skip


@kernel
def jacobian_many(
    points: Floats, rotations: Floats, offsets: Floats, weights: Floats, limits: Floats, bases: Quats,
    targets: Points, turns: Quats, turn_weight: float, poles: Points, method: int,
    tolerance_m: float, tolerance_rad: float, max_rounds: int, max_step_rad: float, damping: float,
    border: float, to_middle: float, turn_m: float, soft_m: float, work: Work,
    rounds: Ints, begin: int, end: int,
) -> None:  # fmt: skip
    """``jacobian.solve`` for rows ``begin`` to ``end``."""
    for b in range(begin, end):
        rounds[b] = jacobian(
            points[b], rotations[b], offsets[b], weights, limits, load4(bases, b),
            load3(targets, b), load4(turns, b), turn_weight, load3(poles, b), method,
            tolerance_m, tolerance_rad, max_rounds, max_step_rad, damping,
            border, to_middle, turn_m, soft_m, work,
        )  # fmt: skip


@kernel
def two_bone_many(
    points: Floats, rotations: Floats, offsets: Floats, weights: Floats, limits: Floats, bases: Quats,
    targets: Points, turns: Quats, turn_weight: float, poles: Points, soft_m: float, max_stretch: float,
    rounds: Ints, begin: int, end: int,
) -> None:  # fmt: skip
    """``two_bone.solve`` for rows ``begin`` to ``end``."""
    for b in range(begin, end):
        rounds[b] = 0
        two_bone(
            points[b], rotations[b], offsets[b], weights, limits, load4(bases, b),
            load3(targets, b), load4(turns, b), turn_weight, load3(poles, b), soft_m, max_stretch,
        )  # fmt: skip
