"""``vrik solve``: recordings in, skeletons out, exactly as the accuracy harness and a script expect it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recordings import open_recording, read_all, read_poses
from vrik import quat
from vrik.body import BodyModel
from vrik.cli import main
from vrik.skeleton import BONE, PARENTS, SMPL_FROM_VRM, SMPL_JOINTS

SAMPLE = Path(__file__).parents[2] / "recordings" / "samples" / "session_3points.mcap"
NAMES = ("head", "left_hand", "right_hand")
RATE_HZ = 60.0
STATURE_M = 1.70
VRM_FROM_SMPL = np.argsort(SMPL_FROM_VRM)
Arrays = dict[str, Any]


def trackers(frames: int = 180, *, wave: bool = True) -> Arrays:
    """Somebody in a T-pose who, after half a second, moves the right arm down and up again.

    Devices as the accuracy harness mounts them: between the eyes, and in the fists with -Z along the fingers
    and +Y to the thumb.
    """
    tpose = BodyModel.average(STATURE_M).tpose
    scale = STATURE_M / 1.75
    grips = quat.from_matrix(
        np.array([[[0, 0, 1.0], [-1, 0, 0], [0, -1, 0]], [[0, 0, -1.0], [1, 0, 0], [0, -1, 0]]])
    )
    t = np.arange(frames) / RATE_HZ
    places, turns = np.zeros((frames, 3, 3)), quat.identity(frames, 3)
    for i, now in enumerate(t):
        angle = np.sin(2.0 * (now - 0.5)) if wave and now > 0.5 else 0.0
        down = quat.from_rotvec(np.array([0.0, 0.0, -0.9 * abs(angle)]))
        shoulder = tpose[BONE["rightUpperArm"]]
        palm = tpose[BONE["rightHand"]] + [0.09 * scale, 0.0, 0.0]
        places[i, 0] = tpose[BONE["head"]] + np.array([0.0, 0.07, -0.09]) * scale
        places[i, 1] = tpose[BONE["leftHand"]] - [0.09 * scale, 0.0, 0.0]
        places[i, 2] = shoulder + quat.rotate(down, palm - shoulder)
        turns[i, 1], turns[i, 2] = grips[0], quat.multiply(down, grips[1])
    return {
        "t": t,
        "names": np.array(NAMES),
        "pos": places.astype(np.float32),
        "rot": turns.astype(np.float32),
        "valid": np.ones((frames, 3), bool),
        "height_m": np.float32(STATURE_M),
        "calib_pos": np.repeat(places[:1], 60, 0).astype(np.float32),
        "calib_rot": np.repeat(turns[:1], 60, 0).astype(np.float32),
        "meta": np.array(json.dumps({"format": "vr-trackers-1", "rate": RATE_HZ, "calib": "tpose"})),
    }


def save_jsonl(path: Path, arrays: Arrays) -> None:
    """The harness's other format, as its ``trackers.py`` writes it."""

    def pose(place: Any, turn: Any) -> Arrays:
        return {
            "pos": np.round(place.astype(float), 6).tolist(),
            "rot": np.round(turn.astype(float), 6).tolist(),
        }

    names = [str(name) for name in arrays["names"]]
    tpose = {
        n: pose(np.median(arrays["calib_pos"][:, k], 0), arrays["calib_rot"][0, k])
        for k, n in enumerate(names)
    }
    header = {
        "header": json.loads(str(arrays["meta"])),
        "devices": names,
        "height_m": float(arrays["height_m"]),
        "calibration_tpose": tpose,
    }
    lines = [json.dumps(header)]
    for i, t in enumerate(arrays["t"]):
        devices = {
            name: {"valid": True, **pose(arrays["pos"][i, k], arrays["rot"][i, k])}
            if arrays["valid"][i, k]
            else {"valid": False}
            for k, name in enumerate(names)
        }
        lines.append(json.dumps({"t": round(float(t), 6), "devices": devices}))
    path.write_text("\n".join(lines) + "\n")


