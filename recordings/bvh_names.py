"""Finds the head, hands, hips and feet of a BVH skeleton by the names that programs give to joints.

Known: Sony mocopi, Mixamo, CMU and Biovision, VRM, SMPL, 3ds Max Biped, Poser. Capitals, separators and
prefixes ("mixamorig:", "Bip01 ", "m_avg_") do not matter.
"""

from __future__ import annotations

import re
from typing import TypeAlias

from vrik.arrays import Ints

Landmarks: TypeAlias = dict[str, int]
"""Name of a body part to the row of its joint; parts that were not found are missing."""

_MIDDLE = {
    "hips": ("hips", "pelvis", "hip", "root"),
    "head": ("head",),
}
_SIDED = {
    "hand": ("wrist", "hand"),  # SMPL has both: its "hand" is the fingers
    "foot": ("ankle", "foot"),  # likewise: its "foot" is the toes
    "upper_arm": ("upperarm", "uparm", "arm", "shldr", "shoulder"),
    "upper_leg": ("upperleg", "upleg", "thigh", "hip"),
}
_PREFIXES = {"mixamorig", "bip", "character", "j", "c", "m", "f", "avg", "rig", "def", "skeleton"}
_SIDES = {"l": "left", "left": "left", "r": "right", "right": "right"}
_TOKEN = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


def landmarks_of(names: tuple[str, ...], parents: Ints) -> Landmarks:
    """Rows of hips, head, and left_ and right_ hand, foot, upper_arm, upper_leg; the first of a name wins.

    Without a joint named after the hips, the root stands for them when it carries both legs.
    """
    table: dict[tuple[str, str], int] = {}
    for row, name in enumerate(names):
        table.setdefault(_side_and_base(name), row)
    found: Landmarks = {}
    for part, bases in _MIDDLE.items():
        row_of = next((table["", b] for b in bases if ("", b) in table), None)
        if row_of is not None:
            found[part] = row_of
    for side in ("left", "right"):
        for part, bases in _SIDED.items():
            row_of = next((table[side, b] for b in bases if (side, b) in table), None)
            if row_of is not None:
                found[f"{side}_{part}"] = row_of
    legs = [found.get("left_upper_leg"), found.get("right_upper_leg")]
    if "hips" not in found and None not in legs and all(parents[leg] == 0 for leg in legs):
        found["hips"] = 0
    return found


def _side_and_base(name: str) -> tuple[str, str]:
    """("left", "uparm") for "l_up_arm", "LeftUpArm", "mixamorig:LeftUpArm" or "Bip01 L UpArm"."""
    tokens = [t.lower() for t in _TOKEN.findall(name.rsplit(":", 1)[-1])]
    while tokens and tokens[0] in _PREFIXES:
        tokens.pop(0)
        while tokens and tokens[0].isdigit():
            tokens.pop(0)
    side = ""
    rest: list[str] = []
    for token in tokens:
        glued = re.fullmatch(r"(left|right)(.+)", token)
        if not side and token in _SIDES:
            side = _SIDES[token]
        elif not side and glued:
            side, token = glued[1], glued[2]
            rest.append(token)
        else:
            rest.append(token)
    return side, "".join(rest)
