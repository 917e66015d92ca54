"""Which casts exist, in which context, and what function performs them.

    find_cast(INT4, INT8, "implicit")       "cast_int4_int8"
    find_cast(VARCHAR, TEXT, "implicit")    ""        same representation: nothing to do
    find_cast(INT4, DATE, "explicit")       None      no such cast

Contexts nest: an implicit cast may be used anywhere; assignment in INSERT and explicit; explicit only by CAST or ::.
The caller builds `Call(id, (e,), to)`; `to` carries the modifiers (length, scale, precision), which the kernel applies.
Source: Materialize's `sql/plan/typeconv.rs`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from mzlite.expr.functions.type_ids import bare, type_text
from mzlite.repr.types import ScalarType

Context = Literal["implicit", "assignment", "explicit"]
_RANK: dict[str, int] = {"implicit": 0, "assignment": 1, "explicit": 2}

# from -> (implicit targets, assignment targets, explicit targets)
_TABLE: dict[str, tuple[str, str, str]] = {
    "bool": ("", "text varchar bpchar", "int4 int8"),
    "int2": ("int4 int8 float4 float8 numeric oid", "uint2 uint4 uint8 text varchar bpchar", ""),
    "int4": (
        "int8 float4 float8 numeric oid regclass regproc regtype mz_timestamp",
        "int2 uint2 uint4 uint8 text varchar bpchar",
        "bool char",
    ),
    "int8": (
        "float4 float8 numeric oid regclass regproc regtype mz_timestamp",
        "int2 int4 uint2 uint4 uint8 text varchar bpchar",
        "bool",
    ),
    "uint2": ("int4 int8 uint4 uint8 float4 float8 numeric", "int2 text varchar bpchar", "bool"),
    "uint4": ("int8 uint8 float4 float8 numeric mz_timestamp", "int2 int4 uint2 text varchar bpchar oid", "bool"),
    "uint8": ("float4 float8 numeric mz_timestamp", "int2 int4 int8 uint2 uint4 text varchar bpchar", "bool"),
    "float4": ("float8", "int2 int4 int8 uint2 uint4 uint8 numeric text varchar bpchar", ""),
    "float8": ("", "int2 int4 int8 uint2 uint4 uint8 float4 numeric text varchar bpchar", ""),
    "numeric": ("float4 float8 mz_timestamp", "int2 int4 int8 uint2 uint4 uint8 text varchar bpchar", ""),
    "oid": ("regclass regproc regtype", "int4 int8 text varchar bpchar", ""),
    "regclass": ("oid", "int4 int8 text varchar bpchar", ""),
    "regproc": ("oid", "int4 int8 text varchar bpchar", ""),
    "regtype": ("oid", "int4 int8 text varchar bpchar", ""),
    "mz_timestamp": ("", "text varchar bpchar timestamp timestamptz", ""),
    "date": ("timestamp timestamptz mz_timestamp", "text varchar bpchar", ""),
    "time": ("interval", "text varchar bpchar", ""),
    "timestamp": ("timestamptz mz_timestamp", "date time text varchar bpchar", ""),
    "timestamptz": ("mz_timestamp", "date time timestamp text varchar bpchar", ""),
    "interval": ("", "time text varchar bpchar", ""),
    "bytea": ("", "text varchar bpchar", ""),
    "uuid": ("", "text varchar bpchar", ""),
    "jsonb": ("", "text varchar bpchar", "bool int2 int4 int8 float4 float8 numeric"),
    "array": ("", "text varchar bpchar", "list"),
    "list": ("", "text varchar bpchar", ""),
    "map": ("", "text varchar bpchar", ""),
    "record": ("", "text varchar bpchar", ""),
    "range": ("", "text varchar bpchar", ""),
    "int2vector": ("array", "text varchar bpchar", ""),
    "aclitem": ("", "text varchar bpchar", ""),
    "mz_aclitem": ("", "text varchar bpchar", "aclitem"),
    "text": (
        "varchar bpchar",
        "",
        "bool int2 int4 int8 uint2 uint4 uint8 float4 float8 numeric oid regclass regproc regtype mz_timestamp date time timestamp"
        " timestamptz interval char name bytea jsonb uuid array list map range int2vector",
    ),
    "varchar": ("text bpchar", "name", ""),
    "bpchar": ("text varchar", "name", ""),
    "char": ("text varchar bpchar", "", "int4"),
    "name": ("text varchar bpchar", "", ""),
}
_TEXT_LIKE = {"varchar", "bpchar", "char", "name"}
_TEXT_KINDS = {"text", "varchar", "bpchar", "char", "name"}
# Text kinds are one representation; these pairs need no work without modifiers.
_FREE = {
    ("varchar", "text"),
    ("text", "varchar"),
    ("bpchar", "varchar"),
    ("name", "text"),
    ("name", "varchar"),
    ("char", "text"),
    ("char", "varchar"),
}

CASTS: dict[tuple[str, str], Context] = {}
for _from, (_implicit, _assignment, _explicit) in _TABLE.items():
    for _targets, _context in ((_implicit, "implicit"), (_assignment, "assignment"), (_explicit, "explicit")):
        for _to in _targets.split():
            CASTS[_from, _to] = _context  # type: ignore[assignment]
for _kind in ("varchar", "bpchar", "name"):
    for _to in _TABLE["text"][2].split():
        if _to != _kind:
            CASTS.setdefault((_kind, _to), "explicit")


def has_modifier(typ: ScalarType) -> bool:
    return typ.length is not None or typ.precision is not None or typ.scale is not None


def find_cast(source: ScalarType, target: ScalarType, context: Context) -> str | None:
    """Function id of the cast, "" when the value is already of the target type, None when there is none."""
    if source.kind == target.kind:
        return _same_kind(source, target, context)
    allowed = CASTS.get((source.kind, target.kind))
    if allowed is None or _RANK[allowed] > _RANK[context]:
        return None
    if target.kind == "array" and source.kind == "int2vector":
        return "cast_int2vector_array" if target.element is not None and target.element.kind == "int2" else None
    if source.kind == "array" and target.kind == "list":
        assert source.element is not None and target.element is not None
        if find_cast(source.element, target.element, context) is None:
            return None
        return f"cast_elements<{type_text(source)},{type_text(target)}>"
    if (source.kind, target.kind) in _FREE and not has_modifier(target):
        return ""
    if target.kind in ("varchar", "bpchar") and has_modifier(target) and context == "assignment":
        suffix = "_strict"  # INSERT refuses what a cast truncates
    else:
        suffix = ""
    return cast_id(source, target, suffix)


def cast_id(source: ScalarType, target: ScalarType, suffix: str = "") -> str:
    base = f"cast_{source.kind}_{target.kind}{suffix}"
    if source.kind == "numeric" and target.kind == "text" and source.scale is not None:
        return f"{base}_scale_{source.scale}"
    if source.kind in ("array", "list", "map", "record", "range"):
        return f"{base}<{type_text(source)}>"
    return base


def _same_kind(source: ScalarType, target: ScalarType, context: Context) -> str | None:
    kind = source.kind
    if kind in ("array", "list", "map", "range"):
        assert source.element is not None and target.element is not None
        if bare(source) == bare(target) and not _nested_modifier(target):
            return ""
        if kind == "range":
            return None
        # Element-wise; arrays and maps only by explicit wish, lists as their elements allow.
        inner = find_cast(source.element, target.element, context)
        if inner is None or (bare(source) != bare(target) and kind != "list" and context != "explicit"):
            return None
        return f"cast_elements<{type_text(source)},{type_text(target)}>" if inner else ""
    if kind == "record":
        if source.fields is None or target.fields is None or len(source.fields) != len(target.fields):
            return "" if source.fields is None or target.fields is None else None
        inners = [find_cast(s.scalar, t.scalar, context) for (_, s), (_, t) in zip(source.fields, target.fields)]
        if any(inner is None for inner in inners):
            return None
        return f"cast_elements<{type_text(source)},{type_text(target)}>" if any(inners) else ""
    if not has_modifier(target) or modifiers(source) == modifiers(target):
        return ""
    suffix = "_strict" if kind in ("varchar", "bpchar") and context == "assignment" else ""
    return f"cast_{kind}_{kind}{suffix}"


def modifiers(typ: ScalarType) -> tuple[int | None, int | None, int | None]:
    return (typ.length, typ.precision, typ.scale)


def _nested_modifier(typ: ScalarType) -> bool:
    return typ.element is not None and (has_modifier(typ.element) or _nested_modifier(typ.element))


# The preferred order when several types meet, inside one category: later wins when the earlier casts to it implicitly.
_CATEGORY: dict[str, str] = {}
for _category, _kinds in {
    "number": "int2 int4 int8 uint2 uint4 uint8 numeric float4 float8 oid regclass regproc regtype",
    "text": "text varchar bpchar char name",
    "time": "date timestamp timestamptz",
    "bool": "bool",
    "span": "interval time",
}.items():
    for _kind in _kinds.split():
        _CATEGORY[_kind] = _category
PREFERRED = {"float8", "oid", "text", "timestamptz", "bool", "interval"}


def category(typ: ScalarType) -> str:
    """PostgreSQL's type category, coarsely: only types of one category unify."""
    return _CATEGORY.get(typ.kind, typ.kind)


