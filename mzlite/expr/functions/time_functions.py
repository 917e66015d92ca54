"""Functions of dates and times: extract, date_trunc, date_bin, age, justify, make, time zones."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np

from mzlite.expr.call import Args, CallSite, Kernel, RowErrors
from mzlite.expr.functions.dates import checked_interval
from mzlite.expr.functions.registry import register
from mzlite.expr.functions.text import value
from mzlite.expr.kernels import time_units as u
from mzlite.expr.kernels.adapt import merge_valid, per_value, spread_valid, values_of, width
from mzlite.expr.kernels.calendar_math import check_timestamp, timestamp_out_of_range
from mzlite.repr.calendar import (
    DAY_US,
    MAX_DATE,
    MAX_TIMESTAMP,
    MIN_DATE,
    MIN_TIMESTAMP,
    civil_from_days,
    days_from_civil,
    days_in_month,
)
from mzlite.repr.column import Column, concat
from mzlite.repr.errors import SqlError
from mzlite.repr.fixed import FixedColumn
from mzlite.repr.interval import Interval
from mzlite.repr.numeric import LIMIT, NumericColumn
from mzlite.repr.timezone import Timezone, TimezoneError, parse_timezone
from mzlite.repr.types import Layout
from mzlite.repr.var import VarColumn

_TS = Layout.TIMESTAMP
Extract = Callable[[str, Any], tuple[Any, int]]


# --- by a unit --------------------------------------------------------------------------------------------------------


def by_unit(run: Callable[[CallSite, str, Column, RowErrors], Column]) -> Kernel:
    """A function (unit, column) vectorised over the column: directly for one unit, else once per distinct unit."""

    def kernel(site: CallSite, args: Args, n: int, errors: RowErrors) -> Column:
        names, column = args
        assert isinstance(names, VarColumn)
        rows = width(args)
        if len(names) == 1:
            return _by_one_unit(run, site, names.value(0).decode(), column, merge_valid(args), errors)
        column = column if len(column) == rows else column.take(np.zeros(rows, np.int64))
        parts: list[Column] = []
        places: list[Any] = []
        texts = np.array([t or "" for t in names.to_strings()], object)
        for text in sorted(set(texts.tolist())):
            idx = np.flatnonzero(texts == text)
            own = RowErrors()
            part = column.take(idx)
            valid = part.valid
            if names.valid is not None:
                valid = names.valid[idx] if valid is None else valid & names.valid[idx]
            parts.append(_by_one_unit(run, site, text, part, valid, own))
            errors.add_all(own, idx)
            places.append(idx)
        order = np.empty(rows, np.int64)
        order[np.concatenate(places)] = np.arange(rows)
        return concat(parts).take(order)

    return kernel


def _by_one_unit(
    run: Callable[[CallSite, str, Column, RowErrors], Column],
    site: CallSite,
    text: str,
    column: Column,
    valid: Any,
    errors: RowErrors,
) -> Column:
    from mzlite.repr.column import nulls

    rows = len(column)
    valid = spread_valid(valid, rows)
    if valid is not None and not valid.any():
        return nulls(site.typ.layout, rows)
    try:
        out = run(site, u.parse_unit(text), column, errors)
    except SqlError as error:
        errors.add_mask(np.ones(rows, np.bool_) if valid is None else valid, error)
        return nulls(site.typ.layout, rows)
    if valid is not None:
        out.valid = valid if out.valid is None else out.valid & valid
    return out


def _scaled(site: CallSite, values: Any, scale: int) -> Column:
    """Integers at a decimal scale as the site's type: numeric exactly, float8 nearest."""
    if site.typ.layout is Layout.NUMERIC:
        values = values.astype(np.int64)
        if len(values) and int(np.abs(values).max()) >= LIMIT:
            return NumericColumn.from_decimals([Decimal(v).scaleb(-scale) for v in values.tolist()])
        return NumericColumn(values, scale)
    return FixedColumn(values.astype(np.float64) / float(10**scale) if scale else values.astype(np.float64))


