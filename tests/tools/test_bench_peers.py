"""The comparison with other libraries is given problems that can be solved, and measures what it says."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from solvers.chain import Chain, ChainPose, Target
from solvers.config import ChainConfig
from solvers.registry import solve_chain
from tools import bench_peers
from tools.peers import run_vrik
from tools.peers.measure import Given, Measured, Settings, angle_between, matrix, measure, read_problems
from tools.peers.problems import Problem, chain_of, make_problems, world_rotations

PROBLEMS = make_problems(12)
SETTINGS = Settings(repeats=1)
Solved = Callable[[str], dict[tuple[str, str], Measured]]
by_name = pytest.mark.parametrize("problem", PROBLEMS, ids=lambda p: p.name)


def _tips(problem: Problem, angles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Tips (n, 3) and rotations (n, 3, 3) of the last joints, with SciPy's rotations."""
    axes = [[axis] for axis in problem.hinges] or [[[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]] * angles.shape[1]
    tips, turned = np.zeros((len(angles), 3)), Rotation.identity(len(angles))
    for i, of_joint in enumerate(axes):
        for j, axis in enumerate(of_joint):
            turned = turned * Rotation.from_rotvec(angles[:, i, j, None] * np.asarray(axis))
        tips += turned.apply(problem.offsets[i + 1])
    return tips, turned.as_matrix()


@pytest.fixture
def problem_file(tmp_path: Path) -> Path:
    file = tmp_path / "problems.json"
    bench_peers.write_problems(file, PROBLEMS, SETTINGS)
    return file


@pytest.fixture(scope="module")
def solved(tmp_path_factory: pytest.TempPathFactory) -> Solved:
    """By problem: the rows that vrik's program gives, by solver and mode."""
    file = tmp_path_factory.mktemp("peers") / "problems.json"
    bench_peers.write_problems(file, PROBLEMS, SETTINGS)
    given = {g.name: g for g in read_problems(file)[1]}

    @cache
    def rows(name: str) -> dict[tuple[str, str], Measured]:
        return {(row.solver, row.mode): row for row in run_vrik.solve_all(given[name], SETTINGS)}

    return rows


@by_name
def test_every_target_is_met_by_its_answer(problem: Problem) -> None:
    for targets in (problem.cold, problem.warm):
        tips, turned = _tips(problem, targets.answers)

        assert len(targets.positions) == 12
        assert np.abs(tips - targets.positions).max() < 1e-12
        assert (
            np.abs(turned - Rotation.from_quat(targets.rotations[:, [1, 2, 3, 0]]).as_matrix()).max() < 1e-12
        )


@by_name
def test_answers_are_within_the_limits(problem: Problem) -> None:
    for targets in (problem.cold, problem.warm):
        if len(problem.hinges):
            angles = targets.answers[..., 0]
            assert (angles >= problem.limits[:, 0]).all()
            assert (angles <= problem.limits[:, 1]).all()


@by_name
def test_a_path_begins_in_the_start_pose_and_is_continuous(problem: Problem) -> None:
    steps = np.linalg.norm(np.diff(problem.warm.positions, axis=0), axis=1)

    assert np.abs(problem.warm.answers[0] - problem.start).max() < 1e-12
    assert 0.0 < steps.max() < 0.05


@by_name
def test_the_start_pose_is_not_straight_and_not_the_answer(problem: Problem) -> None:
    tip = _tips(problem, problem.start[None])[0][0]

    assert np.linalg.norm(tip) < 0.99 * np.linalg.norm(problem.offsets, axis=1).sum()
    assert np.linalg.norm(problem.cold.positions - tip, axis=1).min() > 0.01


@by_name
def test_the_file_says_what_was_made(problem_file: Path, problem: Problem) -> None:
    settings, given = read_problems(problem_file)

    read = next(g for g in given if g.name == problem.name)
    assert settings == SETTINGS
    assert read.oriented == problem.oriented
    for name in ("offsets", "start"):
        assert np.array_equal(getattr(read, name), getattr(problem, name))
    assert np.array_equal(read.cold.positions, problem.cold.positions)
    assert np.array_equal(read.warm.rotations, problem.warm.rotations)
    assert np.array_equal(read.limits, problem.limits) or not len(problem.hinges)


@by_name
def test_vrik_is_judged_by_where_its_tip_is(solved: Solved, problem: Problem) -> None:
    rows = solved(problem.name)

    chain, start = _chain_and_start(problem)
    for solver in run_vrik.SOLVERS:
        pose = start
        for mode, targets in (("cold", problem.cold), ("warm", problem.warm)):
            row = rows[f"vrik {solver}, call", mode]
            pose = start
            for i, place in enumerate(targets.positions):
                turn = targets.rotations[i] if problem.oriented else None
                begin = start if mode == "cold" else pose
                config = ChainConfig(1e-3, 0.01, 100)
                found = solve_chain(chain, begin, Target(place, turn), solver=solver, config=config)
                pose = found.pose
                assert row.residuals_m[i] == pytest.approx(found.residual_m, abs=1e-9)
                assert row.residuals_rad[i] == pytest.approx(found.residual_rad, abs=1e-7)


@by_name
def test_kernel_many_and_call_solve_the_same(solved: Solved, problem: Problem) -> None:
    rows = solved(problem.name)

    for solver in run_vrik.SOLVERS:
        for mode in ("cold", "warm"):
            call = rows[f"vrik {solver}, call", mode]
            for way in ("kernel", "many"):
                other = rows[f"vrik {solver}, {way}", mode]
                assert np.allclose(other.residuals_m, call.residuals_m, rtol=0.0, atol=1e-9)
                assert len(other.times_us) == len(call.times_us) == 12
                assert min(other.times_us) > 0.0


def _chain_and_start(problem: Problem) -> tuple[Chain, ChainPose]:
    chain = chain_of(problem.offsets, problem.hinges, problem.limits)
    return chain, ChainPose.build((0.0, 0.0, 0.0), world_rotations(problem.hinges, problem.start))


class _Lagging:
    """A library whose tip stays 2 mm and 0.02 rad off, and which notes what it is asked."""

    def __init__(self) -> None:
        self.resets = 0
        self.place, self.turn = np.zeros(3), np.eye(3)

    def reset(self) -> None:
        self.resets += 1

    def target(
        self, position: np.ndarray, rotation: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray | None]:
        return position, rotation

    def solve(self, target: tuple[np.ndarray, np.ndarray | None]) -> None:
        self.place = target[0] + [0.0, 0.002, 0.0]
        if target[1] is not None:
            self.turn = matrix(target[1]) @ Rotation.from_rotvec([0.0, 0.02, 0.0]).as_matrix()

    def tip(self) -> tuple[np.ndarray, np.ndarray]:
        return self.place, self.turn


@pytest.fixture
def lagging(problem_file: Path) -> Callable[[str], tuple[_Lagging, list[Measured]]]:
    def run(name: str) -> tuple[_Lagging, list[Measured]]:
        given: Given = next(g for g in read_problems(problem_file)[1] if g.name == name)
        peer = _Lagging()
        return peer, measure("lagging", given, peer, Settings(repeats=2))

    return run


def test_a_miss_is_measured_as_large_as_it_is(
    lagging: Callable[[str], tuple[_Lagging, list[Measured]]],
) -> None:
    for row in lagging("robot7_turn")[1]:
        assert np.allclose(row.residuals_m, 0.002)
        assert np.allclose(row.residuals_rad, 0.02)
        assert bench_peers.summary(row, SETTINGS)["reached"] == 0.0
        assert bench_peers.summary(row, Settings(tolerance_m=0.003, tolerance_rad=0.03))["reached"] == 1.0


def test_only_cold_targets_begin_in_the_start_pose(
    lagging: Callable[[str], tuple[_Lagging, list[Measured]]],
) -> None:
    peer, _ = lagging("arm")

    warm_up, cold, warm = 2 * 5, 2 * (12 + 1), 2
    assert peer.resets == warm_up + cold + warm


def test_an_angle_as_small_as_a_millionth_is_seen() -> None:
    small = Rotation.from_rotvec([0.0, 0.0, 1e-6]).as_matrix()

    assert angle_between(np.eye(3), small) == pytest.approx(1e-6, rel=1e-6)


def test_missing_libraries_are_named_with_how_to_get_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    peers = ["pyfabrik", "ikpy", "mink", "three"]

    code = bench_peers.main(
        ["--targets", "2", "--only", *peers, "--env", str(tmp_path), "--node", str(tmp_path)]
    )

    lines = capsys.readouterr().out.splitlines()
    assert code == 0
    for peer in peers:
        line = next(line for line in lines if line.startswith(peer))
        assert "not installed" in line
        assert ("npm install" if peer == "three" else "pip install") in line


def test_a_library_that_fails_is_said_to_fail(tmp_path: Path, problem_file: Path) -> None:
    package = tmp_path / "node_modules" / "three" / "package.json"
    package.parent.mkdir(parents=True)
    package.write_text(json.dumps({"version": "0.0.0"}))

    run = bench_peers.run_peer("three", problem_file, None, tmp_path)

    assert run.version == "0.0.0"
    assert run.problem.startswith("failed: ")
    assert run.rows == ()


def test_json_has_every_row_and_the_settings(capsys: pytest.CaptureFixture[str]) -> None:
    bench_peers.main(["--targets", "2", "--only", "vrik", "pyfabrik", "--json"])

    document = json.loads(capsys.readouterr().out)
    assert document["settings"] == dataclasses.asdict(Settings())
    assert "not installed" in document["libraries"]["pyfabrik"]
    assert len(document["rows"]) == len(PROBLEMS) * 2 * 3 * len(run_vrik.SOLVERS)
    assert all(row["median_us"] > 0.0 for row in document["rows"])
