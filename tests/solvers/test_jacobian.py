"""The Jacobian family against independent truth: finite differences, scipy's optimizer, scipy's rotations."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import least_squares
from scipy.spatial.transform import Rotation

from solvers.chain import Chain, ChainPose, Target
from solvers.config import ChainConfig
from solvers.jacobian import solve_dls, solve_svd, solve_transpose
from solvers.kernels import jacobian, symmetric
from solvers.kernels.jacobian_rows import (
    DAMPED,
    EFFECT,
    ERROR,
    FREEDOMS,
    PULL,
    TRANSPOSED,
    TRUNCATED,
    Work,
    decompose,
    set_effects,
    set_freedoms,
    set_pull,
)
from solvers.limits import Hinge, Limit, SwingTwist
from vrik import quat
from vrik.jit import plain

ROOT = np.array([0.1, 1.0, -0.2])
EXACT = ChainConfig(tolerance_m=1e-9, tolerance_rad=1e-9, max_rounds=500)
NO_TURN = (1.0, 0.0, 0.0, 0.0)

seeds = st.integers(0, 2**32 - 1)


def scipy_of(q: np.ndarray) -> Rotation:
    return Rotation.from_quat(np.asarray(q)[..., [1, 2, 3, 0]])


def wxyz(rotation: Rotation) -> np.ndarray:
    return rotation.as_quat()[..., [3, 0, 1, 2]]


def forward(chain: Chain, base: Rotation, locals_: list[Rotation]) -> tuple[np.ndarray, Rotation]:
    """Tip and rotation of the last joint, written independently of the solvers."""
    at, turn = ROOT.copy(), base
    for local, offset in zip(locals_, chain.offsets[1:], strict=True):
        turn = turn * local
        at = at + turn.apply(offset)
    return at, turn


def random_chain(rng: np.random.Generator, m: int) -> tuple[Chain, ChainPose]:
    """Uneven bones, weights, hinges among ball joints; a pose on a turned base."""
    offsets = rng.normal(size=(m + 1, 3)) * 0.05
    offsets[:, 1] += rng.uniform(0.1, 0.3, m + 1)
    axes = rng.normal(size=(m, 3))
    centers = wxyz(Rotation.random(m, rng=rng))
    limits: list[Limit] = [
        Hinge(tuple(axes[i]), center=tuple(centers[i])) if rng.random() < 0.5 else None for i in range(m)
    ]
    chain = Chain.build(offsets, weights=rng.uniform(0.3, 1.0, m), limits=limits)
    base = Rotation.random(rng=rng)
    parent, rotations = base, []
    for i, limit in enumerate(limits):
        local = Rotation.random(rng=rng)
        if isinstance(limit, Hinge):
            spin = axes[i] / np.linalg.norm(axes[i]) * rng.uniform(-3.0, 3.0)
            local = scipy_of(centers[i]) * Rotation.from_rotvec(spin)
        parent = parent * local
        rotations.append(wxyz(parent))
    return chain, ChainPose.build(ROOT, rotations, wxyz(base))


def base_of(pose: ChainPose) -> tuple[float, float, float, float]:
    w, x, y, z = (float(v) for v in pose.base_world)
    return (w, x, y, z)


@settings(max_examples=60)
@given(seeds, st.integers(1, 7))
def test_the_analytic_jacobian_agrees_with_finite_differences(seed: int, m: int) -> None:
    """Place and rotation, hinges and ball joints, weights and a turned base."""
    chain, pose = random_chain(np.random.default_rng(seed), m)
    work = Work.fresh(m)
    scaled, h = 0.3, 1e-6

    set_freedoms(pose.rotations_world, chain.weights, chain.limits, base_of(pose), work.joints, work.freedoms)
    set_effects(chain.points(pose), scaled, work.joints, work.freedoms)

    locals_ = [scipy_of(q) for q in chain.locals_of(pose)]
    base = scipy_of(pose.base_world)
    for i in range(m):
        parent = base if i == 0 else scipy_of(pose.rotations_world[i - 1])
        row = chain.limits[i]
        hinge = row[0] == 1.0
        axes = [(parent * scipy_of(row[4:8])).apply(row[1:4])] if hinge else list(np.eye(3))
        assert work.joints[i, FREEDOMS] == len(axes)
        for k, axis in enumerate(axes):
            tips = []
            for sign in (1.0, -1.0):
                turn = parent.inv() * Rotation.from_rotvec(sign * h * axis) * parent
                moved = [turn * q if j == i else q for j, q in enumerate(locals_)]
                tips.append(forward(chain, base, moved))
            place = (tips[0][0] - tips[1][0]) / (2.0 * h)
            spin = (tips[0][1] * tips[1][1].inv()).as_rotvec() / (2.0 * h)
            wanted = chain.weights[i] * np.concatenate([place, scaled * spin])
            np.testing.assert_allclose(work.freedoms[3 * i + k, EFFECT:], wanted, atol=1e-7)


@settings(max_examples=40)
@given(seeds, st.sampled_from([3, 6]))
def test_eigenvalues_and_vectors_agree_with_numpy(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    half = rng.normal(size=(n, rng.integers(1, n + 3)))
    table = np.zeros((13, 6))
    table[:n, :n] = half @ half.T

    symmetric.eigen(table, n)

    values, vectors = table[symmetric.VALUES, :n], table[symmetric.VECTORS : symmetric.VECTORS + n, :n]
    np.testing.assert_allclose(np.sort(values), np.linalg.eigvalsh(half @ half.T), atol=1e-12 * values.max())
    np.testing.assert_allclose(vectors @ vectors.T, np.eye(n), atol=1e-12)
    np.testing.assert_allclose(vectors.T * values @ vectors, half @ half.T, atol=1e-12 * values.max())


@settings(max_examples=60)
@given(seeds, st.sampled_from([DAMPED, TRUNCATED, TRANSPOSED]), st.floats(0.0, 1.0))
def test_every_filter_is_what_its_formula_says(seed: int, method: int, straightness: float) -> None:
    """Against numpy's SVD of the textbook Jacobian; straight chains have a small singular value."""
    rng = np.random.default_rng(seed)
    chain, pose = random_chain(rng, 4)
    pose = ChainPose.build(
        ROOT, quat.slerp(pose.rotations_world, pose.rotations_world[:1], straightness), pose.base_world
    )
    work, error = Work.fresh(4), rng.normal(size=3)
    damping, border = 0.05, 0.2

    set_freedoms(pose.rotations_world, chain.weights, chain.limits, base_of(pose), work.joints, work.freedoms)
    set_effects(chain.points(pose), 0.0, work.joints, work.freedoms)
    largest = decompose(3, work.joints, work.freedoms, work.system)
    work.system[ERROR, :3] = error
    gain = set_pull(method, 3, largest, damping, border, work.system)

    used = [3 * i + k for i in range(4) for k in range(int(work.joints[i, FREEDOMS]))]
    jacobian_ = work.freedoms[used, EFFECT : EFFECT + 3].T
    u, s, _ = np.linalg.svd(jacobian_)
    lack = np.maximum(1.0 - s / s[0] / border, 0.0)
    moved = jacobian_ @ jacobian_.T @ error
    f = {
        DAMPED: 1.0 / np.maximum(s**2 + (damping * s[0] * lack) ** 2, 1e-300),
        TRUNCATED: np.where(s > damping * s[0], 1.0 / np.maximum(s, 1e-300) ** 2, 0.0),
        TRANSPOSED: np.full(3, error @ moved / (moved @ moved)),
    }[method]
    f = np.where(s > 1e-6 * s[0], f, 0.0)
    wanted = u @ (f * (u.T @ error))
    after = error - moved_by(jacobian_, wanted)
    np.testing.assert_allclose(jacobian_.T @ work.system[PULL, :3], jacobian_.T @ wanted, atol=1e-6)
    assert gain == pytest.approx(1.0 - after @ after / (error @ error), abs=1e-6)


