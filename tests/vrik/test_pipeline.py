"""The whole way from tracker frames to posed bodies: what is promised whatever the devices do."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vrik import jit, quat
from vrik.arrays import Points, Quats
from vrik.config import ConditionConfig, PipelineConfig, SolveConfig, SpaceConfig, SteppingConfig
from vrik.frames import ROLE, ROLES, Calibration, DeviceState, PoseFrame, TrackerFrame
from vrik.pipeline import Pipeline
from vrik.pose import Pose
from vrik.skeleton import BONE, MIRROR, bone_lengths

RATE_HZ = 90.0
SIX = ("head", "left_hand", "right_hand", "waist", "left_foot", "right_foot")
HEAD, HANDS = BONE["head"], [BONE["leftHand"], BONE["rightHand"]]
FLIP_POINT = np.array([-1.0, 1.0, 1.0])
FLIP_TURN = np.array([1.0, 1.0, -1.0, -1.0])
"""A quaternion seen in the mirror at x = 0."""


def session(wearer: Any, seconds: float = 4.0, rate_hz: float = RATE_HZ, seed: int = 3) -> list[TrackerFrame]:
    """Smooth motion through plausible poses: walking about, turning, crouching, waving. Exact targets."""
    rng = np.random.default_rng(seed)
    times = np.arange(0.0, seconds, 1.0 / rate_hz)
    knots = [wearer.plausible(rng) for _ in range(int(seconds / 0.8) + 2)]
    frames = []
    for time_s in times:
        i, t = divmod(time_s / 0.8, 1.0)
        (p0, q0), (p1, q1) = knots[int(i)], knots[int(i) + 1]
        t = t * t * (3.0 - 2.0 * t)
        frames.append(wearer.frame(time_s, p0 + t * (p1 - p0), quat.slerp(q0, q1, t)))
    return frames


def solved(pipeline: Pipeline, frames: Iterable[TrackerFrame]) -> tuple[Points, Quats, Quats]:
    """Positions, rotations and local rotations of all frames."""
    poses = [pipeline.step(frame) for frame in frames]
    return (
        np.array([p.position for p in poses]),
        np.array([p.rotation for p in poses]),
        np.array([p.local_rotation for p in poses]),
    )


def assert_same_turns(a: Quats, b: Quats, atol: float = 1e-8) -> None:
    assert quat.angle(a, b).max() <= atol


def assert_sound(pose: PoseFrame, wearer: Any, floor_y: float = 0.0, atol: float = 1e-6) -> None:
    """Finite, length-true, on the floor."""
    for values in (pose.position, pose.rotation, pose.local_rotation):
        assert np.isfinite(values).all()
    np.testing.assert_allclose(bone_lengths(pose.position), wearer.body.lengths(), atol=atol)
    np.testing.assert_allclose(np.linalg.norm(pose.local_rotation, axis=-1), 1.0, atol=1e-9)
    assert wearer.above_floor(pose.position, floor_y) > -1e-6


# ---- what is met


@pytest.mark.parametrize(
    ("roles", "share"),
    [
        (("head", "left_hand", "right_hand"), 0.995),
        (("head", "left_hand"), 0.995),
        (("head", "right_hand"), 0.995),
        (("head", "left_hand", "right_hand", "waist"), 0.995),
        (SIX, 0.995),
    ],
)
def test_head_and_hands_of_plausible_poses_are_met_to_a_millimetre(
    person: Any, roles: tuple[str, ...], share: float
) -> None:
    """Measured: 100 % of 4000 poses with three points; the bar leaves room for other machines' rounding."""
    wearer = person(roles)
    pipeline = Pipeline(wearer.calibration)
    rng = np.random.default_rng(11)
    met = []
    for _ in range(400):
        position, rotation = wearer.plausible(rng)
        pipeline.reset()

        pose = pipeline.step(wearer.frame(0.0, position, rotation))

        assert_sound(pose, wearer, atol=1e-9)
        error = pose.reach_error_m[wearer.rows]
        assert error[0] < 1e-9
        assert_same_turns(pose.rotation[wearer.bones][:2], rotation[wearer.bones][:2])
        met.append(error[[i for i, r in enumerate(roles) if "hand" in r]].max() < 1e-3)
    assert np.mean(met) >= share


