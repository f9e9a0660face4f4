"""Targets as URLs."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from vrik.errors import UsageError
from vrik.sinks.url import DEFAULT_MTU, DEFAULT_RATE_HZ, Target, parse_target


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("vmc://127.0.0.1:39539", Target("vmc", "127.0.0.1", 39539, DEFAULT_RATE_HZ, DEFAULT_MTU)),
        ("vmc://localhost:39540/", Target("vmc", "localhost", 39540)),
        ("vmc://my-pc.local:1?rate=60", Target("vmc", "my-pc.local", 1, 60.0)),
        ("vmc://h:65535?mtu=600&rate=59.94", Target("vmc", "h", 65535, 59.94, 600)),
        ("vmc://h:1/?rate=200&mtu=65507", Target("vmc", "h", 1, 200.0, 65507)),
        ("vmc://[::1]:39539?rate=1&mtu=256", Target("vmc", "::1", 39539, 1.0, 256)),
        ("vmc://[fe80::1%eth0]:39539", Target("vmc", "fe80::1%eth0", 39539)),
        ("vmc://vr-büro:39539", Target("vmc", "vr-büro", 39539)),
    ],
)
def test_a_right_url_is_read(url: str, expected: Target) -> None:
    assert parse_target(url) == expected


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("", "does not begin with a kind of stream"),
        ("127.0.0.1:39539", "does not begin with a kind of stream"),
        ("vmc:127.0.0.1:39539", "does not begin with a kind of stream"),
        ("vmx://127.0.0.1:39539", "'vmx' is unknown, known: vmc"),
        ("VMC ://h:1", "holds a space"),
        ("vmc://h :1", "holds a space"),
        ("vmc://h:1\n", "unprintable"),
        ("vmc://", "has no host"),
        ("vmc://:39539", "has no host"),
        ("vmc://127.0.0.1", "has no port"),
        ("vmc://127.0.0.1:", "has no port"),
        ("vmc://[::1]", "has no port"),
        ("vmc://h:0", "port '0'"),
        ("vmc://h:65536", "port '65536'"),
        ("vmc://h:-1", "port '-1'"),
        ("vmc://h:39539a", "port '39539a'"),
        ("vmc://h:٣", "port '٣'"),
        ("vmc://::1:39539", r"write an IPv6 address in \[brackets\]"),
        ("vmc://[::1:39539", "no IPv6 address"),
        ("vmc://[host]:39539", "no IPv6 address"),
        ("vmc://[::1]39539", "must follow the closing bracket"),
        ("vmc://me@h:39539", "'me@h' is no host name"),
        ("vmc://h:39539/avatar", "may follow the port"),
        ("vmc://h:39539#x", "may follow the port"),
        ("vmc://h:39539?speed=2", "option 'speed' is unknown, known: rate, mtu"),
        ("vmc://h:39539?", None),
        ("vmc://h:39539?rate", "rate has no value"),
        ("vmc://h:39539?rate=", "rate has no value"),
        ("vmc://h:39539?rate=60&", "option '' is unknown"),
        ("vmc://h:39539?rate=60&rate=60", "rate is given twice"),
        ("vmc://h:39539?rate=fast", "rate must be a number from 1 to 200"),
        ("vmc://h:39539?rate=nan", "rate must be a number"),
        ("vmc://h:39539?rate=0", "rate must be a number"),
        ("vmc://h:39539?rate=201", "rate must be a number"),
        ("vmc://h:39539?rate=1e2", "rate must be a number"),
        ("vmc://h:39539?mtu=255", "mtu must be a whole number from 256 to 65507 bytes, not '255'"),
        ("vmc://h:39539?mtu=65508", "mtu must be a whole number"),
        ("vmc://h:39539?mtu=1400.5", "mtu must be a whole number"),
    ],
)
def test_a_wrong_url_gets_a_sentence_that_says_what_to_write(url: str, reason: str | None) -> None:
    if reason is None:
        assert parse_target(url) == Target("vmc", "h", 39539)
        return

    with pytest.raises(UsageError, match=reason) as caught:
        parse_target(url)

    assert str(caught.value).endswith("Write it like vmc://127.0.0.1:39539")
    assert "\n" not in str(caught.value)


@settings(max_examples=300, deadline=None)
@given(
    st.one_of(
        st.text(),
        st.text().map("vmc://".__add__),
        st.from_regex(r"vmc://[\[a-z0-9:.%\]]{0,12}:[0-9]{0,6}(\?[a-z0-9=&.]{0,20})?"),
    )
)
@example("vmc://[::1%]:1")
@example("vmc://h:" + "9" * 5000)
def test_any_text_is_either_a_target_or_a_usage_error(url: str) -> None:
    try:
        target = parse_target(url)
    except UsageError:
        return

    assert target.host
    assert 1 <= target.port <= 65535
    assert 1.0 <= target.rate_hz <= 200.0
    assert parse_target(target.url) == Target("vmc", target.host, target.port)


def test_checking_a_url_imports_nothing_heavy() -> None:
    """The command line checks its URLs before anything slow is loaded."""
    program = (
        "import sys; from vrik.sinks import parse_target; parse_target('vmc://h:1');"
        "sys.exit(any(m in sys.modules for m in ('numpy', 'numba', 'scipy', 'pythonosc')))"
    )

    assert subprocess.run([sys.executable, "-c", program], timeout=60).returncode == 0
