"""The fitted prior: weights that are checked, guesses that are sane anywhere, and give way to trackers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solvers.features import FEATURES_VERSION, NAMES, FeatureState, features
from solvers.fitted import SHIPPED, FittedPrior, Weights, open_prior
from solvers.guess import Guess
from solvers.kernels.fitted import settled
from solvers.prior import RulesPrior
from vrik import quat
from vrik.arrays import Points, Quats
from vrik.config import PipelineConfig
from vrik.errors import PriorError
from vrik.frames import ROLES, BodyTargets
from vrik.pipeline import Pipeline
from vrik.pose import Pose
from vrik.skeleton import BONE, MIRROR

N = len(ROLES)


@pytest.fixture(scope="module")
def shipped() -> FittedPrior:
    return FittedPrior()


def guessed(
    prior: FittedPrior,
    wearer: Any,
    position: Points,
    rotation: Quats,
    floor_y: float = 0.0,
    weights: dict[str, float] | None = None,
) -> Guess:
    """A guess from bones (22, .) at the wearer's roles, that have not moved yet."""
    where, turn, weight = np.zeros((N, 3)), quat.identity(N), np.zeros(N)
    where[wearer.rows], turn[wearer.rows] = position[wearer.bones], rotation[wearer.bones]
    weight[wearer.rows] = [(weights or {}).get(role, 1.0) for role in wearer.roles]
    targets = BodyTargets(0, where, turn, weight, weight, np.ones(N, np.int64), np.zeros(N))
    out, numbers = Guess.fresh(), np.zeros(len(NAMES))
    features(targets, wearer.body.stature_m, floor_y, 0.0, FeatureState.fresh(), numbers)
    prior.guess(numbers, targets, wearer.body, floor_y, prior.fresh_state(), out)
    return out


def test_the_shipped_weights_say_what_they_are() -> None:
    weights = Weights.load(SHIPPED)

    assert SHIPPED.stat().st_size <= 2_000_000
    assert "mocap.cs.cmu.edu" in weights.credit
    assert "NSF EIA-0196217" in weights.credit
    assert len(weights.subjects) == 16  # one of 17 only climbs
    assert FittedPrior.features_version == FEATURES_VERSION


def test_weights_come_back_from_a_file(tmp_path: Path, shipped: FittedPrior) -> None:
    shipped.weights.save(tmp_path / "again.npz")

    again = Weights.load(tmp_path / "again.npz")

    for name, values in shipped.weights.arrays.items():
        np.testing.assert_array_equal(again.arrays[name], values)
    assert (again.subjects, again.credit) == (shipped.weights.subjects, shipped.weights.credit)


def rewritten(path: Path, **changed: Any) -> Path:
    """The shipped file with some entries replaced."""
    with np.load(SHIPPED) as stored:
        entries = {name: stored[name] for name in stored.files}
    np.savez(path, **{**entries, **changed})
    return path


def test_weights_for_other_features_are_refused(tmp_path: Path) -> None:
    path = rewritten(tmp_path / "old.npz", features_version=FEATURES_VERSION + 1)

    with pytest.raises(
        PriorError, match=r"for features version 3, this vrik reads .* version 2; make it again"
    ):
        Weights.load(path)


def test_a_changed_number_is_noticed(tmp_path: Path, shipped: FittedPrior) -> None:
    layer = shipped.weights.arrays["w1"].astype(np.float16)
    layer[3, 4] += 1.0

    with pytest.raises(PriorError, match="is damaged"):
        Weights.load(rewritten(tmp_path / "flipped.npz", w1=layer))


@pytest.mark.parametrize("keep", [0, 10, 1000, 50_000])
def test_a_cut_file_is_one_sentence(tmp_path: Path, keep: int) -> None:
    path = tmp_path / "cut.npz"
    path.write_bytes(SHIPPED.read_bytes()[:keep])

    with pytest.raises(PriorError, match=r"no file of prior weights, or a damaged one; make it with"):
        Weights.load(path)


