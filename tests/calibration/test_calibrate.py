"""calibrate(): synthetic persons whose mounting is known, real recordings, and what can be wrong."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import recordings
from calibration import calibrate, nominal
from vrik import quat
from vrik.body import EYE_HEIGHT_SHARE, BodyModel
from vrik.errors import CalibrationError, NoUsableFramesError
from vrik.frames import ROLE, ROLE_BONES, ROLES, Calibration, DeviceClass, TrackedDevice, TrackerSequence
from vrik.pose import Pose
from vrik.skeleton import BONE, VRM_FROM_SMPL

SIX = ("head", "left_hand", "right_hand", "waist", "left_foot", "right_foot")
CLASS = {"head": DeviceClass.HMD, "left_hand": DeviceClass.CONTROLLER, "right_hand": DeviceClass.CONTROLLER}
Person = Callable[..., TrackerSequence]


@pytest.fixture
def person() -> Person:
    """Builds n frames of a body that stands still: T-pose, or arms hanging with ``hanging=True``."""

    def build(
        body: BodyModel | None = None,
        *,
        roles: tuple[str, ...] = SIX,
        T_world_body: Pose | None = None,
        straps: dict[str, np.ndarray] | None = None,
        hanging: bool = False,
        hints: bool = False,
        n: int = 120,
        noise: float = 0.0005,
    ) -> TrackerSequence:
        body = body or BodyModel.average(1.75)
        stand = T_world_body or Pose.identity()
        rng = np.random.default_rng(1)
        position, rotation = np.empty((n, len(roles), 3)), np.empty((n, len(roles), 4))
        for k, role in enumerate(roles):
            T_bone_device = nominal(role, body)
            T_bone_device = Pose(
                quat.multiply(T_bone_device.rotation, (straps or {}).get(role, quat.identity())),
                T_bone_device.translation,
            )
            T_body_bone = Pose(quat.identity(), body.tpose[ROLE_BONES[ROLE[role]]])
            if hanging and ("hand" in role or "elbow" in role):
                side = role.split("_")[0]
                shoulder = body.tpose[BONE[side + "UpperArm"]]
                turn = quat.from_rotvec(np.array([0.0, 0.0, np.radians(80.0 if side == "left" else -80.0)]))
                T_body_bone = Pose(turn, shoulder + quat.rotate(turn, T_body_bone.translation - shoulder))
            T_world_device = stand @ T_body_bone @ T_bone_device
            position[:, k] = T_world_device.translation + rng.normal(0.0, noise, (n, 3))
            rotation[:, k] = quat.multiply(
                T_world_device.rotation, quat.from_rotvec(rng.normal(0.0, noise, (n, 3)))
            )
        devices = [
            TrackedDevice(f"LHR-{k}", CLASS.get(role, DeviceClass.GENERIC_TRACKER), role if hints else "")
            for k, role in enumerate(roles)
        ]
        time_ns = np.arange(n) * 11_111_111
        return TrackerSequence.build(time_ns, devices, position, rotation, np.ones((n, len(roles)), bool))

    return build


def bone_pose(frames: TrackerSequence, found: Calibration, role: str) -> Pose:
    """Where the calibration says the role's bone is in the first frame."""
    serial = {r: s for s, r in found.roles.items()}[role]
    k = [d.serial for d in frames.devices].index(serial)
    i = ROLE[role]
    return Pose(frames.rotation[0, k], frames.position[0, k]) @ Pose(
        found.device_bone_rotation[i], found.device_bone_position[i]
    )


@pytest.mark.parametrize("yaw_deg", [0.0, 90.0, 180.0, -137.0])
def test_tpose_gives_every_bone_whichever_way_one_faces(person: Person, yaw_deg: float) -> None:
    body = BodyModel.average(1.68)
    T_world_body = Pose.from_yaw(np.radians(yaw_deg), np.array([1.3, 0.0, -0.7]))
    frames = person(body, T_world_body=T_world_body)

    found = calibrate(frames)

    assert found.roles == {f"LHR-{k}": role for k, role in enumerate(SIX)}
    assert found.body.stature_m == pytest.approx(1.68, abs=0.005)
    assert "stature" in found.measured
    for role in SIX:
        bone = bone_pose(frames, found, role)
        truth = T_world_body.apply(body.tpose[ROLE_BONES[ROLE[role]]])
        assert np.linalg.norm(bone.translation - truth) < 0.008, role
        assert np.degrees(quat.angle(bone.rotation, T_world_body.rotation)) < 0.6, role


