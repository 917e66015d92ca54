"""INTERVAL literals with fields: `INTERVAL '1-2' YEAR TO MONTH`, `INTERVAL '5' DAY`.

Without fields the text is parsed as any interval. With a single field a bare number is in that unit; the last field then cuts
off everything finer, and a first field does not restrict what the text may say (as in Materialize).
"""

from __future__ import annotations

import re

from adapter.sql import ast, hir
from mzlite.expr.scalar import Literal
from mzlite.repr.datum import encode_datum
from mzlite.repr.errors import SqlError, encode_error
from mzlite.repr.interval import Interval
from mzlite.repr.text import parse_datum
from mzlite.repr.types import INTERVAL

_ORDER = ("year", "month", "day", "hour", "minute", "second")
_UNIT_US = {"hour": 3_600_000_000, "minute": 60_000_000, "second": 1_000_000}


def interval_literal(node: ast.Interval) -> hir.Scalar:
    if node.start is not None and node.end is not None and _ORDER.index(node.start) > _ORDER.index(node.end):
        first, last = node.start.upper(), node.end.upper()
        raise SqlError(
            "42601",
            f"Invalid field range in INTERVAL '{node.value}' {first} TO {last}: the value in the position "
            f"{first} should be more significant than {last}",
            position=node.pos + 1,
        )
    try:
        value = _parse(node)
    except SqlError as error:
        return Literal(None, INTERVAL, encode_error(error))
    return Literal(encode_datum(INTERVAL, value), INTERVAL)


def _parse(node: ast.Interval) -> Interval:
    text = node.value
    unit = node.end or node.start
    if unit is not None and re.fullmatch(r"\s*[+-]?\d*\.?\d+\s*", text):
        text = f"{text.strip()} {unit}"
    elif unit is not None:
        text = _trailing_unit(text, unit)
    value: Interval = parse_datum(INTERVAL, text)
    if unit is not None:
        value = _truncate(value, unit)
    if node.precision is not None:
        value = _round(value, node.precision)
    return value


def _trailing_unit(text: str, unit: str) -> str:
    """A last bare number counts in the field's unit: '1 day 5' HOUR."""
    words = text.split()
    if len(words) > 1 and re.fullmatch(r"[+-]?\d*\.?\d+", words[-1]) and re.fullmatch(r"[a-zA-Z]+", words[-2]):
        return f"{text} {unit}"
    return text


def _truncate(value: Interval, unit: str) -> Interval:
    months, days, us = value.months, value.days, value.us
    if unit == "year":
        return Interval(int(months / 12) * 12, 0, 0)
    if unit == "month":
        return Interval(months, 0, 0)
    if unit == "day":
        return Interval(months, days, 0)
    if unit == "second":
        return value
    step = _UNIT_US[unit]
    return Interval(months, days, abs(us) // step * step * (1 if us > 0 else -1))


def _round(value: Interval, precision: int) -> Interval:
    if precision > 6:
        raise SqlError("22023", f"SECOND precision must be (0, 6), have SECOND({precision})")
    step = 10 ** (6 - precision)
    half = step // 2
    us = value.us
    rounded = (us + half) // step * step if us >= 0 else -((-us + half) // step * step)
    return Interval(value.months, value.days, rounded)