def _extractor(extract: Callable[[str, Any], tuple[Any, int]]) -> Kernel:
    def run(site: CallSite, unit: str, column: Column, errors: RowErrors) -> Column:
        values, scale = extract(unit, values_of(column).astype(np.int64))
        return _scaled(site, values, scale)

    return by_unit(run)


def _extract_interval(site: CallSite, text: str, span: Interval) -> Any:
    number, scale = u.extract_interval(u.parse_unit(text), *span)
    if site.typ.layout is Layout.NUMERIC:
        return Decimal(number).scaleb(-scale)
    return number / 10**scale


def _date_extract(unit: str, days: Any) -> tuple[Any, int]:
    return u.extract_days(unit, days, "date")


def _time_extract(unit: str, us: Any) -> tuple[Any, int]:
    return u.extract_clock(unit, us, "time")


def _timestamp_extract(zoned: bool) -> Callable[[str, Any], tuple[Any, int]]:
    name = "timestamp with time zone" if zoned else "timestamp"
    return lambda unit, us: u.extract_timestamp(unit, us, name, zoned=zoned)


for _name, _result in (("extract", "numeric"), ("date_part", "float8")):
    if _name == "extract":
        register(_name, f"text, date -> {_result}", _extractor(_date_extract))
    register(_name, f"text, time -> {_result}", _extractor(_time_extract))
    register(_name, f"text, timestamp -> {_result}", _extractor(_timestamp_extract(False)))
    register(_name, f"text, timestamptz -> {_result}", _extractor(_timestamp_extract(True)))
    register(_name, f"text, interval -> {_result}", per_value(_extract_interval, with_site=True))


def _truncate(site: CallSite, unit: str, column: Column, errors: RowErrors) -> Column:
    out = u.truncate_timestamp(unit, values_of(column))
    bad = (out < MIN_TIMESTAMP) | (out > MAX_TIMESTAMP)
    valid = None
    if bad.any():
        live = bad if column.valid is None else bad & column.valid
        errors.add_mask(live, timestamp_out_of_range())
        valid = ~bad
    return FixedColumn(out, valid, _TS)


register("date_trunc", "text, timestamp -> timestamp", by_unit(_truncate), display="date_truncts")
register("date_trunc", "text, timestamptz -> timestamptz", by_unit(_truncate), display="date_trunctstz")


@value("date_trunc", "text, interval -> interval", display="date_trunciv")
def _truncate_interval(text: str, span: Interval) -> Interval:
    return Interval(*u.truncate_interval(u.parse_unit(text), *span))


@value("date_trunc", "text, timestamptz, text -> timestamptz")
def _truncate_zoned(text: str, us: int, zone: str) -> int:
    tz = timezone(zone)
    local = np.array([tz.to_local(us)], np.int64)
    return check_timestamp(tz.to_utc(int(u.truncate_timestamp(u.parse_unit(text), local)[0])))


# --- bins -------------------------------------------------------------------------------------------------------------


def _stride(span: Interval) -> int:
    if span.months:
        raise SqlError("0A000", "timestamps cannot be binned into intervals containing months or years")
    stride = span.days * DAY_US + span.us
    if stride <= 0:
        raise SqlError("22008", "stride must be greater than zero")
    if stride * 1000 >= 1 << 63:
        raise SqlError("22008", "stride cannot exceed 2^63 nanoseconds")
    return stride


