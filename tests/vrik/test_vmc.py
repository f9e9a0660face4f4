"""The VMC sender: its bytes, its meaning, and what a receiver gets over a real socket."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from pythonosc.osc_packet import OscPacket

from tools.bench_vmc import DEVICES, plain_messages, python_osc_datagrams, random_frame
from vrik import jit, quat
from vrik.body import BodyModel
from vrik.errors import NetworkError, UsageError
from vrik.frames import ROLE, ROLES, DeviceClass, DeviceState, PoseFrame, TrackedDevice, TrackerFrame
from vrik.kernels import vmc as kernels
from vrik.kinematics import forward
from vrik.sinks import SinkStats, open_sink
from vrik.sinks.vmc import BONE_NAMES, RateLimit, VmcEncoder
from vrik.skeleton import BONE, BONES, PARENTS

BODY = BodyModel.average(1.7)
NO_DEVICES = TrackerFrame(0, (), np.zeros((0, 3)), np.zeros((0, 4)), np.zeros(0, bool), np.zeros(0, np.int64))


def posed(world: np.ndarray, hips: np.ndarray, time_ns: int = 0) -> PoseFrame:
    """A frame of canonical world rotations, with joints by forward kinematics."""
    local = world.copy()
    local[1:] = quat.multiply(quat.conjugate(world[PARENTS[1:]]), world[1:])
    r = len(ROLES)
    joints = forward(BODY.offsets, world, hips)
    state = np.full(r, DeviceState.OK, np.int64)
    return PoseFrame(time_ns, joints, world, local, np.zeros(r), state, np.zeros(r))


def t_pose(yaw_rad: float = 0.0, time_ns: int = 0) -> PoseFrame:
    """Standing in a T-pose, turned to the left by ``yaw_rad``."""
    turn = quat.from_rotvec(np.array([0.0, yaw_rad, 0.0]))
    return posed(np.tile(turn, (len(BONES), 1)), BODY.tpose[0], time_ns)


def read(datagrams) -> list[tuple[str, list]]:
    """Address and arguments of all messages, by python-osc."""
    return [(m.message.address, m.message.params) for d in datagrams for m in OscPacket(bytes(d)).messages]


def bones(datagrams) -> dict[str, np.ndarray]:
    """The seven numbers of each bone."""
    return {a[0]: np.array(a[1:]) for address, a in read(datagrams) if address == "/VMC/Ext/Bone/Pos"}


def numbers(datagrams) -> np.ndarray:
    return np.array([x for _, arguments in read(datagrams) for x in arguments if isinstance(x, float)])


@pytest.mark.parametrize("mtu", [256, 600, 1400, 9000])
def test_a_frame_has_the_bytes_of_python_osc(mtu: int) -> None:
    """Poses and sets of devices change at random; every datagram of every frame is the same."""
    rng = np.random.default_rng(mtu)
    for _ in range(25):
        pose, frame = random_frame(rng, 5_000_000_000)
        order = rng.permutation(len(DEVICES))[: rng.integers(0, len(DEVICES) + 1)]
        frame = replace(
            frame,
            devices=tuple(DEVICES[i] for i in order),
            position=frame.position[order],
            rotation=frame.rotation[order],
            valid=rng.random(len(order)) < 0.7,
        )

        datagrams = VmcEncoder(BODY, mtu).encode(pose, frame)

        expected = python_osc_datagrams(plain_messages(BODY, pose, frame, 0.0), mtu)
        assert [bytes(d) for d in datagrams] == expected
        assert all(len(d) <= mtu for d in datagrams)


def test_a_stream_has_the_bytes_of_python_osc() -> None:
    """One encoder over many frames, while devices come and go: no trace of an earlier frame stays."""
    rng = np.random.default_rng(5)
    encoder = VmcEncoder(BODY)
    for i in range(40):
        pose, frame = random_frame(rng, 10**12 + i * 11_111_111)
        pose.local_rotation[:] = quat.from_rotvec(0.02 * quat.to_rotvec(pose.local_rotation))
        frame.rotation[:] = quat.from_rotvec(0.02 * quat.to_rotvec(frame.rotation))
        frame.valid[:] = rng.random(len(DEVICES)) < (0.5 if i % 4 == 0 else 1.0)

        datagrams = encoder.encode(pose, frame)

        expected = python_osc_datagrams(plain_messages(BODY, pose, frame, i * 11_111_111 * 1e-9), 1400)
        assert [bytes(d) for d in datagrams] == expected


def test_messages_have_the_tags_and_counts_of_the_protocol() -> None:
    """C69: receivers take 8 or 14 arguments for Root, and some stop for ever after another number."""
    datagrams = VmcEncoder(BODY).encode(*random_frame(np.random.default_rng(0), 0))

    signatures = [
        (address, "".join({str: "s", int: "i", float: "f"}[type(a)] for a in arguments))
        for address, arguments in read(datagrams)
    ]
    assert signatures[:3] == [
        ("/VMC/Ext/OK", "iiii"),
        ("/VMC/Ext/T", "f"),
        ("/VMC/Ext/Root/Pos", "sfffffff"),
    ]
    assert signatures[3:25] == [("/VMC/Ext/Bone/Pos", "sfffffff")] * 22
    assert [s[0][9:12] for s in signatures[25:]] == ["Hmd", "Con", "Con", "Tra", "Tra", "Tra"]
    assert {s[1] for s in signatures[25:]} == {"sfffffff"}


def test_every_bundle_is_for_now_and_devices_have_their_own() -> None:
    """A later time tag makes scheduling receivers wait; some reject a bundle for one unknown address."""
    datagrams = VmcEncoder(BODY).encode(*random_frame(np.random.default_rng(0), 0))

    assert all(bytes(d[:16]) == b"#bundle\0\0\0\0\0\0\0\0\x01" for d in datagrams)
    kinds = [{address.endswith("Local") for address, _ in read([d])} for d in datagrams]
    assert kinds == [{False}, {False}, {True}]


def test_bone_names_are_unitys_and_parents_come_first(shared: Path) -> None:
    table = json.loads((shared / "protocols/vmc_bones.json").read_text())["bones"]
    parent = {bone["name"]: bone["parent"] for bone in table}

    assert set(BONE_NAMES) <= set(parent)
    for i, name in enumerate(BONE_NAMES):
        assert parent[name] is None or parent[name] in BONE_NAMES[:i]
        assert parent[name] == (None if PARENTS[i] < 0 else BONE_NAMES[PARENTS[i]])
    assert BONE_NAMES[BONE_NAMES.index("Chest") + 1] == "UpperChest"


def test_a_t_pose_gives_identity_rotations_and_rest_offsets() -> None:
    sent = bones(VmcEncoder(BODY).encode(t_pose(), NO_DEVICES))

    for i, name in enumerate(BONE_NAMES):
        np.testing.assert_array_equal(sent[name][3:], [0.0, 0.0, 0.0, 1.0])
        np.testing.assert_allclose(sent[name][:3], BODY.offsets[i] * (1.0, 1.0, -1.0), atol=1e-7)


def unity_world(sent: dict[str, np.ndarray]) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """What a receiver makes of it: positions and rotations (wxyz) in Unity's axes."""
    world: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    for i, name in enumerate(BONE_NAMES):
        p, q = sent[name][:3], quat.wxyz_from_xyzw(sent[name][3:])
        if i:
            parent_p, parent_q = world[BONE_NAMES[PARENTS[i]]]
            p, q = parent_p + quat.rotate(parent_q, p), quat.multiply(parent_q, q)
        world[name] = (p, q)
    return world


