"""OSC messages and frame templates, against python-osc and the specification."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pythonosc.osc_bundle_builder import IMMEDIATELY, OscBundleBuilder
from pythonosc.osc_message_builder import OscMessageBuilder
from pythonosc.osc_packet import OscPacket

from vrik.osc import FrameTemplate, Message

texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)
# python-osc writes -2**31 as a 64-bit int, which needs no more than 32.
arguments = st.one_of(texts, st.integers(-(2**31) + 1, 2**31 - 1), st.floats(width=32), st.booleans())
messages = st.builds(Message, st.from_regex(r"(/[a-zA-Z0-9]{1,9}){1,3}", fullmatch=True),
                     st.lists(arguments, max_size=9).map(tuple))  # fmt: skip


def by_python_osc(message: Message):
    builder = OscMessageBuilder(message.address)
    for argument in message.arguments:
        builder.add_arg(argument)
    return builder.build()


@settings(max_examples=150, deadline=None)
@given(messages)
def test_a_message_has_the_bytes_of_python_osc(message: Message) -> None:
    assert message.encode() == by_python_osc(message).dgram


@settings(max_examples=60, deadline=None)
@given(st.lists(messages, min_size=1, max_size=12), st.integers(400, 1400))
def test_datagrams_are_short_enough_and_keep_every_message_in_order(parts: list[Message], mtu: int) -> None:
    template = FrameTemplate([parts], mtu)

    found = [m.message.dgram for d in template.datagrams for m in OscPacket(bytes(d)).messages]
    assert all(len(d) <= mtu for d in template.datagrams)
    assert found == [m.encode() for m in parts]


def test_a_message_without_arguments_still_has_its_comma() -> None:
    """uOSC fails without it."""
    expected = "2f564d432f4578742f426c656e642f4170706c79000000002c000000"

    assert Message("/VMC/Ext/Blend/Apply").encode().hex() == expected


def test_bools_ints_and_floats_keep_their_types(shared: Path) -> None:
    """C12: True went out as an integer elsewhere."""
    lines = (shared / "data/cases/c12_bools_and_ints.hex").read_text().splitlines()
    expected = next(line for line in lines if line and not line.startswith("#"))

    assert Message("/v", (0, 1, 2, 0.0, 1.0, True, False)).encode().hex() == expected.strip()


def test_numbers_written_into_a_template_are_in_its_datagrams() -> None:
    template = FrameTemplate([[Message("/a", ("name", 0.0, 0, 0.0)), Message("/b", (0.0,))]], 1400)

    first, count, second = template.slots[0]
    template.floats[first] = 1.5
    template.ints[count] = -7
    template.floats[second] = np.pi
    template.floats[template.slots[1][0]] = -0.25

    builder = OscBundleBuilder(IMMEDIATELY)
    for message in (Message("/a", ("name", 1.5, -7, float(np.float32(np.pi)))), Message("/b", (-0.25,))):
        builder.add_content(by_python_osc(message))
    assert [bytes(d) for d in template.datagrams] == [builder.build().dgram]


def test_each_part_begins_a_datagram() -> None:
    template = FrameTemplate([[Message("/a")], [], [Message("/b"), Message("/c")]], 1400)

    names = [[m.message.address for m in OscPacket(bytes(d)).messages] for d in template.datagrams]
    assert names == [["/a"], ["/b", "/c"]]


def test_datagrams_cannot_be_written_by_their_reader() -> None:
    (datagram,) = FrameTemplate([[Message("/a")]], 1400).datagrams

    with pytest.raises(TypeError):
        datagram[0] = 0


def test_a_message_fits_exactly_or_not_at_all() -> None:
    message = Message("/abc", (1.0,))
    least = 16 + 4 + len(message.encode())

    assert len(FrameTemplate([[message]], least).datagrams[0]) == least
    with pytest.raises(ValueError, match="/abc needs 36 bytes"):
        FrameTemplate([[message]], least - 1)


@pytest.mark.parametrize("address", ["", "a", "/a b", "/a*", "/a?", "/a[1]", "/{a}", "/a,b", "/a#", "/a\0"])
def test_an_address_that_is_none_is_refused(address: str) -> None:
    with pytest.raises(ValueError, match="no OSC address"):
        Message(address)


@pytest.mark.parametrize("argument", ["a\0b", 2**31, -(2**31) - 1, 1e39])
def test_an_argument_that_cannot_be_written_is_refused(argument: object) -> None:
    with pytest.raises(ValueError, match=r"NUL|32 bits"):
        Message("/a", (argument,))


def test_an_argument_of_another_type_is_refused() -> None:
    """A list would become an OSC array, which uOSC cannot read."""
    for argument in (np.float32(1.0), [1.0], None, b"x"):
        with pytest.raises(TypeError, match="str, int, float or bool"):
            Message("/a", (argument,))


def test_text_that_utf8_cannot_hold_becomes_question_marks() -> None:
    """A file name with a broken byte must not stop a stream."""
    assert Message("/a", ("x\udcff",)).encode() == Message("/a", ("x?",)).encode()
