"""Whole bodies for the bench: random plausible poses, what their devices say, and how well they are met.

A pose has its head and hands where a body of these lengths can bring them together, because this one does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields

import numpy as np

from solvers.bodies import Bodies, BodyGoals, solve_bodies
from solvers.body import BodySolver
from tools.solver_times import Timing, blocks, middle_and_end, plainly, seconds_of
from vrik import quat
from vrik.arrays import Points, Quat, Quats
from vrik.body import BodyModel
from vrik.config import SolveConfig
from vrik.frames import ROLE, ROLE_BONES, ROLES, BodyTargets
from vrik.kinematics import forward
from vrik.skeleton import BONE, BONES, PARENTS

THREE = ("head", "left_hand", "right_hand")
SIX = (*THREE, "waist", "left_foot", "right_foot")
NEAR_M = 1e-3
STEP_M = 0.005
"""Between two frames each target moves by up to this in each direction. [m]"""

STATURE_M = 1.7


def plausible_pose(body: BodyModel, random: np.random.Generator) -> tuple[Points, Quats]:
    """(22, 3) joints [m] and (22, 4) world rotations of a pose within human limits, standing to crouching."""
    local = quat.identity(len(BONES))
    tilt, bow, lean, twist = (
        random.uniform(*r) for r in ((-0.1, 0.4), (-0.15, 0.5), (-0.2, 0.2), (-0.5, 0.5))
    )
    local[0] = quat.multiply(_turn(0.0, random.uniform(-np.pi, np.pi), 0.0), _turn(-tilt, 0.0, 0.0))
    for bone in ("spine", "chest", "upperChest"):
        local[BONE[bone]] = _turn(-bow / 3.0, twist / 3.0, lean / 3.0)
    local[BONE["neck"]] = _turn(*(random.uniform(-r, r) for r in (0.16, 0.2, 0.1)))
    local[BONE["head"]] = _turn(*(random.uniform(-r, r) for r in (0.27, 0.35, 0.15)))
    crouch = random.uniform(0.0, 1.0)
    for side, m in (("left", -1.0), ("right", 1.0)):
        local[BONE[side + "Shoulder"]] = _turn(
            0.0, random.uniform(-0.15, 0.15), m * random.uniform(-0.05, 0.3)
        )
        swing = _turn(0.0, m * random.uniform(-0.3, 1.6), 0.0)
        raised = _turn(0.0, 0.0, m * random.uniform(-1.45, 0.9))
        roll = _turn(random.uniform(-1.2, 1.2), 0.0, 0.0)
        local[BONE[side + "UpperArm"]] = quat.multiply(quat.multiply(swing, raised), roll)
        local[BONE[side + "LowerArm"]] = _turn(0.0, m * random.uniform(0.05, 2.5), 0.0)
        wrist = _turn(0.0, random.uniform(-0.3, 0.3), random.uniform(-0.7, 0.7))
        local[BONE[side + "Hand"]] = quat.multiply(_turn(random.uniform(-1.3, 1.3), 0.0, 0.0), wrist)
        local[BONE[side + "UpperLeg"]] = _turn(1.5 * crouch + random.uniform(0.0, 0.2) + tilt, 0.0, 0.0)
        local[BONE[side + "LowerLeg"]] = _turn(-2.0 * crouch - random.uniform(0.0, 0.4), 0.0, 0.0)
    world = local.copy()
    for j in range(1, len(BONES)):
        world[j] = quat.normalize(quat.multiply(world[PARENTS[j]], local[j]))
    points = forward(
        body.offsets, world, np.array([random.uniform(-2.0, 2.0), 1.0, random.uniform(-2.0, 2.0)])
    )
    feet = [BONE[bone] for bone in ("leftFoot", "rightFoot", "leftToes", "rightToes")]
    points[:, 1] -= float((points[feet, 1] - body.tpose[feet, 1]).min())
    return points, world


def targets_of(points: Points, world: Quats, roles: tuple[str, ...]) -> BodyTargets:
    """What devices on these bones say, exactly."""
    n = len(ROLES)
    rows = np.array([ROLE[role] for role in roles])
    where, turn, weight = np.zeros((n, 3)), quat.identity(n), np.zeros(n)
    where[rows], turn[rows], weight[rows] = points[ROLE_BONES[rows]], world[ROLE_BONES[rows]], 1.0
    return BodyTargets(0, where, turn, weight, weight, np.ones(n, np.int64), np.zeros(n))


def together(count: int, seed: int = 4) -> dict[str, float]:
    """Head and both hands at once, each pose cold: share of poses with all three within a millimetre."""
    body, random = BodyModel.average(STATURE_M), np.random.default_rng(seed)
    misses = np.empty((count, len(THREE)))
    rows = [ROLE[role] for role in THREE]
    for miss in misses:
        solver = BodySolver(body)
        miss[:] = solver.step(targets_of(*plausible_pose(body, random), THREE), 0.0).reach_error_m[rows]
    worst = misses.max(axis=1)
    return {
        "poses": count,
        "within_1mm": float((worst <= NEAR_M).mean()),
        "head_within_1mm": float((misses[:, 0] <= NEAR_M).mean()),
        "median_miss_m": float(np.median(worst)),
        "p99_miss_m": float(np.percentile(worst, 99)),
        "worst_miss_m": float(worst.max()),
    }


def body_timings(bodies: int, rounds: int) -> list[Timing]:
    """The kernel over many bodies and the Python call frame by frame, with three and with six targets."""
    found = []
    for roles in (THREE, SIX):
        one = _many(roles, bodies, rounds)
        found += [one, _steps(roles, rounds)]
    work = f"{bodies} bodies of {len(SIX)} targets, one core"
    all_us = (25.0 * bodies, one.median_us * bodies, one.p99_us * bodies)
    return [*found, Timing(work, *all_us, one.plain_ratio, one.allocations)]


def _many(roles: tuple[str, ...], count: int, rounds: int) -> Timing:
    """``solve_bodies``, so many bodies at a time."""
    body, random = BodyModel.average(STATURE_M), np.random.default_rng(7)
    poses = [plausible_pose(body, random) for _ in range(min(count, 100))]
    goals = _goals(body, [targets_of(*poses[b % len(poses)], roles) for b in range(count)])

    def ready(rows: int) -> Callable[[], None]:
        fresh = Bodies.in_tpose(np.tile(body.tpose, (rows, 1, 1)))
        part = BodyGoals(*(getattr(goals, field.name)[:rows] for field in fields(BodyGoals)))
        return lambda: solve_bodies(fresh, part, SolveConfig())

    def taken(rows: int) -> int:
        call, before = ready(rows), blocks()
        call()
        return blocks() - before

    every, few = ready(count), ready(min(8, count))
    every()
    still, times = goals.position.copy(), []
    for _ in range(rounds):
        goals.position[:] = still + random.uniform(-STEP_M, STEP_M, still.shape)
        times.append(seconds_of(every) / count)
    ratio = plainly(lambda: seconds_of(few)) / float(np.median([seconds_of(few) for _ in range(15)]))
    per_body = (taken(count) - taken(1)) / max(count - 1, 1)
    return Timing(
        f"body of {len(roles)} targets, in the kernel", 25.0, *middle_and_end(times), ratio, per_body
    )


def _steps(roles: tuple[str, ...], rounds: int) -> Timing:
    """``BodySolver.step``: features, guess, steps of the feet and the kernel, called from Python."""
    body, random = BodyModel.average(STATURE_M), np.random.default_rng(7)
    solver = BodySolver(body)
    target = targets_of(*plausible_pose(body, random), roles)
    still = target.position.copy()

    def step() -> None:
        solver.step(target, 0.011)

    times = []
    for k in range(5 + 20 * rounds):
        target.position[:] = still + random.uniform(-STEP_M, STEP_M, still.shape)
        times.append(seconds_of(step))
        if k == 4:  # it was the compiler's time
            times.clear()
    ratio = plainly(lambda: seconds_of(step)) / float(np.median(times))
    return Timing(f"body of {len(roles)} targets, from Python", 60.0, *middle_and_end(times), ratio)


def _goals(body: BodyModel, given: list[BodyTargets]) -> BodyGoals:
    """What is tracked, and what the prior says about the rest."""
    guesses = []
    for target in given:
        solver = BodySolver(body)
        solver.step(target, 0.0)
        guesses.append(solver.guess)
    names = [field.name for field in fields(BodyGoals)][3:]
    return BodyGoals(
        np.array([target.position for target in given]),
        np.array([target.rotation for target in given]),
        np.array([target.position_weight for target in given]),
        *(np.array([getattr(guess, name) for guess in guesses]) for name in names),
    )


def _turn(x: float, y: float, z: float) -> Quat:
    return quat.from_rotvec(np.array([x, y, z]))
