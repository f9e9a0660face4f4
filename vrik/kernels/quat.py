"""Unit quaternions (w, x, y, z) as tuples, for use inside other kernels.

Hamilton product; ``qmul(a, b)`` turns by ``b`` first. A rotation and its negative are the same
turn: whatever compares or blends two of them takes the nearer sign first.
"""

import math

from vrik.arrays import Q4, V3, Quats
from vrik.jit import kernel
from vrik.kernels.vec import add, any_normal, cross, dot, length, reject, scale, unit_or

IDENTITY: Q4 = (1.0, 0.0, 0.0, 0.0)


@kernel
def load4(rows: Quats, i: int) -> Q4:
    """Row ``i`` of an (n, 4) array as a tuple."""
    return (rows[i, 0], rows[i, 1], rows[i, 2], rows[i, 3])


@kernel
def store4(rows: Quats, i: int, q: Q4) -> None:
    """Write a tuple into row ``i`` of an (n, 4) array."""
    rows[i, 0] = q[0]
    rows[i, 1] = q[1]
    rows[i, 2] = q[2]
    rows[i, 3] = q[3]


@kernel
def qmul(a: Q4, b: Q4) -> Q4:
    """Hamilton product: turns by ``b`` first, then by ``a``."""
    return (
        a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3],
        a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2],
        a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1],
        a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0],
    )


@kernel
def qconj(q: Q4) -> Q4:
    """The inverse of a unit quaternion."""
    return (q[0], -q[1], -q[2], -q[3])


