"""Features: the same numbers for every place, heading, stature and frame rate."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from solvers.features import NAMES, FeatureState, features, mirror_columns, role_columns
from vrik import quat
from vrik.arrays import Floats, Points, Quats
from vrik.frames import ROLE, ROLES, BodyTargets, DeviceState
from vrik.pose import Pose

N = len(ROLES)


def targets(position: Points, rotation: Quats | None = None, weight: float = 1.0) -> BodyTargets:
    """Head, left and right hand at the given places."""
    where, turn, weights = np.zeros((N, 3)), quat.identity(N), np.zeros(N)
    where[:3] = position
    if rotation is not None:
        turn[:3] = rotation
    weights[:3] = weight
    return BodyTargets(
        0, where, turn, weights, weights, np.full(N, int(DeviceState.OK), np.int64), np.zeros(N)
    )


def path(seconds: float, rate_hz: float) -> tuple[Floats, Points, Quats]:
    """Three devices that move and turn smoothly: times, (n, 3, 3) and (n, 3, 4)."""
    t = np.arange(0.0, seconds, 1.0 / rate_hz)
    wave = np.sin(np.stack([1.1 * t, 1.7 * t, 2.3 * t], axis=1))
    place = np.array([[0.0, 1.6, 0.0], [-0.3, 1.1, -0.3], [0.3, 1.2, -0.2]]) + 0.1 * wave[:, :, None] * (
        1.0,
        0.5,
        2.0,
    )
    turn = quat.from_rotvec(wave[:, :, None] * np.array([0.3, 0.8, 0.2]))
    return t, place, turn


def run(t: Floats, place: Points, turn: Quats, stature_m: float = 1.7, floor_y: float = 0.0) -> Floats:
    """(n, len(NAMES)) features of all frames."""
    state, out, rows = FeatureState.fresh(), np.zeros(len(NAMES)), []
    for i in range(len(t)):
        dt_s = float(t[i] - t[i - 1]) if i else 0.0
        features(targets(place[i], turn[i]), stature_m, floor_y, dt_s, state, out)
        rows.append(out.copy())
    return np.array(rows)


def named(row: Floats, prefix: str) -> Floats:
    return row[..., [i for i, n in enumerate(NAMES) if n.startswith(prefix)]]


def test_names_are_one_for_each_number() -> None:
    assert len(NAMES) == len(set(NAMES)) == 218


def test_a_still_frame_reads_as_its_names_say() -> None:
    place = np.array([[1.0, 1.53, 2.0], [0.66, 1.02, 1.83], [1.34, 1.02, 1.83]])

    row = run(np.zeros(1), place[None], quat.identity(1, 3))[0]

    np.testing.assert_allclose(named(row, "head.height"), [0.9])
    np.testing.assert_allclose(named(row, "head.forward"), [0.0, 0.0, -1.0])
    np.testing.assert_allclose(named(row, "head.up"), [0.0, 1.0, 0.0])
    np.testing.assert_allclose(named(row, "left_hand.from_head"), [-0.2, -0.3, -0.1])
    np.testing.assert_allclose(named(row, "right_hand.from_head"), [0.2, -0.3, -0.1])
    np.testing.assert_allclose(named(row, "left_hand.fingers"), [-1.0, 0.0, 0.0])
    np.testing.assert_allclose(named(row, "right_hand.fingers"), [1.0, 0.0, 0.0])
    np.testing.assert_allclose(named(row, "left_hand.thumb"), [0.0, 0.0, -1.0])
    np.testing.assert_allclose(named(row, "left_hand.weight"), [1.0])
    assert (named(row, "head.velocity") == 0.0).all()
    assert (named(row, "head.yaw_rate") == 0.0).all()


@pytest.mark.parametrize("yaw_deg", [0.0, 50.0, 180.0, -120.0])
def test_place_and_heading_do_not_matter(yaw_deg: float) -> None:
    t, place, turn = path(2.0, 90.0)
    T = Pose.from_yaw(np.radians(yaw_deg), np.array([5.0, 0.0, -3.0]))

    np.testing.assert_allclose(
        run(t, T.apply(place), quat.multiply(T.rotation, turn)), run(t, place, turn), atol=1e-9
    )


def test_the_height_of_the_floor_does_not_matter() -> None:
    t, place, turn = path(1.0, 90.0)

    raised = run(t, place + np.array([0.0, 2.5, 0.0]), turn, floor_y=2.5)

    np.testing.assert_allclose(raised, run(t, place, turn), atol=1e-9)


def test_a_person_twice_as_large_gives_the_same() -> None:
    t, place, turn = path(1.0, 90.0)

    np.testing.assert_allclose(run(t, 2.0 * place, turn, 3.4), run(t, place, turn, 1.7), atol=1e-9)


@pytest.mark.parametrize("rate_hz", [60.0, 72.0, 144.0, 500.0])
def test_the_frame_rate_hardly_matters(rate_hz: float) -> None:
    """Velocities and rates are averaged over a time, not over a number of frames."""
    reference, other = path(3.0, 90.0), path(3.0, rate_hz)
    a, b = run(*reference), run(*other)

    rows = [i for i, n in enumerate(NAMES) if n != "dt_s"]
    at = np.linspace(1.0, 2.9, 20)
    for i in rows:
        np.testing.assert_allclose(
            np.interp(at, other[0], b[:, i]),
            np.interp(at, reference[0], a[:, i]),
            atol=0.02,
            err_msg=NAMES[i],
        )


def test_velocity_is_where_the_device_goes() -> None:
    t = np.arange(0.0, 1.0, 0.01)
    place = np.repeat(np.array([[0.0, 1.6, 0.0], [-0.3, 1.0, 0.0], [0.3, 1.0, 0.0]])[None], len(t), axis=0)
    place = place + t[:, None, None] * np.array([0.0, 0.0, -1.7])

    row = run(t, place, quat.identity(len(t), 3))[-1]

    for name in ("head", "left_hand", "right_hand"):
        np.testing.assert_allclose(named(row, f"{name}.velocity"), [0.0, 0.0, -1.0], atol=1e-6)


def test_turning_on_the_spot_reads_as_a_yaw_rate_through_half_turns() -> None:
    t = np.arange(0.0, 4.0, 0.01)
    turn = quat.from_rotvec(2.0 * t[:, None, None] * np.array([0.0, 1.0, 0.0]) * np.ones((1, 3, 1)))
    place = np.tile(np.array([[0.0, 1.6, 0.0]]), (len(t), 3, 1))

    rate = named(run(t, place, turn), "head.yaw_rate")[100:, 0]

    np.testing.assert_allclose(rate, 2.0, atol=1e-3)


def test_a_repeated_time_keeps_the_velocity_and_loses_no_motion() -> None:
    t = np.arange(0.0, 1.0, 0.01)
    place = np.zeros((100, 3, 3)) + t[:, None, None]
    twice = np.repeat(np.arange(100), 2)

    once, doubled = run(t, place, quat.identity(100, 3)), run(t[twice], place[twice], quat.identity(200, 3))

    np.testing.assert_allclose(named(doubled[1::2], "head.velocity"), named(once, "head.velocity"), atol=1e-9)


def test_a_hand_never_seen_reads_as_zeros() -> None:
    """Not as the way to the world's origin, which would tell where in the room somebody is."""
    state, out = FeatureState.fresh(), np.zeros(len(NAMES))
    place = np.array([[3.0, 1.6, 4.0], [0.0, 0.0, 0.0], [3.3, 1.0, 4.0]])

    features(replace_weight(targets(place), (1.0, 0.0, 1.0)), 1.7, 0.0, 0.0, state, out)

    assert (named(out, "left_hand") == 0.0).all()
    assert (named(out, "right_hand.from_head") != 0.0).any()