def test_left_is_left_and_forward_is_forward() -> None:
    """C29: T-pose looking along OpenVR's -Z is Unity's +Z; the left hand is at -X, the toes point to +Z."""
    world = unity_world(bones(VmcEncoder(BODY).encode(t_pose(), NO_DEVICES)))

    assert world["LeftHand"][0][0] < -0.5 < 0.5 < world["RightHand"][0][0]
    assert world["LeftToes"][0][2] > world["LeftFoot"][0][2] + 0.05


def test_a_turn_to_the_right_is_a_positive_yaw_in_unity() -> None:
    """C29: turned right by 90 degrees, the hips' yaw is +90 and the left hand points forward (+Z)."""
    sent = bones(VmcEncoder(BODY).encode(t_pose(-np.pi / 2), NO_DEVICES))

    x, y, z, w = sent["Hips"][3:]
    assert np.degrees(2.0 * np.arctan2(y, w)) == pytest.approx(90.0, abs=0.01)
    assert abs(x) + abs(z) < 1e-6
    left = unity_world(sent)["LeftHand"][0]
    assert left[2] > 0.5


def test_a_receiver_gets_back_the_joints_that_were_solved() -> None:
    """Whatever the pose: chaining the local values in Unity's axes gives our joints, mirrored."""
    rng = np.random.default_rng(2)
    pose = posed(quat.from_rotvec(rng.normal(0.0, 0.7, (len(BONES), 3))), np.array([0.4, 0.9, -1.2]))

    world = unity_world(bones(VmcEncoder(BODY).encode(pose, NO_DEVICES)))

    for i, name in enumerate(BONE_NAMES):
        np.testing.assert_allclose(world[name][0], pose.position[i] * (1, 1, -1), atol=2e-6)