@value("date_bin", "interval, timestamp, timestamp -> timestamp")
@value("date_bin", "interval, timestamptz, timestamptz -> timestamptz")
def date_bin(span: Interval, source: int, origin: int) -> int:
    stride = _stride(span)
    distance = source - origin
    if abs(distance) * 1000 >= 1 << 63:
        raise SqlError("22008", "source and origin must not differ more than 2^63 nanoseconds")
    return check_timestamp(origin + distance // stride * stride)


@value("date_bin", "interval, timestamp -> timestamp")
@value("date_bin", "interval, timestamptz -> timestamptz")
def _date_bin_epoch(span: Interval, source: int) -> int:
    return date_bin(span, source, 0)


# --- ages and justification -------------------------------------------------------------------------------------------


@value("age", "timestamp, timestamp -> interval")
@value("age", "timestamptz, timestamptz -> interval")
def _age(a: int, b: int) -> Interval:
    """The symbolic difference: years, months and days as a calendar counts them."""
    sign = 1 if a >= b else -1
    late, early = max(a, b), min(a, b)
    late_days, late_us = divmod(late, DAY_US)
    early_days, early_us = divmod(early, DAY_US)
    y1, m1, d1 = civil_from_days(late_days)
    y0, m0, d0 = civil_from_days(early_days)
    months = (y1 - y0) * 12 + m1 - m0
    days = d1 - d0
    us = late_us - early_us
    if us < 0:
        us += DAY_US
        days -= 1
    if days < 0:
        days += days_in_month(y0, m0)  # the month the earlier date stands in
        months -= 1
    return Interval(sign * months, sign * days, sign * us)


def _to_days(us: int) -> tuple[int, int]:
    """(whole days, rest) towards zero."""
    days = abs(us) // DAY_US * (1 if us >= 0 else -1)
    return days, us - days * DAY_US


def _interval_text(span: Interval) -> Callable[[], str]:
    from mzlite.repr.intervaltext import format_interval

    return lambda: format_interval(span)


@value("justify_hours", "interval -> interval")
def _justify_hours(span: Interval) -> Interval:
    days, us = _to_days(span.us)
    days += span.days
    if days > 0 and us < 0:
        days, us = days - 1, us + DAY_US
    elif days < 0 and us > 0:
        days, us = days + 1, us - DAY_US
    return checked_interval(span.months, days, us, _interval_text(span))


@value("justify_days", "interval -> interval")
def _justify_days(span: Interval) -> Interval:
    months = abs(span.days) // 30 * (1 if span.days >= 0 else -1)
    days = span.days - months * 30
    months += span.months
    if months > 0 and days < 0:
        months, days = months - 1, days + 30
    elif months < 0 and days > 0:
        months, days = months + 1, days - 30
    return checked_interval(months, days, span.us, _interval_text(span))


@value("justify_interval", "interval -> interval")
def _justify_interval(span: Interval) -> Interval:
    days, us = _to_days(span.us)
    days += span.days
    months = abs(days) // 30 * (1 if days >= 0 else -1)
    days -= months * 30
    months += span.months
    if months > 0 and (days < 0 or (days == 0 and us < 0)):
        months, days = months - 1, days + 30
    elif months < 0 and (days > 0 or (days == 0 and us > 0)):
        months, days = months + 1, days - 30
    if days > 0 and us < 0:
        days, us = days - 1, us + DAY_US
    elif days < 0 and us > 0:
        days, us = days + 1, us - DAY_US
    return checked_interval(months, days, us, _interval_text(span))


# --- making -----------------------------------------------------------------------------------------------------------


@value("to_timestamp", "float8 -> timestamptz")
def _to_timestamp(seconds: float) -> int:
    if seconds != seconds:
        raise SqlError("22008", "timestamp cannot be NaN")
    if seconds in (float("inf"), float("-inf")):
        raise timestamp_out_of_range()
    whole = int(seconds // 1)
    return check_timestamp(whole * 1_000_000 + round((seconds - whole) * 1_000_000))


@value("make_timestamp", "int8, int8, int8, int8, int8, float8 -> timestamp", nullable="always")
def _make_timestamp(year: int, month: int, day: int, hour: int, minute: int, second: float) -> int | None:
    if not (1 <= month <= 12 and -300_000 < year < 300_000 and 0 <= hour < 24 and 0 <= minute < 60):
        return None
    if not (1 <= day <= days_in_month(year, month) and 0 <= second < 60):
        return None
    us = round(second * 1_000_000)
    clock = (hour * 60 + minute) * 60_000_000 + us
    return check_timestamp(days_from_civil(year, month, day) * DAY_US + clock)


@value("make_interval", "int4, int4, int4, int4, int4, int4, float8 -> interval")
def _make_interval(
    years: int, months: int, weeks: int, days: int, hours: int, minutes: int, seconds: float
) -> Interval:
    if seconds != seconds or abs(seconds) > 1e13:
        raise SqlError("22008", "interval out of range")
    us = (hours * 60 + minutes) * 60_000_000 + round(seconds * 1_000_000)
    return checked_interval(years * 12 + months, weeks * 7 + days, us, lambda: "make_interval")


@value("make_date", "int4, int4, int4 -> date")
def _make_date(year: int, month: int, day: int) -> int:
    if year == 0 or abs(year) > 300_000 or not 1 <= month <= 12 or not 1 <= day <= days_in_month(year, month):
        raise SqlError("22008", f"date field value out of range: {year}-{month:02d}-{day:02d}")
    days = days_from_civil(year if year > 0 else year + 1, month, day)
    if not MIN_DATE <= days <= MAX_DATE:
        raise SqlError("22008", f"date out of range: {year}-{month:02d}-{day:02d}")
    return days


# --- time zones -------------------------------------------------------------------------------------------------------


def timezone(text: str) -> Timezone:
    try:
        return parse_timezone(text)
    except TimezoneError as error:
        raise SqlError(
            "22023", f"invalid time zone '{text}'" if "Invalid timezone" not in str(error) else str(error)
        ) from None


def _zone_kernel(convert: Callable[[Timezone, Any], Any]) -> Kernel:
    """timezone(name, timestamp): vectorised over the timestamps for one zone."""
    slow = per_value(lambda text, us: check_timestamp(int(convert(timezone(text), np.array([us], np.int64))[0])))

    def kernel(site: CallSite, args: Args, n: int, errors: RowErrors) -> Column:
        names, column = args
        if len(names) == 1 and len(column) > 1 and names.valid is None:
            assert isinstance(names, VarColumn)
            try:
                zone = timezone(names.value(0).decode())
            except SqlError:
                return slow(site, args, n, errors)
            return FixedColumn(convert(zone, values_of(column)), column.valid, _TS)
        return slow(site, args, n, errors)

    return kernel


register(
    "timezone",
    "text, timestamp -> timestamptz",
    _zone_kernel(lambda zone, us: zone.to_utc_array(us)),
    display="timezonets",
)
register(
    "timezone",
    "text, timestamptz -> timestamp",
    _zone_kernel(lambda zone, us: zone.to_local_array(us)),
    display="timezonetstz",
)


def _offset_us(span: Interval) -> int:
    if span.months or span.days:
        raise SqlError("22023", "timezone interval must not contain months or years")
    return span.us


@value("timezone", "interval, timestamp -> timestamptz", display="timezoneits")
def _zone_interval(span: Interval, us: int) -> int:
    return check_timestamp(us - _offset_us(span))


@value("timezone", "interval, timestamptz -> timestamp", display="timezoneitstz")
def _zone_interval_tz(span: Interval, us: int) -> int:
    return check_timestamp(us + _offset_us(span))


@value("timezone", "text, time -> time", display="timezonet")
def _zone_time(text: str, us: int) -> int:
    zone = timezone(text)
    if zone.fixed_s is None:
        raise SqlError("0A000", "named time zones for type time not yet supported")
    return (us + zone.fixed_s * 1_000_000) % DAY_US


@value("timezone", "interval, time -> time", display="timezoneit")
def _zone_interval_time(span: Interval, us: int) -> int:
    return (us + _offset_us(span)) % DAY_US
