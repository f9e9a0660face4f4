"""Any table with a mapping file: the documented example, all axes and orders, any locale, any cut."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recordings import open_recording, read_all
from recordings.csv_mapping import AXES, LENGTHS_M, ORDERS, TIMES_S
from vrik import quat
from vrik.errors import DamagedRecordingError, RecordingError, UnknownFormatError, UsageError, VrikError
from vrik.frames import DeviceClass, TrackerSequence, TrackingResult

DOC = Path(__file__).parents[2] / "docs" / "generic-csv.md"
NAMES = ["t", "hx", "hy", "hz", "hqx", "hqy", "hqz", "hqw", "a", "b", "c", "e1", "e2", "e3", "note"]
MAP = """
axes = "openvr"
euler_order = "zyx"
[time]
column = "t"
[[device]]
name = "hmd"
role = "head"
position = ["hx", "hy", "hz"]
quaternion = ["hqx", "hqy", "hqz", "hqw"]
[[device]]
name = "puck"
position = ["a", "b", "c"]
euler = ["e1", "e2", "e3"]
"""


def row(i: int) -> dict[str, str]:
    values = (
        i / 64,
        0.25,
        1.5 + i / 128,
        -0.5,
        0.0,
        0.6,
        0.0,
        0.8,
        -0.25,
        1.0,
        i / 8,
        30.0,
        20.0,
        400.0,
        7.0,
    )
    return dict(zip(NAMES, map(str, values), strict=True))


def table(rows: list[dict[str, str]], names: list[str] = NAMES, separator: str = ",", end: str = "\n") -> str:
    return "".join(separator.join(cells) + end for cells in [names, *([r[n] for n in names] for r in rows)])


def write(folder: Path, text: str, mapping: str = MAP, name: str = "a.csv", encoding: str = "utf-8") -> Path:
    path = folder / name
    path.write_bytes(text.encode(encoding))
    (folder / f"{name}.toml").write_text(mapping, encoding="utf-8")
    return path


def opened(path: Path) -> TrackerSequence | str:
    """The frames, or the sentence that says why there are none."""
    try:
        return read_all(open_recording(path))
    except VrikError as error:
        return str(error)


def blocks_of(kind: str) -> list[str]:
    """The fenced blocks of a kind on the page; "" is what is printed."""
    page = DOC.read_text(encoding="utf-8")
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    return [text for stated, text in fenced if stated == kind]


def test_the_documented_example_prints_what_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "walk.csv").write_text(blocks_of("csv")[0], encoding="utf-8")
    (tmp_path / "walk.csv.toml").write_text(blocks_of("toml")[0], encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    printed = io.StringIO()

    with redirect_stdout(printed):
        exec(compile(blocks_of("python")[0], "docs/generic-csv.md", "exec"), {})
    info = open_recording(tmp_path / "walk.csv").info

    assert printed.getvalue() == blocks_of("")[0]
    assert info.counts == {"samples not tracked": 1, "blank samples": 1, "blank cells": 7}
    assert any("walk.csv.toml" in note for note in info.notes)


def test_the_documented_error_is_what_is_said(tmp_path: Path) -> None:
    (tmp_path / "walk.csv").write_text(blocks_of("csv")[0], encoding="utf-8")
    wrong = blocks_of("toml")[0].replace('"head_x"', '"head_X"')
    (tmp_path / "walk.csv.toml").write_text(wrong, encoding="utf-8")

    said = opened(tmp_path / "walk.csv")

    assert isinstance(said, str)
    assert f"vrik: {said}".startswith(blocks_of("")[1].rstrip(" .\n"))


def test_the_page_names_every_choice() -> None:
    page = DOC.read_text(encoding="utf-8")

    for word in (*AXES, *LENGTHS_M, *TIMES_S):
        assert f'"{word}"' in page


def test_a_table_becomes_poses(tmp_path: Path) -> None:
    recording = open_recording(write(tmp_path, table([row(i) for i in range(5)])))
    frames = read_all(recording)
    turns = [quat.from_rotvec(np.radians(a) * np.eye(3)[i]) for a, i in ((30.0, 2), (20.0, 1), (40.0, 0))]

    assert recording.info.format == "generic-csv"
    assert [d.device_class for d in frames.devices] == [DeviceClass.HMD, DeviceClass.GENERIC_TRACKER]
    assert [d.role for d in frames.devices] == ["head", ""]
    assert frames.valid.all()
    np.testing.assert_array_equal(np.diff(frames.time_ns), 15_625_000)
    np.testing.assert_array_equal(frames.position[2], [[0.25, 1.515625, -0.5], [-0.25, 1.0, 0.25]])
    np.testing.assert_allclose(frames.rotation[2, 0], [0.8, 0.0, 0.6, 0.0])
    expected = quat.multiply(turns[0], quat.multiply(turns[1], turns[2]))
    assert quat.angle(frames.rotation[2, 1], expected) < 1e-9


@pytest.mark.parametrize("axes", [*AXES, "explicit"])
def test_forward_right_and_up_stay_so_in_every_convention(tmp_path: Path, axes: str) -> None:
    """A person at (right 1, up 2, forward 3) who turns 90 degrees to the right looks to the right."""
    right, up, forward = AXES.get(axes, ("-z", "x", "-y"))
    stated = f'axes = "{axes}"'
    if axes == "explicit":
        stated = f'axes = {{right = "{right}", up = "{up}", forward = "{forward}"}}'

    def vector(word: str) -> np.ndarray:
        return np.eye(3)["xyz".index(word[-1])] * (-1.0 if word.startswith("-") else 1.0)

    basis = np.stack([vector(right), vector(up), -vector(forward)], axis=1)  # file from OpenVR
    turn = quat.to_matrix(quat.from_rotvec(np.array([0.0, -np.pi / 2.0, 0.0])))
    x, y, z = basis @ np.array([1.0, 2.0, -3.0])
    w, i, j, k = quat.from_matrix(basis @ turn @ basis.T)
    cells = [
        row(n) | dict(zip(NAMES[1:8], map(repr, map(float, (x, y, z, i, j, k, w))), strict=True))
        for n in (0, 1)
    ]

    frames = read_all(open_recording(write(tmp_path, table(cells), MAP.replace('axes = "openvr"', stated))))

    np.testing.assert_allclose(frames.position[0, 0], [1.0, 2.0, -3.0])
    looks = quat.rotate(frames.rotation[0, 0], np.array([0.0, 0.0, -1.0]))
    np.testing.assert_allclose(looks, [1.0, 0.0, 0.0], atol=1e-9)
    top = quat.rotate(frames.rotation[0, 0], np.array([0.0, 1.0, 0.0]))
    np.testing.assert_allclose(top, [0.0, 1.0, 0.0], atol=1e-9)


@pytest.mark.parametrize("order", ORDERS)
def test_euler_columns_and_turns_have_the_stated_order(tmp_path: Path, order: str) -> None:
    mapping = MAP.replace('"zyx"', f'"{order}"').replace('axes = "openvr"', 'axes = "openvr"\nangle = "rad"')
    cells = [row(i) | {"e1": "0.3", "e2": "0.7", "e3": "-1.1"} for i in range(2)]

    frames = read_all(open_recording(write(tmp_path, table(cells), mapping)))

    assert quat.angle(frames.rotation[0, 1], quat.from_euler(order, np.array([0.3, 0.7, -1.1]))) < 1e-9


@pytest.mark.parametrize(("unit", "size"), LENGTHS_M.items())
def test_lengths_have_their_unit(tmp_path: Path, unit: str, size: float) -> None:
    frames = read_all(open_recording(write(tmp_path, table([row(0)]), f'unit = "{unit}"\n{MAP}')))

    np.testing.assert_allclose(frames.position[0, 0], np.array([0.25, 1.5, -0.5]) * size)


@pytest.mark.parametrize(("unit", "size"), TIMES_S.items())
def test_times_have_their_unit(tmp_path: Path, unit: str, size: float) -> None:
    mapping = MAP.replace('column = "t"', f'column = "t"\nunit = "{unit}"')
    cells = [row(i) | {"t": str(1000 * i)} for i in range(3)]

    frames = read_all(open_recording(write(tmp_path, table(cells), mapping)))

    np.testing.assert_allclose(frames.time_ns, [0, 1000e9 * size, 2000e9 * size])


def test_a_wall_clock_starts_at_zero_and_is_told(tmp_path: Path) -> None:
    cells = [row(i) | {"t": str(1_700_000_000 + i)} for i in range(3)]

    recording = open_recording(write(tmp_path, table(cells)))

    assert read_all(recording).time_ns.tolist() == [0, 1_000_000_000, 2_000_000_000]
    assert any("long ago" in note for note in recording.info.notes)


def test_a_table_without_times_has_its_stated_rate(tmp_path: Path) -> None:
    mapping = MAP.replace('column = "t"', "rate_hz = 50")

    frames = read_all(open_recording(write(tmp_path, table([row(i) for i in range(3)]), mapping)))

    assert frames.time_ns.tolist() == [0, 20_000_000, 40_000_000]


def test_columns_may_be_numbers_and_lines_may_be_passed_over(tmp_path: Path) -> None:
    mapping = MAP
    for i, name in enumerate(NAMES[:-1]):
        mapping = mapping.replace(f'"{name}"', str(i + 1))
    text = "made by my logger\n\n" + table([row(i) for i in range(3)]).split("\n", 1)[1]

    path = write(tmp_path, text, f"skip_rows = 2\nheader = false\n{mapping}")
    frames = read_all(open_recording(path))

    assert len(frames) == 3
    assert frames.position[0, 0].tolist() == [0.25, 1.5, -0.5]


def test_a_device_that_only_turns_is_kept_and_not_valid(tmp_path: Path) -> None:
    mapping = MAP.replace('position = ["a", "b", "c"]\n', "")

    frames = read_all(open_recording(write(tmp_path, table([row(i) for i in range(3)]), mapping)))

    assert frames.valid.tolist() == 3 * [[True, False]]
    assert (frames.result[:, 1] == TrackingResult.FALLBACK_ROTATION_ONLY).all()
    assert np.isnan(frames.position[:, 1]).all()
    assert quat.angle(frames.rotation[0, 1], quat.identity()) > 0.5


@pytest.mark.parametrize("word", ["0", "false", "False", "FALSE", "", "nan"])
def test_a_sample_that_is_stated_not_tracked_is_not_valid(tmp_path: Path, word: str) -> None:
    mapping = MAP.replace('role = "head"', 'role = "head"\nvalid = "note"')
    yes = "True" if word.lower() == "false" else "1"
    cells = [row(i) | {"note": word if i == 1 else yes} for i in range(3)]

    frames = read_all(open_recording(write(tmp_path, table(cells), mapping)))

    assert frames.valid[:, 0].tolist() == [True, False, True]
    assert frames.valid[:, 1].all()


@pytest.mark.parametrize("cell", ["", "  ", "NA", "lost", "inf", "nan", "1_0", "--"])
def test_a_cell_without_a_number_takes_out_only_its_sample(tmp_path: Path, cell: str) -> None:
    cells = [row(i) | ({"b": cell} if i == 1 else {}) for i in range(3)]

    recording = open_recording(write(tmp_path, table(cells), 'missing = ["NA"]\n' + MAP))
    frames = read_all(recording)

    assert frames.valid.tolist() == [[True, True], [True, False], [True, True]]
    assert recording.info.counts.get("unreadable cells", 0) == (cell in ("lost", "1_0", "--"))
    assert recording.info.counts.get("blank cells", 0) == (cell.strip() in ("", "NA"))


def test_words_in_columns_that_are_not_asked_for_do_not_matter(tmp_path: Path) -> None:
    recording = open_recording(
        write(tmp_path, table([row(i) | {"note": "hello, 1"} for i in range(3)], separator=";"))
    )

    assert read_all(recording).valid.all()
    assert "unreadable cells" not in recording.info.counts


def test_signs_go_on_from_block_to_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each row flips the sign; with one or two rows a block the stream must still be continuous."""
    monkeypatch.setattr("recordings.csv_table.BLOCK_CHARS", 150)
    cells = []
    for i in range(12):
        s = -1.0 if i % 2 else 1.0
        cells.append(row(i) | {"hqy": str(0.6 * s), "hqw": str(0.8 * s)} | ({"hx": "lost"} if i == 5 else {}))

    recording = open_recording(write(tmp_path, table(cells)))
    frames = read_all(recording)

    assert len(list(recording.blocks())) > 5
    assert (frames.rotation[frames.valid[:, 0], 0, 0] > 0.7).all()
    np.testing.assert_array_equal(frames.time_ns, np.arange(12) * 15_625_000)
    # Eleven steps between rows, less those into and out of row 5, over which the signs stay.
    assert recording.info.counts["sign flips"] == 9


