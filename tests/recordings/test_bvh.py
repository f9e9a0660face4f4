"""BVH: the real mocopi take, the reported faults, the names programs use, and the virtual devices."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recordings import bvh_text
from recordings.base import LoadedRecording, listening, read_all
from recordings.bvh_file import BvhMotion, read_bvh
from recordings.bvh_names import landmarks_of
from recordings.importers.bvh import BvhImporter
from vrik import quat
from vrik.errors import DamagedRecordingError, RecordingError
from vrik.frames import DeviceClass
from vrik.skeleton import bone_lengths

CHANNELS_3 = "CHANNELS 3 Zrotation Xrotation Yrotation"
CHANNELS_6 = "CHANNELS 6 Xposition Yposition Zposition Zrotation Xrotation Yrotation"
FORWARD, UP = np.array([0.0, 0.0, -1.0]), np.array([0.0, 1.0, 0.0])

# A person of 1.75 m facing +Z as most files do, so the left is at +X. Name: (parent, offset in centimetres).
PERSON: dict[str, tuple[str, tuple[float, float, float]]] = {
    "Hips": ("", (0, 95, 0)),
    "Spine": ("Hips", (0, 30, 0)),
    "Head": ("Spine", (0, 31.8, 0)),
    "LeftArm": ("Spine", (18, 20, 0)),
    "LeftForeArm": ("LeftArm", (28, 0, 0)),
    "LeftHand": ("LeftForeArm", (26, 0, 0)),
    "RightArm": ("Spine", (-18, 20, 0)),
    "RightForeArm": ("RightArm", (-28, 0, 0)),
    "RightHand": ("RightForeArm", (-26, 0, 0)),
    "LeftUpLeg": ("Hips", (9, -5, 0)),
    "LeftLeg": ("LeftUpLeg", (0, -42, 0)),
    "LeftFoot": ("LeftLeg", (0, -42, 0)),
    "LeftToe": ("LeftFoot", (0, -6, 12)),
    "RightUpLeg": ("Hips", (-9, -5, 0)),
    "RightLeg": ("RightUpLeg", (0, -42, 0)),
    "RightFoot": ("RightLeg", (0, -42, 0)),
    "RightToe": ("RightFoot", (0, -6, 12)),
}
JOINTS = list(PERSON)


def person_bvh(
    rotations: dict[str, tuple[float, float, float]] | None = None,
    offsets: dict[str, tuple[float, float, float]] | None = None,
    unit_per_cm: float = 1.0,
    yaw_deg: float = 0.0,
    rename: str = "{}",
    rows: int = 1,
) -> str:
    """The person as a file; ``rotations`` are (Z, X, Y) degrees by joint, the same in every row."""
    turn = quat.from_rotvec(np.array([0.0, np.radians(yaw_deg), 0.0]))

    def joint(name: str) -> str:
        offset = quat.rotate(turn, np.array((offsets or {}).get(name, PERSON[name][1]), float)) * unit_per_cm
        kind, channels = ("JOINT", CHANNELS_3) if PERSON[name][0] else ("ROOT", CHANNELS_6)
        inner = "".join(joint(child) for child, (parent, _) in PERSON.items() if parent == name)
        numbers = " ".join(f"{x:.9g}" for x in offset)
        end = inner or "End Site\n{\nOFFSET 0 0 0\n}\n"
        return f"{kind} {rename.format(name)}\n{{\nOFFSET {numbers}\n{channels}\n{end}}}\n"

    row = ["0", f"{95 * unit_per_cm:g}", "0"]
    order: list[str] = []

    def walk(name: str) -> None:
        order.append(name)
        for child, (parent, _) in PERSON.items():
            if parent == name:
                walk(child)

    walk("Hips")
    for name in order:
        row += [f"{x:.9g}" for x in (rotations or {}).get(name, (0.0, 0.0, 0.0))]
    body = (" ".join(row) + "\n") * rows
    return f"HIERARCHY\n{joint('Hips')}MOTION\nFrames: {rows}\nFrame Time: 0.01\n{body}"


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8", newline="")
    return path


def open_bvh(path: Path) -> LoadedRecording:
    recording = BvhImporter().open(path)
    return LoadedRecording(recording.info, read_all(recording))


def device(recording: LoadedRecording, role: str, frame: int = 0) -> tuple[np.ndarray, np.ndarray]:
    k = [d.role for d in recording.info.devices].index(role)
    return recording.frames.position[frame, k], recording.frames.rotation[frame, k]


def in_file_units(motion: BvhMotion) -> np.ndarray:
    """World positions turned back to the file's own facing."""
    back = quat.from_rotvec(np.array([0.0, -motion.turned_rad, 0.0]))
    return quat.rotate(back, motion.position / motion.unit_m)


