"""What the sequencer asks the catalog on behalf of reads: definitions, descriptions, shards, indexes, time domains, and the
rows of builtin relations. Pure look-ups; nothing here changes anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from adapter.catalog.builtin.introspection import log_index, log_key
from adapter.catalog.builtin.relation import BUILTINS, is_local
from adapter.catalog.builtin.rows import BuiltinRows
from adapter.catalog.initial import DEFAULT_DATABASE
from adapter.catalog.objects import (
    Cluster,
    IndexDetails,
    MaterializedViewDetails,
    SourceDetails,
    TableDetails,
    ViewDetails,
)
from adapter.catalog.state import CatalogState
from adapter.catalog.view import StateView
from adapter.coord.planning import Planning
from adapter.coord.runtime_facts import CoordinatorFacts
from adapter.coord.session import Session
from adapter.sequencer.bootstrap import plan_builtin_view
from adapter.transform.context import IndexInfo
from compute.client.controller import ComputeController
from mzlite.expr import relation as r
from mzlite.expr.typecheck import typ as type_of
from mzlite.repr.datum import column_to_datums, encode_datum
from mzlite.repr.errors import SqlError
from mzlite.repr.ids import GlobalId
from mzlite.repr.types import RelationDesc, RelationType
from mzlite.repr.updates import Updates

# What pg_catalog stands on: drivers ask it in the middle of any transaction, so it is in every time domain.
_ALWAYS_AVAILABLE = (
    *(
        f"mz_catalog.mz_{name}"
        for name in [
            "array_types",
            "base_types",
            "columns",
            "connections",
            "databases",
            "functions",
            "index_columns",
            "indexes",
            "list_types",
            "map_types",
            "materialized_views",
            "operators",
            "pseudo_types",
            "role_auth",
            "role_members",
            "role_parameters",
            "roles",
            "schemas",
            "secrets",
            "sinks",
            "sources",
            "system_privileges",
            "tables",
            "types",
            "views",
        ]
    ),
    *(f"mz_internal.mz_{name}" for name in ("aggregates", "comments", "object_dependencies", "type_pg_metadata")),
)


class CatalogReads:
    """The reading half of the coordinator."""

    state: CatalogState
    planning: Planning
    builtin_rows: BuiltinRows
    facts: CoordinatorFacts
    controller: ComputeController

    def __init__(self) -> None:
        self._builtin_views: dict[GlobalId, r.Mir] = {}
        self._dependent: dict[GlobalId, bool] = {}
        self._dependent_revision = -1

    def definition(self, id: GlobalId) -> r.Mir | None:
        """A view's plan, for inlining."""
        item = self.state.items.get(id)
        if item is not None:
            return item.details.optimized if isinstance(item.details, ViewDetails) else None
        builtin = BUILTINS.get(id)
        if builtin is None or builtin.sql is None:
            return None
        found = self._builtin_views.get(id)
        if found is None:
            found = self._builtin_views[id] = plan_builtin_view(builtin)
        return found

    def get_of(self, id: GlobalId) -> r.Mir:
        return r.Get(id, self.desc_of(id).typ)

    def type_of(self, mir: r.Mir) -> RelationType:
        return type_of(mir)

    def desc_of(self, id: GlobalId) -> RelationDesc:
        item = self.state.items.get(id)
        desc = item.desc if item is not None else BUILTINS[id].desc
        assert desc is not None, id
        return desc

    def shard_of(self, id: GlobalId) -> str | None:
        item = self.state.items.get(id)
        return item.shard if item is not None else None

    def table_shard(self, id: GlobalId) -> str | None:
        """For group commit: only tables and sources are written through it."""
        item = self.state.items.get(id)
        if item is not None and isinstance(item.details, TableDetails | SourceDetails):
            return item.details.shard
        return None

    def time_dependent(self, id: GlobalId) -> bool:
        """Does the collection change with time: does a table, a source or mz_now() stand below it?"""
        if self._dependent_revision != self.state.revision:
            self._dependent = {}
            self._dependent_revision = self.state.revision
        known = self._dependent.get(id)
        if known is None:
            known = self._dependent[id] = self._compute_dependent(id)
        return known

    def _compute_dependent(self, id: GlobalId) -> bool:
        from adapter.sequencer.scalars import unmaterializable

        item = self.state.items.get(id)
        if item is None:
            return not is_local(id)
        match item.details:
            case TableDetails() | SourceDetails():
                return True
            case ViewDetails(mir=mir) | MaterializedViewDetails(mir=mir):
                if "mz_now" in unmaterializable(mir):
                    return True
                return any(self.time_dependent(i) for i in r.global_ids(mir))
            case _:
                return False

    def names_of(self, ids: Iterable[GlobalId]) -> dict[GlobalId, str]:
        view = StateView(self.state)
        found = {}
        for id in ids:
            item = view.find_item(id)
            if item is not None:
                found[id] = str(item.name)
        return found

    # Builtins.

    def builtin_updates(self, session: Session, id: GlobalId) -> Updates:
        facts = self.facts.for_session(session)
        state = self.planning.view(session).state
        # An open DDL transaction's state still changes: nothing of it is remembered.
        rows = self.builtin_rows if state is self.state else BuiltinRows()
        columns, n = rows.columns(id, state, session.vars.database, facts)
        return Updates(columns, np.zeros(n, np.uint64), np.ones(n, np.int64))

    def builtin_env(self, session: Session) -> Callable[[GlobalId], Updates]:
        """Rows of builtins at this moment, for the interpreter; safe to use from a thread once every id was asked for."""
        rows: dict[GlobalId, Updates] = {}

        def env(id: GlobalId) -> Updates:
            found = rows.get(id)
            if found is None:
                found = rows[id] = self.builtin_updates(session, id)
            return found

        return env

    def with_builtins(self, session: Session, mir: r.Mir) -> r.Mir:
        """mir with builtin relations replaced by their rows, as the session sees them."""
        return self._replace_builtins(mir, lambda id: self.builtin_updates(session, id))

    def constant_builtins(self, mir: r.Mir) -> r.Mir:
        """mir with builtin relations replaced by their rows now: what a maintained dataflow over them shows."""

        def rows(id: GlobalId) -> Updates:
            columns, n = self.builtin_rows.columns(id, self.state, DEFAULT_DATABASE, None)
            return Updates(columns, np.zeros(n, np.uint64), np.ones(n, np.int64))

        return self._replace_builtins(mir, rows)

    def _replace_builtins(self, mir: r.Mir, rows: Callable[[GlobalId], Updates]) -> r.Mir:
        if not any(is_local(id) for id in r.global_ids(mir)):
            return mir

        def visit(node: r.Mir) -> r.Mir:
            match node:
                case r.Get(id, typ) if isinstance(id, str) and is_local(id):
                    u = rows(id)
                    columns = [
                        [None if d is None else encode_datum(c.scalar, d) for d in column_to_datums(c.scalar, column)]
                        for c, column in zip(typ.columns, u.columns)
                    ]
                    return r.Constant(tuple((row, 1) for row in zip(*columns)), typ)
                case _:
                    return node

        return r.rewrite(mir, visit)

    def index_infos(self, cluster: Cluster | None, reads: frozenset[GlobalId]) -> dict[GlobalId, tuple[IndexInfo, ...]]:
        """Indexes of the cluster on what a query reads, directly or through views."""
        if cluster is None:
            return {}
        found: dict[GlobalId, tuple[IndexInfo, ...]] = {}
        seen: set[GlobalId] = set()
        stack = list(reads)
        while stack:
            id = stack.pop()
            if id in seen:
                continue
            seen.add(id)
            builtin = BUILTINS.get(id)
            if builtin is not None and builtin.log is not None:
                found[id] = (IndexInfo(log_index(cluster.id, builtin.log), log_key(builtin.log)),)
                continue
            infos = tuple(
                IndexInfo(i.id, i.details.key)
                for i in self.state.indexes_on(id, cluster.id)
                if isinstance(i.details, IndexDetails)
            )
            if infos:
                found[id] = infos
            mir = self.definition(id)
            if mir is not None:
                stack.extend(r.global_ids(mir))
        return found

    # Time domains.

    def time_domain(self, reads: frozenset[GlobalId], cluster: Cluster | None) -> frozenset[GlobalId]:
        """What a read transaction may read: every collection of the schemas of what its first statement reads."""
        schemas = {self.state.items[i].schema_id for i in self.under(reads) if i in self.state.items}
        found: set[GlobalId] = set()
        for item in self.state.items.values():
            if item.schema_id not in schemas:
                continue
            if item.shard is not None:
                found.add(item.id)
            if isinstance(item.details, IndexDetails) and cluster is not None and item.cluster_id == cluster.id:
                found.add(item.id)
        return frozenset(i for i in found if self.controller.collection_exists(i))

    def under(self, reads: Iterable[GlobalId]) -> set[GlobalId]:
        """reads, and everything read by the views among them."""
        seen: set[GlobalId] = set()
        stack = list(reads)
        while stack:
            id = stack.pop()
            if id not in seen:
                seen.add(id)
                mir = self.definition(id)
                if mir is not None:
                    stack.extend(r.global_ids(mir))
        return seen

    def outside_time_domain(self, outside: frozenset[GlobalId], domain: frozenset[GlobalId]) -> SqlError:
        def names(ids: Iterable[GlobalId]) -> set[str]:
            found = set()
            for id in ids:
                item = self.state.items.get(id)
                on = item.details.on_id if item is not None and isinstance(item.details, IndexDetails) else id
                found.add(str(StateView(self.state).object_name(on)))
            return found

        def listed(found: Iterable[str]) -> str:
            return "\n".join(f'"{name}"' for name in sorted(found))

        return SqlError(
            "25000",
            "Transactions can only reference objects in the same timedomain. "
            "See https://materialize.com/docs/sql/begin/#same-timedomain-error",
            detail="The following relations in the query are outside the transaction's time domain:\n"
            f"{listed(names(outside))}\nOnly the following relations are available:\n"
            + listed(names(domain) | set(_ALWAYS_AVAILABLE)),
        )
