"""The prior without a data file: guesses that are sane wherever the head is, and give way to trackers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solvers.features import FEATURES_VERSION, NAMES, FeatureState, features
from solvers.guess import Guess
from solvers.prior import RulesPrior
from vrik import quat
from vrik.arrays import Points, Quats
from vrik.frames import ROLE, ROLES, BodyTargets
from vrik.skeleton import BONE

N = len(ROLES)
FLIP_POINT = np.array([-1.0, 1.0, 1.0])
FLIP_TURN = np.array([1.0, 1.0, -1.0, -1.0])


def guessed(
    wearer: Any,
    position: Points,
    rotation: Quats,
    floor_y: float = 0.0,
    weights: dict[str, float] | None = None,
) -> Guess:
    """The rules' guess from bones (22, .) at the wearer's roles."""
    where, turn, weight = np.zeros((N, 3)), quat.identity(N), np.zeros(N)
    where[wearer.rows], turn[wearer.rows] = position[wearer.bones], rotation[wearer.bones]
    weight[wearer.rows] = [(weights or {}).get(role, 1.0) for role in wearer.roles]
    targets = BodyTargets(0, where, turn, weight, weight, np.ones(N, np.int64), np.zeros(N))
    prior, out, numbers = RulesPrior(), Guess.fresh(), np.zeros(len(NAMES))
    features(targets, wearer.body.stature_m, floor_y, 0.0, FeatureState.fresh(), numbers)
    prior.guess(numbers, targets, wearer.body, floor_y, prior.fresh_state(), out)
    return out


def test_it_reads_the_features_there_are() -> None:
    assert RulesPrior.features_version == FEATURES_VERSION


def test_someone_who_stands_has_the_pelvis_under_the_head_and_feet_under_the_pelvis(person: Any) -> None:
    wearer = person()
    body = wearer.body

    out = guessed(wearer, *wearer.standing())

    assert abs(out.pelvis_position[1] - body.tpose[0, 1]) < 0.06
    assert np.hypot(out.pelvis_position[0], out.pelvis_position[2]) < 0.08
    np.testing.assert_allclose(out.ankle_position[:, 1], body.ankle_height_m, atol=0.01)
    assert out.ankle_position[0, 0] < -0.03 < 0.03 < out.ankle_position[1, 0]
    assert (out.contact == 1.0).all()
    assert (out.elbow_pole[:, 1] < 0.0).all()
    assert (out.knee_pole[:, 2] < 0.0).all()


@pytest.mark.parametrize("pitch_deg", [-60.0, -30.0, 20.0])
def test_looking_down_hardly_moves_the_pelvis(person: Any, pitch_deg: float) -> None:
    """S03: less than 1 cm, down to 60 degrees."""
    wearer = person()
    position, rotation = wearer.standing()
    straight = guessed(wearer, position, rotation).pelvis_position.copy()
    neck, head = BONE["neck"], BONE["head"]
    rotation[head] = quat.from_rotvec(np.array([np.radians(pitch_deg), 0.0, 0.0]))
    position[head] = position[neck] + quat.rotate(rotation[head], position[head] - position[neck])

    bowed = guessed(wearer, position, rotation).pelvis_position

    assert abs(bowed[1] - straight[1]) < 0.01


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), height_m=st.floats(-0.2, 3.0))
def test_guesses_are_finite_unit_and_above_the_floor_for_any_turn_of_the_head(
    person: Any, seed: int, height_m: float
) -> None:
    wearer = person()
    rng = np.random.default_rng(seed)
    position, rotation = wearer.standing()
    position[wearer.bones] = rng.normal(0.0, 0.5, (3, 3)) + np.array([0.0, height_m, 0.0])
    rotation[wearer.bones] = quat.normalize(rng.normal(size=(3, 4)))

    out = guessed(wearer, position, rotation)

    for values in (getattr(out, name) for name in Guess.__dataclass_fields__):
        assert np.isfinite(values).all()
    for turn in (out.pelvis_rotation, out.chest_rotation, *out.foot_rotation):
        assert abs(np.linalg.norm(turn) - 1.0) < 1e-9
    assert out.pelvis_position[1] > 0.0
    assert (out.ankle_position[:, 1] >= wearer.body.ankle_height_m - 1e-9).all()


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_the_mirror_guesses_mirrored(person: Any, seed: int) -> None:
    wearer = person()
    position, rotation = wearer.plausible(np.random.default_rng(seed))
    other_p, other_q = position.copy(), rotation.copy()
    for a, b in (("head", "head"), ("leftHand", "rightHand"), ("rightHand", "leftHand")):
        other_p[BONE[a]], other_q[BONE[a]] = position[BONE[b]] * FLIP_POINT, rotation[BONE[b]] * FLIP_TURN

    out, mirror = guessed(wearer, position, rotation), guessed(wearer, other_p, other_q)

    np.testing.assert_allclose(mirror.pelvis_position * FLIP_POINT, out.pelvis_position, atol=1e-9)
    assert quat.angle(mirror.chest_rotation * FLIP_TURN, out.chest_rotation) < 1e-7
    assert quat.angle(mirror.pelvis_rotation * FLIP_TURN, out.pelvis_rotation) < 1e-7
    for name in ("ankle_position", "elbow_pole", "knee_pole"):
        np.testing.assert_allclose(getattr(mirror, name)[::-1] * FLIP_POINT, getattr(out, name), atol=1e-9)


def test_the_floor_may_be_anywhere(person: Any) -> None:
    wearer = person()
    position, rotation = wearer.standing()

    out, up = (
        guessed(wearer, position, rotation),
        guessed(wearer, position + np.array([0.0, 3.0, 0.0]), rotation, 3.0),
    )

    np.testing.assert_allclose(up.pelvis_position - (0.0, 3.0, 0.0), out.pelvis_position, atol=1e-9)
    np.testing.assert_allclose(up.ankle_position - (0.0, 3.0, 0.0), out.ankle_position, atol=1e-9)


def test_a_jump_takes_the_feet_off_the_floor(person: Any) -> None:
    wearer = person()
    position, rotation = wearer.standing()

    out = guessed(wearer, position + np.array([0.0, 0.4, 0.0]), rotation)

    assert (out.contact == 0.0).all()
    assert (out.ankle_position[:, 1] > wearer.body.ankle_height_m + 0.2).all()


def test_trackers_on_waist_and_chest_replace_their_guess_by_weight(person: Any) -> None:
    wearer = person(("head", "left_hand", "right_hand", "waist", "chest"))
    position, rotation = wearer.standing()
    position[0] += (0.1, -0.05, 0.05)
    rotation[0] = quat.from_rotvec(np.array([0.2, 0.5, 0.0]))
    rotation[BONE["upperChest"]] = quat.from_rotvec(np.array([-0.3, 0.4, 0.0]))

    whole = guessed(wearer, position, rotation)
    none = guessed(wearer, position, rotation, weights={"waist": 0.0, "chest": 0.0})
    half = guessed(wearer, position, rotation, weights={"waist": 0.5, "chest": 0.5})

    np.testing.assert_allclose(whole.pelvis_position, position[0])
    assert quat.angle(whole.pelvis_rotation, rotation[0]) < 1e-7
    assert quat.angle(whole.chest_rotation, rotation[BONE["upperChest"]]) < 1e-7
    np.testing.assert_allclose(
        half.pelvis_position, 0.5 * (whole.pelvis_position + none.pelvis_position), atol=1e-9
    )


def test_confidence_is_that_of_the_devices_a_guess_rests_on(person: Any) -> None:
    wearer = person()

    out = guessed(wearer, *wearer.standing(), weights={"left_hand": 0.25})

    np.testing.assert_allclose(out.confidence, [1.0, 0.25, 0.25, 1.0, 1.0, 1.0])


def test_one_hand_alone_turns_neither_chest_nor_pelvis(person: Any) -> None:
    """The other hand is unknown, not at the origin."""
    wearer = person()
    position, rotation = wearer.standing()
    position[BONE["rightHand"], 2] -= 0.4

    out = guessed(wearer, position, rotation, weights={"left_hand": 0.0})

    heading = quat.rotate(out.chest_rotation, np.array([0.0, 0.0, -1.0]))
    assert abs(heading[0]) < 0.02
    assert ROLE["left_hand"] == 1
