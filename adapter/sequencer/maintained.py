"""Dataflows that stay: indexes and materialized views. Used when they are created and at every start."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from adapter.catalog.objects import Cluster, IndexDetails, Item, MaterializedViewDetails
from adapter.coord.timestamp_selection import combine
from adapter.sequencer.dataflows import Imports, Lowered, description, find_imports, lower_objects
from adapter.sequencer.inline import inline_views
from adapter.sequencer.scalars import scalars_of
from adapter.sequencer.values import literal
from adapter.transform import optimize_dataflow
from adapter.transform.context import IndexInfo
from compute.plan.description import (
    DataflowDescription,
    IndexDesc,
    IndexExport,
    MaterializedViewSink,
    SinkExport,
)
from mzlite.expr import relation as r
from mzlite.expr.functions import FUNCTIONS
from mzlite.expr.scalar import Call, Ref, Scalar, Unmaterializable, walk
from mzlite.repr.errors import SqlError
from mzlite.repr.ids import ClusterId, GlobalId
from mzlite.repr.timestamp import MAX, Frontier, Timestamp
from mzlite.repr.types import TEXT, RelationDesc

if TYPE_CHECKING:
    from adapter.coord.coordinator import Coordinator


def _indexes(
    c: Coordinator, cluster: Cluster, reads: frozenset[GlobalId], without: GlobalId
) -> dict[GlobalId, tuple[IndexInfo, ...]]:
    """Indexes of the cluster that a maintained dataflow may import: those that exist in compute, not itself."""
    found = c.index_infos(cluster, reads)
    usable: dict[GlobalId, tuple[IndexInfo, ...]] = {}
    for id, infos in found.items():
        kept = tuple(i for i in infos if i.id != without and c.controller.collection_exists(i.id))
        if kept:
            usable[id] = kept
    return usable


def optimize_maintained(
    c: Coordinator, mir: r.Mir, indexes: dict[GlobalId, tuple[IndexInfo, ...]]
) -> tuple[r.Mir, Imports]:
    inlined = inline_views(mir, c.definition, lambda id: id in indexes)
    optimized = optimize_dataflow(inlined, indexes)
    optimized = c.constant_builtins(optimized)
    return optimized, find_imports([optimized], indexes, c.shard_of)


def _uppers(c: Coordinator, imports: Imports) -> dict[GlobalId, Frontier]:
    return {id: c.controller.frontiers(id)[1] for id in imports.sources}


def since_of(c: Coordinator, imports: Imports) -> Timestamp:
    """The first time at which all inputs can be read."""
    since, _ = combine({id: c.controller.frontiers(id) for id in imports.ids()})
    return MAX if since is None else since


def freshest(c: Coordinator, imports: Imports) -> Timestamp:
    """Where a new dataflow starts: the last complete time of its inputs, so that no read of it is older than it is; but
    not ahead of the clock, where what is refreshed rarely may be complete already."""
    since, upper = combine({id: c.controller.frontiers(id) for id in imports.ids()})
    if since is None:
        return MAX
    return since if upper is None else max(since, min(upper - 1, c.oracle.read_ts()))


def check_maintainable(plan: r.Mir) -> None:
    """Refuse what cannot be kept up to date, before anything of it is durable: the session's or the clock's values, and
    mz_now() elsewhere than in a filter that compares it."""
    for node in r.walk(plan):
        names = {s.func for e in scalars_of(node) for s in walk(e) if isinstance(s, Unmaterializable)}
        for name in sorted(names - {"mz_now"}):
            raise SqlError(
                "0A000",
                f"cannot materialize call to {name}",
                hint="Try using `mz_now()` here instead." if name == "now" else None,
            )
        if names and not isinstance(node, r.Filter):
            raise SqlError(
                "0A000",
                "calls to mz_now are only supported in WHERE and HAVING clauses of maintained objects",
                hint="temporal filters are comparisons of mz_now() joined by AND",
            )


@dataclass(frozen=True, slots=True)
class MaintainedPlan:
    """What planning a dataflow gives: everything but its times. Made in a thread when somebody waits for reads."""

    lowered: Lowered
    imports: Imports


def plan_index(c: Coordinator, index_id: GlobalId, details: IndexDetails) -> MaintainedPlan:
    """An import arranged, or a view computed and arranged."""
    cluster = c.state.clusters[details.cluster_id]
    on = details.on_id
    get = c.get_of(on)
    indexes = _indexes(c, cluster, frozenset((on,)), index_id)
    objects: list[tuple[GlobalId, r.Mir]] = []
    if c.shard_of(on) is not None or on in indexes:
        # Nothing to compute. An index with the same key is exported again, another one is arranged anew.
        again = next((i for i in indexes.get(on, ()) if i.key == details.key), None)
        chosen = {on: (again,)} if again is not None else {on: indexes[on][:1]} if on in indexes else {}
        imports = find_imports([get], chosen, c.shard_of)
    else:
        mir = c.definition(on)
        plan, imports = optimize_maintained(c, mir if mir is not None else get, indexes)
        check_maintainable(plan)
        objects = [(on, plan)]
    return MaintainedPlan(lower_objects(objects, single_time=False), imports)


def create_index_dataflow(c: Coordinator, item: Item, plan: MaintainedPlan) -> None:
    """Install the dataflow of an index."""
    details = item.details
    assert isinstance(details, IndexDetails)
    cluster = c.state.clusters[details.cluster_id]
    dataflow = description(
        f"index-{item.name}",
        plan.lowered,
        plan.imports,
        freshest(c, plan.imports),
        uppers=_uppers(c, plan.imports),
        index_exports={item.id: IndexExport(IndexDesc(details.on_id, details.key), c.desc_of(details.on_id).typ)},
    )
    _create(c, cluster, dataflow)
    if c.pins.needed(item):
        c.pins.pin(item)
    if item.retain_history_ms is not None:
        c.controller.set_read_policy(item.id, item.retain_history_ms)


def with_assertions(mir: r.Mir, desc: RelationDesc, non_null: tuple[int, ...]) -> r.Mir:
    """mir with every asserted column checked: a NULL becomes an error that lasts as long as its row."""
    if not non_null:
        return mir
    arity = desc.typ.arity
    checks: list[Scalar] = []
    outputs = list(range(arity))
    for i in non_null:
        typ = desc.typ.columns[i].scalar
        entry = FUNCTIONS.by_name("mz_error_if_null")[0].bind((typ, TEXT))
        text = literal(TEXT, f'column "{desc.names[i]}" must not be null')
        outputs[i] = arity + len(checks)
        checks.append(Call(entry.id, (Ref(i), text), typ))
    return r.Project(r.Map(mir, tuple(checks)), tuple(outputs))


def plan_view(c: Coordinator, view_id: GlobalId, details: MaterializedViewDetails) -> MaintainedPlan:
    """A materialized view's query, on its cluster. The object's own id is transient: the view's is the sink's."""
    cluster = c.state.clusters[details.cluster_id]
    mir = with_assertions(details.optimized, details.desc, details.non_null)
    indexes = _indexes(c, cluster, r.global_ids(mir), view_id)
    plan, imports = optimize_maintained(c, mir, indexes)
    check_maintainable(plan)
    return MaintainedPlan(lower_objects([(c.transient_id(), plan)], single_time=False), imports)


def create_view_dataflow(c: Coordinator, item: Item, plan: MaintainedPlan) -> None:
    """Install (again) the dataflow of a materialized view, from where its shard stands."""
    details = item.details
    assert isinstance(details, MaterializedViewDetails)
    upper = c.storage.upper(details.shard)
    if upper is None:
        return  # complete: nothing will change
    cluster = c.state.clusters[details.cluster_id]
    imports = plan.imports
    since = since_of(c, imports)
    as_of = max(since, upper - 1 if upper > details.initial_as_of else details.initial_as_of)
    _, inputs_upper = combine({id: c.controller.frontiers(id) for id in imports.ids()})
    if inputs_upper is not None and inputs_upper > 0:
        as_of = max(since, min(as_of, inputs_upper - 1))
    ((object_id, _),) = plan.lowered.objects
    sink = SinkExport(
        object_id,
        details.desc,
        MaterializedViewSink(details.shard),
        refresh=details.refresh_at,
        refresh_every=details.refresh_every,
    )
    dataflow = description(
        f"materialized-view-{item.name}",
        plan.lowered,
        imports,
        as_of,
        uppers=_uppers(c, imports),
        sink_exports={item.id: sink},
    )
    _create(c, cluster, dataflow)


def _create(c: Coordinator, cluster: Cluster, dataflow: DataflowDescription) -> None:
    c.controller.create_dataflow(ClusterId(cluster.id), dataflow)
