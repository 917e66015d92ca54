"""The catalog's durable form: one key/value pair an object, values JSON. SQL objects keep their `create_sql`.

    alloc                      next ids                    item/u5      kind, names, create_sql, shard, …
    database/u1, schema/u3     …                           var/x        system variable
    role/u1, cluster/u1        (replicas inside)           comment/table/u5/2

What planning derives (MIR, descriptions) is not stored: at start each item's `create_sql` is planned again, in id
order, against the catalog built so far. So the catalog survives changes of the intermediate representations.
"""

from __future__ import annotations

import msgspec

from adapter.catalog.objects import (
    Allocator,
    Cluster,
    CommentKey,
    Database,
    Item,
    MaterializedViewDetails,
    Role,
    Schema,
    SourceDetails,
    TableDetails,
)
from adapter.catalog.state import CatalogTransaction, id_number
from mzlite.repr.ids import GlobalId


class ItemRecord(msgspec.Struct, frozen=True):
    """shard, initial_as_of, refresh_*: facts of the item that its SQL does not say."""

    id: GlobalId
    oid: int
    schema_id: str
    name: str
    kind: str
    create_sql: str
    owner: str
    depends_on: tuple[GlobalId, ...]
    cluster_id: str | None = None
    shard: str | None = None
    initial_as_of: int = 0
    retain_history_ms: int | None = None
    refresh_at: tuple[int, ...] | None = None
    refresh_every: tuple[int, int] | None = None


def item_record(item: Item) -> ItemRecord:
    details = item.details
    initial, at, every = 0, None, None
    if isinstance(details, MaterializedViewDetails):
        initial, at, every = details.initial_as_of, details.refresh_at, details.refresh_every
    shard = details.shard if isinstance(details, TableDetails | MaterializedViewDetails | SourceDetails) else None
    return ItemRecord(
        item.id,
        item.oid,
        item.schema_id,
        item.name,
        item.kind,
        item.create_sql,
        item.owner,
        item.depends_on,
        item.cluster_id,
        shard,
        initial,
        item.retain_history_ms,
        at,
        every,
    )


def encode_changes(changes: dict[str, object | None]) -> dict[str, bytes | None]:
    encoded: dict[str, bytes | None] = {}
    for key, value in changes.items():
        if value is None:
            encoded[key] = None
        else:
            encoded[key] = msgspec.json.encode(item_record(value) if isinstance(value, Item) else value)
    return encoded


def load_into(tx: CatalogTransaction, pairs: dict[str, bytes]) -> list[ItemRecord]:
    """Put everything but items into tx; return the items' records in id order, to be planned by the caller."""
    records: list[ItemRecord] = []
    for key, value in pairs.items():
        kind, _, rest = key.partition("/")
        match kind:
            case "alloc":
                tx.state.alloc = msgspec.json.decode(value, type=Allocator)
            case "database":
                tx.put_database(msgspec.json.decode(value, type=Database))
            case "schema":
                tx.put_schema(msgspec.json.decode(value, type=Schema))
            case "role":
                tx.put_role(msgspec.json.decode(value, type=Role))
            case "cluster":
                tx.put_cluster(msgspec.json.decode(value, type=Cluster))
            case "var":
                tx.set_system_var(rest, msgspec.json.decode(value, type=str))
            case "comment":
                object_type, object_id, column = rest.split("/")
                comment_key = CommentKey(object_type, object_id, int(column) or None)
                tx.set_comment(comment_key, msgspec.json.decode(value, type=str))
            case "item":
                records.append(msgspec.json.decode(value, type=ItemRecord))
            case _:
                pass  # written by a later version; kept in storage untouched
    records.sort(key=lambda r: id_number(r.id))
    tx.changes.clear()
    return records