def test_waist_and_foot_trackers_are_met_to_a_millimetre(person: Any) -> None:
    """Position and rotation one to one, whenever spine and legs can: these poses come from such a body."""
    wearer = person(SIX)
    pipeline = Pipeline(wearer.calibration)
    rng = np.random.default_rng(12)
    for _ in range(300):
        position, rotation = wearer.plausible(rng)
        pipeline.reset()

        pose = pipeline.step(wearer.frame(0.0, position, rotation))

        assert np.nanmax(pose.reach_error_m[wearer.rows]) < 1e-3
        assert_same_turns(pose.rotation[wearer.bones], rotation[wearer.bones])


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.floats(1.2, 2.0))
def test_a_hand_out_of_reach_lies_straight_towards_its_target(person: Any, seed: int, away: float) -> None:
    wearer = person(("head", "left_hand"))
    position, rotation = wearer.standing()
    direction = np.random.default_rng(seed).normal(size=3)
    target = position[HEAD] + away * direction / np.linalg.norm(direction)
    position[BONE["leftHand"]] = target

    pose = Pipeline(wearer.calibration).step(wearer.frame(0.0, position, rotation))

    shoulder, elbow, hand = (pose.position[BONE["left" + b]] for b in ("UpperArm", "LowerArm", "Hand"))
    assert_sound(pose, wearer)
    assert np.linalg.norm(pose.position[HEAD] - position[HEAD]) < 1e-9
    for joint in (elbow, hand):
        reached = (joint - shoulder) / np.linalg.norm(joint - shoulder)
        wanted = (target - shoulder) / np.linalg.norm(target - shoulder)
        assert np.linalg.norm(reached - wanted) < 1e-3


# ---- what comes in


def odd_frames(wearer: Any) -> dict[str, Callable[[Points, Quats], None]]:
    """Changes to the devices' rows (head, left hand, right hand) of a standing person."""

    def to(rows: Any, place: Any) -> Callable[[Points, Quats], None]:
        def change(position: Points, rotation: Quats) -> None:
            position[rows] = place

        return change

    def turned(row: int, axis: tuple[float, float, float], height_m: float | None = None) -> Any:
        def change(position: Points, rotation: Quats) -> None:
            rotation[row] = quat.multiply(quat.from_rotvec(np.array(axis)), rotation[row])
            if height_m is not None:
                position[row, 1] = height_m

        return change

    standing = wearer.standing()[0]
    shoulders = standing[[BONE["leftUpperArm"], BONE["rightUpperArm"]]]
    return {
        "all at the origin": to(slice(None), 0.0),
        "hands at the head": to([1, 2], standing[HEAD]),
        "hands at the shoulders": to([1, 2], shoulders),
        "hands on the hips joint": to([1, 2], standing[0]),
        "hands far away": to([1, 2], (1e6, 3.0, -1e6)),
        "everything far away": to(slice(None), (1e6, 1.5, -1e6)),
        "head far up": to(0, (0.0, 1e6, 0.0)),
        "head on the floor": to(0, (0.3, 0.0, 0.2)),
        "head a hand above the floor": to(0, (0.3, 0.12, 0.2)),
        "lying on the back": turned(0, (np.pi / 2, 0.0, 0.0), 0.15),
        "lying on the face": turned(0, (-np.pi / 2, 0.0, 0.0), 0.15),
        "lying on the left": turned(0, (0.0, 0.0, np.pi / 2), 0.2),
        "lying on the right": turned(0, (0.0, 0.0, -np.pi / 2), 0.2),
        "head upside down": turned(0, (0.0, 0.0, np.pi)),
        "head upside down by pitch": turned(0, (np.pi, 0.0, 0.0)),
        "handstand": turned(0, (np.pi, 0.0, 0.0), 0.4),
        "looking straight down": turned(0, (-np.pi / 2, 0.0, 0.0)),
        "looking straight up": turned(0, (np.pi / 2, 0.0, 0.0)),
        "hand turned round": turned(1, (0.0, np.pi, 0.0)),
        "tiptoe": to(0, standing[HEAD] + (0.0, 0.12, 0.0)),
        "in the air": to(0, standing[HEAD] + (0.0, 0.8, 0.0)),
        "nan": to(1, np.nan),
        "infinite": to(0, np.inf),
    }


