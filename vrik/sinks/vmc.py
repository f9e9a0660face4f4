"""VMC protocol, as a Performer: a body an avatar program can wear, and the devices it came from.

Sent each frame, in this order: OK, T, Root, the 22 bones with parents first, then in bundles of their own
the devices. Unity's axes (left-handed, +Y up, +Z forward), metres, quaternions x y z w. See docs/vmc.md.

Source: VMC Protocol specification V3.1, https://protocol.vmc.info
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from vrik import quat
from vrik.arrays import Ints
from vrik.body import BodyModel
from vrik.frames import DeviceClass, DeviceState, PoseFrame, TrackedDevice, TrackerFrame
from vrik.kernels.vmc import write_frame
from vrik.osc import BUNDLE_HEADER, FrameTemplate, Message
from vrik.sinks import SinkStats
from vrik.sinks.udp import UdpSender
from vrik.sinks.url import DEFAULT_MTU, Target
from vrik.skeleton import BONES

IDENTITY_POSE = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)
"""Position x y z, rotation x y z w."""

BONE_NAMES = tuple(name[0].upper() + name[1:] for name in BONES)
"""Unity's ``HumanBodyBones``: the VRM names with a capital."""

DEVICE_ADDRESSES = {
    DeviceClass.HMD: "/VMC/Ext/Hmd/Pos/Local",
    DeviceClass.CONTROLLER: "/VMC/Ext/Con/Pos/Local",
    DeviceClass.GENERIC_TRACKER: "/VMC/Ext/Tra/Pos/Local",
}
"""Where each kind of device is sent; other kinds (base stations) are not."""

LOADED, CALIBRATED, NORMAL_MODE = 1, 3, 0
_OK, _T, _FIRST_BONE = 0, 1, 3
"""Where in a frame these messages are."""


class VmcEncoder:
    """Turns a body into datagrams; remembers what it sent last.

    Args:
        body: Whose rest offsets are sent as the bones' local positions.
        mtu: Longest datagram. [bytes]

    Raises:
        ValueError: If ``mtu`` is too small for a bone.
    """

    held: int
    """Numbers that were not finite, or quaternions that were none, so that the last good value went out."""

    too_big: int
    """Devices left out because their name does not fit into a datagram."""

    def __init__(self, body: BodyModel, mtu: int = DEFAULT_MTU) -> None:
        self.held = 0
        self.too_big = 0
        self._mtu = mtu
        self._start_ns: int | None = None
        self._states = b""
        self._tracking = 1
        # What is held if nothing better ever comes: the rest pose. Only the hips' place changes later.
        offsets = body.offsets * (1.0, 1.0, -1.0) + 0.0
        self._bones_last = np.hstack([offsets, np.tile(IDENTITY_POSE[3:], (len(BONES), 1))])
        self._take_devices(())
        self._compile()

    def encode(self, pose: PoseFrame, frame: TrackerFrame) -> tuple[memoryview, ...]:
        """The datagrams of one frame. They show this frame until the next call."""
        if frame.devices is not self._devices and frame.devices != self._devices:
            self._take_devices(frame.devices)
        body, turns = pose.position, pose.local_rotation
        places, spins, valid = frame.position, frame.rotation, frame.valid
        if not (
            body.flags.carray
            and turns.flags.carray
            and places.flags.carray
            and spins.flags.carray
            and valid.flags.carray
        ):
            # Read-only, or not in rows: for such arrays numba would compile anew in the middle of the stream.
            body, turns, places, spins = body.copy(), turns.copy(), places.copy(), spins.copy()
            valid = valid.copy()
        words = self._template.words
        held = write_frame(body, turns, places, spins, valid, self._usable, self._slots, self._last, words)
        if held < 0:  # other devices than before
            self._lay_out()
            words = self._template.words
            held = write_frame(
                body, turns, places, spins, valid, self._usable, self._slots, self._last, words
            )
        self.held += held

        if self._start_ns is None:
            self._start_ns = pose.host_time_ns
        self._template.floats[self._time_slot] = (pose.host_time_ns - self._start_ns) * 1e-9
        states = pose.state.tobytes()
        if states != self._states:
            self._states = states
            self._tracking = _tracking(pose.state)
            self._template.ints[self._tracking_slot] = self._tracking
        return self._template.datagrams

    def _compile(self) -> None:
        """Write the rest pose once, so that the kernel is ready before the stream begins."""
        rest, turns = self._last[:, :3].copy(), quat.identity(len(BONES))
        rest[0, 2] = -rest[0, 2]
        none = np.zeros((0, 3)), np.zeros((0, 4)), self._usable
        write_frame(rest, turns, *none, self._usable, self._slots, self._last, self._template.words)

    def _take_devices(self, devices: tuple[TrackedDevice, ...]) -> None:
        """Make room for another set of devices, none of which has a pose yet."""
        n, k = len(BONES), len(devices)
        self._devices = devices
        self._usable = np.zeros(k, np.bool_)
        self._last = np.vstack([self._bones_last, np.tile(IDENTITY_POSE, (k, 1))])
        self._bones_last = self._last[:n]
        self._lay_out()

    def _lay_out(self) -> None:
        """A new template for the devices that have a pose now: headset first, then controllers, trackers."""
        n = len(BONES)
        rows = [
            i for i, d in enumerate(self._devices) if self._usable[i] and d.device_class in DEVICE_ADDRESSES
        ]
        rows.sort(key=lambda i: self._devices[i].device_class)
        own: dict[int, Message] = {}
        for i in rows:
            device = self._devices[i]
            serial = device.serial.replace("\0", "")
            message = Message(DEVICE_ADDRESSES[device.device_class], (serial, *IDENTITY_POSE))
            if len(BUNDLE_HEADER) + 4 + message.size <= self._mtu:
                own[n + i] = message
            else:
                self.too_big += 1
        self._template = FrameTemplate([_body_messages(self._tracking), list(own.values())], self._mtu)
        slots = self._template.slots
        self._tracking_slot = slots[_OK][3]
        self._time_slot = slots[_T][0]
        self._slots = np.full(n + len(self._devices), -1, np.int64)
        for row, numbers in zip([*range(n), *own], slots[_FIRST_BONE:], strict=True):
            self._slots[row] = numbers[0]


