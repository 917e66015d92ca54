"""Ranges: constructors, accessors, operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mzlite.expr.call import CallSite
from mzlite.expr.functions.arrays import element_type
from mzlite.expr.functions.registry import register
from mzlite.expr.functions.text import value
from mzlite.expr.kernels.adapt import per_value
from mzlite.repr.datum import RangeDatum
from mzlite.repr.errors import SqlError
from mzlite.repr.ranges import EMPTY, canonical_range, compare
from mzlite.repr.types import ScalarType

_NAMES = {
    "int4range": "int4",
    "int8range": "int8",
    "numrange": "numeric",
    "daterange": "date",
    "tsrange": "timestamp",
    "tstzrange": "timestamptz",
}
_FLAGS = {"[)": (True, False), "[]": (True, True), "()": (False, False), "(]": (False, True)}


def _make(subtype: ScalarType) -> Callable[[Any, Any, str | None], RangeDatum]:
    def make(lower: Any, upper: Any, flags: str | None = "[)") -> RangeDatum:
        if flags is None:
            raise SqlError("22000", "range constructor flags argument must not be null")
        if flags not in _FLAGS:
            raise SqlError("42601", "invalid range bound flags", hint='Valid values are "[]", "[)", "(]", and "()".')
        return canonical_range(subtype, lower, upper, *_FLAGS[flags])

    return make


for _name, _subtype in _NAMES.items():
    _kernel = per_value(_make(ScalarType(_subtype)), strict=False)
    register(_name, f"{_subtype}, {_subtype} -> {_name}", _kernel, id=_name, strict=False, nullable="never")
    register(
        _name, f"{_subtype}, {_subtype}, text -> {_name}", _kernel, id=f"{_name}_flags", strict=False, nullable="never"
    )


# --- accessors --------------------------------------------------------------------------------------------------------


@value("lower", "anyrange -> anyelement", nullable="always", can_error=False, id="range_lower", display="rangelower")
def _lower(r: RangeDatum) -> Any:
    return r.lower


@value("upper", "anyrange -> anyelement", nullable="always", can_error=False, id="range_upper", display="rangeupper")
def _upper(r: RangeDatum) -> Any:
    return r.upper


@value("isempty", "anyrange -> bool", can_error=False, id="range_empty")
def _isempty(r: RangeDatum) -> bool:
    return r.empty


@value("lower_inc", "anyrange -> bool", can_error=False, id="range_lower_inc")
def _lower_inc(r: RangeDatum) -> bool:
    return r.lower_inc


@value("upper_inc", "anyrange -> bool", can_error=False, id="range_upper_inc")
def _upper_inc(r: RangeDatum) -> bool:
    return r.upper_inc


@value("lower_inf", "anyrange -> bool", can_error=False, id="range_lower_inf")
def _lower_inf(r: RangeDatum) -> bool:
    return not r.empty and r.lower is None


@value("upper_inf", "anyrange -> bool", can_error=False, id="range_upper_inf")
def _upper_inf(r: RangeDatum) -> bool:
    return not r.empty and r.upper is None


# --- comparing bounds -------------------------------------------------------------------------------------------------


def _lowers(t: ScalarType, a: RangeDatum, b: RangeDatum) -> int:
    """Order of two lower bounds."""
    if a.lower is None or b.lower is None:
        return (a.lower is not None) - (b.lower is not None)
    return compare(t, a.lower, b.lower) or (b.lower_inc - a.lower_inc)


def _uppers(t: ScalarType, a: RangeDatum, b: RangeDatum) -> int:
    """Order of two upper bounds."""
    if a.upper is None or b.upper is None:
        return (a.upper is None) - (b.upper is None)
    return compare(t, a.upper, b.upper) or (a.upper_inc - b.upper_inc)


def _ends_before(t: ScalarType, a: RangeDatum, b: RangeDatum) -> bool:
    """Whether a ends before b starts (they may touch)."""
    if a.upper is None or b.lower is None:
        return False
    order = compare(t, a.upper, b.lower)
    return order < 0 or (order == 0 and not (a.upper_inc and b.lower_inc))


def _touches(t: ScalarType, a: RangeDatum, b: RangeDatum) -> bool:
    """Whether b starts exactly where a ends."""
    if a.upper is None or b.lower is None:
        return False
    return compare(t, a.upper, b.lower) == 0 and a.upper_inc != b.lower_inc


def contains(t: ScalarType, a: RangeDatum, b: RangeDatum) -> bool:
    if b.empty:
        return True
    return not a.empty and _lowers(t, a, b) <= 0 and _uppers(t, a, b) >= 0


def contains_element(t: ScalarType, r: RangeDatum, x: Any) -> bool:
    return contains(t, r, RangeDatum(x, x, True, True))


def overlaps(t: ScalarType, a: RangeDatum, b: RangeDatum) -> bool:
    return not a.empty and not b.empty and not _ends_before(t, a, b) and not _ends_before(t, b, a)


def adjacent(t: ScalarType, a: RangeDatum, b: RangeDatum) -> bool:
    return not a.empty and not b.empty and (_touches(t, a, b) or _touches(t, b, a))


def intersection(t: ScalarType, a: RangeDatum, b: RangeDatum) -> RangeDatum:
    if not overlaps(t, a, b):
        return EMPTY
    low = a if _lowers(t, a, b) >= 0 else b
    high = a if _uppers(t, a, b) <= 0 else b
    return canonical_range(t, low.lower, high.upper, low.lower_inc, high.upper_inc)


def hull(t: ScalarType, a: RangeDatum, b: RangeDatum) -> RangeDatum:
    if a.empty or b.empty:
        return b if a.empty else a
    low = a if _lowers(t, a, b) <= 0 else b
    high = a if _uppers(t, a, b) >= 0 else b
    return canonical_range(t, low.lower, high.upper, low.lower_inc, high.upper_inc)


def union(t: ScalarType, a: RangeDatum, b: RangeDatum) -> RangeDatum:
    if not a.empty and not b.empty and not overlaps(t, a, b) and not adjacent(t, a, b):
        raise SqlError("22000", "result of range union would not be contiguous")
    return hull(t, a, b)


def difference(t: ScalarType, a: RangeDatum, b: RangeDatum) -> RangeDatum:
    if not overlaps(t, a, b):
        return a
    keeps_low, keeps_high = _lowers(t, a, b) < 0, _uppers(t, a, b) > 0
    if keeps_low and keeps_high:
        raise SqlError("22000", "result of range difference would not be contiguous")
    if keeps_low:
        return canonical_range(t, a.lower, b.lower, a.lower_inc, not b.lower_inc)
    if keeps_high:
        return canonical_range(t, b.upper, a.upper, not b.upper_inc, a.upper_inc)
    return EMPTY


# --- operators --------------------------------------------------------------------------------------------------------


def _operator(
    symbol: str, word: str, signature: str, f: Callable[..., Any], *, subtype_of: int = 0, can_error: bool = False
) -> None:
    def run(site: CallSite, a: Any, b: Any) -> Any:
        return f(element_type(site.params[subtype_of]), a, b)

    register(
        symbol,
        signature,
        per_value(run, with_site=True),
        id=f"range_{word}",
        operator=True,
        infix=symbol,
        can_error=can_error,
    )


_PAIR = "anyrange, anyrange -> bool"
_RANGE = "anyrange, anyrange -> anyrange"
_operator("@>", "contains", _PAIR, contains)
_operator("@>", "contains_element", "anyrange, anyelement -> bool", contains_element)
_operator("<@", "contained", _PAIR, lambda t, a, b: contains(t, b, a))
_operator(
    "<@", "element_contained", "anyelement, anyrange -> bool", lambda t, x, r: contains_element(t, r, x), subtype_of=1
)
_operator("&&", "overlaps", _PAIR, overlaps)
_operator("<<", "before", _PAIR, lambda t, a, b: not a.empty and not b.empty and _ends_before(t, a, b))
_operator(">>", "after", _PAIR, lambda t, a, b: not a.empty and not b.empty and _ends_before(t, b, a))
_operator("&<", "overleft", _PAIR, lambda t, a, b: not a.empty and not b.empty and _uppers(t, a, b) <= 0)
_operator("&>", "overright", _PAIR, lambda t, a, b: not a.empty and not b.empty and _lowers(t, a, b) >= 0)
_operator("-|-", "adjacent", _PAIR, adjacent)
_operator("*", "intersection", _RANGE, intersection)
_operator("+", "union", _RANGE, union, can_error=True)
_operator("-", "difference", _RANGE, difference, can_error=True)


@value("range_merge", "anyrange, anyrange -> anyrange", with_site=True, can_error=False, id="range_merge")
def _merge(site: CallSite, a: RangeDatum, b: RangeDatum) -> RangeDatum:
    return hull(element_type(site.params[0]), a, b)
