"""How long one VMC frame takes to encode: vrik's template against python-osc's builders, in one run.

    python tools/bench_vmc.py            a table
    python tools/bench_vmc.py --json     the same as one JSON document

Both encode the same frame (22 bones, six devices, datagrams of at most 1400 bytes) and must give the same
bytes. python-osc gets its numbers ready-made; vrik's time includes turning poses into numbers.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from collections.abc import Callable, Iterable
from typing import TypeAlias

import numpy as np
from pythonosc.osc_bundle_builder import IMMEDIATELY, OscBundleBuilder
from pythonosc.osc_message import OscMessage
from pythonosc.osc_message_builder import OscMessageBuilder

from vrik import quat
from vrik.body import BodyModel
from vrik.frames import (
    ROLES,
    DeviceClass,
    DeviceState,
    PoseFrame,
    TrackedDevice,
    TrackerFrame,
    TrackingResult,
)
from vrik.sinks.url import DEFAULT_MTU
from vrik.sinks.vmc import VmcEncoder
from vrik.skeleton import BONES

Plain: TypeAlias = tuple[str, tuple[str | int | float, ...]]
"""An OSC message in plain Python: address and arguments."""

DEVICES = (
    TrackedDevice("LHR-00000001", DeviceClass.HMD),
    TrackedDevice("LHR-00000002", DeviceClass.CONTROLLER),
    TrackedDevice("LHR-00000003", DeviceClass.CONTROLLER),
    TrackedDevice("LHR-00000004", DeviceClass.GENERIC_TRACKER),
    TrackedDevice("LHR-00000005", DeviceClass.GENERIC_TRACKER),
    TrackedDevice("LHR-00000006", DeviceClass.GENERIC_TRACKER),
)


def random_frame(rng: np.random.Generator, time_ns: int) -> tuple[PoseFrame, TrackerFrame]:
    """Some pose of the body and of six devices."""
    n, k, r = len(BONES), len(DEVICES), len(ROLES)
    local = quat.from_rotvec(rng.normal(0.0, 0.5, (n, 3)))
    pose = PoseFrame(
        host_time_ns=time_ns,
        position=rng.uniform(-2.0, 2.0, (n, 3)),
        rotation=local,
        local_rotation=local,
        reach_error_m=np.zeros(r),
        state=np.full(r, DeviceState.OK, np.int64),
        age_s=np.zeros(r),
    )
    frame = TrackerFrame(
        host_time_ns=time_ns,
        devices=DEVICES,
        position=rng.uniform(-2.0, 2.0, (k, 3)),
        rotation=quat.from_rotvec(rng.normal(0.0, 1.0, (k, 3))),
        valid=np.ones(k, np.bool_),
        result=np.full(k, TrackingResult.RUNNING_OK, np.int64),
    )
    return pose, frame


def plain_messages(body: BodyModel, pose: PoseFrame, frame: TrackerFrame, time_s: float) -> list[list[Plain]]:
    """The messages of one VMC frame, written straight from the protocol: body first, then devices.

    Knows nothing of earlier frames: quaternions get w >= 0.
    """
    steps = np.concatenate([pose.position[:1], body.offsets[1:]])
    main: list[Plain] = [
        ("/VMC/Ext/OK", (1, 3, 0, 1)),
        ("/VMC/Ext/T", (time_s,)),
        ("/VMC/Ext/Root/Pos", ("root", 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)),
    ]
    for name, p, q in zip(BONES, steps, pose.local_rotation, strict=True):
        main.append(("/VMC/Ext/Bone/Pos", (name[0].upper() + name[1:], *unity_numbers(p, q))))
    kinds = {DeviceClass.HMD: "Hmd", DeviceClass.CONTROLLER: "Con", DeviceClass.GENERIC_TRACKER: "Tra"}
    own: list[Plain] = []
    for kind, word in kinds.items():
        for i, device in enumerate(frame.devices):
            if device.device_class == kind and frame.valid[i]:
                numbers = unity_numbers(frame.position[i], frame.rotation[i])
                own.append((f"/VMC/Ext/{word}/Pos/Local", (device.serial, *numbers)))
    return [main, own]


def unity_numbers(p: Iterable[float], q: Iterable[float]) -> tuple[float, ...]:
    """An OpenVR pose, quaternion wxyz, as VMC writes it: x y z, x y z w in Unity's axes."""
    x, y, z = (float(v) for v in p)
    w, qx, qy, qz = (float(v) for v in np.asarray(q) / np.linalg.norm(np.asarray(q)))
    s = -1.0 if w < 0.0 else 1.0
    return (x, y, 0.0 - z, 0.0 - s * qx, 0.0 - s * qy, s * qz, s * w)


