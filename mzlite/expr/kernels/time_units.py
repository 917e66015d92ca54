"""Units of time: their names, extracting one (EXTRACT, date_part) and truncating to one (date_trunc).

Works on whole columns: `extract_*` give (integer values, decimal scale), so that EXTRACT is exact and date_part divides.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mzlite.repr.calendar import DAY_US, civil_from_days, days_from_civil_array
from mzlite.repr.errors import SqlError

_NAMES = {
    "epoch": "epoch",
    "millennium": "mil millennium millenniums millennia",
    "century": "c cent century centuries",
    "decade": "dec decs decade decades",
    "year": "y yr yrs year years",
    "quarter": "quarter",
    "week": "week",
    "month": "mon mons month months",
    "day": "d day days",
    "hour": "h hr hrs hour hours",
    "minute": "m min mins minute minutes",
    "seconds": "s sec secs second seconds",
    "milliseconds": "ms msec msecs msecond mseconds millisecond milliseconds",
    "microseconds": "us usec usecs usecond useconds microsecond microseconds",
    "timezone": "timezone",
    "timezone_hour": "timezone_hour timezone_h",
    "timezone_minute": "timezone_minute timezone_m",
    "dow": "dow",
    "doy": "doy",
    "isodow": "isodow",
    "isodoy": "isodoy",
    "isoyear": "isoyear",
}
_UNITS = {name: unit for unit, names in _NAMES.items() for name in names.split()}
Scaled = tuple[Any, int]


def parse_unit(text: str) -> str:
    unit = _UNITS.get(text.lower())
    if unit is None:
        raise SqlError("22023", f"unit '{text}' not recognized")
    return unit


def unsupported(unit: str, type_name: str) -> SqlError:
    return SqlError("0A000", f"unit '{unit}' not supported for type {type_name}")


def _century(year: Any) -> Any:
    return np.where(year > 0, (year + 99) // 100, -((100 - year) // 100))


def _millennium(year: Any) -> Any:
    return np.where(year > 0, (year + 999) // 1000, -((1000 - year) // 1000))


def iso_week_year(days: Any) -> tuple[Any, Any]:
    """(ISO week, ISO year) of day numbers: the week's Thursday decides."""
    weekday = (days + 3) % 7  # Monday 0
    thursday = days - weekday + 3
    year, _, _ = civil_from_days(thursday)
    first = days_from_civil_array(year, np.ones_like(year), np.ones_like(year))
    return (thursday - first) // 7 + 1, year


def extract_days(unit: str, days: Any, type_name: str) -> Scaled:
    """A calendar unit of int64 day numbers."""
    year, month, day = civil_from_days(days)
    match unit:
        case "epoch":
            return days * 86_400, 0
        case "millennium":
            return _millennium(year), 0
        case "century":
            return _century(year), 0
        case "decade":
            return year // 10, 0
        case "year":
            return np.where(year > 0, year, year - 1), 0
        case "quarter":
            return (month + 2) // 3, 0
        case "month":
            return month, 0
        case "week":
            return iso_week_year(days)[0], 0
        case "isoyear":
            return iso_week_year(days)[1], 0
        case "day":
            return day, 0
        case "dow":
            return (days + 4) % 7, 0
        case "isodow":
            return (days + 3) % 7 + 1, 0
        case "doy":
            one = np.ones_like(year)
            return days - days_from_civil_array(year, one, one) + 1, 0
        case _:
            raise unsupported(unit, type_name)


def extract_clock(unit: str, us: Any, type_name: str) -> Scaled:
    """A clock unit of int64 microseconds since midnight."""
    match unit:
        case "epoch":
            return us, 6
        case "hour":
            return us // 3_600_000_000, 0
        case "minute":
            return us // 60_000_000 % 60, 0
        case "seconds":
            return us % 60_000_000, 6
        case "milliseconds":
            return us % 60_000_000, 3
        case "microseconds":
            return us % 60_000_000, 0
        case _:
            raise unsupported(unit, type_name)


