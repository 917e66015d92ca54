"""The data directory: an SQLite database and, beside it, Arrow IPC files for large parts.

    LOCK          held (flock) by the process that serves the directory; says which
    mzlite.db     meta, catalog, shards, parts (small ones inside)
    parts/N.arrow the rows of part N

SQLite runs with WAL and synchronous=FULL: a transaction that returned survives a crash of the process or the machine.
A part's file is written and fsynced before the transaction that refers to it, so a crash leaves at most files that
nothing refers to; they are removed at the next open. Only one thread (the committer) uses the connection after open.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

import msgspec

from mzlite.repr.encode import decode_updates
from mzlite.repr.timestamp import Frontier, Timestamp
from mzlite.repr.types import ScalarType
from mzlite.storage.arrowfile import write_arrow
from mzlite.storage.model import FORMAT_VERSION, Part, StorageError
from mzlite.storage.segment import ARROW, INLINE_BYTES, Segment
from mzlite.storage.shard import Shard

_SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE catalog (key TEXT PRIMARY KEY, value BLOB NOT NULL);
CREATE TABLE shards (id TEXT PRIMARY KEY, kind TEXT NOT NULL, types BLOB NOT NULL, since TEXT NOT NULL, upper TEXT);
CREATE TABLE parts (
    seq INTEGER PRIMARY KEY, shard TEXT NOT NULL, lower TEXT NOT NULL, upper TEXT, rows BLOB, errs BLOB
);
"""
# from version -> how to reach the next one, inside one transaction.
MIGRATIONS: dict[int, Callable[[sqlite3.Connection], None]] = {}
_encode_types = msgspec.msgpack.Encoder().encode
_decode_types = msgspec.msgpack.Decoder(tuple[ScalarType, ...]).decode


