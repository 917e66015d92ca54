"""Storage: the shards, the log, the catalog's records and the oracle's bound, on disk or in memory, one interface.

    commit     all tables advance together; durable on return          append    one view's compare-and-append
    snapshot   a shard at a time, for reads inside this process        listeners what workers are pushed

With a directory, a commit is submitted to the committer and becomes visible once durable. A view's append is visible at
once and made durable lazily: what a crash takes back is computed again from the tables. In memory there is no thread,
so a commit costs what its bookkeeping costs. Time only moves forward: a commit's ts is at or after the tables' upper.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Protocol

import numpy as np

from mzlite.repr.timestamp import Frontier, Timestamp, less_equal
from mzlite.repr.types import ScalarType
from mzlite.repr.updates import Updates
from mzlite.storage.committer import Committer, Operation
from mzlite.storage.compactor import Compactor
from mzlite.storage.disk import Disk
from mzlite.storage.model import Part, StorageError, make_part
from mzlite.storage.segment import Segment
from mzlite.storage.shard import MV, TABLE, Shard

_DONE: Future[None] = Future()
_DONE.set_result(None)


class Listener(Protocol):
    """Told of changes after they are visible, in order, from whatever thread made them so."""

    def committed(self, writes: Sequence[tuple[str, Part]], upper: Timestamp) -> None:
        """Every table's upper is now `upper`; `writes` came with it."""

    def appended(self, shard: str, parts: Sequence[Part], upper: Frontier) -> None:
        """A view's shard advanced to `upper`, with what changed."""

    def dropped(self, shard: str) -> None:
        """The shard is gone."""