def in_file_axes(motion: BvhMotion, joint: str) -> np.ndarray:
    """Local rotation of a joint in the first frame, in the file's own axes."""
    turn = quat.from_rotvec(np.array([0.0, motion.turned_rad, 0.0]))
    local = motion.local_rotation[0, motion.skeleton.names.index(joint)]
    return quat.multiply(quat.multiply(quat.conjugate(turn), local), turn)


def test_the_real_take_has_its_joints_rate_and_jumps(shared: Path) -> None:
    motion = read_bvh(shared / "data/vr/bvh_mocopi/jump.bvh")
    hips = motion.position[:, 0, 1]

    assert motion.position.shape == (802, 27, 3)
    assert 1.0 / motion.frame_time_s == pytest.approx(60.0, abs=0.01)
    assert motion.unit == "centimetres"
    assert hips.min() == pytest.approx(0.67, abs=0.005)
    assert hips.max() == pytest.approx(1.17, abs=0.005)
    assert len(motion.end_sites) == 5
    assert motion.counts == {}


def test_bones_of_the_real_take_are_constant_and_not_doubled(shared: Path) -> None:
    """Every joint has position channels that repeat its offset: added, each bone would be twice as long."""
    motion = read_bvh(shared / "data/vr/bvh_mocopi/jump.bvh")

    lengths = bone_lengths(motion.position, motion.skeleton.parents)
    at_rest = np.linalg.norm(motion.skeleton.rest_translation[1:], axis=-1)

    np.testing.assert_allclose(lengths, np.broadcast_to(at_rest, lengths.shape), atol=1e-6)
    assert lengths[0, motion.skeleton.names.index("l_low_leg") - 1] == pytest.approx(0.388, abs=0.001)


def test_the_real_take_faces_forward_and_its_left_is_left(shared: Path) -> None:
    recording = open_bvh(shared / "data/vr/bvh_mocopi/jump.bvh")
    frames = recording.frames
    head, left, right, waist = (frames.position[:, k] for k in range(4))
    to_waist = quat.conjugate(frames.rotation[:, 3])

    assert [d.role for d in recording.info.devices] == [
        "head", "left_hand", "right_hand", "waist", "left_foot", "right_foot",
    ]  # fmt: skip
    assert len(frames) == 802
    assert frames.rate_hz == pytest.approx(60.0, abs=0.01)
    assert frames.duration_s == pytest.approx(13.35, abs=0.01)
    assert frames.valid.all()
    assert np.median(quat.rotate(to_waist, left - waist)[:, 0]) < -0.15
    assert np.median(quat.rotate(to_waist, right - waist)[:, 0]) > 0.15
    assert np.median(quat.rotate(to_waist, frames.position[:, 4] - frames.position[:, 5])[:, 0]) < -0.1
    np.testing.assert_allclose(quat.rotate(frames.rotation[0, 0], FORWARD), FORWARD, atol=0.01)
    assert head[0, 1] == pytest.approx(1.657, abs=0.005)
    assert 1.02 < head[:, 1].min() < head[:, 1].max() < 1.85