@settings(max_examples=60, deadline=None)
@given(
    order=st.permutations(NAMES),
    locale=st.sampled_from(
        [(",", "."), (";", "."), (";", ","), ("\t", "."), ("\t", ","), ("|", "."), (" ", ".")]
    ),
    end=st.sampled_from(["\n", "\r\n", "\r"]),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]),
    quoted=st.booleans(),
    trailing=st.booleans(),
)
def test_any_column_order_and_any_locale_give_the_same_poses(
    tmp_path_factory: pytest.TempPathFactory,
    order: list[str],
    locale: tuple[str, str],
    end: str,
    encoding: str,
    quoted: bool,
    trailing: bool,
) -> None:
    separator, point = locale
    folder = tmp_path_factory.mktemp("locale")
    rows = [row(i) for i in range(4)]
    plain = read_all(open_recording(write(folder, table(rows), name="plain.csv")))
    local = [{k: v.replace(".", point) for k, v in r.items()} for r in rows]
    if quoted:
        local = [{k: f'"{v}"' for k, v in r.items()} for r in local]
    text = table(local, order, separator, (separator if trailing and separator != " " else "") + end)

    frames = read_all(open_recording(write(folder, text, encoding=encoding)))

    np.testing.assert_array_equal(frames.position, plain.position)
    np.testing.assert_array_equal(frames.rotation, plain.rotation)
    np.testing.assert_array_equal(frames.time_ns, plain.time_ns)