def python_osc_datagrams(parts: list[list[Plain]], mtu: int) -> list[bytes]:
    """The complete builder: every message and bundle made by python-osc, bundles closed at ``mtu`` bytes."""
    datagrams = []
    for messages in parts:
        bundle: list[OscMessage] = []
        size = 16
        for address, arguments in messages:
            builder = OscMessageBuilder(address)
            for argument in arguments:
                builder.add_arg(argument)
            message = builder.build()
            if bundle and size + 4 + message.size > mtu:
                datagrams.append(_bundle(bundle))
                bundle, size = [], 16
            bundle.append(message)
            size += 4 + message.size
        if bundle:
            datagrams.append(_bundle(bundle))
    return datagrams


def _bundle(messages: list[OscMessage]) -> bytes:
    builder = OscBundleBuilder(IMMEDIATELY)
    for message in messages:
        builder.add_content(message)
    return builder.build().dgram


def measure(rounds: int) -> dict[str, object]:
    """Times of both ways, taken in turns, and their ratio. [us]"""
    rng = np.random.default_rng(1)
    body = BodyModel.average(1.7)
    frames = [random_frame(rng, i * 11_111_111) for i in range(50)]
    encoder = VmcEncoder(body, DEFAULT_MTU)
    encoder.encode(*frames[0])

    ours: list[float] = []
    theirs: list[float] = []
    parts = [plain_messages(body, pose, frame, pose.host_time_ns * 1e-9) for pose, frame in frames]
    for _ in range(rounds):  # blocks in turns, so that both see the same state of the machine
        theirs += [_us(lambda p=p: python_osc_datagrams(p, DEFAULT_MTU)) for p in parts]  # type: ignore[misc]
        for _ in range(10):
            ours += [_us(lambda f=f: encoder.encode(*f)) for f in frames]  # type: ignore[misc]

    fresh = VmcEncoder(body, DEFAULT_MTU)
    datagrams = [bytes(d) for d in fresh.encode(*frames[0])]
    same = datagrams == python_osc_datagrams(plain_messages(body, *frames[0], 0.0), DEFAULT_MTU)
    return {
        "machine": f"{platform.machine()}, Python {platform.python_version()}, numpy {np.__version__}",
        "datagrams": [len(d) for d in datagrams],
        "same_bytes": same,
        "template_us": _percentiles(ours),
        "python_osc_us": _percentiles(theirs),
        "ratio_of_medians": round(float(np.median(theirs) / np.median(ours)), 1),
    }


def _us(call: Callable[[], object]) -> float:
    start = time.perf_counter_ns()
    call()
    return (time.perf_counter_ns() - start) * 1e-3


def _percentiles(times_us: list[float]) -> dict[str, float]:
    values = np.percentile(times_us, (50, 90, 99, 100))
    return {name: round(float(v), 2) for name, v in zip(("p50", "p90", "p99", "max"), values, strict=True)}


def main() -> int:
    """Measure and print; exit code 1 if the bytes differ."""
    parser = argparse.ArgumentParser(description="Time of one VMC frame: template against python-osc.")
    parser.add_argument(
        "--rounds", type=int, default=300, help="frames built by python-osc (20 times as many by vrik)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    arguments = parser.parse_args()
    result = measure(arguments.rounds)
    if arguments.json:
        print(json.dumps(result))
    else:
        for name, value in result.items():
            print(f"{name:18}{value}")
    return 0 if result["same_bytes"] else 1


if __name__ == "__main__":
    sys.exit(main())
