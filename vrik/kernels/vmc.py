"""From poses in OpenVR's axes to the numbers of a VMC frame in Unity's."""

import sys

import numpy as np
from numpy.typing import NDArray

from vrik.arrays import Q4, V3, Bools, Floats, Ints, Points, Quats
from vrik.jit import entry, kernel
from vrik.kernels.quat import load4, qdot, qnear, qunit
from vrik.kernels.vec import load3

FARTHEST_M = 1.0e6
"""No place is farther from the origin than this: it is a broken value. [m]"""

LEAST_SQUARE = 0.96
MOST_SQUARE = 1.04
"""A quaternion whose squared length is outside these two is no rotation (2 % in length)."""


SWAP = sys.byteorder == "little"


@kernel
def big_endian(value: float) -> int:
    """The number that has, in this machine's memory, the bytes of ``value`` as a big-endian float32."""
    bits = int(np.float32(value).view(np.uint32))
    if not SWAP:
        return bits
    return (bits & 0xFF) << 24 | (bits & 0xFF00) << 8 | bits >> 8 & 0xFF00 | bits >> 24


@kernel
def is_place(p: V3) -> bool:
    """Whether all three are numbers of a believable size; false for NaN."""
    return abs(p[0]) < FARTHEST_M and abs(p[1]) < FARTHEST_M and abs(p[2]) < FARTHEST_M


@kernel
def is_rotation(q: Q4) -> bool:
    """Whether the length is one, nearly; false for NaN."""
    if not (abs(q[0]) < 2.0 and abs(q[1]) < 2.0 and abs(q[2]) < 2.0 and abs(q[3]) < 2.0):
        return False  # the square of a huge number would overflow
    square = qdot(q, q)
    return square > LEAST_SQUARE and square < MOST_SQUARE


@kernel
def hold_place(p: V3, last: Floats, i: int) -> int:
    """Put a place into row ``i`` of ``last`` in Unity's axes (x, y, -z); 1 if it is none and was left out."""
    if not is_place(p):
        return 1
    last[i, 0] = p[0]
    last[i, 1] = p[1]
    last[i, 2] = 0.0 - p[2]  # not -p[2], which would write zero as "-0"
    return 0


@kernel
def hold_turn(q: Q4, last: Floats, i: int) -> int:
    """Put a rotation into row ``i`` of ``last`` in Unity's axes (-qx, -qy, qz, qw); 1 if it is none.

    It gets length one and the sign nearest to what was there.
    """
    if not is_rotation(q):
        return 1
    u = qunit((q[0], 0.0 - q[1], 0.0 - q[2], q[3]))
    u = qnear(u, (last[i, 6], last[i, 3], last[i, 4], last[i, 5]))
    last[i, 3] = u[1]
    last[i, 4] = u[2]
    last[i, 5] = u[3]
    last[i, 6] = u[0]
    return 0


@entry
@kernel
def write_frame(
    body_position: Points,
    body_rotation: Quats,
    device_position: Points,
    device_rotation: Quats,
    valid: Bools,
    usable: Bools,
    slots: Ints,
    last: Floats,
    words: NDArray[np.uint32],
) -> int:
    """Write n bones and k devices into a frame's words, in Unity's axes.

    body_position (n, 3), of which only the first joint is sent [m]; body_rotation (n, 4) wxyz, relative to
    the parent; device_position (k, 3) [m], device_rotation (k, 4), valid (k,). usable (k,): the devices
    the frame has room for. slots (n + k,): first of the seven words of each bone and device. last
    (n + k, 7): what was sent before, xyz then xyzw; brought up to date, or kept where there is no number.

    Returns how many values had to be kept; -1, with ``usable`` brought up to date and nothing written, if
    other devices than before have a pose.
    """
    n = len(body_rotation)
    changed = False
    for i in range(len(valid)):
        good = valid[i] and is_place(load3(device_position, i)) and is_rotation(load4(device_rotation, i))
        changed = changed or good != usable[i]
        usable[i] = good
    if changed:
        return -1
    held = 0
    for i in range(n):
        if i == 0:  # the other bones keep their rest offsets
            held += hold_place(load3(body_position, i), last, i)
        held += hold_turn(load4(body_rotation, i), last, i)
    for i in range(len(valid)):
        if usable[i]:
            hold_place(load3(device_position, i), last, n + i)
            hold_turn(load4(device_rotation, i), last, n + i)
    for i in range(len(slots)):
        if slots[i] >= 0:
            for c in range(7):
                words[slots[i] + c] = big_endian(last[i, c])
    return held
