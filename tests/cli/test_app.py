"""The ``vrik`` command: finding a command, and how every way of ending becomes an exit code."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest

from vrik import errors
from vrik.cli import commands, main
from vrik.cli.commands import COMMANDS, EXIT_CODES, Command

VRIK = [sys.executable, "-m", "vrik"]


@dataclass(frozen=True)
class Config:
    """A command made for these tests."""

    number: int = 1
    """A number."""

    loud: bool = False
    """A switch."""


def run(*args: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*VRIK, *args], env={**os.environ, **environment}, capture_output=True, text=True, errors="replace"
    )


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[Config], int]], None]:
    """``command(work)`` makes ``vrik try`` do ``work(config)``."""

    def install(work: Callable[[Config], int]) -> None:
        module = ModuleType("vrik_command_for_tests")
        module.Config, module.run = Config, work
        monkeypatch.setitem(sys.modules, module.__name__, module)
        monkeypatch.setitem(COMMANDS, "try", Command(module.__name__, "made for tests"))

    return install


def raising(error: BaseException) -> Callable[[Config], int]:
    def work(config: Config) -> int:
        raise error

    return work


# ---- help, version, choice of the command


@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_help_lists_every_command_and_exit_code(flag: str) -> None:
    done = run(flag)

    assert done.returncode == 0
    assert done.stderr == ""
    for name, entry in COMMANDS.items():
        assert re.search(rf"^  {name} +{re.escape(entry.summary)}$", done.stdout, re.MULTILINE)
    for code in EXIT_CODES:
        assert re.search(rf"^  {code} ", done.stdout, re.MULTILINE)


@pytest.mark.parametrize("entry", COMMANDS.values(), ids=list(COMMANDS))
def test_every_listed_command_exists_and_its_example_starts_with_it(entry: Command) -> None:
    module = __import__(entry.module, fromlist=["Config", "run"])

    assert callable(module.run)
    assert module.Config.__doc__
    assert not entry.example or entry.example.split()[0] in COMMANDS


@pytest.mark.parametrize("name", list(COMMANDS))
def test_every_command_has_its_own_help(name: str) -> None:
    done = run(name, "--help")

    assert done.returncode == 0, done.stderr
    assert f"usage: vrik {name}" in done.stdout


@pytest.mark.parametrize("flag", ["-V", "--version"])
def test_version_is_the_installed_one(flag: str) -> None:
    import vrik

    assert run(flag).stdout.strip() == f"vrik {vrik.__version__}"


def test_help_lines_fit_a_narrow_terminal() -> None:
    assert max(map(len, commands.help_text().splitlines())) <= 100


def test_an_unknown_command_names_the_nearest_one(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["inspct"])

    streams = capsys.readouterr()
    assert code == 2
    assert streams.out == ""
    assert streams.err.count("\n") == 1
    assert "'vrik inspect'" in streams.err


@pytest.mark.parametrize("args", [["xyzzy"], [], ["--json", "inspect"], [""]])
def test_whatever_is_no_command_is_wrong_usage_in_one_line(
    args: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(args)

    streams = capsys.readouterr()
    assert code == 2
    assert streams.out == ""
    assert streams.err.startswith("vrik: ")
    assert streams.err.count("\n") == 1
    assert "vrik --help" in streams.err


# ---- flags


def test_flags_reach_the_command(command: Callable[..., None]) -> None:
    seen: list[Config] = []
    command(lambda config: seen.append(config) or 0)

    assert main(["try", "--number", "7", "--loud"]) == 0
    assert seen == [Config(7, True)]


@pytest.mark.parametrize("args", [["--numbr", "7"], ["--numbr=7"], ["--lowd"]])
def test_an_unknown_flag_is_wrong_usage_and_names_the_nearest(
    command: Callable[..., None], capsys: pytest.CaptureFixture[str], args: list[str]
) -> None:
    command(lambda config: 0)

    code = main(["try", *args])

    streams = capsys.readouterr()
    assert code == 2
    assert streams.out == ""
    assert streams.err.count("\n") == 1
    assert args[0].split("=")[0] in streams.err
    assert ("--number" if "numbr" in args[0] else "--loud") in streams.err


@pytest.mark.parametrize("args", [["--number", "seven"], ["--number"], ["stray"]])
def test_a_wrong_value_is_wrong_usage_on_stderr(
    command: Callable[..., None], capsys: pytest.CaptureFixture[str], args: list[str]
) -> None:
    command(lambda config: 0)

    code = main(["try", *args])

    streams = capsys.readouterr()
    assert code == 2
    assert streams.out == ""
    assert "vrik try --help" in streams.err
    assert "Traceback" not in streams.err


# ---- endings


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (errors.UsageError("that is\nno URL"), 2, "vrik: that is no URL"),
        (errors.UnknownFormatError("no reader knows it"), 1, "vrik: no reader knows it"),
        (FileNotFoundError(2, "No such file", "a b/ü.mcap"), 1, "there is no file a b/ü.mcap"),
        (IsADirectoryError(21, "Is a directory", "folder"), 1, "folder is a folder"),
        (PermissionError(13, "Permission denied", "secret"), 1, "no permission to use secret"),
        (OSError(28, "No space left on device", "out.mcap"), 1, "No space left on device"),
        (ZeroDivisionError("division by zero"), 1, "this is a bug in vrik (ZeroDivisionError"),
    ],
)
def test_what_goes_wrong_is_one_line_on_stderr(
    command: Callable[..., None], capsys: pytest.CaptureFixture[str], error: Exception, code: int, words: str
) -> None:
    command(raising(error))

    assert main(["try"]) == code

    streams = capsys.readouterr()
    assert streams.out == ""
    assert streams.err.count("\n") == 1
    assert words in streams.err


def test_a_bug_shows_its_traceback_when_asked(
    command: Callable[..., None], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VRIK_TRACEBACK", "1")
    command(raising(ZeroDivisionError("x")))

    main(["try"])

    assert "Traceback" in capsys.readouterr().err


def test_the_commands_own_exit_code_is_passed_on(command: Callable[..., None]) -> None:
    command(lambda config: 1)

    assert main(["try"]) == 1


def test_ctrl_c_is_130(command: Callable[..., None], capsys: pytest.CaptureFixture[str]) -> None:
    command(raising(KeyboardInterrupt()))

    assert main(["try"]) == 130
    assert "Traceback" not in capsys.readouterr().err


def test_sigterm_handling_is_put_back(command: Callable[..., None]) -> None:
    before = signal.getsignal(signal.SIGTERM)
    command(lambda config: 0)

    main(["try"])

    assert signal.getsignal(signal.SIGTERM) == before


FAKE = """
import sys, time
from types import ModuleType
from dataclasses import dataclass
from vrik.cli import main
from vrik.cli.commands import COMMANDS, Command

