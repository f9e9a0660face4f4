"""A worn device that is farther from the head than any limb is not tracked in that frame, and counted."""

from __future__ import annotations

import numpy as np
import pytest

from vrik.condition import Conditioner
from vrik.config import ConditionConfig
from vrik.frames import DeviceClass, DeviceState, TrackedDevice, TrackerFrame, is_tracked
from vrik.pipeline import Pipeline

HEAD, ELBOW, BASE = (TrackedDevice(s, DeviceClass.GENERIC_TRACKER) for s in ("H", "E", "B"))
ROLES = {"H": "head", "E": "left_elbow"}
STATURE_M = 1.7


def frame(i: int, elbow: float, head: float = 0.0, tracked: bool = True) -> TrackerFrame:
    """Five frames a second; places along X, and a base station 9 m away."""
    position = np.array([[head, 1.6, 0.0], [elbow, 1.2, 0.0], [9.0, 2.0, 0.0]])
    valid = np.array([tracked, True, True])
    rotation = np.tile([1.0, 0.0, 0.0, 0.0], (3, 1))
    return TrackerFrame(i * 200_000_000, (HEAD, ELBOW, BASE), position, rotation, valid, np.full(3, 200))


def states(conditioner: Conditioner, frames: list[TrackerFrame]) -> np.ndarray:
    return np.array([conditioner.step(f).state.copy() for f in frames])


def test_an_excursion_out_of_reach_is_not_followed_however_long_and_is_counted() -> None:
    """Six metres away for two seconds: a glitch that lasts is believed, but not that far out."""
    away = range(10, 20)
    conditioner = Conditioner(roles=ROLES, stature_m=STATURE_M)
    positions = []

    seen = []
    for i in range(30):
        state = conditioner.step(frame(i, 6.0 if i in away else 0.3))
        seen.append(state.state.copy())
        positions.append(state.position[1].copy())

    tracked = is_tracked(np.array(seen))
    assert not tracked[10:20, 1].any()
    assert tracked[20:, 1].all()
    assert np.abs(np.array(positions)[:, 0] - 0.3).max() < 1e-12
    assert conditioner.out_of_reach() == {"E": 10}
    assert tracked[:, [0, 2]].all()


def test_what_is_within_reach_is_followed() -> None:
    at = 0.99 * 1.3 * STATURE_M - 0.1
    conditioner = Conditioner(roles=ROLES, stature_m=STATURE_M)

    seen = states(conditioner, [frame(i, min(at, 0.3 + 0.2 * i)) for i in range(30)])

    assert (seen[:, 1] == DeviceState.OK).all()
    assert conditioner.out_of_reach() == {}


@pytest.mark.parametrize("how", ["head lost", "head leaps", "unknown stature", "unknown roles", "setting"])
def test_no_device_is_doubted_without_a_head_to_measure_from(how: str) -> None:
    config = ConditionConfig(reach_share=9.0) if how == "setting" else ConditionConfig()
    stature_m = np.inf if how == "unknown stature" else STATURE_M
    conditioner = Conditioner(config, {} if how == "unknown roles" else ROLES, stature_m)

    conditioner.step(frame(0, 0.3))
    for i in range(1, 4):
        if how == "head leaps":
            conditioner.step(frame(i, 0.3, head=30.0 if i == 1 else 0.0))
        else:
            conditioner.step(frame(i, 5.0, tracked=how != "head lost"))

    assert conditioner.out_of_reach() == {}


def test_the_body_does_not_follow_and_the_pipeline_tells(person) -> None:  # type: ignore[no-untyped-def]
    someone = person(("head", "left_hand", "right_hand", "waist"))
    position, rotation = someone.standing()
    pipeline = Pipeline(someone.calibration)
    row = someone.roles.index("waist")

    for i in range(60):
        moved = position[someone.bones].copy()
        if i >= 30:
            moved[row] += [5.0, 0.0, 0.0]
        pose = pipeline.step(someone.frame(i / 5.0, moved, rotation[someone.bones]))

    assert pipeline.out_of_reach == {"waist": 30}
    assert np.abs(pose.position[0] - position[0]).max() < 0.3