class Storage:
    """Invariants:

    1. table_upper and every upper and since only rise.
    2. on disk: what `commit`, `catalog_transaction`, `store_oracle`, `create_shard` acknowledged survives a crash.
    """

    def __init__(self, disk: Disk | None) -> None:
        self._disk = disk
        self._lock = threading.RLock()
        self._listeners: list[Listener] = []
        self._shards: dict[str, Shard] = {}
        self._catalog: dict[str, bytes] = {}
        self._oracle: Timestamp | None = None
        self._seq = 0
        self._table_upper: Timestamp = 0
        self._submitted_upper: Timestamp = 0
        self._closed = False
        self._committer: Committer | None = None
        if disk is not None:
            self._shards, self._table_upper, self._seq = disk.load_shards()
            self._submitted_upper = self._table_upper
            self._catalog = disk.load_catalog()
            self._oracle = disk.load_oracle()
            self._committer = Committer(disk)
        self._compactor = Compactor(self)

    @classmethod
    def open(cls, path: Path | str | None) -> Storage:
        """Open or create the directory, or a database in memory for None. StorageError when it cannot be served."""
        return cls(None if path is None else Disk(Path(path)))

    @property
    def in_memory(self) -> bool:
        """Then every call returns at once and may be made on an event loop."""
        return self._disk is None

    @property
    def transactions(self) -> int:
        """Durable transactions so far; 0 in memory."""
        return 0 if self._committer is None else self._committer.transactions

    def close(self) -> None:
        """Make everything submitted durable and release the directory. Idempotent."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        self._compactor.close()
        if self._committer is not None:
            self._committer.close()
        if self._disk is not None:
            self._disk.close()

    def add_listener(self, listener: Listener) -> None:
        with self._lock:
            self._listeners.append(listener)

    def remove_listener(self, listener: Listener) -> None:
        with self._lock:
            self._listeners.remove(listener)

    # Tables.

    def commit(self, writes: Sequence[tuple[str, Updates]], ts: Timestamp, advance_to: Timestamp) -> None:
        """`commit_begin`, waited for. Blocking with a directory."""
        self.commit_begin(writes, ts, advance_to).result()

    def commit_begin(self, writes: Sequence[tuple[str, Updates]], ts: Timestamp, advance_to: Timestamp) -> Future[None]:
        """Add (shard, rows) pairs at ts and advance every table to advance_to; the future is done when durable.

        The rows' times are replaced by ts. Without writes nothing is synced: only uppers move, in memory.
        """
        with self._lock:
            self._check_open()
            assert self._submitted_upper <= ts < advance_to, (self._submitted_upper, ts, advance_to)
            parts: list[tuple[Shard, Part]] = []
            for id, updates in writes:
                shard = self._shards[id]
                assert shard.kind == TABLE, id
                if len(updates):
                    stamped = updates.with_time(np.full(len(updates), ts, np.uint64))
                    parts.append((shard, self._part(ts, advance_to, stamped)))
            self._submitted_upper = advance_to
            if self._committer is None:
                self._apply_commit(parts, advance_to)
                return _DONE
            if not parts and self._table_upper >= ts:
                # Nothing under way either: progress alone needs no disk.
                self._apply_commit(parts, advance_to)
                return _DONE

            def write(disk: Disk) -> None:
                if not parts:
                    return
                for shard, part in parts:
                    if self._shards.get(shard.id) is shard:
                        disk.insert_part(shard.id, part)
                disk.set_meta("table_upper", str(advance_to))

            return self._committer.submit(Operation(write, lambda: self._apply_commit(parts, advance_to)))

    def _apply_commit(self, parts: list[tuple[Shard, Part]], upper: Timestamp) -> None:
        with self._lock:
            # A shard may have been dropped (and another of that name made) since the commit was submitted.
            present = [(shard, part) for shard, part in parts if self._shards.get(shard.id) is shard]
            for shard, part in present:
                shard.append(part)
            self._table_upper = max(self._table_upper, upper)
            for listener in self._listeners:
                listener.committed([(shard.id, part) for shard, part in present], self._table_upper)
            for shard, _ in present:
                self._compactor.consider(shard)

    def _part(self, lower: Timestamp, upper: Frontier, oks: Updates, errs: Updates | None = None) -> Part:
        self._seq += 1
        if self._disk is None:
            return make_part(self._seq, lower, upper, oks, errs)
        return Part(self._seq, lower, upper, oks, errs)  # a large one moves into its file when it is written

    # Shards.

    def create_shard(
        self, id: str, types: Sequence[ScalarType], kind: str = TABLE, since: Timestamp = 0, upper: Timestamp = 0
    ) -> None:
        """A new, empty shard. since: nothing earlier can be read. upper: a view's first upper. Durable on return."""
        self.create_shard_begin(id, types, kind, since, upper).result()

    def create_shard_begin(
        self, id: str, types: Sequence[ScalarType], kind: str = TABLE, since: Timestamp = 0, upper: Timestamp = 0
    ) -> Future[None]:
        with self._lock:
            self._check_open()
            assert id not in self._shards, id
            shard = Shard(id, tuple(types), kind, since, upper)
            self._shards[id] = shard
            return self._submit(lambda disk: disk.create_shard(shard))

    def drop_shard(self, id: str) -> None:
        """Forget a shard; readers are told. Unknown shards are ignored. Not waited for."""
        with self._lock:
            shard = self._shards.pop(id, None)
            if shard is None:
                return
            for listener in self._listeners:
                listener.dropped(id)

            def write(disk: Disk) -> None:
                disk.drop_shard(id)

            def applied() -> None:
                if self._disk is not None:
                    self._disk.remove_files([p.seq for p in shard.parts])

            if self._committer is not None:
                self._committer.submit(Operation(write, applied))

    def shards(self) -> dict[str, str]:
        """id -> kind of every shard."""
        with self._lock:
            return {id: shard.kind for id, shard in self._shards.items()}

    def has_shard(self, id: str) -> bool:
        return id in self._shards

    def kind(self, id: str) -> str:
        return self._shards[id].kind

    def types(self, id: str) -> tuple[ScalarType, ...]:
        return self._shards[id].types

    @property
    def table_upper(self) -> Timestamp:
        """The one upper of all tables."""
        return self._table_upper

    def upper(self, id: str) -> Frontier:
        shard = self._shards[id]
        return self._table_upper if shard.kind == TABLE else shard.upper

    def since(self, id: str) -> Timestamp:
        return self._shards[id].since

    def advance_since(self, id: str, since: Timestamp) -> None:
        """Allow compaction up to `since`; lower values and unknown shards are ignored. Never waits."""
        with self._lock:
            shard = self._shards.get(id)
            if shard is None or not shard.advance_since(since) or self._committer is None:
                return
            self._compactor.since_moved(id)

    def advance_since_or_drop(self, id: str, since: Frontier) -> None:
        """`advance_since`, or `drop_shard` for the empty frontier: nobody will read it again."""
        if since is None:
            self.drop_shard(id)
        else:
            self.advance_since(id, since)

    def snapshot(self, id: str, as_of: Timestamp) -> list[Updates]:
        """The rows at as_of, in parts, every time as_of; not consolidated across parts.

        StorageError for a time that compaction has passed; the caller waits until upper(id) > as_of first.
        """
        return self.snapshot_with_errors(id, as_of)[0]

    def snapshot_with_errors(self, id: str, as_of: Timestamp) -> tuple[list[Updates], list[Updates]]:
        """(rows, errors) as `snapshot`."""
        with self._lock:
            shard = self._readable(id, as_of)
            assert not less_equal(self.upper(id), as_of), (as_of, self.upper(id))
            return shard.snapshot(as_of)

    def _readable(self, id: str, as_of: Timestamp) -> Shard:
        shard = self._shards.get(id)
        if shard is None:
            raise StorageError(f"shard {id} does not exist", sqlstate="XX000")
        if as_of < shard.since:
            raise StorageError(f"Timestamp ({as_of}) is not valid for all inputs: [{shard.since}]", sqlstate="22000")
        return shard

    def open_reader(self, id: str, as_of: Timestamp) -> tuple[tuple[Part, ...], Frontier, Shard]:
        """(parts, upper, shard) at this moment: everything before upper; a listener hears what follows."""
        with self._lock:
            shard = self._readable(id, as_of)
            return shard.parts, self.upper(id), shard

    # Views.

    def append(
        self,
        id: str,
        lower: Timestamp,
        upper: Frontier,
        updates: Updates | None,
        errs: Updates | None = None,
        staged: Sequence[tuple[Updates, Segment | None]] = (),
    ) -> tuple[bool, Frontier]:
        """Add updates with lower <= time < upper to a view's shard if its upper is `lower`: (done, its upper now).

        staged: more updates, in pieces that are in memory segments already.
        """
        with self._lock:
            shard = self._shards.get(id)
            if shard is None:
                return False, None
            assert shard.kind == MV, id
            if shard.upper != lower:
                return False, shard.upper
            assert upper is None or upper > lower, (lower, upper)
            parts: list[Part] = []
            for oks, segment in staged:
                self._seq += 1
                parts.append(Part(self._seq, lower, upper, oks, None, segment))
            if (updates is not None and len(updates)) or (errs is not None and len(errs)):
                part = self._part(lower, upper, shard.empty() if updates is None or not len(updates) else updates, errs)
                if self._disk is not None:
                    part = make_part(part.seq, lower, upper, part.oks, errs)
                parts.append(part)
            for part in parts:
                shard.append(part)
            shard.upper = upper
            if self._committer is not None:
                self._committer.submit(Operation(_append_writer(shard, parts, upper), lazy=True))
            for listener in self._listeners:
                listener.appended(id, parts, upper)
            if parts:
                self._compactor.consider(shard)
            return True, upper

    # Catalog and oracle.

    def load_catalog(self) -> dict[str, bytes]:
        with self._lock:
            return dict(self._catalog)

    def catalog_transaction(self, changes: dict[str, bytes | None]) -> None:
        """Put (or, for None, delete) records, all or none. Durable on return."""
        self.catalog_transaction_begin(changes).result()

    def catalog_transaction_begin(self, changes: dict[str, bytes | None]) -> Future[None]:
        with self._lock:
            self._check_open()
            for key, value in changes.items():
                if value is None:
                    self._catalog.pop(key, None)
                else:
                    self._catalog[key] = value
            return self._submit(lambda disk: disk.put_catalog(changes))

    def load_oracle(self) -> Timestamp | None:
        """The stored bound; None in a new database."""
        return self._oracle

    def store_oracle(self, bound: Timestamp) -> None:
        """Durable on return."""
        with self._lock:
            self._check_open()
            self._oracle = bound
            done = self._submit(lambda disk: disk.set_meta("oracle", str(bound)))
        done.result()

    def _submit(self, write: Callable[[Disk], None]) -> Future[None]:
        if self._committer is None:
            return _DONE
        return self._committer.submit(Operation(write))

    def _check_open(self) -> None:
        if self._closed:
            raise StorageError("the database is closed", sqlstate="57P01")

    # Compaction's side (see `compactor`).

    def parts_to_merge(self, shard: Shard) -> tuple[tuple[Part, ...], Timestamp]:
        with self._lock:
            if self._shards.get(shard.id) is not shard:
                return (), 0
            return shard.merge_candidates(), shard.since

    def merged(self, shard: Shard, old: tuple[Part, ...], oks: Updates, errs: Updates | None) -> None:
        """Replace parts by their merge; on disk too, lazily, and then remove the old parts' files."""
        with self._lock:
            if self._shards.get(shard.id) is not shard:
                return
            new = None
            if len(oks) or errs is not None:
                self._seq += 1
                seq = self._seq
                # The merge takes the place of the last part it replaces, so that the log stays in order.
                new = make_part(seq, old[0].lower, old[-1].upper, oks, errs)
            shard.replace(old, new)
            if self._committer is None:
                return
            seqs = [p.seq for p in old]
            since = shard.since

            def write(disk: Disk) -> None:
                if self._shards.get(shard.id) is not shard:
                    return
                # With the parts: times before since are no longer told apart in them.
                disk.set_since(shard.id, since)
                disk.delete_parts(seqs)
                if new is not None:
                    disk.insert_part(shard.id, new)

            def applied() -> None:
                assert self._disk is not None
                self._disk.remove_files(seqs)

            self._committer.submit(Operation(write, applied, lazy=True))

    def persist_sinces(self, ids: Sequence[str]) -> None:
        with self._lock:
            if self._committer is None or self._closed:
                return
            sinces = [(id, self._shards[id].since) for id in ids if id in self._shards]

            def write(disk: Disk) -> None:
                for id, since in sinces:
                    disk.set_since(id, since)

            self._committer.submit(Operation(write, lazy=True))


def _append_writer(shard: Shard, parts: Sequence[Part], upper: Frontier) -> Callable[[Disk], None]:
    def write(disk: Disk) -> None:
        for part in parts:
            disk.insert_part(shard.id, part)
        disk.set_upper(shard.id, upper)

    return write