class Disk:
    """Statements on the data directory. Those without `begin`/`commit` belong inside a transaction."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.files = path / "parts"
        self._lock_fd: int | None = None
        try:
            path.mkdir(parents=True, exist_ok=True)
            self._lock()
            self.files.mkdir(exist_ok=True)
            self.connection = self._connect()
        except OSError as e:
            self._unlock()
            raise StorageError(f"cannot open data directory {str(path)!r}: {e.strerror or e}") from e
        except StorageError:
            self._unlock()
            raise
        except sqlite3.Error as e:
            self._unlock()
            raise StorageError(f"cannot open data directory {str(path)!r}: {e}") from e

    def _lock(self) -> None:
        fd = os.open(self.path / "LOCK", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            pid = os.read(fd, 32).decode(errors="replace").strip()
            os.close(fd)
            raise StorageError(
                f"data directory in use by another process (pid {pid or 'unknown'})", sqlstate="55006"
            ) from None
        os.ftruncate(fd, 0)
        os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
        self._lock_fd = fd

    def _unlock(self) -> None:
        if self._lock_fd is not None:
            os.close(self._lock_fd)
            self._lock_fd = None

    def _connect(self) -> sqlite3.Connection:
        fresh = not (self.path / "mzlite.db").exists()
        db = sqlite3.connect(self.path / "mzlite.db", isolation_level=None, check_same_thread=False)
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA synchronous=FULL")
        db.execute("PRAGMA fullfsync=ON")  # macOS: fsync alone stops at the drive's cache
        db.execute("BEGIN IMMEDIATE")
        if db.execute("SELECT 1 FROM sqlite_master WHERE name = 'meta'").fetchone() is None:
            for statement in _SCHEMA.split(";"):
                db.execute(statement)
            db.execute("INSERT INTO meta VALUES ('format_version', ?)", (str(FORMAT_VERSION),))
            db.execute("INSERT INTO meta VALUES ('table_upper', '0')")
        version = int(self._meta(db, "format_version"))
        if version > FORMAT_VERSION:
            db.close()
            raise StorageError(
                f"data directory has format {version}, this version of mzlite reads formats up to {FORMAT_VERSION}",
                sqlstate="0A000",
            )
        while version < FORMAT_VERSION:
            MIGRATIONS[version](db)
            version += 1
            db.execute("UPDATE meta SET value = ? WHERE key = 'format_version'", (str(version),))
        db.execute("COMMIT")
        if fresh:
            sync_directory(self.path)
        return db

    @staticmethod
    def _meta(db: sqlite3.Connection, key: str) -> str:
        value: str = db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()[0]
        return value

    # Reading, at open.

    def load_shards(self) -> tuple[dict[str, Shard], Timestamp, int]:
        """(shards with their parts, tables' upper, the greatest seq); removes files that nothing refers to."""
        db = self.connection
        table_upper = int(self._meta(db, "table_upper"))
        shards: dict[str, Shard] = {}
        for id, kind, types, since, upper in db.execute("SELECT id, kind, types, since, upper FROM shards"):
            own = None if upper is None else int(upper)
            shards[id] = Shard(id, _decode_types(types), kind, int(since), own)
        kept: set[str] = set()
        lists: dict[str, list[Part]] = {id: [] for id in shards}
        last = 0
        for seq, shard, lower, upper, rows, errs in db.execute(
            "SELECT seq, shard, lower, upper, rows, errs FROM parts"
        ):
            last = max(last, seq)
            errors = None if errs is None else decode_updates(errs)
            top: Frontier = None if upper is None else int(upper)
            if rows is None:
                kept.add(f"{seq}.arrow")
                segment = self.open_file(seq)
                part = Part(seq, int(lower), top, segment.read(), errors, segment)
            else:
                part = Part(seq, int(lower), top, decode_updates(rows), errors)
            lists[shard].append(part)
        for id, parts in lists.items():
            shards[id].parts = tuple(sorted(parts, key=lambda p: p.lower))
        for file in self.files.iterdir():
            if file.name not in kept:
                file.unlink()
        return shards, table_upper, last

    def load_catalog(self) -> dict[str, bytes]:
        return dict(self.connection.execute("SELECT key, value FROM catalog"))

    def load_oracle(self) -> Timestamp | None:
        row = self.connection.execute("SELECT value FROM meta WHERE key = 'oracle'").fetchone()
        return None if row is None else int(row[0])

    # Writing, by the committer.

    def insert_part(self, shard: str, part: Part) -> None:
        """Write the part: inside the database, or as a file that is durable before the database refers to it."""
        upper = None if part.upper is None else str(part.upper)
        rows: bytes | None = None
        if part.segment is not None and part.segment.kind == ARROW:
            pass
        elif part.segment is not None or part.oks.nbytes >= INLINE_BYTES:
            self.write_file(part)
        else:
            rows = part.encoded()
        self.connection.execute(
            "INSERT INTO parts VALUES (?, ?, ?, ?, ?, ?)",
            (part.seq, shard, str(part.lower), upper, rows, part.encoded_errs()),
        )

    def write_file(self, part: Part) -> None:
        """The part's rows as a fsynced file; the part then lives in the mapped file."""
        path = self.files / f"{part.seq}.arrow"
        with open(path, "wb") as file:
            write_arrow(part.oks, file)
            file.flush()
            sync_file(file.fileno())
        sync_directory(self.files)
        segment = self.open_file(part.seq)
        part.oks = segment.read()
        part.segment = segment

    def open_file(self, seq: int) -> Segment:
        fd = os.open(self.files / f"{seq}.arrow", os.O_RDONLY | os.O_CLOEXEC)
        return Segment(fd, os.fstat(fd).st_size, ARROW)

    def remove_files(self, seqs: list[int]) -> None:
        """Delete the files of parts that no committed row refers to any more. A mapping or descriptor stays good."""
        for seq in seqs:
            with contextlib.suppress(FileNotFoundError):
                (self.files / f"{seq}.arrow").unlink()

    def delete_parts(self, seqs: list[int]) -> None:
        self.connection.executemany("DELETE FROM parts WHERE seq = ?", [(s,) for s in seqs])

    def create_shard(self, shard: Shard) -> None:
        upper = None if shard.upper is None else str(shard.upper)
        self.connection.execute(
            "INSERT INTO shards VALUES (?, ?, ?, ?, ?)",
            (shard.id, shard.kind, _encode_types(shard.types), str(shard.since), upper),
        )

    def drop_shard(self, id: str) -> None:
        self.connection.execute("DELETE FROM parts WHERE shard = ?", (id,))
        self.connection.execute("DELETE FROM shards WHERE id = ?", (id,))

    def set_since(self, id: str, since: Timestamp) -> None:
        self.connection.execute("UPDATE shards SET since = ? WHERE id = ?", (str(since), id))

    def set_upper(self, id: str, upper: Frontier) -> None:
        self.connection.execute("UPDATE shards SET upper = ? WHERE id = ?", (None if upper is None else str(upper), id))

    def set_meta(self, key: str, value: str) -> None:
        self.connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))

    def put_catalog(self, changes: dict[str, bytes | None]) -> None:
        for key, value in changes.items():
            if value is None:
                self.connection.execute("DELETE FROM catalog WHERE key = ?", (key,))
            else:
                self.connection.execute("INSERT OR REPLACE INTO catalog VALUES (?, ?)", (key, value))

    def begin(self) -> None:
        self.connection.execute("BEGIN IMMEDIATE")

    def commit(self) -> None:
        self.connection.execute("COMMIT")

    def rollback(self) -> None:
        with contextlib.suppress(sqlite3.Error):
            self.connection.execute("ROLLBACK")

    def close(self) -> None:
        self.connection.close()
        self._unlock()


def sync_file(fd: int) -> None:
    """Make a file's contents durable, through the drive's cache where fsync alone does not reach."""
    full = getattr(fcntl, "F_FULLFSYNC", None)
    if full is None:
        os.fsync(fd)
    else:
        fcntl.fcntl(fd, full)


def sync_directory(path: Path) -> None:
    """Make names created in the directory durable."""
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
