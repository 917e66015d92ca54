"""RowSetFinishing: what happens to a peek's rows before the client sees them: order, offset, limit, project."""

from __future__ import annotations

import numpy as np

from adapter.coord.result import Batch
from adapter.coord.var_types import human_bytes
from mzlite.expr.relation import RowSetFinishing
from mzlite.expr.scalar import ColumnOrder
from mzlite.repr.column import Column, sort_permutation
from mzlite.repr.errors import SqlError
from mzlite.repr.updates import Updates

BATCH_ROWS = 8192
SORTED_ROWS = 20_000
"""Up to this many rows, an answer without ORDER BY is sorted all the same."""
SORTED_ROWS = 100_000
"""Up to this many rows are sorted whether or not anybody asked."""
OFF_LOOP_ROWS = 20_000
"""Above this many rows, finish in a thread."""


def finish(u: Updates, finishing: RowSetFinishing) -> Batch:
    """The answer's rows. Diffs are multiplicities; a negative one is a bug upstream."""
    n = len(u)
    diff = u.diff
    columns: tuple[Column, ...] = u.columns
    order = finishing.order_by
    total = n
    if n == 1 and diff[0] == 1:
        pass
    else:
        idx = None
        if n > 1 and (order or n <= SORTED_ROWS or finishing.limit is not None or finishing.offset):
            # Also without ORDER BY: the same question gets the same answer. What ties is sorted as it is shown, NULL first.
            named = {o.column for o in order}
            shown = [ColumnOrder(c, nulls_last=False) for c in dict.fromkeys(finishing.project) if c not in named]
            idx = sort_permutation(columns, [*order, *shown], n, then_all=True)
        if n and not (diff == 1).all():
            assert diff.min() >= 0, "negative multiplicity in a result"
            base = np.arange(n, dtype=np.int64) if idx is None else idx
            idx = np.repeat(base, diff[base])
        if idx is not None:
            columns = tuple(c.take(idx) for c in columns)
            total = len(idx)
    start = min(finishing.offset, total)
    stop = total if finishing.limit is None else min(total, start + finishing.limit)
    if start or stop < total:
        columns = tuple(c.slice(start, stop) for c in columns)
    return Batch(tuple(columns[i] for i in finishing.project), stop - start)


def result_too_large(limit: int) -> SqlError:
    return SqlError("53400", f"result exceeds max size of {human_bytes(limit)}")


def check_size(batch: Batch, limit: int) -> None:
    """SqlError when the rows are larger than `limit` bytes, counted as packed rows: a tag byte a value, and its bytes."""
    if batch.n * len(batch.columns) * 20 < limit:
        sizable = sum(c.nbytes for c in batch.columns)
        if sizable + 2 * batch.n * len(batch.columns) < limit:
            return
    if packed_size(batch) > limit:
        raise result_too_large(limit)


def packed_size(batch: Batch) -> int:
    total = 0
    for c in batch.columns:
        total += batch.n
        offsets = getattr(c, "offsets", None)
        values = getattr(c, "values", None)
        if offsets is not None:
            total += int(offsets[-1] - offsets[0]) + batch.n
        elif isinstance(values, np.ndarray) and values.dtype.kind in "iu":
            magnitude = np.abs(values.astype(np.int64))
            total += int(np.ceil(np.log2(magnitude.astype(np.float64) + 1) / 8).sum())
        elif isinstance(values, np.ndarray) and values.dtype.kind != "b":
            total += batch.n * values.dtype.itemsize
    return total


def split(batch: Batch, rows: int = BATCH_ROWS) -> list[Batch]:
    """Pieces for the front end to format one at a time."""
    if batch.n <= rows:
        return [batch]
    return [batch.slice(i, min(i + rows, batch.n)) for i in range(0, batch.n, rows)]
