"""Faults that other projects had: each case of the shared list with the outcome it states, none left out.

The cases are found in the list itself, so that a new one without a check fails here. Hypothesis makes more of
the kind in ``test_odd_input.py``.
"""

from __future__ import annotations

import json
import locale
import re
import tracemalloc
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from calibration import calibrate
from recordings import open_recording, read_all
from recordings.base import LoadedRecording
from recordings.bvh_file import BvhMotion, read_bvh
from recordings.importers.bsor import BsorImporter
from recordings.mcap_walk import Walk, walk_messages
from vrik import quat
from vrik.errors import UnknownFormatError
from vrik.frames import TrackerSequence
from vrik.pipeline import Pipeline, solve_all
from vrik.pose import Pose

AREAS = ("BVH", "BSOR", "MCAP", "replay", "rotations")
CASES: dict[str, Callable[[Path], None]] = {}


def case(check: Callable[[Path], None]) -> Callable[[Path], None]:
    """Enter the check of case ``cNN_...`` into the table."""
    CASES[check.__name__[:3].upper()] = check
    return check


def listed(shared: Path) -> list[str]:
    """Numbers of all cases in our areas, as the list states them."""
    text = (shared / "data/cases/README.md").read_text(encoding="utf-8")
    return [number for number, area in re.findall(r"^## (C\d\d) \((.+)\)$", text, re.M) if area in AREAS]


def test_every_case_of_these_areas_has_a_check(shared: Path) -> None:
    numbers = listed(shared)

    assert len(numbers) >= 15
    assert sorted(set(numbers) - set(CASES)) == []


def in_file_units(motion: BvhMotion) -> np.ndarray:
    """World positions turned back to the file's own facing."""
    back = quat.from_rotvec(np.array([0.0, -motion.turned_rad, 0.0]))
    return quat.rotate(back, motion.position / motion.unit_m)


def in_file_axes(motion: BvhMotion, joint: str, row: int = 0) -> np.ndarray:
    """Local rotation of a joint, in the file's own axes."""
    turn = quat.from_rotvec(np.array([0.0, motion.turned_rad, 0.0]))
    local = motion.local_rotation[row, motion.skeleton.names.index(joint)]
    return quat.multiply(quat.multiply(quat.conjugate(turn), local), turn)


def euler_deg(motion: BvhMotion, joint: str, row: int = 0) -> np.ndarray:
    return np.degrees(quat.to_euler("zxy", in_file_axes(motion, joint, row)))


def bsor(path: Path) -> LoadedRecording:
    recording = BsorImporter().open(path)
    return LoadedRecording(recording.info, read_all(recording))


def solved_is_finite(frames: TrackerSequence) -> None:
    """No number that is not finite comes out of the whole way to the body."""
    poses = solve_all(Pipeline(calibrate(frames)), frames)
    assert len(poses) == len(frames)
    assert np.isfinite(poses.position).all()
    assert np.isfinite(poses.rotation).all()


@case
def c17_half_turns_become_unit_quaternions(cases: Path) -> None:
    for entry in json.loads((cases / "c17_half_turns.json").read_text()):
        matrix = np.array(entry["matrix"], float)
        for q in (quat.from_matrix(matrix[:, :3]), Pose.from_matrix(matrix).rotation):
            assert np.linalg.norm(q) == pytest.approx(1.0, abs=1e-9)
            wanted = quat.wxyz_from_xyzw(np.array(entry["quat_xyzw"], float))
            assert np.degrees(quat.angle(q, quat.normalize(wanted))) < 0.1


@case
def c23_a_gap_and_a_falling_rate_leave_no_nan(cases: Path) -> None:
    frames = read_all(open_recording(cases / "c23_nan_and_rate_drop.csv"))

    assert np.argwhere(~frames.valid).tolist() == [[row, 1] for row in range(40, 45)]
    assert frames.time_ns[-1] == 6402_000_000
    assert frames.duration_s < 6.41
    np.testing.assert_allclose(frames.position[frames.valid].max(), 2.0, atol=1.0)  # metres
    solved_is_finite(frames)


