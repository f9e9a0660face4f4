"""Where published listings go wrong: each test shows the fault as the listing has it, then ours without."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from solvers.blend import blend, combined
from solvers.chain import Chain, ChainPose, ChainSolution, Target
from solvers.config import ChainConfig
from solvers.limits import Hinge, SwingTwist, clamp_rotation
from solvers.registry import solve_chain
from solvers.smoothing import TargetSmoother, toward
from solvers.swivel import with_swivel
from vrik import quat
from vrik.arrays import Floats, Points, Vec3

ARM = Chain.build([[0.0, 0.0, 0.0], [0.30, 0.0, 0.0], [0.26, 0.0, 0.0]])
TENTACLE = Chain.build([[0.0, 0.0, 0.0], *[[0.1, 0.0, 0.0]] * 5])
DOWN = np.array([0.0, -1.0, 0.0])


def lengths(points: Points) -> Floats:
    return np.asarray(np.linalg.norm(np.diff(points, axis=0), axis=1))


def solved(chain: Chain, target: Vec3, pole: Vec3 | None = None, solver: str = "two_bone") -> ChainSolution:
    return solve_chain(chain, chain.rest(), Target(np.asarray(target, float), pole=pole), solver=solver)


def test_a_pole_step_keeps_bone_lengths() -> None:
    """The listing moves the elbow some way towards the pole and leaves the hand where it is."""
    joints = solved(ARM, np.array([0.3, 0.1, -0.2]), pole=DOWN).points_world
    towards = joints[1] + 0.1 * (np.array([0.2, 0.3, 1.0]) - joints[1])
    assert np.abs(lengths(np.array([joints[0], towards, joints[2]])) - ARM.lengths).max() > 0.01

    turned = with_swivel(*joints, 1.0, DOWN)

    np.testing.assert_allclose(lengths(np.array([joints[0], turned, joints[2]])), ARM.lengths, atol=1e-9)
    other = solved(ARM, joints[2], pole=turned - joints[0])
    np.testing.assert_allclose(other.points_world[1], turned, atol=1e-9)


def test_a_weighted_blend_keeps_bone_lengths() -> None:
    """The listing takes the mean of solved and given joint positions."""
    out, up = solved(ARM, np.array([0.5, 0.0, 0.0]), DOWN), solved(ARM, np.array([0.0, 0.5, 0.0]), DOWN)
    mean = 0.5 * (out.points_world + up.points_world)
    assert np.abs(lengths(mean) - ARM.lengths).max() > 0.05

    mixed = blend(ARM, out.pose, up.pose, 0.5)

    np.testing.assert_allclose(lengths(ARM.points(mixed)), ARM.lengths, atol=1e-9)


def test_no_target_is_not_the_identity() -> None:
    """The listing fills a missing rotation with (1, 0, 0, 0), which turns the hand to the rest pose."""
    chain = Chain.build([*ARM.offsets, [0.08, 0.0, 0.0]])
    bent = ChainPose.build(np.zeros(3), [quat.identity()] * 2 + [quat.from_rotvec(np.array([0.0, 0.6, 0.0]))])
    goal = np.array([0.3, -0.2, -0.2])

    free = solve_chain(chain, bent, Target(goal, pole=DOWN), solver="two_bone")
    asked = solve_chain(chain, bent, Target(goal, quat.identity(), pole=DOWN), solver="two_bone")

    assert quat.angle(asked.pose.rotations_world[2], quat.identity()) < 1e-9
    assert quat.angle(free.pose.rotations_world[2], quat.identity()) > 0.3
    assert free.residual_rad == 0.0
    assert combined([Target(goal), Target(goal)]).rotation is None
    turned = quat.from_rotvec(np.array([0.0, 2.0, 0.0]))
    both = combined([Target(goal), Target(goal, turned)])
    assert quat.angle(both.rotation, turned) < 1e-7  # not half way to the identity


def test_a_blend_over_time_does_not_depend_on_the_frame_rate() -> None:
    """The listing goes a fixed share of the way in every frame."""

    def listing(hz: int) -> float:
        x = 0.0
        for _ in range(hz // 10):
            x += 0.15 * (1.0 - x)
        return x

    def ours(hz: int) -> float:
        x = np.zeros(3)
        for _ in range(hz // 10):
            x = toward(x, [1.0, 1.0, 1.0], 1.0 / hz, 0.05)
        return float(x[0])

    assert abs(listing(120) - listing(30)) > 0.3
    assert abs(ours(120) - ours(30)) < 1e-9


@pytest.mark.parametrize("solver", ["two_bone", "fabrik", "ccd"])
def test_a_target_is_smoothed_once(solver: str) -> None:
    """The listing smooths in the input and again in the solver: twice the lag. Ours have one place for it."""
    config = ChainConfig(tolerance_m=1e-3)
    smoother, goal = TargetSmoother(0.1), Target(np.array([0.2, -0.3, -0.2]), pole=DOWN)
    smoother.step(Target(np.array([0.45, 0.0, -0.1]), pole=DOWN), 0.0)
    first = solve_chain(ARM, ARM.rest(), smoother.step(goal, 0.0), solver=solver, config=config)

    shown = smoother.step(goal, 0.1)
    at_once = solve_chain(ARM, first.pose, shown, solver=solver, config=config)

    np.testing.assert_allclose(shown.position, [0.325, -0.15, -0.15])  # half way after a half-life
    np.testing.assert_allclose(at_once.points_world[-1], shown.position, atol=2e-3)  # no lag of its own
    assert smoother.step(goal, 0.1) is shown  # a second user in the same frame


def test_limits_do_not_flip_at_half_a_turn() -> None:
    """The listing clamps Euler angles: past 180 degrees they come back as -180 and end at the other stop."""
    stop, hinge = math.radians(150.0), Hinge((0.0, 0.0, 1.0), math.radians(-60.0), math.radians(150.0))
    cone = SwingTwist((1.0, 0.0, 0.0), (1.0, 1.0), math.radians(-60.0), math.radians(150.0))

    def listing(angle_deg: float) -> float:
        z = Rotation.from_euler("z", angle_deg, degrees=True).as_euler("zyx")[0]
        return float(np.clip(z, math.radians(-60.0), stop))

    def about(axis: int, angle_deg: float) -> np.ndarray:
        return quat.from_rotvec(np.eye(3)[axis] * math.radians(angle_deg))

    assert listing(179.0) == pytest.approx(stop)
    assert listing(181.0) == pytest.approx(math.radians(-60.0))

    for angle in (155.0, 179.0, 181.0, 200.0):
        kept = quat.to_rotvec(clamp_rotation(about(2, angle), hinge))
        np.testing.assert_allclose(kept, [0.0, 0.0, stop], atol=1e-9)
        twisted = quat.to_rotvec(clamp_rotation(about(0, angle), cone))
        np.testing.assert_allclose(twisted, [stop, 0.0, 0.0], atol=1e-9)


@pytest.mark.parametrize("solver", ["two_bone", "fabrik", "ccd"])
@pytest.mark.parametrize("reach", [0.0, 1e-9, 0.01, 0.05])
def test_joints_do_not_collapse_when_the_target_is_nearer_than_a_bone_is_long(
    solver: str, reach: float
) -> None:
    """The listing puts a joint one length along a direction that has none: it lands on the joint before."""
    shoulder = goal = np.zeros(3)
    direction = (goal - shoulder) / max(float(np.linalg.norm(goal - shoulder)), 1e-9)
    assert np.linalg.norm(shoulder + 0.3 * direction - shoulder) == 0.0
    equal = Chain.build([[0.0, 0.0, 0.0], [0.3, 0.0, 0.0], [0.3, 0.0, 0.0]])

    found = solved(equal, np.array([0.0, 0.0, -reach]), pole=DOWN, solver=solver)

    np.testing.assert_allclose(lengths(found.points_world), 0.3, atol=1e-9)
    assert np.isfinite(found.points_world).all()
    assert found.residual_m <= 1e-3


@pytest.mark.parametrize("solver", ["fabrik", "ccd"])
def test_no_bone_of_a_long_chain_collapses_on_a_near_target(solver: str) -> None:
    for reach in (0.0, 1e-9, 0.02):
        found = solved(TENTACLE, np.array([0.0, reach, 0.0]), solver=solver)

        np.testing.assert_allclose(lengths(found.points_world), 0.1, atol=1e-9)
