"""JSON read value by value: the same as read at once, in pieces of any size and cut anywhere."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recordings.base import listening
from recordings.importers import json_text
from recordings.importers.json_text import BrokenJsonError, JsonStream, number

SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)
many = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_text, "CHUNK_BYTES", 5)


def rows_of(path: Path) -> tuple[list[Any], bool]:
    """The members of a list, and whether it went on to its end."""
    rows: list[Any] = []
    with JsonStream(path) as stream:
        try:
            for row in stream.values():
                rows.append(row)
            stream.end()
        except BrokenJsonError:
            return rows, False
    return rows, True


@many
@given(rows=st.lists(VALUES, max_size=5), indent=st.sampled_from([None, 1]), ascii_only=st.booleans())
def test_a_list_is_read_as_at_once(
    tmp_path: Path, rows: list[Any], indent: int | None, ascii_only: bool
) -> None:
    text = json.dumps(rows, indent=indent, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    (tmp_path / "a.json").write_bytes(text)

    got, whole = rows_of(tmp_path / "a.json")

    assert whole
    assert repr(got) == repr(json.loads(text.decode("utf-8", "replace")))


@many
@given(rows=st.lists(VALUES, min_size=1, max_size=5), share=st.floats(0.0, 1.0, exclude_max=True))
def test_a_cut_list_gives_what_is_whole_and_says_that_it_is_cut(
    tmp_path: Path, rows: list[Any], share: float
) -> None:
    text = json.dumps(rows)
    cut = text[: int(share * len(text))]
    (tmp_path / "a.json").write_text(cut)

    got, whole = rows_of(tmp_path / "a.json")

    assert not whole
    ends = [len(json.dumps(rows[: i + 1])) - 1 for i in range(len(rows))]
    least = sum(end <= len(cut) for end in ends)
    if len(got) > least:  # a number that is cut is a number
        assert isinstance(rows[least], int | float)
        assert len(got) == least + 1
    assert repr(got[:least]) == repr(rows[:least])


@many
@given(document=VALUES, depth=st.integers(0, 4))
def test_what_is_passed_over_ends_where_it_ends(tmp_path: Path, document: Any, depth: int) -> None:
    (tmp_path / "a.json").write_text(json.dumps([document, 7]))

    with JsonStream(tmp_path / "a.json") as stream:
        turns = stream._turns("[", "]")
        next(turns)
        stream.skip(depth)
        next(turns)
        assert stream.value() == 7
        assert next(turns, "over") == "over"
        stream.end()


@pytest.mark.parametrize(
    "text", ["[1 2]", "[1,]", "[1] 2", '["\n"]', "[tru]", "[1, 'a']", "[\x00]", "{}", ""]
)
def test_what_is_no_json_is_broken_and_says_where(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.json").write_text(text)

    def read() -> None:
        with JsonStream(tmp_path / "a.json") as stream:
            list(stream.values())
            stream.end()

    with pytest.raises(BrokenJsonError, match=r"character \d+$"):
        read()


@pytest.mark.parametrize("text", ['{"a": 1 "b"}', '{"a" 1}', "{1: 2}", '{"a": 1,}', '{"a'])
def test_an_object_that_is_none_is_broken(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.json").write_text(text)

    with JsonStream(tmp_path / "a.json") as stream, pytest.raises(BrokenJsonError):
        stream.skip()


def test_nesting_without_end_is_broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_text, "CHUNK_BYTES", 1 << 16)
    (tmp_path / "a.json").write_text("[" * 100_000)

    with JsonStream(tmp_path / "a.json") as stream, pytest.raises(BrokenJsonError, match="brackets"):
        list(stream.values())


def test_a_mark_of_the_encoding_and_broken_letters_do_not_matter(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(b'\xef\xbb\xbf["\xff\xc3", "\xc3\xa4"]')

    assert rows_of(tmp_path / "a.json") == (["\ufffd\ufffd", "ä"], True)


def test_an_error_in_the_middle_is_found_without_reading_the_rest(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(b"[1, 2, nonsense" + b" " * 1_000_000 + b"]")
    told: list[int] = []

    with listening(lambda done, total: told.append(done)):
        assert rows_of(tmp_path / "a.json") == ([1, 2], False)

    assert max(told) < 1000


def test_a_long_list_takes_little_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_text, "CHUNK_BYTES", 1 << 16)
    (tmp_path / "a.json").write_text(json.dumps([{"x": i / 7, "y": [i, str(i)]} for i in range(20_000)]))

    with JsonStream(tmp_path / "a.json") as stream:
        tracemalloc.start()
        try:
            count = sum(1 for _ in stream.values())
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert count == 20_000
    assert peak < 500_000 < (tmp_path / "a.json").stat().st_size


@pytest.mark.parametrize("value", [True, None, "1", [1], 10**400])
def test_what_is_no_number_is_nan(value: Any) -> None:
    assert number(value) != number(value)