def test_a_device_seen_late_starts_at_rest() -> None:
    """Else its first sight would be a leap from the origin."""
    state, out = FeatureState.fresh(), np.zeros(len(NAMES))
    place = np.array([[0.0, 1.6, 0.0], [-0.3, 1.0, 0.0], [0.3, 1.0, 0.0]])
    features(replace_weight(targets(np.zeros((3, 3))), (1.0, 0.0, 0.0)), 1.7, 0.0, 0.0, state, out)

    features(targets(place), 1.7, 0.0, 0.01, state, out)

    assert (named(out, "left_hand.velocity") == 0.0).all()


@pytest.mark.parametrize("rate_hz", [60.0, 77.0, 120.0, 400.0])
def test_the_past_is_where_things_were_so_many_seconds_ago(rate_hz: float) -> None:
    """At any frame rate, and also when the ring has gone round."""
    t, place, turn = path(3.0, rate_hz)

    row = run(t, place, turn)[-1]

    heading = quat.rotate(turn[:, 0], np.array([0.0, 0.0, -1.0]))
    yaw = np.unwrap(np.arctan2(-heading[:, 0], -heading[:, 2]))
    back = quat.from_rotvec(np.array([0.0, -yaw[-1], 0.0]))
    for ago_s in (0.05, 0.1, 0.2, 0.4, 0.7, 1.0):
        name = f"{1000.0 * ago_s:.0f}ms_ago"
        was = np.array([[np.interp(t[-1] - ago_s, t, place[:, i, a]) for a in range(3)] for i in range(3)])
        turned = np.interp(t[-1] - ago_s, t, yaw) - yaw[-1]
        seen = quat.rotate(back, was - place[-1, 0]) / 1.7
        np.testing.assert_allclose(named(row, f"{name}.head"), seen[0], atol=2e-4)
        np.testing.assert_allclose(named(row, f"{name}.left_hand"), seen[1], atol=2e-4)
        np.testing.assert_allclose(named(row, f"{name}.right_hand"), seen[2], atol=2e-4)
        np.testing.assert_allclose(named(row, f"{name}.yaw"), [np.sin(turned), np.cos(turned)], atol=2e-3)