def moved_by(jacobian_: np.ndarray, pull: np.ndarray) -> np.ndarray:
    return jacobian_ @ (jacobian_.T @ pull)


HINGES = [Hinge((0, 1, 0), -2.0, 2.0), Hinge((1, 0, 0), -1.2, 1.2), Hinge((1, 0, 0), -0.2, 2.0)]
HINGED = Chain.build(
    [[0, 0, 0], [0, 0.2, 0], [0, 0.3, 0], [0, 0.25, 0], [0, 0.1, 0]],
    limits=[*HINGES, Hinge((0, 0, 1), -1.0, 1.0)],
)


def hinge_locals(angles: np.ndarray) -> list[Rotation]:
    axes = HINGED.limits[:, 1:4]
    return [Rotation.from_rotvec(a * axis) for a, axis in zip(angles, axes, strict=True)]


@settings(max_examples=40)
@given(seeds)
def test_dls_is_as_good_as_scipys_least_squares_on_the_same_cost(seed: int) -> None:
    """Four hinges cannot meet place and rotation: both stop at a compromise, some joints at their stops.

    Targets are within reach of the bone lengths, where the two costs are the same function.
    """
    rng = np.random.default_rng(seed)
    low, high = HINGED.limits[:, 8], HINGED.limits[:, 9]
    true = rng.uniform(low, high)
    tip, turn = forward(HINGED, Rotation.identity(), hinge_locals(true))
    away = tip + rng.normal(size=3) * 0.1 - ROOT
    tip = ROOT + away * min(1.0, 0.84 / np.linalg.norm(away))
    turn = turn * Rotation.from_rotvec(rng.normal(size=3) * 0.3)
    start = np.clip(true + rng.uniform(-0.3, 0.3, 4), low, high)
    turns = accumulate(hinge_locals(start), operator.mul)
    pose = ChainPose.build(ROOT, [wxyz(q) for q in turns])

    solved = solve_dls(HINGED, pose, Target(tip, wxyz(turn)), EXACT)

    def rows(angles: np.ndarray) -> np.ndarray:
        at, last = forward(HINGED, Rotation.identity(), hinge_locals(angles))
        return np.concatenate([tip - at, 0.3 * (turn * last.inv()).as_rotvec()])

    locals_ = scipy_of(HINGED.locals_of(solved.pose)).as_rotvec()
    found = np.sum(locals_ * HINGED.limits[:, 1:4], axis=1)
    ours = 0.5 * rows(found) @ rows(found)
    inside = np.clip(found, low + 1e-9, high - 1e-9)
    exact = {"xtol": 1e-14, "ftol": 1e-14, "gtol": 1e-14}
    theirs = least_squares(rows, inside, bounds=(low - 1e-12, high + 1e-12), **exact)
    assert ours == pytest.approx(0.5 * (solved.residual_m**2 + (0.3 * solved.residual_rad) ** 2), abs=1e-12)
    assert ours <= theirs.cost * (1.0 + 1e-6) + 1e-12


