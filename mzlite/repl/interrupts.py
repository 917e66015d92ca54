"""What Ctrl-C does while a statement runs: ask the server to cancel it, and after the third time hang up.

The one idea: the interrupt raises nothing here. The server answers the cancel request with an error where the statement is
being waited for, so the conversation stays in step and the person reads the server's own words.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Protocol

PATIENCE = 2  # interrupts answered by a cancel request; the next one cuts the connection


class Cancellable(Protocol):
    def cancel(self) -> None: ...
    def sever(self) -> None: ...


@contextmanager
def cancel_on_interrupt(client: Cancellable) -> Iterator[None]:
    """For the time of the block, SIGINT cancels what `client` runs. Outside the main thread, where no signal arrives, a no-op."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    presses = 0

    def on_interrupt(_signal: int, _frame: FrameType | None) -> None:
        nonlocal presses
        presses += 1
        if sys.stderr.isatty():
            os.write(2, b"\n")  # the terminal has echoed ^C; not through sys.stderr, which may be in mid-write
        # On a thread of its own: the request opens a second connection, and a signal handler must not wait.
        act = client.cancel if presses <= PATIENCE else client.sever
        threading.Thread(target=act, name="cancel", daemon=True).start()

    previous = signal.signal(signal.SIGINT, on_interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)
