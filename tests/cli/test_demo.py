"""``vrik demo``: one command, no hardware, and there is a moving body."""

from __future__ import annotations

import io
import json
import re
import sys
import webbrowser
from pathlib import Path

import pytest

from recordings import open_recording
from recordings.samples import sample
from vrik.cli import main

NOWHERE = ["--to", "vmc://127.0.0.1:9"]
FAST = ["--speed", "0", *NOWHERE]


@pytest.fixture(scope="module", autouse=True)
def warm_cache() -> None:
    """Compiled before anything is said about it."""
    from vrik.cli import console

    console.warm_up()


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def frames_of(points: int) -> int:
    return sum(map(len, open_recording(sample(f"session_{points}points")).blocks()))


@pytest.mark.parametrize(("points", "worn"), [(3, 3), (6, 6)])
def test_the_demo_plays_a_session_and_writes_its_page(
    points: int, worn: int, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["demo", *FAST, "--points", str(points), "--json"])

    end = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert code == 0
    assert end["frames"] == frames_of(points)
    assert len(end["devices"]) == worn
    assert 1.6 < end["stature_m"] < 1.8
    for device in end["devices"][:3]:  # head and hands
        assert device["reach_error_mm"]["mean"] < 1.0
        assert device["tracked_share"] > 0.95
    assert end["page"] == str(folder / "vrik-demo.html")
    page = Path(end["page"]).read_text(encoding="utf-8")
    assert f"vrik demo, {points} points" in page
    assert not re.search(r"""(src|href)\s*=\s*["']?(https?:|//)""", page)


def test_it_goes_to_the_usual_port_unless_told_otherwise(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--speed", "0"]) == 0
    usual = capsys.readouterr().out
    assert main(["demo", *FAST]) == 0
    told = capsys.readouterr().out

    assert "vmc://127.0.0.1:39539" in usual
    assert "vmc://127.0.0.1:39539" not in told
    assert "vmc://127.0.0.1:9 " in told


def test_the_table_shows_devices_streams_and_the_page(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["demo", *FAST]) == 0

    said = capsys.readouterr().out
    for word in (
        "VRIK-HMD-0001",
        "left_hand",
        "tracked",
        "datagrams",
        "refused",
        "nobody listens",
        "frames/s",
    ):
        assert word in said
    assert said.rstrip().splitlines()[-1] == f"page: {folder / 'vrik-demo.html'}"


def test_open_opens_the_page_that_was_written(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", opened.append)

    assert main(["demo", *FAST, "--open", "--page", "my page.html"]) == 0

    assert opened == [(folder / "my page.html").as_uri()]


def test_a_usual_place_that_cannot_be_written_costs_only_the_page(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "vrik-demo.html").mkdir()

    code = main(["demo", *FAST])

    streams = capsys.readouterr()
    assert code == 0
    assert "playing without it" in streams.err
    assert streams.err.count("\n") == 1
    assert "page:" not in streams.out


def test_a_page_that_fails_at_the_end_costs_only_the_page_unless_it_was_named(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full_disk(path: Path, write: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("vrik.sinks.page.write_whole", full_disk)
    codes, told = [], []
    for flags in ([], ["--page", "mine.html"]):
        codes.append(main(["demo", *FAST, *flags]))
        told.append(capsys.readouterr())

    assert codes == [0, 1]
    for streams in told:
        assert "No space left on device" in streams.err
        assert streams.err.count("\n") == 1
        assert f"{frames_of(3)} frames" in streams.out


def test_where_the_live_table_is_drawn_it_is_gone_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal: a table while it plays, one final table after it, no leftovers between."""

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    screen = Terminal()
    monkeypatch.setattr(sys, "stdout", screen)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")

    assert main(["demo", "--speed", "40", *NOWHERE]) == 0

    text = screen.getvalue()
    assert "\x1b[?25l" in text  # cursor hidden while the table moves
    assert text.count("\x1b[?25h") >= 1
    assert text.rstrip().splitlines()[-1].startswith("page: ")
