"""One body, frame after frame: limbs that bend the way limbs do, without a jump."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solvers.body import BodySolver, SolvedBody
from solvers.features import FEATURES_VERSION
from solvers.prior import RulesPrior
from vrik import quat
from vrik.arrays import Points, Quats
from vrik.frames import ROLE, ROLES, BodyTargets
from vrik.skeleton import BONE, bone_lengths

SIX = ("head", "left_hand", "right_hand", "waist", "left_foot", "right_foot")
N = len(ROLES)
SIDES = ("left", "right")


def targets(wearer: Any, position: Points, rotation: Quats) -> BodyTargets:
    """The wearer's roles at given bones (22, .); all others not tracked."""
    where, turn, weight = np.zeros((N, 3)), quat.identity(N), np.zeros(N)
    where[wearer.rows], turn[wearer.rows], weight[wearer.rows] = (
        position[wearer.bones],
        rotation[wearer.bones],
        1.0,
    )
    return BodyTargets(0, where, turn, weight, weight, np.ones(N, np.int64), np.zeros(N))


def joints(solved: SolvedBody, side: str, *parts: str) -> list[Points]:
    return [solved.position[BONE[side + part]].copy() for part in parts]


def elbow_bends(solved: SolvedBody, side: str) -> float:
    """Sine of the elbow's flexion, positive when the forearm turns to the front of the upper arm."""
    elbow, hand = joints(solved, side, "LowerArm", "Hand")
    front = quat.rotate(solved.rotation[BONE[side + "UpperArm"]], np.array([0.0, 0.0, -1.0]))
    return float((hand - elbow) @ front / np.linalg.norm(hand - elbow))


def knee_bends(solved: SolvedBody, side: str) -> float:
    """Sine of the knee's flexion, positive when the shin turns to the back of the thigh's own frame."""
    knee, ankle = joints(solved, side, "LowerLeg", "Foot")
    back = quat.rotate(solved.rotation[BONE[side + "UpperLeg"]], np.array([0.0, 0.0, 1.0]))
    return float((ankle - knee) @ back / np.linalg.norm(ankle - knee))


def solve_once(wearer: Any, position: Points, rotation: Quats) -> SolvedBody:
    return BodySolver(wearer.body).step(targets(wearer, position, rotation), 0.0)


# ---- hinges


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1), roles=st.sampled_from([SIX[:3], SIX, (*SIX, "left_knee", "right_elbow")])
)
def test_elbows_and_knees_never_bend_backwards(person: Any, seed: int, roles: tuple[str, ...]) -> None:
    wearer = person(roles)

    solved = solve_once(wearer, *wearer.plausible(np.random.default_rng(seed)))

    for side in SIDES:
        assert elbow_bends(solved, side) > -1e-6
        assert knee_bends(solved, side) > -1e-6


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_shin_and_forearm_stay_in_the_plane_of_their_hinge(person: Any, seed: int) -> None:
    """A knee has one axis: the shin turns about the thigh's own left-right axis only."""
    wearer = person(SIX)

    solved = solve_once(wearer, *wearer.plausible(np.random.default_rng(seed)))

    for side in SIDES:
        knee, ankle = joints(solved, side, "LowerLeg", "Foot")
        sideways = quat.rotate(solved.rotation[BONE[side + "UpperLeg"]], np.array([1.0, 0.0, 0.0]))
        assert abs((ankle - knee) @ sideways) < 1e-6
        elbow, hand = joints(solved, side, "LowerArm", "Hand")
        upwards = quat.rotate(solved.rotation[BONE[side + "UpperArm"]], np.array([0.0, 1.0, 0.0]))
        assert abs((hand - elbow) @ upwards) < 1e-6


def test_a_lifted_foot_bends_the_knee_to_the_front(person: Any) -> None:
    """S04: a foot tracker 40 cm up."""
    wearer = person(SIX)
    position, rotation = wearer.standing()
    position[BONE["leftFoot"]] += (0.0, 0.4, -0.1)

    solved = solve_once(wearer, position, rotation)

    hip, knee, ankle = joints(solved, "left", "UpperLeg", "LowerLeg", "Foot")
    np.testing.assert_allclose(ankle, position[BONE["leftFoot"]], atol=1e-3)
    assert knee[2] < min(hip[2], ankle[2]) - 0.1
    np.testing.assert_allclose(solved.position[BONE["rightFoot"]], position[BONE["rightFoot"]], atol=1e-3)


