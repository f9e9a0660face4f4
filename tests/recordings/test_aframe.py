"""A-Frame avatar recordings: the real sessions, uneven tracks, hands left behind, and files that are cut."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from calibration import calibrate
from recordings import open_recording, read_all
from recordings.base import LoadedRecording
from recordings.importers.aframe import AframeImporter
from vrik import quat
from vrik.errors import DamagedRecordingError, RecordingError
from vrik.pipeline import Pipeline, solve_all
from vrik.skeleton import bone_lengths

FOLDER = "data/vr/aframe"
FILES = ("hands_12s", "left_hand_not_tracked", "no_left_hand", "uneven_track_lengths", "vive_29s")
FORWARD = np.array([0.0, 0.0, -1.0])
UP = np.array([0.0, 1.0, 0.0])


def open_json(path: Path) -> LoadedRecording:
    recording = AframeImporter().open(path)
    return LoadedRecording(recording.info, read_all(recording))


def raw(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_text()))


def row(recording: LoadedRecording, role: str) -> int:
    return [d.role for d in recording.info.devices].index(role)


def pose(t_ms: float, x: float = 0.0, y: float = 1.6, angles: tuple[float, float, float] = (0, 0, 0)) -> Any:
    return {
        "position": {"x": x, "y": y, "z": -0.1},
        "rotation": dict(zip("xyz", angles, strict=True)),
        "timestamp": t_ms,
    }


def write(path: Path, tracks: dict[str, list[Any]], wrapped: bool = False) -> Path:
    data: Any = {name: {"poses": poses, "events": []} for name, poses in tracks.items()}
    path.write_text(json.dumps({"avatar": {"head": {}}, "recording": data} if wrapped else data))
    return path


@pytest.mark.parametrize(
    ("name", "n", "rate_hz", "length_s", "standing_m", "lowest_m", "devices"),
    [
        ("hands_12s", 1093, 88.4, 12.357, 1.656, 1.190, ("head", "left_hand", "right_hand")),
        ("left_hand_not_tracked", 1538, 89.6, 17.178, 1.722, 0.742, ("head", "left_hand", "right_hand")),
        ("no_left_hand", 1448, 89.5, 16.162, 1.685, 1.161, ("head", "right_hand")),
        ("uneven_track_lengths", 884, 89.4, 9.957, 1.639, 1.546, ("head", "left_hand", "right_hand")),
        ("vive_29s", 2568, 88.7, 29.242, 1.777, 0.887, ("head", "right_hand", "left_hand")),
    ],
)
def test_a_real_session_has_its_rate_length_devices_and_head_height(
    shared: Path,
    name: str,
    n: int,
    rate_hz: float,
    length_s: float,
    standing_m: float,
    lowest_m: float,
    devices: tuple[str, ...],
) -> None:
    recording = open_json(shared / FOLDER / f"{name}.json")
    frames, head = recording.frames, row(recording, "head")
    heights = frames.position[frames.valid[:, head], head, 1]

    assert len(frames) == n
    assert frames.rate_hz == pytest.approx(rate_hz, abs=0.06)
    assert frames.duration_s == pytest.approx(length_s, abs=0.001)
    assert tuple(d.role for d in recording.info.devices) == devices
    assert np.percentile(heights, 95.0) == pytest.approx(standing_m, abs=0.001)
    assert heights.min() == pytest.approx(lowest_m, abs=0.001)
    assert any("page's clock" in note for note in recording.info.notes)


@pytest.mark.parametrize("name", FILES)
def test_every_pose_of_a_real_file_is_there_once_at_its_time(shared: Path, name: str) -> None:
    """Counted here from the JSON itself; the hand that lies still is the one exception, and is told."""
    path = shared / FOLDER / f"{name}.json"
    tracks = raw(path)
    start = min(track["poses"][0]["timestamp"] for track in tracks.values())

    recording = open_json(path)

    for k, device in enumerate(recording.info.devices):
        poses = tracks[device.serial]["poses"]
        good = recording.frames.valid[:, k]
        if name == "left_hand_not_tracked" and device.role == "left_hand":
            assert not good.any()
            continue
        assert np.count_nonzero(good) == len(poses)
        np.testing.assert_array_equal(
            recording.frames.position[good, k], [[p["position"][a] for a in "xyz"] for p in poses]
        )
        np.testing.assert_allclose(
            recording.frames.time_ns[good] * 1e-6, [p["timestamp"] - start for p in poses], atol=1e-6
        )


@pytest.mark.parametrize("name", FILES)
def test_real_heads_are_upright_and_turn_smoothly_and_hands_are_on_their_sides(
    shared: Path, name: str
) -> None:
    """Up, smooth and left together prove the order of the angles, which go past +-180 in these files."""
    recording = open_json(shared / FOLDER / f"{name}.json")
    frames, head = recording.frames, row(recording, "head")
    turn = frames.rotation[frames.valid[:, head], head]

    def seen(role: str) -> np.ndarray:
        k = row(recording, role)
        return quat.rotate(
            quat.conjugate(frames.rotation[:, head]), frames.position[:, k] - frames.position[:, head]
        )

    assert quat.rotate(turn, UP)[:, 1].mean() > 0.8
    assert np.degrees(quat.angle(turn[1:], turn[:-1])).max() < 9.0
    assert (np.sum(turn[1:] * turn[:-1], axis=-1) > 0.0).all()
    right = seen("right_hand")
    assert np.nanmedian(right[:, 0]) > 0.05
    assert np.nanmedian(right[:, 2]) < -0.2
    if name in ("hands_12s", "uneven_track_lengths", "vive_29s"):
        apart = right - seen("left_hand")
        assert np.nanmean(apart[:, 0] > 0.0) > 0.85
        assert np.nanmedian(seen("left_hand")[:, 0]) < -0.1


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("hands_12s", {}),
        ("left_hand_not_tracked", {"placeholder samples": 1538}),
        ("no_left_hand", {}),
        ("uneven_track_lengths", {"samples not tracked": 2}),
        ("vive_29s", {}),
    ],
)
def test_what_is_odd_about_a_real_file_is_counted(shared: Path, name: str, counts: dict[str, int]) -> None:
    assert open_json(shared / FOLDER / f"{name}.json").info.counts == counts


def test_a_hand_left_at_the_scene_origin_is_told_and_becomes_no_hand(shared: Path) -> None:
    recording = open_json(shared / FOLDER / "left_hand_not_tracked.json")

    assert any("lhand lies still 0.05 m" in note for note in recording.info.notes)
    assert calibrate(recording.frames).roles == {"camera": "head", "rhand": "right_hand"}


def test_a_missing_hand_is_told(shared: Path) -> None:
    (note,) = [n for n in open_json(shared / FOLDER / "no_left_hand.json").info.notes if "no track" in n]

    assert note == "no track for: left hand; it has camera, rhand"


def test_the_longer_track_keeps_its_last_pose(shared: Path) -> None:
    recording = open_json(shared / FOLDER / "uneven_track_lengths.json")
    left = row(recording, "left_hand")

    assert recording.frames.valid[-1].tolist() == [False, True, False]
    assert recording.frames.valid[:-1].all()
    assert recording.frames.time_ns[-1] - recording.frames.time_ns[0] == round((43603.465 - 33646.4) * 1e6)
    assert recording.frames.position[-1, left, 1] < 1.5


@pytest.mark.parametrize("name", FILES)
def test_a_real_session_solves_to_a_body_of_constant_lengths(shared: Path, name: str) -> None:
    frames = open_json(shared / FOLDER / f"{name}.json").frames
    calibration = calibrate(frames)

    poses = solve_all(Pipeline(calibration), frames.part(slice(0, 500)))

    assert {"head", "right_hand"} <= set(calibration.roles.values())
    assert 1.6 < calibration.body.stature_m < 1.95
    assert np.isfinite(poses.position).all()
    assert np.isfinite(poses.rotation).all()
    lengths = np.array([bone_lengths(p) for p in poses.position])
    np.testing.assert_allclose(
        lengths, np.broadcast_to(bone_lengths(calibration.body.tpose), lengths.shape), atol=1e-9
    )


def test_a_yaw_turns_left_and_pitch_comes_after_it(tmp_path: Path) -> None:
    """R = Ry * Rx * Rz: 90 degrees about y looks at -x; then 30 about x looks up."""
    path = write(
        tmp_path / "a.json", {"camera": [pose(5.0, angles=(0, 90, 0)), pose(15.0, angles=(30, 90, 45))]}
    )

    turn = open_json(path).frames.rotation[:, 0]

    np.testing.assert_allclose(quat.rotate(turn[0], FORWARD), [-1.0, 0.0, 0.0], atol=1e-12)
    np.testing.assert_allclose(quat.rotate(turn[1], FORWARD), [-np.cos(np.pi / 6), 0.5, 0.0], atol=1e-12)


def test_the_wrapped_form_is_the_same(tmp_path: Path) -> None:
    tracks = {"camera": [pose(10.0), pose(21.0)], "leftHand": [pose(10.0, -0.3, 1.0), pose(21.0, -0.3, 1.1)]}

    plain, wrapped = (write(tmp_path / f"{w}.json", tracks, wrapped=w) for w in (False, True))

    assert AframeImporter().recognises(wrapped.read_bytes(), wrapped)
    np.testing.assert_array_equal(open_json(plain).frames.position, open_json(wrapped).frames.position)
    assert [d.role for d in open_json(wrapped).info.devices] == ["head", "left_hand"]


def test_tracks_with_clocks_of_their_own_are_joined_and_told(tmp_path: Path) -> None:
    """4 ms apart at 11 ms a frame: one frame, not two with half the devices each."""
    head = [pose(1000.0 + 11.0 * i) for i in range(20)]
    hand = [pose(1004.0 + 11.0 * i, 0.3, 1.0) for i in range(19)]

    recording = open_json(write(tmp_path / "a.json", {"camera": head, "right": hand}))

    assert len(recording.frames) == 20
    assert recording.frames.valid.sum() == 39
    assert recording.info.counts == {"poses moved in time": 19, "samples not tracked": 1}
    assert any("4.0 ms" in note for note in recording.info.notes)


def test_a_hand_that_starts_later_gets_the_times_of_its_own_poses(tmp_path: Path) -> None:
    head = [pose(10.0 * i) for i in range(10)]
    hand = [pose(10.0 * i, 0.3, 1.0) for i in range(5, 14)]

    frames = open_json(write(tmp_path / "a.json", {"camera": head, "right": hand})).frames

    assert (frames.time_ns == np.arange(14) * 10_000_000).all()
    assert frames.valid[:, 0].tolist() == [True] * 10 + [False] * 4
    assert frames.valid[:, 1].tolist() == [False] * 5 + [True] * 9


@pytest.mark.parametrize("broken", [None, {}, {"x": 1}, "here", {"x": "a", "y": 0, "z": 0}, [1, 2]])
def test_a_pose_without_numbers_is_not_valid_and_counted(tmp_path: Path, broken: Any) -> None:
    bad = {**pose(21.0), "position": broken}

    recording = open_json(write(tmp_path / "a.json", {"camera": [pose(10.0), bad, pose(32.0)]}))

    assert recording.frames.valid[:, 0].tolist() == [True, False, True]
    assert recording.info.counts == {"blank samples": 1}


def test_times_that_step_back_never_run_backwards_and_are_counted(tmp_path: Path) -> None:
    path = write(tmp_path / "a.json", {"camera": [pose(10.0), pose(30.0), pose(20.0), pose(40.0)]})

    recording = open_json(path)

    assert (np.diff(recording.frames.time_ns) >= 0).all()
    assert len(recording.frames) == 4
    assert recording.info.counts == {"times out of order": 1}


@pytest.mark.parametrize("broken", ["[" * 100_000, "9" * 5000, "nonsense", '"\x00"'])
def test_poses_before_something_unreadable_are_kept(tmp_path: Path, broken: str) -> None:
    whole = json.dumps({"camera": {"poses": [pose(10.0), pose(20.0)]}})
    (tmp_path / "a.json").write_text(whole[:-3] + f", {broken}, " + whole[-3:])

    recording = open_json(tmp_path / "a.json")

    assert len(recording.frames) == 2
    assert recording.info.notes[0].startswith("the file is cut or broken")


def test_of_a_track_that_is_there_twice_the_last_one_counts(tmp_path: Path) -> None:
    one, two = (json.dumps([pose(10.0 * i) for i in range(n)]) for n in (3, 2))
    text = f'{{"camera": {{"poses": {one}, "poses": {two}, "more": {{"poses": {one}}}}}, "x": [1], "y": "z"}}'
    (tmp_path / "a.json").write_text(text)

    recording = open_json(tmp_path / "a.json")

    assert [d.serial for d in recording.info.devices] == ["camera"]
    assert len(recording.frames) == 2


def test_a_track_that_the_cut_left_without_a_pose_is_none(tmp_path: Path) -> None:
    path = write(tmp_path / "a.json", {"camera": [pose(10.0), pose(20.0)], "right": [pose(10.0)]})
    text = path.read_text()
    path.write_text(text[: text.index('"right"') + 25])

    assert [d.serial for d in open_json(path).info.devices] == ["camera"]


def test_a_mark_of_the_encoding_does_not_matter(tmp_path: Path) -> None:
    path = write(tmp_path / "a.json", {"camera": [pose(10.0), pose(20.0)]})
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())

    assert next(iter(open_recording(path).blocks())).valid.all()


def test_an_object_without_tracks_is_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"camera": {"events": []}}')

    with pytest.raises(RecordingError, match='no track with a list "poses"'):
        open_json(path)


@pytest.fixture(scope="module")
def small(shared: Path) -> bytes:
    """The first poses of a real session, with the head first, as in the file."""
    data = raw(shared / FOLDER / "vive_29s.json")
    return json.dumps(
        {k: {**v, "poses": v["poses"][:12], "events": v["events"][:2]} for k, v in data.items()}
    ).encode()


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(share=st.floats(0.0, 1.0))
def test_any_cut_gives_each_track_up_to_the_cut_or_one_sentence(
    small: bytes, tmp_path: Path, share: float
) -> None:
    whole, cut = tmp_path / "whole.json", tmp_path / "cut.json"
    whole.write_bytes(small)
    cut.write_bytes(small[: int(share * len(small))])
    expected = open_json(whole)

    try:
        recording = open_recording(cut)
    except RecordingError:
        return

    frames = next(iter(recording.blocks()))
    for k, device in enumerate(recording.info.devices):
        column = [d.serial for d in expected.info.devices].index(device.serial)
        good = frames.valid[:, k]
        n = np.count_nonzero(good)
        np.testing.assert_array_equal(frames.position[good, k], expected.frames.position[:n, column])
        np.testing.assert_array_equal(frames.rotation[good, k], expected.frames.rotation[:n, column])
    assert share == 1.0 or len(frames) == 12 or recording.info.notes[0].startswith("the file is cut")


def test_a_file_cut_before_its_first_pose_is_damaged(small: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(small[: small.index(b'"timestamp"')])

    with pytest.raises(DamagedRecordingError, match="copy it again"):
        open_json(path)


def test_each_file_of_the_material_is_opened_by_its_own_reader(
    shared: Path, readers_of: Callable[[Path], list[str]]
) -> None:
    """The whole cross table: all real sessions and all cases, by content alone."""
    kinds = {
        "aframe": "aframe", "arm_trackers": "arm-tracker-csv", "bsor": "bsor", "bvh_mocopi": "bvh",
        "openvr_json": "openvr-json", "quest_center_eye": "quest-log", "vive_csv": "vive-csv",
        "steamvr_elbows_knees": "steamvr-csv", "webvr_gamepad": "webvr-gamepad",
    }  # fmt: skip
    ours = {"aframe", "arm-tracker-csv", "openvr-json", "quest-log", "steamvr-csv", "webvr-gamepad"}
    sessions = [p for p in sorted((shared / "data/vr").glob("**/*.*")) if p.parent.name in kinds]
    cases = [p for p in sorted((shared / "data/cases").glob("*.*")) if p.suffix != ".md"]

    assert len(sessions) == 24
    for path in sessions:
        assert readers_of(path) == [kinds[path.parent.name]], path.name
    for path in cases:
        assert not ours & set(readers_of(path)), path.name


@pytest.fixture
def readers_of() -> Callable[[Path], list[str]]:
    from recordings.importers import HEAD_BYTES, importers

    known = importers()

    def names(path: Path) -> list[str]:
        head = path.read_bytes()[:HEAD_BYTES]
        nameless = Path("recording")  # neither the name nor the ending may help
        return [reader.name for reader in known if reader.recognises(head, nameless)]

    return names