def test_time_starts_at_zero_and_follows_the_frames() -> None:
    encoder = VmcEncoder(BODY)

    times = [
        read(encoder.encode(t_pose(time_ns=10**15 + step), NO_DEVICES))[1][1][0]
        for step in (0, 11_111_111, 3_600_000_000_000)
    ]
    assert times == pytest.approx([0.0, 0.011111111, 3600.0], rel=1e-6)


def test_tracking_is_bad_while_a_worn_device_is_not_tracked() -> None:
    encoder = VmcEncoder(BODY)
    seen = []
    for state in (
        DeviceState.OK,
        DeviceState.HELD,
        DeviceState.LOST,
        DeviceState.RETURNING,
        DeviceState.ABSENT,
    ):
        pose = t_pose()
        pose.state[ROLE["left_hand"]] = state
        seen.append(read(encoder.encode(pose, NO_DEVICES))[0][1])

    assert [arguments[3] for arguments in seen] == [1, 0, 0, 1, 1]
    assert {tuple(arguments[:3]) for arguments in seen} == {(1, 3, 0)}


def test_the_tracking_status_outlives_a_change_of_devices() -> None:
    pose, frame = random_frame(np.random.default_rng(0), 0)
    pose.state[ROLE["head"]] = DeviceState.LOST
    encoder = VmcEncoder(BODY)
    encoder.encode(pose, frame)
    frame.valid[2] = False

    assert read(encoder.encode(pose, frame))[0][1][3] == 0


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e300])
def test_what_is_no_number_never_leaves(bad: float) -> None:
    """The last good values go out instead and are counted; afterwards all is as before."""
    rng = np.random.default_rng(3)
    encoder = VmcEncoder(BODY)
    good, frame = random_frame(rng, 0)
    before = numbers(encoder.encode(good, frame))
    broken = replace(good, position=good.position.copy(), local_rotation=good.local_rotation.copy())
    broken.position[0, 1] = bad
    broken.local_rotation[BONE["leftHand"], 2] = bad

    during = numbers(encoder.encode(broken, frame))

    np.testing.assert_array_equal(during, before)
    assert encoder.held == 2
    encoder.encode(good, frame)
    assert encoder.held == 2


def test_broken_from_the_first_frame_gives_the_rest_pose() -> None:
    pose = t_pose()
    pose.position[:] = np.nan
    pose.local_rotation[:] = np.nan

    sent = bones(VmcEncoder(BODY).encode(pose, NO_DEVICES))

    expected = bones(VmcEncoder(BODY).encode(t_pose(), NO_DEVICES))
    for name in BONE_NAMES:
        np.testing.assert_allclose(sent[name], expected[name], atol=1e-7)


