"""The coordinator: owns catalog, timelines, read holds and sessions in the environment process."""

from __future__ import annotations

from adapter.coord.session import Session


class Coordinator:
    """`Coordinator(storage, controller, clock=...)`; then `await start()`; sessions come from `connect`."""

    async def start(self) -> None:
        """Load the catalog, provision clusters, recreate dataflows; the database answers afterwards."""
        ...

    async def shutdown(self) -> None:
        """Cancel everything, stop ticking. Storage and controller are closed by whoever made them."""
        ...

    def connect(self, user: str, database: str | None, params: dict[str, str], loopback: bool) -> Session:
        """A new session. params: startup parameters (and `options`); loopback: the peer is on this machine.
        SqlError: 28000 (role not allowed), 22023 (bad parameter value), 53300 (too many)."""
        ...

    def cancel(self, pid: int, secret: int) -> None:
        """A cancel request: ignored unless both match a live session."""
        ...
