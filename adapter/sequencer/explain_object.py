"""EXPLAIN of what is kept, or would be kept, up to date: the dataflow of an index or a materialized view; a view's plan.

materialize.public.vi:
  ArrangeBy keys=[[#0{a}]]
    ReadGlobalFromSameDataflow materialize.public.v

materialize.public.v:
  Reduce …
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapter.catalog.objects import Cluster, IndexDetails, MaterializedViewDetails, ViewDetails
from adapter.explain import Explained, ExplainOptions, explain
from adapter.sequencer.dataflows import Imports, find_imports
from adapter.sequencer.explain_text import CatalogNames
from adapter.sequencer.inline import inline_views
from adapter.sql.plans import CreateIndexPlan, CreateMaterializedViewPlan, CreateViewPlan, ExplainPlan
from adapter.transform import optimize_dataflow, optimize_local
from adapter.transform.context import IndexInfo
from mzlite.expr import relation as r
from mzlite.expr.scalar import Scalar
from mzlite.repr.ids import GlobalId

if TYPE_CHECKING:
    from adapter.coord.coordinator import Coordinator


def explain_object(c: Coordinator, plan: ExplainPlan) -> str | None:
    """None: the explainee is no such object."""
    if plan.stage not in ("optimized", "physical"):
        return None
    names = CatalogNames(c)
    options = ExplainOptions.parse(plan.options, plan.format, plan.verbose)
    explained: Explained | None = None
    match plan.explainee:
        case str() as id:
            item = c.state.items.get(GlobalId(id))
            match item.details if item is not None else None:
                case IndexDetails(on_id=on, key=key, cluster_id=cluster_id):
                    cluster = c.state.clusters[cluster_id]
                    explained = _index(c, names, names.full_name(GlobalId(id)), on, key, cluster, GlobalId(id))
                case MaterializedViewDetails(mir=mir, cluster_id=cluster_id):
                    explained = _maintained(c, names.full_name(GlobalId(id)), mir, c.state.clusters[cluster_id])
                case ViewDetails(mir=mir):
                    explained = _view(c, names.full_name(GlobalId(id)), mir)
                case _:
                    pass
        case CreateIndexPlan(name=name, base_name=base, on=on, key=key, cluster=cluster_name):
            shown = str(name) if name is not None else f"{names.full_name(on).rpartition('.')[0]}.{base}"
            explained = _index(c, names, shown, on, key, c.state.clusters[cluster_name], None)
        case CreateMaterializedViewPlan(name=view, mir=mir, cluster=cluster_name):
            explained = _maintained(c, str(view), mir, c.state.clusters[cluster_name])
        case CreateViewPlan(name=view, mir=mir):
            explained = _view(c, str(view), mir)
        case _:
            pass
    return None if explained is None else explain(plan.stage, explained, options, names)


def _imports(c: Coordinator, plan: r.Mir, indexes: dict[GlobalId, tuple[IndexInfo, ...]]) -> Imports:
    return find_imports([plan], indexes, lambda id: c.shard_of(id) or id)


def _maintained(c: Coordinator, heading: str, mir: r.Mir, cluster: Cluster) -> Explained:
    indexes = c.index_infos(cluster, r.global_ids(mir))
    plan = optimize_dataflow(inline_views(mir, c.definition, lambda id: id in indexes), indexes)
    return Explained(plan, heading=heading, imports=_imports(c, plan, indexes), single_time=False, cluster=cluster.name)


def _view(c: Coordinator, heading: str, mir: r.Mir) -> Explained:
    """A view runs nowhere: what readers of it start from."""
    plan = optimize_local(inline_views(mir, c.definition))
    return Explained(plan, heading=heading, imports=_imports(c, plan, {}), single_time=False)


def _index(
    c: Coordinator,
    names: CatalogNames,
    heading: str,
    on: GlobalId,
    key: tuple[Scalar, ...],
    cluster: Cluster,
    index: GlobalId | None,
) -> Explained:
    """The arrangement, over the stored collection, another index or, for a view, what the dataflow computes."""
    found = c.index_infos(cluster, frozenset((on,)))
    others = {id: kept for id, infos in found.items() if (kept := tuple(i for i in infos if i.id != index))}
    root = r.ArrangeBy(r.Get(on, c.desc_of(on).typ), (key,))
    definition = None if c.shard_of(on) is not None or on in others else c.definition(on)
    if definition is None:
        imports = _imports(c, root, others)
        return Explained(root, heading=heading, imports=imports, single_time=False, cluster=cluster.name)
    view = _maintained(c, names.full_name(on), definition, cluster)
    assert view.mir is not None
    return Explained(
        root,
        heading=heading,
        imports=view.imports,
        single_time=False,
        cluster=cluster.name,
        objects=((on, view.heading, view.mir),),
    )
