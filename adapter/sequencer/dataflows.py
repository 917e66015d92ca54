"""Building dataflow descriptions: which shards and indexes a plan imports, its LIR, its exports, its class.

one-shot read     objects: the query; exports a transient index; until = as_of + 1      OneShotRead
                  (at Timestamp::MAX there is no as_of + 1: until is empty)             Maintained
index             objects: the view, unless on_id is imported; exports the index        Maintained
materialized view objects: the query; a sink that writes the shard                      Maintained
subscribe         objects: the query; a sink                                            Maintained
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from adapter.transform.context import IndexInfo
from compute.plan.description import (
    DataflowClass,
    DataflowDescription,
    IndexDesc,
    IndexExport,
    IndexImport,
    SinkExport,
    SourceImport,
)
from compute.plan.lir import Lir
from compute.plan.lower import lower
from mzlite.expr import relation as r
from mzlite.expr.scalar import Ref, Scalar
from mzlite.repr.ids import GlobalId
from mzlite.repr.timestamp import Frontier, Timestamp, step_forward
from mzlite.repr.types import RelationType


@dataclass(frozen=True, slots=True)
class Imports:
    """What a plan reads on a cluster. ids: every collection whose frontiers and holds matter."""

    sources: dict[GlobalId, tuple[str, RelationType]]
    indexes: dict[GlobalId, tuple[IndexDesc, RelationType]]

    def ids(self) -> frozenset[GlobalId]:
        return frozenset(self.sources) | frozenset(self.indexes)


def find_imports(
    plans: Iterable[r.Mir],
    indexes: Mapping[GlobalId, tuple[IndexInfo, ...]],
    shard_of: Callable[[GlobalId], str | None],
    built: frozenset[GlobalId] = frozenset(),
) -> Imports:
    """The indexes that lookups and joins of optimized plans name; for a plain read any index, else the shard.

    built: ids that the dataflow computes itself.
    """
    sources: dict[GlobalId, tuple[str, RelationType]] = {}
    used: dict[GlobalId, tuple[IndexDesc, RelationType]] = {}

    def use(id: GlobalId, typ: RelationType, index: IndexInfo) -> None:
        used[index.id] = (IndexDesc(id, index.key), typ)

    for plan in plans:
        for node in r.walk(plan):
            match node:
                case r.ArrangeBy(r.Get(id, typ), keys) if isinstance(id, str):
                    for key in keys:
                        for index in indexes.get(id, ()):
                            if index.key == key:
                                use(id, typ, index)
                                break
                case r.Join(inputs, _, r.IndexedFilter(coll, index_id, key, _)):
                    get = inputs[0]
                    assert isinstance(get, r.Get)
                    use(coll, get.typ, IndexInfo(index_id, key))
                case _:
                    pass
    covered = {desc.on_id for desc, _ in used.values()}
    for plan in plans:
        for node in r.walk(plan):
            if isinstance(node, r.Get) and isinstance(node.id, str) and node.id not in built:
                if node.id in covered:
                    continue
                covered.add(node.id)
                available = indexes.get(node.id, ())
                if available:
                    use(node.id, node.typ, available[0])
                else:
                    shard = shard_of(node.id)
                    assert shard is not None, f"{node.id} is neither indexed nor stored"
                    sources[node.id] = (shard, node.typ)
    return Imports(sources, used)


def default_key(arity: int) -> tuple[Scalar, ...]:
    return tuple(Ref(i) for i in range(arity))


@dataclass(frozen=True, slots=True)
class Lowered:
    """Objects as LIR. single_time: lowered for a dataflow that is read at one time only. recursive: a LetRec is among them."""

    objects: tuple[tuple[GlobalId, Lir], ...]
    single_time: bool
    recursive: bool


def lower_objects(objects: Sequence[tuple[GlobalId, r.Mir]], *, single_time: bool) -> Lowered:
    """SqlError for what has no plan."""
    recursive = any(isinstance(node, r.LetRec) for _, plan in objects for node in r.walk(plan))
    return Lowered(lower(objects, {}, single_time=single_time), single_time, recursive)


def single_time(as_of: Timestamp, until: Frontier) -> bool:
    """Is a dataflow read at as_of only? At Timestamp::MAX there is no until that says so."""
    return until is not None and until == step_forward(as_of)


def description(
    name: str,
    lowered: Lowered,
    imports: Imports,
    as_of: Timestamp,
    *,
    uppers: Mapping[GlobalId, Frontier],
    until: Frontier = None,
    one_shot: bool = False,
    index_exports: dict[GlobalId, IndexExport] | None = None,
    sink_exports: dict[GlobalId, SinkExport] | None = None,
    with_snapshot: bool = True,
) -> DataflowDescription:
    """LIR and everything around it."""
    index_imports = {
        id: IndexImport(desc, typ, with_snapshot=with_snapshot) for id, (desc, typ) in imports.indexes.items()
    }
    source_imports = {
        id: SourceImport(shard, typ, with_snapshot=with_snapshot, upper=uppers.get(id, 0))
        for id, (shard, typ) in imports.sources.items()
    }
    if one_shot:
        until = step_forward(as_of)
    assert not lowered.single_time or single_time(as_of, until), (as_of, until)
    return DataflowDescription(
        name,
        source_imports,
        index_imports,
        lowered.objects,
        index_exports or {},
        sink_exports or {},
        as_of,
        until,
        DataflowClass.ONE_SHOT_READ if one_shot and until is not None else DataflowClass.MAINTAINED,
        lowered.recursive,
    )