@pytest.mark.parametrize("rotation", [(0.0, 0.0, 0.0, 0.0), (np.nan,) * 4, (2.0, 0.0, 0.0, 0.0)])
def test_a_device_without_a_rotation_is_not_valid_in_that_frame(rotation: tuple[float, ...]) -> None:
    """C58: a zero quaternion turned into NaN elsewhere, and stayed."""
    pose, frame = random_frame(np.random.default_rng(0), 0)
    encoder = VmcEncoder(BODY)
    before = read(encoder.encode(pose, frame))
    broken = replace(frame, rotation=frame.rotation.copy())
    broken.rotation[1] = rotation

    during = read(encoder.encode(pose, broken))
    after = read(encoder.encode(pose, frame))

    assert [m for m in before if DEVICES[1].serial not in m[1]] == during
    assert after == before


def test_quaternions_have_length_one_and_do_not_jump_in_sign() -> None:
    """Receivers that smooth each number break on a change of sign."""
    rng = np.random.default_rng(4)
    encoder = VmcEncoder(BODY)
    pose, frame = random_frame(rng, 0)
    axis = rng.normal(size=(len(BONES), 3))
    previous = None
    for step in range(60):
        turn = quat.from_rotvec(axis * step * 0.1)
        flips = rng.choice([-1.0, 1.0], (len(BONES), 1))
        spun = quat.multiply(quat.from_rotvec(axis[: len(DEVICES)] * step * 0.1), frame.rotation)
        moved = replace(frame, rotation=spun * flips[: len(DEVICES)])

        sent = read(encoder.encode(replace(pose, local_rotation=turn * flips * 1.004), moved))

        q = np.array([arguments[4:8] for _, arguments in sent if len(arguments) == 8])
        np.testing.assert_allclose(np.linalg.norm(q, axis=1), 1.0, atol=1e-6)
        if previous is not None:
            assert (np.sum(q * previous, axis=1) > 0.9).all()
        previous = q


def test_read_only_and_strided_arrays_are_taken_as_they_are() -> None:
    """Frames read from a file may be views; they give the same bytes, and nothing compiles in the stream."""
    pose, frame = random_frame(np.random.default_rng(6), 0)
    expected = [bytes(d) for d in VmcEncoder(BODY).encode(pose, frame)]
    encoder = VmcEncoder(BODY)
    wide = np.zeros((len(DEVICES), 9))
    wide[:, 2:5], wide[:, 5:9] = frame.position, frame.rotation
    valid = frame.valid.copy()
    valid.setflags(write=False)
    compiled: list[str] = []

    with jit.on_compile(compiled.append):
        strided = replace(frame, position=wide[:, 2:5], rotation=wide[:, 5:9], valid=valid)
        datagrams = encoder.encode(pose, strided)

    assert [bytes(d) for d in datagrams] == expected
    assert compiled == []


def test_device_names_that_cannot_be_sent_do_no_harm() -> None:
    """Names come from drivers and files: long, empty, with a NUL, not UTF-8."""
    names = ("x" * 300, "", "a\0b", "\udcff", "日本語")
    devices = tuple(TrackedDevice(name, DeviceClass.GENERIC_TRACKER) for name in names)
    _, frame = random_frame(np.random.default_rng(0), 0)
    frame = replace(
        frame,
        devices=devices,
        position=frame.position[:5],
        rotation=frame.rotation[:5],
        valid=frame.valid[:5],
    )
    encoder = VmcEncoder(BODY, 256)

    sent = [a[0] for address, a in read(encoder.encode(t_pose(), frame)) if address.endswith("Local")]

    assert sent == ["", "ab", "?", "日本語"]
    assert encoder.too_big == 1


def test_base_stations_are_not_sent() -> None:
    pose, frame = random_frame(np.random.default_rng(0), 0)
    station = TrackedDevice("LHB-1", DeviceClass.TRACKING_REFERENCE)
    frame = replace(frame, devices=(station, *DEVICES[1:]))

    assert "LHB-1" not in [a[0] for _, a in read(VmcEncoder(BODY).encode(pose, frame))]