def test_the_rest_pose_of_the_real_take_is_its_calibration(shared: Path) -> None:
    calibration = open_bvh(shared / "data/vr/bvh_mocopi/jump.bvh").info.calibration

    assert calibration is not None
    assert len(calibration) == 1
    np.testing.assert_allclose(calibration.position[0, 1], [-0.767, 1.399, -0.033], atol=0.003)
    np.testing.assert_allclose(calibration.position[0, 2], [0.767, 1.399, -0.033], atol=0.003)
    assert 0.05 < calibration.position[0, 4, 1] < 0.12


@pytest.mark.parametrize("yaw_deg", [0.0, 90.0, 180.0, -37.0])
def test_whichever_way_a_file_faces_the_body_faces_forward(tmp_path: Path, yaw_deg: float) -> None:
    recording = open_bvh(write(tmp_path / "a.bvh", person_bvh(yaw_deg=yaw_deg)))

    left, head = device(recording, "left_hand"), device(recording, "head")

    np.testing.assert_allclose(left[0], [-0.72 - 0.09, 1.45, 0.0], atol=0.005)
    np.testing.assert_allclose(quat.rotate(head[1], FORWARD), FORWARD, atol=1e-6)
    np.testing.assert_allclose(
        quat.rotate(left[1], FORWARD), [-1.0, 0.0, 0.0], atol=1e-6
    )  # along the fingers
    np.testing.assert_allclose(
        quat.rotate(left[1], UP), FORWARD, atol=1e-6
    )  # palm down: the thumb is in front
    right = device(recording, "right_hand")
    np.testing.assert_allclose(quat.rotate(right[1], FORWARD), [1.0, 0.0, 0.0], atol=1e-6)
    np.testing.assert_allclose(quat.rotate(right[1], UP), FORWARD, atol=1e-6)


def test_devices_sit_where_the_harness_puts_them(tmp_path: Path) -> None:
    recording = open_bvh(write(tmp_path / "a.bvh", person_bvh()))

    np.testing.assert_allclose(device(recording, "head")[0], [0.0, 1.568 + 0.07, -0.09], atol=0.002)
    np.testing.assert_allclose(device(recording, "waist")[0], [0.0, 0.95 + 0.02, -0.11], atol=0.002)
    np.testing.assert_allclose(device(recording, "right_foot")[0], [0.09, 0.06 - 0.02, -0.09], atol=0.002)
    assert [d.device_class for d in recording.info.devices] == [DeviceClass.HMD] + [
        DeviceClass.CONTROLLER
    ] * 2 + [DeviceClass.GENERIC_TRACKER] * 3


def test_the_devices_of_a_taller_person_are_farther_from_the_joints(tmp_path: Path) -> None:
    recording = open_bvh(write(tmp_path / "a.bvh", person_bvh(unit_per_cm=1.1)))

    np.testing.assert_allclose(device(recording, "waist")[0], [0.0, 1.1 * 0.97, 1.1 * -0.11], atol=0.002)


def test_looking_up_in_the_file_is_looking_up_here(tmp_path: Path) -> None:
    """A body that faces +Z looks up when it turns by a negative angle about X."""
    recording = open_bvh(write(tmp_path / "a.bvh", person_bvh({"Head": (0.0, -30.0, 0.0)})))

    look = quat.rotate(device(recording, "head")[1], FORWARD)

    np.testing.assert_allclose(look, [0.0, 0.5, -np.cos(np.radians(30))], atol=1e-6)


def test_turning_to_its_left_in_the_file_is_turning_to_its_left_here(tmp_path: Path) -> None:
    """A body that faces +Z has its left at +X, and turns there about +Y; ours then looks at -X."""
    recording = open_bvh(write(tmp_path / "a.bvh", person_bvh({"Hips": (0.0, 0.0, 90.0)})))

    np.testing.assert_allclose(
        quat.rotate(device(recording, "waist")[1], FORWARD), [-1.0, 0.0, 0.0], atol=1e-6
    )
    np.testing.assert_allclose(device(recording, "left_hand")[0], [0.0, 1.45, 0.81], atol=0.005)