@pytest.mark.parametrize("roles", [("head", "left_hand", "right_hand"), SIX, ("head",)], ids=["3", "6", "1"])
@pytest.mark.parametrize("prelude", [0, 20])
def test_odd_poses_give_a_sound_body(person: Any, roles: tuple[str, ...], prelude: int) -> None:
    """Alone, and in the middle of a session."""
    wearer = person(roles)
    position, rotation = wearer.standing()
    for name, change in odd_frames(wearer).items():
        if name in ("nan", "infinite") and len(roles) == 1:
            continue
        pipeline = Pipeline(wearer.calibration)
        for i in range(prelude):
            pipeline.step(wearer.frame(i / RATE_HZ, position, rotation))
        odd_p, odd_q = position[wearer.bones].copy(), rotation[wearer.bones].copy()
        if len(roles) == 1:
            odd_p, odd_q = np.repeat(odd_p, 3, axis=0), np.repeat(odd_q, 3, axis=0)
        change(odd_p, odd_q)
        k = len(roles)
        for i in range(60):
            pose = pipeline.step(wearer.frame((prelude + i) / RATE_HZ, odd_p[:k], odd_q[:k]))
            try:
                assert_sound(pose, wearer)
            except AssertionError as error:
                raise AssertionError(f"{name}, frame {i}: {error}") from error
        for i in range(60):
            pose = pipeline.step(wearer.frame((prelude + 60 + i) / RATE_HZ, position, rotation))
        assert np.nanmax(pose.reach_error_m[wearer.rows[:3]]) < 1e-3, f"after {name}"


def test_without_a_head_the_body_stands_in_its_rest_pose(person: Any) -> None:
    wearer = person()
    frame = wearer.frame(0.0, *wearer.standing(), valid=[False, True, True])

    pose = Pipeline(wearer.calibration).step(frame)

    np.testing.assert_array_equal(pose.position, wearer.body.tpose)
    assert np.isnan(pose.reach_error_m).all()
    assert pose.state[ROLE["head"]] == DeviceState.ABSENT
    assert pose.state[ROLE["left_hand"]] == DeviceState.OK
    assert (pose.host_time_ns, pose.player_id, pose.space_id) == (0, frame.player_id, frame.space_id)


def test_no_devices_at_all_give_the_rest_pose(person: Any) -> None:
    wearer = person(())

    pose = Pipeline(wearer.calibration).step(wearer.frame(0.0, np.zeros((0, 3)), np.zeros((0, 4))))

    np.testing.assert_array_equal(pose.position, wearer.body.tpose)


@pytest.mark.parametrize("listed", [True, False], ids=["without a pose", "gone from the list"])
def test_a_head_lost_for_ten_seconds_stays_where_it_was(person: Any, listed: bool) -> None:
    """There is no body without a head, and a body must not snap to a rest pose at the origin (S19)."""
    wearer, others = person(), person(("left_hand", "right_hand"))
    pipeline = Pipeline(wearer.calibration)
    position, rotation = wearer.standing()
    position = position + np.array([1.0, 0.0, 2.0])
    before = pipeline.step(wearer.frame(0.0, position, rotation))
    for i in range(1, 900):
        if listed:
            pose = pipeline.step(wearer.frame(i / RATE_HZ, position, rotation, valid=[False, True, True]))
        else:
            frame = others.frame(i / RATE_HZ, position, rotation)
            pose = pipeline.step(replace(frame, devices=pipeline_devices(wearer)[1:]))

    assert_sound(pose, wearer)
    np.testing.assert_allclose(pose.position[HEAD], before.position[HEAD], atol=1e-9)
    np.testing.assert_allclose(pose.position, before.position, atol=0.02)
    assert pose.state[ROLE["head"]] == DeviceState.LOST
    assert 9.0 < pose.age_s[ROLE["head"]] < 11.0