def test_a_file_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(PriorError, match=r"there is no prior .*rulez; give rules, fitted or a file"):
        open_prior(str(tmp_path / "rulez"))


def test_priors_are_opened_by_name(tmp_path: Path, shipped: FittedPrior) -> None:
    shipped.weights.save(tmp_path / "mine.npz")

    assert isinstance(open_prior("rules"), RulesPrior)
    assert isinstance(open_prior("fitted"), FittedPrior)
    assert isinstance(open_prior(str(tmp_path / "mine.npz")), FittedPrior)


def test_many_frames_at_once_say_the_same_as_one_by_one(shipped: FittedPrior) -> None:
    rows = np.random.default_rng(0).normal(0.0, 0.3, (2, 5, len(NAMES)))

    together = shipped.joints(rows)

    assert together.shape == (2, 5, 22, 3)
    np.testing.assert_allclose(together[1, 2], shipped.joints(rows[1, 2]), atol=1e-5)


def test_someone_who_stands_has_the_pelvis_under_the_head_and_feet_on_the_floor(
    person: Any, shipped: FittedPrior
) -> None:
    wearer = person()
    body = wearer.body

    out = guessed(shipped, wearer, *wearer.standing())

    assert abs(out.pelvis_position[1] - body.tpose[0, 1]) < 0.06
    assert np.hypot(out.pelvis_position[0], out.pelvis_position[2]) < 0.08
    np.testing.assert_allclose(out.ankle_position[:, 1], body.ankle_height_m, atol=0.03)
    assert out.ankle_position[0, 0] < -0.03 < 0.03 < out.ankle_position[1, 0]
    assert (out.contact == 1.0).all()
    assert (out.elbow_pole[:, 1] < 0.0).all()
    assert (out.knee_pole[:, 2] < 0.0).all()


def test_a_head_that_sinks_upright_takes_the_pelvis_along(person: Any, shipped: FittedPrior) -> None:
    """A squat; the rules and the network agree on that much."""
    wearer = person()
    position, rotation = wearer.standing()
    standing = guessed(shipped, wearer, position, rotation)

    squatting = guessed(shipped, wearer, position - np.array([0.0, 0.4, 0.0]), rotation)

    assert 0.25 < standing.pelvis_position[1] - squatting.pelvis_position[1] < 0.5
    assert (squatting.ankle_position[:, 1] < 0.15).all()


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), height_m=st.floats(-0.2, 3.0))
def test_guesses_are_finite_and_unit_for_any_turn_of_the_head(
    person: Any, shipped: FittedPrior, seed: int, height_m: float
) -> None:
    wearer = person()
    rng = np.random.default_rng(seed)
    position, rotation = wearer.standing()
    position[wearer.bones] = rng.normal(0.0, 0.5, (3, 3)) + np.array([0.0, height_m, 0.0])
    rotation[wearer.bones] = quat.normalize(rng.normal(size=(3, 4)))

    out = guessed(shipped, wearer, position, rotation)

    for values in (getattr(out, name) for name in Guess.__dataclass_fields__):
        assert np.isfinite(values).all()
    for turn in (out.pelvis_rotation, out.chest_rotation, *out.foot_rotation):
        assert abs(np.linalg.norm(turn) - 1.0) < 1e-9
    assert out.pelvis_position[1] > 0.0


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), yaw_deg=st.floats(-180.0, 180.0), floor_y=st.floats(-2.0, 2.0))
def test_place_heading_and_floor_do_not_matter(
    person: Any, shipped: FittedPrior, seed: int, yaw_deg: float, floor_y: float
) -> None:
    wearer = person()
    position, rotation = wearer.plausible(np.random.default_rng(seed))
    T = Pose.from_yaw(np.radians(yaw_deg), np.array([5.0, floor_y, -3.0]))

    here = guessed(shipped, wearer, position, rotation)
    there = guessed(shipped, wearer, T.apply(position), quat.multiply(T.rotation, rotation), floor_y)

    np.testing.assert_allclose(there.pelvis_position, T.apply(here.pelvis_position), atol=1e-4)
    np.testing.assert_allclose(there.ankle_position, T.apply(here.ankle_position), atol=1e-4)
    turned = quat.multiply(T.rotation, here.chest_rotation)
    assert quat.angle(there.chest_rotation, turned) < 1e-3


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_the_mirror_guesses_mirrored(person: Any, shipped: FittedPrior, seed: int) -> None:
    wearer = person()
    position, rotation = wearer.plausible(np.random.default_rng(seed))
    point, turn = np.array([-1.0, 1.0, 1.0]), np.array([1.0, 1.0, -1.0, -1.0])
    other_p, other_q = position[MIRROR] * point, rotation[MIRROR] * turn

    out = guessed(shipped, wearer, position, rotation)
    mirror = guessed(shipped, wearer, other_p, other_q)

    np.testing.assert_allclose(mirror.pelvis_position * point, out.pelvis_position, atol=1e-5)
    np.testing.assert_allclose(mirror.ankle_position[::-1] * point, out.ankle_position, atol=1e-5)
    np.testing.assert_allclose(mirror.elbow_pole[::-1] * point, out.elbow_pole, atol=1e-3)
    assert quat.angle(mirror.chest_rotation * turn, out.chest_rotation) < 1e-4


