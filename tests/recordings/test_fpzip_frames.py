"""fpzip streams: their size is checked first, and a process of its own unpacks them."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordings.importers.fpzip_frames import FREE_NUMBERS, MOST_PER_BYTE, stated_count, unpack

FLAT = bytes.fromhex(
    "66707929870ef0ff0015ea000004fb000000ff000000ff007f880f56d75d039cdb4c05f305d8849d0000000000"
)
"""Begins as 5 x 22 zeros of 32 bits do when the package packs them."""

unpacks = pytest.mark.skipif(importlib.util.find_spec("fpzip") is None, reason="fpzip is not installed")


def test_a_stream_states_how_many_numbers_it_holds() -> None:
    assert stated_count(FLAT) == 5 * 22


def test_what_is_no_stream_is_refused() -> None:
    with pytest.raises(ValueError, match="no fpzip stream"):
        stated_count(b"fpz\0" + FLAT[4:])


@given(st.binary(min_size=16, max_size=16))
def test_a_size_that_the_bytes_cannot_hold_is_refused(size: bytes) -> None:
    stream = FLAT[:8] + size + FLAT[24:]
    try:
        count = stated_count(stream)
    except ValueError:
        return

    assert 0 < count <= FREE_NUMBERS + MOST_PER_BYTE * len(stream)


@unpacks
@pytest.mark.parametrize("shape", [(3, 8), (9_000, 22)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_the_package_packs_is_unpacked(shape: tuple[int, int], dtype: type) -> None:
    import fpzip

    rows = np.random.default_rng(1).normal(size=shape).astype(dtype)
    stream = fpzip.compress(rows)

    table = unpack(stream)

    assert stated_count(stream) == rows.size
    assert (len(table), table.columns, table.numbers) == (*shape, rows.size)
    assert table.rows(0, 1).dtype == dtype
    np.testing.assert_array_equal(table.rows(0, len(rows)), rows)
    np.testing.assert_array_equal(table.rows(1, 3), rows[1:3])


@unpacks
@pytest.mark.parametrize("at", range(26, 300, 60))
def test_a_damaged_stream_does_not_end_the_program(at: int) -> None:
    """Some of these end the process that unpacks them."""
    import fpzip

    stream = bytearray(fpzip.compress(np.random.default_rng(2).normal(size=(30, 15)).astype(np.float32)))
    stream[at] ^= 0xFF

    try:
        table = unpack(bytes(stream))
    except ValueError:
        return

    assert table.numbers == stated_count(bytes(stream))
