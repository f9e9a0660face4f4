"""The UDP sender on real loopback sockets."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterator

import pytest

from vrik.errors import NetworkError
from vrik.sinks import udp
from vrik.sinks.udp import UdpSender


@pytest.fixture
def receiver() -> Iterator[socket.socket]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as opened:
        opened.bind(("127.0.0.1", 0))
        opened.settimeout(5.0)
        yield opened


def test_a_datagram_arrives_and_is_counted(receiver: socket.socket) -> None:
    sender = UdpSender("127.0.0.1", receiver.getsockname()[1])

    sender.send(b"12345678")
    sender.send(memoryview(b"abcd"))

    assert [receiver.recv(100), receiver.recv(100)] == [b"12345678", b"abcd"]
    assert (sender.datagrams, sender.bytes) == (2, 12)
    sender.close()


def test_localhost_is_the_ipv4_receiver(receiver: socket.socket) -> None:
    """C06: 'localhost' became ::1 elsewhere while the receiver listened on 127.0.0.1, and all was lost."""
    port = receiver.getsockname()[1]
    sender = UdpSender("localhost", port)

    sender.send(b"here")

    assert receiver.recv(100) == b"here"
    assert sender.address == f"127.0.0.1:{port}"
    sender.close()


def test_ipv4_is_taken_even_if_the_system_lists_ipv6_first(
    receiver: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = receiver.getsockname()[1]
    found = [
        (socket.AF_INET6, socket.SOCK_DGRAM, 17, "", ("::1", port, 0, 0)),
        (socket.AF_INET, socket.SOCK_DGRAM, 17, "", ("127.0.0.1", port)),
    ]
    monkeypatch.setattr(udp.socket, "getaddrinfo", lambda *_, **__: found)

    sender = UdpSender("localhost", port)

    assert sender.address == f"127.0.0.1:{port}"
    sender.close()


def test_an_ipv6_receiver_is_reached_by_its_address() -> None:
    """C06, the other way: whoever listens on ::1 only is named by that address."""
    try:
        opened = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
        opened.bind(("::1", 0))
    except OSError:
        pytest.skip("this computer has no IPv6")
    with opened:
        opened.settimeout(5.0)
        port = opened.getsockname()[1]
        sender = UdpSender("::1", port)

        sender.send(b"six")

        assert opened.recv(100) == b"six"
        assert sender.address == f"[::1]:{port}"
        sender.close()


def test_the_source_port_stays_the_same(receiver: socket.socket) -> None:
    """Godot's receiver takes a datagram from a new port for a new performer."""
    sender = UdpSender("127.0.0.1", receiver.getsockname()[1])

    for _ in range(3):
        sender.send(b"x")

    assert len({receiver.recvfrom(10)[1] for _ in range(3)}) == 1
    sender.close()


class FailingSocket:
    """Answers each send with the next error."""

    def __init__(self, *errors: OSError) -> None:
        self.errors = list(errors)
        self.calls = 0

    def send(self, datagram: bytes) -> int:
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)
        return len(datagram)

    def close(self) -> None:
        pass


def oserror(code: int) -> OSError:
    return OSError(code, errno.errorcode[code])


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (errno.EAGAIN, "full"),
        (errno.ENOBUFS, "full"),
        (errno.EMSGSIZE, "too_big"),
        (errno.ENETUNREACH, "other"),
        (errno.EPERM, "other"),
        (errno.EBADF, "other"),
    ],
)
def test_a_network_fault_is_counted_by_kind_and_not_raised(
    receiver: socket.socket, code: int, kind: str
) -> None:
    sender = UdpSender("127.0.0.1", receiver.getsockname()[1])
    sender.close()
    sender._socket = FailingSocket(oserror(code))  # type: ignore[assignment]

    sender.send(b"lost")
    sender.send(b"sent")

    counts = {name: getattr(sender, name) for name in ("refused", "full", "too_big", "other")}
    assert counts == {"refused": 0, "full": 0, "too_big": 0, "other": 0} | {kind: 1}
    assert sender.datagrams == 1
    assert sender.last_error == errno.errorcode[code]


@pytest.mark.parametrize("code", [errno.ECONNREFUSED, errno.ECONNRESET])
def test_a_refusal_belongs_to_an_earlier_datagram_so_this_one_is_sent_again(
    receiver: socket.socket, code: int
) -> None:
    """Otherwise the first datagram after a receiver has opened would be lost."""
    sender = UdpSender("127.0.0.1", receiver.getsockname()[1])
    sender.close()
    fake = FailingSocket(oserror(code))
    sender._socket = fake  # type: ignore[assignment]

    sender.send(b"again")

    assert (sender.refused, sender.datagrams, fake.calls) == (1, 1, 2)


def test_a_datagram_longer_than_udp_allows_is_counted(receiver: socket.socket) -> None:
    sender = UdpSender("127.0.0.1", receiver.getsockname()[1])

    sender.send(bytes(70_000))

    assert (sender.too_big, sender.datagrams) == (1, 0)
    sender.close()


def test_sending_after_close_is_counted_and_closing_twice_is_harmless(receiver: socket.socket) -> None:
    sender = UdpSender("127.0.0.1", receiver.getsockname()[1])
    sender.close()
    sender.close()

    sender.send(b"x")

    assert sender.other == 1


@pytest.mark.parametrize("host", ["no-such-host.invalid", "a..b", "x" * 70 + ".invalid"])
def test_an_unknown_host_gets_one_sentence(host: str) -> None:
    with pytest.raises(NetworkError, match=r"cannot find the host .* Check the spelling") as caught:
        UdpSender(host, 39539)

    assert "\n" not in str(caught.value)


def test_a_host_without_a_reachable_address_gets_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket.socket, "connect", _unreachable)

    with pytest.raises(NetworkError, match=r"cannot send to '127.0.0.1', port 9 .*ENETUNREACH"):
        UdpSender("127.0.0.1", 9)


def _unreachable(*_: object) -> None:
    raise oserror(errno.ENETUNREACH)
