"""What a bow leaves: bones that are bent out of its plane turn towards the line to the target, in shares.

The distance from root to tip grows with the share from what it is to the chain's whole length, so one number
is found by halving, and the tip then lies on the line as far away as it should.
"""

from solvers.kernels.chain import place
from vrik.arrays import V3, Floats, Points, Quats
from vrik.jit import kernel
from vrik.kernels.quat import load4, qarc, qexp, qlog, qmul, qrot, qunit, store4
from vrik.kernels.vec import add, length, load3, scale, sub, unit_or

HALVINGS = 24
"""The share is then known to a ten-millionth."""


@kernel
def unbend(
    points: Points, rotations: Quats, offsets: Points, first: int, target: V3, wanted: float, turns: Floats
) -> None:
    """Turn the bones after joint ``first`` until the tip is ``wanted`` [m] away from it, towards ``target``.

    points (m + 1, 3), rotations (m, 4) in place. ``turns`` (m, 4) is scratch: what straightens each bone.
    """
    m = len(rotations)
    root = load3(points, first)
    axis = unit_or(sub(target, root), (0.0, 1.0, 0.0))
    for i in range(first, m):
        bone = unit_or(qrot(load4(rotations, i), load3(offsets, i + 1)), axis)
        store4(turns, i, qarc(bone, axis))
    low = 0.0
    high = 1.0
    for _ in range(HALVINGS):
        share = 0.5 * (low + high)
        if reach_at(rotations, offsets, first, turns, share) < wanted:
            low = share
        else:
            high = share
    for i in range(first, m):
        store4(rotations, i, qunit(qmul(part_of(turns, i, high), load4(rotations, i))))
    place(points, rotations, offsets)
    aim = qarc(unit_or(sub(load3(points, m), root), axis), axis)
    for i in range(first, m):
        store4(rotations, i, qunit(qmul(aim, load4(rotations, i))))
    place(points, rotations, offsets)


@kernel
def part_of(turns: Floats, i: int, share: float) -> tuple[float, float, float, float]:
    """``share`` of a turn."""
    return qexp(scale(qlog(load4(turns, i)), share))


@kernel
def reach_at(rotations: Quats, offsets: Points, first: int, turns: Floats, share: float) -> float:
    """Distance from joint ``first`` to the tip when ``share`` of the turns is made. [m]"""
    tip = (0.0, 0.0, 0.0)
    for i in range(first, len(rotations)):
        tip = add(tip, qrot(qmul(part_of(turns, i, share), load4(rotations, i)), load3(offsets, i + 1)))
    return length(tip)
