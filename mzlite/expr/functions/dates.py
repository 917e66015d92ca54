"""Date, time, timestamp and interval: casts and arithmetic operators."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from mzlite.expr.call import Args, CallSite, Kernel, RowErrors
from mzlite.expr.functions.number_casts import cast, identity
from mzlite.expr.functions.registry import FUNCTIONS, operator, register
from mzlite.expr.functions.text_casts import from_text
from mzlite.expr.kernels.adapt import apply_bad, checked, elementwise, merge_valid, per_value, spread_valid, values_of
from mzlite.expr.kernels.calendar_math import add_interval, add_interval_array, timestamp_out_of_range
from mzlite.repr.calendar import DAY_US, MAX_DATE
from mzlite.repr.column import Column
from mzlite.repr.errors import SqlError
from mzlite.repr.fixed import FixedColumn
from mzlite.repr.interval import Interval, IntervalColumn
from mzlite.repr.intervaltext import format_interval
from mzlite.repr.types import Layout

_TS = Layout.TIMESTAMP
_I32 = 1 << 31
_I64 = 1 << 63


def interval_out_of_range(text: str) -> SqlError:
    return SqlError("22008", f'"{text}" interval out of range')


def _out_of_range(row: int) -> SqlError:
    return timestamp_out_of_range()


# --- casts ------------------------------------------------------------------------------------------------------------


def then_round(kernel: Kernel) -> Kernel:
    """A cast to timestamp that also applies the target's precision, rounding half up."""

    def run(site: CallSite, args: Args, n: int, errors: RowErrors) -> Column:
        column = kernel(site, args, n, errors)
        precision = site.typ.precision
        if precision is None or precision >= 6:
            return column
        unit = 10 ** (6 - precision)
        values = (values_of(column) + unit // 2) // unit * unit
        return FixedColumn(values, column.valid, _TS)

    return run


def _timestamp_to_mz(us: Any) -> tuple[Any, list[Any]]:
    bad = us < 0
    return (us // 1000).astype(np.uint64), [(bad, _out_of_range)] if bad.any() else []


def _date_to_mz(days: Any) -> tuple[Any, list[Any]]:
    return _timestamp_to_mz(days.astype(np.int64) * DAY_US)


def _mz_to_timestamp(ms: Any) -> tuple[Any, list[Any]]:
    limit = np.uint64((MAX_DATE + 1) * 86_400_000)
    bad = ms >= limit
    return np.where(bad, 0, ms).astype(np.int64) * 1000, [(bad, _out_of_range)] if bad.any() else []


def _register_casts() -> None:
    for kind in ("timestamp", "timestamptz"):
        to_us = elementwise(lambda days: days.astype(np.int64) * DAY_US, _TS)
        shown = "date_to_timestamp" if kind == "timestamp" else "date_to_timestamp_with_timezone"
        cast("date", kind, then_round(to_us), can_error=False, display=shown)
        cast(kind, "date", elementwise(lambda us: (us // DAY_US).astype(np.int32), Layout.DATE), can_error=False)
        cast(kind, "time", elementwise(lambda us: us % DAY_US, Layout.TIME), can_error=False)
        cast(kind, "mz_timestamp", checked(_timestamp_to_mz, Layout.U64))
        cast("mz_timestamp", kind, then_round(checked(_mz_to_timestamp, _TS)))
        cast(kind, kind, then_round(identity), can_error=False, display="adjust_timestamp_precision")
    cast("timestamp", "timestamptz", then_round(identity), can_error=False)
    cast("timestamptz", "timestamp", then_round(identity), can_error=False)
    cast("date", "mz_timestamp", checked(_date_to_mz, Layout.U64))
    cast("time", "interval", _time_to_interval, can_error=False)
    cast("interval", "time", _interval_to_time, can_error=False)


def _time_to_interval(site: CallSite, args: Args, n: int, errors: RowErrors) -> Column:
    us = values_of(args[0])
    zero = np.zeros(len(us), np.int32)
    return IntervalColumn.from_parts(zero, zero, us, args[0].valid)


def _interval_to_time(site: CallSite, args: Args, n: int, errors: RowErrors) -> Column:
    column = args[0]
    assert isinstance(column, IntervalColumn)
    return FixedColumn(column.us % DAY_US, column.valid, Layout.TIME)


# --- operators --------------------------------------------------------------------------------------------------------


def _shift(sign: int, *, swapped: bool = False, from_date: bool = False) -> Kernel:
    """timestamp (or date) plus or minus interval."""

    def kernel(site: CallSite, args: Args, n: int, errors: RowErrors) -> Column:
        left, right = (args[1], args[0]) if swapped else args
        assert isinstance(right, IntervalColumn)
        us = values_of(left)
        if len(us) == 1 and len(right) == 1 and left.valid is None and right.valid is None:
            return _shift_one(int(us[0]) * (DAY_US if from_date else 1), sign, right, from_date, errors)
        if from_date:
            us = us.astype(np.int64) * DAY_US
        valid = merge_valid(args)
        months: Any = right.months
        days: Any = right.days
        micros = right.us
        bad: list[Any] = []
        if sign < 0:
            lowest = months == -_I32
            if lowest.any():
                shown = str(-_I32) if from_date else format_interval(Interval(-_I32, 0, 0))
                error = interval_out_of_range(shown)
                bad.append((lowest, lambda row: error))
                months = np.where(lowest, 0, months)
            months, days, micros = -months.astype(np.int64), -days.astype(np.int64), -micros
        out, outside = add_interval_array(us, months, days, micros)
        bad.append((outside, _out_of_range))
        valid = apply_bad(bad, spread_valid(valid, len(out)), len(out), errors)
        return FixedColumn(out, valid, _TS)

    return kernel


def _shift_one(us: int, sign: int, span: IntervalColumn, from_date: bool, errors: RowErrors) -> Column:
    """The one-row case in plain integers: numpy's fixed costs would dominate."""
    months, days, micros = span.values[0].item()
    try:
        if sign < 0 and months == -_I32:
            raise interval_out_of_range(str(-_I32) if from_date else format_interval(Interval(-_I32, 0, 0)))
        return FixedColumn(np.array([add_interval(us, sign * months, sign * days, sign * micros)], np.int64), None, _TS)
    except SqlError as error:
        errors.add(0, error)
        return FixedColumn(np.zeros(1, np.int64), np.zeros(1, np.bool_), _TS)


def _difference(site: CallSite, args: Args, n: int, errors: RowErrors) -> Column:
    """timestamp - timestamp: whole days and the rest."""
    us = values_of(args[0]) - values_of(args[1])
    days = np.where(us < 0, -(-us // DAY_US), us // DAY_US)
    zero = np.zeros(len(us), np.int32)
    return IntervalColumn.from_parts(zero, days, us - days * DAY_US, spread_valid(merge_valid(args), len(us)))


def _date_difference(a: Any, b: Any) -> Any:
    return (a.astype(np.int64) - b).astype(np.int32)


def _date_time(swapped: bool) -> Callable[[Any, Any], Any]:
    def add(a: Any, b: Any) -> Any:
        date, time = (b, a) if swapped else (a, b)
        return date.astype(np.int64) * DAY_US + time

    return add


def _time_shift(sign: int, *, swapped: bool = False) -> Kernel:
    def kernel(site: CallSite, args: Args, n: int, errors: RowErrors) -> Column:
        time, span = (args[1], args[0]) if swapped else args
        assert isinstance(span, IntervalColumn)
        out = (values_of(time) + sign * (span.us % DAY_US)) % DAY_US
        return FixedColumn(out, spread_valid(merge_valid(args), len(out)), Layout.TIME)

    return kernel


def _time_difference(site: CallSite, args: Args, n: int, errors: RowErrors) -> Column:
    us = values_of(args[0]) - values_of(args[1])
    zero = np.zeros(len(us), np.int32)
    return IntervalColumn.from_parts(zero, zero, us, spread_valid(merge_valid(args), len(us)))


def checked_interval(months: int, days: int, us: int, text: Callable[[], str]) -> Interval:
    if not (-_I32 <= months < _I32 and -_I32 <= days < _I32 and -_I64 <= us < _I64):
        raise interval_out_of_range(text())
    return Interval(months, days, us)


def _combine(sign: int) -> Kernel:
    symbol = "+" if sign > 0 else "-"

    def exact(a: Interval, b: Interval) -> Interval:
        if sign < 0 and (b.months == -_I32 or b.days == -_I32 or b.us == -_I64):
            # Subtracting is adding the negation, which this interval does not have.
            raise interval_out_of_range(f"{format_interval(a)} - {format_interval(b)}")
        return checked_interval(
            a.months + sign * b.months,
            a.days + sign * b.days,
            a.us + sign * b.us,
            lambda: f"{format_interval(a)} {symbol} {format_interval(b)}",
        )

    slow = per_value(exact)

    def kernel(site: CallSite, args: Args, n: int, errors: RowErrors) -> Column:
        a, b = args
        assert isinstance(a, IntervalColumn) and isinstance(b, IntervalColumn)
        limit = 1 << 62
        if len(a) and len(b) and max(np.abs(a.us).max(), np.abs(b.us).max()) < limit:
            months = a.months.astype(np.int64) + sign * b.months.astype(np.int64)
            days = a.days.astype(np.int64) + sign * b.days.astype(np.int64)
            negatable = sign > 0 or not ((b.months == -_I32) | (b.days == -_I32)).any()
            if negatable and max(np.abs(months).max(), np.abs(days).max()) < _I32:
                us = a.us + sign * b.us
                return IntervalColumn.from_parts(months, days, us, spread_valid(merge_valid(args), len(us)))
        return slow(site, args, n, errors)

    return kernel


def _negate(a: Interval) -> Interval:
    return checked_interval(-a.months, -a.days, -a.us, lambda: format_interval(a))


def _float_text(value: float) -> str:
    """A float as Rust prints it."""
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "inf" if value > 0 else "-inf"
    return np.format_float_positional(value, unique=True, trim="-")


def scale_interval(a: Interval, factor: Fraction, text: Callable[[], str]) -> Interval:
    """a times factor; what is left of months becomes days, what is left of days microseconds."""
    months = a.months * factor
    whole_months = int(months)
    days = a.days * factor + (months - whole_months) * 30
    whole_days = int(days)
    us = a.us * factor + round((days - whole_days) * DAY_US, 6)
    return checked_interval(whole_months, whole_days, round(us), text)


def _times(a: Interval, factor: float) -> Interval:
    def text() -> str:
        return f"{format_interval(a)} * {_float_text(factor)}"

    if factor != factor or factor in (float("inf"), float("-inf")):
        raise interval_out_of_range(text())
    return scale_interval(a, _decimal_fraction(factor), text)


def _divided(a: Interval, divisor: float) -> Interval:
    if divisor == 0:
        raise SqlError("22012", "division by zero")

    def text() -> str:
        return f"{format_interval(a)} / {_float_text(divisor)}"

    if divisor != divisor or divisor in (float("inf"), float("-inf")):
        raise interval_out_of_range(text())
    return scale_interval(a, 1 / _decimal_fraction(divisor), text)


def _decimal_fraction(value: float) -> Fraction:
    """The number a float was written as, so that 0.1 month is 3 days and not one microsecond less."""
    return Fraction(repr(value))


def _register_operators() -> None:
    for kind in ("timestamp", "timestamptz"):
        operator("+", "add", f"{kind}, interval -> {kind}", _shift(1))
        operator("+", "add", f"interval, {kind} -> {kind}", _shift(1, swapped=True))
        operator("-", "sub", f"{kind}, interval -> {kind}", _shift(-1))
        operator("-", "sub", f"{kind}, {kind} -> interval", _difference, can_error=False)
    operator("+", "add", "date, interval -> timestamp", _shift(1, from_date=True))
    operator("+", "add", "interval, date -> timestamp", _shift(1, swapped=True, from_date=True))
    operator("-", "sub", "date, interval -> timestamp", _shift(-1, from_date=True))
    operator("-", "sub", "date, date -> int4", elementwise(_date_difference, Layout.I32), can_error=False)
    operator("+", "add", "date, time -> timestamp", elementwise(_date_time(False), _TS), can_error=False)
    operator("+", "add", "time, date -> timestamp", elementwise(_date_time(True), _TS), can_error=False)
    operator("+", "add", "time, interval -> time", _time_shift(1), can_error=False)
    operator("+", "add", "interval, time -> time", _time_shift(1, swapped=True), can_error=False)
    operator("-", "sub", "time, interval -> time", _time_shift(-1), can_error=False)
    operator("-", "sub", "time, time -> interval", _time_difference, can_error=False)
    operator("+", "add", "interval, interval -> interval", _combine(1))
    operator("-", "sub", "interval, interval -> interval", _combine(-1))
    operator("-", "neg", "interval -> interval", per_value(_negate))
    operator("*", "mul", "interval, float8 -> interval", per_value(_times))
    operator("*", "mul", "float8, interval -> interval", per_value(lambda factor, a: _times(a, factor)))
    operator("/", "div", "interval, float8 -> interval", per_value(_divided))
    # mz_timestamp: a step function only the planner uses, for exclusive bounds.
    register("step_mz_timestamp", "mz_timestamp -> mz_timestamp", checked(_step, Layout.U64), id="step_mz_timestamp")


def _register_functions() -> None:
    """Casts that are called like functions."""
    for kind in ("text", "timestamp", "timestamptz", "date"):
        kernel: Kernel = from_text if kind == "text" else identity
        if kind.startswith("timestamp"):
            kernel = elementwise(lambda us: (us // DAY_US).astype(np.int32), Layout.DATE)
        shown = FUNCTIONS[f"cast_{kind}_date"].display if kind != "date" else "date"
        register("date", f"{kind} -> date", kernel, can_error=kind == "text", display=shown)


def _step(ms: Any) -> tuple[Any, list[Any]]:
    bad = ms == np.uint64(2**64 - 1)
    error = SqlError("22003", "step mz_timestamp overflow")
    return ms + np.uint64(1), [(bad, lambda row: error)] if bad.any() else []


_register_casts()
_register_operators()
_register_functions()
