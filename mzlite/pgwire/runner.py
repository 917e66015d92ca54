"""Drives one coroutine without a task, so that it goes on at once when its input arrives.

A task that waits for a message is woken through the event loop's ready queue: one more turn of the loop, and a system
call, on every message. Here whoever opens the `Gate` runs the coroutine to its next wait, in the same turn. Futures are
awaited as by a task. A driven coroutine is nobody's task: nothing in it may ask for the current task.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Generator
from typing import Any


class Gate:
    """Something a driven coroutine awaits until `Runner.resume`."""

    __slots__ = ()

    def __await__(self) -> Generator[Gate, None, None]:
        yield self


class Runner:
    """done: a future that ends when the coroutine has; its exception is the coroutine's."""

    __slots__ = ("_at_gate", "_coroutine", "_loop", "done")

    def __init__(self, coroutine: Coroutine[Any, None, None], loop: asyncio.AbstractEventLoop) -> None:
        self._coroutine = coroutine
        self._loop = loop
        self._at_gate = False
        self.done: asyncio.Future[None] = loop.create_future()

    def start(self) -> None:
        self._step()

    def resume(self) -> None:
        """Open the gate, if the coroutine waits at it."""
        if self._at_gate:
            self._at_gate = False
            self._step()

    def _step(self, _: object = None) -> None:
        try:
            awaited = self._coroutine.send(None)
        except StopIteration:
            self.done.set_result(None)
        except (Exception, asyncio.CancelledError) as error:
            self.done.set_exception(error)
        else:
            if isinstance(awaited, Gate):
                self._at_gate = True
            elif awaited is None:  # a bare yield: let others run
                self._loop.call_soon(self._step)
            else:
                assert asyncio.isfuture(awaited), awaited
                awaited._asyncio_future_blocking = False
                awaited.add_done_callback(self._step)
