"""Ranges in canonical form: integer and date ranges as [lower, upper), one value for every empty range."""

from __future__ import annotations

from typing import Any

from mzlite.repr import datum as d
from mzlite.repr.calendar import MAX_DATE
from mzlite.repr.datum import RangeDatum
from mzlite.repr.errors import SqlError
from mzlite.repr.types import ScalarType

EMPTY = RangeDatum(empty=True)
_MOST = {"int4": 2**31 - 1, "int8": 2**63 - 1, "date": MAX_DATE}
_OVERFLOW = {"int4": "integer out of range", "int8": "bigint out of range", "date": "date out of range"}


def canonical_range(subtype: ScalarType, lower: Any, upper: Any, lower_inc: bool, upper_inc: bool) -> RangeDatum:
    """The canonical range of the given bounds (None = infinite); 22000 when lower > upper."""
    lower_inc = lower_inc and lower is not None
    upper_inc = upper_inc and upper is not None
    # Bounds are compared as written, before they are made canonical.
    order = 0 if lower is None or upper is None else compare(subtype, lower, upper)
    if order > 0:
        raise SqlError("22000", "range lower bound must be less than or equal to range upper bound")
    if subtype.kind in _MOST:
        if lower is not None and not lower_inc:
            lower, lower_inc = _successor(subtype, lower), True
        if upper is not None and upper_inc:
            upper, upper_inc = _successor(subtype, upper), False
    if lower is not None and upper is not None:
        order = compare(subtype, lower, upper)
        if order > 0 or (order == 0 and not (lower_inc and upper_inc)):
            return EMPTY
    return RangeDatum(lower, upper, lower_inc, upper_inc)


def compare(subtype: ScalarType, a: Any, b: Any) -> int:
    """-1, 0 or 1: SQL's order of two bounds."""
    x, y = d.encode_datum(subtype, a), d.encode_datum(subtype, b)
    return (x > y) - (x < y)


def _successor(subtype: ScalarType, value: int) -> int:
    if value >= _MOST[subtype.kind]:
        raise SqlError("22003", _OVERFLOW[subtype.kind])
    return value + 1
