"""From the body of `create-dataflow` to a DataflowDescription.

import source=1000 shard=r upper=1      a shard as a collection
import index=2001                       an index made before
build id=2000                           MIR, indented below
  Project (#0, #1)
    Get u1000
export index=2001 on=2000 key=[0]
"""

from __future__ import annotations

import textwrap

import msgspec

from adapter.transform.context import IndexInfo
from adapter.transform.pipeline import optimize_dataflow
from compute.plan.description import (
    DataflowClass,
    DataflowDescription,
    IndexDesc,
    IndexExport,
    IndexImport,
    MaterializedViewSink,
    SinkExport,
    SourceImport,
    SubscribeSink,
)
from compute.plan.lower import lower
from mzlite.driver.schema import Schema
from mzlite.driver.spec import SpecError, parse_arguments, parse_list, to_int
from mzlite.expr import relation as r
from mzlite.expr.scalar import Ref
from mzlite.expr.text import MirSyntaxError, parse_mir
from mzlite.expr.typecheck import typ
from mzlite.repr.errors import SqlError
from mzlite.repr.ids import GlobalId, parse_global_id
from mzlite.repr.timestamp import Frontier
from mzlite.repr.types import RelationDesc, RelationType


class KnownIndex(msgspec.Struct, frozen=True):
    """An index that later dataflows may import."""

    desc: IndexDesc
    typ: RelationType


class World(msgspec.Struct):
    """What the script has declared so far. shards: shard name -> its schema; sinks: materialized view id -> shard."""

    schemas: dict[str, Schema]
    indexes: dict[GlobalId, KnownIndex] = {}
    sinks: dict[GlobalId, tuple[str, Schema]] = {}
    subscribes: dict[GlobalId, RelationType] = {}

    def schema(self, name: str | None) -> Schema:
        name = name if name is not None else "default"
        found = self.schemas.get(name)
        if found is None:
            raise SpecError(f'unknown schema "{name}"; declare it with define_schema first')
        return found


def parse_id(text: str) -> GlobalId:
    try:
        return parse_global_id(text)
    except ValueError as error:
        raise SpecError(str(error)) from None


def parse_frontier(text: str) -> Frontier:
    """A time, or nothing for the empty frontier."""
    return to_int("frontier", text) if text not in ("", "[]") else None


def key_of(text: str, arity: int) -> tuple[Ref, ...]:
    key = []
    for item in parse_list(text):
        column = to_int("key", item.removeprefix("#"))
        if not 0 <= column < arity:
            raise SpecError(f"key column {column} out of range for a {arity}-column schema")
        key.append(Ref(column))
    return tuple(key)


class Statement(msgspec.Struct):
    """One import, build or export line, with the lines indented under it."""

    kind: str
    args: dict[str, str]
    flags: frozenset[str]
    body: list[str]

    def take(self, name: str) -> str:
        value = self.args.get(name)
        if value is None:
            raise SpecError(f"{self.kind} requires {name}=")
        return value


def statements(body: list[str]) -> list[Statement]:
    lines = textwrap.dedent("\n".join(body)).splitlines()
    found: list[Statement] = []
    for line in lines:
        if line[:1].isspace():
            if not found:
                raise SpecError(f"unexpected indentation: {line.strip()!r}")
            found[-1].body.append(line)
        elif not line.startswith("#"):
            kind, _, rest = line.partition(" ")
            args, flags = parse_arguments(rest)
            found.append(Statement(kind, args, flags, []))
    return found


