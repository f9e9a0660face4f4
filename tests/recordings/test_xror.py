"""XROR: what it says without its two packages, and, where they are installed, a file made here."""

from __future__ import annotations

import importlib.util
import struct
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recordings import open_recording, read_all
from recordings.importers.xror import XrorImporter
from vrik import quat
from vrik.errors import DamagedRecordingError, RecordingError
from vrik.frames import DeviceClass

AXES = ["x", "y", "z", "i", "j", "k", "l"]
INSTALLED = importlib.util.find_spec("bson") is not None and importlib.util.find_spec("fpzip") is not None
unpacks = pytest.mark.skipif(not INSTALLED, reason="optional packages pymongo and fpzip are not installed")


def element(kind: int, key: str, data: bytes) -> bytes:
    return bytes([kind]) + key.encode() + b"\0" + data


def document(*elements: bytes) -> bytes:
    body = b"".join(elements) + b"\0"
    return struct.pack("<i", len(body) + 4) + body


def string(value: str) -> bytes:
    return struct.pack("<i", len(value.encode()) + 1) + value.encode() + b"\0"


def device(joint: str, kind: str, axes: list[str]) -> bytes:
    listed = document(*(element(2, str(i), string(axis)) for i, axis in enumerate(axes)))
    return document(
        element(2, "type", string(kind)), element(2, "joint", string(joint)), element(4, "axes", listed)
    )


def file_of(packed: bytes, *devices: bytes) -> bytes:
    hardware = document(
        element(4, "devices", document(*(element(3, str(i), d) for i, d in enumerate(devices))))
    )
    return document(
        element(2, "$schema", string("https://metaguard.github.io/xror/schema/v1.0.0/schema.json")),
        element(3, "info", document(element(3, "hardware", hardware))),
        element(5, "frames", struct.pack("<ib", len(packed), 0) + packed),
        element(4, "events", document()),
    )


STANDARD = (
    device("HEAD", "HMD", AXES),
    device("HAND_LEFT", "CONTROLLER", [*AXES[:6], "1"]),
    device("HAND_RIGHT", "CONTROLLER", AXES),
)


def test_missing_packages_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("bson", "fpzip"):
        monkeypatch.setitem(sys.modules, name, None)
    path = tmp_path / "a.xror"
    path.write_bytes(file_of(b"fpy)", *STANDARD))

    with pytest.raises(RecordingError, match="pip install pymongo fpzip"):
        open_recording(path)


def test_only_its_documents_are_recognised(shared: Path) -> None:
    importer = XrorImporter()
    files = [p for p in (shared / "data").rglob("*") if p.is_file()]

    assert importer.recognises(file_of(b"", *STANDARD), Path("a.bin"))
    assert not importer.recognises(
        document(element(2, "name", string("a BSON of another kind"))), Path("a.xror")
    )
    assert not [p for p in files if importer.recognises(p.read_bytes()[:65536], p)]


def table(n: int = 5) -> Any:
    rows = np.zeros((n, 22), np.float32)
    rows[:, 0] = np.arange(n) / 64.0
    for i, x in enumerate((0.0, -0.25, 0.25)):
        rows[:, 1 + 7 * i : 8 + 7 * i] = (x, 1.5, 0.5, 0.0, 0.6, 0.0, 0.8)
    return rows


def packed(rows: Any) -> bytes:
    return bytes(pytest.importorskip("fpzip").compress(rows))


@unpacks
def test_frames_are_unpacked_from_unity_with_roles_from_the_joints(tmp_path: Path) -> None:
    path = tmp_path / "a.xror"
    path.write_bytes(file_of(packed(table()), *STANDARD))

    frames = read_all(open_recording(path))

    assert [d.role for d in frames.devices] == ["head", "left_hand", "right_hand"]
    assert frames.devices[0].device_class == DeviceClass.HMD
    assert frames.valid.all()
    np.testing.assert_allclose(frames.position[2, 1], [-0.25, 1.5, -0.5])
    assert quat.angle(frames.rotation[0, 0], np.array([0.8, 0.0, -0.6, 0.0])) < 1e-6
    assert frames.time_ns[-1] == 62_500_000


@unpacks
def test_a_device_without_a_rotation_is_left_out_and_told(tmp_path: Path) -> None:
    path = tmp_path / "a.xror"
    path.write_bytes(
        file_of(packed(table()[:, :18]), *STANDARD[:2], device("FOOT_LEFT", "TRACKER", AXES[:3]))
    )

    recording = open_recording(path)

    assert [d.role for d in recording.info.devices] == ["head", "left_hand"]
    assert any("FOOT_LEFT" in note for note in recording.info.notes)


@unpacks
@pytest.mark.parametrize("share", [0.3, 0.7, 0.99])
def test_a_cut_file_is_one_sentence(tmp_path: Path, share: float) -> None:
    """The frames are one compressed block with no checksum: a part of it unpacks to nonsense."""
    data = file_of(packed(table()), *STANDARD)
    path = tmp_path / "a.xror"
    path.write_bytes(data[: int(share * len(data))])

    with pytest.raises(DamagedRecordingError, match="states"):
        open_recording(path)


@unpacks
def test_columns_that_do_not_fit_the_devices_are_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "a.xror"
    path.write_bytes(file_of(packed(table()), *STANDARD[:2]))

    with pytest.raises(DamagedRecordingError, match="22 columns"):
        open_recording(path)


@unpacks
def test_sign_flips_of_the_file_are_turned_and_told(tmp_path: Path) -> None:
    rows = table()
    rows[3, 4:8] *= -1.0
    path = tmp_path / "a.xror"
    path.write_bytes(file_of(packed(rows), *STANDARD))

    recording = open_recording(path)

    assert recording.info.counts == {"sign flips": 2}
    turn = read_all(recording).rotation[:, 0]
    assert (np.sum(turn[1:] * turn[:-1], axis=-1) > 0.0).all()
