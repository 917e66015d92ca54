"""SpecRunner: runs one spec against one replica; each command is a method that returns its output lines."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec

from compute.client.orchestrator import Orchestrator
from compute.client.placement import Role, class_fits_shape, renders
from compute.plan.description import (
    DataflowClass,
    DataflowDescription,
    IndexDesc,
    IndexExport,
    IndexImport,
    SourceImport,
)
from compute.plan.lower import lower
from compute.protocol.command import (
    AllowCompaction,
    AllowWrites,
    CreateDataflow,
    CreateInstance,
    IndexTarget,
    InitializationComplete,
    Peek,
    PersistTarget,
    Schedule,
    UpdateConfiguration,
)
from compute.protocol.response import PeekCanceled, PeekError, PeekRows
from mzlite.driver.dataflows import KnownIndex, World, build_dataflow, key_of, parse_frontier, parse_id, remember
from mzlite.driver.replica import DriverReplica
from mzlite.driver.schema import DEFAULT, Schema, format_row, parse_row, parse_schema, rows_of, sort_key
from mzlite.driver.shards import Shards
from mzlite.driver.spec import SpecError, Stanza, parse_list, to_int
from mzlite.expr import relation as r
from mzlite.expr.mfp import MapFilterProject
from mzlite.expr.scalar import Aggregate, Literal, Ref
from mzlite.repr.datum import encode_datum
from mzlite.repr.encode import decode_updates
from mzlite.repr.errors import decode_error
from mzlite.repr.ids import GlobalId, transient
from mzlite.repr.timestamp import frontier_le, less_equal
from mzlite.repr.types import BOOL, INT8, ColumnType, RelationDesc, RelationType

DEFAULT_TIMEOUT_S = 60.0
_FIRST_OWN_ID = 1_000_000
_COUNT = Schema("count", RelationDesc(("count",), RelationType((ColumnType(INT8, False),))))


class Failure(msgspec.Struct):
    """A stanza whose output differs, or (line 0) a placement that is not as it should be."""

    line: int
    command: str
    expected: list[str]
    actual: list[str]


class Outcome(msgspec.Struct):
    file: str
    workers: int
    interactive: bool
    stanzas: int
    failures: list[Failure]
    rendered: dict[str, list[str]]
    outputs: list[list[str]]

    @property
    def passed(self) -> bool:
        return not self.failures


class SpecRunner:
    def __init__(self, replica: DriverReplica, shards: Shards, workers: int, interactive: bool) -> None:
        self._replica = replica
        self._shards = shards
        self._workers = workers
        self._interactive = interactive
        self._world = World({"default": DEFAULT})
        self._deferred: dict[str, DataflowDescription] = {}
        self._sent: dict[GlobalId, DataflowDescription] = {}
        self._next_id = _FIRST_OWN_ID
        self._commands: dict[str, Callable[[Stanza], Awaitable[list[str]]]] = {
            "create-instance": self._create_instance,
            "update-configuration": self._update_configuration,
            "initialization-complete": self._initialization_complete,
            "reconnect": self._reconnect,
            "define-schema": self._define_schema,
            "write-single-ts": self._write_single_ts,
            "write-spread": self._write_spread,
            "write-rows": self._write_rows,
            "define-index": self._define_index,
            "create-dataflow": self._create_dataflow,
            "submit-dataflow": self._submit_dataflow,
            "schedule": self._schedule,
            "allow-writes": self._allow_writes,
            "allow-compaction": self._allow_compaction,
            "await-frontier": self._await_frontier,
            "count": self._count,
            "peek": self._peek,
            "await-subscribe": self._await_subscribe,
        }

    async def execute(self, stanza: Stanza) -> list[str]:
        """Output of one stanza; a failing command's is one `error: ` line."""
        command = self._commands.get(stanza.command.replace("_", "-"))
        try:
            if command is None:
                raise SpecError(f'unknown command "{stanza.command}"')
            return await command(stanza)
        except SpecError as error:
            return f"error: {error}".splitlines()

    def misplaced(self) -> list[str]:
        """Dataflows that were not built by exactly the runtime their class belongs to, as the workers reported."""
        roles = [Role.MAINTENANCE, Role.INTERACTIVE] if self._interactive else [Role.SOLO]
        wrong = []
        for id, dataflow in self._sent.items():
            wanted = {role for role in roles if renders(role, dataflow.cls)}
            got = self._replica.rendered.get(id, set())
            if got != wanted:
                wrong.append(f"{id}: {dataflow.cls.value} was rendered by {_names(got)}, expected {_names(wanted)}")
        return wrong + self._replica.violations

    # -- instance

    async def _create_instance(self, stanza: Stanza) -> list[str]:
        self._replica.send([CreateInstance({}, config=_parameters(stanza.body))])
        return ["ok"]

    async def _update_configuration(self, stanza: Stanza) -> list[str]:
        self._replica.send([UpdateConfiguration(_parameters(stanza.body))])
        return ["ok"]

    async def _initialization_complete(self, stanza: Stanza) -> list[str]:
        self._replica.send([InitializationComplete()])
        return ["ok"]

    async def _reconnect(self, stanza: Stanza) -> list[str]:
        self._replica.hello()
        return ["ok"]

    # -- data

    async def _define_schema(self, stanza: Stanza) -> list[str]:
        name = stanza.take("name")
        self._world.schemas[name] = parse_schema(name, stanza.body)
        return ["ok"]

    async def _write_single_ts(self, stanza: Stanza) -> list[str]:
        return self._write_generated(stanza, 1)

    async def _write_spread(self, stanza: Stanza) -> list[str]:
        return self._write_generated(stanza, stanza.take_int("n-ts"))

    def _write_generated(self, stanza: Stanza, n_ts: int) -> list[str]:
        """count rows with distinct keys from start on, spread evenly over n_ts times from ts on."""
        schema = self._world.schema(stanza.args.get("schema"))
        ts = stanza.take_int("ts", 0)
        count = stanza.take_int("count")
        start = stanza.take_int("start", 0)
        row_bytes = stanza.take_int("row-bytes", 0)
        if n_ts < 1:
            raise SpecError("n-ts must be at least 1")
        rows = []
        for i in range(count):
            row = tuple(_generated(c, start + i, row_bytes) for c in schema.typ.columns)
            rows.append((row, ts + i * n_ts // max(count, 1)))
        self._shards.write(stanza.take("shard"), schema, rows, ts + n_ts)
        return [f"wrote {count}"]

    async def _write_rows(self, stanza: Stanza) -> list[str]:
        schema = self._world.schema(stanza.args.get("schema"))
        ts = stanza.take_int("ts")
        rows = [(parse_row(schema, line, i), ts) for i, line in enumerate(stanza.body)]
        self._shards.write(stanza.take("shard"), schema, rows, ts + 1)
        return [f"wrote {len(rows)}"]

    # -- dataflows

    async def _define_index(self, stanza: Stanza) -> list[str]:
        schema = self._world.schema(stanza.args.get("schema"))
        source, index = parse_id(stanza.take("source")), parse_id(stanza.take("index"))
        shard = stanza.take("shard")
        key = key_of(stanza.args.get("key", "[0]"), schema.typ.arity)
        self._shards.ensure(shard, schema)
        self._submit(
            DataflowDescription(
                name=f"index-{index}",
                source_imports={source: SourceImport(shard, schema.typ, upper=stanza.take_int("upper", 0))},
                index_imports={},
                objects=(),
                index_exports={index: IndexExport(IndexDesc(source, key), schema.typ)},
                sink_exports={},
                as_of=stanza.take_int("as-of", 0),
            )
        )
        return ["ok"]

    async def _create_dataflow(self, stanza: Stanza) -> list[str]:
        name = stanza.take("name")
        until = stanza.args.get("until")
        dataflow = build_dataflow(
            self._world,
            name,
            stanza.body,
            as_of=stanza.take_int("as-of", 0),
            until=parse_frontier(until) if until is not None else None,
            single_read="single-read" in stanza.flags,
            optimize="optimize" in stanza.flags,
        )
        for source in dataflow.source_imports.values():
            self._shards.ensure(source.shard, Schema(source.shard, _anonymous(source.typ)))
        for id in dataflow.sink_exports:
            if id in self._world.sinks:
                self._shards.ensure(*self._world.sinks[id])
        if not class_fits_shape(dataflow):
            raise SpecError(f"dataflow {name} is not a single read: its exports must be transient indexes")
        if "defer" in stanza.flags:
            self._deferred[name] = dataflow
        else:
            self._submit(dataflow)
        return ["ok"]

    async def _submit_dataflow(self, stanza: Stanza) -> list[str]:
        dataflow = self._deferred.pop(stanza.take("name"), None)
        if dataflow is None:
            raise SpecError(f"no deferred dataflow {stanza.take('name')}")
        self._submit(dataflow)
        return ["ok"]

    def _submit(self, dataflow: DataflowDescription) -> None:
        remember(self._world, dataflow)
        for id in dataflow.export_ids():
            self._sent[id] = dataflow
            self._replica.frontiers.pop(id, None)
        self._replica.send([CreateDataflow(dataflow)])

    async def _schedule(self, stanza: Stanza) -> list[str]:
        self._replica.send([Schedule(parse_id(stanza.take("id")))])
        return ["ok"]

    async def _allow_writes(self, stanza: Stanza) -> list[str]:
        self._replica.send([AllowWrites(parse_id(stanza.take("id")))])
        return ["ok"]

    async def _allow_compaction(self, stanza: Stanza) -> list[str]:
        frontier = parse_frontier(stanza.args.get("frontier", ""))
        self._replica.send([AllowCompaction(parse_id(stanza.take("id")), frontier)])
        return ["ok"]

    async def _await_frontier(self, stanza: Stanza) -> list[str]:
        id, ts = parse_id(stanza.take("id")), stanza.take_int("ts")
        timeout_s = float(stanza.args.get("timeout-secs", DEFAULT_TIMEOUT_S))
        replica = self._replica
        done = await replica.wait_until(lambda: replica.reached(id, ts), timeout_s)
        if "allow-timeout" in stanza.flags:
            return ["awaited"]
        if not done:
            raise SpecError(f"frontier for {id} did not reach {ts} in time")
        return ["ok"]

    # -- reads

    async def _peek(self, stanza: Stanza) -> list[str]:
        id, ts = parse_id(stanza.take("id")), stanza.take_int("ts")
        schema = self._world.schema(stanza.args["schema"]) if "schema" in stanza.args else None
        target: IndexTarget | PersistTarget
        if id in self._world.sinks:
            shard, own = self._world.sinks[id]
            schema = schema if schema is not None else own
            target = PersistTarget(id, shard, schema.typ)
        else:
            schema = schema if schema is not None else DEFAULT
            target = IndexTarget(id)
            known = self._world.indexes.get(id)
            if known is not None and known.typ.arity != schema.typ.arity:
                raise SpecError(f"{id} has {known.typ.arity} columns but schema {schema.name} has {schema.typ.arity}")
        rows = await self._read(target, schema, ts, _timeout_s(stanza))
        return [format_row(schema, row) for row in sorted(rows, key=sort_key)]

    async def _read(
        self, target: IndexTarget | PersistTarget, schema: Schema, ts: int, timeout_s: float
    ) -> list[tuple[object, ...]]:
        arity = schema.typ.arity
        command = Peek(
            target,
            uuid.uuid4().hex,
            ts,
            MapFilterProject.identity(arity),
            r.RowSetFinishing(project=tuple(range(arity))),
        )
        future = self._replica.peek(command)
        try:
            response = await asyncio.wait_for(future, timeout_s)
        except TimeoutError:
            raise SpecError(f"peek of {target.id} at {ts} was not answered in time") from None
        match response:
            case PeekError():
                raise SpecError(decode_error(response.error).message)
            case PeekCanceled():
                raise SpecError("the peek was cancelled")
            case PeekRows():
                if not response.rows:
                    return []
                updates = decode_updates(response.rows)
                rows = rows_of(schema, updates.columns, len(updates))
                return [row for row, diff in zip(rows, updates.diff.tolist()) for _ in range(diff)]

    async def _count(self, stanza: Stanza) -> list[str]:
        """Through a one-shot dataflow of its own, dropped afterwards."""
        id, ts = parse_id(stanza.take("id")), stanza.take_int("ts")
        own_view, own_index = self._own_id(), self._own_id()
        sources: dict[GlobalId, SourceImport] = {}
        indexes: dict[GlobalId, IndexImport] = {}
        if id in self._world.sinks:
            shard, schema = self._world.sinks[id]
            sources[id] = SourceImport(shard, schema.typ)
            get = r.Get(id, schema.typ)
        else:
            known: KnownIndex | None = self._world.indexes.get(id)
            if known is None:
                raise SpecError(f"unknown index {id}")
            indexes[id] = IndexImport(known.desc, known.typ)
            get = r.Get(known.desc.on_id, known.typ)
        count = r.Reduce(get, (), (Aggregate("count", (Literal(encode_datum(BOOL, True), BOOL),), INT8),))
        dataflow = DataflowDescription(
            name=f"count-{id}",
            source_imports=sources,
            index_imports=indexes,
            objects=lower([(own_view, count)], indexes, single_time=True),
            index_exports={own_index: IndexExport(IndexDesc(own_view, (Ref(0),)), _COUNT.typ)},
            sink_exports={},
            as_of=ts,
            until=ts + 1,
            cls=DataflowClass.ONE_SHOT_READ,
        )
        self._sent[own_index] = dataflow
        self._replica.send([CreateDataflow(dataflow), Schedule(own_index)])
        try:
            rows = await self._read(IndexTarget(own_index), _COUNT, ts, _timeout_s(stanza))
        finally:
            self._replica.send([AllowCompaction(own_index, None)])
        return [str(rows[0][0]) if rows else "0"]

    async def _await_subscribe(self, stanza: Stanza) -> list[str]:
        id = parse_id(stanza.take("id"))
        up_to = stanza.take_int("up-to")
        replica = self._replica

        def complete() -> bool:
            return id in replica.subscribe_uppers and frontier_le(up_to, replica.subscribe_uppers[id])

        if not await replica.wait_until(complete, _timeout_s(stanza)):
            raise SpecError(f"subscribe {id} did not reach {up_to} in time")
        relation = self._world.subscribes.get(id)
        if relation is None:
            raise SpecError(f"unknown subscribe {id}")
        schema = Schema(id, _anonymous(relation))
        lines = []
        kept = []
        for batch in replica.subscribes.get(id, []):
            if batch.error is not None:
                raise SpecError(decode_error(batch.error).message)
            if batch.updates is None:
                continue
            updates = decode_updates(batch.updates)
            rows = rows_of(schema, updates.columns, len(updates))
            for row, time, diff in zip(rows, updates.time.tolist(), updates.diff.tolist()):
                if not less_equal(up_to, time):
                    lines.append((time, sort_key(row), diff, format_row(schema, row)))
            if not frontier_le(batch.upper, up_to):
                kept.append(batch)
        replica.subscribes[id] = kept
        return [f"{time} {diff} {text}".rstrip() for time, _, diff, text in sorted(lines)]

    def _own_id(self) -> GlobalId:
        self._next_id += 1
        return transient(self._next_id)


async def run_file(
    orchestrator_of: Callable[[str], Orchestrator], path: Path, stanzas: list[Stanza], workers: int, interactive: bool
) -> Outcome:
    """Run one spec in a fresh replica."""
    shards = Shards()
    await shards.start()
    replica = DriverReplica(orchestrator_of(shards.socket_path), workers, interactive)
    runner = SpecRunner(replica, shards, workers, interactive)
    failures: list[Failure] = []
    outputs: list[list[str]] = []
    try:
        replica.hello()
        for stanza in stanzas:
            actual = [line.rstrip() for line in await runner.execute(stanza)]
            outputs.append(actual)
            if stanza.expected is not None and actual != stanza.expected:
                failures.append(Failure(stanza.line, stanza.command, stanza.expected, actual))
        if not replica.dead:
            await replica.wait_until(lambda: not runner.misplaced(), 5.0)
        misplaced = runner.misplaced()
        if misplaced:
            failures.append(Failure(0, "placement", [], misplaced))
    finally:
        replica.close()
        await shards.close()
    rendered = {str(id): sorted(role.value for role in roles) for id, roles in replica.rendered.items()}
    return Outcome(str(path), workers, interactive, len(stanzas), failures, rendered, outputs)


def _timeout_s(stanza: Stanza) -> float:
    return float(stanza.args.get("timeout-secs", DEFAULT_TIMEOUT_S))


def _names(roles: set[Role]) -> str:
    return ", ".join(sorted(role.value for role in roles)) or "nobody"


def _anonymous(relation: RelationType) -> RelationDesc:
    return RelationDesc(tuple(f"c{i}" for i in range(relation.arity)), relation)


def _generated(column: ColumnType, key: int, row_bytes: int) -> object:
    match column.scalar.kind:
        case "int2" | "int4" | "int8" | "uint2" | "uint4" | "uint8":
            return key
        case "float4" | "float8":
            return float(key)
        case "bool":
            return key % 2 == 0
        case "bytea":
            return str(key).encode().ljust(row_bytes, b"x")
        case "text" | "varchar":
            return f"value-{key}".ljust(row_bytes, "x")
        case other:
            raise SpecError(f"cannot generate values of type {other}")


def _parameters(body: list[str]) -> dict[str, object]:
    """`name type value` lines."""
    out: dict[str, object] = {}
    for line in body:
        words = line.split(None, 2)
        if len(words) != 3:
            raise SpecError(f"a parameter is `name type value`, found {line.strip()!r}")
        name, kind, value = words
        match kind:
            case "bool":
                if value not in ("true", "false", "on", "off"):
                    raise SpecError(f"{name}: {value!r} is not a bool")
                out[name] = value in ("true", "on")
            case "u32" | "usize":
                out[name] = to_int(name, value)
            case "f64":
                try:
                    out[name] = float(value)
                except ValueError:
                    raise SpecError(f"{name}: {value!r} is not a f64") from None
            case "duration" | "string":
                out[name] = parse_list(value)[0]
            case _:
                raise SpecError(f'unknown parameter type "{kind}"')
    return out
