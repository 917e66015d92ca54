"""Result columns to DataRow messages.

Columns are encoded one at a time (vectorised in `repr.text`/`repr.binary`), then stitched into rows. Large results are
cut into chunks so that no session holds the event loop for long.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mzlite.repr.binary import encode_column
from mzlite.repr.column import Column
from mzlite.repr.text import format_column
from mzlite.repr.types import RelationDesc

CHUNK_ROWS = 256

_NULL = b"\xff\xff\xff\xff"


def result_formats(requested: Sequence[int], columns: int) -> tuple[int, ...] | None:
    """One format per column from Bind's list; None when the count does not fit or a code is unknown."""
    if any(f not in (0, 1) for f in requested):
        return None
    if not requested:
        return (0,) * columns
    if len(requested) == 1:
        return (requested[0],) * columns
    return tuple(requested) if len(requested) == columns else None


def encode_cells(desc: RelationDesc, columns: Sequence[Column], formats: Sequence[int]) -> list[list[bytes | None]]:
    """Wire values by column."""
    return [
        encode_column(t.scalar, c) if f else format_column(t.scalar, c)
        for t, c, f in zip(desc.typ.columns, columns, formats)
    ]


def data_rows(desc: RelationDesc, columns: Sequence[Column], n: int, formats: Sequence[int]) -> Iterator[bytes]:
    """DataRow messages, in chunks of up to CHUNK_ROWS rows."""
    head = len(desc.names).to_bytes(2, "big")
    for start in range(0, n, CHUNK_ROWS):
        stop = min(start + CHUNK_ROWS, n)
        part = columns if stop - start == n else [c.slice(start, stop) for c in columns]
        cells = encode_cells(desc, part, formats)
        out: list[bytes] = []
        rows: Iterator[tuple[bytes | None, ...]] = zip(*cells) if cells else iter([()] * (stop - start))
        for row in rows:
            body = head + b"".join(_NULL if v is None else len(v).to_bytes(4, "big") + v for v in row)
            out.append(b"D" + (len(body) + 4).to_bytes(4, "big") + body)
        yield b"".join(out)