@case
def c25_a_missing_blank_shifts_no_channel(cases: Path) -> None:
    motion = read_bvh(cases / "c25_missing_space.bvh")

    np.testing.assert_allclose(motion.local_rotation[1], motion.local_rotation[0])
    assert motion.counts == {"rows with glued numbers": 1}


@case
def c33_exponents_are_numbers(cases: Path) -> None:
    motion = read_bvh(cases / "c33_exponents.bvh")

    np.testing.assert_allclose(in_file_units(motion)[0, 0], [0.0, 90.0, -2.5e-5], atol=1e-9)
    assert np.degrees(quat.to_rotvec(in_file_axes(motion, "Hips"))[2]) == pytest.approx(15.0)


@case
def c35_each_joint_has_its_own_channels(cases: Path) -> None:
    motion = read_bvh(cases / "c35_mixed_channels.bvh")

    turn = np.degrees(quat.to_rotvec(in_file_axes(motion, "Leg")))
    np.testing.assert_allclose(turn, [0.0, 42.0, 0.0], atol=1e-9)


@case
def c37_a_wrong_row_count_is_told_and_the_rows_are_used(cases: Path) -> None:
    for name, rows in (("more", 3), ("less", 1)):
        motion = read_bvh(cases / f"c37_one_row_{name}.bvh")
        assert len(motion.rows) == rows
        assert any("states 2 frames" in n and f"holds {rows} row" in n for n in motion.notes)


@case
def c39_blanks_and_line_ends_do_not_matter(cases: Path) -> None:
    motion = read_bvh(cases / "c39_messy_whitespace.bvh")

    assert len(motion.rows) == 1
    np.testing.assert_allclose(euler_deg(motion, "Spine"), [1.0, 2.0, 3.0], atol=1e-9)


@case
def c42_position_channels_replace_the_offset(cases: Path) -> None:
    motion = read_bvh(cases / "c42_child_positions.bvh")

    np.testing.assert_allclose(in_file_units(motion)[0, 1], [0.0, 115.0, 0.0], atol=1e-9)


@case
def c44_a_decimal_comma_is_one_number_under_any_locale(cases: Path) -> None:
    before = locale.setlocale(locale.LC_NUMERIC)
    try:
        for name in ("C", "de_DE.UTF-8"):
            with suppress(locale.Error):  # not every machine has it
                locale.setlocale(locale.LC_NUMERIC, name)
            motion = read_bvh(cases / "c44_decimal_commas.bvh")
            np.testing.assert_allclose(in_file_units(motion)[0, 0], [0.5, 90.25, 0.0], atol=1e-9)
    finally:
        locale.setlocale(locale.LC_NUMERIC, before)


@case
def c53_the_short_way_also_for_a_flipped_sign(cases: Path) -> None:
    entry = json.loads((cases / "c53_double_cover.json").read_text())
    q0, q1 = (quat.wxyz_from_xyzw(np.array(entry[key], float)) for key in ("q0", "q1"))

    middle = quat.slerp(q0, q1, entry["t"])
    np.testing.assert_allclose(np.degrees(quat.to_rotvec(middle)), [10.5, 0.0, 0.0], atol=1e-6)

    real = bsor(cases.parent / "vr/bsor/vivepro2_knuckles.bsor").frames.rotation[2:]
    before, after = real[:-1, 1:], real[1:, 1:]
    halfway = quat.slerp(before, np.where(np.arange(len(after))[:, None, None] % 2, after, -after), 0.5)
    np.testing.assert_allclose(quat.angle(before, halfway), 0.5 * quat.angle(before, after), atol=1e-6)


@case
def c55_a_half_turn_is_halved(cases: Path) -> None:
    half = np.array([0.0, 1.0, 0.0, 0.0])

    middle = quat.slerp(quat.identity(), half, 0.5)
    assert np.linalg.norm(middle) == pytest.approx(1.0)
    np.testing.assert_allclose(np.abs(np.degrees(quat.to_rotvec(middle))), [90.0, 0.0, 0.0], atol=1e-6)


