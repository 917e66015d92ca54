"""Casts among booleans, integers, floats, numeric, object ids and mz_timestamp."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np

from mzlite.expr.call import Args, CallSite, Kernel, RowErrors
from mzlite.expr.functions.registry import register
from mzlite.expr.kernels import floats, integers, numerics
from mzlite.expr.kernels.adapt import apply_bad, checked, elementwise, per_value, values_of
from mzlite.expr.kernels.decimals import rescale, trim
from mzlite.repr.column import Column
from mzlite.repr.errors import SqlError
from mzlite.repr.fixed import FixedColumn
from mzlite.repr.numeric import POW10, NumericColumn
from mzlite.repr.types import LAYOUTS, Layout

INTEGERS = ("int2", "int4", "int8", "uint2", "uint4", "uint8")
LONG_NAMES = {
    "bool": "boolean",
    "int2": "smallint",
    "int4": "integer",
    "int8": "bigint",
    "float4": "real",
    "float8": "double",
    "bpchar": "char",
    "char": '"char"',
    "timestamptz": "timestamp_with_time_zone",
    "bytea": "bytea",
}


def cast(source: str, target: str, kernel: Kernel, *, can_error: bool = True, display: str | None = None) -> None:
    """Register the cast between two kinds under its id (it has no name)."""
    shown = display or f"{LONG_NAMES.get(source, source)}_to_{LONG_NAMES.get(target, target)}"
    register(
        "",
        f"{source} -> {target}",
        kernel,
        id=f"cast_{source}_{target}",
        is_cast=True,
        can_error=can_error,
        display=shown,
    )


def identity(site: CallSite, args: Args, n: int, errors: RowErrors) -> Column:
    return args[0]


def relabel(layout: Layout, dtype: Any) -> Kernel:
    """Same values under another layout of the same width (int to date-like and the like)."""
    return elementwise(lambda a: a.astype(dtype), layout)


def then_rescale(kernel: Kernel) -> Kernel:
    """A cast to numeric that also applies the target's precision and scale."""

    def run(site: CallSite, args: Args, n: int, errors: RowErrors) -> Column:
        column = kernel(site, args, n, errors)
        if site.typ.precision is None and site.typ.scale is None:
            return column
        return numerics.rescale_kernel(_as_numeric(site), (column,), n, errors)

    return run


_NUMERIC_SITE = "numeric"


def _as_numeric(site: CallSite) -> CallSite:
    """The site of the second step: its argument is numeric."""
    own = site.cache.get(_NUMERIC_SITE)
    if own is None:
        from mzlite.repr.types import NUMERIC

        own = site.cache[_NUMERIC_SITE] = CallSite(site.id, (NUMERIC,), site.typ)
    assert isinstance(own, CallSite)
    return own


def _integer_to_numeric(site: CallSite, args: Args, n: int, errors: RowErrors) -> Column:
    return NumericColumn.from_integers(values_of(args[0]), args[0].valid)


def _float_to_numeric(name: str, digits: Callable[[Any], str]) -> Kernel:
    def convert(value: float) -> Decimal:
        if value != value:
            return Decimal("NaN")
        if value in (float("inf"), float("-inf")):
            raise SqlError("22003", f"function casting {name} to numeric is only defined for finite arguments")
        number = Decimal(digits(value))
        if abs(number) >= Decimal(10) ** 39:
            raise SqlError("22003", "numeric field overflow")
        rounded = trim(number)
        if number and not rounded:
            raise SqlError("22003", "numeric field overflow")
        return rounded

    return per_value(convert)


def _numeric_to_float(kind: str) -> Kernel:
    name = "real" if kind == "float4" else "double precision"
    layout = LAYOUTS[kind]
    dtype: Any = np.float32 if kind == "float4" else np.float64

    def convert(value: Decimal) -> float:
        result = float(value)
        if kind == "float4" and value.is_finite():
            with np.errstate(all="ignore"):
                narrow = float(np.float32(result))
            if narrow in (float("inf"), float("-inf")) or (not narrow and value):
                raise SqlError("22003", f"{str(value)!r} {name} out of range".replace("'", '"'))
        return result

    slow = per_value(convert)

    def run(site: CallSite, args: Args, n: int, errors: RowErrors) -> Column:
        a = args[0]
        assert isinstance(a, NumericColumn)
        # Mantissas below 2^53 over an exact power of ten: one correctly rounded division.
        if a.wide is None and a.scale <= 22 and a.magnitude() < 1 << 53 and kind == "float8":
            values = a.live_values().astype(np.float64)
            if a.scale:
                values = values / float(POW10[a.scale])
            return FixedColumn(values.astype(dtype), a.valid, layout)
        return slow(site, args, n, errors)

    return run