def test_a_rest_pose_with_hanging_arms_gives_the_same_controllers(tmp_path: Path) -> None:
    """Arms raised to the sides from a hanging rest pose are the T-pose's arms, controllers included."""
    down = {
        "LeftForeArm": (0.0, -28.0, 0.0), "LeftHand": (0.0, -26.0, 0.0),
        "RightForeArm": (0.0, -28.0, 0.0), "RightHand": (0.0, -26.0, 0.0),
    }  # fmt: skip
    raised = {"LeftArm": (90.0, 0.0, 0.0), "RightArm": (-90.0, 0.0, 0.0)}
    t_pose = open_bvh(write(tmp_path / "t.bvh", person_bvh()))

    recording = open_bvh(write(tmp_path / "i.bvh", person_bvh(raised, down)))

    np.testing.assert_allclose(recording.frames.position, t_pose.frames.position, atol=1e-6)
    assert quat.angle(recording.frames.rotation, t_pose.frames.rotation).max() < 1e-6
    assert recording.info.calibration is None
    assert any("90 degrees off a T-pose" in note for note in recording.info.notes)


@pytest.mark.parametrize(
    ("unit_per_cm", "unit"),
    [
        (1.0, "centimetres"),
        (0.01, "metres"),
        (10.0, "millimetres"),
        (1 / 2.54, "inches"),
        (0.45 / 2.54, "CMU units"),
    ],
)
def test_the_unit_is_guessed_from_the_size_of_the_body(tmp_path: Path, unit_per_cm: float, unit: str) -> None:
    path = write(tmp_path / "a.bvh", person_bvh(unit_per_cm=unit_per_cm))

    motion = read_bvh(path)

    assert motion.unit == unit
    assert motion.position[0, 0, 1] == pytest.approx(0.95, abs=1e-4)
    assert any(unit in note for note in motion.notes)


@pytest.mark.parametrize(
    ("prefix", "names"),
    [
        ("", "root, head, l_up_arm, l_hand, r_hand, l_up_leg, l_foot, r_foot"),
        ("", "Hips, Head, LeftArm, LeftHand, RightHand, LeftUpLeg, LeftFoot, RightFoot"),
        ("mixamorig:", "Hips, Head, LeftArm, LeftHand, RightHand, LeftUpLeg, LeftFoot, RightFoot"),
        ("mixamorig", "Hips, Head, LeftArm, LeftHand, RightHand, LeftUpLeg, LeftFoot, RightFoot"),
        ("Character1_", "Hips, Head, LeftArm, LeftHand, RightHand, LeftUpLeg, LeftFoot, RightFoot"),
        ("", "HIPS, HEAD, LEFTARM, LEFTHAND, RIGHTHAND, LEFTUPLEG, LEFTFOOT, RIGHTFOOT"),
        ("", "hips, head, leftUpperArm, leftHand, rightHand, leftUpperLeg, leftFoot, rightFoot"),
        ("m_avg_", "Pelvis, Head, L_Shoulder, L_Wrist, R_Wrist, L_Hip, L_Ankle, R_Ankle"),
        ("", "pelvis, head, left_shoulder, left_wrist, right_wrist, left_hip, left_ankle, right_ankle"),
        ("Bip01 ", "Pelvis, Head, L UpperArm, L Hand, R Hand, L Thigh, L Foot, R Foot"),
        ("", "hip, head, lShldr, lHand, rHand, lThigh, lFoot, rFoot"),
        ("J_Bip_", "C_Hips, C_Head, L_UpperArm, L_Hand, R_Hand, L_UpperLeg, L_Foot, R_Foot"),
    ],
)
def test_the_names_of_common_programs_are_known(prefix: str, names: str) -> None:
    joints = tuple(prefix + name for name in names.split(", "))

    found = landmarks_of(joints, np.array([-1] + [0] * 7))

    wanted = [
        "hips",
        "head",
        "left_upper_arm",
        "left_hand",
        "right_hand",
        "left_upper_leg",
        "left_foot",
        "right_foot",
    ]
    assert [found.get(part) for part in wanted] == list(range(8))


