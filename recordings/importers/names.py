"""Roles behind the names that programs give to head and hands."""

from __future__ import annotations

import re

_NAMES = {
    "head": ("head", "hmd", "headset", "camera", "centereye"),
    "left_hand": ("left", "lhand", "lefthand", "handleft", "leftcontroller", "controllerleft"),
    "right_hand": ("right", "rhand", "righthand", "handright", "rightcontroller", "controllerright"),
}
_ROLES = {name: role for role, names in _NAMES.items() for name in names}


def role_of_name(name: str) -> str:
    """The role that a name states; "" when it states none. Case, blanks and marks play no part."""
    return _ROLES.get(re.sub(r"[^a-z]", "", name.lower()), "")