def test_before_the_first_frame_everything_was_where_it_is() -> None:
    t, place, turn = path(0.001, 90.0)

    row = run(t, place, turn)[0]

    assert (named(row, "1000ms_ago.head") == 0.0).all()
    np.testing.assert_allclose(named(row, "1000ms_ago.left_hand"), named(row, "left_hand.from_head"))
    np.testing.assert_allclose(named(row, "1000ms_ago.yaw"), [0.0, 1.0])


def test_a_hand_seen_late_was_always_where_it_is_first_seen() -> None:
    """Else its past would be at the world's origin."""
    state, out = FeatureState.fresh(), np.zeros(len(NAMES))
    place = np.array([[2.0, 1.6, 0.0], [1.7, 1.0, 0.0], [2.3, 1.0, 0.0]])
    for _ in range(5):
        features(replace_weight(targets(place * 0.0), (1.0, 0.0, 0.0)), 1.7, 0.0, 0.01, state, out)

    features(targets(place), 1.7, 0.0, 0.01, state, out)

    np.testing.assert_allclose(named(out, "400ms_ago.left_hand"), named(out, "left_hand.from_head"))


def test_the_mirror_image_reads_as_the_mirrored_columns() -> None:
    t, place, turn = path(1.5, 90.0)
    other, flip = [0, 2, 1], np.array([-1.0, 1.0, 1.0])

    mirrored = run(t, place[:, other] * flip, turn[:, other] * np.array([1.0, 1.0, -1.0, -1.0]))

    columns, signs = mirror_columns()
    np.testing.assert_allclose(mirrored, run(t, place, turn)[:, columns] * signs, atol=1e-9)


def test_a_tracker_reads_as_its_names_say_and_fades_with_its_weight() -> None:
    state, out = FeatureState.fresh(), np.zeros(len(NAMES))
    worn = targets(np.array([[1.0, 1.6, 0.0], [0.7, 1.0, 0.0], [1.3, 1.0, 0.0]]))
    row = ROLE["left_foot"]
    worn.position[row] = (0.83, 0.07, -0.17)
    worn.rotation[row] = quat.from_rotvec(np.array([0.0, np.pi / 2.0, 0.0]))
    worn.position_weight[row], worn.age_s[row] = 0.5, 0.4

    features(worn, 1.7, 0.0, 0.0, state, out)

    np.testing.assert_allclose(named(out, "left_foot.from_head"), [-0.05, -0.45, -0.05])
    np.testing.assert_allclose(named(out, "left_foot.forward"), [-0.5, 0.0, 0.0], atol=1e-12)
    np.testing.assert_allclose(named(out, "left_foot.up"), [0.0, 0.5, 0.0], atol=1e-12)
    np.testing.assert_allclose(named(out, "left_foot.weight"), [0.5])
    np.testing.assert_allclose(named(out, "left_foot.age_s"), [0.4])
    for role in ROLES[3:]:
        assert role == "left_foot" or (out[role_columns(role)] == 0.0).all()


def test_hands_and_head_have_no_columns_of_a_tracker() -> None:
    with pytest.raises(ValueError, match="left_hand"):
        role_columns("left_hand")


def replace_weight(given: BodyTargets, weights: tuple[float, float, float]) -> BodyTargets:
    weight = given.position_weight.copy()
    weight[:3] = weights
    return replace(given, position_weight=weight)
