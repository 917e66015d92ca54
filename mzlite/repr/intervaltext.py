"""Parsing and printing intervals.

    SQL standard   1-2 3 4:5:6.7      year-month, day, clock; a sign in front of each group
    PostgreSQL     1 year 2 mons 3.5 days -04:05:06 ago, in any order, any unit fractional
    ISO 8601       P1Y2M3DT4H5M6.7S

A number without a unit is seconds, unless a qualifier (`INTERVAL '1' MONTH`) says otherwise. A fraction of a unit
becomes whole smaller units: of a year, months; of a month, days and time; of the rest, microseconds.
"""

from __future__ import annotations

import re
from collections import deque

from mzlite.repr.errors import SqlError
from mzlite.repr.interval import DAY_US, Interval
from mzlite.repr.timetokens import (
    CLOCK_FROM,
    DELIM,
    FIELDS,
    NANO,
    NANOS,
    NUM,
    POSTGRES,
    SQL,
    UNIT,
    Fields,
    TimeTextError,
    Tokens,
    fill,
    part_format,
    reject_rest,
    take_sign,
    tokenize,
)

I32_MIN, I32_MAX = -(2**31), 2**31 - 1
I64_MIN, I64_MAX = -(2**63), 2**63 - 1
_SQL_SHAPES = {"year": (NUM, "-", NUM, DELIM), **CLOCK_FROM}
_POSTGRES_SHAPE = (NUM, ".", NANOS, UNIT)
_MONTHS = {"millennium": 12_000, "century": 1200, "decade": 120, "year": 12}
_MICROS = {"hour": 3_600_000_000, "minute": 60_000_000, "second": 1_000_000, "milliseconds": 1000, "microseconds": 1}
_CLOCK_FIELDS = ("hour", "minute", "second")
_UNCLEAR = (
    "Cannot determine format of all parts. Add explicit time components, e.g. INTERVAL '1 day' or INTERVAL '1' DAY"
)
_ISO = re.compile(
    r"P(?=.)(?:(?P<y>[-+]?\d+(?:\.\d*)?)Y)?(?:(?P<mo>[-+]?\d+(?:\.\d*)?)M)?(?:(?P<w>[-+]?\d+(?:\.\d*)?)W)?"
    r"(?:(?P<d>[-+]?\d+(?:\.\d*)?)D)?(?:T(?=.)(?:(?P<h>[-+]?\d+(?:\.\d*)?)H)?(?:(?P<mi>[-+]?\d+(?:\.\d*)?)M)?"
    r"(?:(?P<s>[-+]?\d*(?:\.\d*)?)S)?)?\Z",
    re.ASCII,
)
_ISO_FIELDS = {"y": "year", "mo": "month", "w": "week", "d": "day", "h": "hour", "mi": "minute", "s": "second"}
_AGO = re.compile(r"\bago\s*\Z", re.IGNORECASE)


def parse_interval(text: str, *, leading: str | None = None, unit: str = "second") -> Interval:
    """Parse an interval; TimeTextError otherwise.

    leading: the field `a:b` starts with. unit: the field of a last number without one.
    """
    text = text.strip()
    iso = _ISO.match(text)
    if iso is not None:
        return _iso(iso)
    negate = False
    ago = _AGO.search(text)
    if ago is not None:
        negate = True
        text = text[: ago.start()]
    fields = Fields()
    for shape, part in _annotate(_split(tokenize(text)), leading, unit):
        _fill_part(fields, shape, part)
    total = _total(fields)
    if negate:
        total = _checked(-total.months, -total.days, -total.us)
    return total


def _split(tokens: Tokens) -> deque[Tokens]:
    """Parts between delimiters, each without leading colons."""
    parts: deque[Tokens] = deque()
    part: Tokens = deque()
    for token in tokens:
        if token.kind == DELIM:
            if part:
                parts.append(part)
                part = deque()
        elif part or token.kind != ":":
            part.append(token)
    if part:
        parts.append(part)
    return parts


