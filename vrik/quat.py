"""Quaternions (w, x, y, z) over whole numpy arrays, for importers, calibration and tests.

Leading dimensions broadcast. The scalar twins for inner loops are in ``vrik/kernels/quat.py``.
"""

from __future__ import annotations

import numpy as np

from vrik.arrays import Bools, Floats, Points, Quats

_AXES = {"x": 0, "y": 1, "z": 2}
UNIT_TOLERANCE = 0.02
"""How far from length one a quaternion from outside may be and still be taken as a rotation."""


def wxyz_from_xyzw(q: Quats) -> Quats:
    """Reorder (x, y, z, w), as most files store them, to (w, x, y, z)."""
    return np.ascontiguousarray(np.asarray(q, np.float64)[..., [3, 0, 1, 2]])


def xyzw_from_wxyz(q: Quats) -> Quats:
    """Reorder (w, x, y, z) to (x, y, z, w)."""
    return np.ascontiguousarray(np.asarray(q, np.float64)[..., [1, 2, 3, 0]])


def identity(*shape: int) -> Quats:
    """An array of shape (*shape, 4) filled with the identity."""
    q = np.zeros((*shape, 4))
    q[..., 0] = 1.0
    return q


def is_rotation(q: Quats, tolerance: float = UNIT_TOLERANCE) -> Bools:
    """Which rows are finite and of length one, give or take ``tolerance``: zeros and placeholders are not."""
    with np.errstate(invalid="ignore", over="ignore"):
        size = np.linalg.norm(np.asarray(q, np.float64), axis=-1)
        return np.asarray(np.isfinite(size) & (np.abs(size - 1.0) <= tolerance))


def normalize(q: Quats) -> Quats:
    """Length one; rows that are zero or not finite become the identity."""
    q = np.asarray(q, np.float64)
    size = np.linalg.norm(q, axis=-1, keepdims=True)
    good = np.isfinite(size) & (size > 1e-6)
    return np.where(good, q / np.where(good, size, 1.0), identity())


def multiply(a: Quats, b: Quats) -> Quats:
    """Hamilton product: turns by ``b`` first, then by ``a``."""
    aw, ax, ay, az = np.moveaxis(np.asarray(a, np.float64), -1, 0)
    bw, bx, by, bz = np.moveaxis(np.asarray(b, np.float64), -1, 0)
    return np.stack(
        [
            aw * bw - ax * bx - ay * by - az * bz,
            aw * bx + ax * bw + ay * bz - az * by,
            aw * by - ax * bz + ay * bw + az * bx,
            aw * bz + ax * by - ay * bx + az * bw,
        ],
        axis=-1,
    )


def conjugate(q: Quats) -> Quats:
    """The inverse of a unit quaternion."""
    return np.asarray(np.asarray(q, np.float64) * np.array([1.0, -1.0, -1.0, -1.0]))


def rotate(q: Quats, v: Points) -> Points:
    """Turn vectors (..., 3) by unit quaternions (..., 4)."""
    q = np.asarray(q, np.float64)
    v = np.asarray(v, np.float64)
    t = 2.0 * np.cross(q[..., 1:], v)
    return np.asarray(v + q[..., :1] * t + np.cross(q[..., 1:], t))


def angle(a: Quats, b: Quats) -> Floats:
    """Angle of the turn between two unit quaternions, 0 to pi, the same for either sign. [rad]"""
    d = multiply(conjugate(a), b)
    return np.asarray(2.0 * np.arctan2(np.linalg.norm(d[..., 1:], axis=-1), np.abs(d[..., 0])))


def from_rotvec(v: Points) -> Quats:
    """Rotation vectors (axis times angle, [rad]) to quaternions."""
    v = np.asarray(v, np.float64)
    size = np.linalg.norm(v, axis=-1, keepdims=True)
    return np.concatenate([np.cos(0.5 * size), 0.5 * v * np.sinc(size / (2.0 * np.pi))], axis=-1)


def to_rotvec(q: Quats) -> Points:
    """Quaternions to the shorter rotation vectors. [rad]"""
    q = np.asarray(q, np.float64)
    q = np.where(q[..., :1] < 0.0, -q, q)
    s = np.linalg.norm(q[..., 1:], axis=-1, keepdims=True)
    full = 2.0 * np.arctan2(s, q[..., :1])
    return np.asarray(q[..., 1:] * np.where(s > 1e-12, full / np.maximum(s, 1e-12), 2.0))


