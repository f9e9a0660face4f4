"""Which commands there are, and the text of ``vrik --help``.

A command is a module with a settings dataclass ``Config`` (its flags and help) and ``run(config)``,
which returns the exit code. The module is imported only when its command is called.
"""

from __future__ import annotations

from typing import NamedTuple


class Command(NamedTuple):
    """One command: where it lives, what it does, how it is called."""

    module: str
    """Import name of the module with ``Config`` and ``run``."""

    summary: str
    """What it does, in one line."""

    example: str = ""
    """A call worth copying; "" for none."""


COMMANDS: dict[str, Command] = {
    "demo": Command(
        "vrik.cli.demo", "a bundled session, to VMC and onto a page; needs no hardware", "demo --open"
    ),
    "replay": Command(
        "vrik.cli.replay",
        "play a recording to avatar programs as if it were live",
        "replay session.bsor --to vmc://127.0.0.1:39539",
    ),
    "solve": Command(
        "vrik.cli.solve", "recordings to skeletons, as files", "solve session.bsor -o skeleton.npz"
    ),
    "inspect": Command(
        "vrik.cli.inspect", "say what a recording holds: devices, rates, gaps, losses", "inspect session.bsor"
    ),
    "convert": Command(
        "vrik.cli.convert", "write a recording in another format", "convert session.bsor session.mcap"
    ),
    "repair": Command(
        "vrik.cli.repair",
        "save what is whole in a damaged recording of vrik's own",
        "repair cut.mcap whole.mcap",
    ),
}

EXIT_CODES = {
    0: "done",
    1: "the work failed; the reason is on stderr",
    2: "wrong usage: unknown command, flag, value or URL",
    130: "stopped by Ctrl-C, after a clean end",
    143: "stopped by SIGTERM, after a clean end",
}


def help_text() -> str:
    """What ``vrik --help`` prints."""
    width = max(len(name) for name in COMMANDS)
    lines = [
        "usage: vrik COMMAND [options]",
        "",
        "Turn the poses of VR devices, live or recorded, into a moving skeleton and stream it.",
        "",
        "commands:",
        *(f"  {name:{width}}  {command.summary}" for name, command in COMMANDS.items()),
        "",
        "options:",
        "  -h, --help     show this text; after a command, the help of that command",
        "  -V, --version  show the version",
        "",
        "examples:",
        *(f"  vrik {command.example}" for command in COMMANDS.values() if command.example),
        "",
        "exit codes:",
        *(f"  {code:<3}  {meaning}" for code, meaning in EXIT_CODES.items()),
    ]
    return "\n".join(lines)
