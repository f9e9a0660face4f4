"""``vrik inspect``: a table for a person, JSON for a program, one sentence for a file that is none."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SAMPLE = next((Path(__file__).parents[2] / "recordings" / "samples").glob("*.mcap"))


def vrik(*args: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "vrik", *map(str, args)]
    return subprocess.run(
        command, env={**os.environ, **environment}, capture_output=True, text=True, encoding="utf-8"
    )


@pytest.fixture(scope="module")
def report() -> dict[str, Any]:
    done = vrik("inspect", SAMPLE, "--json")
    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def test_json_is_one_document_with_everything_the_library_found(report: dict[str, Any]) -> None:
    from recordings.inspect import inspect

    assert report == json.loads(json.dumps(inspect(SAMPLE).to_json()))


def test_the_table_says_what_the_json_says(report: dict[str, Any]) -> None:
    done = vrik("inspect", SAMPLE)

    assert done.returncode == 0, done.stderr
    assert f"{report['frames']} frames" in done.stdout
    assert f"{report['rate_hz']:.1f} Hz" in done.stdout
    for device in report["devices"]:
        tracked, movement = (line for line in done.stdout.splitlines() if line.startswith(device["serial"]))
        assert f"{min(99.9, 100.0 * device['valid_share']):.1f} %" in tracked or device["valid_share"] == 1.0
        assert (device["role"] or "-") in tracked.split()
        assert f"{device['height_median_m']:.2f} m" in movement
    for sentence in [*report["notes"], *report["odd"]]:
        assert sentence in done.stdout


def test_the_tables_fit_80_columns() -> None:
    done = vrik("inspect", SAMPLE, COLUMNS="80")

    table = done.stdout[done.stdout.index("device ") : done.stdout.index("odd:")]
    assert max(map(len, table.splitlines())) <= 84
    assert "…" not in table


def test_an_ascii_console_gets_ascii() -> None:
    done = vrik("inspect", SAMPLE, PYTHONIOENCODING="ascii", PYTHONUTF8="0")

    assert done.returncode == 0, done.stderr
    assert done.stdout.isascii()


def test_a_path_with_spaces_and_letters_of_all_kinds_works_on_any_console(tmp_path: Path) -> None:
    path = tmp_path / "my session ü 日本.mcap"
    shutil.copy(SAMPLE, path)

    for encoding in ("utf-8", "ascii"):
        for flags in ([], ["--json"]):
            done = vrik("inspect", path, *flags, PYTHONIOENCODING=encoding, PYTHONUTF8="0")
            assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["path"] == str(path)


@pytest.mark.parametrize("kind", ["missing", "folder", "empty", "text", "binary"])
def test_what_is_no_recording_is_one_sentence_on_stderr(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"{kind}.mcap"
    if kind == "folder":
        path.mkdir()
    elif kind != "missing":
        path.write_bytes({"empty": b"", "text": b"hello\n", "binary": bytes(range(256)) * 40}[kind])

    done = vrik("inspect", path, "--json")

    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("vrik: ")
    assert done.stderr.count("\n") == 1
    assert str(path) in done.stderr
    assert "bug" not in done.stderr


def test_a_recording_cut_in_the_middle_is_still_looked_over(tmp_path: Path, report: dict[str, Any]) -> None:
    path = tmp_path / "cut.mcap"
    data = SAMPLE.read_bytes()
    path.write_bytes(data[: len(data) // 2])

    done = vrik("inspect", path, "--json")

    assert done.returncode == 0, done.stderr
    cut = json.loads(done.stdout)
    assert 0 < cut["frames"] < report["frames"]
    assert any("cut" in s or "truncated" in s for s in [*cut["notes"], *cut["odd"], *cut["counts"]])


def test_no_file_is_wrong_usage() -> None:
    done = vrik("inspect")

    assert done.returncode == 2
    assert done.stdout == ""
    assert "vrik inspect --help" in done.stderr