def steered(person: Any, role: str, shift: Points) -> tuple[Points, Points, SolvedBody]:
    """The joint without and with a tracker that says it is shifted, and the body with it."""
    bone = {"elbow": "LowerArm", "knee": "LowerLeg"}[role.split("_")[1]]
    joint = BONE[role.split("_")[0] + bone]
    plain, worn = person(SIX), person((*SIX, role))
    position, rotation = plain.standing()
    position[0, 1] -= 0.1
    position[BONE["head"], 1] -= 0.1
    without = solve_once(plain, position, rotation).position[joint].copy()
    moved, turned = position.copy(), rotation.copy()
    turned[joint - 1] = quat.identity()
    moved[joint - 1] = without + shift - plain.body.offsets[joint]
    solved = solve_once(worn, moved, turned)
    return without, solved.position[joint].copy(), solved


@pytest.mark.parametrize("role", ["left_elbow", "right_elbow", "left_knee", "right_knee"])
@pytest.mark.parametrize("shift", [(0.1, 0.0, 0.0), (-0.1, 0.0, 0.0)])
def test_elbow_and_knee_trackers_steer_and_leave_hands_and_feet(person: Any, role: str, shift: Any) -> None:
    """S11: even 10 cm off, the limb stays whole and its end on its target."""
    without, steered_to, solved = steered(person, role, np.array(shift))

    wanted = without + np.array(shift)
    assert np.linalg.norm(steered_to - wanted) < np.linalg.norm(without - wanted) - 0.005
    assert np.nanmax(solved.reach_error_m[[ROLE[r] for r in SIX[:3]]]) < 1e-3
    side = role.split("_")[0]
    assert elbow_bends(solved, side) > -1e-6
    assert knee_bends(solved, side) > -1e-6


def test_the_pelvis_takes_its_trackers_turn_one_to_one(person: Any) -> None:
    """S13: pitch and roll too, and the neck keeps its length."""
    wearer = person(SIX)
    position, rotation = wearer.standing()
    for axis in ((0.5, 0.0, 0.0), (-0.4, 0.0, 0.0), (0.0, 0.8, 0.0), (0.0, 0.0, 0.4)):
        rotation[0] = quat.from_rotvec(np.array(axis))

        solved = solve_once(wearer, position, rotation)

        assert quat.angle(solved.rotation[0], rotation[0]) < 1e-6
        np.testing.assert_allclose(bone_lengths(solved.position), wearer.body.lengths(), atol=1e-9)
        assert np.linalg.norm(solved.position[BONE["head"]] - position[BONE["head"]]) < 1e-3


# ---- no jumps


def sweep(
    person: Any, place: Points, turn: Quats, side: str = "right", rate_hz: float = 90.0
) -> dict[str, Any]:
    """A standing person whose one hand follows a path (n, 3), (n, 4); joints and rotations over time."""
    wearer = person()
    solver = BodySolver(wearer.body)
    position, rotation = wearer.standing()
    hand = BONE[side + "Hand"]
    seen: dict[str, list[Any]] = {"position": [], "rotation": [], "error": []}
    for p, q in zip(place, turn, strict=True):
        position[hand], rotation[hand] = p, q
        solved = solver.step(targets(wearer, position, rotation), 1.0 / rate_hz)
        seen["position"].append(solved.position.copy())
        seen["rotation"].append(solved.rotation.copy())
        seen["error"].append(solved.reach_error_m[ROLE[f"{side}_hand"]])
    return {name: np.array(values) for name, values in seen.items()}


@pytest.mark.parametrize("height_m", [-0.35, 0.0, 0.3])
@pytest.mark.parametrize("side", SIDES)
def test_the_elbow_follows_a_half_circle_of_the_hand_without_a_jump(
    person: Any, side: str, height_m: float
) -> None:
    """C51: 1 degree a frame, from one side across the front to the other."""
    wearer = person()
    shoulder = wearer.body.tpose[BONE[side + "UpperArm"]]
    mirror = -1.0 if side == "left" else 1.0
    angle = np.radians(np.arange(0.0, 150.0))
    out = 0.42 * np.stack([mirror * np.cos(angle), 0.0 * angle, -np.sin(angle)], axis=1)
    turn = quat.from_rotvec(mirror * angle[:, None] * np.array([0.0, 1.0, 0.0]))

    seen = sweep(person, shoulder + out + (0.0, height_m, 0.0), turn, side)

    elbow = seen["position"][:, BONE[side + "LowerArm"]]
    assert np.linalg.norm(np.diff(elbow, axis=0), axis=1).max() <= 0.03
    assert seen["error"].max() < 1e-3


