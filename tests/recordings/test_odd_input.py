"""More of the kinds of fault in the case list, for every format: any cut, damage, column order and locale.

What comes out is finite frames or one sentence, in little time and memory, and nothing else.
"""

from __future__ import annotations

import importlib.util
import io
import json
import struct
import time
import tracemalloc
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recordings import RecordingWriter, open_recording, read_all, sample
from vrik import quat
from vrik.errors import RecordingError
from vrik.frames import TrackerSequence

HEADER_BYTES = 4096
LONGEST_S = 5.0
MOST_BYTES = 200e6
VR = "data/vr"
TEXT_FILES = {
    "vive.csv": f"{VR}/nolicence/vive_csv/walking_3.csv",
    "steamvr.csv": f"{VR}/nolicence/steamvr_elbows_knees/a_tpose_start_knee_dropouts.csv",
    "quest.txt": f"{VR}/quest_center_eye/quest2_traj1.txt",
    "arm.csv": f"{VR}/arm_trackers/right_arm_shoulder_local.csv",
    "alyx.csv": "data/cases/c23_nan_and_rate_drop.csv",
}
WITH_HEADER = ("vive.csv", "alyx.csv", "steamvr.csv", "own.csv")
FEW = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


LENGTHS: dict[str, int] = {}
"""Frames of the whole files, once read."""

XROR = all(map(importlib.util.find_spec, ("bson", "fpzip")))
NO_XROR = pytest.mark.skipif(not XROR, reason="optional packages pymongo and fpzip are not installed")


class Files(dict[str, bytes]):
    """Name to content; hypothesis would print all of it."""

    def __repr__(self) -> str:
        return f"{len(self)} files"


def slimevr() -> bytes:
    """Three trackers of eight frames in the layout of PFR."""
    tracks = []
    for name, place, y in ((b"HMD", 0, 1.6), (b"Left", 15, 1.0), (b"Right", 16, 1.0)):
        frames = b"".join(
            struct.pack(">i4f3fi", 2 | 4 | 8, 0.0, 0.0, 0.0, 1.0, 0.1 * i, y, -0.2, place) for i in range(8)
        )
        tracks.append(struct.pack(">H", len(name)) + name + struct.pack(">i", 8) + frames)
    return struct.pack(">i", len(tracks)) + b"".join(tracks)


def bvh(path: Path, rows: int) -> bytes:
    """The beginning of a real take."""
    lines = path.read_text().splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith("Frame Time")) + 1
    lines[first - 2] = f"Frames: {rows}"
    return "\n".join(lines[: first + rows]).encode()


def harness() -> bytes:
    pose = {"valid": True, "pos": [0.1, 1.6, 0.2], "rot": [1.0, 0.0, 0.0, 0.0]}
    lines = [{"header": {"format": "vr-trackers-1"}, "devices": ["head", "left_hand"], "height_m": 1.7}]
    lines += [{"t": i / 60, "devices": {"head": pose, "left_hand": pose}} for i in range(30)]  # type: ignore[misc]
    return "".join(json.dumps(line) + "\n" for line in lines).encode()


def harness_npz() -> bytes:
    data = io.BytesIO()
    turns = np.broadcast_to(quat.identity(), (30, 2, 4))
    np.savez(
        data,
        t=np.arange(30) / 60,
        names=np.array(["head", "left_hand"]),
        pos=np.full((30, 2, 3), 1.5),
        rot=turns,
    )
    return data.getvalue()


def generic_csv() -> tuple[bytes, bytes]:
    """A table of one's own, and the file that says what its columns hold."""
    names = [f"{d}_{axis}" for d in ("head", "hand") for axis in "xyzijkw"]
    rows = [[i / 60, 0.1 * i, 1.6, 0.2, 0, 0, 0, 1, 0.1 * i, 1.1, -0.3, 0, 0.6, 0, 0.8] for i in range(30)]
    table = "\n".join([",".join(["t", *names]), *(",".join(f"{n:.4f}" for n in row) for row in rows)]) + "\n"
    mapping = 'axes = "openvr"\n[time]\ncolumn = "t"\nunit = "s"\n'
    for device, role in (("head", "head"), ("hand", "left_hand")):
        place, turn = ([f"{device}_{axis}" for axis in axes] for axes in ("xyz", "ijkw"))
        mapping += f'[[device]]\nname = "{device}"\nrole = "{role}"\n'
        mapping += f"position = {json.dumps(place)}\nquaternion = {json.dumps(turn)}\n"
    return table.encode(), mapping.encode()


