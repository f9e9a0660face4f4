"""Two bones as a bare triangle: the law of cosines, and a pole that says to which side to bend.

Source: Tolani, Goswami & Badler, "Real-time inverse kinematics techniques for anthropomorphic limbs",
Graphical Models 62 (2000), section 3.
"""

import math

from vrik.arrays import V3
from vrik.jit import kernel
from vrik.kernels.vec import add, any_normal, distance, reject, scale, sub, unit_or


@kernel
def bend(
    root: V3, target: V3, upper: float, lower: float, pole: V3
) -> tuple[float, float, float, float, float, float]:
    """Middle joint and end of a limb whose end is on ``target``, bent to the side of ``pole``.

    ``upper`` and ``lower`` are the bone lengths [m], ``pole`` a world direction. A target out of reach
    is met as nearly as it can be: straight towards it, or folded towards it.
    """
    away = distance(target, root)
    if away > 1e-9:
        axis = scale(sub(target, root), 1.0 / away)
    else:  # target on the root: fold so that the middle joint goes to the pole
        axis = any_normal(unit_or(pole, (0.0, -1.0, 0.0)))
    reach = min(max(away, abs(upper - lower)), upper + lower)
    along = 0.0
    if reach > 1e-9:
        along = 0.5 * (reach + (upper - lower) * (upper + lower) / reach)
    along = min(max(along, -upper), upper)  # straight and folded: rounding must not lengthen the bone
    off = math.sqrt((upper - along) * (upper + along))
    mid = add(root, add(scale(axis, along), scale(side_of(pole, axis), off)))
    end = add(root, scale(axis, reach))
    return (mid[0], mid[1], mid[2], end[0], end[1], end[2])


@kernel
def side_of(pole: V3, axis: V3) -> V3:
    """Unit direction at a right angle to the unit ``axis``, on the side of ``pole``.

    A pole along the axis, or of no length, says nothing: some right angle is taken.
    """
    return unit_or(reject(unit_or(pole, axis), axis), any_normal(axis))