def test_fingers_toes_and_end_joints_are_not_taken_for_hands_feet_and_heads() -> None:
    names = ("Hips", "HeadTop_End", "LeftHandThumb1", "LeftToeBase", "LeftForeArm", "LeftHandIndex1")

    assert landmarks_of(names, np.array([-1, 0, 0, 0, 0, 0])) == {"hips": 0}


def test_smpl_hands_and_feet_are_the_wrists_and_ankles() -> None:
    names = ("Pelvis", "L_Hand", "L_Wrist", "L_Foot", "L_Ankle")

    found = landmarks_of(names, np.array([-1, 0, 0, 0, 0]))

    assert (found["left_hand"], found["left_foot"]) == (2, 4)


def test_a_missing_blank_before_a_minus_does_not_shift_the_channels(shared: Path) -> None:
    """Case C25: both rows say the same, one of them without a blank."""
    motion = read_bvh(shared / "data/cases/c25_missing_space.bvh")

    np.testing.assert_allclose(motion.local_rotation[1], motion.local_rotation[0])
    assert motion.counts == {"rows with glued numbers": 1}


def test_numbers_glued_without_a_sign_are_not_guessed_at(tmp_path: Path) -> None:
    """A word "0.95.0" could be 0.95 and 0, or 0 and 95: the row is left out."""
    lines = person_bvh(rows=2).split("\n")
    lines[-2] = lines[-2].replace("0 95 0", "0.95.0 0", 1)

    recording = open_bvh(write(tmp_path / "a.bvh", "\n".join(lines)))

    assert len(recording.frames) == 1
    assert recording.info.counts == {"rows cut": 1}


def test_exponents_are_read(shared: Path) -> None:
    """Case C33."""
    motion = read_bvh(shared / "data/cases/c33_exponents.bvh")

    np.testing.assert_allclose(in_file_units(motion)[0, 0], [0.0, 90.0, -2.5e-5], atol=1e-9)
    assert np.degrees(quat.to_rotvec(in_file_axes(motion, "Hips"))[2]) == pytest.approx(15.0)


def test_each_joint_gets_its_own_number_of_channels(shared: Path) -> None:
    """Case C35: 6, 3, 6 and 1 channels."""
    motion = read_bvh(shared / "data/cases/c35_mixed_channels.bvh")

    np.testing.assert_allclose(
        np.degrees(quat.to_rotvec(in_file_axes(motion, "Leg"))), [0.0, 42.0, 0.0], atol=1e-9
    )
    np.testing.assert_allclose(in_file_units(motion)[0, 3], [10.0, 10.0, 0.0], atol=1e-9)


@pytest.mark.parametrize(("name", "rows"), [("c37_one_row_more.bvh", 3), ("c37_one_row_less.bvh", 1)])
def test_a_wrong_row_count_is_told_with_both_numbers(shared: Path, name: str, rows: int) -> None:
    """Case C37: both files state 2 frames."""
    motion = read_bvh(shared / "data/cases" / name)

    assert len(motion.rows) == rows
    assert any("states 2 frames" in note and f"holds {rows} row" in note for note in motion.notes)


def test_blanks_line_ends_tabs_and_small_letters_do_not_matter(shared: Path) -> None:
    """Case C39."""
    motion = read_bvh(shared / "data/cases/c39_messy_whitespace.bvh")

    assert len(motion.rows) == 1
    assert np.degrees(quat.to_euler("zxy", in_file_axes(motion, "Spine"))) == pytest.approx([1.0, 2.0, 3.0])


def test_position_channels_replace_the_offset(shared: Path) -> None:
    """Case C42."""
    motion = read_bvh(shared / "data/cases/c42_child_positions.bvh")

    np.testing.assert_allclose(in_file_units(motion)[0, 1], [0.0, 115.0, 0.0], atol=1e-9)


