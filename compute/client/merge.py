"""PartitionedState: one response out of the answers of a runtime's N workers.

Frontiers: the least over workers, passed on when it moves. Peek: waits for every worker; Canceled beats Error beats
rows, which are concatenated. Subscribe: stashed until the joint frontier moves. With one worker everything passes
through verbatim. Source: Materialize's PartitionedComputeState.
"""

from __future__ import annotations

import msgspec

from compute.protocol.response import (
    ComputeResponse,
    Frontiers,
    PeekCanceled,
    PeekError,
    PeekResponse,
    PeekRows,
    Status,
    SubscribeBatch,
    SubscribeDropped,
)
from mzlite.repr.encode import decode_updates, encode_updates
from mzlite.repr.ids import GlobalId
from mzlite.repr.timestamp import Frontier, frontier_le, meet
from mzlite.repr.updates import concat_updates

_UNKNOWN: Frontier = 0


class PartitionedState:
    """Merges the responses of `parts` workers that have seen the same commands.

    Invariants:
    1. a worker answers a peek once: a second answer is a bug of the worker;
    2. a merged frontier is the least of the workers', and never regresses.
    """

    def __init__(self, parts: int, nonce: str | None = None) -> None:
        """nonce: of the connection; a worker's responses count from its echo of it on (None: from the start)."""
        self.parts = parts
        self._unheard = set(range(parts)) if nonce is not None else set()
        self._nonce = nonce.encode() if nonce is not None else b""
        self._frontiers: dict[GlobalId, list[Frontiers | None]] = {}
        self._merged: dict[GlobalId, Frontiers] = {}
        self._peeks: dict[str, list[PeekResponse | None]] = {}
        self._subscribes: dict[GlobalId, _Subscribe] = {}

    def absorb(self, shard: int, response: ComputeResponse) -> ComputeResponse | None:
        """The merged response that this one completes, if any."""
        if self._unheard and shard in self._unheard:
            if isinstance(response, Status) and response.kind == "hello" and response.payload == self._nonce:
                self._unheard.discard(shard)
            return None
        if self.parts == 1:
            return response
        match response:
            case Frontiers():
                return self._absorb_frontiers(shard, response)
            case PeekRows() | PeekError() | PeekCanceled():
                return self._absorb_peek(shard, response)
            case SubscribeBatch() | SubscribeDropped():
                return self._absorb_subscribe(shard, response)
            case Status():
                return response

    def _absorb_frontiers(self, shard: int, response: Frontiers) -> Frontiers | None:
        id = response.id
        shards = self._frontiers.setdefault(id, [None] * self.parts)
        known = shards[shard]
        shards[shard] = response if known is None else _overlay(known, response)
        if any(s is None for s in shards):
            return None
        merged = Frontiers(id)
        first = True
        for s in shards:
            assert s is not None
            merged = s if first else _meet(merged, s)
            first = False
        previous = self._merged.get(id)
        if merged == previous:
            return None
        assert previous is None or frontier_le(previous.write, merged.write), f"write frontier of {id} regressed"
        if merged.has_write and merged.write is None and merged.input is None and merged.output is None:
            # Nothing more can follow, and the id may be created again.
            del self._frontiers[id]
            self._merged.pop(id, None)
        else:
            self._merged[id] = merged
        return merged

    def _absorb_peek(self, shard: int, response: PeekResponse) -> PeekResponse | None:
        answers = self._peeks.setdefault(response.uuid, [None] * self.parts)
        assert answers[shard] is None, f"worker {shard} answered peek {response.uuid} twice"
        answers[shard] = response
        if any(a is None for a in answers):
            return None
        del self._peeks[response.uuid]
        for kind in (PeekCanceled, PeekError):
            for answer in answers:
                if isinstance(answer, kind):
                    return answer
        rows = [a for a in answers if isinstance(a, PeekRows) and a.rows]
        if len(rows) <= 1:
            return rows[0] if rows else answers[0]
        parts = [decode_updates(a.rows) for a in rows]
        return PeekRows(response.uuid, encode_updates(concat_updates(parts)))

    def _absorb_subscribe(
        self, shard: int, response: SubscribeBatch | SubscribeDropped
    ) -> SubscribeBatch | SubscribeDropped | None:
        state = self._subscribes.get(response.id)
        if state is None:
            state = self._subscribes[response.id] = _Subscribe(self.parts)
        if isinstance(response, SubscribeDropped):
            state.dropped += 1
            if state.dropped < self.parts:
                return None
            del self._subscribes[response.id]
            return response
        merged = state.absorb(shard, response)
        if merged is not None and merged.upper is None:
            del self._subscribes[response.id]
        return merged


class _Subscribe:
    """The stash of one subscribe. All workers run the same rounds, so their batches have the same bounds."""

    def __init__(self, parts: int) -> None:
        self.uppers: list[Frontier] = [_UNKNOWN] * parts
        self.frontier: Frontier = _UNKNOWN
        self.lower: Frontier = None
        self.stash: list[SubscribeBatch] = []
        self.dropped = 0

    def absorb(self, shard: int, batch: SubscribeBatch) -> SubscribeBatch | None:
        self.uppers[shard] = batch.upper
        self.stash.append(batch)
        joint: Frontier = None
        for upper in self.uppers:
            joint = meet(joint, upper)
        if joint == self.frontier:
            return None
        ready = [b for b in self.stash if frontier_le(b.upper, joint)]
        self.stash = [b for b in self.stash if not frontier_le(b.upper, joint)]
        if not ready:
            return None
        lower: Frontier = None
        for b in ready:
            lower = meet(lower, b.lower)
        self.frontier = joint
        error = next((b.error for b in ready if b.error is not None), None)
        if error is not None:
            return SubscribeBatch(batch.id, lower, joint, None, error)
        parts = [decode_updates(b.updates) for b in ready if b.updates]
        updates = encode_updates(concat_updates(parts)) if parts else None
        return SubscribeBatch(batch.id, lower, joint, updates)


def _overlay(old: Frontiers, new: Frontiers) -> Frontiers:
    """What is known of a shard after `new`."""
    return Frontiers(
        new.id,
        write=new.write if new.has_write else old.write,
        has_write=new.has_write or old.has_write,
        input=new.input if new.has_input else old.input,
        has_input=new.has_input or old.has_input,
        output=new.output if new.has_output else old.output,
        has_output=new.has_output or old.has_output,
    )


def _meet(a: Frontiers, b: Frontiers) -> Frontiers:
    return msgspec.structs.replace(
        a,
        write=meet(a.write, b.write),
        has_write=a.has_write and b.has_write,
        input=meet(a.input, b.input),
        has_input=a.has_input and b.has_input,
        output=meet(a.output, b.output),
        has_output=a.has_output and b.has_output,
    )
