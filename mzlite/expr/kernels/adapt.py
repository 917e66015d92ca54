"""Turning functions over numpy arrays, or over single Python values, into kernels.

    elementwise(f, layout)       f(values...) -> values; cannot fail
    checked(f, layout)           f(site, values...) -> (values, [(bad rows, error for a row)])
    per_value(f)                 f(datum...) -> datum or SqlError, once per distinct argument tuple of the batch
    per_bytes(f)                 the same over canonical bytes (jsonb, where decoding everything would be waste)

per_value is the one place where evaluation goes row by row: for functions too rare, or types too composite, to vectorise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mzlite.expr.call import Args, CallSite, Kernel, RowErrors
from mzlite.repr.column import BoolArray, Column, nulls
from mzlite.repr.datum import RAW_KINDS, TEXT_KINDS, column_from_datums, column_to_datums, decode_datum
from mzlite.repr.errors import SqlError, encode_error
from mzlite.repr.fixed import FixedColumn
from mzlite.repr.types import Layout, ScalarType
from mzlite.repr.var import VarColumn

Bad = tuple[BoolArray, Callable[[int], SqlError]]


def merge_valid(args: Args) -> BoolArray | None:
    """Rows where every argument is valid; None = all. Broadcasts one-row arguments."""
    merged: BoolArray | None = None
    for arg in args:
        if arg.valid is not None:
            merged = arg.valid if merged is None else merged & arg.valid
    return merged


def width(args: Args) -> int:
    """Rows of the result: 1 when every argument has one row."""
    rows = 1
    for arg in args:
        if len(arg) != 1:
            return len(arg)
    return rows


def spread_valid(valid: BoolArray | None, rows: int) -> BoolArray | None:
    """valid with `rows` rows (it may have one)."""
    if valid is None or len(valid) == rows:
        return valid
    return np.broadcast_to(valid, (rows,)) if rows else valid[:0]


def values_of(column: Column) -> Any:
    assert isinstance(column, FixedColumn), column
    return column.values


def elementwise(f: Callable[..., Any], layout: Layout) -> Kernel:
    """f over the values of fixed columns, NULL where an argument is."""

    def kernel(site: CallSite, args: Args, n: int, errors: RowErrors) -> Column:
        if len(args) == 2:
            a, b = args
            values = f(a.values, b.values)  # type: ignore[attr-defined]
            if a.valid is None and b.valid is None:
                return FixedColumn(values, None, layout)
        else:
            values = f(*[values_of(a) for a in args])
        valid = merge_valid(args)
        return FixedColumn(values, valid if valid is None else spread_valid(valid, len(values)), layout)

    return kernel


def apply_bad(bad: Sequence[Bad], valid: BoolArray | None, rows: int, errors: RowErrors) -> BoolArray | None:
    """Report the failures that fall on valid rows; returns the validity without them."""
    for mask, make in bad:
        if not mask.any():
            continue
        if len(mask) != rows:
            mask = np.broadcast_to(mask, (rows,))
        if valid is not None:
            mask = mask & valid
        for row in np.flatnonzero(mask).tolist():
            errors.add(row, make(row))
        valid = ~mask if valid is None else valid & ~mask
    return valid


def checked(f: Callable[..., tuple[Any, Sequence[Bad]]], layout: Layout) -> Kernel:
    """f over the values of fixed columns, which says on which rows it failed (consulted for valid rows only)."""

    def kernel(site: CallSite, args: Args, n: int, errors: RowErrors) -> Column:
        values, bad = f(*[a.values for a in args])  # type: ignore[attr-defined]
        valid = merge_valid(args)
        rows = len(values)
        if valid is not None:
            valid = spread_valid(valid, rows)
        if bad:
            valid = apply_bad(bad, valid, rows, errors)
        return FixedColumn(values, valid, layout)

    return kernel


def same_error(sqlstate: str, message: str) -> Callable[[int], SqlError]:
    """An error that does not depend on the row."""
    error = SqlError(sqlstate, message)
    return lambda row: error


# --- per value --------------------------------------------------------------------------------------------------------


_UNHASHABLE = {"jsonb", "map"}


def _raw_values(typ: ScalarType, column: Column) -> list[Any]:
    """Hashable stand-ins of the values, as cheap as they come (None = NULL)."""
    if isinstance(column, VarColumn):
        return column.to_bytes()
    return column_to_datums(typ, column)


def _decoder(typ: ScalarType) -> Callable[[Any], Any] | None:
    """From stand-in to datum; None when they are the same."""
    if typ.layout is not Layout.VAR or typ.kind in RAW_KINDS:
        return None
    if typ.kind in TEXT_KINDS:
        return bytes.decode
    return lambda data: decode_datum(typ, data)


def per_value(f: Callable[..., Any], *, strict: bool = True, with_site: bool = False) -> Kernel:
    """f(*datums) -> datum (None = NULL), called once per distinct argument tuple.

    strict: rows with a NULL argument are NULL and f never sees None. with_site: f's first argument is the CallSite.
    """

    def kernel(site: CallSite, args: Args, n: int, errors: RowErrors) -> Column:
        decoders = site.cache.get("decoders")
        if decoders is None:
            decoders = site.cache["decoders"] = [_decoder(t) for t in site.params]

        def call(raw: tuple[Any, ...]) -> Any:
            datums = [d(r) if d is not None and r is not None else r for d, r in zip(decoders, raw)]
            return f(site, *datums) if with_site else f(*datums)

        results = _map_distinct(call, site, args, n, errors, strict=strict)
        return column_from_datums(site.typ, results)

    return kernel


def per_bytes(f: Callable[..., bytes | None], *, strict: bool = True) -> Kernel:
    """As per_value for VAR results, with VAR arguments as their canonical bytes and the result as canonical bytes."""

    def kernel(site: CallSite, args: Args, n: int, errors: RowErrors) -> Column:
        results = _map_distinct(lambda raw: f(*raw), site, args, n, errors, strict=strict)
        return VarColumn.from_bytes(results)

    return kernel


def predicate_bytes(f: Callable[..., bool | None], *, strict: bool = True) -> Kernel:
    """As per_bytes with a boolean result."""

    def kernel(site: CallSite, args: Args, n: int, errors: RowErrors) -> Column:
        results = _map_distinct(lambda raw: f(*raw), site, args, n, errors, strict=strict)
        return column_from_datums(site.typ, results)

    return kernel


def _map_distinct(
    call: Callable[[tuple[Any, ...]], Any], site: CallSite, args: Args, n: int, errors: RowErrors, *, strict: bool
) -> list[Any]:
    rows = width(args) if args else n
    if rows == 1:
        raw = tuple(_raw_values(t, a)[0] for t, a in zip(site.params, args))
        if strict and None in raw:
            return [None]
        try:
            return [call(raw)]
        except SqlError as error:
            errors.add(0, error)
            return [None]
    columns = []
    for typ, arg in zip(site.params, args):
        values = _raw_values(typ, arg)
        columns.append(values if len(values) == rows else values * rows)
    results: list[Any] = []
    # 0.0 and -0.0 are one key but print differently.
    remember = not any(typ.kind in ("float4", "float8") for typ in site.params)
    memo: dict[Any, Any] = {}
    failed: dict[Any, bytes] = {}
    for row, raw in enumerate(zip(*columns) if columns else [()] * rows):
        if strict and None in raw:
            results.append(None)
            continue
        if raw in memo:
            results.append(memo[raw])
            if raw in failed:
                errors.add_encoded(row, failed[raw])
            continue
        try:
            value = call(raw)
        except SqlError as error:
            encoded = encode_error(error)
            errors.add_encoded(row, encoded)
            value = None
            if remember:
                failed[raw] = encoded
        if remember:
            memo[raw] = value
        results.append(value)
    return results


def all_null(site: CallSite, rows: int) -> Column:
    return nulls(site.typ.layout, rows)
