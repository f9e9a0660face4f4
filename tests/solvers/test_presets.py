"""Presets: frozen, complete, and good for what they are named after."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from solvers import anatomy
from solvers.chain import Chain, Target
from solvers.presets import ARM, LEG, LOOK, PRESETS, SPINE, TAIL, Preset
from solvers.registry import solver_names
from solvers.smoothing import TargetSmoother

LIMBS = {
    "arm": [[0.0, 0.0, 0.0], [0.30, 0.0, 0.0], [0.26, 0.0, 0.0]],
    "leg": [[0.0, 0.0, 0.0], [0.0, -0.42, 0.0], [0.0, -0.40, 0.0]],
    "spine": [[0.0, 0.0, 0.0], *[[0.0, 0.11, 0.0]] * 5],
    "tail": [[0.0, 0.0, 0.0], *[[0.0, 0.0, 0.08]] * 10],
}


def test_there_are_five_and_they_cannot_be_changed() -> None:
    assert list(PRESETS) == ["arm", "leg", "spine", "look", "tail"]
    for preset in PRESETS.values():
        assert preset.solver == "aim" or preset.solver in solver_names()
        with pytest.raises(dataclasses.FrozenInstanceError):
            preset.half_life_s = 0.0  # type: ignore[misc]


def test_arms_and_legs_are_set_as_the_articles_say() -> None:
    assert (ARM.config.max_rounds, ARM.config.tolerance_m) == (20, 0.01)
    assert (LEG.config.max_rounds, LEG.config.tolerance_m) == (30, 0.005)
    assert math.degrees(ARM.config.max_step_rad) == pytest.approx(15.0)
    assert math.degrees(LEG.config.max_step_rad) == pytest.approx(10.0)
    TargetSmoother(ARM.half_life_s)
    assert 0.0 < LEG.half_life_s < ARM.half_life_s


def test_weights_run_evenly_from_first_to_last() -> None:
    np.testing.assert_allclose(SPINE.weights(5), [1.0, 0.9, 0.8, 0.7, 0.6])
    np.testing.assert_allclose(TAIL.weights(1), [0.4])


@pytest.mark.parametrize("preset", [ARM, LEG, SPINE, TAIL], ids=lambda preset: str(preset.name))
def test_a_preset_follows_a_target_within_its_tolerance(preset: Preset) -> None:
    """Two seconds at 60 Hz, warm, the target in easy reach; the first frames may still be on their way."""
    rest = np.array(LIMBS[preset.name])
    chain = Chain.build(rest, weights=preset.weights(len(rest) - 1))
    pose, reach = chain.rest(), float(chain.lengths.sum())
    ahead = rest.sum(axis=0) / np.linalg.norm(rest.sum(axis=0))
    misses = []
    for i in range(120):
        t = i / 60.0
        away = np.array([0.2 * math.sin(2.0 * t), 0.2 * math.sin(3.1 * t), 0.2 * math.cos(1.7 * t)])
        solved = preset.solve(chain, pose, Target(reach * (0.7 * ahead + away)))
        pose = solved.pose
        misses.append(solved.residual_m)

    assert np.percentile(misses[10:], 95) <= preset.config.tolerance_m


def test_look_shares_the_turn_and_is_exact() -> None:
    chain = Chain.build(
        [[0.0, 0.0, 0.0], [0.0, 0.15, 0.0], [0.0, 0.10, 0.0], [0.0, 0.07, -0.09]],
        weights=LOOK.weights(3),
        limits=anatomy.limits_of(["upperChest", "neck", "head"]),
    )

    solved = LOOK.solve(chain, chain.rest(), Target(np.array([-1.5, 0.6, -1.5])))

    assert solved.reached
    assert solved.residual_rad < 1e-4
