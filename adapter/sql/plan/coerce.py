"""Casts at planning time: untyped literals and parameters take the type their context wants, everything else gets a cast call.

An untyped literal is `Literal(bytes of the text, UNKNOWN)`; NULL is `Literal(None, UNKNOWN)`. A literal that does not parse becomes an *error literal*:
the statement plans, and fails only where the value is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeGuard

from adapter.sql import hir
from adapter.sql.plan.context import PlanContext
from adapter.sql.plan.types import type_words
from mzlite.expr import casts
from mzlite.expr.casts import Context
from mzlite.expr.functions import FUNCTIONS
from mzlite.expr.scalar import Literal, Unmaterializable
from mzlite.repr.datum import encode_datum
from mzlite.repr.errors import SqlError, encode_error
from mzlite.repr.text import parse_datum
from mzlite.repr.types import BOOL, INT4, INT8, NUMERIC, TEXT, TIMESTAMPTZ, UNKNOWN, ColumnType, ScalarType, record_of

TRUE = Literal(encode_datum(BOOL, True), BOOL)
FALSE = Literal(encode_datum(BOOL, False), BOOL)
NULL = Literal(None, UNKNOWN)


def literal(typ: ScalarType, datum: Any) -> Literal:
    return Literal(None if datum is None else encode_datum(typ, datum), typ)


def text_literal(value: str) -> Literal:
    """A string without a type yet."""
    return Literal(value.encode(), UNKNOWN)


def number_literal(text: str) -> Literal:
    """int4, int8 or numeric, whichever holds the number first."""
    if "." not in text and "e" not in text and "E" not in text:
        value = int(text)
        if -(1 << 31) <= value < 1 << 31:
            return Literal(encode_datum(INT4, value), INT4)
        if -(1 << 63) <= value < 1 << 63:
            return Literal(encode_datum(INT8, value), INT8)
    try:
        return Literal(encode_datum(NUMERIC, parse_datum(NUMERIC, text)), NUMERIC)
    except SqlError as error:
        if error.sqlstate == "22003" or "out of range" in error.message:
            shown = text.upper() if "e" in text.lower() else text
            message = f'"{shown}" is out of range for type numeric: exceeds maximum precision 39'
            raise SqlError("22003", message) from None
        raise


def parse_literal(value: bytes, typ: ScalarType, context: Context = "explicit") -> hir.Scalar:
    """An untyped string as a value of typ (modifiers applied by a cast: an assignment refuses to cut text)."""
    base = typ.base() if casts.has_modifier(typ) else typ
    if base.kind in ("text", "varchar"):
        parsed: hir.Scalar = Literal(value, base)
    elif typ.kind == "bpchar":
        parsed = Literal(value.rstrip(b" ") if typ.length is None else value, TEXT)
        func = casts.find_cast(TEXT, typ, context)
        return hir.Call(func, (parsed,), typ) if func else Literal(value, typ)
    elif base.kind in ("regclass", "regtype", "regproc", "aclitem", "mz_aclitem", "int2vector", "char", "name"):
        func = casts.find_cast(TEXT, base, "explicit")
        parsed = hir.Call(func, (Literal(value, TEXT),), base) if func else Literal(value, base)
    else:
        try:
            parsed = Literal(encode_datum(base, parse_datum(base, value.decode())), base)
        except SqlError as error:
            return Literal(None, typ, encode_error(error))
    if base is typ:
        return parsed
    func = casts.find_cast(base, typ, context)
    return hir.Call(func, (parsed,), typ) if func else _retype(parsed, typ)


def _parse(typ: ScalarType, text: str) -> Any:
    """The datum of a literal. A time may be written as one where mz_timestamp is wanted."""
    try:
        return parse_datum(typ, text)
    except SqlError:
        if typ.kind != "mz_timestamp":
            raise
        try:
            us = parse_datum(TIMESTAMPTZ, text)
        except SqlError:
            us = None
        if us is None or us < 0:
            raise
        return us // 1000


def _retype(e: hir.Scalar, typ: ScalarType) -> hir.Scalar:
    """e, known to be of another description of the same representation, as typ."""
    match e:
        case Literal(value, _, error):
            return Literal(value, typ, error)
        case hir.Column(level, column, _, name):
            return hir.Column(level, column, typ, name)
        case hir.Call(func, args, have):
            if casts.has_modifier(have) and not casts.has_modifier(typ):
                # The call applies its type's modifiers (varchar(3) cuts): it keeps them, a plain cast renames the result.
                return hir.Call(f"cast_{have.kind}_{typ.kind}", (e,), typ)
            return hir.Call(func, args, typ)
        case hir.If(cond, then, els):
            return hir.If(cond, _retype(then, typ), _retype(els, typ))
        case hir.ScalarQuery(relation, _):
            return hir.ScalarQuery(relation, typ)
        case hir.Marker(kind, index, column, _):
            return hir.Marker(kind, index, column, typ)
        case _:
            return e


def is_unknown(e: hir.Scalar) -> bool:
    """An untyped literal, parameter, or CASE of them."""
    return hir.type_of(e).kind == "unknown"


def cast(ctx: PlanContext, e: hir.Scalar, typ: ScalarType, context: Context, what: str | None = None) -> hir.Scalar:
    """e as typ, or the error that says why not. what: what the error blames ("CAST", "UNION types", …); None raises a bare cast error."""
    result = try_cast(ctx, e, typ, context)
    if result is None:
        source = type_words(hir.type_of(e))
        target = type_words(typ)
        raise SqlError("42846", f"{what or 'CAST'} does not support casting from {source} to {target}")
    return result


def try_cast(ctx: PlanContext, e: hir.Scalar, typ: ScalarType, context: Context) -> hir.Scalar | None:
    source = hir.type_of(e)
    if source == typ:
        return e
    if source.kind == "unknown":
        return _unknown_as(ctx, e, typ, context)
    if typ.kind == "record" and typ.fields and is_row(e) and len(e.args) == len(typ.fields):
        items = [try_cast(ctx, a, f.scalar, context) for a, (_, f) in zip(e.args, typ.fields)]
        if any(item is None for item in items):
            return None
        return record_call([i for i in items if i is not None], tuple(n for n, _ in typ.fields), typ.custom)
    if source.kind == "array" and typ.kind == "array" and _is_literal_collection(e, "array"):
        return _recast_elements(ctx, e, typ, context)
    func = casts.find_cast(source, typ, context)
    if func is None:
        return None
    if not func:
        return _retype(e, typ)
    return hir.Call(func, (e,), typ)


def is_row(e: hir.Scalar) -> TypeGuard[hir.Call]:
    """A ROW(…) as written, whose fields can still be cast one by one."""
    return isinstance(e, hir.Call) and e.func.partition("<")[0] == "record"


def _is_literal_collection(e: hir.Scalar, kind: str) -> bool:
    return isinstance(e, hir.Call) and e.func.partition("<")[0] in (f"{kind}_create", f"{kind}_construct")


def _recast_elements(ctx: PlanContext, e: hir.Scalar, typ: ScalarType, context: Context) -> hir.Scalar | None:
    func = casts.find_cast(hir.type_of(e), typ, context)
    if func is None:
        return None
    return hir.Call(func, (e,), typ) if func else _retype(e, typ)


def _unknown_as(ctx: PlanContext, e: hir.Scalar, typ: ScalarType, context: Context = "explicit") -> hir.Scalar | None:
    match e:
        case Literal(None, _, error):
            return Literal(None, typ, error)
        case Literal(value, _, _):
            assert value is not None
            return parse_literal(value, typ, context)
        case Unmaterializable():
            typed: hir.Scalar = ctx.type_parameter(e, typ)
            if casts.has_modifier(typ):
                return try_cast(ctx, typed, typ, context)
            return typed
        case hir.If(cond, then, els):
            a, b = try_cast(ctx, then, typ, context), try_cast(ctx, els, typ, context)
            return None if a is None or b is None else hir.If(cond, a, b)
        case hir.Column(level, column, _, name):
            # A column of an untyped subquery was made text when its scope was closed.
            return hir.Column(level, column, typ, name)
        case _:
            return None


def settle(ctx: PlanContext, e: hir.Scalar) -> hir.Scalar:
    """e with a definite type: what is still untyped is text."""
    typ = hir.type_of(e)
    if typ.kind == "unknown":
        wanted = TEXT
        if isinstance(e, Unmaterializable):
            wanted = ctx.param_types[int(e.func[1:]) - 1] or TEXT
        settled = _unknown_as(ctx, e, wanted)
        assert settled is not None
        return settled
    if (
        typ.kind == "record"
        and typ.fields
        and isinstance(e, hir.Call)
        and any(c.scalar.kind == "unknown" for _, c in typ.fields)
    ):
        return record_call([settle(ctx, a) for a in e.args], tuple(n for n, _ in typ.fields), typ.custom)
    return e


def nullable(e: hir.Scalar) -> bool:
    """A cheap, safe guess: only literals are known not to be NULL here (lowering knows better)."""
    return not (isinstance(e, Literal) and e.value is not None)


def record_call(items: Sequence[hir.Scalar], names: Sequence[str], custom: str | None = None) -> hir.Scalar:
    """ROW(items) with these field names."""
    fields = tuple((n, ColumnType(hir.type_of(i), nullable(i))) for n, i in zip(names, items))
    typ = record_of(fields)
    if custom is not None:
        typ = ScalarType("record", fields=fields, custom=custom)
    return construct("record", tuple(items), typ)


def construct(name: str, args: tuple[hir.Scalar, ...], typ: ScalarType) -> hir.Scalar:
    """A call of a constructor (record, array_create, …) whose result type the planner knows."""
    entry = FUNCTIONS[name].bind([hir.type_of(a) for a in args])
    return hir.Call(entry.id, args, typ)


_SET_OPERATIONS = frozenset(("UNION", "EXCEPT", "INTERSECT"))


def common_type(ctx: PlanContext, exprs: Sequence[hir.Scalar], what: str) -> ScalarType:
    """The type that UNION, CASE, COALESCE, … resolve to; text when nothing is typed."""
    typed = [typ for typ in map(hir.type_of, exprs) if typ.kind != "unknown"]
    if not typed:
        return TEXT
    strings = any(is_unknown(e) and not (isinstance(e, Literal) and e.value is None) for e in exprs)
    if strings and any(typ.kind == "record" for typ in typed):
        return TEXT
    best = casts.best_common_type(typed)
    if best is not None and strings and casts.has_modifier(best):
        return best.base()
    if best is None:
        first = typed[0]
        nested = first.kind in ("array", "list", "map", "record") and all(typ.kind == first.kind for typ in typed)
        if nested and (what.isupper() or what.islower()) and what not in _SET_OPERATIONS:
            return first
        for typ in typed[1:]:
            if casts.best_common_type([first, typ]) is None:
                raise SqlError("42804", f"{what} types {type_words(first)} and {type_words(typ)} cannot be matched")
        raise SqlError("42804", f"{what} types {type_words(first)} and {type_words(typed[-1])} cannot be matched")
    return best


def to_common(ctx: PlanContext, exprs: Sequence[hir.Scalar], what: str) -> tuple[list[hir.Scalar], ScalarType]:
    """All exprs cast to their common type."""
    typ = common_type(ctx, exprs, what)
    out: list[hir.Scalar] = []
    for e in exprs:
        converted = try_cast(ctx, e, typ, "implicit")
        if converted is None:
            raise SqlError("42804", f"{what} could not convert type {type_words(hir.type_of(e))} to {type_words(typ)}")
        out.append(converted)
    return out, typ


def to_bool(ctx: PlanContext, e: hir.Scalar, what: str) -> hir.Scalar:
    """A condition; what: "WHERE clause", "AND argument", …"""
    typ = hir.type_of(e)
    if typ.kind == "bool":
        return e
    if typ.kind == "unknown":
        result = _unknown_as(ctx, e, BOOL)
        if result is not None:
            return result
    raise SqlError("42804", f"{what} must have type boolean, not type {type_words(typ)}")
