"""Recordings: vrik's own format, readers of others, conversion, inspection and the replay clock.

Names are loaded when they are first used, so that ``import recordings`` costs nothing. ``inspect`` and
``convert`` are modules with a function of the same name: ``from recordings.convert import convert``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from recordings.base import LoadedRecording, Recording, RecordingInfo, read_all
    from recordings.clock import ReplayClock
    from recordings.convert import ConvertReport
    from recordings.importers import open_recording
    from recordings.inspect_report import DeviceReport, InspectReport
    from recordings.native import RecordingWriter, read_poses
    from recordings.samples import sample

__all__ = [
    "ConvertReport",
    "DeviceReport",
    "InspectReport",
    "LoadedRecording",
    "Recording",
    "RecordingInfo",
    "RecordingWriter",
    "ReplayClock",
    "open_recording",
    "read_all",
    "read_poses",
    "sample",
]

_HOMES = {
    "ConvertReport": "convert",
    "DeviceReport": "inspect_report",
    "InspectReport": "inspect_report",
    "LoadedRecording": "base",
    "Recording": "base",
    "RecordingInfo": "base",
    "RecordingWriter": "native",
    "ReplayClock": "clock",
    "open_recording": "importers",
    "read_all": "base",
    "read_poses": "native",
    "sample": "samples",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"recordings.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