def test_trackers_on_waist_and_chest_replace_their_guess(person: Any, shipped: FittedPrior) -> None:
    wearer = person(("head", "left_hand", "right_hand", "waist", "chest"))
    position, rotation = wearer.standing()
    position[0] += (0.1, -0.05, 0.05)
    rotation[0] = quat.from_rotvec(np.array([0.2, 0.5, 0.0]))
    rotation[BONE["upperChest"]] = quat.from_rotvec(np.array([-0.3, 0.4, 0.0]))

    out = guessed(shipped, wearer, position, rotation)

    np.testing.assert_allclose(out.pelvis_position, position[0])
    assert quat.angle(out.pelvis_rotation, rotation[0]) < 1e-7
    assert quat.angle(out.chest_rotation, rotation[BONE["upperChest"]]) < 1e-7


def test_a_waist_tracker_tells_where_the_feet_are(person: Any, shipped: FittedPrior) -> None:
    """The network reads it: a pelvis that is turned has feet that are turned along."""
    wearer = person(("head", "left_hand", "right_hand", "waist"))
    position, rotation = wearer.standing()
    rotation[0] = quat.from_rotvec(np.array([0.0, 0.7, 0.0]))

    out = guessed(shipped, wearer, position, rotation)

    across = out.ankle_position[1] - out.ankle_position[0]
    assert np.arctan2(-across[2], across[0]) > 0.35


def test_a_sole_near_the_floor_is_put_on_it_without_a_leap() -> None:
    heights = np.linspace(-0.1, 0.2, 301)

    above = np.array([settled(h, 0.05) for h in heights])

    assert (above[heights <= 0.05] == 0.0).all()
    np.testing.assert_allclose(above[heights >= 0.1], heights[heights >= 0.1])
    assert np.diff(above).max() < 2.001 * (heights[1] - heights[0])


def test_the_pipeline_takes_the_prior_that_its_settings_name(person: Any) -> None:
    wearer = person()
    frame = wearer.frame(0.0, *wearer.standing())

    poses = {
        name: Pipeline(wearer.calibration, PipelineConfig(prior=name)).step(frame).position
        for name in ("rules", "fitted")
    }

    assert 1e-3 < np.abs(poses["rules"] - poses["fitted"]).max() < 0.3
    np.testing.assert_allclose(poses["rules"][5], poses["fitted"][5], atol=1e-6)
