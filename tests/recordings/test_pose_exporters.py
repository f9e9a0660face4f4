"""Solved bodies as files: what is written is what was solved, readable by others, exact where promised."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from recordings import open_recording, read_all, read_poses
from recordings.exporters.poses import write_jsonl, write_mcap, write_npz
from vrik import quat
from vrik.body import BodyModel
from vrik.errors import NoUsableFramesError, RecordingError
from vrik.frames import ROLES, DeviceClass, PoseFrame, PoseSequence, TrackedDevice, TrackerFrame
from vrik.kinematics import forward
from vrik.skeleton import BONE, BONES, PARENTS, SMPL_FROM_VRM, SMPL_JOINTS

DEVICES = (TrackedDevice("H", DeviceClass.HMD, "head"),)
N = 20


@pytest.fixture
def poses() -> PoseSequence:
    """A body that bends and turns, a hundred metres from the origin."""
    rng = np.random.default_rng(2)
    body = BodyModel.average(1.8)
    rotation = quat.from_rotvec(rng.normal(0.0, 0.4, (N, len(BONES), 3)))
    roots = [np.array([100.0 + i, 1.0, -77.0]) for i in range(N)]
    position = np.stack([forward(body.offsets, rotation[i], roots[i]) for i in range(N)])
    return PoseSequence(
        1_000_000_007 + np.arange(N) * 11_111_111,
        position,
        rotation,
        body,
        np.full((N, len(ROLES)), 0.25),
        np.ones((N, len(ROLES)), np.int64),
    )


def bone_error(position: np.ndarray, tpose: np.ndarray) -> float:  # type: ignore[type-arg]
    """Largest change of a bone's length against the T-pose; both in the order of ``BONES``. [m]"""
    child = np.arange(1, len(BONES))
    parent = np.array([PARENTS[j] for j in child])
    now = np.linalg.norm(position[:, child] - position[:, parent], axis=-1)
    return float(abs(now - np.linalg.norm(tpose[child] - tpose[parent], axis=-1)).max())


def pairs(poses: PoseSequence) -> list[tuple[TrackerFrame, PoseFrame]]:
    made = []
    for i in range(len(poses)):
        frame = TrackerFrame(
            int(poses.time_ns[i]),
            DEVICES,
            np.full((1, 3), float(i)),
            quat.identity(1),
            np.ones(1, np.bool_),
            np.full(1, 200, np.int64),
            player_id="anna",
            space_id="hall 2",
        )
        pose = PoseFrame(
            int(poses.time_ns[i]),
            poses.position[i],
            poses.rotation[i],
            poses.rotation[i],
            poses.reach_error_m[i],
            poses.state[i],
            np.zeros(len(ROLES)),
            "anna",
            "hall 2",
        )
        made.append((frame, pose))
    return made


def test_npz_is_the_harness_estimate_in_smpl_order(poses: PoseSequence, tmp_path: Path) -> None:
    path = tmp_path / "out.body"

    write_npz(poses, path)

    assert path.exists()  # numpy would have called it out.body.npz
    with np.load(path, allow_pickle=False) as file:
        assert set(file.files) == {"t", "pos", "rot", "tpose"}
        np.testing.assert_allclose(file["t"], poses.time_ns * 1e-9, rtol=0, atol=1e-9)
        for name, bone in (("pelvis", "hips"), ("left_wrist", "leftHand"), ("right_foot", "rightToes")):
            smpl = SMPL_JOINTS.index(name)
            np.testing.assert_allclose(file["pos"][:, smpl], poses.position[:, BONE[bone]], atol=1e-9)
            np.testing.assert_allclose(file["rot"][:, smpl], poses.rotation[:, BONE[bone]], atol=1e-6)
            np.testing.assert_allclose(file["tpose"][smpl], poses.body.tpose[BONE[bone]], atol=1e-9)


