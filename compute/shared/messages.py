"""Messages between the publisher (maintenance worker i) and the registry (interactive worker i).

A *trace* is one arrangement; it has a number. A *publication point* is one export, (id, incarnation); several points may
share a trace (re-exports). The incarnation is the position of the creating command in the stream, which both runtimes
count alike, so an id that is created again never meets the old point.
"""

from __future__ import annotations

import msgspec

from mzlite.repr.ids import GlobalId
from mzlite.repr.timestamp import Frontier, Timestamp


class BatchParcel(msgspec.Struct, frozen=True):
    """A batch the reader has not seen. inline: its bytes; None: the next descriptor is its segment of `size` bytes."""

    uid: int
    size: int
    inline: bytes | None = None


class TraceChanged(msgspec.Struct, frozen=True, tag="trace"):
    """The trace as it stands now: uids of both chains, oldest first; `batches` brings those that are new.

    A batch that no chain names any more is forgotten by the reader's registry (readers in flight keep theirs).
    """

    trace: int
    oks: tuple[int, ...]
    errs: tuple[int, ...]
    oks_upper: Frontier
    errs_upper: Frontier
    since: Timestamp
    batches: tuple[BatchParcel, ...] = ()


class Published(msgspec.Struct, frozen=True, tag="published"):
    """The point is backed by the trace from now on. The trace has been announced by a TraceChanged before."""

    id: GlobalId
    incarnation: int
    trace: int


class Unpublished(msgspec.Struct, frozen=True, tag="unpublished"):
    """The writer of the point is gone; its readers keep what they have. Nothing more is said about it."""

    id: GlobalId
    incarnation: int


class TraceDropped(msgspec.Struct, frozen=True, tag="trace_dropped"):
    """No point is backed by the trace any more; the number is not used again."""

    trace: int


class HoldMoved(msgspec.Struct, frozen=True, tag="hold"):
    """Reader to publisher: the least time the reader still needs of the point; None: it has let go of it for good."""

    id: GlobalId
    incarnation: int
    time: Frontier


class LogChanges(msgspec.Struct, frozen=True, tag="log"):
    """Reader to publisher: changes of one of its log relations (encoded updates, without a time)."""

    variant: str
    updates: bytes


PublisherMessage = TraceChanged | Published | Unpublished | TraceDropped
RegistryMessage = PublisherMessage | HoldMoved | LogChanges

encode_messages = msgspec.msgpack.Encoder().encode
decode_messages = msgspec.msgpack.Decoder(list[RegistryMessage]).decode
