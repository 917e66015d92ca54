"""How plans show calls with constant arguments: Materialize compiles patterns, formats and units into the function.

s LIKE 'a%'                    like["a%"](#0)
s !~* 'x'                      NOT(is_regexp_match["x", case_insensitive=true](#0))
to_char(t, 'HH:MI')            tocharts[HH:MI](#0)
date_trunc('day', t)           date_trunc_day_ts(#0)
"""

from __future__ import annotations

from collections.abc import Callable

from mzlite.expr.kernels.time_units import parse_unit
from mzlite.expr.scalar import Call, Literal, Scalar
from mzlite.repr.errors import SqlError

Show = Callable[[Scalar], str]

_SUFFIX = {"timestamp": "ts", "timestamptz": "tstz", "date": "d", "time": "t", "interval": "iv"}
_LIKE = {"like": "like", "ilike": "ilike"}
_REGEX = {"regex": "false", "iregex": "true"}


def _constant(e: Scalar) -> str | None:
    """The text of a constant argument."""
    if isinstance(e, Literal) and e.value is not None and e.error is None and e.typ.kind in ("text", "varchar"):
        return e.value.decode()
    return None


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def literal_form(call: Call, show: Show) -> str | None:
    """The form of a call whose pattern, format or unit is constant; None for any other call."""
    base = call.func.partition("<")[0]
    kind = base.rpartition("_")[2]
    word = base.removesuffix(f"_{kind}")
    if kind in ("text", "bpchar") and len(call.args) == 2:
        pattern = _constant(call.args[1])
        if pattern is not None:
            positive = word.removeprefix("not_")
            shown = None
            if positive in _LIKE:
                shown = f"{_LIKE[positive]}[{_quoted(pattern)}]({show(call.args[0])})"
            elif positive in _REGEX:
                options = f"{_quoted(pattern)}, case_insensitive={_REGEX[positive]}"
                shown = f"is_regexp_match[{options}]({show(call.args[0])})"
            if shown is not None:
                return f"NOT({shown})" if word != positive else shown
    if base.startswith("regexp_"):
        return _regexp(base, call, show)
    if base.startswith("to_char_"):
        text = _constant(call.args[1])
        return None if text is None else f"tochar{_suffix(base, 'to_char_', -2)}[{text}]({show(call.args[0])})"
    for name in ("date_trunc", "extract", "date_part"):
        if base.startswith(f"{name}_text_") and len(call.args) == 2:
            return _unit(name, base, call, show)
    return None


def _suffix(base: str, prefix: str, at: int) -> str:
    return _SUFFIX[base.removeprefix(prefix).split("_")[at]]


def _unit(name: str, base: str, call: Call, show: Show) -> str | None:
    text = _constant(call.args[0])
    if text is None:
        return None
    try:
        unit = parse_unit(text)
    except SqlError:
        return None
    return f"{name}_{unit}_{_SUFFIX[base.rpartition('_')[2]]}({show(call.args[1])})"


def _regexp(base: str, call: Call, show: Show) -> str | None:
    """regexp_match, regexp_split_to_array and regexp_replace with constant pattern and flags."""
    name = base
    while name.endswith("_text"):
        name = name.removesuffix("_text")
    plain = 3 if name == "regexp_replace" else 2
    pattern = _constant(call.args[1]) if len(call.args) >= 2 else None
    flags = _constant(call.args[plain]) if len(call.args) > plain else ""
    if pattern is None or flags is None:
        return None
    ignore = "false"
    for flag in flags:
        if flag in "ic":
            ignore = "true" if flag == "i" else "false"
    options = f"{_quoted(pattern)}, case_insensitive={ignore}"
    if name == "regexp_replace":
        return f"{name}[{options}, limit={0 if 'g' in flags else 1}]({show(call.args[0])}, {show(call.args[2])})"
    return f"{name}[{options}]({show(call.args[0])})"