def build_dataflow(
    world: World,
    name: str,
    body: list[str],
    *,
    as_of: int,
    until: Frontier,
    single_read: bool,
    optimize: bool,
) -> DataflowDescription:
    """Parse, type, optionally optimize, lower; and remember the exports in `world`."""
    sources: dict[GlobalId, SourceImport] = {}
    indexes: dict[GlobalId, IndexImport] = {}
    types: dict[str, RelationType] = {}
    built: list[tuple[GlobalId, r.Mir]] = []
    index_exports: dict[GlobalId, IndexExport] = {}
    sink_exports: dict[GlobalId, SinkExport] = {}
    if single_read:
        until = as_of + 1
    for statement in statements(body):
        match statement.kind:
            case "import" if "source" in statement.args:
                id = parse_id(statement.args["source"])
                schema = world.schema(statement.args.get("schema"))
                upper = to_int("upper", statement.args.get("upper", "0"))
                sources[id] = SourceImport(
                    statement.take("shard"),
                    schema.typ,
                    upper=upper,
                    monotonic="monotonic" in statement.flags,
                    with_snapshot="no-snapshot" not in statement.flags,
                )
                types[id] = schema.typ
            case "import":
                id = parse_id(statement.take("index"))
                known = world.indexes.get(id)
                if known is None:
                    raise SpecError(f"unknown index {id}")
                indexes[id] = IndexImport(known.desc, known.typ, with_snapshot="no-snapshot" not in statement.flags)
                types[known.desc.on_id] = known.typ
            case "build":
                id = parse_id(statement.take("id"))
                try:
                    mir = parse_mir(textwrap.dedent("\n".join(statement.body)), types)
                except MirSyntaxError as error:
                    raise SpecError(str(error)) from None
                except SqlError as error:
                    raise SpecError(error.message) from None
                built.append((id, mir))
                types[id] = typ(mir)
            case "export":
                _export(world, statement, types, index_exports, sink_exports)
            case other:
                raise SpecError(f'unknown statement "{other}" in create-dataflow')
    if not index_exports and not sink_exports:
        raise SpecError(f"dataflow {name} exports nothing")
    on_collection: dict[GlobalId, tuple[IndexInfo, ...]] = {}
    for index, imported in indexes.items():
        on = imported.desc.on_id
        on_collection[on] = (*on_collection.get(on, ()), IndexInfo(index, imported.desc.key))
    if optimize:
        built = [(id, optimize_dataflow(mir, on_collection)) for id, mir in built]
    try:
        objects = lower(built, indexes, single_time=until is not None and until == as_of + 1)
    except SqlError as error:
        raise SpecError(error.message) from None
    dataflow = DataflowDescription(
        name=name,
        source_imports=sources,
        index_imports=indexes,
        objects=objects,
        index_exports=index_exports,
        sink_exports=sink_exports,
        as_of=as_of,
        until=until,
        cls=DataflowClass.ONE_SHOT_READ if single_read else DataflowClass.MAINTAINED,
        recursive=any(isinstance(node, r.LetRec) for _, mir in built for node in r.walk(mir)),
    )
    remember(world, dataflow)
    return dataflow


def remember(world: World, dataflow: DataflowDescription) -> None:
    for id, export in dataflow.index_exports.items():
        world.indexes[id] = KnownIndex(export.desc, export.typ)
    for id, sink in dataflow.sink_exports.items():
        if isinstance(sink.connection, MaterializedViewSink):
            world.sinks[id] = (sink.connection.shard, Schema(id, sink.desc))
        else:
            world.subscribes[id] = sink.desc.typ


def _export(
    world: World,
    statement: Statement,
    types: dict[str, RelationType],
    index_exports: dict[GlobalId, IndexExport],
    sink_exports: dict[GlobalId, SinkExport],
) -> None:
    on = parse_id(statement.take("on"))
    if on not in types:
        raise SpecError(f"export on unknown collection {on}")
    kind = statement.args.get("kind", "index" if "index" in statement.args else "")
    if kind == "index":
        id = parse_id(statement.take("index"))
        key = key_of(statement.args.get("key", "[]"), types[on].arity)
        index_exports[id] = IndexExport(IndexDesc(on, key), types[on])
        return
    id = parse_id(statement.take("sink"))
    relation = types[on]
    desc = RelationDesc(tuple(f"c{i}" for i in range(relation.arity)), relation)
    if kind == "materialized-view":
        sink_exports[id] = SinkExport(on, desc, MaterializedViewSink(statement.take("shard")))
    elif kind == "subscribe":
        up_to = statement.args.get("up-to")
        sink_exports[id] = SinkExport(
            on,
            desc,
            SubscribeSink(parse_frontier(up_to) if up_to is not None else None),
            with_snapshot="no-snapshot" not in statement.flags,
        )
    else:
        raise SpecError(f'unknown export kind "{kind}"')
