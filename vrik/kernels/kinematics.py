"""Forward kinematics over parents-first joint arrays."""

from vrik.arrays import Ints, Points, Quats
from vrik.jit import kernel
from vrik.kernels.quat import load4, qconj, qmul, qnear, qrot, qunit, store4
from vrik.kernels.vec import add, load3, store3


@kernel
def forward(parents: Ints, offsets: Points, rotations: Quats, positions: Points) -> None:
    """Fill ``positions[1:]`` from world rotations; ``positions[0]`` is the root and stays.

    parents (n,), offsets (n, 3) from the parent in the rest pose [m], rotations (n, 4) canonical
    world rotations, positions (n, 3). [m]
    """
    for j in range(1, len(parents)):
        p = parents[j]
        bone = qrot(load4(rotations, p), load3(offsets, j))
        store3(positions, j, add(load3(positions, p), bone))


@kernel
def locals_from_world(parents: Ints, world: Quats, previous: Quats, local: Quats) -> None:
    """Parent-relative rotations of canonical world ones, near in sign to ``previous`` (all (n, 4))."""
    for j in range(len(parents)):
        q = load4(world, j)
        if parents[j] >= 0:
            q = qmul(qconj(load4(world, parents[j])), q)
        store4(local, j, qnear(qunit(q), load4(previous, j)))


@kernel
def world_from_locals(parents: Ints, local: Quats, world: Quats) -> None:
    """Canonical world rotations of parent-relative ones (both (n, 4))."""
    for j in range(len(parents)):
        q = load4(local, j)
        if parents[j] >= 0:
            q = qmul(load4(world, parents[j]), q)
        store4(world, j, qunit(q))
