"""What is wrong gets one sentence on stderr, the right exit code and no traceback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from vrik.cli import main

SAMPLE = Path(__file__).parents[2] / "recordings" / "samples" / "session_3points.mcap"
FAST = ["--speed", "0", "--no-page", "--to", "vmc://127.0.0.1:9"]


@pytest.fixture(scope="module", autouse=True)
def warm_cache() -> None:
    """Compiled before anything is said about it."""
    from vrik.cli import console

    console.warm_up()


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Files of all kinds that are no recordings."""
    monkeypatch.chdir(tmp_path)
    Path("folder").mkdir()
    Path("empty.mcap").touch()
    Path("text.txt").write_text("hello\n")
    Path("random.bin").write_bytes(bytes(i * i * 7919 % 251 for i in range(5000)))
    Path("header only.csv").write_text("Time\n")
    return tmp_path


Refused = Callable[..., str]


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str]) -> Refused:
    """``refused(code, *args)``: the one sentence the command ends with."""

    def run(code: int, *args: str) -> str:
        got = main(list(args))
        streams = capsys.readouterr()
        assert got == code, streams.err
        assert streams.out == ""
        assert streams.err.startswith("vrik: ")
        assert streams.err.count("\n") == 1
        assert "Traceback" not in streams.err
        assert "bug in vrik" not in streams.err
        return streams.err

    return run


COMMANDS = (["solve", "-o", "out.npz"], ["replay", *FAST])


@pytest.mark.parametrize("command", COMMANDS, ids=["solve", "replay"])
@pytest.mark.parametrize(
    "name",
    ["missing.mcap", "folder", "empty.mcap", "text.txt", "random.bin", "header only.csv", "text.txt/x"],
)
def test_what_is_no_recording_fails_and_is_named(refused: Refused, command: list[str], name: str) -> None:
    assert name in refused(1, *command, name)


@pytest.mark.parametrize("command", COMMANDS, ids=["solve", "replay"])
def test_a_recording_in_which_nothing_is_tracked_says_so(
    refused: Refused, shared: Path, command: list[str]
) -> None:
    path = shared / "data" / "vr" / "nolicence" / "vive_csv" / "all_zero.csv"

    assert "no usable frames" in refused(1, *command, str(path))


@pytest.mark.parametrize("command", COMMANDS, ids=["solve", "replay"])
def test_a_recording_without_a_head_says_so(refused: Refused, command: list[str]) -> None:
    said = refused(1, *command, str(SAMPLE), "--role", "VRIK-HMD-0001=")

    assert "head" in said


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="the administrator may read everything")
def test_a_file_that_may_not_be_read_says_so(refused: Refused) -> None:
    path = Path("secret.mcap")
    path.write_bytes(SAMPLE.read_bytes())
    path.chmod(0)

    assert "secret.mcap" in refused(1, "solve", "secret.mcap", "-o", "out.npz")


@pytest.mark.parametrize(
    "url",
    ["127.0.0.1:39539", "http://127.0.0.1:1", "vmc://host", "vmc://h:0", "vmc://h:99999", "vmc://:1", ""],
)
def test_a_malformed_url_is_wrong_usage_before_anything_is_read(refused: Refused, url: str) -> None:
    assert "vmc://127.0.0.1:39539" in refused(2, "replay", "missing.mcap", "--to", url)


def test_an_unknown_host_fails_only_when_no_target_works(
    refused: Refused, capsys: pytest.CaptureFixture[str]
) -> None:
    unknown = "vmc://no.such.host.invalid:39539"
    args = ["replay", str(SAMPLE), "--speed", "0", "--no-page", "--json"]

    assert "no.such.host.invalid" in refused(1, *args, "--to", unknown)
    code = main([*args, "--to", unknown, "--to", "vmc://127.0.0.1:9"])

    streams = capsys.readouterr()
    assert code == 0
    assert "no.such.host.invalid" in streams.err
    assert [stream["url"] for stream in json.loads(streams.out.splitlines()[-1])["streams"]] == [
        "vmc://127.0.0.1:9"
    ]


@pytest.mark.parametrize("speed", ["-1", "nan", "inf", "1e-300"])
def test_a_speed_that_makes_no_sense_is_wrong_usage(refused: Refused, speed: str) -> None:
    assert "speed" in refused(2, "replay", str(SAMPLE), "--no-page", "--speed", speed)


def test_a_huge_speed_is_only_fast() -> None:
    assert main(["replay", str(SAMPLE), "--no-page", "--speed", "1e300", "--to", "vmc://127.0.0.1:9"]) == 0


