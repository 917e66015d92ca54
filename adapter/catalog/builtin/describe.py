"""Facts about catalog objects that several builtin relations print: columns of every relation, types' oids and names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from adapter.catalog.builtin import types as bt
from adapter.catalog.builtin.relation import BUILTINS, Context
from adapter.catalog.objects import IndexDetails, TypeDetails
from adapter.catalog.state import AMBIENT_IDS, CatalogState
from mzlite.expr.scalar import Ref, Scalar
from mzlite.repr.datum import ArrayDatum
from mzlite.repr.ids import GlobalId
from mzlite.repr.types import RelationDesc, ScalarType


@dataclass(frozen=True, slots=True)
class AnyRelation:
    """A relation or index, user's or builtin."""

    id: GlobalId
    oid: int
    schema_id: str
    name: str
    kind: str
    owner: str
    desc: RelationDesc | None
    cluster_id: str | None
    create_sql: str
    builtin: bool
    on_id: GlobalId | None = None
    key: tuple[Scalar, ...] = ()


def relations(ctx: Context) -> list[AnyRelation]:
    """Every relation, index and type-less item, builtins first."""
    cached: list[AnyRelation] | None = ctx.cache.get("relations")
    if cached is None:
        cached = list(_relations(ctx))
        ctx.cache["relations"] = cached
    return cached


def _relations(ctx: Context) -> Iterator[AnyRelation]:
    for b in BUILTINS.values():
        yield AnyRelation(b.id, b.oid, AMBIENT_IDS[b.schema], b.name, b.kind, "s1", b.desc, None, "", True)
    for item in ctx.state.items.values():
        if item.kind in ("type", "secret", "connection", "func"):
            continue
        on: GlobalId | None = None
        key: tuple[Scalar, ...] = ()
        if isinstance(item.details, IndexDetails):
            on, key = item.details.on_id, item.details.key
        yield AnyRelation(
            item.id,
            item.oid,
            item.schema_id,
            item.name,
            item.kind,
            item.owner,
            item.desc,
            item.cluster_id,
            item.create_sql,
            False,
            on,
            key,
        )


def visible(ctx: Context, r: AnyRelation) -> bool:
    """In the session's database or ambient: what pg_catalog shows."""
    schema = ctx.state.schemas.get(r.schema_id)
    if schema is None or schema.database_id is None:
        return True
    db = ctx.state.databases.get(schema.database_id)
    return db is not None and db.name == ctx.database


def schema_visible(ctx: Context, database_id: str | None) -> bool:
    if database_id is None:
        return True
    db = ctx.state.databases.get(database_id)
    return db is not None and db.name == ctx.database


def type_oid(state: CatalogState, typ: ScalarType) -> int:
    """The oid of a type; custom types by their item."""
    if typ.custom is not None:
        for item in state.items.values():
            if isinstance(item.details, TypeDetails) and item.name == typ.custom.rpartition(".")[2]:
                return item.oid
    match typ.kind:
        case "array":
            assert typ.element is not None
            element = bt.BY_OID.get(type_oid(state, typ.element))
            return element.array if element is not None and element.array else 2277
        case "range":
            assert typ.element is not None
            found = bt.RANGE_BY_SUBTYPE.get(type_oid(state, typ.element))
            return found.oid if found is not None else 3831
        case "list":
            return 16384
        case "map":
            return 16385
        case "record":
            return 2249
        case "unknown":
            return 25
        case kind:
            return bt.BY_KIND[kind].oid


def type_mod(typ: ScalarType) -> int:
    """pg_attribute.atttypmod."""
    match typ.kind:
        case "varchar" | "bpchar" if typ.length is not None:
            return typ.length + 4
        case "numeric" if typ.precision is not None or typ.scale is not None:
            return (((typ.precision or 39) << 16) | (typ.scale or 0)) + 4
        case "timestamp" | "timestamptz" | "time" if typ.precision is not None:
            return typ.precision
        case _:
            return -1


def type_length(oid: int) -> int:
    found = bt.BY_OID.get(oid)
    return found.length if found is not None else -1


def array(*elements: object) -> ArrayDatum:
    return ArrayDatum.of(elements)


def no_privileges() -> ArrayDatum:
    return ArrayDatum((), ())


def default_privileges(owner: str, kind: str) -> ArrayDatum:
    """The owner's own rights as mz_aclitem text: `u1=arwd/u1`."""
    rights = {
        "table": "arwd",
        "source": "r",
        "view": "r",
        "materialized-view": "r",
        "schema": "UC",
        "database": "UC",
        "cluster": "UC",
        "type": "U",
        "system": "RBN",
    }.get(kind, "")
    if not rights:
        return no_privileges()
    return array(f"{owner}={rights}/{owner}")


def index_column(desc: RelationDesc, e: Scalar) -> int | None:
    """1-based position of the column a key part is, None for an expression."""
    return e.column + 1 if isinstance(e, Ref) else None
