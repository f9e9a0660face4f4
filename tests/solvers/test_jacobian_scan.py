"""The scan behind the plot of all solvers: it measures what it says, and damped solvers look calm."""

from __future__ import annotations

import numpy as np
import pytest

from solvers.config import ChainConfig
from tools.solver_scan import ARM, RATE_HZ, SPEED_M_S, WAIT, paths, scan


def test_targets_move_at_the_stated_speed_and_through_full_reach() -> None:
    reach = paths()["reach"]

    steps = np.linalg.norm(np.diff(reach, axis=0), axis=1)
    moving = steps > 0.0
    np.testing.assert_allclose(steps[moving], SPEED_M_S / RATE_HZ, atol=1e-12)
    assert len(steps) - moving.sum() >= WAIT
    away = np.linalg.norm(reach, axis=1)
    assert away.min() == pytest.approx(0.9 * ARM.lengths.sum())
    assert away.max() == pytest.approx(1.1 * ARM.lengths.sum(), abs=SPEED_M_S / RATE_HZ)


@pytest.mark.parametrize(("config", "peak"), [(ChainConfig(), 45.0), (ChainConfig(soft_reach_m=0.01), 25.0)])
def test_damped_least_squares_stays_calm_in_the_scan(config: ChainConfig, peak: float) -> None:
    """Exact solvers reach 49 rad/m here; the arm rests when its target does."""
    for path, targets in paths().items():
        found = scan("dls", targets, config)

        assert found.joint_speed[1:].max() <= peak
        assert found.tip_error_m.max() <= 0.005
        if path == "reach":
            middle = len(targets) // 2
            assert found.joint_speed[middle + 10 : middle + WAIT // 2 - 5].max() <= 0.1
