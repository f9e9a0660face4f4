"""Readers of every kind of file vrik understands. Content decides which one is used; the suffix breaks ties.

A reader is named in ``IMPORTERS`` as ``"module:Class"`` and imported when a file is opened, so that
asking for help loads none of them.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, cast

from vrik.errors import RecordingError, UnknownFormatError

if TYPE_CHECKING:
    from recordings.base import Importer, Recording

IMPORTERS: tuple[str, ...] = (
    "recordings.native:NativeImporter",
    "recordings.importers.bsor:BsorImporter",
    "recordings.importers.vive_csv:ViveCsvImporter",
    "recordings.importers.steamvr_csv:SteamVrCsvImporter",
    "recordings.importers.aframe:AframeImporter",
    "recordings.importers.openvr_json:OpenVrJsonImporter",
    "recordings.importers.webvr_gamepad:WebVrGamepadImporter",
    "recordings.importers.quest_log:QuestLogImporter",
    "recordings.importers.arm_tracker_csv:ArmTrackerCsvImporter",
    "recordings.importers.bvh:BvhImporter",
    "recordings.importers.harness_npz:HarnessNpzImporter",
    "recordings.importers.harness_jsonl:HarnessJsonlImporter",
    "recordings.importers.slimevr:SlimeVrImporter",
    "recordings.importers.alyx_csv:AlyxCsvImporter",
    "recordings.importers.xror:XrorImporter",
    "recordings.importers.generic_csv:GenericCsvImporter",
)
"""All readers, in the order they are asked."""

HEAD_BYTES = 64 * 1024
"""How much of a file the readers see to recognise it. [bytes]"""


def importers() -> tuple[Importer, ...]:
    """One of each reader."""
    found = []
    for entry in IMPORTERS:
        module, name = entry.split(":")
        found.append(cast("Importer", getattr(import_module(module), name)()))
    return tuple(found)


def find_importer(path: str | Path) -> Importer:
    """The reader for a file.

    Raises:
        RecordingError: If there is no such file, or it cannot be read.
        UnknownFormatError: If it is empty, or nobody recognises it.
    """
    from recordings.csv_mapping import TABLE_SUFFIXES, own_map
    from recordings.csv_text import looks_like_table

    path = Path(path)
    if not path.exists():
        raise RecordingError(f"there is no file {path}; check the path")
    if path.is_dir():
        raise RecordingError(f"{path} is a folder; name one recording in it")
    try:
        with path.open("rb") as stream:
            head = stream.read(HEAD_BYTES)
    except OSError as error:
        raise RecordingError(f"cannot read {path}: {error.strerror or error}") from error
    if not head:
        raise UnknownFormatError(f"{path} is empty; expected a recording")
    known = importers()
    if own_map(path) is not None:  # somebody wrote down what this very table holds
        known = tuple(sorted(known, key=lambda importer: importer.name != "generic-csv"))
    fitting = [importer for importer in known if importer.recognises(head, path)]
    if not fitting:
        if path.suffix.lower() in TABLE_SUFFIXES and looks_like_table(head):
            raise UnknownFormatError(
                f"{path.name} is a table whose columns vrik does not know; write a mapping file "
                f"{path.name}.toml beside it that says what they hold: docs/generic-csv.md has an example"
            )
        endings = ", ".join(sorted({suffix for importer in known for suffix in importer.suffixes}))
        raise UnknownFormatError(
            f"{path} is no kind of recording that vrik knows; it reads {len(known)} kinds with the endings "
            f"{endings}: docs/recordings.md says which"
        )
    by_suffix = [importer for importer in fitting if path.suffix.lower() in importer.suffixes]
    return (by_suffix or fitting)[0]


def open_recording(path: str | Path, columns: str | Path | None = None) -> Recording:
    """Open a recording of any kind.

    Args:
        path: The recording.
        columns: Mapping file that says what the columns of a table hold; then ``path`` is read as that says,
            whatever it looks like. Without it, one that lies beside the table is found.

    Raises:
        RecordingError: With one sentence for the user: missing, unknown, damaged, of a newer version.
        UsageError: If a mapping file does not work.
    """
    path = Path(path)
    if columns is None:
        return find_importer(path).open(path)
    if not path.is_file():
        raise RecordingError(f"there is no file {path}; check the path")
    from recordings.importers.generic_csv import GenericCsvImporter

    return GenericCsvImporter(Path(columns)).open(path)
