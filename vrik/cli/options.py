"""Flags that several commands share."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tyro.conf import arg

from vrik.errors import UsageError

if TYPE_CHECKING:
    from vrik.frames import Calibration
    from vrik.sources.recording import RecordingSource


@dataclass(frozen=True, slots=True)
class PersonOptions:
    """Who is in the recording."""

    height_m: Annotated[float | None, arg(name="height", metavar="METRES")] = None
    """Standing height. Measured when not given. [m]"""

    calibrate_s: Annotated[float | None, arg(name="calibrate-on", metavar="SECONDS")] = None
    """Measure the person on this much from the start; else on all of it. [s]"""

    role: Annotated[tuple[str, ...], arg(metavar="SERIAL=ROLE")] = ()
    """What a device is worn as, for example --role LHR-1A2B3C4D=left_foot; an empty role leaves it out."""

    def roles(self) -> dict[str, str]:
        """Serial number to role.

        Raises:
            UsageError: If a role is unknown or the equals sign is missing.
        """
        from vrik.frames import ROLES

        chosen: dict[str, str] = {}
        for pair in self.role:
            serial, sign, role = pair.rpartition("=")
            if not sign or not serial or (role and role not in ROLES):
                raise UsageError(
                    f"--role {pair!r} does not work: write SERIAL=ROLE with one of {', '.join(ROLES)}"
                )
            chosen[serial] = role
        return chosen

    def measure(self, source: RecordingSource) -> Calibration:
        """Calibrate on a recording, with what the user said about it."""
        if self.calibrate_s is not None and not self.calibrate_s > 0.0:
            raise UsageError(f"--calibrate-on needs more than 0 seconds, not {self.calibrate_s:g}")
        return source.calibrate(stature_m=self.height_m, seconds=self.calibrate_s, roles=self.roles())


def plain_name(path: Path) -> str:
    """A file's name without its ending, for titles and for files made from it."""
    return path.name.removesuffix(path.suffix) or path.name