def test_the_kernel_does_the_same_as_plain_python() -> None:
    rng = np.random.default_rng(8)
    pose, frame = random_frame(rng, 0)
    frame.valid[2] = False
    pose.local_rotation[3] = np.nan
    results = []
    for write in (kernels.write_frame, jit.plain(kernels.write_frame)):
        n, k = len(BONES), len(DEVICES)
        usable, last = np.ones(k, bool), np.tile([0.0, 0, 0, 0, 0, 0, 1], (n + k, 1))
        slots, words = np.arange(n + k, dtype=np.int64) * 7, np.zeros((n + k) * 7, np.uint32)
        arguments = (pose.position, pose.local_rotation, frame.position, frame.rotation, frame.valid)
        returned = [write(*arguments, usable, slots, last, words) for _ in range(2)]
        results.append((returned, usable, last, words))

    assert results[0][0] == results[1][0] == [-1, 1]
    for compiled, python in zip(results[0][1:], results[1][1:], strict=True):
        np.testing.assert_array_equal(compiled, python)


def sends(rate_hz: float, times_s: np.ndarray) -> int:
    limit = RateLimit(rate_hz)
    return sum(limit.allows(float(t)) for t in times_s)


@pytest.mark.parametrize(
    ("source_hz", "rate_hz", "expected"),
    [(90, 120, 900), (90, 90, 900), (90, 60, 600), (90, 30, 300), (120, 90, 900), (1000, 60, 600)],
)
def test_the_rate_is_kept_without_a_beat(source_hz: float, rate_hz: float, expected: int) -> None:
    """Ten seconds of a jittering source; what is allowed comes through, what is above is left out."""
    rng = np.random.default_rng(1)
    times = np.arange(10 * source_hz) / source_hz + rng.uniform(0.0, 0.2, 10 * source_hz) / source_hz

    assert sends(rate_hz, times) == pytest.approx(expected, abs=3)


def test_a_pause_is_not_made_up_for() -> None:
    times = np.concatenate([np.arange(60) / 90, 10.0 + np.arange(90) / 90])

    assert sends(30.0, times) == pytest.approx(20 + 30, abs=2)


@pytest.fixture
def receiver() -> Iterator[socket.socket]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as opened:
        opened.bind(("127.0.0.1", 0))
        opened.settimeout(5.0)
        yield opened


def free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def steps(hz: float) -> Callable[[], float]:
    """A clock that moves on by one frame whenever it is read."""
    count = iter(range(10**9))
    return lambda: next(count) / hz


def test_a_sink_sends_whole_frames_and_says_so(receiver: socket.socket) -> None:
    port = receiver.getsockname()[1]
    pose, frame = random_frame(np.random.default_rng(0), 0)
    sink = open_sink(f"vmc://127.0.0.1:{port}", BODY, steps(90.0))

    sink.send(pose, frame)
    sink.send(pose, frame)
    sink.close()

    expected = [bytes(d) for d in VmcEncoder(BODY).encode(pose, frame)] * 2
    assert [receiver.recv(2000) for _ in expected] == expected
    assert sink.stats() == SinkStats(
        url=f"vmc://127.0.0.1:{port}",
        address=f"127.0.0.1:{port}",
        frames=2,
        datagrams=6,
        bytes=sum(map(len, expected)),
    )


def test_the_rate_of_the_url_is_kept(receiver: socket.socket) -> None:
    sink = open_sink(f"vmc://127.0.0.1:{receiver.getsockname()[1]}?rate=30", BODY, steps(90.0))

    for _ in range(90):
        sink.send(t_pose(), NO_DEVICES)
    sink.close()

    stats = sink.stats()
    assert stats.frames == pytest.approx(30, abs=1)
    assert stats.frames + stats.dropped == 90


