"""Waiting that a cancel request, a timeout or a lost client can end.

Everything a statement awaits goes through `Interruptible.wait`. An interrupt ends the wait with its SqlError at once;
whatever was awaited is told through `on_interrupt` (cancel the peek, give up the lock). Nothing waits: no effect.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from mzlite.repr.errors import SqlError

T = TypeVar("T")


def canceled() -> SqlError:
    return SqlError("57014", "canceling statement due to user request")


def timed_out() -> SqlError:
    return SqlError("57014", "canceling statement due to statement timeout")


class Interruptible:
    """One session's current wait. deadline: monotonic seconds at which the running statement times out, or None."""

    __slots__ = ("_error", "_stop", "_waiter", "deadline", "running")

    def __init__(self) -> None:
        self._waiter: asyncio.Future[Any] | None = None
        self._error: SqlError | None = None
        self._stop: Callable[[], None] | None = None
        self.running = False
        self.deadline: float | None = None

    def begin(self, timeout_ms: float) -> None:
        self.running = True
        self._error = None
        self.deadline = time.monotonic() + timeout_ms / 1000 if timeout_ms else None

    def end(self) -> None:
        self.running = False
        self.deadline = None
        self._error = None

    def interrupt(self, error: SqlError) -> None:
        """End the running statement: its current wait, or the next one."""
        if not self.running:
            return
        self._error = error
        if self._stop is not None:
            self._stop()
        elif self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(error)

    def check(self) -> None:
        """Raise a pending interrupt; for work that does not wait."""
        if self._error is not None:
            raise self._error

    def check_deadline(self, now: float) -> None:
        if self.deadline is not None and now >= self.deadline:
            self.interrupt(timed_out())

    async def wait_for_answer(self, future: asyncio.Future[T], stop: Callable[[], None]) -> T:
        """A future that ends, one way or another, once `stop` is called: awaited itself, without a future in between."""
        if self._error is not None:
            stop()
            raise self._error
        self._stop = stop
        try:
            result = await future
        except asyncio.CancelledError:
            if not future.cancelled():
                stop()  # our own task was cancelled
            raise
        finally:
            self._stop = None
        if self._error is not None:
            raise self._error
        return result

    async def wait(self, awaitable: Awaitable[T], on_interrupt: Callable[[], None] | None = None) -> T:
        """The awaitable's result, or an interrupt's SqlError. A future that is done costs no switch."""
        if self._error is not None:
            if on_interrupt is not None:
                on_interrupt()
            _discard(awaitable)
            raise self._error
        inner = asyncio.ensure_future(awaitable)
        if inner.done():
            return inner.result()
        waiter: asyncio.Future[Any] = inner.get_loop().create_future()

        def finished(_: asyncio.Future[T]) -> None:
            if not waiter.done():
                waiter.set_result(None)

        inner.add_done_callback(finished)
        self._waiter = waiter
        try:
            await waiter
        except BaseException:
            inner.remove_done_callback(finished)
            if on_interrupt is not None:
                on_interrupt()
            if not inner.done():
                inner.cancel()
            elif not inner.cancelled():
                inner.exception()  # seen
            raise
        finally:
            self._waiter = None
        return inner.result()


def _discard(awaitable: Awaitable[Any]) -> None:
    if isinstance(awaitable, asyncio.Future):
        awaitable.cancel()
    elif hasattr(awaitable, "close"):
        awaitable.close()