def xror() -> bytes:
    import bson
    import fpzip

    rows = np.zeros((30, 15), np.float32)
    rows[:, 0] = np.arange(30) / 64
    rows[:, 1:8] = rows[:, 8:15] = (0.25, 1.5, 0.5, 0.0, 0.6, 0.0, 0.8)
    devices = [
        {"type": kind, "joint": joint, "axes": list("xyzijkl")}
        for kind, joint in (("HMD", "HEAD"), ("CONTROLLER", "HAND_LEFT"))
    ]
    info = {"hardware": {"devices": devices}}
    return bytes(bson.encode({"$schema": "x", "info": info, "frames": fpzip.compress(rows), "events": {}}))


def small_json(name: str, document: object) -> object:
    """A real document with some frames only."""
    if name == "openvr.json":
        assert isinstance(document, list)
        return document[:30]
    assert isinstance(document, dict)
    if name == "webvr.json":
        return {**document, "values": document["values"][:15]}
    return {
        key: {**track, "poses": track["poses"][:30]} for key, track in document.items() if "poses" in track
    }


@pytest.fixture(scope="module")
def whole(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Files:
    """A short file of each format, by name."""
    folder = tmp_path_factory.mktemp("whole")
    take = read_all(open_recording(sample("session_3points")))
    with RecordingWriter(folder / "a.mcap", take.devices) as writer:
        for i in range(400):
            writer.write(take.frame(i))
    files = Files()
    files |= {
        "song.bsor": (shared / "data/cases/c65_name_right_count.bsor").read_bytes(),
        "own.mcap": (folder / "a.mcap").read_bytes(),
        "take.bvh": bvh(shared / f"{VR}/bvh_mocopi/jump.bvh", 20),
        "harness.jsonl": harness(),
        "slime.pfr": slimevr(),
        "harness.npz": harness_npz(),
        "own.csv": generic_csv()[0],
    }
    if XROR:
        files["game.xror"] = xror()
    for name, path in TEXT_FILES.items():
        files[name] = b"".join((shared / path).read_bytes().splitlines(keepends=True)[:40])
    for name, path in (
        ("aframe.json", f"{VR}/aframe/hands_12s.json"),
        ("openvr.json", f"{VR}/openvr_json/simple_tracking_2min.json"),
        ("webvr.json", f"{VR}/nolicence/webvr_gamepad/openvr_gamepads.json"),
    ):
        files[name] = json.dumps(small_json(name, json.loads((shared / path).read_bytes()))).encode()
    return files


NAMES = (
    "song.bsor", "own.mcap", "take.bvh", "harness.jsonl", "slime.pfr", *TEXT_FILES, "own.csv",
    "aframe.json", "openvr.json", "webvr.json", "harness.npz", pytest.param("game.xror", marks=NO_XROR),
)  # fmt: skip


def outcome(path: Path, data: bytes) -> TrackerSequence | str:
    """The frames, checked, or the sentence; anything else that is raised fails the test."""
    path.write_bytes(data)
    if path.name == "own.csv":
        path.with_name("own.csv.toml").write_bytes(generic_csv()[1])
    begun, sentence = time.process_time(), ""
    try:
        frames = read_all(open_recording(path))
    except RecordingError as error:
        sentence = str(error)
    finally:
        assert time.process_time() - begun < LONGEST_S
    if sentence:
        assert "\n" not in sentence
        return sentence
    assert np.isfinite(frames.position[frames.valid]).all()
    assert np.isfinite(frames.rotation).all()
    assert quat.is_rotation(frames.rotation[frames.valid]).all()
    assert (np.diff(frames.time_ns) >= 0).all()
    return frames


@pytest.mark.parametrize("name", NAMES)
def test_the_whole_file_is_read(tmp_path: Path, whole: Files, name: str) -> None:
    frames = outcome(tmp_path / name, whole[name])

    assert isinstance(frames, TrackerSequence), frames
    assert len(frames) >= 8
    assert frames.valid.any()


@pytest.mark.parametrize("name", NAMES)
@FEW
@given(share=st.floats(0.0, 1.0))
def test_any_cut_gives_some_first_frames_or_one_sentence(
    tmp_path: Path, whole: Files, name: str, share: float
) -> None:
    data = whole[name]
    if name not in LENGTHS:
        complete = outcome(tmp_path / name, data)
        assert isinstance(complete, TrackerSequence)
        LENGTHS[name] = len(complete)

    frames = outcome(tmp_path / name, data[: int(share * len(data))])

    if isinstance(frames, TrackerSequence):
        assert len(frames) <= LENGTHS[name]


@pytest.mark.parametrize("name", NAMES)
@FEW
@given(data=st.data())
def test_any_damage_to_the_header_gives_finite_frames_or_one_sentence(
    tmp_path: Path, whole: Files, name: str, data: st.DataObject
) -> None:
    hurt = bytearray(whole[name])
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, min(len(hurt), HEADER_BYTES) - 1))
        kind = data.draw(st.sampled_from(["flip", "insert", "delete"]))
        if kind == "flip":
            hurt[at] ^= data.draw(st.integers(1, 255))
        elif kind == "insert":
            hurt[at:at] = data.draw(st.binary(min_size=1, max_size=9))
        elif len(hurt) > 100:
            del hurt[at : at + data.draw(st.integers(1, 40))]

    outcome(tmp_path / name, bytes(hurt))