def test_a_missing_receiver_stops_nothing_and_gets_packets_once_it_listens() -> None:
    """C08: 90 frames to a closed port raise nothing and are counted; then a receiver opens."""
    port = free_port()
    sink = open_sink(f"vmc://127.0.0.1:{port}", BODY, steps(90.0))
    for _ in range(90):
        sink.send(t_pose(), NO_DEVICES)
    refused = sink.stats().refused

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as opened:
        opened.bind(("127.0.0.1", port))
        opened.settimeout(5.0)
        for i in range(3):
            sink.send(t_pose(time_ns=i), NO_DEVICES)
        arrived = [opened.recv(2000) for _ in range(6)]

    sink.close()
    assert refused >= 80
    assert sink.stats().refused <= refused + 1
    assert sink.stats().frames == 93
    assert read(arrived)[0][0] == "/VMC/Ext/OK"


def test_two_sinks_do_not_disturb_each_other(receiver: socket.socket) -> None:
    """One target is closed; the other gets everything."""
    pose, frame = random_frame(np.random.default_rng(0), 0)
    dead = open_sink(f"vmc://127.0.0.1:{free_port()}", BODY, steps(90.0))
    alive = open_sink(f"vmc://127.0.0.1:{receiver.getsockname()[1]}", BODY, steps(90.0))

    for _ in range(10):
        dead.send(pose, frame)
        alive.send(pose, frame)
    arrived = [receiver.recv(2000) for _ in range(30)]
    dead.close()
    alive.close()

    assert len(arrived) == 30
    assert alive.stats().errors == 0
    assert dead.stats().refused > 0


def test_two_senders_may_use_one_target(receiver: socket.socket) -> None:
    """S29: sending binds no fixed port, so that nothing clashes."""
    url = f"vmc://127.0.0.1:{receiver.getsockname()[1]}"
    sinks = [open_sink(url, BODY), open_sink(url, BODY)]

    for sink in sinks:
        sink.send(t_pose(), NO_DEVICES)

    assert len({receiver.recvfrom(2000)[1] for _ in range(4)}) == 2
    for sink in sinks:
        sink.close()


def test_a_datagram_limit_that_no_message_fits_is_wrong_usage() -> None:
    with pytest.raises(UsageError, match="mtu must be a whole number from 256"):
        open_sink("vmc://127.0.0.1:39539?mtu=60", BODY)


def test_an_unknown_host_is_a_network_error() -> None:
    with pytest.raises(NetworkError, match="no-such-host"):
        open_sink("vmc://no-such-host.invalid:39539", BODY)


def test_oscdump_reads_what_was_sent(needs_tool: Callable[[str], str], tmp_path: Path) -> None:
    """A receiver that is not ours (liblo) prints every message with the right names, tags and numbers."""
    port = free_port()
    pose, frame = random_frame(np.random.default_rng(9), 0)
    expected = read(VmcEncoder(BODY).encode(pose, frame))
    out = tmp_path / "oscdump.txt"
    with out.open("w") as stream:
        dump = subprocess.Popen([needs_tool("oscdump"), "-L", str(port)], stdout=stream)
    sink = open_sink(f"vmc://127.0.0.1:{port}", BODY, steps(90.0))
    try:
        deadline = time.monotonic() + 10.0
        lines: list[str] = []
        while len(lines) < len(expected) and time.monotonic() < deadline:
            sink.send(pose, frame)  # again until it listens
            time.sleep(0.1)
            lines = out.read_text().splitlines()
    finally:
        dump.kill()
        dump.wait(10.0)
        sink.close()

    start = next(i for i, line in enumerate(lines) if "/VMC/Ext/OK" in line)
    assert len(lines) - start >= len(expected)
    for line, (address, arguments) in zip(lines[start:], expected, strict=False):
        words = re.findall(r'"[^"]*"|\S+', line)
        tags = "".join({str: "s", int: "i", float: "f"}[type(a)] for a in arguments)
        assert words[1:3] == [address, tags]
        shown = [
            f'"{a}"' if isinstance(a, str) else f"{a:f}" if isinstance(a, float) else str(a)
            for a in arguments
        ]
        assert words[3:] == shown
