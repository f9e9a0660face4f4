"""``vrik convert``: writes what was asked for, tells what it did, and never harms a file."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from recordings import open_recording, read_all

SAMPLE = next((Path(__file__).parents[2] / "recordings" / "samples").glob("*.mcap"))


def convert(*args: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "vrik", "convert", *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8")


def test_the_way_to_npz_and_back_keeps_every_pose(tmp_path: Path) -> None:
    there, back = tmp_path / "a b ü.npz", tmp_path / "back.mcap"

    first, second = convert(SAMPLE, there), convert(there, back, "--json")

    assert first.returncode == 0, first.stderr
    assert second.returncode == 0, second.stderr
    before, after = read_all(open_recording(SAMPLE)), read_all(open_recording(back))
    assert f"{len(before)} frames" in first.stdout
    assert json.loads(second.stdout)["frames"] == len(before) == len(after)
    np.testing.assert_allclose(after.position[after.valid], before.position[before.valid], atol=1e-6)


@pytest.mark.parametrize("name", ["out.xyz", "out"])
def test_an_unknown_ending_is_wrong_usage_that_lists_the_known_ones(tmp_path: Path, name: str) -> None:
    done = convert(SAMPLE, tmp_path / name)

    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert ".npz" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_source_that_is_no_recording_leaves_the_old_target_alone(tmp_path: Path) -> None:
    source, target = tmp_path / "source.mcap", tmp_path / "target.mcap"
    source.write_text("no recording")
    target.write_text("precious")

    done = convert(source, target)

    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert target.read_text() == "precious"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["source.mcap", "target.mcap"]


@pytest.mark.parametrize("target", ["no such folder/out.npz", "file/out.npz"])
def test_a_target_that_cannot_be_written_is_one_sentence(tmp_path: Path, target: str) -> None:
    (tmp_path / "file").write_text("")

    done = convert(SAMPLE, tmp_path / target)

    assert done.returncode == 1
    assert done.stderr.startswith("vrik: ")
    assert done.stderr.count("\n") == 1
    assert "bug" not in done.stderr


def test_one_path_is_wrong_usage() -> None:
    done = convert(SAMPLE)

    assert done.returncode == 2
    assert "vrik convert --help" in done.stderr
