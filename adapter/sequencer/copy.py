"""COPY table FROM STDIN and COPY (query) TO STDOUT. Formats are `copy_format`'s; here is where rows come from and go to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np

from adapter.coord.planning import Prepared
from adapter.coord.result import Batch, CopyIn, CopyOut
from adapter.coord.transaction import Status
from adapter.sequencer.copy_format import CopyReader, CopyWriter
from adapter.sequencer.dml import check_not_null
from adapter.sequencer.finishing import BATCH_ROWS, split
from adapter.sequencer.values import session_value
from adapter.sql.plans import CopyFormat, CopyFromPlan, SelectPlan
from mzlite.expr.eval import eval_scalar
from mzlite.expr.scalar import Literal as LiteralScalar
from mzlite.expr.scalar import Scalar
from mzlite.repr.column import Column, nulls
from mzlite.repr.errors import SqlError, decode_error
from mzlite.repr.types import ColumnType, RelationDesc, RelationType
from mzlite.repr.updates import Updates, concat_updates

if TYPE_CHECKING:
    from adapter.coord.coordinator import Coordinator
    from adapter.coord.session import Session

Format = Literal["text", "csv", "binary"]
THREAD_BYTES = 64 * 1024
"""Input chunks at least this large are parsed in a thread."""
CHUNK_BYTES = 32 * 1024


class CopySequencer:
    def __init__(self, coordinator: Coordinator) -> None:
        self._c = coordinator

    # Out.

    async def copy_select(
        self, session: Session, prepared: Prepared, plan: SelectPlan, params: tuple[Any, ...]
    ) -> CopyOut:
        assert plan.copy_to is not None
        batch = await self._c.sequencer.peeks.select(session, prepared, plan, params)

        async def batches() -> AsyncIterator[Batch]:
            for piece in split(batch, BATCH_ROWS):
                yield piece
                await asyncio.sleep(0)

        return self.copy_out(plan.desc, plan.copy_to, batches())

    def copy_out(self, desc: RelationDesc, options: CopyFormat, batches: AsyncIterator[Batch]) -> CopyOut:
        """Rows that come in batches, as chunks of the format."""
        writer = CopyWriter(desc, options)
        count = 0

        async def chunks() -> AsyncIterator[list[bytes]]:
            nonlocal count
            rows = list(writer.header())
            size = 0
            # The binary header travels with the first row (or the trailer), as PostgreSQL sends it.
            glue = options.format == "binary" and bool(rows)
            async for batch in batches:
                for line in writer.rows(batch.columns, batch.n):
                    if glue:
                        rows[-1] += line
                        glue = False
                    else:
                        rows.append(line)
                    size += len(line)
                    if size >= CHUNK_BYTES:
                        yield rows
                        rows, size = [], 0
                count += batch.n
                if rows and not glue:
                    yield rows
                    rows, size = [], 0
            for line in writer.trailer():
                if glue:
                    rows[-1] += line
                else:
                    rows.append(line)
            if rows:
                yield rows

        return CopyOut(desc, cast(Format, options.format), chunks(), lambda: count)

    # In.

    async def copy_from(self, session: Session, plan: CopyFromPlan) -> CopyIn:
        item = self._c.state.items.get(plan.table)
        assert item is not None and item.desc is not None
        if session.txn.status is Status.EXPLICIT:
            session.txn.add_writes()
        desc = item.desc
        names = tuple(desc.names[i] for i in plan.columns)
        incoming = RelationDesc(names, RelationType(tuple(ColumnType(t) for t in plan.types)))
        reader = CopyReader(incoming, plan.format)
        value = session_value(session, self._c, (), ())
        parts: list[Updates] = []

        def keep(columns: tuple[Column, ...], n: int) -> None:
            full: list[Column] = []
            given = dict(zip(plan.columns, columns))
            for i, typ in enumerate(desc.typ.columns):
                column = given.get(i)
                if column is None:
                    column = _default(plan.defaults[i], typ, n, value)
                full.append(column)
            u = Updates(tuple(full), np.zeros(n, np.uint64), np.ones(n, np.int64))
            check_not_null(u, desc)
            parts.append(u)

        def parse(data: bytes) -> None:
            for columns, n in reader.feed(data):
                keep(tuple(columns), n)

        def parse_end() -> None:
            for columns, n in reader.finish():
                keep(tuple(columns), n)

        pending: list[bytes] = []
        size = 0

        async def flush() -> None:
            nonlocal size
            data = b"".join(pending)
            pending.clear()
            size = 0
            if len(data) >= THREAD_BYTES:
                await asyncio.get_running_loop().run_in_executor(None, parse, data)
            else:
                parse(data)

        async def feed(data: bytes) -> None:
            nonlocal size
            pending.append(data)
            size += len(data)
            if size >= THREAD_BYTES * 4:
                await flush()

        async def finish() -> str:
            await flush()
            parse_end()
            count = sum(len(u) for u in parts)
            if parts:
                rows = concat_updates(parts)
                parts.clear()
                if session.txn.status is Status.EXPLICIT:
                    session.txn.add_writes().rows.append((plan.table, rows))
                else:
                    session.interrupt.begin(0)
                    try:
                        await session.interrupt.wait(self._c.group_commit.write([(plan.table, rows)], session))
                    finally:
                        session.interrupt.end()
            return f"COPY {count}"

        async def abort(message: str) -> Exception:
            parts.clear()
            pending.clear()
            return SqlError("57014", message)

        return CopyIn(len(names), cast(Format, plan.format.format), feed, finish, abort, names)


def _default(e: Scalar | None, typ: ColumnType, n: int, value: Any) -> Column:
    from adapter.sequencer.scalars import substitute_scalar

    if e is None or (isinstance(e, LiteralScalar) and e.value is None and e.error is None):
        return nulls(typ.scalar.layout, n)
    result = eval_scalar(substitute_scalar(e, value), (), n)
    if result.errors is not None:
        raise decode_error(result.errors[1][0])
    return result.column
