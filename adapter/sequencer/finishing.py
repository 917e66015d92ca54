"""RowSetFinishing: what happens to a peek's rows before the client sees them: order, offset, limit, project."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from adapter.coord.result import Batch
from adapter.coord.var_types import human_bytes
from mzlite.expr.relation import RowSetFinishing
from mzlite.expr.scalar import ColumnOrder
from mzlite.repr.column import I64, Column, sort_permutation
from mzlite.repr.errors import SqlError
from mzlite.repr.fixed import FixedColumn
from mzlite.repr.numeric import NumericColumn
from mzlite.repr.types import Layout
from mzlite.repr.updates import Updates
from mzlite.repr.var import VarColumn

BATCH_ROWS = 1024
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
            # Also without ORDER BY: the same question gets the same answer. What ties is sorted as Materialize compares
            # packed rows: the shorter first, then as shown, NULL first.
            named = {o.column for o in order}
            shown = [ColumnOrder(c, nulls_last=False) for c in dict.fromkeys(finishing.project) if c not in named]
            size = FixedColumn(row_sizes([columns[c] for c in finishing.project], n))
            keys = [*order, ColumnOrder(len(columns)), *shown]
            idx = sort_permutation([*columns, size], keys, n, then_all=True)
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
    return int(row_sizes(batch.columns, batch.n).sum())


def row_sizes(columns: Sequence[Column], n: int) -> I64:
    """int64[n]: bytes of each row when packed: a tag a value, integers in as few bytes as they need, texts with a length."""
    total = np.zeros(n, np.int64)
    for c in columns:
        size: I64 = np.ones(n, np.int64)
        if isinstance(c, VarColumn):
            lengths = c.lengths()
            size = size + lengths + np.where(lengths < 256, 1, np.where(lengths < 65_536, 2, 4))
        elif isinstance(c, FixedColumn) and c.values.dtype.kind in "iu" and c.layout in _PACKED_SHORT:
            wide = c.values.astype(np.int64)
            magnitude = np.where(wide < 0, ~wide, wide)
            size = size + (np.frexp(magnitude.astype(np.float64))[1] + 7) // 8
        elif isinstance(c, FixedColumn) and c.values.dtype.kind != "b":
            size = size + c.values.dtype.itemsize
        elif isinstance(c, NumericColumn):
            size = size + 5
        if c.valid is not None:
            size = np.where(c.valid, size, 1)
        total += size
    return total


_PACKED_SHORT = frozenset((Layout.I16, Layout.I32, Layout.I64, Layout.U16, Layout.U32, Layout.U64))


def split(batch: Batch, rows: int = BATCH_ROWS) -> list[Batch]:
    """Pieces for the front end to format one at a time."""
    if batch.n <= rows:
        return [batch]
    return [batch.slice(i, min(i + rows, batch.n)) for i in range(0, batch.n, rows)]
