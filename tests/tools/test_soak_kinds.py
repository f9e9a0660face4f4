"""The soak measures what it says: each kind that is made is read as that kind, with its devices tracked."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from recordings import open_recording, read_all
from recordings.importers import importers
from tools.soak_kinds import BODILESS, KINDS, can_make

RATES_HZ = {
    "vive-csv": 60, "steamvr-csv": 5, "openvr-json": 31.25, "quest-log": 72, "bvh": 60, "slimevr-pfr": 50,
    "slimevr-pfs": 50, "alyx-csv": 60,
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_is_read_as_itself(tmp_path: Path, kind: str) -> None:
    if not can_make(kind):
        pytest.skip("optional packages pymongo and fpzip are not installed")

    recording = open_recording(KINDS[kind](tmp_path, 0.1))

    frames = read_all(recording)
    assert kind.startswith(recording.info.format.removesuffix("/1"))
    assert len(frames) == round(6 * RATES_HZ.get(kind, 90))
    assert np.mean(frames.valid) > 0.9
    assert (kind in BODILESS) == (len({d.serial for d in frames.devices}) < 3)


def test_every_reader_has_its_kind() -> None:
    names = {kind.removesuffix("-pfr").removesuffix("-pfs") for kind in KINDS}

    assert names == {importer.name for importer in importers()}
