"""Device poses one can rely on: lost ones held and let go, glitches cut, returns blended, never a NaN."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vrik import quat
from vrik.arrays import Bools, Points, Quats
from vrik.condition import Conditioner, FilterState
from vrik.config import ConditionConfig
from vrik.frames import DeviceClass, DeviceState, TrackedDevice, TrackerFrame

DT_S = 0.01
HEAD, LEFT, RIGHT = (TrackedDevice(serial, DeviceClass.GENERIC_TRACKER) for serial in ("H", "L", "R"))
PLACES = np.array([[0.0, 1.7, 0.0], [-0.3, 1.0, -0.2], [0.3, 1.0, -0.2]])


def frame(
    i: float,
    position: Points = PLACES,
    rotation: Quats | None = None,
    valid: Iterable[bool] | Bools | None = None,
    devices: tuple[TrackedDevice, ...] = (HEAD, LEFT, RIGHT),
    result: int = 200,
) -> TrackerFrame:
    k = len(devices)
    return TrackerFrame(
        round(i * DT_S * 1e9),
        devices,
        np.array(position, np.float64),
        quat.identity(k) if rotation is None else np.array(rotation, np.float64),
        np.ones(k, np.bool_) if valid is None else np.array(valid, np.bool_),
        np.full(k, result, np.int64),
    )


def play(conditioner: Conditioner, frames: Iterable[TrackerFrame]) -> dict[str, Any]:
    """All values of all frames, by field."""
    states = []
    for f in frames:
        s = conditioner.step(f)
        states.append({n: getattr(s, n).copy() for n in ("position", "rotation", "weight", "state", "age_s")})
    return {n: np.array([s[n] for s in states]) for n in states[0]}


def test_good_poses_pass_unchanged() -> None:
    rng = np.random.default_rng(1)
    moving = PLACES + np.cumsum(rng.normal(0.0, 0.01, (50, 3, 3)), axis=0)

    seen = play(Conditioner(), [frame(i, p) for i, p in enumerate(moving)])

    np.testing.assert_array_equal(seen["position"], moving)
    assert (seen["state"] == DeviceState.OK).all()
    assert (seen["weight"] == 1.0).all()
    assert (seen["age_s"] == 0.0).all()


def test_a_device_never_seen_is_absent_and_has_no_age() -> None:
    seen = play(Conditioner(), [frame(i, valid=(True, False, True)) for i in range(20)])

    assert (seen["state"][:, 1] == DeviceState.ABSENT).all()
    assert (seen["weight"][:, 1] == 0.0).all()
    assert np.isposinf(seen["age_s"][:, 1]).all()


def test_a_lost_device_is_held_then_let_go() -> None:
    """Times are settings; the pose stays where it was last seen."""
    config = ConditionConfig(hold_s=0.2, fade_s=0.3)

    lost = [frame(i, PLACES + 9.0, valid=(True, i < 1, True)) for i in range(80)]
    for f in lost:
        f.position[[0, 2]] = PLACES[[0, 2]]
    lost[0].position[1] = PLACES[1]
    seen = play(Conditioner(config), lost)

    age_s = np.arange(80) * DT_S
    np.testing.assert_allclose(seen["age_s"][:, 1], age_s, atol=1e-9)
    np.testing.assert_array_equal(seen["position"][:, 1], np.tile(PLACES[1], (80, 1)))
    np.testing.assert_allclose(seen["weight"][:, 1], np.clip(1.0 - (age_s - 0.2) / 0.3, 0.0, 1.0), atol=1e-6)
    state = seen["state"][:, 1]
    assert state[0] == DeviceState.OK
    assert (state[1:20] == DeviceState.HELD).all()
    assert (state[22:] == DeviceState.LOST).all()


@pytest.mark.parametrize("lost_frames", [3, 20, 40, 200])
@pytest.mark.parametrize("away_m", [0.1, 1.0, 3.0])
def test_a_device_that_returns_elsewhere_arrives_in_time_and_without_a_jump(
    lost_frames: int, away_m: float
) -> None:
    """Pose and weight move evenly: in the time of a return at most, a short gap in the time it took."""
    config = ConditionConfig()
    back = PLACES.copy()
    back[1, 0] -= away_m
    n = lost_frames + 60

    seen = play(
        Conditioner(config),
        [frame(0)]
        + [frame(i, valid=(True, False, True)) for i in range(1, lost_frames + 1)]
        + [frame(i, back) for i in range(lost_frames + 1, n)],
    )

    blend_s = min(config.return_s, lost_frames * DT_S)
    step = np.linalg.norm(np.diff(seen["position"][:, 1], axis=0), axis=1)
    assert step.max() <= 1.5 * away_m * DT_S / blend_s + 1e-9
    assert np.abs(np.diff(seen["weight"][:, 1])).max() <= 1.5 * DT_S / blend_s
    wait_s = config.max_glitch_s if away_m > config.max_speed_m_s * blend_s else 0.0
    arrived = lost_frames + round((config.return_s + wait_s) / DT_S) + 3
    np.testing.assert_array_equal(seen["position"][arrived:, 1], back[[1] * (n - arrived)])
    assert (seen["state"][arrived:, 1] == DeviceState.OK).all()
    assert (seen["weight"][arrived:, 1] == 1.0).all()
    assert DeviceState.RETURNING in seen["state"][lost_frames + 1 : arrived, 1]


def test_a_leap_of_one_device_for_a_few_frames_is_cut() -> None:
    leap = PLACES.copy()
    leap[2] += (0.0, 0.0, 5.0)

    seen = play(Conditioner(), [frame(i, leap if 10 <= i < 15 else PLACES) for i in range(40)])

    np.testing.assert_allclose(seen["position"], np.tile(PLACES, (40, 1, 1)), atol=1e-12)
    assert (seen["state"][10:15, 2] == DeviceState.HELD).all()
    np.testing.assert_allclose(seen["age_s"][14, 2], 5 * DT_S)


def test_a_leap_that_stays_is_believed_after_the_time_for_glitches() -> None:
    config = ConditionConfig()
    leap = PLACES.copy()
    leap[2] += (0.0, 0.0, 5.0)

    seen = play(Conditioner(config), [frame(i, leap if i >= 10 else PLACES) for i in range(60)])

    off = np.linalg.norm(seen["position"][:, 2] - leap[2], axis=1)
    late = round(config.max_glitch_s / DT_S)
    assert (off[10 : 10 + late] == 5.0).all()
    assert off[10 + late + 2] < 5.0
    assert off[10 + 2 * late + 3] == 0.0


def test_a_leap_of_all_devices_is_a_recentre_and_followed_at_once() -> None:
    moved = PLACES + np.array([3.0, 0.0, -4.0])

    seen = play(Conditioner(), [frame(i, moved if i >= 10 else PLACES) for i in range(20)])

    np.testing.assert_array_equal(seen["position"][10], moved)
    assert (seen["state"][10:] == DeviceState.OK).all()


def test_memory_follows_the_serial_when_slots_change() -> None:
    """C19: an index is not a device."""
    conditioner = Conditioner()
    conditioner.step(frame(0))

    swapped = conditioner.step(
        frame(1, PLACES[[2, 0, 1]], valid=(False, True, False), devices=(RIGHT, HEAD, LEFT))
    )

    np.testing.assert_array_equal(swapped.position, PLACES[[2, 0, 1]])
    np.testing.assert_array_equal(swapped.state, [DeviceState.HELD, DeviceState.OK, DeviceState.HELD])


def test_a_device_that_is_no_longer_listed_is_lost_and_comes_back_as_the_same() -> None:
    """Some runtimes drop a sleeping device from the list; the hand must not fall in that frame."""
    conditioner = Conditioner()
    conditioner.step(frame(0))

    for i in range(1, 11):
        gone = conditioner.step(frame(i, PLACES[[0, 2]], devices=(HEAD, RIGHT)))
    assert [d.serial for d in conditioner.devices] == ["H", "R", "L"]
    np.testing.assert_array_equal(gone.position[2], PLACES[1])
    assert gone.state[2] == DeviceState.HELD
    np.testing.assert_allclose(gone.age_s[2], 10 * DT_S)

    back = conditioner.step(frame(11))
    assert [d.serial for d in conditioner.devices] == ["H", "L", "R"]
    assert back.state[1] == DeviceState.RETURNING


BAD_POSES = {
    "nan position": ((np.nan, 1.0, 0.0), (1.0, 0.0, 0.0, 0.0), 200),
    "infinite position": ((0.0, -np.inf, 0.0), (1.0, 0.0, 0.0, 0.0), 200),
    "overflowing position": ((0.0, 1e200, 0.0), (1.0, 0.0, 0.0, 0.0), 200),
    "zero quaternion": ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 0.0), 200),
    "quaternion of norm two": ((0.0, 0.0, 0.0), (-1.0, -1.0, -1.0, -1.0), 200),
    "nan quaternion": ((0.0, 1.0, 0.0), (np.nan, 0.0, 0.0, 0.0), 200),
    "not initialised": ((0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0), 1),
    "rotation only": ((0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0), 300),
}


@pytest.mark.parametrize("case", BAD_POSES)
def test_a_pose_that_is_none_counts_as_lost_though_marked_valid(case: str) -> None:
    """C22, C58: zero matrices, zero quaternions, placeholders."""
    position, rotation, result = BAD_POSES[case]
    bad = frame(1)
    bad.position[1], bad.rotation[1], bad.result[1] = position, rotation, result
    conditioner = Conditioner()
    conditioner.step(frame(0))

    seen = conditioner.step(bad)

    assert seen.state[1] == DeviceState.HELD
    np.testing.assert_array_equal(seen.position[1], PLACES[1])
    np.testing.assert_array_equal(seen.rotation[1], (1.0, 0.0, 0.0, 0.0))


def test_rotations_keep_their_sign_and_length() -> None:
    """C53: a device may flip the sign of its quaternion at will, and be a little off unit length."""
    angle = np.linspace(0.0, 6.0, 60)
    turns = quat.from_rotvec(
        np.stack([angle, 0.0 * angle, 0.0 * angle], axis=1)[:, None] * np.ones((1, 3, 1))
    )
    flips = np.where(np.arange(60) % 3 == 0, -1.005, 1.0)[:, None, None]

    seen = play(Conditioner(), [frame(i, rotation=q) for i, q in enumerate(turns * flips)])

    np.testing.assert_allclose(np.linalg.norm(seen["rotation"], axis=-1), 1.0, atol=1e-12)
    assert (np.sum(seen["rotation"][1:] * seen["rotation"][:-1], axis=-1) > 0.9).all()


def test_a_repeated_time_replaces_the_pose_and_advances_nothing() -> None:
    """C61."""
    conditioner = Conditioner()
    conditioner.step(frame(0))
    conditioner.step(frame(1, valid=(True, False, True)))

    again = conditioner.step(frame(1, PLACES + 0.001, valid=(True, False, True)))

    np.testing.assert_array_equal(again.position[0], PLACES[0] + 0.001)
    np.testing.assert_allclose(again.age_s[1], DT_S)


def test_time_goes_on_after_it_ran_backwards() -> None:
    """A looped recording starts again at its first time stamp."""
    conditioner = Conditioner()
    conditioner.step(frame(10_000))

    for i in range(100):
        seen = conditioner.step(frame(i, valid=(True, False, True)))

    assert seen.state[1] == DeviceState.LOST
    np.testing.assert_allclose(seen.age_s[1], 99 * DT_S)


def test_without_fade_and_return_changes_are_immediate() -> None:
    config = ConditionConfig(hold_s=0.0, fade_s=0.0, return_s=0.0, max_glitch_s=0.0)

    seen = play(
        Conditioner(config), [frame(i, PLACES + 0.1 * i, valid=(True, i != 1, True)) for i in range(3)]
    )

    np.testing.assert_array_equal(seen["weight"][:, 1], [1.0, 0.0, 1.0])
    np.testing.assert_array_equal(seen["position"][2], PLACES + 0.2)


def test_reset_forgets() -> None:
    conditioner = Conditioner()
    conditioner.step(frame(0))

    conditioner.reset()

    assert (conditioner.step(frame(1, valid=(False, False, False))).state == DeviceState.ABSENT).all()


numbers = st.floats(width=64) | st.sampled_from([0.0, 1.0, 1e6, -1e6, np.nan, np.inf])
poses = st.tuples(*[numbers] * 3), st.tuples(*[st.sampled_from([0.0, 1.0, -1.0, 0.5, np.nan])] * 4)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from([0.0, 0.002, 0.011, 2.0, -1.0]),
            st.lists(
                st.tuples(*poses, st.booleans(), st.sampled_from([1, 200, 201, 300])), min_size=3, max_size=3
            ),
            st.permutations([HEAD, LEFT, RIGHT]),
            st.integers(0, 3),
        ),
        min_size=1,
        max_size=12,
    )
)
def test_whatever_comes_in_what_goes_out_is_finite(script: list[Any]) -> None:
    conditioner = Conditioner()
    time_s = 0.0
    for dt_s, rows, devices, k in script:
        time_s += dt_s
        position = np.array([r[0] for r in rows]).reshape(3, 3)[:k]
        rotation = np.array([r[1] for r in rows]).reshape(3, 4)[:k]
        valid, result = np.array([r[2] for r in rows])[:k], np.array([r[3] for r in rows], np.int64)[:k]

        s = conditioner.step(
            TrackerFrame(round(time_s * 1e9), tuple(devices[:k]), position, rotation, valid, result)
        )

        assert_sound(s)


def assert_sound(s: FilterState) -> None:
    assert np.isfinite(s.position).all()
    np.testing.assert_allclose(np.linalg.norm(s.rotation, axis=1), 1.0, atol=1e-9)
    assert ((s.weight >= 0.0) & (s.weight <= 1.0)).all()
    assert (s.age_s >= 0.0).all()
    assert np.isin(s.state, list(DeviceState)).all()
    assert (np.isposinf(s.age_s) == (s.state == DeviceState.ABSENT)).all()