_CLOCK = {"hour", "minute", "seconds", "milliseconds", "microseconds"}


def extract_timestamp(unit: str, us: Any, type_name: str, *, zoned: bool) -> Scaled:
    if unit == "epoch":
        return us, 6
    if unit in _CLOCK:
        return extract_clock(unit, us % DAY_US, type_name)
    if zoned and unit.startswith("timezone"):
        return np.zeros_like(us), 0
    return extract_days(unit, us // DAY_US, type_name)


def truncate_timestamp(unit: str, us: Any) -> Any:
    """The start of the unit that holds each int64 timestamp, unchecked."""
    match unit:
        case "microseconds":
            return us
        case "milliseconds":
            return us - us % 1000
        case "seconds":
            return us - us % 1_000_000
        case "minute":
            return us - us % 60_000_000
        case "hour":
            return us - us % 3_600_000_000
        case "day":
            return us - us % DAY_US
        case "week":
            days = us // DAY_US
            return (days - (days + 3) % 7) * DAY_US
    year, month, _ = civil_from_days(us // DAY_US)
    one = np.ones_like(year)
    match unit:
        case "month":
            return days_from_civil_array(year, month, one) * DAY_US
        case "quarter":
            return days_from_civil_array(year, (month - 1) // 3 * 3 + 1, one) * DAY_US
        case "year":
            pass
        case "decade":
            year = year // 10 * 10
        case "century":
            # Years 1..100 are the first century; 0..-99 the one before.
            year = (year - 1) // 100 * 100 + 1
        case "millennium":
            year = (year - 1) // 1000 * 1000 + 1
        case _:
            raise unsupported(unit, "timestamp")
    return days_from_civil_array(year, one, one) * DAY_US


_INTERVAL_MONTHS = {"year": 12, "decade": 120, "century": 1200, "millennium": 12_000, "quarter": 3, "month": 1}
_INTERVAL_US = {
    "hour": 3_600_000_000,
    "minute": 60_000_000,
    "seconds": 1_000_000,
    "milliseconds": 1000,
    "microseconds": 1,
}


def truncate_interval(unit: str, months: int, days: int, us: int) -> tuple[int, int, int]:
    """Towards zero, field by field."""
    if unit in _INTERVAL_MONTHS:
        step = _INTERVAL_MONTHS[unit]
        return abs(months) // step * step * (1 if months >= 0 else -1), 0, 0
    if unit == "day":
        return months, days, 0
    if unit in _INTERVAL_US:
        step = _INTERVAL_US[unit]
        return months, days, abs(us) // step * step * (1 if us >= 0 else -1)
    raise unsupported(unit, "interval")


def _quotient(a: int, b: int) -> int:
    """Towards zero."""
    return abs(a) // b if a >= 0 else -(abs(a) // b)


def extract_interval(unit: str, months: int, days: int, us: int) -> tuple[int, int]:
    """(value, scale) of one interval; a year counts 365.25 days for the epoch."""
    years = _quotient(months, 12)
    rest = months - years * 12
    minute_us = us - _quotient(us, 60_000_000) * 60_000_000
    match unit:
        case "epoch":
            whole_days = days * 86_400
            return (years * 31_557_600 + rest * 2_592_000 + whole_days) * 1_000_000 + us, 6
        case "millennium":
            return _quotient(years, 1000), 0
        case "century":
            return _quotient(years, 100), 0
        case "decade":
            return _quotient(years, 10), 0
        case "year":
            return years, 0
        case "quarter":
            return _quotient(rest, 3) + 1, 0
        case "month":
            return rest, 0
        case "day":
            return days, 0
        case "hour":
            return _quotient(us, 3_600_000_000), 0
        case "minute":
            whole = _quotient(us, 60_000_000)
            return whole - _quotient(whole, 60) * 60, 0
        case "seconds":
            return minute_us, 6
        case "milliseconds":
            return minute_us, 3
        case "microseconds":
            return minute_us, 0
        case _:
            raise unsupported(unit, "interval")
