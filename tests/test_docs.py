"""What the documentation shows works: its programs run, its links lead somewhere, its commands exist."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from vrik.cli.commands import COMMANDS

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
RUNNABLE = re.compile(r"^<!-- run -->\n+```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
TIMEOUT_S = 120.0
"""Generous: the first program may have to compile everything."""

MACHINE_PATH = re.compile(r"(?<![\w.:/-])(/(?:work|opt|tmp|home|root|Users|mnt)/|[A-Za-z]:\\|\.\./shared)")


def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def programs() -> list[object]:
    return [
        pytest.param(code, id=f"{page.name}-{number}")
        for page in PAGES
        for number, code in enumerate(RUNNABLE.findall(text_of(page)), 1)
    ]


def anchors(page: Path) -> set[str]:
    """What the headings of a page can be linked by, as GitHub makes it."""
    outside = re.sub(r"^```.*?^```", "", text_of(page), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ +(.+?) *$", outside, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("code", programs())
def test_the_program_runs(code: str, tmp_path: Path) -> None:
    settings = {"PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"}

    done = subprocess.run(
        [sys.executable, "-"],
        input=code,
        text=True,
        encoding="utf-8",
        capture_output=True,
        cwd=tmp_path,
        env={**os.environ, **settings},
        timeout=TIMEOUT_S,
    )

    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_run_mark_is_followed_by_a_python_block(page: Path) -> None:
    """Else a slip of the keyboard would silently take a program out of the tests."""
    marks = len(re.findall(r"^\s*<!--\s*run\b", text_of(page), re.MULTILINE))

    assert len(RUNNABLE.findall(text_of(page))) == marks


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_within_the_project_leads_somewhere(page: Path) -> None:
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)", text_of(page)):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        place = page.parent / name if name else page
        if not place.exists() or (anchor and anchor not in anchors(place)):
            broken.append(target)

    assert broken == []


def commands_shown(text: str) -> set[str]:
    """The first words after ``vrik`` in code, and only there: "vrik solves" in a sentence is no command."""
    fenced = "\n".join(re.findall(r"^ *```\w*\n(.*?)^ *```", text, re.MULTILINE | re.DOTALL))
    calls = re.findall(r"^ *(?:\$ |.*&& )?vrik ([a-z]+)\b", fenced, re.MULTILINE)
    return {*calls, *re.findall(r"`vrik ([a-z]+)\b[^`\n]*`", text)}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_that_is_shown_exists(page: Path) -> None:
    text = re.sub(r"^Not there yet:.*?\n\n", "", text_of(page), flags=re.MULTILINE | re.DOTALL)

    assert commands_shown(text) <= set(COMMANDS)


def test_commands_are_found_in_code_only() -> None:
    text = (
        "vrik sings; `vrik play FILE`\n```\n$ vrik look x\npip install . && vrik run\nvrik: an error\n```\n"
    )

    assert commands_shown(text) == {"play", "look", "run"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_path_of_somebodys_machine_is_in_it(page: Path) -> None:
    assert MACHINE_PATH.findall(text_of(page)) == []


def test_every_command_is_described_on_the_commands_page() -> None:
    headings = re.findall(r"^## vrik (\w+)$", text_of(ROOT / "docs" / "commands.md"), re.MULTILINE)

    assert set(headings) == set(COMMANDS)
