"""What builtin relations say beyond the catalog: frontiers, hydration, replica statuses, sessions, settings."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from adapter.coord.session_vars import SESSION_VARS
from adapter.coord.system_vars import SYSTEM_VARS
from compute.client.errors import ComputeError
from mzlite.repr.ids import GlobalId
from mzlite.repr.timestamp import Frontier

if TYPE_CHECKING:
    from adapter.coord.coordinator import Coordinator
    from adapter.coord.session import Session


class SessionFacts:
    """`RuntimeFacts` as one session sees them."""

    def __init__(
        self, coordinator: Coordinator, session: Session, statuses: dict[str, tuple[str, str | None, int]]
    ) -> None:
        self._c = coordinator
        self._session = session
        self._statuses = statuses

    def frontiers(self) -> Iterable[tuple[GlobalId, Frontier, Frontier]]:
        for id in self._c.state.items:
            if self._c.controller.collection_exists(id):
                since, upper = self._c.controller.frontiers(id)
                yield id, since, upper

    def _compute_items(self) -> Iterable[GlobalId]:
        for item in self._c.state.items.values():
            if item.kind in ("index", "materialized-view"):
                yield item.id

    def replica_frontiers(self) -> Iterable[tuple[GlobalId, str, Frontier]]:
        for id in self._compute_items():
            try:
                for replica, upper in self._c.controller.replica_frontiers(id).items():
                    yield id, str(replica), upper
            except ComputeError:
                continue

    def hydration(self) -> Iterable[tuple[GlobalId, str, bool]]:
        for item in self._c.state.items.values():
            if item.kind not in ("index", "materialized-view") or item.cluster_id is None:
                continue
            for replica in self._c.state.clusters[item.cluster_id].replicas:
                try:
                    hydrated = self._c.controller.hydrated(item.id, replica.id)  # type: ignore[arg-type]
                except ComputeError:
                    continue
                yield item.id, replica.id, hydrated

    def replica_statuses(self) -> Iterable[tuple[str, str, str | None, int]]:
        for cluster in self._c.state.clusters.values():
            for replica in cluster.replicas:
                status, reason, at = self._statuses.get(replica.id, ("online", None, self._c.started_at_us))
                yield replica.id, status, reason, at

    def sessions(self) -> Iterable[tuple[int, str, str | None, int]]:
        for s in self._c.sessions.values():
            yield s.pid, s.role_id, s.client_address, s.connected_at_us

    def subscriptions(self) -> Iterable[tuple[GlobalId, int, str, int, Sequence[GlobalId]]]:
        for s in self._c.sequencer.subscribes.active.values():
            yield s.sink_id, s.session.pid, s.cluster_id, s.created_at_us, sorted(s.reads)

    def settings(self) -> Iterable[tuple[str, str, str]]:
        for key, var in SESSION_VARS.items():
            yield var.name, self._session.vars.values[key][0], var.description
        for name, text in self._c.system_vars.all().items():
            known = SYSTEM_VARS.get(name)
            yield name, text, known.description if known is not None else ""


class CoordinatorFacts:
    """Replica statuses as the controller reported them."""

    def __init__(self, coordinator: Coordinator) -> None:
        self._c = coordinator
        self._statuses: dict[str, tuple[str, str | None, int]] = {}

    def replica_status(self, replica_id: str, status: str, reason: str | None = None) -> None:
        """status: online or offline."""
        self._statuses[replica_id] = (status, reason, time.time_ns() // 1000)

    def for_session(self, session: Session) -> SessionFacts:
        return SessionFacts(self._c, session, self._statuses)