def test_bones_keep_their_length_in_the_file_however_far_from_the_origin(
    poses: PoseSequence, tmp_path: Path
) -> None:
    """Large spaces are a first use; float32 loses several micrometres there."""
    back = np.argsort(SMPL_FROM_VRM)
    write_npz(poses, tmp_path / "a.npz")
    write_jsonl(poses, tmp_path / "a.jsonl")

    with np.load(tmp_path / "a.npz") as file:
        assert bone_error(file["pos"][:, back], file["tpose"][back]) < 1e-6
    header, *lines = map(json.loads, (tmp_path / "a.jsonl").read_text().splitlines())
    position = np.array([[line["joints"][name]["pos"] for name in SMPL_JOINTS] for line in lines])
    tpose = np.array([header["tpose"][name] for name in SMPL_JOINTS])
    assert bone_error(position[:, back], tpose[back]) < 1e-6


def test_jsonl_says_the_same_as_npz(poses: PoseSequence, tmp_path: Path) -> None:
    write_npz(poses, tmp_path / "a.npz")
    write_jsonl(poses, tmp_path / "a.jsonl")

    header, *lines = map(json.loads, (tmp_path / "a.jsonl").read_text(encoding="ascii").splitlines())
    assert list(header["tpose"]) == list(SMPL_JOINTS)
    with np.load(tmp_path / "a.npz") as file:
        assert [line["t"] for line in lines] == pytest.approx(file["t"], abs=1e-6)
        for key in ("pos", "rot"):
            told = np.array([[line["joints"][name][key] for name in SMPL_JOINTS] for line in lines])
            np.testing.assert_allclose(told, file[key], atol=1e-6)


def test_the_same_bodies_give_the_same_bytes(poses: PoseSequence, tmp_path: Path) -> None:
    for name, write in (("npz", write_npz), ("jsonl", write_jsonl)):
        write(poses, tmp_path / f"a.{name}")
        write(poses, tmp_path / f"b.{name}")
        assert (tmp_path / f"a.{name}").read_bytes() == (tmp_path / f"b.{name}").read_bytes()


def test_mcap_holds_the_bodies_and_what_they_came_from(poses: PoseSequence, tmp_path: Path) -> None:
    path = tmp_path / "a.mcap"

    count = write_mcap(pairs(poses), poses.body, path)

    assert count == N
    back = read_poses(path)
    np.testing.assert_array_equal(back.time_ns, poses.time_ns)
    np.testing.assert_allclose(back.position, poses.position, atol=1e-9)
    np.testing.assert_allclose(back.rotation, poses.rotation, atol=1e-6)
    np.testing.assert_allclose(back.reach_error_m, poses.reach_error_m, atol=1e-6)
    np.testing.assert_allclose(back.body.tpose, poses.body.tpose, atol=1e-9)
    assert (back.player_id, back.space_id) == ("anna", "hall 2")
    trackers = read_all(open_recording(path))
    np.testing.assert_array_equal(trackers.position[:, 0, 0], np.arange(N))
    assert trackers.devices == DEVICES


def test_no_frames_make_no_mcap(poses: PoseSequence, tmp_path: Path) -> None:
    with pytest.raises(NoUsableFramesError, match="empty"):
        write_mcap([], poses.body, tmp_path / "a.mcap")

    assert not (tmp_path / "a.mcap").exists()


def test_a_solver_that_fails_half_way_leaves_a_readable_mcap(poses: PoseSequence, tmp_path: Path) -> None:
    def half() -> object:
        yield from pairs(poses)[:7]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_mcap(half(), poses.body, tmp_path / "a.mcap")  # type: ignore[arg-type]

    assert len(read_poses(tmp_path / "a.mcap")) == 7


def test_a_place_that_cannot_be_written_is_said(poses: PoseSequence, tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match="cannot write"):
        write_mcap(pairs(poses), poses.body, tmp_path / "missing" / "a.mcap")
