"""The examples of the docs run, and do what they say."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from solvers import registry
from vrik import quat

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"


def run(name: str) -> dict[str, Any]:
    """The names of an example, run as a program."""
    return runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")


def test_the_tentacle_follows_its_target(capsys: pytest.CaptureFixture[str]) -> None:
    example = run("tentacle")

    assert max(example["follow"](40)) < 2e-3
    assert "worst miss" in capsys.readouterr().out


def test_the_six_axis_arm_meets_place_and_rotation(capsys: pytest.CaptureFixture[str]) -> None:
    """Tools that some pose of the arm holds."""
    example = run("six_axis_arm")
    arm, random = example["arm"], np.random.default_rng(0)
    met = 0
    for _ in range(20):
        rotations, parent = [], quat.identity()
        for axis, most in example["AXES"]:
            turn = quat.from_rotvec(np.array(axis) * random.uniform(-0.6, 0.6) * most)
            parent = quat.multiply(parent, turn)
            rotations.append(parent)
        tip = arm.points(type(arm.rest()).build((0, 0, 0), np.array(rotations)))[-1]
        miss_m, miss_rad, angles = example["reach"](tip, rotations[-1])
        assert all(abs(a) <= most + 1e-6 for a, (_, most) in zip(angles, example["AXES"], strict=True))
        met += miss_m < 1e-3 and miss_rad < 2e-3

    assert met >= 19
    assert "joints" in capsys.readouterr().out


def test_the_quadruped_keeps_its_paws_where_they_stand(capsys: pytest.CaptureFixture[str]) -> None:
    paws, pelvis = run("quadruped")["sway"](30)

    assert paws < 1.5e-3
    assert pelvis < 1.5e-3
    assert "paws off" in capsys.readouterr().out


def test_a_solver_and_a_constraint_of_ones_own(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "_SOLVERS", dict(registry._SOLVERS))

    run("own_solver")

    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    for line in lines:
        assert float(line.split(":")[1].split("mm")[0]) < 1.5
