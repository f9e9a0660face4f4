"""Finding the T-pose in a take."""

from __future__ import annotations

import numpy as np
import pytest

from calibration.samples import Samples, take
from calibration.tpose import accept, find
from vrik import quat
from vrik.frames import DeviceClass, TrackedDevice, TrackerSequence
from vrik.pose import Pose

ROLES = {"H": "head", "L": "left_hand", "R": "right_hand"}
DEVICES = [
    TrackedDevice("H", DeviceClass.HMD),
    TrackedDevice("L", DeviceClass.CONTROLLER),
    TrackedDevice("R", DeviceClass.CONTROLLER),
]
SHAPES = {
    # left hand; the right one is its mirror image
    "T": (-0.80, 1.43, 0.02),
    "hanging": (-0.25, 0.75, 0.0),
    "forward": (-0.15, 1.43, -0.70),
    "up": (-0.50, 1.95, 0.0),
}


def held(*parts: tuple[str, float], yaw: float = 0.0, shake: float = 0.0) -> Samples:
    """Poses held one after the other, (name, seconds) each, by somebody of 1.75 m."""
    rng = np.random.default_rng(5)
    stand = Pose.from_yaw(yaw, np.array([0.6, 0.0, -1.1]))
    rows = []
    for name, seconds in parts:
        left = np.array(SHAPES[name])
        body = np.array([(0.0, 1.638, -0.1), left, left * (-1.0, 1.0, 1.0)])
        rows += [stand.apply(body)] * int(seconds * 90)
    n = len(rows)
    position = np.array(rows) + rng.normal(0.0, 0.001, (n, 3, 3)) + rng.normal(0.0, shake, (n, 1, 3))
    rotation = np.broadcast_to(stand.rotation, (n, 3, 4))
    time_ns = np.arange(n) * 11_111_111
    return take(TrackerSequence.build(time_ns, DEVICES, position, rotation, np.ones((n, 3), bool)))


@pytest.mark.parametrize("yaw", np.radians([0.0, 60.0, 180.0, -100.0]))
def test_tpose_is_found_in_any_direction(yaw: float) -> None:
    samples = held(("hanging", 3.0), ("T", 2.0), ("forward", 2.0), yaw=yaw)

    rows = find(samples, ROLES)

    assert samples.time_s[rows[0]] == pytest.approx(3.0, abs=0.25)
    assert samples.time_s[rows[-1]] == pytest.approx(5.0, abs=0.25)


@pytest.mark.parametrize("name", ["hanging", "forward", "up"])
def test_other_poses_are_no_tpose(name: str) -> None:
    samples = held((name, 3.0))

    assert len(find(samples, ROLES)) == 0
    rows, why_not = accept(samples, ROLES)
    assert len(rows) == 0
    assert "the hands are" in why_not


def test_a_moment_is_not_enough() -> None:
    assert len(find(held(("hanging", 2.0), ("T", 0.3), ("hanging", 2.0)), ROLES)) == 0


def test_hands_that_never_rest_are_no_tpose() -> None:
    assert len(find(held(("T", 3.0), shake=0.2), ROLES)) == 0


def test_swapped_hands_are_no_tpose() -> None:
    swapped = {"H": "head", "L": "right_hand", "R": "left_hand"}

    assert len(find(held(("T", 3.0)), swapped)) == 0


def test_frames_without_hands_are_believed() -> None:
    rows, why_not = accept(held(("T", 1.0)), {"H": "head"})

    assert len(rows) == 30
    assert why_not == ""


def test_rotations_outside_the_head_do_not_matter() -> None:
    samples = held(("T", 2.0))
    samples.rotation[:, 1:] = quat.from_rotvec(np.array([0.3, 2.0, -1.0]))

    assert len(find(samples, ROLES)) > 40
