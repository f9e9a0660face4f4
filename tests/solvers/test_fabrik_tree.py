"""FABRIK on a tree: several effectors share joints and are met together."""

from __future__ import annotations

import numpy as np
import pytest

from solvers.config import ChainConfig
from solvers.fabrik_tree import FabrikTree, TreePose, TreeSolution, solve_tree
from solvers.kernels import fabrik_tree as kernels
from vrik import quat
from vrik.jit import plain

PARENTS = (-1, 0, 1, 2, 3, 4, 5, 3, 7, 8)
OFFSETS = (
    [[0, 0, 0]]
    + [[0, 0.15, 0]] * 3
    + [[0.2, 0, 0], [0.3, 0, 0], [0.26, 0, 0], [-0.2, 0, 0], [-0.3, 0, 0], [-0.26, 0, 0]]
)
RIGHT, LEFT = 6, 9
PATIENT = ChainConfig(max_rounds=200)


@pytest.fixture
def torso() -> FabrikTree:
    """Three bones of spine and two arms of three."""
    return FabrikTree.build(PARENTS, OFFSETS)


def random_pose(rng: np.random.Generator, tree: FabrikTree, bend: float = 0.5) -> TreePose:
    rotations = quat.identity(len(tree.parents))
    for i in range(1, len(rotations)):
        turn = quat.from_rotvec(bend * rng.normal(size=3))
        rotations[i] = quat.normalize(quat.multiply(rotations[tree.parents[i]], turn))
    return TreePose(np.zeros(3), rotations)


def assert_sound(tree: FabrikTree, solved: TreeSolution) -> None:
    spans = np.linalg.norm(solved.points_world[1:] - solved.points_world[tree.parents[1:]], axis=1)
    assert np.isfinite(solved.pose.rotations_world).all()
    np.testing.assert_allclose(spans, tree.lengths[1:], atol=1e-9)
    np.testing.assert_allclose(tree.points(solved.pose), solved.points_world, atol=1e-12)


def test_two_effectors_that_some_pose_reaches_are_met_together(torso: FabrikTree) -> None:
    rng = np.random.default_rng(1)
    missed = 0
    for _ in range(300):
        goal = torso.points(random_pose(rng, torso))

        solved = solve_tree(torso, torso.rest(), {RIGHT: goal[RIGHT], LEFT: goal[LEFT]}, config=PATIENT)

        assert_sound(torso, solved)
        np.testing.assert_array_equal(solved.points_world[0], [0.0, 0.0, 0.0])
        missed += not solved.reached
    assert missed <= 3


def test_the_heavier_target_comes_nearer_where_both_cannot_be_met(torso: FabrikTree) -> None:
    targets = {RIGHT: np.array([1.5, 0.4, 0.0]), LEFT: np.array([-1.5, 0.4, 0.0])}

    even = solve_tree(torso, torso.rest(), targets, config=PATIENT)
    uneven = solve_tree(torso, torso.rest(), targets, weights={RIGHT: 10.0}, config=PATIENT)

    assert even.residual_m[RIGHT] == pytest.approx(even.residual_m[LEFT], abs=1e-3)
    assert uneven.residual_m[RIGHT] < even.residual_m[RIGHT] - 0.02
    assert uneven.residual_m[RIGHT] < uneven.residual_m[LEFT]
    assert even.stopped_because == "out_of_reach"
    assert_sound(torso, uneven)


def test_a_free_root_follows(torso: FabrikTree) -> None:
    targets = {RIGHT: np.array([2.5, 1.0, 0.0]), LEFT: np.array([1.5, 1.0, 0.3])}

    held = solve_tree(torso, torso.rest(), targets, config=PATIENT)
    free = solve_tree(torso, torso.rest(), targets, fixed_root=False, config=PATIENT)

    assert not held.reached
    assert free.reached
    assert np.linalg.norm(free.points_world[0]) > 0.5
    assert_sound(torso, free)


def test_a_target_in_the_middle_of_a_branch_counts(torso: FabrikTree) -> None:
    goal = torso.points(random_pose(np.random.default_rng(4), torso))
    targets = {5: goal[5], RIGHT: goal[RIGHT], LEFT: goal[LEFT]}

    solved = solve_tree(torso, torso.rest(), targets, config=PATIENT)

    assert max(solved.residual_m.values()) < 1e-3


def test_branches_without_a_target_are_carried_unbent(torso: FabrikTree) -> None:
    start = random_pose(np.random.default_rng(5), torso)

    solved = solve_tree(torso, start, {RIGHT: np.array([0.3, 0.6, -0.3])})

    def locals_of(pose: TreePose) -> np.ndarray:
        q = pose.rotations_world
        return quat.multiply(quat.conjugate(q[torso.parents[1:]]), q[1:])

    turned = quat.angle(locals_of(start), locals_of(solved.pose))
    assert solved.reached
    assert turned[6:].max() < 1e-7
    assert_sound(torso, solved)


def test_a_solved_tree_needs_no_round(torso: FabrikTree) -> None:
    goal = torso.points(random_pose(np.random.default_rng(6), torso))
    targets = {RIGHT: goal[RIGHT], LEFT: goal[LEFT]}
    first = solve_tree(torso, torso.rest(), targets, config=PATIENT)

    again = solve_tree(torso, first.pose, targets, config=PATIENT)

    assert (again.rounds, again.stopped_because) == (0, "reached")
    np.testing.assert_allclose(again.points_world, first.points_world, atol=1e-12)


def test_bones_without_length_and_a_target_on_the_root_do_no_harm() -> None:
    tree = FabrikTree.build([-1, 0, 1, 1, 3], [[0, 0, 0], [0, 0, 0], [0.3, 0, 0], [0, 0.2, 0], [0, 0.2, 0]])

    solved = solve_tree(tree, tree.rest(), {4: np.zeros(3), 2: np.array([0.0, 0.0, 0.3])}, config=PATIENT)

    assert_sound(tree, solved)
    assert solved.residual_m[2] < 1e-3


def test_compiled_and_plain_trees_agree(torso: FabrikTree) -> None:
    rng = np.random.default_rng(7)
    goals, weights = torso.points(random_pose(rng, torso)), np.zeros(10)
    weights[[RIGHT, LEFT]] = 1.0
    beyond = np.array([2.0, 2, 2, 2, 1, 1, 1, 1, 1, 1])
    fast, slow = torso.points(torso.rest()), torso.points(torso.rest())

    def run(kernel: object, joints: np.ndarray) -> int:
        return kernel(  # type: ignore[operator,no-any-return]
            joints, torso.lengths, torso.parents, goals, weights, beyond, True, 1e-4, 20,
            np.zeros((30, 3)), np.zeros(10),
        )  # fmt: skip

    assert run(kernels.solve_tree, fast) == run(plain(kernels.solve_tree), slow)
    np.testing.assert_allclose(fast, slow, atol=1e-9)


def test_wrong_arguments_are_named(torso: FabrikTree) -> None:
    with pytest.raises(ValueError, match="a node that comes before"):
        FabrikTree.build([-1, 2, 1], np.zeros((3, 3)))
    with pytest.raises(ValueError, match="a target for node 12"):
        solve_tree(torso, torso.rest(), {12: np.zeros(3)})
    with pytest.raises(ValueError, match="not negative"):
        solve_tree(torso, torso.rest(), {RIGHT: np.zeros(3)}, weights={RIGHT: -1.0})