def test_quoted_decimal_commas_between_commas_are_read(tmp_path: Path) -> None:
    rows = [row(i) for i in range(3)]
    plain = read_all(open_recording(write(tmp_path, table(rows), name="plain.csv")))
    quoted = [{k: f'"{v.replace(".", ",")}"' for k, v in r.items()} for r in rows]

    recording = open_recording(write(tmp_path, table(quoted)))

    np.testing.assert_array_equal(read_all(recording).position, plain.position)
    assert any("decimal commas" in note for note in recording.info.notes)


def test_bare_decimal_commas_between_commas_are_refused_with_what_to_do(tmp_path: Path) -> None:
    path = write(tmp_path, table([{k: v.replace(".", ",") for k, v in row(i).items()} for i in range(3)]))

    with pytest.raises(RecordingError, match=r"decimal commas.*semicolons"):
        open_recording(path)


@settings(max_examples=60, deadline=None)
@given(share=st.floats(0.0, 1.0))
def test_a_cut_anywhere_gives_a_prefix_or_a_sentence(
    tmp_path_factory: pytest.TempPathFactory, share: float
) -> None:
    path = write(tmp_path_factory.mktemp("cut"), table([row(i) for i in range(6)]))
    whole = read_all(open_recording(path))
    data = path.read_bytes()
    path.write_bytes(data[: int(share * len(data))])

    frames = opened(path)

    if isinstance(frames, str):
        assert "\n" not in frames
        return
    np.testing.assert_array_equal(frames.position, whole.position[: len(frames)])
    np.testing.assert_array_equal(frames.rotation, whole.rotation[: len(frames)])
    np.testing.assert_array_equal(frames.time_ns, whole.time_ns[: len(frames)])


