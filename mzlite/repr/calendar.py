"""The proleptic Gregorian calendar on day numbers, for scalars and for whole columns.

Python's datetime stops at years 1 and 9999; SQL's dates run from 4714 BC to beyond 262000. Days count from 1970-01-01;
years are astronomical inside (0 is 1 BC) and turned to BC only for display.

source: Howard Hinnant, "chrono-compatible low-level date algorithms" (days from civil and back).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

I64 = NDArray[np.int64]

DAY_US = 86_400_000_000
# The range of Materialize's dates and timestamps.
MIN_DATE = -2_440_588  # 4714-11-24 BC, Julian day 0
MAX_DATE = 95_026_236  # 262142-12-31
MIN_TIMESTAMP = MIN_DATE * DAY_US
MAX_TIMESTAMP = MAX_DATE * DAY_US + DAY_US - 1

_MONTH_DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def is_leap(year: int) -> bool:
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def days_in_month(year: int, month: int) -> int:
    return 29 if month == 2 and is_leap(year) else _MONTH_DAYS[month - 1]


def days_from_civil(year: int, month: int, day: int) -> int:
    """Days since 1970-01-01 of an astronomical year, month 1-12, day."""
    if month <= 2:
        year -= 1
        month += 12
    era, year_of_era = divmod(year, 400)
    day_of_year = (153 * (month - 3) + 2) // 5 + day - 1
    return era * 146_097 + year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year - 719_468


def civil_from_days(days: Any) -> tuple[Any, Any, Any]:
    """(astronomical year, month, day) of a day number: ints for an int, int64 arrays for an int64 array."""
    days = days + 719_468
    era = days // 146_097
    doe = days - era * 146_097
    yoe = (doe - doe // 1460 + doe // 36_524 - doe // 146_096) // 365
    doy = doe - (365 * yoe + yoe // 4 - yoe // 100)
    mp = (5 * doy + 2) // 153
    day = doy - (153 * mp + 2) // 5 + 1
    month = (mp + 2) % 12 + 1
    year = yoe + era * 400 + (month <= 2)
    return year, month, day


def days_from_civil_array(year: I64, month: I64, day: I64) -> I64:
    """`days_from_civil` of int64 arrays."""
    early = month <= 2
    year = year - early
    month = month + np.where(early, 12, 0)
    era = year // 400
    yoe = year - era * 400
    doy = (153 * (month - 3) + 2) // 5 + day - 1
    days: I64 = era * 146_097 + yoe * 365 + yoe // 4 - yoe // 100 + doy - 719_468
    return days


def days_in_month_array(year: I64, month: I64) -> I64:
    leap = (year % 4 == 0) & ((year % 100 != 0) | (year % 400 == 0))
    days = np.array(_MONTH_DAYS, np.int64)[month - 1]
    total: I64 = days + (leap & (month == 2))
    return total


def format_date(days: int) -> str:
    """`YYYY-MM-DD`, with ` BC` for years before 1."""
    year, month, day = civil_from_days(days)
    if year > 0:
        return f"{year:04d}-{month:02d}-{day:02d}"
    return f"{1 - year:04d}-{month:02d}-{day:02d} BC"


def format_time(us: int) -> str:
    """`HH:MM:SS[.ffffff]`, trailing zeros of the fraction stripped."""
    seconds, fraction = divmod(us, 1_000_000)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    text = f"{hour:02d}:{minute:02d}:{second:02d}"
    return f"{text}.{fraction:06d}".rstrip("0") if fraction else text


def format_timestamp(us: int, zone: str = "") -> str:
    """`YYYY-MM-DD HH:MM:SS[.f]` then `zone`, then ` BC` for years before 1."""
    days, rest = divmod(us, DAY_US)
    date = format_date(days)
    if date.endswith(" BC"):
        return f"{date[:-3]} {format_time(rest)}{zone} BC"
    return f"{date} {format_time(rest)}{zone}"