@pytest.mark.parametrize("axis", [(1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)])
@pytest.mark.parametrize("turn_deg", [90.0, 180.0])
def test_turned_straps_give_the_same_body(
    person: Person, axis: tuple[float, float, float], turn_deg: float
) -> None:
    strap = quat.from_rotvec(np.radians(turn_deg) * np.array(axis))
    straps = dict.fromkeys(("waist", "left_foot", "right_foot"), strap)
    frames = person(straps=straps)

    found, plain = calibrate(frames), calibrate(person())

    np.testing.assert_allclose(found.body.tpose, plain.body.tpose, atol=2e-3)
    for role in straps:
        bone = bone_pose(frames, found, role)
        assert np.degrees(quat.angle(bone.rotation, quat.identity())) < 1.0
        assert np.linalg.norm(bone.translation - bone_pose(person(), plain, role).translation) < 2e-3


@pytest.mark.parametrize("span", [0.92, 1.08])
def test_short_and_long_arms_reach_within_two_centimetres(person: Person, span: float) -> None:
    """Height and span are both met (S08)."""
    average = BodyModel.average(1.75)
    tpose = np.array(average.tpose)
    for side in ("left", "right"):
        for bone in ("LowerArm", "Hand"):
            tpose[BONE[side + bone], 0] *= span
    true = BodyModel(1.75, tpose)

    found = calibrate(person(true), stature_m=1.75)

    arm = found.body.tpose[BONE["rightHand"], 0]
    assert arm == pytest.approx(true.tpose[BONE["rightHand"], 0], abs=0.02)
    assert "arm length" in found.measured


def test_short_person_is_not_given_a_fallback_height(person: Person) -> None:
    """S06: a short user sinks when somebody assumes 1.7 m."""
    found = calibrate(person(BodyModel.average(1.42)))

    assert found.body.stature_m == pytest.approx(1.42, abs=0.01)


def test_impossible_head_height_is_assumed_and_said(person: Person) -> None:
    frames = person(roles=("head",), T_world_body=Pose.from_yaw(0.0, np.array([0.0, -1.2, 0.0])))

    found = calibrate(frames)

    assert "stature" in found.assumed
    assert any("1.70 m is assumed" in note for note in found.notes)


def test_seated_person_with_long_reach_is_sized_by_the_arms(person: Person) -> None:
    frames = person(roles=SIX[:3], T_world_body=Pose.from_yaw(0.3, np.array([0.0, -0.5, 0.0])))

    found = calibrate(frames)

    assert found.body.stature_m == pytest.approx(1.75, abs=0.06)
    assert "stature" in found.assumed
    assert any("arms" in note for note in found.notes)


def test_hanging_arms_are_not_taken_for_a_tpose(person: Person) -> None:
    """C27: the left wrist must stay left, and the user must be told."""
    frames = person(hints=True)

    found = calibrate(frames.part(slice(0, 0)), tpose=person(hints=True, hanging=True))

    assert any("no T-pose" in note for note in found.notes)
    assert found.body.tpose[BONE["leftHand"], 0] < -0.5
    assert "left hand mounting" in found.assumed


def test_without_tpose_straps_are_seen_while_standing(person: Person) -> None:
    strap = quat.from_rotvec(np.radians(90.0) * np.array([0.0, 1.0, 0.0]))
    stand = Pose.from_yaw(2.0, np.array([0.4, 0.0, 0.1]))
    frames = person(hanging=True, straps={"waist": strap, "left_foot": strap}, T_world_body=stand)

    found = calibrate(frames)

    assert "waist mounting" in found.assumed
    assert any("strapped on is taken from plain standing" in note for note in found.notes)
    for role in SIX:
        bone = bone_pose(frames, found, role)
        if "hand" not in role:
            assert np.degrees(quat.angle(bone.rotation, stand.rotation)) < 1.0, role
    foot = bone_pose(frames, found, "left_foot").translation
    assert foot[1] == pytest.approx(found.body.ankle_height_m, abs=0.01)


def test_soles_are_on_the_floor_however_high_the_foot_tracker_sits(person: Person) -> None:
    """S05: no floating after calibration."""
    frames = person()
    position = frames.position.copy()
    position[:, 4:, 1] += 0.09
    lifted = TrackerSequence.build(frames.time_ns, frames.devices, position, frames.rotation, frames.valid)

    found = calibrate(lifted)

    for role in ("left_foot", "right_foot"):
        height = bone_pose(lifted, found, role).translation[1]
        assert height == pytest.approx(found.body.ankle_height_m, abs=0.01)


def test_zero_quaternion_counts_as_not_tracked(person: Person) -> None:
    """C58: a zero or NaN quaternion in some frames changes nothing and leaves no NaN."""
    frames = person()
    rotation, position = frames.rotation.copy(), frames.position.copy()
    rotation[:30, 3] = 0.0
    rotation[40:45, 4] = np.nan
    position[50:52, 1] = np.nan
    broken = TrackerSequence.build(frames.time_ns, frames.devices, position, rotation, frames.valid)

    found, clean = calibrate(broken), calibrate(frames)

    assert np.isfinite(found.device_bone_position).all()
    assert quat.is_rotation(found.device_bone_rotation).all()
    np.testing.assert_allclose(found.device_bone_position, clean.device_bone_position, atol=1e-3)