class VmcSink:
    """Sends a body to one VMC receiver.

    Args:
        target: Where to, how often, in datagrams of what length.
        body: Whose rest offsets are sent.
        clock: Seconds, for the rate limit; real time, whatever the speed of a replay.

    Raises:
        NetworkError: If the host is unknown or cannot be reached from here.
    """

    def __init__(self, target: Target, body: BodyModel, clock: Callable[[], float] = time.monotonic) -> None:
        self._target = target
        self._clock = clock
        self._limit = RateLimit(target.rate_hz)
        self._frames = 0
        self._dropped = 0
        self._encoder = VmcEncoder(body, target.mtu)
        self._sender = UdpSender(target.host, target.port)

    def send(self, pose: PoseFrame, frame: TrackerFrame) -> None:
        """Send one frame, unless the rate is used up. Network faults are counted."""
        if not self._limit.allows(self._clock()):
            self._dropped += 1
            return
        for datagram in self._encoder.encode(pose, frame):
            self._sender.send(datagram)
        self._frames += 1

    def close(self) -> None:
        """Close the socket; twice is harmless."""
        self._sender.close()

    def stats(self) -> SinkStats:
        """What happened so far."""
        sender = self._sender
        return SinkStats(
            url=self._target.url,
            address=sender.address,
            frames=self._frames,
            dropped=self._dropped,
            datagrams=sender.datagrams,
            bytes=sender.bytes,
            refused=sender.refused,
            refusing=sender.refusing,
            full=sender.full,
            too_big=sender.too_big + self._encoder.too_big,
            other=sender.other,
            last_error=sender.last_error,
            held=self._encoder.held,
        )


class RateLimit:
    """Thins a stream out to ``rate_hz`` without a beat between the two rates.

    Frames are due at even steps. One may come up to half a step early, so that jitter in a stream of just
    the allowed rate costs nothing. After a pause the steps begin anew: what was not sent is not made up for.
    """

    def __init__(self, rate_hz: float) -> None:
        self._step_s = 1.0 / rate_hz
        self._due_s = -np.inf

    def allows(self, now_s: float) -> bool:
        """Whether a frame may be sent now; if so, it counts as sent. [s]"""
        if now_s < self._due_s - 0.5 * self._step_s:
            return False
        paused = now_s > self._due_s + self._step_s
        self._due_s = (now_s if paused else self._due_s) + self._step_s
        return True


def _body_messages(tracking: int) -> list[Message]:
    bones = [Message("/VMC/Ext/Bone/Pos", (name, *IDENTITY_POSE)) for name in BONE_NAMES]
    return [
        Message("/VMC/Ext/OK", (LOADED, CALIBRATED, NORMAL_MODE, tracking)),
        Message("/VMC/Ext/T", (0.0,)),
        Message("/VMC/Ext/Root/Pos", ("root", *IDENTITY_POSE)),
        *bones,
    ]


def _tracking(state: Ints) -> int:
    """VMC's tracking status: 0 while any worn device is not tracked, else 1."""
    return 0 if np.isin(state, (DeviceState.HELD, DeviceState.LOST)).any() else 1