def test_decimal_commas_are_one_number_each(shared: Path) -> None:
    """Case C44."""
    motion = read_bvh(shared / "data/cases/c44_decimal_commas.bvh")

    np.testing.assert_allclose(in_file_units(motion)[0, 0], [0.5, 90.25, 0.0], atol=1e-9)
    assert motion.frame_time_s == pytest.approx(1 / 60, abs=1e-6)


def test_rotations_multiply_in_the_order_they_are_listed(tmp_path: Path) -> None:
    path = write(tmp_path / "a.bvh", person_bvh({"Spine": (10.0, 20.0, 30.0)}))

    z, x, y = (
        quat.from_rotvec(np.radians(a) * axis)
        for a, axis in zip((10, 20, 30), np.eye(3)[[2, 0, 1]], strict=True)
    )

    assert quat.angle(in_file_axes(read_bvh(path), "Spine"), quat.multiply(z, quat.multiply(x, y))) < 1e-9


def test_a_row_that_cannot_be_read_is_left_out_and_keeps_its_time(tmp_path: Path) -> None:
    lines = person_bvh(rows=4).split("\n")
    lines[-4] = lines[-4].replace(" 0 ", " zero ", 1)

    recording = open_bvh(write(tmp_path / "a.bvh", "\n".join(lines)))

    assert recording.frames.time_ns.tolist() == [0, 20_000_000, 30_000_000]
    assert recording.info.counts == {"rows skipped": 1}


def test_a_cut_last_row_is_left_out_and_told(tmp_path: Path) -> None:
    recording = open_bvh(write(tmp_path / "a.bvh", person_bvh(rows=3).rstrip()[:-30]))

    assert len(recording.frames) == 2
    assert recording.info.counts == {"rows cut": 1}


def test_rows_without_one_readable_row_name_the_line(tmp_path: Path) -> None:
    text = person_bvh().rstrip() + ",5 0 0\n"
    path = write(tmp_path / "a.bvh", text)
    line = text.count("\n")

    with pytest.raises(DamagedRecordingError, match=f"line {line} has"):
        open_bvh(path)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("MOTION", "MOTON", "MOTION"),
        ("OFFSET 0 30 0", "OFFSET 0 30", "OFFSET needs three numbers"),
        ("CHANNELS 3 Z", "CHANNELS 4 Z", "CHANNELS needs a count"),
        ("Frame Time: 0.01", "Frame Time: 0", "Frame Time"),
        ("Frame Time: 0.01", "", "Frame Time"),
        ("}\nMOTION", "MOTION", "missing before MOTION"),
        ("}\nMOTION", "}\nROOT Other\n{\nOFFSET 0 0 0\n}\nMOTION", "second root"),
        ("}\nMOTION", "}\n}\nMOTION", "too many"),
        ("JOINT Spine", "JOYNT Spine", "JOYNT"),
    ],
)
def test_a_broken_file_is_one_sentence(tmp_path: Path, old: str, new: str, told: str) -> None:
    text = person_bvh()
    assert old in text

    with pytest.raises(DamagedRecordingError, match=told):
        open_bvh(write(tmp_path / "a.bvh", text.replace(old, new, 1)))


def test_a_skeleton_without_known_names_is_refused_with_what_to_do(tmp_path: Path) -> None:
    path = write(tmp_path / "a.bvh", person_bvh(rename="bone{:.2}x"))

    with pytest.raises(RecordingError, match="rename the joints"):
        open_bvh(path)


def test_parts_that_are_not_there_have_no_device(tmp_path: Path) -> None:
    text = person_bvh().replace("Head", "Skull")

    recording = open_bvh(write(tmp_path / "a.bvh", text))

    assert "head" not in [d.role for d in recording.info.devices]
    assert any("have no device: head" in note for note in recording.info.notes)