def pipeline_devices(wearer: Any) -> tuple[Any, ...]:
    devices: tuple[Any, ...] = wearer.devices
    return devices


@pytest.mark.parametrize("rate_hz", [0.5, 2.0, 5.0, 30.0, 144.0, 500.0])
def test_any_frame_rate_gives_a_sound_body_that_meets_its_targets(person: Any, rate_hz: float) -> None:
    """S27."""
    wearer = person()
    pipeline = Pipeline(wearer.calibration)
    frames = session(wearer, 2.0 if rate_hz > 30.0 else 20.0, rate_hz)

    for frame in frames:
        pose = pipeline.step(frame)
        assert_sound(pose, wearer)
        tracked = np.isin(pose.state[wearer.rows], [DeviceState.OK])
        assert (pose.reach_error_m[wearer.rows][tracked] < 1e-3).mean() > 0.6


def test_repeated_backward_and_stalled_times_give_a_sound_body(person: Any) -> None:
    """S27, C61."""
    wearer = person()
    rng = np.random.default_rng(5)
    pipeline = Pipeline(wearer.calibration)
    for frame in session(wearer, 3.0):
        shift_ns = int(rng.choice([0, 0, 0, -11_111_111, -500_000_000, 2_000_000_000]))

        pose = pipeline.step(replace(frame, host_time_ns=frame.host_time_ns + shift_ns))

        assert_sound(pose, wearer)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_devices_that_come_go_fail_and_change_places_give_a_sound_body(person: Any, seed: int) -> None:
    wearer = person(SIX)
    rng = np.random.default_rng(seed)
    pipeline = Pipeline(wearer.calibration)
    for frame in session(wearer, 1.5, 60.0, seed % 5):
        rows = np.arange(len(SIX))
        if rng.random() < 0.1:
            rows = rng.permutation(rows)[: int(rng.integers(0, len(SIX) + 1))]
        position, rotation = frame.position[rows].copy(), frame.rotation[rows].copy()
        for i in np.flatnonzero(rng.random(len(rows)) < 0.05):
            position[i] = rng.choice([np.nan, np.inf, 0.0, 1e6, 1e300])
        for i in np.flatnonzero(rng.random(len(rows)) < 0.05):
            rotation[i] *= rng.choice([np.nan, 0.0, 2.0, 1.01])
        position[position < 0.0] *= np.where(rng.random() < 0.5, 1.0, 0.0)  # never below the floor
        devices = wearer.devices if len(rows) == len(SIX) and (rows == np.arange(6)).all() else None

        pose = pipeline.step(
            replace(
                frame,
                devices=devices or tuple(wearer.devices[i] for i in rows),
                position=position,
                rotation=rotation,
                valid=rng.random(len(rows)) < 0.9,
                result=frame.result[rows],
            )
        )

        assert_sound(pose, wearer)


