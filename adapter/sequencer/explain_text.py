"""EXPLAIN's printers (`adapter.explain`), fed from a PeekPlan and the catalog."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from adapter.catalog.builtin.relation import BUILTINS
from adapter.explain import Explained, ExplainOptions, explain
from adapter.sequencer.dataflows import Imports, find_imports
from adapter.sequencer.fast_path import ConstantPath, FastPath, PeekExisting, PeekPersist
from adapter.sql.plans import ExplainPlan
from mzlite.expr import relation as r
from mzlite.expr.relation import RowSetFinishing
from mzlite.expr.scalar import Scalar
from mzlite.repr.ids import GlobalId

if TYPE_CHECKING:
    from adapter.coord.coordinator import Coordinator
    from adapter.sequencer.peek_plan import PeekPlan


class CatalogNames:
    """`adapter.explain.Names` over the catalog."""

    def __init__(self, c: Coordinator) -> None:
        self._c = c

    def full_name(self, id: GlobalId) -> str:
        return self._c.names_of([id]).get(id, id)

    def short_name(self, id: GlobalId) -> str:
        return self.full_name(id).rpartition(".")[2]

    def columns(self, id: GlobalId) -> Sequence[str] | None:
        item = self._c.state.items.get(id)
        desc = item.desc if item is not None else BUILTINS[id].desc if id in BUILTINS else None
        return None if desc is None else desc.names


def explain_plan(
    c: Coordinator,
    peek: PeekPlan | None,
    mir: r.Mir,
    finishing: RowSetFinishing,
    plan: ExplainPlan,
    cluster: str | None = None,
) -> str:
    options = ExplainOptions.parse(plan.options, plan.format, plan.verbose)
    fast: FastPath | None = None
    imports: Imports | None = None
    if peek is not None:
        if isinstance(peek.path, ConstantPath | PeekExisting | PeekPersist):
            fast = peek.path
        imports = find_imports([peek.mir], peek.indexes, lambda id: c.shard_of(id) or id)
        cluster = peek.cluster.name if peek.cluster is not None else cluster
    explained = Explained(
        mir, finishing=finishing, fast_path=fast, imports=imports, cluster=cluster, notices=_notices(c, peek)
    )
    return explain(plan.stage, explained, options, CatalogNames(c))


def _notices(c: Coordinator, peek: PeekPlan | None) -> tuple[str, ...]:
    """An index whose key the query almost pins: the index is read whole."""
    if peek is None or not isinstance(peek.path, PeekExisting) or peek.path.literals is not None:
        return ()
    from adapter.transform.equality import literal_alternatives

    pinned: set[Scalar] = set()
    for _, p in peek.path.mfp.predicates:
        found = literal_alternatives(p)
        if found is not None:
            pinned.add(found[0])
    names = CatalogNames(c)
    for index in peek.indexes.get(peek.path.on, ()):
        if index.id == peek.path.index and pinned & set(index.key):
            full = names.full_name(index.id)
            return (
                f"Index {full} is too wide to use for the literal equalities of this query.\n"
                "Hint: create an index on only the columns that are compared with literals.",
            )
    return ()