def _annotate(parts: deque[Tokens], leading: str | None, unit: str) -> list[tuple[tuple[str, str], Tokens]]:
    """Each part with its format; a bare number takes it from what follows: a unit, a clock (then it is days)."""
    out: list[tuple[tuple[str, str], Tokens]] = []
    while parts:
        part = parts.popleft()
        shape = part_format(part, leading)
        if shape is None:
            if not parts:
                shape = (POSTGRES, unit)
            else:
                following = parts.popleft()
                shape = part_format(following, None)
                if shape is not None and shape[0] == SQL:
                    if shape[1] not in _CLOCK_FIELDS:
                        raise TimeTextError(_UNCLEAR)
                    out.append((shape, following))
                    shape = (POSTGRES, "day")
            if shape is None:
                raise TimeTextError(_UNCLEAR)
        out.append((shape, part))
    return out


def _fill_part(fields: Fields, shape: tuple[str, str], part: Tokens) -> None:
    style, field = shape
    if style == SQL:
        group, name = (
            (("year", "month"), "YEAR or MONTH") if field == "year" else (_CLOCK_FIELDS, "HOUR, MINUTE, SECOND")
        )
        if any(fields.get(f) is not None for f in group):
            raise TimeTextError(f"{name} field set twice")
        sign = take_sign(part)
        fill(fields, part, _SQL_SHAPES[field], field, sign)
        for f in group:  # a group is written as a whole: nothing may add to it later
            fields.values.setdefault(f, (0, 0))
        _check_group(fields, field)
    else:
        sign = take_sign(part)
        if field == "week":
            weeks = Fields()
            fill(weeks, part, _POSTGRES_SHAPE, "day", sign)
            units, fraction = weeks.values.get("day", (0, 0))
            whole, rest = _divide(fraction * 7, NANO)
            fields.set("day", (units * 7 + whole, rest))
        else:
            fill(fields, part, _POSTGRES_SHAPE, field, sign)
    while part and part[0].kind == UNIT:
        part.popleft()
    reject_rest(part)


def _check_group(fields: Fields, field: str) -> None:
    if field == "year":
        month = fields.values["month"][0]
        if not -12 <= month <= 12:
            raise TimeTextError(f"MONTH must be [-12, 12], got {month}")
        return
    minute, second = fields.values["minute"][0], fields.values["second"][0]
    if not -59 <= minute <= 59:
        raise TimeTextError(f"MINUTE must be [-59, 59], got {minute}")
    if not -60 <= second <= 60:
        raise TimeTextError(f"SECOND must be [-60, 60], got {second}")


def _divide(value: int, by: int) -> tuple[int, int]:
    """Quotient toward zero, and the remainder with the value's sign."""
    quotient = abs(value) // by
    if value < 0:
        quotient = -quotient
    return quotient, value - quotient * by


