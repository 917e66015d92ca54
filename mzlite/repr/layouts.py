"""Which class carries which layout: making columns of NULLs, and columns from the flat buffers they were written as."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mzlite.repr.column import Column
from mzlite.repr.fixed import DTYPES, FixedColumn
from mzlite.repr.interval import INTERVAL_DTYPE, IntervalColumn
from mzlite.repr.numeric import NumericColumn
from mzlite.repr.types import Layout
from mzlite.repr.var import VarColumn

_BOOL = np.dtype(np.bool_)
_I64 = np.dtype(np.int64)
_U8 = np.dtype(np.uint8)


def nulls(layout: Layout, n: int) -> Column:
    """n NULLs."""
    return _zeros(layout, n, np.zeros(n, np.bool_))


def empty(layout: Layout) -> Column:
    """No values."""
    return _zeros(layout, 0, None)


def _zeros(layout: Layout, n: int, valid: NDArray[np.bool_] | None) -> Column:
    if layout is Layout.VAR:
        return VarColumn(np.zeros(n + 1, np.int64), np.zeros(0, np.uint8), valid)
    if layout is Layout.NUMERIC:
        return NumericColumn(np.zeros(n, np.int64), 0, valid)
    if layout is Layout.INTERVAL:
        return IntervalColumn(np.zeros(n, INTERVAL_DTYPE), valid)
    return FixedColumn(np.zeros(n, DTYPES[layout]), valid, layout)


def buffer_dtypes(header: Any) -> tuple[np.dtype[Any], ...]:
    """The dtypes of the arrays behind a column header (`Column.buffers`), in order."""
    return _SHAPES[_shape_key(header)]


def from_buffers(header: Any, arrays: list[NDArray[Any]]) -> Column:
    """Inverse of `Column.buffers`; the column borrows the arrays."""
    valid = arrays[-1] if header[-1] else None
    match header[0]:
        case "f":
            return FixedColumn(arrays[0], valid, _LAYOUT_OF[header[1]])
        case "v":
            return VarColumn(arrays[0], arrays[1], valid)
        case "n":
            return NumericColumn(arrays[0], header[1], valid)
        case "w":
            return NumericColumn.from_wide(VarColumn(arrays[0], arrays[1], valid))
        case kind:
            assert kind == "i", kind
            return IntervalColumn(arrays[0], valid)


_LAYOUT_OF = {layout.value: layout for layout in Layout}


def _shape_key(header: Any) -> tuple[Any, ...]:
    return (header[0], header[1] if header[0] == "f" else None, header[-1])


def _shapes() -> dict[tuple[Any, ...], tuple[np.dtype[Any], ...]]:
    bare: dict[tuple[str, str | None], tuple[np.dtype[Any], ...]] = {
        ("v", None): (_I64, _U8),
        ("w", None): (_I64, _U8),
        ("n", None): (_I64,),
        ("i", None): (INTERVAL_DTYPE,),
    }
    for layout, dtype in DTYPES.items():
        bare["f", layout.value] = (dtype,)
    shapes: dict[tuple[Any, ...], tuple[np.dtype[Any], ...]] = {}
    for (kind, name), dtypes in bare.items():
        shapes[kind, name, 0] = dtypes
        shapes[kind, name, 1] = (*dtypes, _BOOL)
    return shapes


_SHAPES = _shapes()
