"""Fixtures shared by all tests: the test material, tools that may be missing, and small bodies."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

from vrik import quat
from vrik.arrays import Bools, Points, Quats
from vrik.body import BodyModel
from vrik.frames import ROLE, ROLE_BONES, ROLES, Calibration, DeviceClass, TrackedDevice, TrackerFrame
from vrik.skeleton import BONE, BONES, PARENTS

STRICT = os.environ.get("VRIK_STRICT") == "1"

settings.register_profile("vrik", deadline=None)  # a kernel compiles when it is first called
settings.load_profile("vrik")


def _missing(reason: str) -> None:
    """Skip with the reason; a failure when every test must run."""
    if STRICT:
        pytest.fail(reason + " (VRIK_STRICT=1 forbids skipping)")
    pytest.skip(reason)


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with ``data/``, ``bench/`` and ``protocols/``."""
    folder = os.environ.get("VRIK_TEST_DATA", "")
    if not folder or not Path(folder, "data").is_dir():
        _missing("VRIK_TEST_DATA does not name the folder with the test material")
    return Path(folder)


@pytest.fixture(scope="session")
def needs_tool() -> Callable[[str], str]:
    """``needs_tool("oscdump")`` is the program's path, or skips the test when it is not installed."""

    def find(name: str) -> str:
        path = shutil.which(name)
        if path is None:
            _missing(f"the program {name} is not installed")
        return str(path)

    return find


@dataclass
class Person:
    """An average person whose devices sit exactly on the bones, so that targets are bone poses."""

    roles: Sequence[str] = ("head", "left_hand", "right_hand")
    body: BodyModel = field(default_factory=lambda: BodyModel.average(1.7))

    def __post_init__(self) -> None:
        self.devices = tuple(TrackedDevice(role, DeviceClass.GENERIC_TRACKER, role) for role in self.roles)
        self.rows = np.array([ROLE[role] for role in self.roles], np.int64)
        self.bones = ROLE_BONES[self.rows]
        n = len(ROLES)
        self.calibration = Calibration(
            self.body, {r: r for r in self.roles}, np.zeros((n, 3)), quat.identity(n)
        )

    def frame(
        self, time_s: float, position: Points, rotation: Quats, valid: Bools | None = None
    ) -> TrackerFrame:
        """Devices at the given poses: a row each, or all 22 bones, of which those with devices are taken."""
        if len(position) == len(BONES):
            position, rotation = position[self.bones], rotation[self.bones]
        valid = np.ones(len(self.roles), np.bool_) if valid is None else np.asarray(valid, np.bool_)
        return TrackerFrame(
            round(time_s * 1e9),
            self.devices,
            np.array(position, np.float64),
            np.array(rotation, np.float64),
            valid,
            np.where(valid, 200, 201).astype(np.int64),
        )

    def posed(self, local: Quats, hips: Points) -> tuple[Points, Quats]:
        """Forward kinematics in numpy: (22, 3) joints and (22, 4) world rotations."""
        position, rotation = np.zeros((len(BONES), 3)), np.array(local, np.float64)
        position[0] = hips
        for j in range(1, len(BONES)):
            parent = PARENTS[j]
            rotation[j] = quat.normalize(quat.multiply(rotation[parent], local[j]))
            position[j] = position[parent] + quat.rotate(rotation[parent], self.body.offsets[j])
        return position, rotation

    def standing(self) -> tuple[Points, Quats]:
        """Upright, arms hanging a little in front."""
        local = quat.identity(len(BONES))
        for side, m in (("left", -1.0), ("right", 1.0)):
            local[BONE[side + "UpperArm"]] = quat.from_rotvec(np.array([0.0, 0.0, -m * 1.3]))
            local[BONE[side + "LowerArm"]] = quat.from_rotvec(np.array([0.0, m * 0.5, 0.0]))
        return self.posed(local, self.body.tpose[0])

    def plausible(self, rng: np.random.Generator) -> tuple[Points, Quats]:
        """A pose within human limits, anywhere, standing to deep crouch, its lowest foot on the floor."""

        def turn(x: float, y: float, z: float) -> Quats:
            return quat.from_rotvec(np.array([x, y, z]))

        between = rng.uniform
        local = quat.identity(len(BONES))
        tilt, bow, side_bow, twist = (
            between(-0.1, 0.4),
            between(-0.15, 0.5),
            between(-0.2, 0.2),
            between(-0.5, 0.5),
        )
        local[0] = quat.multiply(
            turn(0.0, between(-np.pi, np.pi), 0.0), turn(-tilt, 0.0, between(-0.15, 0.15))
        )
        for bone in ("spine", "chest", "upperChest"):
            local[BONE[bone]] = turn(-bow / 3.0, twist / 3.0, side_bow / 3.0)
        local[BONE["neck"]] = turn(between(-0.2, 0.12), between(-0.2, 0.2), between(-0.1, 0.1))
        local[BONE["head"]] = turn(between(-0.3, 0.24), between(-0.35, 0.35), between(-0.15, 0.15))
        deep = between(0.0, 1.0)
        for side, m in (("left", -1.0), ("right", 1.0)):
            local[BONE[side + "Shoulder"]] = turn(0.0, between(-0.15, 0.15), m * between(-0.05, 0.3))
            raised, ahead, roll = between(-1.45, 0.9), between(-0.3, 1.6), between(-1.2, 1.2)
            local[BONE[side + "UpperArm"]] = quat.multiply(
                quat.multiply(turn(0.0, m * ahead, 0.0), turn(0.0, 0.0, m * raised)), turn(roll, 0.0, 0.0)
            )
            local[BONE[side + "LowerArm"]] = turn(0.0, m * between(0.05, 2.5), 0.0)
            local[BONE[side + "Hand"]] = quat.multiply(
                turn(between(-1.3, 1.3), 0.0, 0.0), turn(0.0, between(-0.3, 0.3), between(-0.7, 0.7))
            )
            local[BONE[side + "UpperLeg"]] = quat.multiply(
                turn(0.0, -m * between(-0.1, 0.4), m * between(-0.02, 0.25)),
                turn(1.5 * deep + between(0.0, 0.2) + tilt, 0.0, 0.0),
            )
            local[BONE[side + "LowerLeg"]] = turn(-2.0 * deep - between(0.0, 0.4), 0.0, 0.0)
        position, rotation = self.posed(local, np.array([between(-2.0, 2.0), 1.0, between(-2.0, 2.0)]))
        for foot in (BONE["leftFoot"], BONE["rightFoot"]):
            ahead_x, _, ahead_z = quat.rotate(rotation[foot], np.array([0.0, 0.0, -1.0]))
            heading = turn(0.0, float(np.arctan2(-ahead_x, -ahead_z)), 0.0)
            rotation[foot : foot + 2] = quat.multiply(heading, turn(between(-0.2, 0.2), 0.0, 0.0))
            position[foot + 1] = position[foot] + quat.rotate(rotation[foot], self.body.offsets[foot + 1])
        position[:, 1] -= self.above_floor(position)
        return position, rotation

    def above_floor(self, position: Points, floor_y: float = 0.0) -> float:
        """How far the lowest ankle or toe joint is above where it is in a standing foot. [m]"""
        feet = [BONE[b] for b in ("leftFoot", "rightFoot", "leftToes", "rightToes")]
        return float((position[..., feet, 1] - self.body.tpose[feet, 1]).min() - floor_y)


@pytest.fixture(scope="session")
def person() -> type[Person]:
    """``person()`` is an average one with head and hands; ``person(roles)`` wears other devices."""
    return Person
