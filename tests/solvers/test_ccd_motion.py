"""CCD from frame to frame: no joint and no spine outruns its target by more than stated."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from solvers.body import BodySolver
from solvers.ccd import solve
from solvers.chain import Chain, Target
from solvers.config import ChainConfig
from vrik import quat
from vrik.arrays import Points, Quat
from vrik.body import BodyModel
from vrik.frames import ROLE, ROLES, BodyTargets

CONFIG = ChainConfig()
BODY = BodyModel.average(1.7)
HIPS = BODY.tpose[0]
SPINE_M = float(np.linalg.norm(BODY.offsets[1:6], axis=1).sum())


def test_a_hand_that_sweeps_half_a_circle_moves_the_elbow_smoothly(shared: Path) -> None:
    """Case C51 without a pole: warm-started, the elbow moves at most 3 cm a frame."""
    case = json.loads((shared / "data/cases/c51_sweep.json").read_text())
    chain = Chain.build([[0.0, 0, 0], [-case["lengths"][0], 0, 0], [-case["lengths"][1], 0, 0]])
    places = np.array(case["targets"], float)
    pose = solve(chain, chain.rest(case["shoulder"]), Target(places[0]), CONFIG).pose
    elbows = []

    for place in places:
        solved = solve(chain, pose, Target(place), CONFIG)
        pose = solved.pose
        elbows.append(solved.points_world[1])
        assert solved.residual_m <= 1e-3

    assert np.linalg.norm(np.diff(elbows, axis=0), axis=1).max() <= 0.03


def test_joints_of_a_moving_chain_turn_no_faster_than_stated() -> None:
    """Six bones of 0.2 m, a target that goes at 2 mm a frame around inside the reach: 16 rad a metre."""
    chain = Chain.build(np.vstack([np.zeros(3), np.tile([0.0, 0.2, 0.0], (6, 1))]))
    t = np.linspace(0.0, 2.0 * np.pi, 1500)
    places = np.stack([0.5 * np.sin(t), 0.5 + 0.2 * np.cos(2.0 * t), 0.4 * np.sin(2.0 * t)], axis=1)
    pose = solve(chain, chain.rest(), Target(places[0]), CONFIG).pose
    worst = 0.0

    for before, place in pairwise(places):
        solved = solve(chain, pose, Target(place), CONFIG)
        turned = quat.angle(chain.locals_of(pose), chain.locals_of(solved.pose)).max()
        worst = max(worst, float(turned) / float(np.linalg.norm(place - before) + CONFIG.tolerance_m))
        pose = solved.pose
        assert solved.reached

    assert worst <= 16.0


def spine_of(head: Points, head_turn: Quat, hips: Points, hips_turn: Quat) -> Points:
    """(n, 6, 3) hips to head of a body with trackers on head and waist, frame after frame."""
    solver, n, found = BodySolver(BODY), len(ROLES), []
    weight = np.zeros(n)
    weight[[ROLE["head"], ROLE["waist"]]] = 1.0
    for i in range(len(head)):
        position, rotation = np.zeros((n, 3)), quat.identity(n)
        position[ROLE["head"]], position[ROLE["waist"]] = head[i], hips[i]
        rotation[ROLE["head"]], rotation[ROLE["waist"]] = head_turn[i], hips_turn[i]
        targets = BodyTargets(0, position, rotation, weight, weight, np.zeros(n, np.int64), np.zeros(n))
        found.append(solver.step(targets, 1.0 / 90.0).position[:6].copy())
    return np.array(found)


def lean(angle: Points, share: Points) -> Points:
    """Heads over the hips, leant forward by ``angle``, at ``share`` of the spine's length."""
    way = np.stack([np.zeros_like(angle), np.cos(angle), -np.sin(angle)], axis=1)
    return np.asarray(HIPS + SPINE_M * share[:, None] * way)


@pytest.mark.parametrize("angle_rad", [-0.3, 0.0, 0.3, 0.8, 1.3])
@pytest.mark.parametrize("nod_rad", [0.0, -1.0])
def test_a_spine_that_folds_over_tracked_hips_never_jumps(angle_rad: float, nod_rad: float) -> None:
    """From full stretch to 60 % of its length no joint goes more than 12 times as fast as the head."""
    n = 400
    share = np.linspace(1.0, 0.6, n)
    head = lean(np.full(n, angle_rad), share)
    turn = quat.from_rotvec(np.outer(np.linspace(0.0, nod_rad, n), [1.0, 0.0, 0.0]))

    spine = spine_of(head, turn, np.tile(HIPS, (n, 1)), quat.identity(n))

    moved = np.linalg.norm(np.diff(spine, axis=0), axis=2).max(axis=1)
    speed = np.linalg.norm(np.diff(head, axis=0), axis=1) + 0.3 * quat.angle(turn[:-1], turn[1:])
    assert (moved / speed).max() <= 12.0
    np.testing.assert_allclose(spine[:, 5], head, atol=1e-3)


def test_a_swaying_spine_over_moving_hips_never_jumps() -> None:
    t = np.linspace(0.0, 3.0, 900)
    way = np.stack([0.4 * np.sin(5 * t), np.ones_like(t), -0.4 * np.sin(3 * t) ** 2], axis=1)
    way /= np.linalg.norm(way, axis=1)[:, None]
    hips = HIPS + np.outer(np.sin(9 * t), [0.02, 0.0, 0.0])
    head = hips + SPINE_M * (0.9 - 0.25 * np.sin(6 * t) ** 2)[:, None] * way
    turn = quat.from_rotvec(np.stack([-0.6 * np.sin(4 * t), 0.8 * np.sin(2 * t), 0 * t], axis=1))
    hips_turn = quat.from_rotvec(np.stack([0.2 * np.sin(7 * t), 0.3 * np.sin(2 * t), 0 * t], axis=1))

    spine = spine_of(head, turn, hips, hips_turn)

    assert np.linalg.norm(np.diff(spine, axis=0), axis=2).max() <= 0.02


def bulge(spine: Points) -> Points:
    """How far the joint of the chest is off the line from the first joint to the head, in each frame. [m]"""
    chord = spine[:, 5] - spine[:, 1]
    chord /= np.linalg.norm(chord, axis=1)[:, None]
    r = spine[:, 3] - spine[:, 1]
    return np.asarray(r - (r * chord).sum(axis=1)[:, None] * chord)


def test_a_folded_spine_keeps_the_side_it_is_bent_to() -> None:
    """Folded, the head nods to and fro: the back does not flip from round to hollow."""
    n = 300
    share = np.concatenate([np.linspace(1.0, 0.85, 100), np.full(n - 100, 0.85)])
    head = lean(np.full(n, 0.1), share)
    nod = np.concatenate([np.zeros(100), 0.6 * np.sin(np.linspace(0.0, 12.0, n - 100))])
    turn = quat.from_rotvec(np.outer(nod, [1.0, 0.0, 0.0]))

    off = bulge(spine_of(head, turn, np.tile(HIPS, (n, 1)), quat.identity(n)))[100:, 2]

    assert (np.sign(off) == np.sign(off[0])).all()
    assert abs(off).min() > 0.02