@pytest.mark.parametrize("direction", [1.0, -1.0])
@pytest.mark.parametrize("side", SIDES)
def test_rolling_the_hand_all_the_way_round_turns_the_forearm_without_a_jump(
    person: Any, side: str, direction: float
) -> None:
    """S10 and beyond: 1 degree a frame, twice round; the elbow moves on a bounded arc and comes back."""
    wearer = person()
    start = wearer.body.tpose[BONE[side + "UpperArm"]] + (0.1 if side == "right" else -0.1, -0.2, -0.4)
    mirror = -1.0 if side == "left" else 1.0
    ahead = quat.from_rotvec(np.array([0.0, mirror * np.pi / 2, 0.0]))
    roll = direction * np.radians(np.arange(0.0, 721.0))
    turn = quat.multiply(ahead, quat.from_rotvec(roll[:, None] * np.array([1.0, 0.0, 0.0])))

    seen = sweep(person, np.tile(start, (len(roll), 1)), quat.continuous(turn), side)

    forearm = seen["rotation"][:, BONE[side + "LowerArm"]]
    assert np.degrees(quat.angle(forearm[1:], forearm[:-1])).max() < 8.0
    elbow = seen["position"][:, BONE[side + "LowerArm"]]
    assert np.linalg.norm(np.diff(elbow, axis=0), axis=1).max() < 0.03
    np.testing.assert_allclose(elbow[720], elbow[360], atol=0.01)


def test_a_hand_within_human_roll_takes_the_forearm_along_by_half(person: Any) -> None:
    wearer = person()
    start = wearer.body.tpose[BONE["rightUpperArm"]] + (0.55, 0.0, 0.0)
    roll = np.radians(np.arange(0.0, 80.0))
    turn = quat.from_rotvec(roll[:, None] * np.array([1.0, 0.0, 0.0]))

    seen = sweep(person, np.tile(start, (len(roll), 1)), turn)

    local = quat.multiply(
        quat.conjugate(seen["rotation"][:, BONE["rightLowerArm"]]), seen["rotation"][:, BONE["rightHand"]]
    )
    rest = quat.to_rotvec(local)[:, 0]
    assert np.ptp(rest) < 0.75 * np.ptp(roll)


def test_the_knees_direction_turns_gently_while_rolling_to_the_side(person: Any) -> None:
    """S01: from lying on the back to the side in a second: hinges legal, under 15 degrees a frame."""
    wearer = person(SIX)
    solver = BodySolver(wearer.body)
    position, rotation = wearer.standing()
    position[BONE["leftFoot"]] += (0.0, 0.2, -0.05)
    position[BONE["rightFoot"]] += (0.0, 0.2, -0.05)
    back = quat.from_rotvec(np.array([np.pi / 2, 0.0, 0.0]))
    last = None
    for roll in np.linspace(0.0, np.pi / 2, 90):
        turn = quat.multiply(quat.from_rotvec(np.array([0.0, 0.0, roll])), back)
        p = quat.rotate(turn, position - position[0]) + np.array([0.0, 0.6, 0.0])

        solved = solver.step(targets(wearer, p, quat.multiply(turn, rotation)), 1.0 / 90.0)

        pointing = []
        for side in SIDES:
            assert knee_bends(solved, side) > -1e-6
            hip, knee, ankle = joints(solved, side, "UpperLeg", "LowerLeg", "Foot")
            off = knee - 0.5 * (hip + ankle)
            pointing.append(off / np.linalg.norm(off))
        if last is not None:
            cosine = np.sum(np.array(pointing) * last, axis=1)
            assert np.degrees(np.arccos(np.clip(cosine, -1.0, 1.0))).max() < 15.0
        last = np.array(pointing)


# ---- the object


def test_a_prior_for_other_features_is_refused(person: Any) -> None:
    class Newer(RulesPrior):
        features_version = FEATURES_VERSION + 1

    with pytest.raises(ValueError, match="features version"):
        BodySolver(person().body, prior=Newer())


def test_errors_are_told_for_tracked_roles_only(person: Any) -> None:
    wearer = person(("head", "left_hand"))

    solved = solve_once(wearer, *wearer.standing())

    assert np.isfinite(solved.reach_error_m[wearer.rows]).all()
    assert np.isnan(np.delete(solved.reach_error_m, wearer.rows)).all()


def test_a_hand_that_fades_lets_its_arm_hang(person: Any) -> None:
    """No joint moves more than the weight lets it, and at the end the arm hangs beside the body."""
    wearer = person()
    solver = BodySolver(wearer.body)
    position, rotation = wearer.standing()
    position[BONE["leftHand"]] = position[BONE["leftUpperArm"]] + (-0.1, 0.3, -0.3)
    given = targets(wearer, position, rotation)
    trail = []
    for weight in np.linspace(1.0, 0.0, 40):
        given.position_weight[ROLE["left_hand"]] = weight
        trail.append(solver.step(given, 1.0 / 90.0).position.copy())

    arm = np.array(trail)[:, [BONE["leftLowerArm"], BONE["leftHand"]]]
    assert np.linalg.norm(np.diff(arm, axis=0), axis=-1).max() < 0.08
    shoulder = trail[-1][BONE["leftUpperArm"]]
    assert shoulder[1] - trail[-1][BONE["leftHand"], 1] > 0.8 * wearer.body.lengths()[7:9].sum()
