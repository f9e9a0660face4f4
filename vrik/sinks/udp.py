"""One UDP socket for the life of a stream: connected, never blocking, faults counted."""

from __future__ import annotations

import contextlib
import errno
import socket

from vrik.errors import NetworkError

_FULL = {errno.EAGAIN, errno.EWOULDBLOCK, errno.ENOBUFS}
_REFUSED = (ConnectionRefusedError, ConnectionResetError)
"""Linux and macOS report the first, Windows the second, when nothing listens on the port."""

CALM = 30
"""After this many datagrams in a row without a refusal somebody listens again."""


class UdpSender:
    """Sends datagrams to one address and counts what becomes of them.

    The host is resolved once, and the socket keeps its own port: some receivers take a new port for a
    new sender. An IPv4 address is taken if the host has one, for most receivers listen on IPv4 only
    (also for "localhost", which some systems resolve to ::1 first).

    Args:
        host: Name or address.
        port: 1 to 65535.

    Raises:
        NetworkError: If the host is unknown or none of its addresses can be reached from here.
    """

    def __init__(self, host: str, port: int) -> None:
        self.datagrams = 0
        self.bytes = 0
        self.refused = 0
        self.full = 0
        self.too_big = 0
        self.other = 0
        self.last_error = ""
        self._since_refusal = CALM
        self._socket, self.address = _connect(host, port)

    def send(self, datagram: bytes | memoryview) -> None:
        """Send, or count why not. Never blocks, never raises for a network fault."""
        try:
            try:
                sent = self._socket.send(datagram)
            except _REFUSED as error:
                # It is an earlier datagram that came back; this one has not been tried yet.
                self._count(error)
                sent = self._socket.send(datagram)
        except OSError as error:
            self._count(error)
        else:
            self.datagrams += 1
            self.bytes += sent
            self._since_refusal += 1

    @property
    def refusing(self) -> bool:
        """Whether datagrams are coming back at present, because nothing listens on the port."""
        return self._since_refusal < CALM

    def close(self) -> None:
        """Close the socket; twice is harmless."""
        self._socket.close()

    def _count(self, error: OSError) -> None:
        if isinstance(error, _REFUSED):
            self.refused += 1
            self._since_refusal = 0
        elif error.errno in _FULL:
            self.full += 1
        elif error.errno == errno.EMSGSIZE:
            self.too_big += 1
        else:
            self.other += 1
        self.last_error = error.strerror or str(error)


def _connect(host: str, port: int) -> tuple[socket.socket, str]:
    """A connected socket, and its address in words; IPv4 first."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or "no such name"
        raise NetworkError(
            f"cannot find the host {host!r} ({reason}). Check the spelling, or write its IP address"
        ) from error
    reason = "no address"
    for family, kind, protocol, _, address in sorted(found, key=lambda entry: entry[0] != socket.AF_INET):
        with contextlib.suppress(OSError):
            opened = socket.socket(family, kind, protocol)
            try:
                opened.setblocking(False)
                opened.connect(address)
            except OSError as error:
                reason = error.strerror or str(error)
                opened.close()
                continue
            numeric = str(address[0])
            return opened, f"[{numeric}]:{port}" if ":" in numeric else f"{numeric}:{port}"
    raise NetworkError(
        f"cannot send to {host!r}, port {port} ({reason}). Check that this computer is in the same network"
    )