def best_common_type(types: Sequence[ScalarType]) -> ScalarType | None:
    """The type that UNION, CASE, VALUES and anycompatible resolve to; None if there is none. types: no UNKNOWN.

    A candidate gives way to a later type when it casts implicitly to it and not the other way round. Modifiers survive
    only when all agree.
    """
    assert types
    best = types[0]
    for typ in types[1:]:
        if bare(typ) == bare(best):
            if modifiers(typ) != modifiers(best) or typ.custom != best.custom:
                best = best.base()
            continue
        forward = find_cast(best.base(), typ.base(), "implicit")
        backward = find_cast(typ.base(), best.base(), "implicit")
        if forward is None and backward is None:
            wider = _common_super(best, typ)
            if wider is None:
                return None
            best = wider
        elif backward is None or (forward is not None and typ.kind in PREFERRED and best.kind not in PREFERRED):
            best = typ
    for typ in types:
        if find_cast(typ.base(), best.base(), "implicit") is None:
            return None
    return best


def _common_super(a: ScalarType, b: ScalarType) -> ScalarType | None:
    """Two numeric types neither of which casts to the other (int4 with uint4): the narrowest both reach."""
    for kind in ("int4", "int8", "numeric", "float8"):
        to = ScalarType(kind)
        if all(t.kind == kind or find_cast(t, to, "implicit") is not None for t in (a, b)):
            return to
    return None