@pytest.mark.parametrize("name", NAMES)
def test_damage_takes_little_memory(tmp_path: Path, whole: Files, name: str) -> None:
    """Each four bytes of the header in turn as the largest number there is, in both byte orders."""
    data = whole[name]
    tracemalloc.start()
    for at in range(0, min(len(data), 600), 40):
        for huge in (b"\xff\xff\xff\x7f", b"\x7f\xff\xff\xff", b"9999"):
            outcome(tmp_path / name, data[:at] + huge + data[at + 4 :])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert peak < MOST_BYTES


@pytest.mark.parametrize("name", WITH_HEADER)
@FEW
@given(seed=st.integers(0, 2**32 - 1))
def test_any_column_order_gives_the_same_poses(tmp_path: Path, whole: Files, name: str, seed: int) -> None:
    """Time stays first where the format is told by it."""
    rows = [line.split(",") for line in whole[name].decode().splitlines()]
    order = (1 + np.random.default_rng(seed).permutation(len(rows[0]) - 1)).tolist()
    names = rows[0]
    if len(set(names)) < len(names):  # names that repeat belong to their neighbours
        order.sort(key=lambda i: names.count(names[i]) > 1)
    rows = [row for row in rows if len(row) == len(names)]
    mixed = "".join(",".join([row[0], *(row[i] for i in order)]) + "\n" for row in rows)
    plain = outcome(tmp_path / name, "".join(",".join(row) + "\n" for row in rows).encode())

    frames = outcome(tmp_path / name, mixed.encode())

    assert isinstance(plain, TrackerSequence)
    assert isinstance(frames, TrackerSequence), frames
    columns = {device.serial: i for i, device in enumerate(frames.devices)}
    same = [columns[device.serial] for device in plain.devices]
    np.testing.assert_array_equal(frames.position[:, same], plain.position)
    np.testing.assert_array_equal(frames.valid[:, same], plain.valid)


@pytest.mark.parametrize("name", [*TEXT_FILES, "take.bvh"])
@pytest.mark.parametrize("separator", [";", "\t"])
def test_numbers_of_any_locale_are_read_right_or_refused(
    tmp_path: Path, whole: Files, name: str, separator: str
) -> None:
    """Decimal commas: never two numbers out of one, and never a place ten or a thousand times as far."""
    plain = outcome(tmp_path / name, whole[name])
    text = whole[name].decode()
    text = text.replace(".", ",") if name == "take.bvh" else text.replace(",", separator).replace(".", ",")

    frames = outcome(tmp_path / name, text.encode())

    assert isinstance(plain, TrackerSequence)
    if isinstance(frames, TrackerSequence) and len(frames.devices) == len(plain.devices):
        both = frames.valid & plain.valid[: len(frames)]
        np.testing.assert_allclose(frames.position[both], plain.position[: len(frames)][both], atol=1e-6)


def test_every_format_is_here(whole: Files) -> None:
    names = {name if isinstance(name, str) else str(name.values[0]) for name in NAMES}
    assert names - ({"game.xror"} if not XROR else set()) == set(whole)
    assert all(a != b for a, b in pairwise(sorted(whole.values())))