@pytest.mark.parametrize("solve", [solve_dls, solve_svd, solve_transpose])
@given(seed=seeds)
@settings(max_examples=30)
def test_points_rotations_and_residuals_agree_with_a_scipy_chain(
    solve: Callable[..., object], seed: int
) -> None:
    rng = np.random.default_rng(seed)
    chain, pose = random_chain(rng, 4)
    target = Target(ROOT + rng.normal(size=3) * 0.3, wxyz(Rotation.random(rng=rng)))

    solved = solve(chain, pose, target, ChainConfig())

    at, turn = forward(chain, scipy_of(pose.base_world), [scipy_of(q) for q in chain.locals_of(solved.pose)])
    np.testing.assert_allclose(solved.points_world[-1], at, atol=1e-12)
    assert solved.residual_m == pytest.approx(np.linalg.norm(at - target.position), abs=1e-12)
    assert solved.residual_rad == pytest.approx(
        (turn.inv() * scipy_of(target.rotation)).magnitude(), abs=1e-7
    )
    lengths = np.linalg.norm(np.diff(solved.points_world, axis=0), axis=1)
    np.testing.assert_allclose(lengths, chain.lengths, atol=1e-9)


@pytest.mark.parametrize("method", [DAMPED, TRUNCATED, TRANSPOSED])
def test_compiled_and_plain_jacobian_solvers_agree(method: int) -> None:
    chain = Chain.build(
        [[0, 0, 0], [-0.3, 0, 0], [-0.26, 0, 0], [-0.08, 0, 0]],
        limits=[SwingTwist((-1, 0, 0), (1.2, 0.9), -0.5, 0.5), Hinge((0, -1, 0), 0.0, 2.6), None],
    )
    pose = chain.rest(ROOT)
    results = []
    for run in (jacobian.solve, plain(jacobian.solve)):
        points, rotations = np.tile(ROOT, (4, 1)), pose.rotations_world.copy()
        arguments = (points, rotations, chain.offsets, chain.weights, chain.limits, NO_TURN)
        goal = ((-0.2, 1.2, -0.4), (math.cos(0.2), 0.0, math.sin(0.2), 0.0), 1.0, (0.0, -1.0, 0.2))
        setting = (method, 1e-4, 1e-3, 20, 0.5, 0.05, 0.2, 0.1, 0.3, 0.01)
        rounds = run(*arguments, *goal, *setting, Work.fresh(3))
        results.append((rounds, points, rotations))

    assert results[0][0] == results[1][0]
    np.testing.assert_allclose(results[0][1], results[1][1], atol=1e-9)
    np.testing.assert_allclose(results[0][2], results[1][2], atol=1e-9)
