"""Columns: the unit of data inside the engine.

A `Column` is immutable once built and holds n values of one layout plus an optional validity mask. Operators use only
the methods of `Column`; what a column is made of concerns its own class and the kernels in `mzlite.expr.kernels`.
"""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mzlite.repr.hashing import combine
from mzlite.repr.types import Layout

BoolArray = NDArray[np.bool_]
I64 = NDArray[np.int64]
U64 = NDArray[np.uint64]


class Column(abc.ABC):
    """n values of one layout.

    valid: bool[n], or None when no value is NULL. Values under an invalid slot are unspecified but harmless
    (fixed: any value, canonically 0; var: an empty slice).
    """

    __slots__ = ("valid",)
    valid: BoolArray | None

    @property
    @abc.abstractmethod
    def layout(self) -> Layout: ...

    @abc.abstractmethod
    def __len__(self) -> int: ...

    @abc.abstractmethod
    def take(self, idx: NDArray[np.intp] | I64) -> Column:
        """Rows idx (int64[m], 0 <= idx < n, repeats allowed), gathered. cost: O(m)."""

    @abc.abstractmethod
    def filter(self, mask: BoolArray) -> Column:
        """Rows where mask (bool[n]) holds, in order."""

    @abc.abstractmethod
    def slice(self, start: int, stop: int) -> Column:
        """Rows start..stop as a view; no copy."""

    @abc.abstractmethod
    def concat_with(self, others: Sequence[Column]) -> Column:
        """This column followed by the others, all of one layout (`concat` is the public form)."""

    @abc.abstractmethod
    def hash(self) -> U64:
        """uint64[n]; equal values (by `equals`) have equal hashes, in every process; NULL hashes to a constant.

        Independent of numeric scale, of -0.0 against 0.0 and of the batch the value stands in.
        """

    @abc.abstractmethod
    def equals(self, other: Column) -> BoolArray:
        """bool[n], pairwise; grouping equality: NULL equals NULL, NaN equals NaN."""

    @abc.abstractmethod
    def keys(self) -> list[Any]:
        """Python hashables, equal iff the values are (None for NULL), comparable within this column only.

        For a handful of rows, where a dictionary beats numpy's fixed costs. cost: O(n) Python objects.
        """

    @abc.abstractmethod
    def order_codes(self) -> I64:
        """int64[n]: code[i] < code[j] iff value i sorts before value j by SQL's order, equal iff equal.

        Valid values only; the code of a NULL is unspecified. Codes compare within this column object only.
        cost: O(n) for fixed layouts that embed in int64, O(n log n) otherwise.
        """

    @abc.abstractmethod
    def buffers(self) -> tuple[tuple[Any, ...], list[NDArray[Any]]]:
        """A msgpack-able header and the flat arrays that hold this column, for segments and frames."""

    @property
    @abc.abstractmethod
    def nbytes(self) -> int: ...

    def is_null(self) -> BoolArray:
        """bool[n], fresh."""
        if self.valid is None:
            return np.zeros(len(self), np.bool_)
        return ~self.valid


Columns = Sequence[Column]


# Narrows every row hash when set: tests force collisions with it.
HASH_MASK: int | None = None

_ROOT_HASH = 0x2545F4914F6CDD1D


def set_hash_mask(mask: int | None) -> None:
    """Test hook: keep only the masked bits of every row hash (None = all of them)."""
    global HASH_MASK
    HASH_MASK = mask


class OrderLike(Protocol):
    """What `sort_permutation` reads of a sort key; `expr.relation.ColumnOrder` is one."""

    @property
    def column(self) -> int: ...
    @property
    def desc(self) -> bool: ...
    @property
    def nulls_last(self) -> bool: ...


def concat(cols: Sequence[Column]) -> Column:
    """The columns end to end; at least one, all of one layout."""
    if len(cols) == 1:
        return cols[0]
    full = [c for c in cols if len(c)]
    if len(full) <= 1:
        return full[0] if full else cols[0]
    return full[0].concat_with(full[1:])


def nulls(layout: Layout, n: int) -> Column:
    """n NULLs."""
    from mzlite.repr import layouts

    return layouts.nulls(layout, n)


def empty(layout: Layout) -> Column:
    """No values."""
    from mzlite.repr import layouts

    return layouts.empty(layout)


def repeat(col: Column, n: int) -> Column:
    """The one value of `col` n times."""
    assert len(col) == 1, len(col)
    return col if n == 1 else col.take(np.zeros(n, np.int64))


def hash_rows(cols: Columns, n: int) -> U64:
    """uint64[n]: hash of each row over all columns; a constant when there are none. Equal rows have equal hashes."""
    if not cols:
        h = np.full(n, _ROOT_HASH, np.uint64)
    else:
        h = cols[0].hash()
        for col in cols[1:]:
            h = combine(h, col.hash())
    if HASH_MASK is not None:
        h = h & np.uint64(HASH_MASK)
    return h


def rows_equal(a: Columns, b: Columns, n: int) -> BoolArray:
    """bool[n]: row i of a equals row i of b in every column (grouping equality)."""
    if not a:
        return np.ones(n, np.bool_)
    same = a[0].equals(b[0])
    for x, y in zip(a[1:], b[1:]):
        same = same & x.equals(y)
    return same


def sort_permutation(cols: Columns, order: Sequence[OrderLike], n: int, then_all: bool = False) -> I64:
    """int64[n]: the stable permutation that sorts the rows by `order`.

    then_all: break ties by every column left to right, ascending, NULLs last, so that the result depends on the rows only.
    """
    if n <= 1:
        return np.zeros(n, np.int64)
    keys: list[NDArray[Any]] = []
    for o in order:
        _push_sort_keys(keys, cols[o.column], o.desc, o.nulls_last)
    if then_all:
        named = {o.column for o in order}
        for i, col in enumerate(cols):
            if i not in named:
                _push_sort_keys(keys, col, False, True)
    if not keys:
        return np.arange(n, dtype=np.int64)
    if len(keys) == 1:
        return np.argsort(keys[0], kind="stable")
    return np.lexsort(keys[::-1])


def _push_sort_keys(keys: list[NDArray[Any]], col: Column, desc: bool, nulls_last: bool) -> None:
    codes = col.order_codes()
    if desc:
        codes = ~codes  # reverses the order without overflow
    if col.valid is not None:
        keys.append(col.valid if not nulls_last else ~col.valid)
        codes = np.where(col.valid, codes, 0)
    keys.append(codes)