@kernel
def qdot(a: Q4, b: Q4) -> float:
    """Inner product: 1 or -1 for the same rotation."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2] + a[3] * b[3]


@kernel
def qunit(q: Q4) -> Q4:
    """Length one; the identity when ``q`` is all zeros or not finite."""
    square = qdot(q, q)
    if not (square > 1e-12) or not math.isfinite(square):
        return (1.0, 0.0, 0.0, 0.0)
    s = 1.0 / math.sqrt(square)
    return (q[0] * s, q[1] * s, q[2] * s, q[3] * s)


@kernel
def qrot(q: Q4, v: V3) -> V3:
    """Turn the vector ``v`` by ``q``."""
    u = (q[1], q[2], q[3])
    t = scale(cross(u, v), 2.0)
    return add(add(v, scale(t, q[0])), cross(u, t))


@kernel
def carry(q: Q4, origin: V3, v: V3) -> V3:
    """The point ``v`` of a frame with rotation ``q`` and the given origin, seen from outside."""
    return add(origin, qrot(q, v))


@kernel
def qnear(q: Q4, reference: Q4) -> Q4:
    """``q`` or ``-q``, whichever is nearer to ``reference``: keeps streams sign-continuous."""
    if qdot(q, reference) < 0.0:
        return (-q[0], -q[1], -q[2], -q[3])
    return q


@kernel
def qaxis(axis: V3, angle_rad: float) -> Q4:
    """Turn by ``angle_rad`` about a unit axis."""
    s = math.sin(0.5 * angle_rad)
    return (math.cos(0.5 * angle_rad), axis[0] * s, axis[1] * s, axis[2] * s)


@kernel
def qexp(v: V3) -> Q4:
    """Rotation vector (axis times angle, [rad]) to quaternion."""
    angle = length(v)
    if angle < 1e-9:
        return qunit((1.0, 0.5 * v[0], 0.5 * v[1], 0.5 * v[2]))
    return qaxis(scale(v, 1.0 / angle), angle)


@kernel
def qlog(q: Q4) -> V3:
    """Quaternion to the shorter rotation vector, length 0 to pi. [rad]"""
    p = qnear(q, (1.0, 0.0, 0.0, 0.0))
    u = (p[1], p[2], p[3])
    s = length(u)
    if s < 1e-12:
        return scale(u, 2.0)
    return scale(u, 2.0 * math.atan2(s, p[0]) / s)


@kernel
def qangle(a: Q4, b: Q4) -> float:
    """Angle of the turn between two rotations, 0 to pi. [rad]"""
    return length(qlog(qmul(qconj(a), b)))


@kernel
def qslerp(a: Q4, b: Q4, t: float) -> Q4:
    """The short way from ``a`` (t = 0) to ``b`` (t = 1) at constant speed.

    A half turn apart, one of the two equal ways is taken (never a stop half way).
    """
    return qunit(qmul(a, qexp(scale(qlog(qmul(qconj(a), b)), t))))


@kernel
def qarc(a: V3, b: V3) -> Q4:
    """The smallest turn that takes unit vector ``a`` onto unit vector ``b``.

    Nearly opposite vectors: a half turn about some axis at a right angle to ``a``, and the rest from there.
    """
    w = 1.0 + dot(a, b)
    if w < 1e-6:
        n = any_normal(a)
        c = cross(b, a)
        return qunit(qmul((1.0 - dot(a, b), c[0], c[1], c[2]), (0.0, n[0], n[1], n[2])))
    c = cross(a, b)
    return qunit((w, c[0], c[1], c[2]))


@kernel
def qbasis(x: V3, y: V3, z: V3) -> Q4:
    """Rotation whose matrix has the orthonormal columns x, y, z.

    Takes the largest of the four possible pivots, so that half turns and rounding noise are
    harmless. Source: Shepperd, "Quaternion from rotation matrix", 1978.
    """
    trace = x[0] + y[1] + z[2]
    if trace >= x[0] and trace >= y[1] and trace >= z[2]:
        return qunit((1.0 + trace, y[2] - z[1], z[0] - x[2], x[1] - y[0]))
    if x[0] >= y[1] and x[0] >= z[2]:
        return qunit((y[2] - z[1], 1.0 + x[0] - y[1] - z[2], y[0] + x[1], z[0] + x[2]))
    if y[1] >= z[2]:
        return qunit((z[0] - x[2], y[0] + x[1], 1.0 - x[0] + y[1] - z[2], z[1] + y[2]))
    return qunit((x[1] - y[0], z[0] + x[2], z[1] + y[2], 1.0 - x[0] - y[1] + z[2]))


@kernel
def qalign(axis_rest: V3, side_rest: V3, axis: V3, side: V3) -> Q4:
    """Turn that takes ``axis_rest`` onto ``axis`` and, as nearly as it can, ``side_rest`` onto ``side``.

    ``axis_rest`` and ``axis`` are unit; a side along its axis is replaced by any normal.
    """
    s0 = unit_or(reject(side_rest, axis_rest), any_normal(axis_rest))
    s1 = unit_or(reject(side, axis), qrot(qarc(axis_rest, axis), s0))
    b0 = qbasis(axis_rest, s0, cross(axis_rest, s0))
    b1 = qbasis(axis, s1, cross(axis, s1))
    return qmul(b1, qconj(b0))


@kernel
def qtwist(q: Q4, axis: V3) -> Q4:
    """The part of ``q`` that turns about the unit ``axis``: ``q == swing * twist``.

    A half turn of swing leaves no twist to tell: the identity.
    """
    p = q[1] * axis[0] + q[2] * axis[1] + q[3] * axis[2]
    return qunit((q[0], axis[0] * p, axis[1] * p, axis[2] * p))


@kernel
def qtwist_angle(q: Q4, axis: V3) -> float:
    """Angle of the twist about the unit ``axis``, -pi to pi. [rad]"""
    p = q[1] * axis[0] + q[2] * axis[1] + q[3] * axis[2]
    if q[0] * q[0] + p * p < 1e-18:
        return 0.0
    angle = 2.0 * math.atan2(p, q[0])
    if angle > math.pi:
        return angle - 2.0 * math.pi
    if angle < -math.pi:
        return angle + 2.0 * math.pi
    return angle


@kernel
def qyaw(q: Q4) -> float:
    """Heading of a head-like frame about +Y; 0 looks along -Z, positive turns left. [rad]

    Where the forward axis nears the vertical it says little, and the up axis takes over.
    """
    f = qrot(q, (0.0, 0.0, -1.0))
    u = qrot(q, (0.0, 1.0, 0.0))
    w = min(max((abs(f[1]) - 0.7) / 0.25, 0.0), 1.0)
    s = -w if f[1] > 0.0 else w
    hx = (1.0 - w) * f[0] + s * u[0]
    hz = (1.0 - w) * f[2] + s * u[2]
    if hx * hx + hz * hz < 1e-18:
        return 0.0
    return math.atan2(-hx, -hz)


@kernel
def qturn(yaw_rad: float) -> Q4:
    """Rotation about +Y (positive turns left, seen from above)."""
    return (math.cos(0.5 * yaw_rad), 0.0, math.sin(0.5 * yaw_rad), 0.0)
