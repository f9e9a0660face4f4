"""The HTML page: self-contained, true to a millimetre, and of bounded size."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vrik import quat
from vrik.body import BodyModel
from vrik.errors import VrikError
from vrik.frames import DeviceClass, PoseFrame, PoseSequence, TrackedDevice, TrackerFrame, TrackerSequence
from vrik.sinks.page import PageSink, render_page
from vrik.sinks.page_render import POINT_COUNT
from vrik.skeleton import BONES

BODY = BodyModel.average(1.8)
DEVICES = (
    TrackedDevice("H", DeviceClass.HMD, "head"),
    TrackedDevice("L", DeviceClass.CONTROLLER, "left_hand"),
    TrackedDevice("T", DeviceClass.GENERIC_TRACKER),
)


def walking(n: int, step_m: float = 0.01) -> tuple[PoseSequence, TrackerSequence]:
    """A T-pose carried along -Z at 90 Hz, with devices at head, left hand and hips."""
    time_ns = 5_000_000_000 + (np.arange(n) * 1e9 / 90.0).astype(np.int64)
    shift = np.outer(np.arange(n) * step_m, [0.3, 0.0, -1.0])
    position = BODY.tpose + shift[:, None]
    reach = np.full((n, 13), np.nan)
    reach[:, :2] = 0.0012
    poses = PoseSequence(time_ns, position, quat.identity(n, 22), BODY, reach, np.ones((n, 13), np.int64))
    places = position[:, [BONES.index(name) for name in ("head", "leftHand", "hips")]] + 0.01
    tracker = TrackerSequence.build(time_ns, DEVICES, places, quat.identity(n, 3), np.ones((n, 3), bool))
    return poses, tracker


def pose_frame(poses: PoseSequence, i: int) -> PoseFrame:
    return PoseFrame(
        int(poses.time_ns[i]), poses.position[i], poses.rotation[i], poses.rotation[i],
        poses.reach_error_m[i], poses.state[i], np.zeros(13),
    )  # fmt: skip


def send_all(sink: PageSink, poses: PoseSequence, tracker: TrackerSequence) -> None:
    for i, frame in enumerate(tracker):
        sink.send(pose_frame(poses, i), frame)
    sink.close()


def data_in(page: str) -> dict[str, Any]:
    """What the page embeds, arrays decoded."""

    def no_constant(name: str) -> None:
        raise AssertionError(f"{name} is no JSON")

    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
    assert found is not None
    data: dict[str, Any] = json.loads(found.group(1), parse_constant=no_constant)
    k = len(data["devices"])
    for name, dtype, shape in (
        ("times_ms", "<u4", (-1,)),
        ("points", "<i2", (-1, data["point_count"], 3)),
        ("device_points", "<i2", (-1, k, 3)),
        ("device_states", "u1", (-1, k)),
        ("reach", "<u2", (-1, k)),
    ):
        array = np.frombuffer(base64.b64decode(data[name]), dtype)
        data[name] = array.reshape(shape) if array.size else array
    return data


def metres(data: dict[str, Any], name: str) -> np.ndarray:
    return np.asarray(data["origin_m"]) + data["unit_m"] * data[name]


def test_the_page_needs_nothing_from_elsewhere() -> None:
    page = render_page(*walking(4))

    assert "://" not in page
    assert "default-src 'none'" in page
    assert not re.search(r"""\b(src|srcset)\s*=|url\(|@import|\bfetch\(|XMLHttpRequest""", page)
    assert re.findall(r'href="([^"]*)"', page) == ["data:,"]


def test_every_frame_is_embedded_to_a_millimetre() -> None:
    poses, tracker = walking(200)

    data = data_in(render_page(poses, tracker))

    assert data["points"].shape == (200, POINT_COUNT, 3)
    np.testing.assert_allclose(metres(data, "points")[:, :22], poses.position, atol=0.00051)
    np.testing.assert_allclose(metres(data, "device_points"), tracker.position, atol=0.00051)
    np.testing.assert_allclose(data["times_ms"], (poses.time_ns - poses.time_ns[0]) * 1e-6, atol=0.51)
    assert (data["reach"][:, :2] == 12).all()
    assert (data["reach"][:, 2] == 65535).all()


def test_a_walk_across_a_hall_still_fits() -> None:
    """Past 65 m the steps grow; what matters at that size is far larger."""
    poses, tracker = walking(100, step_m=2.0)

    data = data_in(render_page(poses, tracker))

    np.testing.assert_allclose(metres(data, "points")[:, :22], poses.position, atol=0.003)


def test_a_lost_device_stays_where_it_was_last_seen() -> None:
    poses, tracker = walking(30)
    position, valid = tracker.position.copy(), tracker.valid.copy()
    position[10:20, 1], valid[10:20, 1] = np.nan, False
    position[:5, 2], valid[:5, 2] = np.nan, False
    lossy = TrackerSequence.build(tracker.time_ns, DEVICES, position, tracker.rotation, valid)

    data = data_in(render_page(poses, lossy))

    assert (data["device_states"][10:20, 1] == 3).all()
    assert (data["device_states"][:5, 2] == 0).all()
    assert (data["device_states"][20:] == 1).all()
    np.testing.assert_allclose(metres(data, "device_points")[15, 1], tracker.position[9, 1], atol=0.00051)


def test_text_from_outside_cannot_leave_its_place() -> None:
    devices = (TrackedDevice("</script><b>", DeviceClass.HMD, "head"),)
    poses, tracker = walking(3)
    one = TrackerSequence.build(
        tracker.time_ns, devices, tracker.position[:, :1], tracker.rotation[:, :1], tracker.valid[:, :1]
    )

    page = render_page(poses, one, title="<i>Ä & ö</i>")

    assert page.count("</script>") == 2
    assert "<i>Ä" not in page
    assert "&lt;i&gt;Ä &amp; ö&lt;/i&gt;" in page
    assert data_in(page)["devices"][0]["serial"] == "</script><b>"


def test_roles_from_the_calibration_name_the_devices() -> None:
    data = data_in(render_page(*walking(3), roles={"T": "waist"}))

    assert [device["name"] for device in data["devices"]] == ["Head", "Left hand", "Waist"]


def test_base_stations_are_not_shown_and_worn_devices_come_first() -> None:
    poses, tracker = walking(6)
    devices = (
        TrackedDevice("B", DeviceClass.TRACKING_REFERENCE),
        TrackedDevice("T", DeviceClass.GENERIC_TRACKER),
        TrackedDevice("H", DeviceClass.HMD),
    )
    mixed = TrackerSequence.build(tracker.time_ns, devices, tracker.position, tracker.rotation, tracker.valid)

    data = data_in(render_page(poses, mixed, roles={"H": "head"}))

    assert [device["serial"] for device in data["devices"]] == ["H", "T"]
    assert [device["name"] for device in data["devices"]] == ["Head", "Tracker"]
    np.testing.assert_allclose(metres(data, "device_points"), tracker.position[:, [2, 1]], atol=0.00051)
    assert (data["reach"][:, 0] == 12).all()


def test_a_page_without_devices_or_frames_is_still_a_page(tmp_path: Path) -> None:
    poses, _ = walking(5)
    path = tmp_path / "nothing.html"

    data = data_in(render_page(poses))
    PageSink(path, BODY).close()

    assert data["devices"] == []
    assert len(data["times_ms"]) == 5
    assert len(data_in(path.read_text(encoding="utf-8"))["times_ms"]) == 0


def test_wrong_arrays_are_refused() -> None:
    poses, tracker = walking(5)
    poses.position[2, 3, 0] = np.nan

    with pytest.raises(ValueError, match="5 poses but 4"):
        render_page(poses, tracker.part(slice(0, 4)))
    with pytest.raises(ValueError, match="finite"):
        render_page(poses, tracker)


def test_the_sink_keeps_thirty_frames_a_second(tmp_path: Path) -> None:
    poses, tracker = walking(900)
    sink = PageSink(tmp_path / "body.html", BODY)

    send_all(sink, poses, tracker)

    data = data_in(sink.path.read_text(encoding="utf-8"))
    assert len(data["times_ms"]) == sink.stats().frames == 300
    assert sink.stats().dropped == 600
    assert ["Duration", "10.0 s", "900 frames"] in data["numbers"]
    assert ["Frame rate", "90 Hz", ""] in data["numbers"]
    assert ["Head reach error", "1.2 mm", "largest 1.2"] in data["numbers"]


def test_a_long_session_is_kept_in_larger_steps(tmp_path: Path) -> None:
    """Never more than ``max_frames`` in memory, and still from the first second to the last."""
    poses, tracker = walking(6000)
    sink = PageSink(tmp_path / "long.html", BODY, max_frames=100)
    largest = 0

    for i, frame in enumerate(tracker):
        sink.send(pose_frame(poses, i), frame)
        largest = max(largest, sink.stats().frames)
    sink.close()

    times_ms = data_in(sink.path.read_text(encoding="utf-8"))["times_ms"]
    assert largest < 100
    assert 40 < len(times_ms) < 100
    assert times_ms[-1] > 0.95 * 1e3 * 6000 / 90.0
    assert np.diff(times_ms).max() < 2.5 * np.diff(times_ms).min()


def test_a_short_drop_out_shows_even_between_kept_frames(tmp_path: Path) -> None:
    poses, tracker = walking(6000)
    valid = tracker.valid.copy()
    valid[3001, 0] = False
    lossy = TrackerSequence.build(tracker.time_ns, DEVICES, tracker.position, tracker.rotation, valid)
    sink = PageSink(tmp_path / "drop.html", BODY, max_frames=100)

    send_all(sink, poses, lossy)

    data = data_in(sink.path.read_text(encoding="utf-8"))
    assert (data["device_states"][:, 0] == 3).sum() == 1
    assert (data["device_states"][:, 1:] == 1).all()


def test_a_device_that_comes_later_gets_its_own_column(tmp_path: Path) -> None:
    poses, tracker = walking(40)
    sink = PageSink(tmp_path / "late.html", BODY)

    for i, frame in enumerate(tracker):
        late = i >= 20
        rows = [2, 0] if late else [0]
        few = TrackerFrame(
            frame.host_time_ns, tuple(DEVICES[r] for r in rows), frame.position[rows], frame.rotation[rows],
            frame.valid[rows], frame.result[rows],
        )  # fmt: skip
        sink.send(pose_frame(poses, i), few)
    sink.close()

    data = data_in(sink.path.read_text(encoding="utf-8"))
    assert [device["serial"] for device in data["devices"]] == ["H", "T"]
    assert (data["device_states"][:, 0] == 1).all()
    assert data["device_states"][0, 1] == 0
    assert data["device_states"][-1, 1] == 1


def test_bad_poses_are_counted_and_left_out(tmp_path: Path) -> None:
    poses, tracker = walking(9)
    poses.position[3] = np.nan
    sink = PageSink(tmp_path / "bad.html", BODY, rate_hz=1000.0)

    send_all(sink, poses, tracker)

    assert sink.stats().held == 1
    assert len(data_in(sink.path.read_text(encoding="utf-8"))["times_ms"]) == 8


def test_the_file_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    poses, tracker = walking(9)
    good, bad = tmp_path / "Körper 1.html", tmp_path / "taken.html"
    bad.mkdir()

    sink = PageSink(good, BODY)
    send_all(sink, poses, tracker)
    sink.close()
    refused = PageSink(bad, BODY)

    with pytest.raises(VrikError, match=r"cannot write .*taken"):
        refused.close()
    assert good.stat().st_size == sink.stats().bytes
    assert sorted(path.name for path in tmp_path.iterdir()) == ["Körper 1.html", "taken.html"]
