"""``vrik repair``: says what was saved and lost, in words and as JSON, and harms no file."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from recordings import open_recording, read_all

SAMPLE = next((Path(__file__).parents[2] / "recordings" / "samples").glob("*.mcap"))


def repair(*args: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "vrik", "repair", *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8")


def test_a_cut_and_garbled_file_is_saved_and_told(tmp_path: Path) -> None:
    content = bytearray(SAMPLE.read_bytes())
    content[200_000:200_040] = bytes(40)
    source, target = tmp_path / "cut ü.mcap", tmp_path / "whole.mcap"
    source.write_bytes(content[: len(content) * 3 // 4])

    words, data = repair(source, target), repair(source, target, "--json")

    report = json.loads(data.stdout)
    assert words.returncode == data.returncode == 0, words.stderr
    assert report["frames"] == len(read_all(open_recording(target))) > 500
    assert f"saved: {report['frames']} frames" in words.stdout
    assert f"lost: {report['frames_lost']} frames" in words.stdout
    assert report["frames_lost"] > 0
    assert report["truncated"]
    assert "not known" in words.stdout
    assert words.stderr == ""
    assert source.read_bytes() == content[: len(content) * 3 // 4]


def test_an_undamaged_file_is_said_to_be(tmp_path: Path) -> None:
    done = repair(SAMPLE, tmp_path / "out.mcap")

    assert done.returncode == 0, done.stderr
    assert "is undamaged" in done.stdout
    assert "lost" not in done.stdout
    assert len(read_all(open_recording(tmp_path / "out.mcap"))) == len(read_all(open_recording(SAMPLE)))


@pytest.mark.parametrize(
    ("content", "out", "code", "words"),
    [
        (b"HIERARCHY\nROOT a\n{\n}\n", "b.mcap", 1, "only vrik's can be repaired"),
        (SAMPLE.read_bytes()[:400], "b.mcap", 1, "truncated before"),
        (b"", "b.mcap", 1, "empty"),
        (SAMPLE.read_bytes(), "b.npz", 2, "ends in .mcap"),
        (SAMPLE.read_bytes(), "a.mcap", 2, "the recording itself"),
        (SAMPLE.read_bytes(), "none/b.mcap", 1, "cannot write"),
    ],
)
def test_what_cannot_be_ends_in_one_sentence(
    tmp_path: Path, content: bytes, out: str, code: int, words: str
) -> None:
    (tmp_path / "a.mcap").write_bytes(content)

    done = repair(tmp_path / "a.mcap", tmp_path / out)

    assert done.returncode == code
    assert words in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""
    assert [p.name for p in tmp_path.iterdir()] == ["a.mcap"]
    assert (tmp_path / "a.mcap").read_bytes() == content


def test_two_recordings_in_one_file_are_both_saved_and_told(tmp_path: Path) -> None:
    """The second begins at the time of the first, so it is no continuation and gets a file of its own."""
    (tmp_path / "a.mcap").write_bytes(2 * SAMPLE.read_bytes())

    done = repair(tmp_path / "a.mcap", tmp_path / "out.mcap")

    assert done.returncode == 0, done.stderr
    assert "held 2 recordings" in done.stdout
    assert "out-2.mcap: recording 2" in done.stdout
    for name in ("out.mcap", "out-2.mcap"):
        assert len(read_all(open_recording(tmp_path / name))) == len(read_all(open_recording(SAMPLE)))