def test_device_that_is_lost_in_the_tpose_keeps_a_usual_mounting(person: Person) -> None:
    frames, tpose = person(hints=True), person(hints=True)
    gone = tpose.valid.copy()
    gone[:, 3] = False
    tpose = TrackerSequence.build(tpose.time_ns, tpose.devices, tpose.position, tpose.rotation, gone)

    found = calibrate(frames, tpose=tpose)

    assert "waist mounting" in found.assumed
    assert "left foot mounting" in found.measured


def test_true_skeleton_is_used_exactly(person: Person) -> None:
    true = BodyModel.average(1.6).tpose + 0.003

    found = calibrate(person(), skeleton_tpose=true)

    np.testing.assert_array_equal(found.body.tpose, true)


def test_no_headset_names_what_was_found(person: Person) -> None:
    frames = person(roles=("left_hand", "right_hand", "waist"))

    with pytest.raises(CalibrationError, match=r"no headset; found 2 controllers \(LHR-0, LHR-1\)"):
        calibrate(frames)


def test_untracked_devices_are_no_usable_frames(person: Person) -> None:
    frames = person()
    lost = TrackerSequence.build(
        frames.time_ns, frames.devices, frames.position, frames.rotation, np.zeros_like(frames.valid)
    )

    with pytest.raises(NoUsableFramesError, match="no usable frames"):
        calibrate(lost)
    with pytest.raises(NoUsableFramesError, match="empty"):
        calibrate(frames.part(slice(0, 0)))


@pytest.mark.parametrize("stated", [175.0, 0.2, float("nan")])
def test_a_height_in_centimetres_is_refused(person: Person, stated: float) -> None:
    with pytest.raises(CalibrationError, match="not believable"):
        calibrate(person(), stature_m=stated)


@pytest.mark.parametrize("n", [1, 2, 7])
def test_a_handful_of_frames_is_enough(person: Person, n: int) -> None:
    found = calibrate(person(n=n, hanging=True, hints=True))

    assert found.body.stature_m == pytest.approx(1.75, abs=0.02)
    assert set(found.roles.values()) == set(SIX)
    assert np.isfinite(found.device_bone_position).all()


def test_a_minute_of_six_devices_takes_less_than_half_a_second(person: Person) -> None:
    frames = person(n=5400)

    start = time.perf_counter()
    calibrate(frames)

    assert time.perf_counter() - start < 0.5


def test_calibration_imports_neither_numba_nor_scipy_nor_siblings() -> None:
    code = (
        "import sys; from calibration import calibrate; import calibration; assert callable(calibrate);"
        "assert callable(calibration.calibrate);"
        "bad = {'numba', 'scipy', 'recordings', 'solvers'} & set(sys.modules); assert not bad, bad"
    )

    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


# ---- real recordings

VIVE = {
    # file: (left hand, right hand, waist, left foot, right foot); from positions in the head's view
    "calibration.csv": ("controller6", "controller3", "generic7", "generic9", "generic8"),
    "walking_3.csv": ("controller3", "controller4", "generic8", "generic9", "generic7"),
    "squatting_1.csv": ("controller3", "controller6", "generic7", "generic9", "generic8"),
    "sitting_standing_2.csv": ("controller3", "controller4", "generic8", "generic9", "generic7"),
    "jumping_jacks_1.csv": ("controller3", "controller6", "generic7", "generic9", "generic8"),
    "beat_saber_1.csv": ("controller3", "controller6", "generic7", "generic9", "generic8"),
    "arm_raise_3.csv": ("controller6", "controller3", "generic9", "generic7", "generic8"),
    "crouch_walking_1.csv": ("controller3", "controller4", "generic7", "generic9", "generic8"),
}


def vive(shared: Path, name: str) -> TrackerSequence:
    path = shared / "data" / "vr" / "nolicence" / "vive_csv" / name
    return recordings.read_all(recordings.open_recording(path))


def number(serial: str) -> str:
    """ "generic07" and "generic7" are the same device."""
    return serial.rstrip("0123456789").lower() + str(int("".join(c for c in serial if c.isdigit())))


@pytest.mark.parametrize("name", VIVE)
def test_roles_of_six_real_devices(shared: Path, name: str) -> None:
    found = calibrate(vive(shared, name))

    by_role = {role: number(serial) for serial, role in found.roles.items()}
    wanted = ("left_hand", "right_hand", "waist", "left_foot", "right_foot")
    assert tuple(by_role.get(role) for role in wanted) == VIVE[name]
    assert 1.64 < found.body.stature_m < 1.80
    assert not any("hard to tell" in note for note in found.notes)


