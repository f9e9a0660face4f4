"""Feet that no tracker is on: planted until a step is due, then one swing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

from solvers.guess import Guess
from solvers.stepping import SteppingState, step
from vrik import quat
from vrik.arrays import Bools, Points
from vrik.config import SteppingConfig
from vrik.pipeline import Pipeline
from vrik.skeleton import BONE

RATE_HZ = 90.0
STATURE_M = 1.7
LEFT, RIGHT = 0, 1
ANKLES = [BONE["leftFoot"], BONE["rightFoot"]]
STANCE = np.array([[-0.1, 0.06, 0.0], [0.1, 0.06, 0.0]])


class Walk:
    """Feet of one body, stepped frame by frame towards goals that glide with it."""

    def __init__(self, config: SteppingConfig = SteppingConfig()) -> None:  # noqa: B008  # frozen
        self.config, self.state = config, SteppingState.fresh()
        self.place, self.velocity, self.yaw = np.zeros(3), np.zeros(3), 0.0
        self.ankles: list[Points] = []
        self.planted: list[Points] = []

    def go(
        self, seconds: float, velocity: Iterable[float] = (0.0, 0.0, 0.0), turn_rad_s: float = 0.0
    ) -> Walk:
        velocity = np.array(list(velocity))
        for _ in range(round(seconds * RATE_HZ)):
            self.place = self.place + velocity / RATE_HZ
            self.yaw += turn_rad_s / RATE_HZ
            heading = quat.from_rotvec(np.array([0.0, self.yaw, 0.0]))
            guess = Guess.fresh()
            guess.ankle_position[:] = self.place + quat.rotate(heading, STANCE)
            guess.foot_rotation[:] = heading
            step(guess, velocity[0], velocity[2], 1.0 / RATE_HZ, STATURE_M, self.config, self.state)
            self.ankles.append(guess.ankle_position.copy())
            self.planted.append(guess.contact.copy() > 0.5)
        return self

    def steps(self) -> int:
        """Swings begun so far."""
        return count_steps(np.array(self.planted))


def count_steps(planted: Bools) -> int:
    return int((planted[:-1] & ~planted[1:]).sum())


def slides(ankles: Points, planted: Bools) -> Points:
    """How far each planted foot moved along the floor from one frame to the next. [m]"""
    moved = np.linalg.norm(np.diff(ankles[..., [0, 2]], axis=0), axis=-1)
    return moved[planted[1:] & planted[:-1]]


def test_the_first_frame_puts_both_feet_where_they_are_wanted() -> None:
    walk = Walk().go(1.0 / RATE_HZ)

    np.testing.assert_allclose(walk.ankles[0], STANCE)
    assert walk.planted[0].all()


def test_a_body_that_stands_takes_no_step() -> None:
    assert Walk().go(10.0).steps() == 0


def test_a_small_shift_takes_no_step_and_a_large_one_takes_two() -> None:
    """One foot after the other, each once."""
    walk = Walk().go(0.5)

    walk.place = np.array([0.05, 0.0, 0.0])
    assert walk.go(2.0).steps() == 0

    walk.place = np.array([0.3, 0.0, 0.0])
    assert walk.go(2.0).steps() == 2
    np.testing.assert_allclose(walk.ankles[-1], walk.place + STANCE, atol=1e-9)


def test_a_turn_on_the_spot_takes_steps_when_it_is_large() -> None:
    walk = Walk().go(0.5)
    assert walk.go(0.5, turn_rad_s=np.radians(30.0)).steps() == 0

    assert walk.go(1.0, turn_rad_s=np.radians(90.0)).go(1.0).steps() >= 2


@pytest.mark.parametrize("speed_m_s", [0.3, 0.8, 1.3, 2.0])
@pytest.mark.parametrize("direction", [(0.0, 0.0, -1.0), (0.0, 0.0, 1.0), (1.0, 0.0, 0.0), (-0.6, 0.0, -0.8)])
def test_planted_feet_stand_still_and_the_other_one_swings(speed_m_s: float, direction: Any) -> None:
    velocity = speed_m_s * np.array(direction)

    walk = Walk().go(0.5).go(6.0, velocity).go(1.0)

    ankles, planted = np.array(walk.ankles), np.array(walk.planted)
    assert slides(ankles, planted).max() == 0.0
    assert count_steps(planted) > 6
    if speed_m_s <= 1.3:  # once the sudden start is over
        assert planted[round(1.5 * RATE_HZ) :].any(axis=1).all(), "both feet in the air while walking"
    behind = np.linalg.norm((ankles - (walk_path(walk, velocity)[:, None] + STANCE))[..., [0, 2]], axis=-1)
    assert behind.max() < 0.75, "a foot was left behind"


def walk_path(walk: Walk, velocity: Points) -> Points:
    """Where the body was in each frame of: half a second standing, six seconds walking, one standing."""
    n = [round(s * RATE_HZ) for s in (0.5, 6.0, 1.0)]
    going = np.arange(1, n[1] + 1)[:, None] * velocity / RATE_HZ
    return np.concatenate([np.zeros((n[0], 3)), going, np.repeat(going[-1:], n[2], axis=0)])


@pytest.mark.parametrize("speed_m_s", [0.3, 0.8, 1.3])
def test_feet_do_not_cross_while_walking_ahead(speed_m_s: float) -> None:
    ankles = np.array(Walk().go(0.5).go(6.0, (0.0, 0.0, -speed_m_s)).ankles)

    assert (ankles[:, RIGHT, 0] - ankles[:, LEFT, 0]).min() > 0.05


def test_a_swing_lifts_the_foot_and_takes_its_time() -> None:
    config = SteppingConfig()
    walk = Walk(config).go(0.5)
    walk.place = np.array([0.0, 0.0, -0.3])
    walk.go(2.0)

    ankles, planted = np.array(walk.ankles), np.array(walk.planted)
    swing = ~planted[:, LEFT]
    assert abs(swing.sum() / RATE_HZ - config.swing_s) < 2.0 / RATE_HZ
    top = ankles[:, LEFT, 1].max() - STANCE[LEFT, 1]
    assert abs(top - config.lift_share * STATURE_M) < 0.005
    assert np.linalg.norm(np.diff(ankles[:, LEFT], axis=0), axis=1).max() < 0.03


def test_feet_in_the_air_go_where_they_are_wanted_and_land_there() -> None:
    state = SteppingState.fresh()
    for i in range(60):
        guess = Guess.fresh()
        guess.ankle_position[:] = STANCE + np.array([0.01 * i, 0.3, 0.0])
        guess.contact[:] = 0.0
        step(guess, 0.9, 0.0, 1.0 / RATE_HZ, STATURE_M, SteppingConfig(), state)
        np.testing.assert_allclose(guess.ankle_position, STANCE + np.array([0.01 * i, 0.3, 0.0]))
        assert (guess.contact == 0.0).all()

    guess = Guess.fresh()
    guess.ankle_position[:] = STANCE + np.array([0.59, 0.0, 0.0])
    step(guess, 0.0, 0.0, 1.0 / RATE_HZ, STATURE_M, SteppingConfig(), state)

    np.testing.assert_allclose(guess.ankle_position, STANCE + np.array([0.59, 0.0, 0.0]))
    assert (guess.contact == 1.0).all()


# ---- seen from the head: the whole pipeline


def head_motions(seconds: float) -> dict[str, tuple[Points, Points]]:
    """Rotation vectors of the head about the neck, and shifts of the neck, over time."""
    t = np.arange(0.0, seconds, 1.0 / RATE_HZ)
    zero = np.zeros((len(t), 3))
    swing = np.sin(2.0 * np.pi * 0.8 * t)[:, None]
    rng = np.random.default_rng(4)
    return {
        "still, with noise": (zero + rng.normal(0.0, 0.001, zero.shape), rng.normal(0.0, 0.0007, zero.shape)),
        "nod": (np.radians(25.0) * swing * np.array([1.0, 0.0, 0.0]), zero),
        "shake": (np.radians(40.0) * swing * np.array([0.0, 1.0, 0.0]), zero),
        "tilt": (np.radians(20.0) * swing * np.array([0.0, 0.0, 1.0]), zero),
        "sway": (zero, 0.02 * swing * np.array([1.0, 0.0, 1.0])),
    }


def feet_under(person: Any, turns: Points, shifts: Points) -> tuple[Points, int]:
    """Ankles of every frame, and how many steps they took."""
    wearer = person()
    pipeline = Pipeline(wearer.calibration)
    position, rotation = wearer.standing()
    neck, head = BONE["neck"], BONE["head"]
    ankles, planted = [], []
    for i, (turn, shift) in enumerate(zip(turns, shifts, strict=True)):
        p, q = position.copy(), rotation.copy()
        q[head] = quat.from_rotvec(turn)
        p[head] = position[neck] + quat.rotate(q[head], position[head] - position[neck]) + shift
        pose = pipeline.step(wearer.frame(i / RATE_HZ, p, q))
        ankles.append(pose.position[ANKLES])
        planted.append(pipeline._solver.guess.contact > 0.5)
    return np.array(ankles), count_steps(np.array(planted))


@pytest.mark.parametrize("motion", head_motions(0.1))
def test_moving_only_the_head_for_ten_seconds_takes_no_step(person: Any, motion: str) -> None:
    """S15."""
    turns, shifts = head_motions(10.0)[motion]

    ankles, steps = feet_under(person, turns, shifts)

    assert steps == 0
    assert np.linalg.norm(np.ptp(ankles[..., [0, 2]], axis=0), axis=-1).max() < 0.005


def test_looking_aside_leaves_the_feet_where_they_are(person: Any) -> None:
    """S17: to either side, held for two seconds; a turn beyond 35 degrees is followed with steps."""
    t = np.arange(0.0, 8.0, 1.0 / RATE_HZ)
    yaw = np.radians(30.0) * np.interp(t, [0.0, 0.7, 2.7, 4.1, 6.1, 7.0], [0.0, 1.0, 1.0, -1.0, -1.0, 0.0])
    turns = yaw[:, None] * np.array([0.0, 1.0, 0.0])

    _, steps = feet_under(person, turns, np.zeros_like(turns))

    assert steps == 0


def test_a_foot_that_leaves_the_floor_nears_its_goal_without_a_leap() -> None:
    """A planted foot may be a step's length from where it is wanted when it is raised."""
    walk = Walk().go(0.5)
    goal = STANCE + np.array([0.08, 0.0, 0.0])
    feet = [walk.ankles[-1][LEFT]]
    for _ in range(30):
        guess = Guess.fresh()
        guess.ankle_position[:], guess.contact[:] = goal, 0.0
        step(guess, 0.0, 0.0, 1.0 / RATE_HZ, STATURE_M, walk.config, walk.state)
        feet.append(guess.ankle_position[LEFT].copy())

    assert np.linalg.norm(np.diff(feet, axis=0), axis=-1).max() < 0.02
    np.testing.assert_allclose(feet[-1], goal[LEFT], atol=1e-3)


def test_a_raised_foot_points_where_it_is_wanted() -> None:
    guess, state = Guess.fresh(), SteppingState.fresh()
    guess.foot_rotation[:] = quat.from_rotvec(np.array([-0.6, 0.0, 0.0]))
    wanted = guess.foot_rotation.copy()
    guess.contact[:] = (0.0, 1.0)

    step(guess, 0.0, 0.0, 1.0 / RATE_HZ, STATURE_M, SteppingConfig(), state)

    assert quat.angle(guess.foot_rotation[LEFT], wanted[LEFT]) < 1e-9
    assert quat.angle(guess.foot_rotation[RIGHT], quat.identity()) < 1e-9
