"""Anatomical limits: they fit what people do, and one side is the mirror image of the other."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from solvers import anatomy
from solvers.kernels import limits as kernels
from solvers.limits import Hinge, SwingTwist, clamp_rotation, limit_excess, pack_limits
from vrik import quat
from vrik.skeleton import BONE, BONES, MIRROR, PARENTS, VRM_FROM_SMPL

FLIP = np.array([1.0, 1.0, -1.0, -1.0])
"""A turn in the mirror x = 0."""

TURNS = quat.normalize(np.random.default_rng(11).normal(size=(200, 4)))
"""Any turns; none is a half turn from a joint's middle, where both stops are equally near."""


@pytest.fixture(scope="module")
def moved(shared: Path) -> np.ndarray:
    """(frames, 22, 4) parent-relative canonical turns of all development clips."""
    clips = []
    for path in sorted((shared / "data/mocap/dev").glob("*.npz")):
        world = quat.normalize(np.load(path)["rot"].astype(float)[:, VRM_FROM_SMPL])
        local = world.copy()
        local[:, 1:] = quat.multiply(quat.conjugate(world[:, PARENTS[1:]]), world[:, 1:])
        clips.append(local)
    return np.concatenate(clips)


def test_every_bone_has_an_entry_in_the_order_of_the_skeleton() -> None:
    assert tuple(anatomy.LIMITS) == BONES
    assert [b for b, limit in anatomy.LIMITS.items() if limit is None] == ["hips"]
    pack_limits(anatomy.limits_of(BONES))  # none is upside down


@pytest.mark.parametrize("bone", BONES[1:])
def test_people_stay_inside_of_the_hard_limits(bone: str, moved: np.ndarray) -> None:
    """At least 99.5 % of the frames of real motion."""
    rows = pack_limits([anatomy.limit_of(bone)])
    locals_ = [tuple(q) for q in moved[:, BONE[bone]].tolist()]

    inside = np.mean([kernels.excess(q, rows, 0) < 1e-9 for q in locals_])

    assert len(locals_) > 20_000
    assert inside >= 0.995


@pytest.mark.parametrize("bone", [b for b in BONES if b.startswith("left")])
def test_the_left_side_is_the_right_side_in_the_mirror(bone: str) -> None:
    for turn in TURNS:
        left = clamp_rotation(turn, anatomy.limit_of(bone))
        right = clamp_rotation(turn * FLIP, anatomy.limit_of(BONES[MIRROR[BONE[bone]]]))

        assert abs(abs(left @ (right * FLIP)) - 1.0) < 1e-9


@pytest.mark.parametrize("bone", ["hips", "spine", "chest", "upperChest", "neck", "head"])
def test_the_middle_of_the_body_is_its_own_mirror_image(bone: str) -> None:
    limit = anatomy.limit_of(bone)
    for turn in TURNS:
        one, other = clamp_rotation(turn, limit), clamp_rotation(turn * FLIP, limit) * FLIP

        assert abs(abs(one @ other) - 1.0) < 1e-9


def test_the_rest_pose_is_inside() -> None:
    for bone, limit in anatomy.LIMITS.items():
        assert limit_excess(quat.identity(), limit) < 1e-9, bone


@pytest.mark.parametrize(
    ("bone", "axis", "inside_deg", "outside_deg"),
    [
        ("rightLowerArm", (0.0, 1.0, 0.0), 145.0, -20.0),  # the elbow bends forward, not back
        ("leftLowerArm", (0.0, -1.0, 0.0), 145.0, -20.0),
        ("rightLowerLeg", (-1.0, 0.0, 0.0), 135.0, -25.0),  # the knee bends back, not forward
        ("leftUpperLeg", (1.0, 0.0, 0.0), 115.0, -70.0),  # the thigh lifts far forward, little back
        ("head", (1.0, 0.0, 0.0), 35.0, 60.0),
    ],
)
def test_joints_bend_the_way_they_do(
    bone: str, axis: tuple[float, ...], inside_deg: float, outside_deg: float
) -> None:
    limit = anatomy.limit_of(bone)

    assert limit_excess(quat.from_rotvec(np.radians(inside_deg) * np.array(axis)), limit) < 1e-9
    assert limit_excess(quat.from_rotvec(np.radians(outside_deg) * np.array(axis)), limit) > 0.05


def test_mirroring_a_hinge_and_nothing() -> None:
    hinge = Hinge((0.3, 1.0, 0.2), -0.2, 2.0, center=(0.9, 0.1, 0.2, 0.3))
    turn = quat.normalize(np.array([0.5, 0.4, -0.6, 0.2]))

    there = clamp_rotation(turn, hinge)
    back = clamp_rotation(turn * FLIP, anatomy.mirrored(hinge))

    assert abs(abs(there @ (back * FLIP)) - 1.0) < 1e-9
    assert anatomy.mirrored(None) is None
    assert isinstance(anatomy.mirrored(anatomy.limit_of("leftHand")), SwingTwist)


def test_an_unknown_bone_is_named_with_those_there_are() -> None:
    with pytest.raises(ValueError, match="no bone named 'tail'; have: hips, spine"):
        anatomy.limit_of("tail")
