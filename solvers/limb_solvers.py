"""The body with other solvers than its own for arms, legs or spine.

The steps are those of ``solvers/kernels/body.py``; only who bends a limb is chosen by name. Each limb is a
chain of :mod:`solvers.chain`, warm-started from the frame before.
"""

from __future__ import annotations

import numpy as np

from solvers.body_parts import Scratch, SolvedBody
from solvers.chain import Chain, ChainPose, ChainSolution, Target
from solvers.config import ChainConfig
from solvers.guess import Guess
from solvers.kernels import body as body_kernels
from solvers.kernels import limbs, torso
from solvers.kernels.fabrik import reach, turn_to_pole
from solvers.registry import find_solver, solve_chain
from vrik import quat
from vrik.arrays import Floats, Points, Quats
from vrik.config import SolveConfig
from vrik.frames import ROLE, ROLE_BONES, BodyTargets
from vrik.skeleton import BONE, PARENTS

UPPER_ARMS, THIGHS = (
    (BONE["leftUpperArm"], BONE["rightUpperArm"]),
    (BONE["leftUpperLeg"], BONE["rightUpperLeg"]),
)
SPINE_JOINTS, CHEST_JOINTS = 5, 3
HANDS = slice(ROLE["left_hand"], ROLE["right_hand"] + 1)
BENT_M = 1e-4
"""An elbow or knee nearer to the line from root to end than this shows no side. [m]"""


def check_solvers(config: SolveConfig) -> None:
    """ValueError with the names there are, if one of the limbs' solvers is not among them."""
    for name in (config.arm_solver, config.leg_solver, config.spine_solver):
        find_solver(name)


def pose_with(
    lengths: tuple[Points, Points],
    config: SolveConfig,
    targets: BodyTargets,
    guess: Guess,
    floor_y: float,
    spine: tuple[Floats, Floats],
    scratch: Scratch,
    solved: SolvedBody,
) -> None:
    """Pose a body in place, as ``kernels.body.pose`` does, with the solvers that ``config`` names.

    Args:
        lengths: (22, 3) offsets and (22, 3) T-pose of the body. [m]
        config: Solvers and tolerance.
        targets: Role targets.
        guess: The other goals.
        floor_y: Height of the floor. [m]
        spine: Weights and limits of the spine's joints.
        scratch: Worked in; ``last_twist`` is remembered.
        solved: The frame before, overwritten.
    """
    (offsets, tpose), positions, turns = lengths, solved.position, scratch.turns
    _torso(offsets, config, targets, guess, spine, scratch, positions)
    chain_config = _chain_config(config)
    role = (targets.position, targets.rotation, targets.position_weight)
    work = (scratch.joints, scratch.lengths, scratch.goal)
    ankle, toes = float(tpose[BONE["leftFoot"], 1]), float(tpose[BONE["leftToes"], 1])
    feet = (guess.ankle_position, guess.foot_rotation, guess.knee_pole)
    for side in range(2):
        limbs.arm_goal(side, offsets, *role, guess.elbow_pole, *work, positions, turns)
        if config.arm_solver == "fabrik":
            pole = _triple(scratch.goal[1])
            reach(*work[:2], _triple(scratch.goal[0]), pole, config.tolerance_m, config.max_rounds)
            turn_to_pole(scratch.joints, pole)
        else:
            _bend(UPPER_ARMS[side], offsets, solved.rotation, scratch, config.arm_solver, chain_config)
        limbs.orient_arm(side, offsets, *role[1:], scratch.last_twist, *work[::2], positions, turns)
        limbs.leg_goal(side, offsets, floor_y, ankle, toes, *role, *feet, *work, positions, turns)
        if config.leg_solver == "two_bone":
            limbs.bend_leg(*work, floor_y + ankle)
        else:
            _bend(THIGHS[side], offsets, solved.rotation, scratch, config.leg_solver, chain_config)
        limbs.orient_leg(side, offsets, *work[::2], positions, turns)
    body_kernels.finish(
        PARENTS, offsets, ROLE_BONES, targets.position, targets.position_weight, turns,
        positions, solved.rotation, solved.local_rotation, solved.reach_error_m,
    )  # fmt: skip


def _chain_config(config: SolveConfig) -> ChainConfig:
    return ChainConfig(tolerance_m=config.tolerance_m, max_rounds=config.max_rounds, damping=config.damping)


def _torso(
    offsets: Points,
    config: SolveConfig,
    targets: BodyTargets,
    guess: Guess,
    spine: tuple[Floats, Floats],
    scratch: Scratch,
    positions: Points,
) -> None:
    """Hips to head and the collar bones; the steps of ``kernels.torso.solve``."""
    turns = scratch.turns
    weights, limits = spine
    head = targets.position[ROLE["head"]]
    waist = float(targets.position_weight[ROLE["waist"]])
    hands = (targets.position[HANDS], targets.position_weight[HANDS])
    tries = (config.tolerance_m, config.max_rounds)

    def bend(joints: int, place: Points) -> None:
        n = joints + 1
        if config.spine_solver == "ccd":
            chain = (positions[:n], turns[:n], offsets[:n], weights[:n], limits[:n])
            torso.meet(*chain, _triple(place), *tries, waist, scratch.spine)
        else:
            solve = Chain(offsets[:n], weights[:joints], limits[:joints])
            start = ChainPose(positions[0].copy(), turns[:joints].copy(), quat.identity())
            found = solve_chain(
                solve, start, Target(place), solver=config.spine_solver, config=_chain_config(config)
            )
            turns[:joints], positions[:n] = found.pose.rotations_world, found.points_world
        torso.shift_to(positions, n, _triple(place))

    torso.begin(
        _triple(guess.pelvis_position), _four(guess.pelvis_rotation), _four(guess.chest_rotation),
        _triple(head), _four(targets.rotation[ROLE["head"]]), waist, offsets, positions, turns,
    )  # fmt: skip
    bend(SPINE_JOINTS, head)
    if torso.draw_along(*hands, offsets, positions, turns):
        bend(CHEST_JOINTS, positions[CHEST_JOINTS].copy())
        torso.place_collars(*hands, offsets, positions, turns)


def _bend(
    upper: int, offsets: Points, before: Quats, scratch: Scratch, solver: str, config: ChainConfig
) -> ChainSolution:
    """Two bones towards the goal in ``scratch``, from the rotations of the frame ``before``."""
    joints, goal = scratch.joints, scratch.goal
    chain = Chain.build(np.concatenate([np.zeros((1, 3)), offsets[upper + 1 : upper + 3]]))
    start = ChainPose.build(joints[0], before[upper : upper + 2])
    found = solve_chain(
        chain, start, Target(goal[0].copy(), pole=goal[1].copy()), solver=solver, config=config
    )
    joints[:] = found.points_world
    along = goal[0] - joints[0]
    along /= max(float(np.linalg.norm(along)), 1e-9)
    out = joints[1] - joints[0]
    out -= along * (out @ along)
    if float(np.linalg.norm(out)) > BENT_M:  # the side it is bent to, whatever the solver made of the pole
        goal[1] = out
    return found


def _triple(v: Points) -> tuple[float, float, float]:
    return (float(v[0]), float(v[1]), float(v[2]))


def _four(q: Quats) -> tuple[float, float, float, float]:
    return (float(q[0]), float(q[1]), float(q[2]), float(q[3]))
