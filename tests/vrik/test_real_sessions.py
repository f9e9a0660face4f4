"""Real sessions through the whole pipeline: sound bodies that meet head and hands."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from calibration import calibrate
from recordings import open_recording, read_all
from vrik.pipeline import Pipeline, solve_all
from vrik.skeleton import bone_lengths

# Share of frames in which a hand is farther than 1 mm from its target: too short an arm in the calibration.
REAL = {
    "bsor/vivepro2_knuckles.bsor": 0.001,
    "nolicence/vive_csv/arm_raise_3.csv": 0.0,
    "nolicence/vive_csv/beat_saber_1.csv": 0.35,
    "nolicence/vive_csv/calibration.csv": 0.0,
    "nolicence/vive_csv/crouch_walking_1.csv": 0.02,
    "nolicence/vive_csv/jumping_jacks_1.csv": 0.0,
    "nolicence/vive_csv/sitting_standing_2.csv": 0.0,
    "nolicence/vive_csv/squatting_1.csv": 0.0,
    "nolicence/vive_csv/walking_3.csv": 0.0,
}


@pytest.mark.parametrize("name", REAL)
def test_real_sessions_give_sound_bodies_that_meet_head_and_hands(
    shared: Any, person: Any, name: str
) -> None:
    frames = read_all(open_recording(shared / "data" / "vr" / name))
    calibration = calibrate(frames)

    solved_poses = solve_all(Pipeline(calibration), frames)

    assert np.isfinite(solved_poses.position).all()
    assert np.isfinite(solved_poses.rotation).all()
    lengths = np.tile(calibration.body.lengths(), (len(frames), 1))
    np.testing.assert_allclose(bone_lengths(solved_poses.position), lengths, atol=1e-6)
    assert person(body=calibration.body).above_floor(solved_poses.position) > -1e-6
    error = solved_poses.reach_error_m[:, :3]
    assert np.nanmax(error[:, 0]) < 1e-3
    assert (np.nan_to_num(error[:, 1:]) > 1e-3).any(axis=1).mean() <= REAL[name]


def test_solve_all_is_step_by_step(person: Any, shared: Any) -> None:
    frames = read_all(open_recording(shared / "data" / "vr" / "nolicence" / "vive_csv" / "walking_3.csv"))
    pipeline = Pipeline(calibrate(frames))

    whole = solve_all(pipeline, frames)
    pipeline.reset()
    one_by_one = [pipeline.step(f) for f in frames]

    np.testing.assert_array_equal(whole.position, [p.position for p in one_by_one])
    np.testing.assert_array_equal(whole.state, [p.state for p in one_by_one])
    np.testing.assert_array_equal(whole.time_ns, frames.time_ns)
