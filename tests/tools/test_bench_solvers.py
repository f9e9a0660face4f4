"""The bench of the solvers measures what it says: its targets can be met, its tables fit the docs."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from solvers.limits import limit_excess
from tools import bench_solvers, solver_table
from tools.bench_solvers import _judged as judged
from tools.bench_solvers import _solve as solve
from tools.solver_bodies import THREE, plausible_pose, targets_of
from tools.solver_problems import Case, cases, limb, locals_of, make_problem, placed, worst_excess
from tools.solver_times import Loop, Timing, time_loop
from vrik import quat
from vrik.body import BodyModel
from vrik.skeleton import BONE, PARENTS

DOCS = Path(__file__).resolve().parents[2] / "docs" / "solvers.md"
NAMES = tuple(cases())


@pytest.fixture(scope="module")
def figures() -> dict[str, Any]:
    """A run with few targets of two cases."""
    return bench_solvers.measure(60, only=("palm+", "wrist"), quick=True)


@pytest.mark.parametrize("warm", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_every_target_is_met_by_a_pose_within_the_limits(name: str, warm: bool) -> None:
    chain = cases()[name].chain

    problem = make_problem(chain, 300, warm=warm)

    tips, _ = placed(chain, locals_of(problem.answers))
    np.testing.assert_allclose(tips, problem.targets, atol=1e-12)
    np.testing.assert_array_equal(problem.answers[:, -1], problem.turns)
    assert worst_excess(problem.answers, chain.limits) < 1e-9
    assert worst_excess(problem.starts, chain.limits) < 1e-9
    assert np.ptp(problem.targets, axis=0).max() > 0.2


def test_warm_starts_are_near_the_answer_and_cold_ones_at_rest() -> None:
    chain = cases()["tail"].chain
    cold, warm = (make_problem(chain, 200, warm=warm) for warm in (False, True))

    turned = quat.angle(locals_of(warm.starts), locals_of(warm.answers))

    assert 0.05 < turned.max() <= 0.1 + 1e-9
    np.testing.assert_array_equal(cold.starts, np.broadcast_to(quat.identity(), cold.starts.shape))
    np.testing.assert_array_equal(cold.targets, warm.targets)


def test_a_broken_limit_is_seen_as_large_as_it_is() -> None:
    case = cases()["hinged+"]
    bent = make_problem(case.chain, 1, warm=False).starts.copy()
    bent[:, 1:] = quat.from_rotvec(np.array([0.0, 0.2, 0.0]))  # a left elbow, the wrong way

    found = worst_excess(bent, case.chain.limits)

    assert found == pytest.approx(0.2, abs=1e-6)


def test_a_miss_is_counted_as_one() -> None:
    """Targets that nothing reaches, and a solver that gave up."""
    arm = limb("left", "Arm", 2, free=True)
    case = Case("far", "out of reach", arm, False, ("fabrik",))
    problem = make_problem(arm, 50, warm=False)
    problem.targets[:25] *= 10.0 / np.linalg.norm(problem.targets[:25], axis=1, keepdims=True)

    row = judged(case, "fabrik", "cold", solve(case, problem, "fabrik", bench_solvers.WARM))

    assert row.within == 0.5
    assert row.p999_miss_m > 9.0
    assert (row.not_finite, row.targets) == (0, 50)
    assert row.length_error_m < 1e-9


def test_restarts_in_a_second_call_are_those_of_one() -> None:
    case, config = cases()["toes+"], bench_solvers.COLD["dls"]
    problem = make_problem(case.chain, 40, warm=False)

    split = solve(case, problem, "dls", config)

    whole = bench_solvers._many(case, problem, "dls", config)
    np.testing.assert_allclose(split.rotations_world, whole.rotations_world, atol=1e-12)


def test_random_bodies_are_whole_and_stand_on_the_floor() -> None:
    body, random = BodyModel.average(1.7), np.random.default_rng(1)
    for _ in range(20):
        points, world = plausible_pose(body, random)

        for j in range(1, len(PARENTS)):
            step = quat.rotate(world[PARENTS[j]], body.offsets[j])
            np.testing.assert_allclose(points[j], points[PARENTS[j]] + step, atol=1e-12)
        feet = [BONE[b] for b in ("leftFoot", "rightFoot", "leftToes", "rightToes")]
        assert (points[feet, 1] - body.tpose[feet, 1]).min() == pytest.approx(0.0, abs=1e-12)
        targets = targets_of(points, world, THREE)
        assert targets.position_weight.sum() == 3.0
        np.testing.assert_array_equal(targets.position[0], points[BONE["head"]])


def test_a_loop_solves_its_chains_and_takes_no_memory(figures: dict[str, Any]) -> None:
    case = cases()["palm+"]
    loop = Loop("fabrik", case.chain, make_problem(case.chain, 60, warm=True), True, bench_solvers.TO_1MM)

    timing = time_loop(loop, "palm", 1e6, batch=20, batches=4)

    tips = loop.points[:20, -1]
    targets = make_problem(case.chain, 60, warm=True).targets[:20]
    assert np.linalg.norm(tips - targets, axis=1).max() <= 1e-3
    assert 0.0 < timing.median_us <= timing.p99_us
    assert timing.allocations == 0.0
    assert timing.plain_ratio is not None
    assert timing.verdict == "held"
    for row in figures["times"]:
        assert row["allocations"] in (None, 0.0), row["work"]


def test_a_bar_is_held_in_time_or_by_the_ratio() -> None:
    assert Timing("", 5.0, 4.9, 9.0).verdict == "held"
    assert Timing("", 5.0, 5.1, 9.0, plain_ratio=41.0).verdict == "ratio held"
    assert Timing("", 5.0, 5.1, 9.0, plain_ratio=39.0).verdict == "missed"
    assert Timing("", 5.0, 5.1, 9.0).verdict == "missed"
    assert Timing("", 0.0, 5.1, 9.0).verdict == ""


def test_a_small_run_says_everything(figures: dict[str, Any]) -> None:
    json.dumps(figures, allow_nan=False)
    assert {(row["case"], row["solver"], row["start"]) for row in figures["reach"]} == {
        (name, solver, start)
        for name in ("wrist", "palm+")
        for solver in cases()[name].solvers
        for start in ("cold", "warm")
    }
    for row in figures["reach"]:
        assert row["limit_excess_rad"] < 1e-6
        assert row["length_error_m"] < 1e-9
        assert row["not_finite"] == 0
        if row["solver"] == "fabrik":
            assert row["within"] >= 0.95
    assert figures["together"]["within_1mm"] >= 0.9
    assert len(figures["times"]) == 17


def test_a_share_is_never_rounded_up() -> None:
    assert solver_table._percent(0.999994) == "99.999"
    assert solver_table._percent(1.0) == "100"
    assert solver_table._percent(0.9989) == "**99.89**"


def headers(page: str) -> list[str]:
    """First lines of all tables."""
    return re.findall(r"^(\|.*\|)\n\| ---", page, re.MULTILINE)


def test_the_tables_of_the_docs_are_those_the_tool_prints(figures: dict[str, Any]) -> None:
    page = DOCS.read_text(encoding="utf-8")
    assert page.count(solver_table.BEGIN) == page.count(solver_table.END) == 1
    made = page.split(solver_table.BEGIN)[1].split(solver_table.END)[0]

    printed = solver_table.markdown(figures)

    assert headers(made) == headers(printed)
    for row in figures["times"]:
        assert f"| {row['work']} |" in made
    for case in cases().values():
        assert f"| {case.title} |" in made


def test_every_test_that_the_page_names_is_there() -> None:
    """A table of other people's mistakes says where ours is tested."""
    page = DOCS.read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if re.search(r"`test_\w+\.py`", line)]
    assert len(rows) >= 8

    for row in rows:
        for names, file in re.findall(r"((?:`test_\w+`[, ]*)+)\(`(test_\w+\.py)`\)", row):
            source = (DOCS.parents[1] / "tests" / "solvers" / file).read_text(encoding="utf-8")
            for name in re.findall(r"`(\w+)`", names):
                assert f"def {name}(" in source, (name, file)


def test_the_tables_go_between_the_marks_and_nowhere_else(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{solver_table.BEGIN}\nold\n{solver_table.END}\nafter\n", encoding="utf-8")

    solver_table.put_between(page, "| new |")

    text = page.read_text(encoding="utf-8")
    assert text.startswith("before\n")
    assert text.endswith("\nafter\n")
    assert "old" not in text
    assert "| new |" in text
    with pytest.raises(ValueError, match="has no"):
        solver_table.put_between(Path(__file__), "")


def test_limits_of_the_limbs_are_those_of_people() -> None:
    from solvers.anatomy import limit_of

    chain = cases()["wrist"].chain
    problem = make_problem(chain, 20, warm=False)
    for pose in locals_of(problem.answers):
        for local, bone in zip(pose, ("leftUpperArm", "leftLowerArm"), strict=True):
            assert limit_excess(local, limit_of(bone)) < 1e-9
