"""Targets as URLs: ``vmc://HOST:PORT?rate=60&mtu=1400``. Imports nothing heavy."""

from __future__ import annotations

import re
from dataclasses import dataclass

from vrik.errors import UsageError

SCHEMES = ("vmc",)
"""The kinds of stream there are."""

EXAMPLE = "vmc://127.0.0.1:39539"

DEFAULT_RATE_HZ = 120.0
LEAST_RATE_HZ = 1.0
MOST_RATE_HZ = 200.0
"""Some avatar programs crash above this. Source: SlimeVR-Server, VMCHandler.kt."""

DEFAULT_MTU = 1400
"""Fits into one Ethernet frame with room for a tunnel's headers. [bytes]"""

LEAST_MTU = 256
"""Room for the longest message with a device name of 150 letters. [bytes]"""

MOST_MTU = 65507
"""The most UDP over IPv4 can carry. [bytes]"""

_NUMBER = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?")
_WHOLE = re.compile(r"[0-9]{1,9}")


@dataclass(frozen=True, slots=True)
class Target:
    """Where a stream goes.

    Args:
        scheme: One of ``SCHEMES``.
        host: Name or address, without the brackets of an IPv6 one.
        port: 1 to 65535.
        rate_hz: Most frames a second; the rest is left out. [Hz]
        mtu: Longest datagram, without the headers of IP and UDP. [bytes]
    """

    scheme: str
    host: str
    port: int
    rate_hz: float = DEFAULT_RATE_HZ
    mtu: int = DEFAULT_MTU

    @property
    def url(self) -> str:
        """The URL again, without options."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"


def parse_target(url: str) -> Target:
    """Read a target's URL.

    Raises:
        UsageError: With one sentence that says what is wrong and shows a right one.
    """
    if not url.isprintable() or " " in url:
        raise _wrong(url, "it holds a space or an unprintable character")
    scheme, separator, rest = url.partition("://")
    if not separator:
        raise _wrong(url, "it does not begin with a kind of stream such as vmc://")
    if scheme not in SCHEMES:
        raise _wrong(url, f"the kind of stream {scheme!r} is unknown, known: {', '.join(SCHEMES)}")
    rest, _, query = rest.partition("?")
    if "#" in rest + query or "/" in rest.removesuffix("/"):
        raise _wrong(url, "only ?rate= and ?mtu= may follow the port")
    host, port = _host_and_port(url, rest.removesuffix("/"))
    options = _options(url, query)
    return Target(
        scheme,
        host,
        port,
        _number(url, "rate", options.get("rate"), DEFAULT_RATE_HZ, LEAST_RATE_HZ, MOST_RATE_HZ),
        int(_number(url, "mtu", options.get("mtu"), DEFAULT_MTU, LEAST_MTU, MOST_MTU)),
    )


def _host_and_port(url: str, place: str) -> tuple[str, int]:
    if place.startswith("["):
        host, closing, after = place[1:].partition("]")
        if not closing or not re.fullmatch(r"[0-9A-Fa-f:.]+(%[0-9A-Za-z_.-]+)?", host) or ":" not in host:
            raise _wrong(url, "the part in [brackets] is no IPv6 address")
        if after and not after.startswith(":"):
            raise _wrong(url, "a colon and the port must follow the closing bracket")
        port = after[1:]
    else:
        host, _, port = place.partition(":")
        if ":" in port:
            raise _wrong(url, "it has too many colons; write an IPv6 address in [brackets]")
    if not host:
        raise _wrong(url, "it has no host")
    if re.search(r"[@\[\]\\%]", host) and not place.startswith("["):
        raise _wrong(url, f"{host!r} is no host name")
    if not port:
        raise _wrong(url, "it has no port; avatar programs usually listen on 39539 or 39540")
    if not _WHOLE.fullmatch(port) or not 1 <= int(port) <= 65535:
        raise _wrong(url, f"the port {port!r} is not a number from 1 to 65535")
    return host, int(port)


def _options(url: str, query: str) -> dict[str, str]:
    options: dict[str, str] = {}
    for part in query.split("&") if query else ():
        name, separator, value = part.partition("=")
        if name not in ("rate", "mtu"):
            raise _wrong(url, f"the option {name!r} is unknown, known: rate, mtu")
        if not separator or not value:
            raise _wrong(url, f"the option {name} has no value")
        if name in options:
            raise _wrong(url, f"the option {name} is given twice")
        options[name] = value
    return options


def _number(url: str, name: str, text: str | None, default: float, least: float, most: float) -> float:
    if text is None:
        return default
    pattern, kind = (_WHOLE, "a whole number") if name == "mtu" else (_NUMBER, "a number")
    if not pattern.fullmatch(text) or not least <= float(text) <= most:
        unit = "bytes" if name == "mtu" else "frames a second"
        raise _wrong(url, f"{name} must be {kind} from {least:g} to {most:g} {unit}, not {text!r}")
    return float(text)


def _wrong(url: str, reason: str) -> UsageError:
    shown = url if len(url) <= 80 else url[:77] + "..."
    return UsageError(f"cannot send to {shown!r}: {reason}. Write it like {EXAMPLE}")
