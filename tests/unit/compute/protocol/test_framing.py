"""Frames survive any cutting of the byte stream."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from compute.protocol.command import AllowCompaction, CreateDataflow, Hello
from compute.protocol.framing import Deframer, decode_commands, encode_message, frame
from mzlite.repr.ids import GlobalId
from tests.unit.compute.dataflows import index, over_index, peek, subscribe


@given(st.lists(st.binary(max_size=40), max_size=6), st.data())
def test_any_cut(payloads: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(map(frame, payloads))
    deframer = Deframer()
    out: list[bytes] = []
    at = 0
    while at < len(stream):
        size = data.draw(st.integers(1, len(stream) - at))
        out += deframer.feed(stream[at : at + size])
        at += size
    assert out == payloads


def test_commands_round_trip() -> None:
    commands = [
        Hello("x"),
        CreateDataflow(index("u5", as_of=3)),
        CreateDataflow(over_index("t6", "u5", 3, one_shot=True)),
        CreateDataflow(subscribe("t7")),
        AllowCompaction(GlobalId("u5"), None),
        peek("u5", "uuid", 2**64 - 1),
    ]
    assert decode_commands(encode_message(commands)) == commands
