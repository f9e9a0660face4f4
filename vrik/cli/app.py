"""From the command line to one command, and from whatever happens there to an exit code."""

from __future__ import annotations

import errno
import io
import os
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from importlib import import_module
from types import ModuleType

from vrik.cli.commands import COMMANDS, help_text
from vrik.cli.console import fail, tolerate_any_console
from vrik.cli.stop import Terminated, signals_end_the_work
from vrik.errors import UsageError, VrikError

FAILED, WRONG_USAGE, INTERRUPTED, TERMINATED = 1, 2, 130, 143


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``vrik`` with ``argv`` (the process's own arguments by default).

    Returns:
        The exit code; whatever went wrong has been said on stderr in one line.
    """
    tolerate_any_console()
    args = list(sys.argv[1:] if argv is None else argv)
    with signals_end_the_work():
        return _guarded(lambda: _dispatch(args))


def _dispatch(args: list[str]) -> int:
    name = args[0] if args else ""
    if name in ("-h", "--help"):
        print(help_text())
        return 0
    if name in ("-V", "--version"):
        import vrik

        print(f"vrik {vrik.__version__}")
        return 0
    if name not in COMMANDS:
        raise UsageError(_unknown(name))
    module = import_module(COMMANDS[name].module)
    return int(module.run(_parse(name, module, args[1:])))


def _unknown(name: str) -> str:
    """What to say about a first argument that is no command."""
    if not name:
        return f"a command is missing, one of: {', '.join(COMMANDS)}. See: vrik --help"
    if name.startswith("-"):
        return f"there is no option {name} before a command. See: vrik --help"
    near = _nearest(name, COMMANDS)
    hint = f"did you mean 'vrik {near}'?" if near else f"there are: {', '.join(COMMANDS)}."
    return f"there is no command {name!r}; {hint} See: vrik --help"


def _nearest(word: str, words: Iterable[str]) -> str:
    """The most similar of ``words``; "" when none is."""
    from difflib import get_close_matches

    return next(iter(get_close_matches(word, list(words), 1, 0.5)), "")


def _parse(name: str, module: ModuleType, args: list[str]) -> object:
    """Arguments to the command's settings.

    Raises:
        UsageError: If a flag is unknown.
        SystemExit: After the help, or what else is wrong, has been printed.
    """
    import tyro

    def parse(words: list[str]) -> object:
        parsed: object = tyro.cli(
            module.Config, prog=f"vrik {name}", args=words, config=(tyro.conf.FlagCreatePairsOff,)
        )
        return parsed

    complaint, text = io.StringIO(), io.StringIO()
    try:
        with redirect_stderr(complaint):
            return parse(args)
    except SystemExit:
        if not complaint.getvalue():
            raise
    with redirect_stdout(text), suppress(SystemExit):
        parse(["--help"])
    known = set(re.findall(r"(?<![\w-])--[\w.-]+", text.getvalue()))
    # A word after an unknown flag is taken for its value, and tyro then speaks of what is missing instead.
    for word in args[: args.index("--")] if "--" in args else args:
        flag = word.split("=", 1)[0].replace("_", "-")
        if flag.startswith("--") and flag not in known:
            near = _nearest(flag, known)
            hint = f"did you mean {near}? " if near else ""
            raise UsageError(f"'vrik {name}' has no option {flag}; {hint}See: vrik {name} --help")
    raise UsageError(f"{_unboxed(complaint.getvalue())}. See: vrik {name} --help")


def _unboxed(text: str) -> str:
    """What tyro says inside its box, in one line, without the help it repeats."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", text)
    words = []
    for line in text.splitlines():
        line = line.strip().strip("│|").strip()
        if re.fullmatch(r"[─╭╮╰╯├┤+\-=]*", line) or re.match(r"[╭+]", line):
            continue
        if line.startswith(("For full helptext", "Argument helptext", "usage:")):
            break
        words.append(line)
    return " ".join(" ".join(words).split()).rstrip(".") or "wrong usage"


def _guarded(work: Callable[[], int]) -> int:
    """Do the work; every way it can end becomes an exit code."""
    try:
        code = work()
        if sys.stdout is not None:
            sys.stdout.flush()
        return code
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0 if end.code is None else FAILED
    except KeyboardInterrupt:
        return INTERRUPTED
    except Terminated:
        return TERMINATED
    except VrikError as error:
        return fail(str(error), error.exit_code)
    except OSError as error:
        if _reader_has_gone(error):
            _drop_stdout()
            return 0
        return fail(_os_sentence(error), FAILED)
    except Exception as error:
        return fail(
            f"this is a bug in vrik ({type(error).__name__}: {error}); "
            "please report it with the traceback that VRIK_TRACEBACK=1 shows",
            FAILED,
        )


def _os_sentence(error: OSError) -> str:
    """One sentence for what the system refused."""
    name = "" if error.filename is None else f" {os.fsdecode(error.filename)}"
    if isinstance(error, FileNotFoundError):
        return f"there is no file{name}; check the path"
    if isinstance(error, IsADirectoryError):
        return f"{name.strip() or 'the path'} is a folder; name a file in it"
    if isinstance(error, PermissionError):
        return f"no permission to use{name or ' a file'}; check who may read and write it"
    return f"the system refused{name}: {error.strerror or error}"


def _reader_has_gone(error: OSError) -> bool:
    """Whether the program that read our stdout (``| head``) has ended; Windows calls that EINVAL."""
    on_windows = os.name == "nt" and error.errno == errno.EINVAL and error.filename is None
    return isinstance(error, BrokenPipeError) or on_windows


def _drop_stdout() -> None:
    """Let the rest of the output go nowhere, quietly."""
    with suppress(OSError, ValueError, AttributeError):  # stdout may be closed or no real file
        sink = os.open(os.devnull, os.O_WRONLY)
        os.dup2(sink, sys.stdout.fileno())
        os.close(sink)
