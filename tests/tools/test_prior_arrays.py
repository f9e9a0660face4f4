"""Rows for fitting: clips as the product sees them, worn badly, or laid down."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from solvers.features import NAMES
from tools.prior_arrays import climbs, clips, laid_down, rows_of
from vrik.skeleton import BONE


@pytest.fixture(scope="module")
def clip(shared: Path) -> dict[str, Any]:
    """A short walk."""
    return next(clips(shared / "data" / "mocap" / "train"))


def test_a_clip_as_it_is_gives_one_row_a_frame_with_the_true_joints(clip: dict[str, Any]) -> None:
    rows = rows_of(clip, None)

    assert rows.features.shape == (len(clip["pos"]), len(NAMES))
    waist = [i for i, name in enumerate(NAMES) if name.startswith("waist.from_head")]
    np.testing.assert_allclose(rows.features[:, waist], rows.joints[:, 0], atol=1e-9)
    assert (rows.joints[:, BONE["head"]] == 0.0).all()


def test_what_goes_wrong_in_life_leaves_the_joints_near_where_they_were(clip: dict[str, Any]) -> None:
    clean, worn = rows_of(clip, None), rows_of(clip, np.random.default_rng(1))

    assert worn.dt_s[1] != clean.dt_s[1]
    assert np.isfinite(worn.features).all()
    lengths = [np.linalg.norm(r.joints[:, 15] - r.joints[:, 14], axis=-1).mean() for r in (clean, worn)]
    assert abs(lengths[0] / lengths[1] - 1.0) < 0.05
    ages = [i for i, name in enumerate(NAMES) if name.endswith(".age_s")]
    assert (clean.features[:, ages] == 0.0).all()


@pytest.mark.parametrize("seed", range(5))
def test_laid_down_a_body_keeps_its_bones_and_rests_on_the_floor(clip: dict[str, Any], seed: int) -> None:
    down = laid_down(clip, np.random.default_rng(seed))

    thigh = np.linalg.norm(down["pos"][:, 4] - down["pos"][:, 1], axis=-1)
    np.testing.assert_allclose(thigh, thigh[0], atol=2e-3)
    assert 0.04 < down["pos"][-1, :, 1].min() < 0.13
    assert down["pos"][-1, 15, 1] < 0.6 * clip["height_m"]


def test_people_who_climb_are_known(clip: dict[str, Any]) -> None:
    higher = {**clip, "pos": clip["pos"] + np.array([0.0, 0.3, 0.0])}

    assert climbs(higher)
    assert not climbs(clip)
