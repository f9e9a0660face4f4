"""A limit allows what it says, changes nothing inside, and never gives way."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from solvers.kernels import limits as kernels
from solvers.limits import Hinge, SwingTwist, clamp_rotation, limit_excess, pack_limits
from vrik import jit

ELBOW = Hinge((0.0, 1.0, 0.0), -0.1, 2.6)
SHOULDER = SwingTwist((1.0, 0.0, 0.0), (1.2, 0.7), -0.9, 1.4, side=(0.0, 1.0, 0.0))

turns = st.tuples(*[st.floats(-1.0, 1.0)] * 4).filter(lambda q: np.linalg.norm(q) > 0.1)


def wxyz(rotation: Rotation) -> np.ndarray:
    x, y, z, w = rotation.as_quat()
    return np.array([w, x, y, z])


def scipy_of(q: np.ndarray) -> Rotation:
    return Rotation.from_quat([q[1], q[2], q[3], q[0]])


@given(turns)
@settings(max_examples=200)
def test_a_hinge_leaves_only_its_angle(q: tuple[float, ...]) -> None:
    kept = scipy_of(clamp_rotation(np.array(q), ELBOW)).as_rotvec()

    np.testing.assert_allclose(kept[[0, 2]], 0.0, atol=1e-9)
    assert ELBOW.low_rad - 1e-9 <= kept[1] <= ELBOW.high_rad + 1e-9


@given(turns)
@settings(max_examples=200)
def test_a_swing_stays_in_its_ellipse_and_a_twist_in_its_range(q: tuple[float, ...]) -> None:
    kept = scipy_of(clamp_rotation(np.array(q), SHOULDER))

    bone = kept.apply([1.0, 0.0, 0.0])
    angle = math.acos(min(max(bone[0], -1.0), 1.0))
    axis = np.cross([1.0, 0.0, 0.0], bone)
    v = axis / max(np.linalg.norm(axis), 1e-12) * angle
    assert (v[1] / 1.2) ** 2 + (v[2] / 0.7) ** 2 <= 1.0 + 1e-6
    smallest = Rotation.from_rotvec(v)
    twist = (smallest.inv() * kept).as_rotvec()[0]
    assert SHOULDER.low_twist_rad - 1e-6 <= twist <= SHOULDER.high_twist_rad + 1e-6


@pytest.mark.parametrize("limit", [ELBOW, SHOULDER, None])
@given(q=turns)
@settings(max_examples=100)
def test_what_is_allowed_is_left_alone(limit: Hinge | SwingTwist | None, q: tuple[float, ...]) -> None:
    once = clamp_rotation(np.array(q), limit)

    assert limit_excess(once, limit) < 1e-9
    np.testing.assert_allclose(clamp_rotation(once, limit), once, atol=1e-9)


def test_an_angle_beyond_the_far_end_stops_at_the_nearer_one() -> None:
    """3.3 rad is 0.7 past 2.6 and 2.9 before -0.1, also when it is written as -2.98."""
    for angle in (3.3, 3.3 - 2 * math.pi):
        kept = scipy_of(clamp_rotation(wxyz(Rotation.from_rotvec([0.0, angle, 0.0])), ELBOW))
        np.testing.assert_allclose(kept.as_rotvec(), [0.0, 2.6, 0.0], atol=1e-9)


def test_a_range_beyond_half_a_turn_is_whole() -> None:
    wide = Hinge((0.0, 0.0, 1.0), -0.5, 4.0)

    for angle in (3.0, 3.5, 4.0):
        q = wxyz(Rotation.from_rotvec([0.0, 0.0, angle]))
        assert limit_excess(q, wide) < 1e-9


def test_a_center_moves_the_whole_range() -> None:
    bent = Rotation.from_rotvec([0.0, 0.3, 0.0])
    limit = Hinge((0.0, 1.0, 0.0), -0.1, 0.1, center=tuple(wxyz(bent)))

    kept = scipy_of(clamp_rotation(wxyz(Rotation.from_rotvec([0.0, 1.0, 0.0])), limit))

    np.testing.assert_allclose(kept.as_rotvec(), [0.0, 0.4, 0.0], atol=1e-9)


@given(turns, st.floats(0.0, 0.4))
@settings(max_examples=100)
def test_a_mirrored_joint_is_limited_in_the_mirror(q: tuple[float, ...], soft: float) -> None:
    """Mirrored in x = 0: positions flip x, rotations flip y and z of the quaternion."""
    right = SwingTwist((1.0, 0.0, 0.0), (1.2, 0.7), -0.9, 1.4, (0.0, 1.0, 0.0), soft)
    left = SwingTwist((-1.0, 0.0, 0.0), (1.2, 0.7), -0.9, 1.4, (0.0, 1.0, 0.0), soft)
    # A twist about a mirrored axis turns the other way: about -x by the same angle it is the mirror image.
    flip = np.array([1.0, 1.0, -1.0, -1.0])
    before = np.array(clamp_rotation(np.array([1.0, 0.2, 0.1, -0.1]), right))
    after = np.array(q) / np.linalg.norm(q)

    one = np.array(kernels.constrain(tuple(before), tuple(after), pack_limits([right]), 0, True))
    mirrored = SwingTwist(left.axis, left.swing_rad, -1.4, 0.9, (0.0, 1.0, 0.0), soft)
    other = kernels.constrain(tuple(before * flip), tuple(after * flip), pack_limits([mirrored]), 0, True)

    assert abs(abs(one @ (np.array(other) * flip)) - 1.0) < 1e-9


def test_a_soft_zone_pushes_back_before_the_hard_stop() -> None:
    """The same turns outwards gain less and less, and never pass the stop; inwards they are free."""
    rows = pack_limits([Hinge((0.0, 0.0, 1.0), -1.0, 1.0, soft_rad=0.4)])
    angle, gains = 0.0, []
    for _ in range(40):
        wanted = angle + 0.1
        q = kernels.constrain(
            (math.cos(angle / 2), 0.0, 0.0, math.sin(angle / 2)),
            (math.cos(wanted / 2), 0.0, 0.0, math.sin(wanted / 2)),
            rows,
            0,
            True,
        )
        new = 2.0 * math.atan2(q[3], q[0])
        gains.append(new - angle)
        angle = new

    np.testing.assert_allclose(gains[:4], 0.1)
    assert np.all(np.diff(gains[7:21]) < 0.0)
    assert 0.97 < angle < 1.0
    back = kernels.constrain(
        (math.cos(angle / 2), 0.0, 0.0, math.sin(angle / 2)),
        (math.cos((angle - 0.3) / 2), 0.0, 0.0, math.sin((angle - 0.3) / 2)),
        rows,
        0,
        True,
    )
    assert 2.0 * math.atan2(back[3], back[0]) == pytest.approx(angle - 0.3)


@given(st.floats(-1.5, 1.5), st.floats(-1.5, 1.5), st.floats(0.05, 1.2))
def test_easing_in_many_small_moves_is_easing_in_one(before: float, after: float, zone: float) -> None:
    """The speed lost depends on the place alone, so the frame rate does not matter."""
    start = min(max(before, -1.0), 1.0)
    once = kernels.eased(start, after, -1.0, 1.0, zone)
    there = start
    for _ in range(10):
        there = kernels.eased(there, there + (after - start) / 10.0, -1.0, 1.0, zone)

    assert there == pytest.approx(once, abs=1e-9)


@pytest.mark.parametrize(
    "wrong",
    [
        Hinge((0.0, 0.0, 0.0)),
        Hinge((1.0, 0.0, 0.0), 1.0, -1.0),
        Hinge((1.0, 0.0, 0.0), soft_rad=-0.1),
        Hinge((1.0, math.nan, 0.0)),
        SwingTwist((1.0, 0.0, 0.0), (-0.1, 1.0)),
        SwingTwist((1.0, 0.0, 0.0), side=(2.0, 0.0, 0.0)),
        SwingTwist((1.0, 0.0, 0.0), center=(0.0, 0.0, 0.0, 0.0)),
    ],
)
def test_a_limit_that_makes_no_sense_is_refused(wrong: Hinge | SwingTwist) -> None:
    with pytest.raises(ValueError, match=r"axis|range|direction|side|rotation"):
        pack_limits([wrong])


@given(turns, turns, st.booleans())
@settings(max_examples=50)
def test_compiled_and_plain_agree(a: tuple[float, ...], b: tuple[float, ...], soft: bool) -> None:
    rows = pack_limits([SHOULDER, ELBOW])
    before = tuple(np.array(a) / np.linalg.norm(a))
    after = tuple(np.array(b) / np.linalg.norm(b))
    for i in range(2):
        np.testing.assert_allclose(
            jit.plain(kernels.constrain)(before, after, rows, i, soft),
            kernels.constrain(before, after, rows, i, soft),
            atol=1e-12,
        )
