"""LIKE, ILIKE, regular expression operators and functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow.compute as pc

from mzlite.expr.call import Args, CallSite, Kernel, RowErrors
from mzlite.expr.functions.registry import operator
from mzlite.expr.functions.text import value
from mzlite.expr.kernels import patterns
from mzlite.expr.kernels.adapt import per_value
from mzlite.repr.column import Column
from mzlite.repr.datum import ArrayDatum
from mzlite.repr.errors import SqlError
from mzlite.repr.fixed import FixedColumn
from mzlite.repr.var import VarColumn

_MANY = 256


def _like(*, ignore_case: bool, negated: bool) -> Kernel:
    slow = per_value(lambda text, pattern: patterns.like_matcher(pattern, ignore_case)(text) is not negated)

    def kernel(site: CallSite, args: Args, n: int, errors: RowErrors) -> Column:
        text, pattern = args
        if len(pattern) == 1 and len(text) > _MANY and pattern.valid is None:
            assert isinstance(text, VarColumn) and isinstance(pattern, VarColumn)
            source = pattern.value(0).decode()
            try:
                patterns.like_matcher(source, ignore_case)
            except SqlError:
                return slow(site, args, n, errors)
            arrow = VarColumn(text.offsets, text.data).to_arrow(text=True)
            found = pc.match_like(arrow, source, ignore_case=ignore_case).to_numpy(zero_copy_only=False)
            return FixedColumn(np.logical_not(found) if negated else found, text.valid)
        return slow(site, args, n, errors)

    return kernel


def _regex_match(*, ignore_case: bool, negated: bool) -> Kernel:
    flags = "i" if ignore_case else ""
    return per_value(lambda text, pattern: (patterns.regex(pattern, flags).search(text) is not None) is not negated)


for _kind in ("text", "bpchar"):
    for _symbol, _word, _infix, _ignore, _negated in (
        ("~~", "like", "like", False, False),
        ("~~*", "ilike", "ilike", True, False),
        ("!~~", "not_like", "not like", False, True),
        ("!~~*", "not_ilike", "not ilike", True, True),
    ):
        operator(
            _symbol,
            _word,
            f"{_kind}, text -> bool",
            _like(ignore_case=_ignore, negated=_negated),
            id=f"{_word}_{_kind}",
            infix=_infix,
            pads=True,
        )
    for _symbol, _word, _ignore, _negated in (
        ("~", "regex", False, False),
        ("~*", "iregex", True, False),
        ("!~", "not_regex", False, True),
        ("!~*", "not_iregex", True, True),
    ):
        operator(
            _symbol,
            _word,
            f"{_kind}, text -> bool",
            _regex_match(ignore_case=_ignore, negated=_negated),
            id=f"{_word}_{_kind}",
            pads=True,
        )


@value("like_escape", "text, text -> text")
def _like_escape(pattern: str, escape: str) -> str:
    return patterns.like_escape(pattern, escape)


def groups(match: Any) -> ArrayDatum:
    """The groups of a match, or the whole match when the pattern has none."""
    found = match.groups()
    return ArrayDatum.of(found if found else (match[0],))


@value("regexp_match", "text, text -> text[]", nullable="always")
def _regexp_match(text: str, pattern: str) -> ArrayDatum | None:
    return _regexp_match_flags(text, pattern, "")


@value("regexp_match", "text, text, text -> text[]", nullable="always")
def _regexp_match_flags(text: str, pattern: str, flags: str) -> ArrayDatum | None:
    if "g" in flags:
        raise SqlError("22023", "invalid regular expression flag: g")
    match = patterns.regex(pattern, flags).search(text)
    return None if match is None else groups(match)


@value("regexp_replace", "text, text, text -> text")
def _regexp_replace(text: str, pattern: str, new: str) -> str:
    return patterns.replace(patterns.regex(pattern), text, new, everywhere=False)


@value("regexp_replace", "text, text, text, text -> text")
def _regexp_replace_flags(text: str, pattern: str, new: str, flags: str) -> str:
    return patterns.replace(patterns.regex(pattern, flags), text, new, everywhere="g" in flags)


@value("regexp_split_to_array", "text, text -> text[]")
def _regexp_split(text: str, pattern: str) -> ArrayDatum:
    return ArrayDatum.of(patterns.split(patterns.regex(pattern), text))


@value("regexp_split_to_array", "text, text, text -> text[]")
def _regexp_split_flags(text: str, pattern: str, flags: str) -> ArrayDatum:
    return ArrayDatum.of(patterns.split(patterns.regex(pattern, flags.replace("g", "")), text))
