"""A whole environment in the test's event loop: storage, controller, one replica, a coordinator; sessions that speak SQL."""

from __future__ import annotations

import asyncio
import contextlib
import os
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from adapter.coord.coordinator import Coordinator
from adapter.coord.result import Batch, CopyIn, CopyOut, Done, ExecuteResult, Rows
from adapter.coord.session import Session
from compute.client.controller import ComputeController
from mzlite.repr.datum import column_to_datums
from mzlite.repr.errors import SqlError
from mzlite.storage import ShardServer, Storage

Row = tuple[Any, ...]


class Client:
    """One session, driven as the wire's simple protocol drives it."""

    def __init__(self, session: Session) -> None:
        self.session = session

    async def run(self, sql: str) -> list[Any]:
        """Each statement's rows, or its command tag. SqlError as a client sees it."""
        session = self.session
        out: list[Any] = []
        statements = session.parse(sql)
        session.begin_implicit(len(statements))
        try:
            for statement in statements:
                out.append(await self._collect(await session.execute_simple(statement)))
        except SqlError:
            session.note_error()
            raise
        finally:
            await session.end_implicit()
        return out

    async def rows(self, sql: str) -> list[Row]:
        (found,) = await self.run(sql)
        assert isinstance(found, list), found
        return found

    async def value(self, sql: str) -> Any:
        ((value,),) = await self.rows(sql)
        return value

    async def fails(self, sql: str) -> SqlError:
        try:
            result = await self.run(sql)
        except SqlError as error:
            return error
        raise AssertionError(f"{sql} gave {result}")

    async def execute(self, name: str, params: Sequence[Any]) -> list[Row]:
        """A prepared statement through the extended protocol."""
        self.session.bind("", name, params)
        result = await self.session.execute("")
        await self.session.sync()
        rows = await self._collect(result)
        assert isinstance(rows, list)
        return rows

    async def _collect(self, result: ExecuteResult) -> Any:
        match result:
            case Rows():
                rows: list[Row] = []
                if isinstance(result.batches, Sequence):
                    for batch in result.batches:
                        rows += datums(result, batch)
                else:
                    async for batch in result.batches:
                        rows += datums(result, batch)
                return rows
            case Done(tag):
                return tag
            case CopyIn() | CopyOut():
                return result
            case _:
                return None


def datums(result: Rows, batch: Batch) -> list[Row]:
    columns = [column_to_datums(c.scalar, col) for c, col in zip(result.desc.typ.columns, batch.columns)]
    return list(zip(*columns)) if columns else [()] * batch.n


class Environment:
    def __init__(self, coordinator: Coordinator, controller: ComputeController) -> None:
        self.coordinator = coordinator
        self.controller = controller
        self.clients: list[Client] = []

    def client(self, user: str = "materialize", **params: str) -> Client:
        client = Client(self.coordinator.connect(user, "materialize", params, True))
        self.clients.append(client)
        return client


@contextlib.asynccontextmanager
async def environment(path: Path | None = None) -> AsyncIterator[Environment]:
    """path: durable there; None: in memory."""
    storage = Storage.open(path)
    with tempfile.TemporaryDirectory() as sockets:
        socket = os.path.join(sockets, "shards")
        server = ShardServer(storage)
        await server.start(socket)
        controller = ComputeController(socket, on_storage_since=storage.advance_since_or_drop)
        await controller.start()
        coordinator = Coordinator(storage, controller)
        await coordinator.start()
        env = Environment(coordinator, controller)
        try:
            yield env
        finally:
            for client in env.clients:
                await client.session.terminate()
            await coordinator.shutdown()
            await controller.shutdown()
            await server.close()
            storage.close()


def run(scenario: Callable[[Environment], Awaitable[None]], path: Path | None = None) -> None:
    """A scenario in an environment of its own."""

    async def main() -> None:
        async with environment(path) as env:
            await asyncio.wait_for(scenario(env), 60)

    asyncio.run(main())