def test_real_tpose_is_found_and_measured(shared: Path) -> None:
    frames = vive(shared, "calibration.csv")

    found = calibrate(frames)

    assert "arm length" in found.measured
    wrists = found.body.tpose[BONE["rightHand"], 0] - found.body.tpose[BONE["leftHand"], 0]
    assert 1.25 < wrists < 1.35  # controllers 1.49 m apart, less twice a palm
    for role in ("left_foot", "right_foot"):
        height = bone_pose(frames, found, role).translation[1]
        assert height == pytest.approx(found.body.ankle_height_m, abs=0.01)


@pytest.mark.parametrize("name", [name for name in VIVE if name != "calibration.csv"])
def test_wands_are_noticed_without_a_tpose(shared: Path, name: str) -> None:
    """Long controllers point to the thumb: no take is solved with a fist grip, 80 degrees off."""
    truth = calibrate(vive(shared, "calibration.csv"))
    found = calibrate(vive(shared, name))

    for role in ("left_hand", "right_hand"):
        i = ROLE[role]
        off = quat.angle(found.device_bone_rotation[i], truth.device_bone_rotation[i])
        assert np.degrees(off) < 25.0


def test_all_zero_recording_has_no_usable_frames(shared: Path) -> None:
    with pytest.raises(NoUsableFramesError, match="no usable frames"):
        calibrate(vive(shared, "all_zero.csv"))


def test_harness_tpose_gives_the_wrists_of_motion_capture(shared: Path) -> None:
    """Bones computed from device poses made of real motion lie where the motion has them."""
    clip = np.load(shared / "data" / "mocap" / "dev" / "cmu_16_15.npz")
    tpose = clip["tpose"].astype(float)[VRM_FROM_SMPL]
    stature = float(clip["height_m"])
    joints = clip["pos"].astype(float)[:, VRM_FROM_SMPL]
    turns = quat.normalize(clip["rot"].astype(float)[:, VRM_FROM_SMPL])
    true = BodyModel(stature, tpose)
    rng = np.random.default_rng(3)
    errors = {}

    def devices_on(joints: np.ndarray, turns: np.ndarray) -> TrackerSequence:
        n = len(joints)
        position, rotation = np.empty((n, len(SIX), 3)), np.empty((n, len(SIX), 4))
        for k, role in enumerate(SIX):
            bone = ROLE_BONES[ROLE[role]]
            place = nominal(role, true)
            off, turn = errors[role]
            position[:, k] = joints[:, bone] + quat.rotate(turns[:, bone], place.translation + off)
            rotation[:, k] = quat.multiply(turns[:, bone], quat.multiply(place.rotation, turn))
        devices = [TrackedDevice(r, CLASS.get(r, DeviceClass.GENERIC_TRACKER), r) for r in SIX]
        valid = np.ones((n, len(SIX)), bool)
        return TrackerSequence.build(np.arange(n) * 16_666_667, devices, position, rotation, valid)

    for role in SIX:
        errors[role] = (rng.normal(0, 0.012, 3), quat.from_rotvec(np.radians(rng.normal(0, 6, 3))))
    frames = devices_on(joints, turns)
    still = devices_on(np.repeat(tpose[None], 60, 0), quat.identity(60, 22))

    found = calibrate(frames, tpose=still, stature_m=stature)

    assert found.roles == {role: role for role in SIX}
    for k, role in enumerate(SIX):
        i, bone = ROLE[role], ROLE_BONES[ROLE[role]]
        at = frames.position[:, k] + quat.rotate(frames.rotation[:, k], found.device_bone_position[i])
        turn = quat.multiply(frames.rotation[:, k], found.device_bone_rotation[i])
        assert np.linalg.norm(at - joints[:, bone], axis=-1).mean() < 0.045, role
        assert np.degrees(quat.angle(turn, turns[:, bone])).mean() < 3.0, role


def test_every_role_has_a_usual_mounting_that_is_mirrored() -> None:
    body = BodyModel.average(1.75)

    for role in ROLES:
        other = role.replace("left", "@").replace("right", "left").replace("@", "right")
        here, there = nominal(role, body), nominal(other, body)
        np.testing.assert_allclose(here.translation * [-1.0, 1.0, 1.0], there.translation, atol=1e-12)
        mirrored = here.rotation * np.array([1.0, 1.0, -1.0, -1.0])
        assert quat.angle(mirrored, there.rotation) < 1e-9
    eyes = nominal("head", body).translation[1] + body.tpose[BONE["head"], 1]
    assert eyes == pytest.approx(EYE_HEIGHT_SHARE * 1.75, abs=1e-9)
