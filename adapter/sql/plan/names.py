"""Casts that need the catalog: 'name'::regclass and the like become object ids at planning time."""

from __future__ import annotations

from adapter.sql import hir
from adapter.sql.plan.context import PlanContext
from adapter.sql.plan.overload import resolve_call, resolve_operator
from mzlite.expr import aggregates, table_functions
from mzlite.expr.functions import FUNCTIONS
from mzlite.expr.scalar import Literal
from mzlite.repr.datum import encode_datum
from mzlite.repr.errors import SqlError
from mzlite.repr.typenames import oid_of, type_by_name
from mzlite.repr.types import INT4, OID, REGCLASS, REGPROC, REGTYPE, TEXT, ScalarType

_REGISTERED = frozenset(("regclass", "regtype", "regproc"))


def cast_registered(ctx: PlanContext, e: hir.Scalar, typ: ScalarType) -> hir.Scalar | None:
    """A cast between names and regclass, regtype or regproc; None when that is not what this is."""
    source = hir.type_of(e)
    if source.kind in _REGISTERED and typ.kind in ("text", "varchar"):
        return _name_of(ctx, e, source.kind)
    if typ.kind not in _REGISTERED or source.kind not in ("unknown", "text", "varchar"):
        return None
    if not isinstance(e, Literal):
        return None if source.kind == "unknown" or typ.kind != "regclass" else _oid_of_name(ctx, e)
    if e.value is None:
        return None
    text = e.value.decode().strip()
    if text.isdigit() and int(text) < 1 << 32:
        return Literal(encode_datum(typ, int(text)), typ)
    parts = split_name(text)
    match typ.kind:
        case "regclass":
            item = ctx.catalog.resolve_item(parts, ctx.session.database, ctx.session.search_path)
            if item is None:
                raise SqlError("42P01", f'relation "{text}" does not exist')
            return Literal(encode_datum(REGCLASS, item.oid), REGCLASS)
        case "regtype":
            builtin = type_by_name(text)
            if builtin is not None:
                return Literal(encode_datum(REGTYPE, oid_of(builtin)), REGTYPE)
            item = ctx.catalog.resolve_type_item(parts, ctx.session.database, ctx.session.search_path)
            if item is None:
                raise SqlError("42704", f'type "{text}" does not exist')
            return Literal(encode_datum(REGTYPE, item.oid), REGTYPE)
        case _:
            name = parts[-1]
            if not (FUNCTIONS.by_name(name) or aggregates.by_name(name) or table_functions.by_name(name)):
                raise SqlError("42883", f'function "{text}" does not exist')
            found = _lookup(ctx, ("pg_catalog", "pg_proc"), "proname", "oid", Literal(name.encode(), TEXT))
            return hir.Call("cast_oid_regproc", (found,), REGPROC)


def _name_of(ctx: PlanContext, e: hir.Scalar, kind: str) -> hir.Scalar:
    """regclass::text and the like: the object's name, or the number when there is no such object."""
    oid = hir.Call(f"cast_{kind}_oid", (e,), OID)
    number = hir.Call("cast_oid_text", (oid,), TEXT)
    if kind == "regtype":
        name: hir.Scalar = hir.Call("format_type_oid_int4", (oid, Literal(None, INT4)), TEXT)
    elif kind == "regclass":
        name = _lookup(ctx, ("mz_catalog", "mz_objects"), "oid", "name", oid)
    else:
        name = _lookup(ctx, ("pg_catalog", "pg_proc"), "oid", "proname", oid)
    return hir.Call("coalesce", (name, number), TEXT)


def _oid_of_name(ctx: PlanContext, e: hir.Scalar) -> hir.Scalar:
    """text::regclass of a computed name: unqualified names only."""
    found = _lookup(ctx, ("mz_catalog", "mz_objects"), "name", "oid", e)
    return hir.Call("cast_oid_regclass", (found,), REGCLASS)


def _lookup(ctx: PlanContext, relation: tuple[str, str], by: str, want: str, value: hir.Scalar) -> hir.Scalar:
    """(SELECT max(want) FROM relation WHERE by = value)"""
    item = ctx.relation(relation)
    desc = item.desc
    assert desc is not None
    types = [c.scalar for c in desc.typ.columns]
    key, wanted = desc.names.index(by), desc.names.index(want)
    equal = resolve_operator(ctx, "=", (hir.Column(0, key, types[key], by), hir.shift(value, 1)))
    entry, args = resolve_call(ctx, aggregates.by_name("max"), (hir.Column(0, wanted, types[wanted], want),), "max")
    typ = entry.result_type([hir.type_of(a) for a in args])
    rows = hir.Filter(hir.Get(item.id, desc.typ), (equal,))
    return hir.ScalarQuery(hir.Reduce(rows, (), (hir.Aggregate(entry.id, args, typ),)), typ)


def split_name(text: str) -> tuple[str, ...]:
    """A possibly quoted, qualified name as parts, folded like an identifier."""
    parts: list[str] = []
    i = 0
    while i < len(text):
        if text[i] == '"':
            end = i + 1
            out = ""
            while end < len(text):
                if text[end] == '"':
                    if text[end + 1 : end + 2] == '"':
                        out += '"'
                        end += 2
                        continue
                    break
                out += text[end]
                end += 1
            if end >= len(text):
                raise SqlError("42602", f"string is not a valid identifier: {text!r}".replace("'", '"'))
            parts.append(out)
            i = end + 1
        else:
            end = text.find(".", i)
            end = len(text) if end < 0 else end
            parts.append(text[i:end].strip().lower())
            i = end
        if i < len(text) and text[i] == ".":
            i += 1
    return tuple(parts)
