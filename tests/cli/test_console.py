"""What commands share: messages, JSON, tables, and progress that stays out of the way."""

from __future__ import annotations

import io
import json
import re
import sys
import time
from enum import IntEnum
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from recordings.base import listening, reading
from vrik.cli import console


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Color(IntEnum):
    RED = 3


def test_json_is_one_document_of_plain_values(capsys: pytest.CaptureFixture[str]) -> None:
    console.print_json(
        {"a": np.arange(2), "b": np.float64(1.5), "c": (1, Color.RED), 4: None, "e": np.bool_(True), "ü": "ü"}
    )

    assert json.loads(capsys.readouterr().out) == {
        "a": [0, 1], "b": 1.5, "c": [1, 3], "4": None, "e": True, "ü": "ü",
    }  # fmt: skip


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, float("nan")])
def test_json_has_null_for_what_is_not_finite(capsys: pytest.CaptureFixture[str], value: float) -> None:
    """NaN is no JSON, and strict readers refuse it."""
    console.print_json({"x": value, "y": np.array([value, 1.0])})

    assert json.loads(capsys.readouterr().out) == {"x": None, "y": [None, 1.0]}


def test_json_can_be_printed_on_an_ascii_console(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", stream)

    console.print_json({"path": "日本"})

    stream.seek(0)
    assert json.loads(stream.read()) == {"path": "日本"}


def test_tables_use_ascii_where_the_console_has_no_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    from rich.table import Table

    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", stream)
    table = Table("name", "rate")
    table.add_row("headset", "90")

    console.stdout_console().print(table)

    stream.seek(0)
    assert "headset" in stream.read()


def test_quick_work_shows_no_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)

    with console.progress("reading", 10) as at:
        for i in range(10):
            at(i)

    assert terminal.getvalue() == ""


def test_slow_work_shows_a_bar_on_stderr(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(console, "BAR_AFTER_S", 0.0)

    monkeypatch.setattr(console, "REDRAW_S", 0.0)

    with console.progress("reading") as at:
        for done in (1, 3, 5):
            time.sleep(0.1)
            at(done, 10)
        time.sleep(0.7)  # the time left is renewed twice a second

    assert "reading" in terminal.getvalue()
    assert "5/10" in terminal.getvalue()
    assert re.search(r"\d:\d\d:\d\d", terminal.getvalue()), "the time left"
    assert capsys.readouterr().out == ""


def test_a_pipe_gets_no_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = io.StringIO()
    monkeypatch.setattr(sys, "stderr", pipe)
    monkeypatch.setattr(console, "BAR_AFTER_S", 0.0)

    with console.progress("reading", 10) as at:
        at(5)

    assert pipe.getvalue() == ""


@pytest.mark.parametrize("terminal", [True, False])
@pytest.mark.parametrize("compiles", [True, False])
def test_warm_up_speaks_only_when_something_compiles(
    monkeypatch: pytest.MonkeyPatch, terminal: bool, compiles: bool
) -> None:
    def warm_up(on_progress: object) -> None:
        if compiles:
            assert callable(on_progress)
            on_progress(1, "reach")
            on_progress(2, "bend")

    module = ModuleType("vrik.warm")
    module.warm_up = warm_up
    monkeypatch.setitem(sys.modules, "vrik.warm", module)
    stream = Terminal() if terminal else io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)

    console.warm_up()

    assert ("compiling" in stream.getvalue()) == compiles
    if not terminal:
        assert stream.getvalue().count("\n") == int(compiles)


def test_work_of_unknown_length_shows_a_bar_only_when_it_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    for after_s, shown in ((60.0, False), (0.0, True)):
        terminal = Terminal()
        monkeypatch.setattr(sys, "stderr", terminal)
        monkeypatch.setattr(console, "BAR_AFTER_S", after_s)

        with console.progress("reading"):
            time.sleep(0.2)

        assert ("reading" in terminal.getvalue()) == shown


def test_whatever_reads_inside_moves_the_bar_and_a_new_count_begins_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(console, "BAR_AFTER_S", 0.0)
    monkeypatch.setattr(console, "REDRAW_S", 0.0)

    with console.reading(Path("take.bvh")):
        for done, total in ((400, 500), (500, 500), (3, 7)):
            reading(done, total)
            time.sleep(0.3)

    assert "reading take.bvh" in terminal.getvalue()
    assert "500/500" in terminal.getvalue()
    assert "3/7" in terminal.getvalue()


def test_nobody_has_to_listen() -> None:
    reading(1, 2)

    with pytest.raises(RuntimeError), listening(lambda done, total: None):
        raise RuntimeError
    reading(2, 2)