@settings(max_examples=60, deadline=None)
@given(at=st.integers(0, 500), value=st.binary(min_size=1, max_size=6))
def test_damage_anywhere_gives_frames_or_a_sentence(
    tmp_path_factory: pytest.TempPathFactory, at: int, value: bytes
) -> None:
    path = write(tmp_path_factory.mktemp("hurt"), table([row(i) for i in range(4)]))
    data = bytearray(path.read_bytes())
    data[at : at + len(value)] = value
    path.write_bytes(bytes(data))

    frames = opened(path)

    if isinstance(frames, str):
        assert "\n" not in frames
        return
    assert np.isfinite(frames.position[frames.valid]).all()
    assert quat.is_rotation(frames.rotation).all()
    assert (np.diff(frames.time_ns) >= 0).all()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda m: "colour = 1\n" + m, "'colour'.*unknown.*separator"),
        (lambda m: m + 'size = "big"\n', "'size' in the device 'puck' is unknown"),
        (lambda m: m.replace('axes = "openvr"\n', ""), "axes is None; expected one of openvr, unity"),
        (lambda m: m.replace('"openvr"', '"blender"'), "axes is 'blender'"),
        (lambda m: m.replace('"openvr"', '{right = "x", up = "x", forward = "y"}'), "one axis twice"),
        (lambda m: m.replace('euler_order = "zyx"\n', ""), "need euler_order"),
        (lambda m: m.replace('"zyx"', '"zyz"'), "euler_order is 'zyz'"),
        (lambda m: m + 'quaternion = ["hqx", "hqy", "hqz", "hqw"]\n', "both quaternion and euler"),
        (lambda m: m.replace('euler = ["e1", "e2", "e3"]\n', ""), "neither quaternion nor euler"),
        (lambda m: m.replace('["e1", "e2", "e3"]', '["e1", "e2"]'), "expected 3 column names"),
        (lambda m: m.replace('["a", "b", "c"]', '["a", "b", 0]'), "expected 3 column names"),
        (lambda m: m.replace('role = "head"', 'role = "nose"'), "role is 'nose'; expected one of 'head'"),
        (lambda m: m.replace('"puck"', '"hmd"'), "two devices have the name 'hmd'"),
        (lambda m: m + 'role = "head"\n', "two devices have the role 'head'"),
        (lambda m: m.replace('column = "t"', ""), "either column and its unit, or rate_hz"),
        (lambda m: m.replace('column = "t"', "rate_hz = -5"), "rate_hz is -5"),
        (lambda m: m.replace("[time]", "[clock]"), "'clock' at its top is unknown"),
        (lambda m: 'unit = "yards"\n' + m, "unit is 'yards'; expected one of 'm', 'cm'"),
        (lambda m: "skip_rows = -1\n" + m, "skip_rows is -1"),
        (lambda m: 'missing = "NA"\n' + m, "missing must be a list"),
        (lambda m: m[: m.index("[[")], "names no device"),
        (lambda m: m + "this is no TOML", "is no TOML"),
    ],
)
def test_a_mapping_that_does_not_work_is_one_sentence(
    tmp_path: Path, change: Callable[[str], str], says: str
) -> None:
    path = write(tmp_path, table([row(0)]), change(MAP))

    with pytest.raises(UsageError, match=says) as caught:
        open_recording(path)

    assert "a.csv.toml" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_columns_that_are_not_there_are_named_with_those_that_are(tmp_path: Path) -> None:
    missing = write(tmp_path, table([row(0)]), MAP.replace('"hqw"', '"hw"'))
    beyond = write(tmp_path, table([row(0)]), MAP.replace('"hqw"', "99"), "b.csv")
    twice = write(tmp_path, table([row(0)], [*NAMES, "hx"]), MAP, "c.csv")

    with pytest.raises(RecordingError, match=r"no column 'hw'.*it has t, hx, hy"):
        open_recording(missing)
    with pytest.raises(RecordingError, match=r"has 15 columns; b\.csv\.toml asks for column 99"):
        open_recording(beyond)
    with pytest.raises(RecordingError, match="2 columns 'hx'"):
        open_recording(twice)


