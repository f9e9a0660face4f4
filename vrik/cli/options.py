"""Flags that several commands share."""

from __future__ import annotations

import os
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from tyro.conf import UseAppendAction, arg

from vrik.errors import CalibrationError, UsageError

if TYPE_CHECKING:
    from vrik.frames import Calibration
    from vrik.sources.recording import RecordingSource

MOST = 1e6
"""No setting is larger than this, whatever its unit."""


Columns = Annotated[Path | None, arg(name="columns", metavar="MAP.toml")]
"""Names a mapping file for a table (``docs/generic-csv.md``)."""


@dataclass(frozen=True, slots=True)
class PersonOptions:
    """Who is in the recording."""

    height_m: Annotated[float | None, arg(name="height", metavar="METRES")] = None
    """Standing height. Measured when not given. [m]"""

    calibrate_s: Annotated[float | None, arg(name="calibrate-on", metavar="SECONDS")] = None
    """Measure the person on this much from the start; else on all of it. [s]"""

    role: Annotated[UseAppendAction[tuple[str, ...]], arg(metavar="SERIAL=ROLE")] = ()
    """What a device is worn as, for example --role LHR-1A2B3C4D=left_foot; an empty role leaves it out. May
    be given several times."""

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
        """Calibrate on a recording, with what the user said about it.

        Raises:
            UsageError: If that cannot be, or names a device that is not there.
            VrikError: As for :meth:`RecordingSource.calibrate`.
        """
        from calibration.stature import checked

        if self.calibrate_s is not None and not self.calibrate_s > 0.0:
            raise UsageError(f"--calibrate-on needs more than 0 seconds, not {self.calibrate_s:g}")
        if self.height_m is not None:
            try:
                checked(self.height_m)
            except CalibrationError as error:
                raise UsageError(f"--height {self.height_m:g}: {error}") from error
        roles, serials = self.roles(), [device.serial for device in source.recording.info.devices]
        for serial in roles:
            if serial not in serials:
                raise UsageError(f"--role names the device {serial!r}; there are {', '.join(serials)}")
        return source.calibrate(stature_m=self.height_m, seconds=self.calibrate_s, roles=roles)


def check_settings(settings: Any, prefix: str = "--") -> None:
    """Refuse settings that are no number, or negative where only a place may be.

    Raises:
        UsageError: Naming the flag.
    """
    for field in fields(settings):
        value, flag = getattr(settings, field.name), prefix + field.name.replace("_", "-")
        if is_dataclass(value):
            check_settings(value, f"{flag}.")
        elif isinstance(value, int | float) and not isinstance(value, bool):
            signed = flag.startswith("--space.")
            if not abs(value) <= MOST or (value < 0 and not signed):
                wanted = "a number" if signed else "0 or more"
                raise UsageError(f"{flag} {value:g} does not work; it must be {wanted}, up to {MOST:g}")


def plain_name(path: Path) -> str:
    """A file's name without its ending, for files made from it."""
    return path.name.removesuffix(path.suffix) or path.name


def plain_title(path: Path) -> str:
    """The same for people to read, also where the console's encoding is not that of the file system."""
    return os.fsencode(plain_name(path)).decode("utf-8", "replace")