def slerp(a: Quats, b: Quats, t: Floats | float) -> Quats:
    """The short way from ``a`` to ``b``; a half turn apart, one of the two equal ways."""
    step = to_rotvec(multiply(conjugate(a), b))
    return normalize(multiply(a, from_rotvec(step * np.asarray(t, np.float64)[..., None])))


def continuous(q: Quats) -> Quats:
    """Flip signs along the first axis so that each row is near the one before."""
    q = np.array(q, np.float64)
    if len(q) > 1:
        turn = np.where(np.sum(q[1:] * q[:-1], axis=-1) < 0.0, -1.0, 1.0)
        q[1:] *= np.cumprod(turn, axis=0)[..., None]
    return q


def average(q: Quats) -> Quats:
    """(n, 4) to the (4,) rotation nearest to all rows, whatever their signs.

    Source: Markley et al., "Averaging quaternions", 2007 (largest eigenvector of the outer products).
    """
    q = np.asarray(q, np.float64).reshape(-1, 4)
    return normalize(np.linalg.eigh(q.T @ q)[1][:, -1])


def to_matrix(q: Quats) -> Floats:
    """Unit quaternions (..., 4) to rotation matrices (..., 3, 3)."""
    w, x, y, z = np.moveaxis(np.asarray(q, np.float64), -1, 0)
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
        [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
        [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
    ]
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def from_matrix(m: Floats) -> Quats:
    """Rotation matrices (..., 3, 3) to unit quaternions, sound at half turns and under rounding noise.

    Takes, row by row, the largest of four pivots. Source: Shepperd, 1978.
    """
    m = np.asarray(m, np.float64)
    a, b, c = m[..., 0, 0], m[..., 1, 1], m[..., 2, 2]
    xy, xz, yz = m[..., 0, 1] + m[..., 1, 0], m[..., 0, 2] + m[..., 2, 0], m[..., 1, 2] + m[..., 2, 1]
    dx, dy, dz = m[..., 2, 1] - m[..., 1, 2], m[..., 0, 2] - m[..., 2, 0], m[..., 1, 0] - m[..., 0, 1]
    candidates = np.stack(
        [
            np.stack([1 + a + b + c, dx, dy, dz], axis=-1),
            np.stack([dx, 1 + a - b - c, xy, xz], axis=-1),
            np.stack([dy, xy, 1 - a + b - c, yz], axis=-1),
            np.stack([dz, xz, yz, 1 - a - b + c], axis=-1),
        ],
        axis=-2,
    )
    best = np.argmax(np.stack([a + b + c, a, b, c], axis=-1), axis=-1)
    return normalize(np.take_along_axis(candidates, best[..., None, None], axis=-2)[..., 0, :])


def from_euler(order: str, angles_rad: Floats) -> Quats:
    """Product of axis turns in the listed order: ``"zxy"`` with (..., 3) is Rz * Rx * Ry (column vectors)."""
    half = 0.5 * np.asarray(angles_rad, np.float64)
    cosine, sine = np.cos(half), np.sin(half)
    q = [np.ones(half.shape[:-1]), *(np.zeros(half.shape[:-1]) for _ in range(3))]
    for i, letter in enumerate(order):  # the product with (c, s about the letter's axis), written out
        c, s = cosine[..., i], sine[..., i]
        about = 1 + _AXES[letter]
        after, last = about % 3 + 1, (about + 1) % 3 + 1
        turned = list(q)
        turned[0] = q[0] * c - q[about] * s
        turned[about] = q[about] * c + q[0] * s
        turned[after] = q[after] * c + q[last] * s
        turned[last] = q[last] * c - q[after] * s
        q = turned
    return np.stack(q, axis=-1)


def to_euler(order: str, q: Quats) -> Floats:
    """Inverse of :func:`from_euler` for three different letters; always finite. [rad]

    At the middle angle of +-90 degrees the two outer turns are one: the last is then zero.
    """
    i, j, k = (_AXES[letter] for letter in order)
    sign = 1.0 if (j - i) % 3 == 1 else -1.0
    m = to_matrix(normalize(q))
    sine = np.clip(sign * m[..., i, k], -1.0, 1.0)
    middle = np.arcsin(sine)
    locked = np.abs(sine) > 1.0 - 1e-10
    first = np.where(
        locked,
        np.arctan2(sign * m[..., k, j], m[..., j, j]),
        np.arctan2(-sign * m[..., j, k], m[..., k, k]),
    )
    last = np.where(locked, 0.0, np.arctan2(-sign * m[..., i, j], m[..., i, i]))
    return np.stack([first, middle, last], axis=-1)
