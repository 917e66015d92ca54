"""How a function is called on columns: the kernel interface, and errors that belong to rows.

A kernel gets the call site (static: parameter and result types, a cache for anything it compiles), its argument columns
and the number of rows, and returns a column of that many rows:

    def kernel(site: CallSite, args: Args, n: int, errors: RowErrors) -> Column

Rules:
1. An argument column has n rows, or 1 row when it is the same for all of them (a literal): kernels broadcast.
   The result may have 1 row if every argument has. With n == 1 there is no difference.
2. A row whose evaluation fails is reported to `errors`, and is NULL in the result; the batch goes on. Rows that are
   NULL in an argument of a strict function must not be reported.
3. Arguments are borrowed and immutable.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mzlite.repr.column import I64, BoolArray, Column
from mzlite.repr.errors import SqlError, encode_error
from mzlite.repr.types import ScalarType

Args = Sequence[Column]


class CallSite:
    """One Call of a compiled expression: what is known about it before any row is seen."""

    __slots__ = ("cache", "id", "params", "typ")

    def __init__(self, id: str, params: tuple[ScalarType, ...], typ: ScalarType) -> None:
        self.id = id
        self.params = params
        self.typ = typ
        self.cache: dict[Any, Any] = {}


class RowErrors:
    """Errors of one evaluation, by row. The first error of a row counts."""

    __slots__ = ("first",)

    def __init__(self) -> None:
        self.first: dict[int, bytes] = {}

    def __bool__(self) -> bool:
        return bool(self.first)

    def add(self, row: int, error: SqlError) -> None:
        self.first.setdefault(row, encode_error(error))

    def add_encoded(self, row: int, error: bytes) -> None:
        self.first.setdefault(row, error)

    def add_mask(self, mask: BoolArray, error: SqlError) -> None:
        """The same error on every row where mask holds. A mask of one row stands for row 0."""
        if mask.any():
            encoded = encode_error(error)
            for row in np.flatnonzero(mask).tolist():
                self.first.setdefault(row, encoded)

    def add_all(self, other: RowErrors, rows: I64 | None = None) -> None:
        """other's errors; its row i is our row rows[i]."""
        for row, error in other.first.items():
            self.first.setdefault(row if rows is None else int(rows[row]), error)

    def rows(self) -> I64:
        """Failed rows, ascending."""
        return np.array(sorted(self.first), np.int64)

    def items(self) -> tuple[I64, list[bytes]]:
        rows = self.rows()
        return rows, [self.first[row] for row in rows.tolist()]


Kernel = Callable[[CallSite, Args, int, RowErrors], Column]
