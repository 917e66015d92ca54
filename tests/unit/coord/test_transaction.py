"""What a transaction may still do, and what ends a wait."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from adapter.coord.timestamp_selection import Determination, Facts
from adapter.coord.transaction import Reads, Status, Transaction, Writes
from adapter.coord.waiting import Interruptible, canceled
from adapter.sql.statements import Statement
from mzlite.repr.errors import SqlError

READ = Determination(5, Facts(0, 10, "serializable"))


def read(t: Transaction) -> None:
    reads = t.add_read(False)
    assert reads is not None
    reads.determination = READ


@pytest.mark.parametrize(
    ("first", "then", "message"),
    [
        (read, lambda t: t.add_writes(), "transaction in read-only mode"),
        (lambda t: t.add_writes(), read, "transaction in write-only mode"),
        (lambda t: t.add_subscribe(), read, "SUBSCRIBE in transactions must be the only read statement"),
        (lambda t: t.add_subscribe(), lambda t: t.add_subscribe(), "SUBSCRIBE in transactions must be"),
        (read, lambda t: t.add_subscribe(), "transaction in read-only mode"),
        (lambda t: t.add_single(Statement()), read, "this transaction can only execute a single statement"),
        (read, lambda t: t.check_ddl(), "transaction in read-only mode"),
    ],
)
def test_kinds_of_work_do_not_mix(
    first: Callable[[Transaction], object], then: Callable[[Transaction], object], message: str
) -> None:
    t = Transaction()
    t.status = Status.EXPLICIT
    first(t)
    with pytest.raises(SqlError, match=message):
        then(t)


def test_constant_reads_mix_with_writes_in_either_order() -> None:
    t = Transaction()
    t.add_read(True)
    t.add_writes()
    assert t.add_read(True) is None
    assert isinstance(t.ops, Writes)


def test_a_read_only_transaction_takes_no_writes() -> None:
    t = Transaction()
    t.read_only = True
    with pytest.raises(SqlError, match="transaction in read-only mode"):
        t.add_writes()


def test_the_end_leaves_nothing() -> None:
    t = Transaction()
    t.status = Status.EXPLICIT
    read(t)
    assert isinstance(t.take(), Reads)
    assert t.ops is None and t.status is Status.IDLE


def test_an_interrupt_ends_the_wait_and_tells_what_was_awaited() -> None:
    async def run() -> None:
        wait = Interruptible()
        wait.begin(0)
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        told: list[str] = []
        waiting = asyncio.ensure_future(wait.wait(future, lambda: told.append("stop")))
        await asyncio.sleep(0)
        wait.interrupt(canceled())
        with pytest.raises(SqlError, match="canceling statement due to user request"):
            await waiting
        assert told == ["stop"] and future.cancelled()
        with pytest.raises(SqlError):
            await wait.wait(asyncio.sleep(0))
        wait.end()
        wait.interrupt(canceled())  # nothing runs
        wait.begin(0)
        assert await wait.wait(asyncio.sleep(0, 7)) == 7

    asyncio.run(run())


def test_a_deadline_is_an_interrupt() -> None:
    wait = Interruptible()
    wait.begin(1_000)
    assert wait.deadline is not None
    wait.check_deadline(wait.deadline - 0.1)
    wait.check()
    wait.check_deadline(wait.deadline)
    with pytest.raises(SqlError, match="statement timeout"):
        wait.check()
