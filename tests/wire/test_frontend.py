"""The decoder: any cut of the byte stream gives the same messages; garbage ends in a protocol error, never in another."""

from __future__ import annotations

import itertools
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mzlite.pgwire import frontend as f
from mzlite.repr.errors import SqlError


def tagged(tag: bytes, body: bytes = b"") -> bytes:
    return tag + struct.pack("!i", len(body) + 4) + body


def bind(portal: bytes, statement: bytes, params: list[bytes | None], formats: list[int]) -> bytes:
    body = portal + b"\0" + statement + b"\0" + struct.pack("!h", 0) + struct.pack("!h", len(params))
    for p in params:
        body += struct.pack("!i", -1) if p is None else struct.pack("!i", len(p)) + p
    return tagged(b"B", body + struct.pack(f"!h{len(formats)}h", len(formats), *formats))


STREAM = (
    f.encode_startup({"user": "ann", "database": "d"})
    + tagged(b"Q", b"select 1\0")
    + tagged(b"P", b"s\0select $1\0" + struct.pack("!hI", 1, 23))
    + bind(b"", b"s", [b"7", None, b""], [0, 1])
    + tagged(b"D", b"Ps\0")
    + tagged(b"E", b"\0" + struct.pack("!i", 5))
    + tagged(b"C", b"Ss\0")
    + tagged(b"d", b"1\t2\n")
    + tagged(b"c")
    + tagged(b"f", b"stop\0")
    + tagged(b"H")
    + tagged(b"S")
    + tagged(b"X")
)
MESSAGES = [
    f.Startup({"user": "ann", "database": "d"}),
    f.Query("select 1"),
    f.Parse("s", "select $1", (23,)),
    f.Bind("", "s", (), (b"7", None, b""), (0, 1)),
    f.Describe("P", "s"),
    f.Execute("", 5),
    f.Close("S", "s"),
    f.CopyData(b"1\t2\n"),
    f.CopyDone(),
    f.CopyFail("stop"),
    f.Flush(),
    f.Sync(),
    f.Terminate(),
]


def test_messages_of_a_session() -> None:
    assert f.FrontendDecoder().feed(STREAM) == MESSAGES


@given(st.lists(st.integers(0, len(STREAM)), max_size=12))
def test_any_cut_gives_the_same_messages(cuts: list[int]) -> None:
    decoder = f.FrontendDecoder()
    out = []
    edges = [0, *sorted(cuts), len(STREAM)]
    for start, stop in itertools.pairwise(edges):
        out += decoder.feed(STREAM[start:stop])
    assert out == MESSAGES


@given(st.binary(max_size=200))
def test_garbage_is_a_protocol_error_or_waits_for_more(data: bytes) -> None:
    decoder = f.FrontendDecoder()
    decoder.feed(f.encode_startup({"user": "u"}))
    try:
        for message in decoder.feed(data):
            assert isinstance(message, SqlError) or type(message).__module__ == f.__name__
    except SqlError as error:
        assert error.sqlstate in ("08P01", "22021")


@given(st.binary(max_size=64))
def test_garbage_instead_of_a_startup_packet(data: bytes) -> None:
    try:
        f.FrontendDecoder().feed(data)
    except SqlError as error:
        assert error.sqlstate in ("08P01", "0A000", "22021")


def test_length_is_bounded_before_anything_is_buffered() -> None:
    decoder = f.FrontendDecoder()
    decoder.feed(f.encode_startup({"user": "u"}))
    with pytest.raises(SqlError, match="invalid message length"):
        decoder.feed(b"Q" + struct.pack("!i", 2**31 - 1))


def test_text_that_is_not_utf8_is_an_error_of_that_message_only() -> None:
    decoder = f.FrontendDecoder()
    decoder.feed(f.encode_startup({"user": "u"}))
    bad, good = decoder.feed(tagged(b"P", b"\0select '\xff'\0\0\0") + tagged(b"S"))
    assert isinstance(bad, SqlError) and bad.sqlstate == "22021"
    assert good == f.Sync()
    # A simple query brings its own Sync: it must be answered by ReadyForQuery.
    assert [type(m) for m in decoder.feed(tagged(b"Q", b"select '\xff'\0"))] == [SqlError, f.Sync]


def test_probes_before_startup() -> None:
    decoder = f.FrontendDecoder()
    probes = struct.pack("!ii", 8, f.GSSENC_REQUEST) + struct.pack("!ii", 8, f.SSL_REQUEST)
    assert decoder.feed(probes) == [f.GssEncRequest(), f.SslRequest()]
    cancel = struct.pack("!iiiI", 16, f.CANCEL_REQUEST, 7, 9)
    assert decoder.feed(cancel) == [f.CancelRequest(7, 9)]