def test_times_that_are_dates_are_one_sentence(tmp_path: Path) -> None:
    path = write(tmp_path, table([row(i) | {"t": "2024-05-01 10:00:00"} for i in range(3)]))

    with pytest.raises(RecordingError, match=r"no number in its time column 't'.*rate_hz"):
        open_recording(path)


def test_a_table_without_a_whole_row_is_damaged(tmp_path: Path) -> None:
    with pytest.raises(DamagedRecordingError, match="no complete row"):
        open_recording(write(tmp_path, table([]) + "0.5,1"))
    with pytest.raises(DamagedRecordingError, match="ends before its first row"):
        open_recording(write(tmp_path, table([])[:-1], name="b.csv"))


def test_a_table_without_a_mapping_says_that_it_needs_one(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(table([row(0)]))

    with pytest.raises(UnknownFormatError, match=r"a\.csv\.toml beside it.*docs/generic-csv\.md"):
        open_recording(path)


def test_the_nearest_mapping_is_used(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(table([row(0)]))
    formats = []
    for name, unit in (
        ("vrik-columns.toml", "m"),
        ("a.toml", "cm"),
        ("a.csv.toml", "mm"),
        ("other.toml", "ft"),
    ):
        (tmp_path / name).write_text(f'unit = "{unit}"\n{MAP}')
        given = tmp_path / name if name == "other.toml" else None
        formats.append(float(read_all(open_recording(path, columns=given)).position[0, 0, 1]))

    np.testing.assert_allclose(formats, [1.5, 0.015, 0.0015, 1.5 * 0.3048])


def test_a_known_table_is_read_by_its_own_reader_unless_its_own_mapping_says_otherwise(
    shared: Path, tmp_path: Path
) -> None:
    data = (shared / "data/cases/c23_nan_and_rate_drop.csv").read_bytes()
    path = tmp_path / "a.csv"
    path.write_bytes(data)
    mapping = (
        'axes = "openvr"\nunit = "cm"\n[time]\ncolumn = "delta_time_ms"\nunit = "ms"\n[[device]]\nname = "h"'
        '\nrole = "head"\nposition = ["hmd_pos_x", "hmd_pos_y", "hmd_pos_z"]\n'
        'quaternion = ["hmd_rot_x", "hmd_rot_y", "hmd_rot_z", "hmd_rot_w"]\n'
    )
    (tmp_path / "vrik-columns.toml").write_text(mapping)
    folder = open_recording(path).info.format
    (tmp_path / "a.csv.toml").write_text(mapping)

    own = open_recording(path)

    assert folder == "alyx-csv"
    assert own.info.format == "generic-csv"
    assert read_all(own).time_ns[-1] == 6402_000_000


def test_a_mapping_that_is_named_but_not_there_is_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(table([row(0)]))

    with pytest.raises(UsageError, match="cannot read the mapping"):
        open_recording(path, columns=tmp_path / "none.toml")
    with pytest.raises(RecordingError, match="no file"):
        open_recording(tmp_path / "none.csv", columns=tmp_path / "none.toml")


def test_a_toml_beside_a_recording_that_is_no_table_does_not_matter(tmp_path: Path) -> None:
    path = tmp_path / "a.mcap"
    path.write_bytes(os.urandom(64))
    (tmp_path / "a.toml").write_text(MAP)

    with pytest.raises(UnknownFormatError):
        open_recording(path)


@pytest.mark.parametrize("command", ["inspect", "convert", "solve", "replay"])
def test_every_command_that_reads_a_recording_takes_a_mapping(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from vrik.cli import main

    path, mapping = tmp_path / "a.csv", tmp_path / "mine.toml"
    path.write_text(table([row(i) for i in range(3)]))
    mapping.write_text("colour = 1\n" + MAP)
    rest = {"convert": [str(tmp_path / "b.npz")], "solve": ["-o", str(tmp_path / "b.npz")]}.get(command, [])

    code = main([command, str(path), *rest, "--columns", str(mapping)])

    assert code == 2
    assert "mine.toml does not work: 'colour'" in capsys.readouterr().err


def test_a_mapping_named_on_the_command_line_is_used(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from vrik.cli import main

    path, mapping = tmp_path / "a.csv", tmp_path / "mine.toml"
    path.write_text(table([row(i) for i in range(3)]))
    mapping.write_text(MAP)

    inspected = main(["inspect", str(path), "--columns", str(mapping), "--json"])
    said = capsys.readouterr().out
    converted = main(["convert", str(path), str(tmp_path / "b.mcap"), "--columns", str(mapping)])

    assert (inspected, converted) == (0, 0)
    assert '"generic-csv"' in said
    assert len(read_all(open_recording(tmp_path / "b.mcap"))) == 3