def load(path: Path) -> Arrays:
    with np.load(path, allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


def bone_error_m(estimate: Arrays) -> float:
    """Largest difference of a bone's length from the one in the T-pose. [m]"""
    child = np.arange(1, len(PARENTS))
    parent = np.array(PARENTS)[child]
    pos, tpose = estimate["pos"][:, VRM_FROM_SMPL], estimate["tpose"][VRM_FROM_SMPL]
    lengths = np.linalg.norm(pos[:, child] - pos[:, parent], axis=-1)
    return float(abs(lengths - np.linalg.norm(tpose[child] - tpose[parent], axis=-1)).max())


@pytest.fixture(scope="module", autouse=True)
def warm_cache() -> None:
    """Compiled before anything is said about it."""
    from vrik.cli import console

    console.warm_up()


@pytest.fixture
def solve(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., Arrays]:
    """``solve(arrays, *flags)``: the estimate of a trackers file, from the command."""
    count = 0

    def run(arrays: Arrays, *flags: str) -> Arrays:
        nonlocal count
        count += 1
        source, target = tmp_path / f"in{count}.npz", tmp_path / f"out{count}.npz"
        np.savez_compressed(source, **arrays)
        code = main(["solve", str(source), "-o", str(target), *flags])
        assert code == 0, capsys.readouterr().err
        return load(target)

    return run


def same(a: Arrays, b: Arrays) -> bool:
    return all(np.array_equal(a[name], b[name]) for name in ("t", "pos", "rot", "tpose"))


# ---- the contract


def test_the_estimate_has_the_shapes_times_and_order_of_the_harness(solve: Callable[..., Arrays]) -> None:
    arrays = trackers()

    estimate = solve(arrays)

    n = len(arrays["t"])
    np.testing.assert_allclose(estimate["t"], arrays["t"], rtol=0, atol=1e-6)
    assert (estimate["pos"].shape, estimate["rot"].shape) == ((n, 22, 3), (n, 22, 4))
    assert estimate["tpose"].shape == (22, 3)
    assert all(np.isfinite(estimate[name]).all() for name in ("pos", "rot", "tpose"))
    np.testing.assert_allclose(np.linalg.norm(estimate["rot"], axis=-1), 1.0, atol=1e-6)
    assert bone_error_m(estimate) < 1e-6
    heights = dict(zip(SMPL_JOINTS, estimate["tpose"][:, 1], strict=True))
    assert heights["head"] > heights["neck"] > heights["pelvis"] > heights["left_knee"] > heights["left_foot"]
    assert estimate["tpose"][SMPL_JOINTS.index("left_wrist"), 0] < -0.5


def test_hands_and_head_are_met_to_a_millimetre(solve: Callable[..., Arrays]) -> None:
    arrays = trackers()

    estimate = solve(arrays)

    palms = {"left_wrist": (1, -0.09), "right_wrist": (2, 0.09)}
    for joint, (column, away) in palms.items():
        j = SMPL_JOINTS.index(joint)
        offset = np.array([away * STATURE_M / 1.75, 0.0, 0.0])
        palm = estimate["pos"][:, j] + quat.rotate(estimate["rot"][:, j].astype(float), offset)
        assert np.linalg.norm(palm - arrays["pos"][:, column], axis=-1).max() < 1e-3


def test_a_t_pose_in_leaves_what_is_tracked_unturned(solve: Callable[..., Arrays]) -> None:
    """Head and hands to a degree; the bones between them are guessed and stay near the T-pose."""
    estimate = solve(trackers(90, wave=False))

    turned = np.degrees(2.0 * np.arccos(np.clip(abs(estimate["rot"][..., 0].astype(float)), 0.0, 1.0)))
    tracked = [SMPL_JOINTS.index(name) for name in ("head", "left_wrist", "right_wrist")]
    assert turned[:, tracked].max() < 1.0
    assert turned.max() < 8.0
    assert abs(estimate["pos"] - estimate["tpose"])[:, tracked].max() < 1e-3
    assert abs(estimate["pos"] - estimate["tpose"]).max() < 0.02


def test_jsonl_in_and_out_says_the_same_as_npz(solve: Callable[..., Arrays], tmp_path: Path) -> None:
    arrays = trackers(60)
    save_jsonl(tmp_path / "in.jsonl", arrays)

    assert main(["solve", str(tmp_path / "in.jsonl"), "-o", str(tmp_path / "out.jsonl")]) == 0

    estimate = solve(arrays)
    header, *lines = map(json.loads, (tmp_path / "out.jsonl").read_text().splitlines())
    assert list(header["tpose"]) == list(SMPL_JOINTS)
    pos = np.array([[line["joints"][name]["pos"] for name in SMPL_JOINTS] for line in lines])
    np.testing.assert_allclose(
        pos, estimate["pos"], atol=2e-3
    )  # the input is rounded, and stature is measured anew
    assert [line["t"] for line in lines] == pytest.approx(arrays["t"], abs=1e-6)


@pytest.mark.parametrize("k", [1, 30, 150])
def test_no_frame_depends_on_a_later_one(solve: Callable[..., Arrays], k: int) -> None:
    arrays = trackers()
    arrays["valid"][60:80, 1] = False
    cut = {name: a[:k] if name in ("t", "pos", "rot", "valid") else a for name, a in arrays.items()}

    whole, part = solve(arrays), solve(cut)

    for name in ("t", "pos", "rot"):
        np.testing.assert_array_equal(whole[name][:k], part[name])


def test_a_recording_measured_on_its_start_depends_on_no_later_frame(tmp_path: Path) -> None:
    """Native recordings are measured as a whole unless ``--calibrate-on`` says how much of them."""
    frames = read_all(open_recording(SAMPLE))
    from recordings import RecordingWriter

    n = int(np.searchsorted(frames.time_ns, frames.time_ns[0] + 6_000_000_000))
    for name, count in (("long", n), ("short", n - 200)):
        with RecordingWriter(tmp_path / f"{name}.mcap", frames.devices) as writer:
            for frame in frames.part(slice(0, count)):
                writer.write(frame)
        args = ["solve", str(tmp_path / f"{name}.mcap"), "-o", str(tmp_path / f"{name}.npz")]
        assert main([*args, "--calibrate-on", "3"]) == 0

    long, short = load(tmp_path / "long.npz"), load(tmp_path / "short.npz")
    assert len(long["t"]) == len(short["t"]) + 200
    for name in ("t", "pos", "rot"):
        np.testing.assert_array_equal(long[name][: len(short["t"])], short[name])
    np.testing.assert_array_equal(long["tpose"], short["tpose"])


@pytest.mark.parametrize("kind", ["npz", "jsonl", "mcap"])
def test_the_same_recording_gives_the_same_bytes(tmp_path: Path, kind: str) -> None:
    np.savez(tmp_path / "in.npz", **trackers(60))

    for name in ("a", "b"):
        assert main(["solve", str(tmp_path / "in.npz"), "-o", str(tmp_path / f"{name}.{kind}")]) == 0

    assert (tmp_path / f"a.{kind}").read_bytes() == (tmp_path / f"b.{kind}").read_bytes()


def test_mcap_out_is_a_recording_with_bodies(solve: Callable[..., Arrays], tmp_path: Path) -> None:
    arrays = trackers(60)
    np.savez(tmp_path / "in.npz", **arrays)

    assert main(["solve", str(tmp_path / "in.npz"), "-o", str(tmp_path / "out.mcap")]) == 0

    poses, estimate = read_poses(tmp_path / "out.mcap"), solve(arrays)
    np.testing.assert_allclose(poses.position[:, SMPL_FROM_VRM], estimate["pos"], atol=1e-6)
    assert main(["inspect", str(tmp_path / "out.mcap")]) == 0
    again = tmp_path / "again.mcap"
    assert main(["solve", str(tmp_path / "out.mcap"), "-o", str(again)]) == 0
    assert len(read_poses(again)) == 60


# ---- what the flags do


def test_several_recordings_go_into_a_folder(tmp_path: Path) -> None:
    for name in ("one", "two ü"):
        np.savez(tmp_path / f"{name}.npz", **trackers(20))
    folder = tmp_path / "made" / "here"
    files = [str(tmp_path / "one.npz"), str(tmp_path / "two ü.npz")]

    code = main(["solve", *files, "-o", str(folder), "--format", "jsonl"])

    assert code == 0
    assert sorted(path.name for path in folder.iterdir()) == ["one.jsonl", "two ü.jsonl"]


def test_the_height_the_user_states_is_the_bodys(solve: Callable[..., Arrays]) -> None:
    arrays = trackers(60)

    heads = [
        solve(arrays, *flags)["tpose"][SMPL_JOINTS.index("head"), 1] for flags in ([], ["--height", "1.9"])
    ]

    assert heads[1] / heads[0] == pytest.approx(1.9 / STATURE_M, abs=0.01)


def test_a_role_given_by_the_user_counts_and_an_empty_one_leaves_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Flags that can be repeated take one value each, so the file may stand behind them."""
    target = str(tmp_path / "out.npz")
    flags = ["--role", "VRIK-CTL-0002=right_hand", "--role", "VRIK-CTL-0003="]

    code = main(["solve", *flags, str(SAMPLE), "-o", target, "--json"])

    report = json.loads(capsys.readouterr().out)
    assert code == 0
    assert report["roles"] == {"VRIK-HMD-0001": "head", "VRIK-CTL-0002": "right_hand"}


def test_the_space_is_turned_and_moved_into_the_venue(solve: Callable[..., Arrays]) -> None:
    arrays = trackers(60)

    plain = solve(arrays)
    moved = solve(arrays, "--space.yaw-deg", "90", "--space.x-m", "-10", "--space.z-m", "2.5")

    x, y, z = np.moveaxis(plain["pos"], -1, 0)  # a turn to the left takes -Z (ahead) to -X
    np.testing.assert_allclose(moved["pos"], np.stack([z - 10.0, y, -x + 2.5], -1), atol=1e-3)


def test_json_is_one_document_about_what_was_done(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.savez(tmp_path / "in.npz", **trackers(60))
    args = ["solve", str(tmp_path / "in.npz"), "-o", str(tmp_path / "out.npz"), "--json"]

    assert main(args) == 0

    report = json.loads(capsys.readouterr().out)
    assert report["frames"] == 60
    assert report["target"] == str(tmp_path / "out.npz")
    assert report["stature_m"] == pytest.approx(STATURE_M, abs=1e-3)
    assert sorted(report["roles"].values()) == sorted(NAMES)
    assert set(report["reach_error_mm"]) == set(NAMES)
    assert all(0.0 <= error["mean"] <= error["worst"] < 1.0 for error in report["reach_error_mm"].values())


def test_the_text_names_the_file_the_body_and_the_distances(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.savez(tmp_path / "in.npz", **trackers(60))

    assert main(["solve", str(tmp_path / "in.npz"), "-o", str(tmp_path / "out.npz")]) == 0

    said = capsys.readouterr().out
    assert f"{tmp_path / 'out.npz'}: 60 frames of {tmp_path / 'in.npz'}" in said
    assert "1.70 m" in said
    assert "left_hand: " in said


# ---- what goes wrong


def test_a_failure_leaves_an_older_result_and_no_scraps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    np.savez(tmp_path / "in.npz", **trackers(10))
    (tmp_path / "out.npz").write_bytes(b"older")

    def full_disk(poses: object, path: Path) -> None:
        path.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("recordings.exporters.poses.write_npz", full_disk)
    code = main(["solve", str(tmp_path / "in.npz"), "-o", str(tmp_path / "out.npz")])

    assert code == 1
    assert "No space left" in capsys.readouterr().err
    assert (tmp_path / "out.npz").read_bytes() == b"older"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.npz", "out.npz"]


def test_the_good_recordings_before_a_bad_one_are_solved_and_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.savez(tmp_path / "good.npz", **trackers(10))
    (tmp_path / "bad.npz").write_bytes(b"PK")
    files = [str(tmp_path / "good.npz"), str(tmp_path / "bad.npz")]

    code = main(["solve", *files, "-o", str(tmp_path / "out"), "--format", "npz"])

    streams = capsys.readouterr()
    assert code == 1
    assert "good.npz: 10 frames" in streams.out
    assert streams.err.count("\n") == 1
    assert "bad.npz" in streams.err


@pytest.mark.parametrize("kind", ["npz", "jsonl", "mcap"])
def test_a_recording_without_frames_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    arrays = trackers(10)
    arrays |= {name: arrays[name][:0] for name in ("t", "pos", "rot", "valid")}
    np.savez(tmp_path / "in.npz", **arrays)

    code = main(["solve", str(tmp_path / "in.npz"), "-o", str(tmp_path / f"out.{kind}")])

    streams = capsys.readouterr()
    assert (code, streams.out) == (1, "")
    assert streams.err.startswith("vrik: ")
    assert "bug" not in streams.err
    assert not (tmp_path / f"out.{kind}").exists()


# ---- real data


NO_BODY = ("all_zero.csv", "quest2_traj1.txt", "right_arm_shoulder_local.csv", "openvr_gamepads.json")
"""Nothing tracked, a head alone, and two without a head."""

NO_RECORDING = ("README.md", "MANIFEST.json")


def test_real_recordings_solve_to_finite_bodies_with_bones_of_constant_length(
    shared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every recording with a head and at least one hand in it."""
    files = [path for path in sorted((shared / "data" / "vr").rglob("*")) if path.is_file()]
    files = [path for path in files if path.name not in NO_BODY + NO_RECORDING]
    assert len(files) >= 20

    for path in files:
        assert main(["solve", str(path), "-o", str(tmp_path / "out.npz")]) == 0, capsys.readouterr().err
        estimate = load(tmp_path / "out.npz")
        assert np.isfinite(estimate["pos"]).all(), path.name
        assert np.isfinite(estimate["rot"]).all(), path.name
        assert bone_error_m(estimate) < 1e-6, path.name
        assert len(estimate["t"]) > 100


def test_files_that_hold_no_body_are_one_sentence(
    shared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    others = [path for path in (shared / "data" / "vr").rglob("*") if path.name in NO_BODY + NO_RECORDING]
    assert len(others) == len(NO_BODY + NO_RECORDING)

    for path in others:
        code = main(["solve", str(path), "-o", str(tmp_path / "out.npz")])
        streams = capsys.readouterr()
        assert (code, streams.out) == (1, ""), path
        assert streams.err.startswith("vrik: "), path
        assert streams.err.count("\n") == 1, path
        assert "bug" not in streams.err, path
    assert not (tmp_path / "out.npz").exists()


def test_three_points_beat_the_analytic_baseline_of_the_harness(shared: Path, tmp_path: Path) -> None:
    """On three clips, through the harness's own command; its hands must be met to a centimetre."""
    clips = tmp_path / "clips"
    clips.mkdir()
    for name in ("cmu_02_01", "cmu_127_04", "hdm05_dg_lieDownFloor_011"):
        shutil.copy(shared / "data" / "mocap" / "dev" / f"{name}.npz", clips)
    evaluate = [
        sys.executable,
        str(shared / "bench" / "accuracy" / "evaluate.py"),
        str(clips),
        "--points",
        "3",
    ]
    ways = {
        "ours": ["--cmd", f"{sys.executable} -m vrik solve {{inp}} -o {{out}}"],
        "analytic": ["--baseline", "analytic"],
    }

    score = {}
    for name, way in ways.items():
        done = subprocess.run(
            [*evaluate, *way, "--json", str(tmp_path / f"{name}.json")],
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        score[name] = json.loads((tmp_path / f"{name}.json").read_text())["aggregate"]

    assert score["ours"]["MPJPE"] < score["analytic"]["MPJPE"]
    assert score["ours"]["HandPE"] < 1.0
    assert score["ours"]["HeadPE"] < 1.0