@pytest.mark.parametrize(
    ("flags", "word"),
    [
        (["--height", "0"], "--height"),
        (["--height", "nan"], "--height"),
        (["--height", "1e9"], "--height"),
        (["--calibrate-on", "0"], "--calibrate-on"),
        (["--calibrate-on", "-3"], "--calibrate-on"),
        (["--calibrate-on", "nan"], "--calibrate-on"),
        (["--role", "head"], "--role"),
        (["--role", "=head"], "--role"),
        (["--role", "VRIK-HMD-0001=hat"], "left_foot"),
        (["--role", "NOT-THERE=head"], "VRIK-HMD-0001"),
        (["--space.yaw-deg", "nan"], "--space.yaw-deg"),
        (["--space.x-m", "1e30"], "--space.x-m"),
        (["--condition.hold-s", "-1"], "--condition.hold-s"),
        (["--solve.max-rounds", "-5"], "--solve.max-rounds"),
        (["--solve.stepping.swing-s", "inf"], "--solve.stepping.swing-s"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
@pytest.mark.parametrize("command", COMMANDS, ids=["solve", "replay"])
def test_a_value_that_makes_no_sense_is_wrong_usage(
    refused: Refused, command: list[str], flags: list[str], word: str
) -> None:
    assert word in refused(2, *command, str(SAMPLE), *flags)


@pytest.mark.parametrize(
    "command", [["solve", "x", "-o", "y"], ["replay", "x"], ["demo"]], ids=lambda c: c[0]
)
def test_an_unknown_flag_is_wrong_usage_and_named(refused: Refused, command: list[str]) -> None:
    assert "--no-such-flag" in refused(2, *command, "--no-such-flag", "7")


@pytest.mark.parametrize(
    "args",
    [
        ["solve"],
        ["solve", "a.mcap"],
        ["solve", "a.mcap", "-o"],
        ["solve", "-o", "x.npz"],
        ["solve", "a.mcap", "-o", "x.npz", "--height", "tall"],
        ["replay"],
        ["replay", "a.mcap", "b.mcap"],
        ["replay", "a.mcap", "--to"],
        ["demo", "a.mcap"],
        ["demo", "--points", "4"],
        ["demo", "--speed", "fast"],
    ],
    ids=" ".join,
)
def test_what_is_missing_or_too_much_is_wrong_usage(
    args: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(args)

    streams = capsys.readouterr()
    assert (code, streams.out) == (2, "")
    assert f"vrik {args[0]}" in streams.err
    assert "Traceback" not in streams.err


# ---- where the result goes


@pytest.mark.parametrize("kind", ["npz", "jsonl", "mcap"])
def test_a_result_in_a_folder_that_is_not_there_fails_before_the_work(refused: Refused, kind: str) -> None:
    assert "no/folder" in refused(1, "solve", "missing.mcap", "-o", f"no/folder/x.{kind}").replace("\\", "/")


def test_the_recording_itself_is_not_written_over(refused: Refused, folder: Path) -> None:
    path = folder / "mine.mcap"
    path.write_bytes(SAMPLE.read_bytes())

    for name in ("mine.mcap", "./folder/../mine.mcap", str(path)):
        assert "is the recording itself" in refused(2, "solve", "mine.mcap", "-o", name)
    assert path.read_bytes() == SAMPLE.read_bytes()


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (["a.mcap", "-o", "x.bvh"], 2),
        (["a.mcap", "-o", "x"], 2),
        (["a.mcap", "-o", "x.npz", "--format", "fbx"], 2),
        (["a.mcap", "-o", "folder"], 2),
        (["a.mcap", "b.mcap", "-o", "folder"], 2),
        (["a.mcap", "folder/a.bsor", "-o", "folder", "--format", "npz"], 2),
        (["a.mcap", "b.mcap", "-o", "text.txt", "--format", "npz"], 1),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_result_that_cannot_be_told_or_made_is_said_before_anything_is_read(
    refused: Refused, args: list[str], code: int
) -> None:
    refused(code, "solve", *args)


@pytest.mark.parametrize("page", ["folder", "no/folder/x.html", "text.txt/x.html"])
def test_a_named_page_without_a_place_is_said_before_the_session(refused: Refused, page: str) -> None:
    assert "cannot write the page" in refused(2, "replay", "missing.mcap", "--page", page)


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="the administrator may write everywhere")
def test_a_named_page_in_a_folder_that_may_not_be_written_is_said_before_the_session(
    refused: Refused,
) -> None:
    Path("folder").chmod(0o555)

    assert "Permission denied" in refused(2, "replay", "missing.mcap", "--page", "folder/x.html")


# ---- consoles


def vrik(*args: str | Path, **options: object) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **options.pop("environment", {})}  # type: ignore[dict-item]
    command = [sys.executable, "-m", "vrik", *map(str, args)]
    return subprocess.run(
        command,
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        **options,  # type: ignore[call-overload]
    )


ASCII = {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
C_LOCALE = {"LANG": "C", "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


@pytest.mark.parametrize("environment", [ASCII, C_LOCALE], ids=["ascii", "C locale"])
def test_paths_of_all_letters_work_on_a_console_that_lacks_them(
    folder: Path, environment: dict[str, str]
) -> None:
    path = folder / "my session ü 日本.mcap"
    path.write_bytes(SAMPLE.read_bytes())

    page, result = folder / "seite ü.html", folder / "böse ü.npz"
    runs = [vrik("replay", path, *FAST[:2], "--page", page, stdout=-1, environment=environment)]
    if environment is C_LOCALE:
        runs.append(vrik("solve", path, "-o", result, stdout=-1, environment=environment))

    for done in runs:
        assert done.returncode == 0, done.stderr
        assert done.stdout.isascii()
        assert done.stderr == ""
    assert "<title>my session ü 日本<" in page.read_text(encoding="utf-8")
    assert result.exists() == (environment is C_LOCALE)


@pytest.mark.skipif(os.name == "nt", reason="a shell closes the stream")
@pytest.mark.parametrize("closed", [">&-", "2>&-"])
def test_closed_streams_are_no_problem(folder: Path, closed: str) -> None:
    command = f'exec "{sys.executable}" -m vrik demo --speed 0 --json {closed}'

    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, cwd=folder)

    assert done.returncode == 0
    assert done.stderr == ""
    assert (folder / "vrik-demo.html").exists()
    if closed == "2>&-":
        assert json.loads(done.stdout.splitlines()[-1])["event"] == "summary"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_disk_behind_stdout_is_one_sentence(folder: Path) -> None:
    with open("/dev/full", "w") as full:
        done = vrik("demo", "--speed", "0", stdout=full)

    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "No space left" in done.stderr
    assert (folder / "vrik-demo.html").exists()