def _round(value: int, by: int) -> int:
    """value / by rounded half away from zero."""
    quotient = (abs(value) + by // 2) // by
    return -quotient if value < 0 else quotient


def _total(fields: Fields) -> Interval:
    months = days = us = 0
    for field in FIELDS:
        value = fields.get(field)
        if value is None:
            continue
        units, fraction = value
        if field in _MONTHS:
            months += units * _MONTHS[field] + _divide(fraction * _MONTHS[field], NANO)[0]
            _limit(months, I32_MIN, I32_MAX, "months")
        elif field == "month":
            months += units
            _limit(months, I32_MIN, I32_MAX, "months")
            more_days, rest = _divide(fraction * 30, NANO)
            days += more_days
            us += _round(rest * DAY_US, NANO)
        elif field == "day":
            days += units
            _limit(days, I32_MIN, I32_MAX, "days")
            us += _round(fraction * DAY_US, NANO)
        else:
            us += units * _MICROS[field]
            _limit(us, I64_MIN, I64_MAX, "microseconds")
            us += _round(fraction * _MICROS[field], NANO)
            _limit(us, I64_MIN, I64_MAX, "microseconds")
    return Interval(months, days, us)


def _limit(value: int, least: int, most: int, unit: str) -> None:
    if not least <= value <= most:
        raise TimeTextError(f"Overflows maximum {unit}; cannot exceed {most}/{least} {unit}")


def _checked(months: int, days: int, us: int) -> Interval:
    _limit(months, I32_MIN, I32_MAX, "months")
    _limit(days, I32_MIN, I32_MAX, "days")
    _limit(us, I64_MIN, I64_MAX, "microseconds")
    return Interval(months, days, us)


def _iso(match: re.Match[str]) -> Interval:
    fields = Fields()
    for name, field in _ISO_FIELDS.items():
        raw = match[name]
        if not raw or raw in "+-":
            continue
        sign = -1 if raw[0] == "-" else 1
        whole, _, fraction = raw.lstrip("+-").partition(".")
        value = (sign * int(whole or 0), sign * int(fraction[:9].ljust(9, "0")))
        if field == "week":
            extra, rest = _divide(value[1] * 7, NANO)
            value = (value[0] * 7 + extra, rest)
            field = "day"
            if match["d"]:
                raise TimeTextError("DAY field set twice")
        fields.set(field, value)
    return _total(fields)


def parse_interval_literal(text: str, high: str | None, low: str | None, precision: int | None) -> Interval:
    """`INTERVAL 'text' HIGH TO LOW(precision)`: TimeTextError, or SqlError when rounding leaves the range.

    high: the leading field (None = no qualifier at all or a single field), low: the last field kept (None = second).
    """
    unit = low or "second"
    leading = high if high in ("hour", "minute") else None
    value = parse_interval(text, leading=leading, unit=unit)
    return round_interval(truncate_interval(value, high, unit), precision)


def truncate_interval(value: Interval, high: str | None, low: str) -> Interval:
    """Keep the fields from `high` (None = year) down to `low`."""
    months, days, us = value
    sign = -1 if us < 0 else 1
    us = abs(us)
    if high == "month":
        months = _divide(months, 12)[1]
    elif high in ("day", "hour", "minute", "second"):
        months = 0
    if high in ("hour", "minute", "second"):
        days = 0
    if high == "minute":
        us %= 3_600_000_000
    elif high == "second":
        us %= 60_000_000
    if low == "year":
        months = _divide(months, 12)[0] * 12
    if low in ("year", "month"):
        days = 0
    if low in ("year", "month", "day"):
        us = 0
    elif low == "hour":
        us -= us % 3_600_000_000
    elif low == "minute":
        us -= us % 60_000_000
    return Interval(months, days, sign * us)


def round_interval(value: Interval, precision: int | None) -> Interval:
    """Round the seconds to `precision` decimals, half away from zero."""
    if precision is None or precision >= 6:
        return value
    unit = 10 ** (6 - precision)
    us = _round(value.us, unit) * unit
    if not I64_MIN <= us <= I64_MAX:
        raise SqlError("22008", "interval field value out of range")
    return Interval(value.months, value.days, us)


def format_interval(value: Interval) -> str:
    """`1 year 2 months -3 days +04:05:06.7`: a plus only after something negative; zero is `00:00:00`."""
    months, days, us = value
    years, months = _divide(months, 12)
    words: list[str] = []
    negative = False
    for amount, unit in ((years, "year"), (months, "month"), (days, "day")):
        if amount:
            plus = "+" if negative and amount > 0 else ""
            words.append(f"{plus}{amount} {unit}{'' if amount == 1 else 's'}")
            negative = amount < 0
    if us or not words:
        sign = "-" if us < 0 else "+" if negative else ""
        seconds, fraction = divmod(abs(us), 1_000_000)
        minutes, second = divmod(seconds, 60)
        hour, minute = divmod(minutes, 60)
        clock = f"{sign}{hour:02d}:{minute:02d}:{second:02d}"
        words.append(f"{clock}.{fraction:06d}".rstrip("0") if fraction else clock)
    return " ".join(words)
