"""Payloads of Status responses: what a worker says about itself to tests and metrics."""

from __future__ import annotations

import msgspec


class Rendered(msgspec.Struct, frozen=True):
    """A runtime built a dataflow: the proof of placement. role: a `placement.Role` value."""

    role: str
    worker: int
    exports: tuple[str, ...]


class Gauges(msgspec.Struct, frozen=True):
    """hold_gap_ms, held_count: how far readers hold published traces back (maintenance only). leftovers: what is alive."""

    role: str
    worker: int
    hold_gap_ms: int
    held_count: int
    leftovers: dict[str, int]


encode_report = msgspec.msgpack.Encoder().encode
decode_rendered = msgspec.msgpack.Decoder(Rendered).decode
decode_gauges = msgspec.msgpack.Decoder(Gauges).decode
