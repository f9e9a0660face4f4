"""Says in sentences what looks wrong with a recording."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from recordings.inspect_report import DeviceReport

HEAD_HEIGHT_RANGE_M = (0.8, 2.3)
"""Standing head heights outside of this are not those of a person in metres over the floor."""

FAR_HAND_M = 1.5
"""A hand is rarely farther than 1.1 m from the eyes."""

STILL_M = 0.02
"""A device worn by a living person moves in a larger box than this."""

STILL_AFTER_S = 5.0
"""Nobody keeps head or hands that still for so long. [s]"""

STILL_FEET_AFTER_S = 20.0
"""Feet and hips may stand still for a while. [s]"""

LOW_RATE_HZ = 30.0
LOST_SHARE = 0.2
ASTRAY_SHARE = 0.02

_UNITS = (("feet", 0.3048), ("centimetres", 0.01), ("millimetres", 0.001), ("inches", 0.0254))
_HANDS = ("left_hand", "right_hand")


def head_of(devices: Sequence[DeviceReport]) -> DeviceReport | None:
    """The device on the head: by its role, else the first headset."""
    by_role = [d for d in devices if d.role == "head"]
    by_class = [d for d in devices if d.device_class == "HMD"]
    return next(iter(by_role or by_class), None)


def what_is_odd(devices: Sequence[DeviceReport], frames: int, duration_s: float, rate_hz: float) -> list[str]:
    """One sentence for each thing that a person should know before using the recording."""
    if not frames:
        return ["there are no frames in it"]
    if not any(device.valid_share for device in devices if _is_worn(device)):
        return ["nothing is tracked in it: no device ever has a usable pose"]
    odd = list(_about_head(devices))
    if 0.0 < rate_hz < LOW_RATE_HZ:
        odd.append(f"the rate is low: {rate_hz:.1f} frames a second, a headset gives 72 to 144")
    for device in devices:
        odd.extend(_about_device(device, duration_s))
    return odd


def _is_worn(device: DeviceReport) -> bool:
    return device.device_class != "TRACKING_REFERENCE"


def _about_head(devices: Sequence[DeviceReport]) -> Iterator[str]:
    head = head_of(devices)
    if head is None:
        yield "no headset is in it; a body needs a head device"
        return
    if not head.valid_share:
        yield f"the headset {head.label} is never tracked"
        return
    low, high = HEAD_HEIGHT_RANGE_M
    height = head.height_standing_m
    if height > high:
        fitting = [(unit, height * size) for unit, size in _UNITS if low <= height * size <= high]
        units = " or ".join(f"{unit} (then it is {metres:.2f} m)" for unit, metres in fitting)
        guess = f"; the unit looks like {units}" if units else ""
        yield f"the head is {height:.2f} m high, a person's is {low} to {high} m{guess}"
    elif height < low:
        yield (
            f"the head is only {height:.2f} m high, a person's is {low} to {high} m; the floor may not be at "
            "zero (a sitting origin), or the person sat or lay all the time"
        )


def _about_device(device: DeviceReport, duration_s: float) -> Iterator[str]:
    if not device.valid_share:
        if device.device_class != "HMD" and device.role != "head":
            yield f"{device.label} is never tracked"
        return
    worn = _is_worn(device)
    is_hand = device.role in _HANDS or (not device.role and device.device_class == "CONTROLLER")
    is_lively = is_hand or device.role == "head" or device.device_class == "HMD"
    if (
        worn
        and device.extent_m < STILL_M
        and duration_s > (STILL_AFTER_S if is_lively else STILL_FEET_AFTER_S)
    ):
        yield f"{device.label} never moves; it may be switched off or lie somewhere"
    hand_is_far = is_hand and device.head_distance_m > FAR_HAND_M
    if hand_is_far:
        yield f"{device.label} is {device.head_distance_m:.2f} m from the head most of the time, out of reach"
    if worn and device.valid_share < 1.0 - LOST_SHARE:
        yield f"{device.label} is tracked in only {100.0 * device.valid_share:.0f} % of the frames"
    if device.out_of_reach and not hand_is_far:
        yield (
            f"{device.label} is out of a body's reach, up to {device.farthest_m:.2f} m from the head, in "
            f"{_many(device.out_of_reach, 'sample')}: taken as not tracked there"
        )
    if device.astray_share > ASTRAY_SHARE:
        yield (
            f"{device.label} does not follow the head: in {100.0 * device.astray_share:.0f} % of the frames "
            "it is farther to the side than a body can bend, so it had lost tracking or is worn on no body"
        )
    if device.jumps:
        yield f"{device.label} jumps away for a single frame, {_times(device.jumps)}: a tracking glitch"
    if worn and device.leaps:
        yield (
            f"{device.label} leaps from one frame to the next, {_times(device.leaps)}, by up to "
            f"{device.leap_longest_m:.2f} m, calm before and after: a tracking glitch"
        )


def _many(count: int, thing: str) -> str:
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"


def _times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count} times")