def test_a_file_without_frames_is_an_empty_recording(tmp_path: Path) -> None:
    recording = open_bvh(write(tmp_path / "a.bvh", person_bvh(rows=0)))

    assert len(recording.frames) == 0


def test_a_body_that_floats_is_told(tmp_path: Path) -> None:
    text = person_bvh().replace("\n0 95 0 ", "\n0 195 0 ")

    notes = open_bvh(write(tmp_path / "a.bvh", text)).info.notes

    assert any("y = 1.00 m" in note for note in notes)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 3000))
def test_a_file_cut_anywhere_gives_whole_frames_or_one_sentence(tmp_path: Path, size: int) -> None:
    text = person_bvh({"Head": (1.0, 2.0, 3.0)}, rows=6)
    path = write(tmp_path / "cut.bvh", text[: len(text) * size // 3000])
    whole = open_bvh(write(tmp_path / "whole.bvh", text)).frames

    try:
        frames = open_bvh(path).frames
    except RecordingError:
        return

    n = len(frames)
    np.testing.assert_allclose(frames.position[: max(0, n - 1)], whole.position[: max(0, n - 1)])


def test_only_its_first_word_is_recognised() -> None:
    importer = BvhImporter()

    assert importer.recognises(b"\xef\xbb\xbf  \r\nHierarchy\r\n", Path("a.txt"))
    assert not importer.recognises(b"", Path("a.bvh"))
    assert not importer.recognises(b"timestamp,HMD0_tx", Path("a.bvh"))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("OFFSET 0 30 0", f"OFFSET 0 30 {'x' * 400}"),
        ("CHANNELS 3 Z", f"CHANNELS {'4' * 400} Z"),
        ("JOINT Spine", f"{'Q' * 400} Spine"),
        ("MOTION", f"{'7' * 400}"),
    ],
)
def test_messages_show_the_beginning_of_long_words(tmp_path: Path, old: str, new: str) -> None:
    path = write(tmp_path / "a.bvh", person_bvh().replace(old, new, 1))

    with pytest.raises(DamagedRecordingError) as raised:
        open_bvh(path)

    assert len(str(raised.value)) < 150


def test_long_names_that_say_nothing_are_shown_in_part(tmp_path: Path) -> None:
    path = write(tmp_path / "a.bvh", person_bvh(rename="bone{:.2}" + "x" * 400))

    with pytest.raises(RecordingError, match="rename the joints") as raised:
        open_bvh(path)

    assert len(str(raised.value)) < 700


def test_rows_in_blocks_are_the_rows_and_the_bytes_read_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever a block ends: in a number, at the end of a line, before a row that cannot be read."""
    lines = person_bvh({"Head": (1.0, 2.0, 3.0)}, rows=30).split("\n")
    first = lines.index("Frame Time: 0.01") + 1
    for i in range(30):
        lines[first + i] = lines[first + i].replace("0 95 0", f"0 {95 + i} 0", 1)
    lines[first + 11] = "bad row"
    lines[first + 20] = lines[first + 20].replace("1 2 3", "1 2 -3", 1).replace(" 2 -3", " 2-3", 1)
    path = write(tmp_path / "a.bvh", "\r\n".join(lines))
    whole = read_bvh(path)

    for chars in (37, 100, 1000):
        monkeypatch.setattr(bvh_text, "BLOCK_CHARS", chars)
        told: list[tuple[int, int | None]] = []
        with listening(lambda done, total: told.append((done, total))):  # noqa: B023 - called inside only
            motion = read_bvh(path)

        assert motion.rows.tolist() == [i for i in range(30) if i != 11]
        assert motion.counts == {"rows skipped": 1, "rows with glued numbers": 1}
        assert any(f"line {first + 12} has 2 values" in note for note in motion.notes)
        np.testing.assert_array_equal(motion.position, whole.position)
        np.testing.assert_allclose(motion.rotation, whole.rotation, atol=1e-12)
        assert told[-1] == (path.stat().st_size, path.stat().st_size)
        assert [done for done, _ in told] == sorted(done for done, _ in told)
