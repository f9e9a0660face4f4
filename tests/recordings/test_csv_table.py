"""Tables as text: encodings, a last row without an end, lines that never end, clocks, columns that repeat."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordings import open_recording, read_all
from recordings.csv_table import Table, Tally, read_blocks
from recordings.csv_text import Header, encoding_of, looks_like_table, names_in, rows_in
from vrik.errors import DamagedRecordingError

REAL = {
    "alyx-csv": "data/cases/c23_nan_and_rate_drop.csv",
    "arm-tracker-csv": "data/vr/arm_trackers/right_arm_shoulder_local.csv",
    "quest-log": "data/vr/quest_center_eye/quest2_traj1.txt",
    "steamvr-csv": "data/vr/nolicence/steamvr_elbows_knees/a_tpose_start_knee_dropouts.csv",
    "vive-csv": "data/vr/nolicence/vive_csv/walking_3.csv",
}


def numbers(path: Path, text: str, width: int = 3, first_line: int = 0) -> tuple[np.ndarray, Tally]:
    """All rows of a table, and what was met."""
    path.write_text(text, encoding="utf-8", newline="")
    tally = Tally()
    table = Table(path, ",", width, tuple(range(width)), first_line)
    blocks = [np.zeros((0, width)), *read_blocks(table, tally)]
    return np.concatenate(blocks), tally


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("kind", REAL)
def test_every_kind_of_table_is_known_and_read_in_any_encoding(
    shared: Path, tmp_path: Path, kind: str, end: str, encoding: str
) -> None:
    lines = (shared / REAL[kind]).read_text().splitlines()[:30]
    plain, other = tmp_path / "plain.csv", tmp_path / "other.csv"
    plain.write_bytes("".join(line + "\n" for line in lines).encode())
    other.write_bytes("".join(line + end for line in lines).encode(encoding))

    recording = open_recording(other)

    expected, frames = read_all(open_recording(plain)), read_all(recording)
    assert recording.info.format == kind
    np.testing.assert_array_equal(frames.time_ns, expected.time_ns)
    np.testing.assert_array_equal(frames.position, expected.position)
    np.testing.assert_array_equal(frames.rotation, expected.rotation)


@pytest.mark.parametrize(
    ("last", "believed"),
    [
        ("7,8,9.25", True),
        ("7,8,9.2", False),  # as its neighbours have two decimals, one may be missing
        ("7,8,9.", False),
        ("7,8", False),
        ("7,8,", False),
        ("7,8,nan", False),
    ],
)
def test_a_last_row_without_an_end_is_read_when_its_decimals_show_that_it_is_whole(
    tmp_path: Path, last: str, believed: bool
) -> None:
    values, tally = numbers(tmp_path / "a.csv", "1,2,3.25\n4,5,6.50\n" + last)

    assert values.tolist() == [[1, 2, 3.25], [4, 5, 6.5], [7, 8, 9.25]][: 3 if believed else 2]
    assert (tally.rows, tally.rows_cut) == ((3, 0) if believed else (2, 1))


@pytest.mark.parametrize("others", ["1,2,3\n", "1,2,3.5\n1,2,3.25\n", "", "1,2\n"])
def test_a_last_row_without_an_end_is_cut_where_nothing_tells(tmp_path: Path, others: str) -> None:
    values, tally = numbers(tmp_path / "a.csv", others + "7,8,9.25")

    assert 9.25 not in values
    assert tally.rows_cut == 1


@given(data=st.data())
def test_a_cut_anywhere_never_changes_a_number(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    text = "".join(f"{i},{0.5 * i:.3f},{1.001 * i:.4f}\n" for i in range(8))
    path = tmp_path_factory.mktemp("cut") / "a.csv"
    whole, _ = numbers(path, text)

    values, _ = numbers(path, text[: data.draw(st.integers(0, len(text)))])

    np.testing.assert_array_equal(values, whole[: len(values)])


def test_a_line_that_never_ends_is_no_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a file of gigabytes without a line end would be taken into memory."""
    monkeypatch.setattr("recordings.csv_table.LONGEST_LINE", 1000)
    monkeypatch.setattr("recordings.csv_table.BLOCK_CHARS", 100)

    with pytest.raises(DamagedRecordingError, match=r"line 2 of a\.csv never ends"):
        numbers(tmp_path / "a.csv", "1,2,3\n" + "4," * 5000)


@pytest.mark.parametrize("row", ["{},5,6", '"{}",5,6', "{},,6", "{},lost,6", '"{}","5,0",6'])
def test_a_clock_reads_its_column_whatever_stands_beside_it(tmp_path: Path, row: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text("".join(row.format(cell) + "\n" for cell in ("12:30", "lost", "01:15")))
    clock = {"12:30": 750.0, "01:15": 75.0}
    table = Table.without_header(path, 3, (0, 2), lambda cell: clock.get(cell, np.nan))

    (values,) = read_blocks(table, Tally())

    np.testing.assert_array_equal(values, [[750.0, 6.0], [np.nan, 6.0], [75.0, 6.0]])


def test_columns_that_repeat_are_counted_once_each_and_only_if_read(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("t,x,x,x,y,z,z\n")
    header, tally = Header.of(tmp_path / "a.csv"), Tally()

    table = Table.of(header, ["t", "x", "y"], tally)

    assert table.columns == (0, 1, 4)
    assert tally.counts == {"repeated columns": 1}
    assert tally.notes == ["columns whose name repeats: x; the first of each is read"]


def test_blank_and_unreadable_cells_are_counted_apart(tmp_path: Path) -> None:
    values, tally = numbers(tmp_path / "a.csv", "1,,3\n4,lost,6\nnan,8,9\n")

    tally.tell(Table(tmp_path / "a.csv", ",", 3, (0, 1, 2)))

    assert np.isnan(values).sum() == 3
    assert tally.counts == {"blank cells": 1, "unreadable cells": 1}


def test_the_head_of_a_file_tells_its_encoding_its_names_and_its_rows() -> None:
    assert encoding_of(b"") == "utf-8-sig"
    assert encoding_of(b"\x00\x00\x00\x03") == "utf-8-sig"
    assert names_in("a;b c;d\r\n1".encode("utf-16-be")) == ["a", "b c", "d"]
    assert rows_in(b"1,2\n\n3,4\n5,", 9) == [["1", "2"], ["3", "4"]]
    assert looks_like_table("t,x,y,z".encode("utf-16"))
    assert not looks_like_table(b"\x89,\x00,\x01,\x02")
