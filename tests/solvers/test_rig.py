"""Chains read from a rig lie where its bones are, and what is written back is what was solved."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from solvers.kernels import limits as kernels
from solvers.limits import Hinge, clamp_rotation
from solvers.rig import Rig, RigPose
from vrik import quat

NAMES = ("root", "upper", "twist", "lower", "helper", "hand", "finger", "other")
PARENTS = (-1, 0, 1, 1, 3, 4, 5, 0)
"""upper carries a twist bone beside the chain; helper is between lower and hand."""


def random_rotations(n: int, seed: int) -> np.ndarray:
    return quat.normalize(np.random.default_rng(seed).normal(size=(n, 4)))


def some_rig(seed: int = 0) -> Rig:
    translations = np.random.default_rng(seed + 10).normal(size=(len(NAMES), 3)) * 0.3
    return Rig.build(NAMES, PARENTS, translations, random_rotations(len(NAMES), seed))


def some_pose(rig: Rig, seed: int) -> RigPose:
    turned = quat.multiply(
        rig.rest_rotations, quat.from_rotvec(np.random.default_rng(seed).normal(size=(len(NAMES), 3)) * 0.5)
    )
    return RigPose(np.array([0.1, 0.9, -0.2]), turned)


@pytest.mark.parametrize("skip", [(), ("helper",), ("lower", "helper")])
def test_a_chain_lies_where_its_bones_are(skip: tuple[str, ...]) -> None:
    rig = some_rig()
    reach = rig.chain("upper", "hand", skip=skip, effector_offset=(0.0, 0.1, 0.0))
    pose = some_pose(rig, 3)

    chain, start = reach.read(pose)

    points, turns = rig.world(pose)
    found = chain.points(start)
    np.testing.assert_allclose(found[:-1], points[list(reach.joints)], atol=1e-12)
    canonical = quat.multiply(turns[5], quat.conjugate(rig.world(rig.rest())[1][5]))
    np.testing.assert_allclose(found[-1], points[5] + quat.rotate(canonical, np.array([0.0, 0.1, 0.0])))


def test_at_rest_every_joint_of_a_chain_has_the_identity() -> None:
    rig = some_rig()

    chain, start = rig.chain("upper", "finger").read(rig.rest())

    np.testing.assert_allclose(np.abs(start.rotations_world[:, 0]), 1.0, atol=1e-12)
    np.testing.assert_allclose(
        chain.points(start)[:-1], rig.world(rig.rest())[0][[1, 3, 4, 5, 6]], atol=1e-12
    )


@pytest.mark.parametrize("skip", [(), ("helper",)])
def test_what_is_written_is_what_was_solved(skip: tuple[str, ...]) -> None:
    """Bones beside and below the chain keep their local rotations and come along."""
    rig = some_rig(1)
    reach = rig.chain("upper", "hand", skip=skip)
    pose = some_pose(rig, 4)
    chain, start = reach.read(pose)
    solved = replace(start, rotations_world=random_rotations(chain.joint_count, 9))

    written = reach.write(pose, solved)

    points, _ = rig.world(written)
    np.testing.assert_allclose(points[list(reach.joints)], chain.points(solved)[:-1], atol=1e-12)
    untouched = [i for i in range(len(NAMES)) if i not in reach.joints]
    np.testing.assert_array_equal(written.local_rotations[untouched], pose.local_rotations[untouched])
    _, again = reach.read(written)
    np.testing.assert_allclose(quat.angle(again.rotations_world, solved.rotations_world), 0.0, atol=1e-7)


def test_writing_what_was_read_changes_nothing() -> None:
    rig = some_rig(2)
    reach = rig.chain("root", "hand", skip=("helper",))
    pose = some_pose(rig, 5)

    written = reach.write(pose, reach.read(pose)[1])

    np.testing.assert_allclose(quat.angle(written.local_rotations, pose.local_rotations), 0.0, atol=1e-7)


def test_a_limit_is_seen_from_the_true_parent_when_that_is_skipped() -> None:
    """helper is turned by an animation; hand hangs on helper, not on lower."""
    rig = some_rig(3)
    limit = Hinge((0.0, 0.0, 1.0), -0.2, 0.2)
    reach = rig.chain("upper", "hand", skip=("helper",), limits={"hand": limit})
    pose = some_pose(rig, 6)
    chain, start = reach.read(pose)
    canonical = quat.multiply(rig.world(pose)[1], quat.conjugate(rig.world(rig.rest())[1]))
    from_helper = quat.multiply(quat.conjugate(canonical[4]), canonical[5])
    allowed = quat.multiply(canonical[4], clamp_rotation(from_helper, limit))

    local = chain.locals_of(start)[-1]
    clamped = np.array(kernels.clamp(tuple(local), chain.limits, 2))
    found = quat.multiply(start.rotations_world[1], clamped)

    assert float(quat.angle(found, allowed)) < 1e-9


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"parents": (-1, 0, 1, 5, 3, 4, 5, 0)}, "after their parents"),
        ({"names": ("root",) * len(NAMES)}, "twice"),
        ({"parents": (-1, 0)}, "parents"),
    ],
)
def test_a_rig_that_makes_no_sense_is_refused(change: dict[str, object], told: str) -> None:
    given = {"names": NAMES, "parents": PARENTS, "translations": np.zeros((len(NAMES), 3))}

    with pytest.raises(ValueError, match=told):
        Rig.build(**(given | change))


def test_unknown_and_unrelated_bones_are_named() -> None:
    rig = some_rig()

    with pytest.raises(ValueError, match=r"no bone 'tail'; have: root, upper"):
        rig.chain("root", "tail")
    with pytest.raises(ValueError, match="'other' is not above 'hand'"):
        rig.chain("other", "hand")
    with pytest.raises(ValueError, match="cannot be skipped"):
        rig.chain("upper", "hand", skip=("hand",))
