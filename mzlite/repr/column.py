"""Columns: the unit of data inside the engine.

A `Column` is immutable once built and holds n values of one layout plus an optional validity mask. Operators use only
the methods of `Column`; what a column is made of concerns its own class and the kernels in `mzlite.expr.kernels`.
"""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
    def hash(self) -> U64:
        """uint64[n]; equal values (by `equals`) have equal hashes, in every process; NULL hashes to a constant.

        Independent of numeric scale, of -0.0 against 0.0 and of the batch the value stands in.
        """

    @abc.abstractmethod
    def equals(self, other: Column) -> BoolArray:
        """bool[n], pairwise; grouping equality: NULL equals NULL, NaN equals NaN."""

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
