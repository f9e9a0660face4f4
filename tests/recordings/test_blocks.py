"""Samples that come in blocks become the frames they would be in one piece."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from recordings.base import join
from recordings.importers.axes import device_for_role, tracker_sequence
from recordings.importers.blocks import Sequencer

DEVICES = (device_for_role("head", "a"), device_for_role("waist", "b"))


@settings(max_examples=100, deadline=None)
@given(
    arrays(np.float64, (9, 2, 4), elements=st.sampled_from([-1.0, -0.4, 0.3, 0.9])),
    arrays(np.bool_, (9, 2)),
    st.lists(st.integers(0, 9), max_size=3),
)
def test_it_does_not_matter_where_the_blocks_end(
    rotation: np.ndarray, valid: np.ndarray, ends: list[int]
) -> None:
    time_ns, position = np.arange(9), np.ones((9, 2, 3))
    whole = tracker_sequence(time_ns, DEVICES, position, rotation, valid)
    sequencer, bounds = Sequencer(DEVICES), [0, *sorted(ends), 9]

    blocks = [
        sequencer.sequence(time_ns[a:b], position[a:b], rotation[a:b], valid[a:b])
        for a, b in pairwise(bounds)
    ]

    joined = join(DEVICES, blocks)
    np.testing.assert_array_equal(joined.rotation, whole.rotation)
    np.testing.assert_array_equal(joined.position, whole.position)
    np.testing.assert_array_equal(joined.valid, whole.valid)