@dataclass
class Config:
    "Made for tests."

def run(config):
{body}
    return 0

module = ModuleType("fake")
module.Config, module.run = Config, run
sys.modules["fake"] = module
COMMANDS["try"] = Command("fake", "made for tests")
sys.exit(main(["try"]))
"""


def fake(body: str) -> list[str]:
    return [sys.executable, "-c", FAKE.format(body=textwrap.indent(textwrap.dedent(body), "    "))]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such signals between processes")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_command_after_it_closed_its_files(
    tmp_path: Path, number: signal.Signals, code: int
) -> None:
    closed = tmp_path / "closed"
    body = f"""
        try:
            print("ready", flush=True)
            time.sleep(60)
        finally:
            open({str(closed)!r}, "w").close()
    """
    process = subprocess.Popen(fake(body), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"

    process.send_signal(number)
    _, err = process.communicate(timeout=20)

    assert process.returncode == code
    assert closed.exists()
    assert err == ""


@pytest.mark.skipif(os.name == "nt", reason="uses a POSIX pipe")
def test_a_reader_that_has_gone_ends_the_command_quietly() -> None:
    process = subprocess.Popen(
        fake("for _ in range(100_000): print('line')"), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.close()

    assert process.stderr is not None
    err = process.stderr.read()
    process.stderr.close()

    assert process.wait(timeout=20) == 0
    assert err == b""


@pytest.mark.skipif(os.name == "nt", reason="uses a POSIX pipe")
def test_a_reader_that_has_gone_is_no_failure_for_tables_either() -> None:
    """rich, which draws them, would end the program with 1."""
    body = """
        from vrik.cli.console import stdout_console
        for _ in range(10_000):
            stdout_console().print("row")
    """
    process = subprocess.Popen(fake(body), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.close()

    assert process.stderr is not None
    err = process.stderr.read()
    process.stderr.close()

    assert process.wait(timeout=60) == 0
    assert err == b""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_behind_stdout_is_said() -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run([*VRIK, "--help"], stdout=full, stderr=subprocess.PIPE, text=True)

    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "No space left" in done.stderr


# ---- consoles


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "utf-8"])
def test_any_console_encoding_can_show_help_and_errors(encoding: str) -> None:
    """A path may hold letters that the console has not."""
    for args, code in ((["--help"], 0), (["inspect", "--help"], 0), (["inspect", "日本 ü.bsor"], 1)):
        done = run(*args, PYTHONIOENCODING=encoding, PYTHONUTF8="0")

        assert done.returncode == code
        assert "Traceback" not in done.stderr
        assert "bug in vrik" not in done.stderr
