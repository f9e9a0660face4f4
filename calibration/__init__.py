"""Who wears what, how tall they are, and how their devices sit: from device poses to a calibrated person.

``calibrate`` (in ``person``) does it all; the modules behind it are ``samples`` (poses made safe), ``roles``
and ``parts`` (which device is worn where), ``stature``, ``tpose``, ``proportions`` (lengths), ``mounting``
(usual places of devices) and ``offsets`` (places that were seen).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from calibration.mounting import nominal
    from calibration.person import calibrate
    from calibration.proportions import body_from
    from calibration.roles import Assignment, assign
    from calibration.samples import Samples
    from calibration.stature import Stature

_HOME = {
    "calibrate": "person",
    "nominal": "mounting",
    "body_from": "proportions",
    "Assignment": "roles",
    "assign": "roles",
    "Samples": "samples",
    "Stature": "stature",
}

__all__ = ["Assignment", "Samples", "Stature", "assign", "body_from", "calibrate", "nominal"]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"calibration.{_HOME[name]}"), name)
    raise AttributeError(f"module 'calibration' has no attribute '{name}'")
