"""Casts that need the catalog: 'name'::regclass and the like become object ids at planning time."""

from __future__ import annotations

from adapter.sql import hir
from adapter.sql.plan.context import PlanContext
from mzlite.expr.functions import FUNCTIONS
from mzlite.expr.scalar import Literal
from mzlite.repr.datum import encode_datum
from mzlite.repr.errors import SqlError
from mzlite.repr.typenames import oid_of, type_by_name
from mzlite.repr.types import REGCLASS, REGPROC, REGTYPE, ScalarType


def cast_registered(ctx: PlanContext, e: hir.Scalar, typ: ScalarType) -> hir.Scalar | None:
    """A string literal cast to regclass, regtype or regproc; None when that is not what this is."""
    if typ.kind not in ("regclass", "regtype", "regproc") or not isinstance(e, Literal) or e.value is None:
        return None
    if e.typ.kind not in ("unknown", "text", "varchar"):
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
            return Literal(encode_datum(REGPROC, function_oid(parts[-1], text)), REGPROC)


def function_oid(name: str, shown: str) -> int:
    """The oid pg_proc gives a function's first overload."""
    if not FUNCTIONS.by_name(name):
        raise SqlError("42883", f'function "{shown}" does not exist')
    import zlib

    return 20_000 + zlib.crc32(FUNCTIONS.by_name(name)[0].id.encode()) % 1_000_000


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
