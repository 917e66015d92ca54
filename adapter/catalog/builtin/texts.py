"""SQL text that catalog relations show: type names, default expressions, definitions."""

from __future__ import annotations

from collections.abc import Sequence

from adapter.catalog.state import CatalogState
from mzlite.expr.scalar import Call, If, Literal, Ref, Scalar, Unmaterializable
from mzlite.repr.datum import decode_datum
from mzlite.repr.text import format_datum
from mzlite.repr.typenames import type_name
from mzlite.repr.types import ScalarType


def type_text(typ: ScalarType) -> str:
    return type_name(typ)


def scalar_text(e: Scalar, names: Sequence[str] = ()) -> str:
    """An expression as SQL, near enough for display."""
    match e:
        case Ref(column):
            return names[column] if column < len(names) else f"#{column}"
        case Literal(value=None):
            return "NULL"
        case Literal(value=bytes() as value, typ=typ):
            text = format_datum(typ, decode_datum(typ, value))
            if typ.kind.startswith(("int", "uint", "float", "numeric", "bool")) and typ.kind not in (
                "interval",
                "int2vector",
            ):
                return text
            return "'" + text.replace("'", "''") + "'"
        case Call(func, args, _):
            inner = ", ".join(scalar_text(a, names) for a in args)
            return f"{func}({inner})"
        case If(cond, then, els):
            parts = [scalar_text(p, names) for p in (cond, then, els)]
            return f"CASE WHEN {parts[0]} THEN {parts[1]} ELSE {parts[2]} END"
        case Unmaterializable(func, _):
            return f"{func}()"
        case _:
            return "?"


def create_sql(state: CatalogState, id: str) -> str | None:
    item = state.items.get(id)  # type: ignore[call-overload]
    if item is None or not item.create_sql:
        return None
    sql: str = item.create_sql
    return sql if sql.endswith(";") else sql + ";"


def definition(state: CatalogState, id: str) -> str:
    """A view's query."""
    sql = create_sql(state, id)
    if sql is None:
        return ""
    _, found, query = sql.partition(" AS ")
    if not found:
        _, _, query = sql.partition("AS ")
    return query.strip()