def _numeric_to_integer(kind: str) -> Kernel:
    info = np.iinfo(integers.DTYPES[kind])
    layout = LAYOUTS[kind]
    convert_narrow = integers.convert("int8", kind)

    def convert(value: Decimal) -> int:
        if not value.is_finite():
            raise integers.out_of_range("NaN" if value.is_nan() else "Infinity", kind)
        whole = int(rescale(value, 0))
        if not info.min <= whole <= info.max:
            raise integers.out_of_range(str(whole), kind)
        return whole

    slow = per_value(convert)

    def run(site: CallSite, args: Args, n: int, errors: RowErrors) -> Column:
        a = args[0]
        assert isinstance(a, NumericColumn)
        if a.wide is not None:
            return slow(site, args, n, errors)
        values = a.live_values()
        if a.scale:
            factor = POW10[a.scale]
            magnitude = (np.abs(values) + factor // 2) // factor
            values = np.where(values < 0, -magnitude, magnitude)
        if kind == "int8":
            return FixedColumn(values, a.valid)
        out, bad = convert_narrow(values)
        return FixedColumn(out, apply_bad(bad, a.valid, len(out), errors), layout)

    return run


def _mz_timestamp_from(kind: str) -> Kernel:
    """Integers: negative values do not fit."""

    def convert(a: Any) -> tuple[Any, list[Any]]:
        bad = a < 0
        make = lambda row: SqlError("22003", f"step mz_timestamp overflow: {a[row]}")  # noqa: E731
        return a.astype(np.uint64), [(bad, make)] if bad.any() else []

    return checked(convert, Layout.U64)


def _numeric_to_mz_timestamp(value: Decimal) -> int:
    if not value.is_finite() or value != int(value) or not 0 <= value < 1 << 64:
        raise SqlError("22003", "mz_timestamp out of range")
    return int(value)


def _register() -> None:
    for source in INTEGERS:
        for target in INTEGERS:
            if source != target:
                f = integers.convert(source, target)
                cast(source, target, checked(f, LAYOUTS[target]), can_error=not _fits(source, target))
        for kind, dtype in (("float4", np.float32), ("float8", np.float64)):
            kernel = elementwise(lambda a, dtype=dtype: a.astype(dtype), LAYOUTS[kind])
            cast(source, kind, kernel, can_error=False)
            cast(kind, source, checked(floats.to_integer(source), LAYOUTS[source]))
        cast(source, "numeric", then_rescale(_integer_to_numeric))
        cast("numeric", source, _numeric_to_integer(source))
        if source != "int2":
            cast(source, "bool", elementwise(lambda a: a != 0, Layout.BOOL), can_error=False)
        if source in ("int4", "int8", "uint4", "uint8"):
            cast(source, "mz_timestamp", _mz_timestamp_from(source))
    for kind in ("int4", "int8"):
        dtype = integers.DTYPES[kind]
        cast("bool", kind, elementwise(lambda a, dtype=dtype: a.astype(dtype), LAYOUTS[kind]), can_error=False)
    for kind, digits in (("float4", _float4_digits), ("float8", repr)):
        name = "real" if kind == "float4" else "double precision"
        cast(kind, "numeric", then_rescale(_float_to_numeric(name, digits)))
        cast("numeric", kind, _numeric_to_float(kind))
    cast("float4", "float8", elementwise(lambda a: a.astype(np.float64), Layout.F64), can_error=False)
    cast("float8", "float4", checked(floats.narrow, Layout.F32))
    cast("numeric", "numeric", numerics.rescale_kernel, display="adjust_numeric_scale")
    cast("numeric", "mz_timestamp", per_value(_numeric_to_mz_timestamp))
    _object_ids()


def _fits(source: str, target: str) -> bool:
    a, b = np.iinfo(integers.DTYPES[source]), np.iinfo(integers.DTYPES[target])
    return bool(b.min <= a.min and a.max <= b.max)


def _float4_digits(value: float) -> str:
    return np.format_float_positional(np.float32(value), unique=True)


def _object_ids() -> None:
    ids = ("oid", "regclass", "regproc", "regtype")
    for source in ids:
        for target in ids:
            if source != target:
                cast(source, target, identity, can_error=False)
        # oid to int4 keeps the bits, as in PostgreSQL.
        cast(source, "int4", relabel(Layout.I32, np.int32), can_error=False)
        cast(source, "int8", relabel(Layout.I64, np.int64), can_error=False)
    for target in ids:
        cast("int4", target, relabel(Layout.U32, np.uint32), can_error=False)
        cast("int8", target, checked(_int8_to_oid, Layout.U32))
    cast("int2", "oid", relabel(Layout.U32, np.uint32), can_error=False)
    cast("uint4", "oid", identity, can_error=False)


def _int8_to_oid(a: Any) -> tuple[Any, list[Any]]:
    bad = (a < 0) | (a >= 1 << 32)
    make = lambda row: SqlError("22003", f'"{a[row]}" OID out of range')  # noqa: E731
    return a.astype(np.uint32), [(bad, make)] if bad.any() else []


_register()
