"""Date and time arithmetic on microseconds and intervals, a value or a whole column at a time."""

from __future__ import annotations

from typing import Any

import numpy as np

from mzlite.repr.calendar import (
    DAY_US,
    MAX_TIMESTAMP,
    MIN_TIMESTAMP,
    civil_from_days,
    days_from_civil,
    days_from_civil_array,
    days_in_month,
    days_in_month_array,
)
from mzlite.repr.errors import SqlError


def timestamp_out_of_range() -> SqlError:
    return SqlError("22008", "timestamp out of range")


def check_timestamp(us: int) -> int:
    if not MIN_TIMESTAMP <= us <= MAX_TIMESTAMP:
        raise timestamp_out_of_range()
    return us


def add_months(us: int, months: int) -> int:
    """us moved by whole months; the day is cut to the month's last."""
    if months == 0:
        return us
    days, rest = divmod(us, DAY_US)
    year, month, day = civil_from_days(days)
    total = year * 12 + month - 1 + months
    year, month = total // 12, total % 12 + 1
    if not -5000 <= year <= 300_000:
        raise timestamp_out_of_range()
    return days_from_civil(year, month, min(day, days_in_month(year, month))) * DAY_US + rest


def add_interval(us: int, months: int, days: int, micros: int) -> int:
    """timestamp + interval: months, then days, then microseconds."""
    return check_timestamp(add_months(check_timestamp(us), months) + days * DAY_US + micros)


def add_months_array(us: Any, months: Any) -> Any:
    """`add_months` of int64 arrays, unchecked."""
    days = us // DAY_US
    rest = us - days * DAY_US
    year, month, day = civil_from_days(days)
    total = year * 12 + month - 1 + months
    year = total // 12
    month = total - year * 12 + 1
    day = np.minimum(day, days_in_month_array(year, month))
    return days_from_civil_array(year, month, day) * DAY_US + rest


def add_interval_array(us: Any, months: Any, days: Any, micros: Any) -> tuple[Any, Any]:
    """(timestamps, out of range) of int64 arrays; unequal lengths broadcast."""
    months = months.astype(np.int64)
    days = days.astype(np.int64)
    # Ten times the range on either side cannot wrap; anything beyond is out of range anyhow.
    limit = 10 * MAX_TIMESTAMP // DAY_US
    wild = (np.abs(months) > 12 * 400_000) | (np.abs(days) > limit) | (np.abs(micros) > (1 << 62))
    if wild.any():
        months = np.where(wild, 0, months)
        days = np.where(wild, 0, days)
        micros = np.where(wild, 0, micros)
    out = add_months_array(us, months) if months.any() else us
    approx = out.astype(np.float64) + days * float(DAY_US) + micros
    bad = wild | (approx < MIN_TIMESTAMP - 1e9) | (approx > MAX_TIMESTAMP + 1e9)
    out = out + days * DAY_US + micros
    bad = bad | (out < MIN_TIMESTAMP) | (out > MAX_TIMESTAMP)
    return out, bad