@case
def c56_straight_up_and_down_have_finite_angles(cases: Path) -> None:
    for sign in (1.0, -1.0):
        exact = quat.from_euler("yxz", np.array([np.radians(30.0), sign * np.pi / 2.0, 0.0]))
        for scale in (1.0, 1.0000002):
            rounded = (exact.astype(np.float32) * np.float32(scale)).astype(np.float64)
            angles = quat.to_euler("yxz", rounded)
            assert np.isfinite(angles).all()
            assert np.degrees(quat.angle(quat.from_euler("yxz", angles), exact)) < 0.05


@case
def c58_a_zero_quaternion_is_one_lost_sample_and_nothing_after_it(cases: Path) -> None:
    bad, good = (
        np.array(s["quat"], float)[[3, 0, 1, 2]]
        for s in json.loads((cases / "c58_zero_quat.json").read_text())
    )
    clean = read_all(open_recording(cases / "c23_nan_and_rate_drop.csv"))
    rotation, valid = clean.rotation.copy(), clean.valid.copy()
    rotation[0, 2], rotation[1, 2] = bad, good
    valid[0, 2] = True
    broken = TrackerSequence.build(clean.time_ns, clean.devices, clean.position, rotation, valid)

    calibration = calibrate(broken)
    pipeline = Pipeline(calibration)
    poses = solve_all(pipeline, broken)

    assert not quat.is_rotation(bad)
    assert np.isfinite(calibration.device_bone_position).all()
    assert quat.is_rotation(calibration.device_bone_rotation).all()
    assert np.isfinite(poses.position).all()
    assert np.isfinite(poses.rotation).all()
    hand = 2  # head, left hand, right hand: the roles' order
    assert np.isnan(poses.reach_error_m[0, hand]), "not tracked in that frame"
    assert np.isfinite(poses.reach_error_m[1:, hand]).all(), "and good afterwards"


@case
def c63_whole_chunks_stay_readable_and_a_length_takes_no_memory(cases: Path) -> None:
    for name, count, cut in (
        ("whole", 200, False),
        ("cut_60", 149, True),
        ("huge_length", 149, True),
        ("no_footer", 200, True),
    ):
        path, walk = cases / f"c63_{name}.mcap", Walk()
        tracemalloc.start()
        found = sum(walk.channels[number].topic == "/pose/head" for number, _, _ in walk_messages(path, walk))
        with pytest.raises(UnknownFormatError) as error:
            open_recording(path)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()

        assert found == count
        assert ("truncated" in str(error.value)) == cut
        assert peak < 200e6


@case
def c65_a_short_count_shifts_nothing(cases: Path) -> None:
    for name in ("short", "right"):
        recording = bsor(cases / f"c65_name_{name}_count.bsor")
        assert len(recording.frames) == 10
        assert recording.frames.valid.all()
        np.testing.assert_allclose(recording.frames.position[:, 0, 1], 1.7, atol=1e-6)
        assert recording.info.devices[0].model == "Test HMD"  # the field behind the name


@case
def c67_the_start_of_a_song_has_times_that_increase(cases: Path) -> None:
    recording = bsor(cases / "c67_start_of_file.bsor")
    frames = recording.frames

    assert recording.info.counts == {"repeated times": 5, "placeholder frames": 2}
    assert frames.valid.all(axis=1).tolist() == [False] * 2 + [True] * 14
    assert np.isfinite(frames.rotation).all()
    assert (np.diff(frames.time_ns) > 0).all()
    raw = (cases / "c67_start_of_file.bsor").read_bytes()
    last = np.frombuffer(raw, "<f4", 7, raw.index(b"\x01" + (16).to_bytes(4, "little")) + 5 + 15 * 92 + 8)
    np.testing.assert_allclose(frames.position[-1, 0], last[:3] * [1.0, 1.0, -1.0], atol=1e-6)
    wanted = quat.normalize(np.array([last[6], -last[3], -last[4], last[5]], float))
    assert quat.angle(frames.rotation[-1, 0], wanted) < 1e-3


@pytest.mark.parametrize("number", sorted(CASES))
def test_the_case_has_its_stated_outcome(shared: Path, number: str) -> None:
    CASES[number](shared / "data" / "cases")
