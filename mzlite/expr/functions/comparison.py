"""Comparison operators of every type, and GREATEST / LEAST.

One overload per type, as in Materialize; varchar, name and "char" compare as text. Arrays, lists, ranges and records compare element by
element, which their canonical bytes already do.
"""

from __future__ import annotations

from mzlite.expr.functions.registry import operator, register
from mzlite.expr.kernels.compare import compare, greatest_least

WORDS = {"=": "eq", "<>": "not_eq", "<": "lt", "<=": "lte", ">": "gt", ">=": "gte"}
_KINDS = (
    "bool int2 int4 int8 uint2 uint4 uint8 float4 float8 numeric oid regclass regproc regtype mz_timestamp date time"
    " timestamp timestamptz interval text bpchar bytea uuid jsonb int2vector aclitem mz_aclitem"
    " anyarray anylist anymap anyrange record"
)
_EQUALITY_ONLY = {"aclitem", "mz_aclitem"}

for _symbol, _word in WORDS.items():
    for _kind in _KINDS.split():
        if _kind in _EQUALITY_ONLY and _symbol not in ("=", "<>"):
            continue
        operator(
            _symbol,
            _word,
            f"{_kind}, {_kind} -> bool",
            compare(_symbol),
            id=f"{_word}_{_kind}",
            can_error=False,
            typed=False,
        )

for _name in ("greatest", "least"):
    register(
        _name,
        "variadic anycompatible -> anycompatible",
        greatest_least(greatest=_name == "greatest"),
        id=_name,
        strict=False,
        nullable="all_args",
        can_error=False,
        typed=False,
    )
