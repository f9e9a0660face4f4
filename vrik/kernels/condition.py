"""Per-device memory: hold what is lost, let go of it slowly, take it back without a jump, cut glitches."""

import math

from vrik.arrays import Bools, Floats, Ints, Points, Quats
from vrik.jit import entry, kernel
from vrik.kernels.quat import carry, load4, qdot, qmul, qnear, qslerp, qunit, store4
from vrik.kernels.vec import distance, load3, mix, store3

OK = 1
HELD = 2
LOST = 3
RETURNING = 4
FARTHEST_M = 1e7
"""A position beyond this is no position; squares of what is below stay far from overflow. [m]"""


@kernel
def usable(position: Points, rotation: Quats, valid: Bools, result: Ints, i: int) -> bool:
    """Whether device ``i`` gives a pose: valid, running, finite, and a quaternion of length one."""
    if not valid[i] or not (result[i] == 200 or result[i] == 201):
        return False
    p = load3(position, i)
    if not (abs(p[0]) < FARTHEST_M and abs(p[1]) < FARTHEST_M and abs(p[2]) < FARTHEST_M):
        return False  # not finite either
    q = load4(rotation, i)
    return abs(qdot(q, q) - 1.0) < 0.04


@kernel
def leave_out_far(
    position: Points,
    rotation: Quats,
    valid: Bools,
    result: Ints,
    head: int,
    reach_m: Floats,
    dt_s: float,
    max_speed_m_s: float,
    seen_position: Points,
    age_s: Floats,
    far: Ints,
) -> None:
    """Devices farther from the head than they can be worn are not valid, and counted in ``far`` (k,).

    ``head`` is the head's row, -1 without; ``reach_m`` (k,) inf for what is not worn. A head that is not
    tracked or that has just leapt says nothing about the others.
    """
    if head < 0 or not usable(position, rotation, valid, result, head):
        return
    at = load3(position, head)
    if math.isfinite(age_s[head]):
        step = distance(at, load3(seen_position, head))
        if step > max_speed_m_s * (dt_s + age_s[head]) + 0.01:
            return
    for i in range(len(valid)):
        if i != head and valid[i] and distance(load3(position, i), at) > reach_m[i]:
            valid[i] = False
            far[i] += 1


@kernel
def count_jumps(
    position: Points,
    rotation: Quats,
    valid: Bools,
    result: Ints,
    dt_s: float,
    max_speed_m_s: float,
    seen_position: Points,
    age_s: Floats,
    jumped: Bools,
) -> int:
    """Mark the devices that moved faster than any limb; returns how many steady devices did not.

    Measured from where the device itself was last believed to be, not from the pose blended towards it.
    """
    steady = 0
    for i in range(len(valid)):
        jumped[i] = False
        if math.isfinite(age_s[i]) and usable(position, rotation, valid, result, i):
            step = distance(load3(position, i), load3(seen_position, i))
            jumped[i] = step > max_speed_m_s * (dt_s + age_s[i]) + 0.01
            if not jumped[i]:
                steady += 1
    return steady