def test_roles_follow_the_serial_through_a_change_of_slots(person: Any) -> None:
    """C19: the left foot stays the left foot."""
    wearer = person(SIX)
    frames = session(wearer, 2.0)
    order = [0, 1, 2, 3, 5, 4]
    swapped_devices = tuple(wearer.devices[i] for i in order)
    swapped = [
        f
        if i < 90
        else replace(f, devices=swapped_devices, position=f.position[order], rotation=f.rotation[order])
        for i, f in enumerate(frames)
    ]

    plain, changed = (solved(Pipeline(wearer.calibration), f) for f in (frames, swapped))

    for a, b in zip(plain, changed, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("role", ["left_hand", "waist", "right_foot"])
@pytest.mark.parametrize("lost_s", [0.1, 0.5, 3.0])
def test_no_joint_jumps_when_a_device_drops_out_and_returns_elsewhere(
    person: Any, role: str, lost_s: float
) -> None:
    """S19: hold, fade, return. A change takes 0.1 s after the short gap, else 0.2 s."""
    wearer = person(SIX)
    pipeline = Pipeline(wearer.calibration)
    position, rotation = wearer.standing()
    row = SIX.index(role)
    elsewhere = position[wearer.bones].copy()
    # The waist as far as the spine goes under a head that stays.
    elsewhere[row] += (0.08, 0.01, -0.04) if role == "waist" else (0.2, 0.15, -0.15)
    n = round(lost_s * RATE_HZ)
    valid = np.ones(6, np.bool_)
    without = valid.copy()
    without[row] = False

    frames = [wearer.frame(i / RATE_HZ, position, rotation) for i in range(30)]
    frames += [wearer.frame((30 + i) / RATE_HZ, position, rotation, without) for i in range(n)]
    frames += [wearer.frame((30 + n + i) / RATE_HZ, elsewhere, rotation[wearer.bones]) for i in range(60)]
    moved, _, _ = solved(pipeline, frames)

    step = np.linalg.norm(np.diff(moved, axis=0), axis=-1)
    assert step.max() < (0.12 if lost_s < 0.2 else 0.06)
    np.testing.assert_allclose(moved[-1, wearer.bones[row]], elsewhere[row], atol=1e-3)


# ---- symmetries


def mirrored(frame: TrackerFrame, wearer: Any) -> TrackerFrame:
    """The same people in the mirror at x = 0; left devices are worn right."""
    other = [wearer.roles.index(swap(role)) for role in wearer.roles]
    return replace(
        frame, position=frame.position[other] * FLIP_POINT, rotation=frame.rotation[other] * FLIP_TURN
    )


def swap(role: str) -> str:
    return role.replace("left", "@").replace("right", "left").replace("@", "right")


@pytest.mark.parametrize("roles", [("head", "left_hand", "right_hand"), SIX], ids=["3", "6"])
def test_mirrored_devices_give_a_mirrored_body(person: Any, roles: tuple[str, ...]) -> None:
    wearer = person(roles)
    frames = session(wearer, 6.0)

    position, rotation, local = solved(Pipeline(wearer.calibration), frames)
    position_m, rotation_m, local_m = solved(
        Pipeline(wearer.calibration), [mirrored(f, wearer) for f in frames]
    )

    np.testing.assert_allclose(position_m[:, MIRROR] * FLIP_POINT, position, atol=1e-9)
    assert_same_turns(rotation_m[:, MIRROR] * FLIP_TURN, rotation)
    assert_same_turns(local_m[:, MIRROR] * FLIP_TURN, local)


@pytest.mark.parametrize("roles", [("head", "left_hand", "right_hand"), SIX], ids=["3", "6"])
@pytest.mark.parametrize("yaw_deg", [0.0, 90.0, -137.0])
def test_devices_moved_and_turned_together_move_and_turn_the_body(
    person: Any, roles: tuple[str, ...], yaw_deg: float
) -> None:
    wearer = person(roles)
    frames = session(wearer, 5.0)
    T = Pose.from_yaw(np.radians(yaw_deg), np.array([3.0, 0.0, -7.0]))
    placed = [
        replace(f, position=T.apply(f.position), rotation=quat.multiply(T.rotation, f.rotation))
        for f in frames
    ]

    position, rotation, local = solved(Pipeline(wearer.calibration), frames)
    position_t, rotation_t, local_t = solved(Pipeline(wearer.calibration), placed)

    np.testing.assert_allclose(position_t, T.apply(position), atol=1e-9)
    assert_same_turns(rotation_t, quat.multiply(T.rotation, rotation))
    assert_same_turns(local_t[:, 1:], local[:, 1:])


@pytest.mark.parametrize("height_m", [0.0, 2.5])
def test_the_venue_places_body_and_devices_once_and_together(person: Any, height_m: float) -> None:
    """A stage has a floor of its own height."""
    wearer = person()
    frames = session(wearer, 5.0)
    space = SpaceConfig(yaw_deg=70.0, x_m=10.0, y_m=height_m, z_m=-4.0)
    here, there = Pipeline(wearer.calibration), Pipeline(wearer.calibration, PipelineConfig(space=space))
    T = there.T_venue_standing

    for frame in frames:
        pose, placed = here.step(frame), there.step(frame)

        np.testing.assert_allclose(placed.position, T.apply(pose.position), atol=1e-9)
        assert_same_turns(placed.rotation, quat.multiply(T.rotation, pose.rotation))
        assert there.tracked is not None
        np.testing.assert_allclose(there.tracked.position, T.apply(frame.position), atol=1e-9)
        np.testing.assert_allclose(placed.reach_error_m, pose.reach_error_m, atol=1e-9)


# ---- repeatable


def test_the_same_frames_give_the_same_bytes_again_and_after_a_reset(person: Any) -> None:
    wearer = person()
    frames = session(wearer)
    pipeline = Pipeline(wearer.calibration)

    first = solved(pipeline, frames)
    pipeline.reset()
    again = solved(pipeline, frames)
    fresh = solved(Pipeline(wearer.calibration), frames)

    for a, b, c in zip(first, again, fresh, strict=True):
        assert a.tobytes() == b.tobytes() == c.tobytes()


def test_a_frame_depends_on_no_later_frame(person: Any) -> None:
    wearer = person()
    frames = session(wearer)

    whole = solved(Pipeline(wearer.calibration), frames)
    cut = solved(Pipeline(wearer.calibration), frames[:150])

    for a, b in zip(whole, cut, strict=True):
        assert a[:150].tobytes() == b.tobytes()


def test_poses_given_out_stay_as_they_were(person: Any) -> None:
    """A sink or a recorder may keep them."""
    wearer = person()
    pipeline = Pipeline(wearer.calibration)
    frames = session(wearer, 1.0)
    pose = pipeline.step(frames[0])
    tracked = pipeline.tracked
    assert tracked is not None
    kept = [
        v.copy() for v in (pose.position, pose.rotation, pose.local_rotation, pose.state, tracked.position)
    ]

    for frame in frames[1:]:
        pipeline.step(frame)

    now = (pose.position, pose.rotation, pose.local_rotation, pose.state, tracked.position)
    for a, b in zip(kept, now, strict=True):
        np.testing.assert_array_equal(a, b)


def test_local_rotations_keep_their_sign(person: Any) -> None:
    """Receivers blend quaternions as they come."""
    wearer = person()

    _, rotation, local = solved(Pipeline(wearer.calibration), session(wearer))

    for turns in (rotation, local):
        assert (np.sum(turns[1:] * turns[:-1], axis=-1) > 0.0).all()


def with_layout(frame: TrackerFrame, kind: str) -> TrackerFrame:
    """The same numbers in other arrays."""
    if kind == "read-only":
        for values in (frame.position, frame.rotation, frame.valid, frame.result):
            values.setflags(write=False)
        return frame
    if kind == "float32":
        return replace(
            frame, position=frame.position.astype(np.float32), rotation=frame.rotation.astype(np.float32)
        )
    return replace(
        frame,
        position=np.asfortranarray(frame.position),
        rotation=np.repeat(frame.rotation, 2, axis=0)[::2],
        valid=np.repeat(frame.valid, 2)[::2],
    )


@pytest.mark.parametrize(("kind", "atol"), [("read-only", 0.0), ("strided", 0.0), ("float32", 3e-3)])
def test_frames_in_any_layout_give_the_same_and_compile_nothing(person: Any, kind: str, atol: float) -> None:
    wearer = person()
    frames = session(wearer, 2.0)
    expected = solved(Pipeline(wearer.calibration), frames)[0]
    given_calibration = replace(
        wearer.calibration,
        device_bone_position=np.asfortranarray(wearer.calibration.device_bone_position),
        device_bone_rotation=wearer.calibration.device_bone_rotation.copy(),
    )
    given_calibration.device_bone_rotation.setflags(write=False)
    compiled: list[str] = []

    with jit.on_compile(compiled.append):
        position = solved(Pipeline(given_calibration), [with_layout(f, kind) for f in frames])[0]

    assert compiled == []
    np.testing.assert_allclose(position, expected, atol=atol)


@pytest.mark.skipif(not jit.COMPILED, reason="VRIK_JIT=0: there is nothing to compare")
def test_a_session_may_change_from_plain_to_compiled_on_the_way(person: Any) -> None:
    """What the first start ever does while another process compiles."""
    wearer = person(SIX)
    frames = session(wearer, 1.0, 30.0)
    expected = solved(Pipeline(wearer.calibration), frames)
    pipeline = Pipeline(wearer.calibration)

    try:
        jit.run_plain(True)
        first = solved(pipeline, frames[:15])
    finally:
        jit.run_plain(False)
    second = solved(pipeline, frames[15:])

    for a, b, c in zip(expected, first, second, strict=True):
        np.testing.assert_allclose(np.concatenate([b, c]), a, atol=1e-7)


# ---- settings


def test_settings_reach_their_stage(person: Any) -> None:
    wearer = person()
    frames = session(wearer, 1.0)
    lost = [replace(f, valid=np.array([True, False, True])) if i > 5 else f for i, f in enumerate(frames)]
    slow = PipelineConfig(condition=ConditionConfig(hold_s=9.0))
    gliding = PipelineConfig(solve=SolveConfig(stepping=SteppingConfig(enabled=False)))

    held = [Pipeline(wearer.calibration, slow).step(f) for f in [*lost]][-1]
    pipeline = Pipeline(wearer.calibration, slow)
    for f in lost:
        held = pipeline.step(f)

    assert held.state[ROLE["left_hand"]] == DeviceState.HELD
    feet = [BONE["leftFoot"], BONE["rightFoot"]]
    stepping = solved(Pipeline(wearer.calibration), frames)[0][:, feet]
    glides = solved(Pipeline(wearer.calibration, gliding), frames)[0][:, feet]
    assert np.abs(stepping - glides).max() > 0.01


def test_offsets_of_worn_devices_are_taken_off(person: Any) -> None:
    """T_world_bone = T_world_device @ T_device_bone."""
    wearer = person()
    rng = np.random.default_rng(8)
    T_device_bone = [
        Pose(quat.normalize(rng.normal(size=4)), rng.normal(0.0, 0.1, 3)) for _ in range(len(ROLES))
    ]
    worn = Calibration(
        wearer.body,
        wearer.calibration.roles,
        np.array([T.translation for T in T_device_bone]),
        np.array([T.rotation for T in T_device_bone]),
    )
    frames = session(wearer, 1.0)
    on_devices = []
    for f in frames:
        position, rotation = f.position.copy(), f.rotation.copy()
        for i, row in enumerate(wearer.rows):
            T_world_device = Pose(f.rotation[i], f.position[i]) @ T_device_bone[row].inverse()
            position[i], rotation[i] = T_world_device.translation, T_world_device.rotation
        on_devices.append(replace(f, position=position, rotation=rotation))

    bones = solved(Pipeline(wearer.calibration), frames)
    devices = solved(Pipeline(worn), on_devices)

    np.testing.assert_allclose(devices[0], bones[0], atol=1e-6)