@entry
@kernel
def condition(
    position: Points,
    rotation: Quats,
    valid: Bools,
    result: Ints,
    dt_s: float,
    hold_s: float,
    fade_s: float,
    return_s: float,
    max_speed_m_s: float,
    max_glitch_s: float,
    head: int,
    reach_m: Floats,
    far: Ints,
    held_position: Points,
    held_rotation: Quats,
    seen_position: Points,
    from_position: Points,
    from_rotation: Quats,
    age_s: Floats,
    glitch_s: Floats,
    blend_s: Floats,
    blend_left_s: Floats,
    weight: Floats,
    state: Ints,
    jumped: Bools,
) -> None:
    """Advance the memory of all devices by one frame, in place.

    ``held_*`` (k, .) is the pose to use, ``weight`` (k,) how much, ``state`` (k,) a ``DeviceState``,
    ``age_s`` (k,) seconds since the device was tracked (inf: never). ``seen_position`` (k, 3) is where it
    really was then. ``from_*``, ``blend_*`` and ``glitch_s`` carry a return and a suspected jump over
    several frames. ``valid`` loses the devices that :func:`leave_out_far` finds.
    """
    leave_out_far(
        position, rotation, valid, result, head, reach_m, dt_s, max_speed_m_s, seen_position, age_s, far
    )
    steady = count_jumps(position, rotation, valid, result, dt_s, max_speed_m_s, seen_position, age_s, jumped)
    for i in range(len(valid)):
        good = usable(position, rotation, valid, result, i)
        if good and jumped[i] and steady > 0 and glitch_s[i] < max_glitch_s:
            glitch_s[i] += dt_s  # this device alone leapt: wait whether it comes back
            good = False
        elif good:
            glitch_s[i] = 0.0
        if not good:
            age_s[i] += dt_s
            if not math.isfinite(age_s[i]):
                continue
            blend_left_s[i] = 0.0
            past = age_s[i] - hold_s
            if past <= 0.0:
                state[i] = HELD
            else:
                state[i] = LOST
                weight[i] = max(0.0, 1.0 - past / fade_s) if fade_s > 0.0 else 0.0
            continue
        p = load3(position, i)
        q = qunit(load4(rotation, i))
        store3(seen_position, i, p)
        if not math.isfinite(age_s[i]):
            blend_left_s[i] = 0.0  # first sight: nothing to blend from
        elif age_s[i] > 0.0:
            store3(from_position, i, load3(held_position, i))
            store4(from_rotation, i, load4(held_rotation, i))
            blend_s[i] = min(return_s, age_s[i])  # a short gap needs only a short return
            blend_left_s[i] = blend_s[i]
        else:
            q = qnear(q, load4(held_rotation, i))
        age_s[i] = 0.0
        state[i] = OK
        if blend_left_s[i] > 0.0:
            blend_left_s[i] = max(0.0, blend_left_s[i] - dt_s)
            t = 1.0 - blend_left_s[i] / blend_s[i]
            if t < 1.0:
                state[i] = RETURNING
                p = mix(load3(from_position, i), p, t)
                q = qnear(qslerp(load4(from_rotation, i), q, t), load4(held_rotation, i))
            weight[i] = max(weight[i], t)
        else:
            weight[i] = 1.0
        store3(held_position, i, p)
        store4(held_rotation, i, q)


@entry
@kernel
def devices_to_bones(
    position: Points,
    rotation: Quats,
    weight: Floats,
    state: Ints,
    age_s: Floats,
    device_of_role: Ints,
    offset_position: Points,
    offset_rotation: Quats,
    bone_position: Points,
    bone_rotation: Quats,
    bone_weight: Floats,
    bone_state: Ints,
    bone_age_s: Floats,
) -> None:
    """``T_world_bone = T_world_device @ T_device_bone`` for each role that has a device (rows: roles)."""
    for r in range(len(device_of_role)):
        d = device_of_role[r]
        if d < 0:
            bone_weight[r] = 0.0
            bone_state[r] = 0
            bone_age_s[r] = math.inf
            continue
        bone_weight[r] = weight[d]
        bone_state[r] = state[d]
        bone_age_s[r] = age_s[d]
        q = load4(rotation, d)
        store3(bone_position, r, carry(q, load3(position, d), load3(offset_position, r)))
        store4(bone_rotation, r, qnear(qunit(qmul(q, load4(offset_rotation, r))), load4(bone_rotation, r)))


@entry
@kernel
def into_venue(venue_rotation: Floats, venue_position: Floats, position: Points, rotation: Quats) -> None:
    """``T_venue_device = T_venue_standing @ T_standing_device`` for all rows, in place."""
    turn = (venue_rotation[0], venue_rotation[1], venue_rotation[2], venue_rotation[3])
    shift = (venue_position[0], venue_position[1], venue_position[2])
    for i in range(len(position)):
        store3(position, i, carry(turn, shift, load3(position, i)))
        store4(rotation, i, qunit(qmul(turn, load4(rotation, i))))
