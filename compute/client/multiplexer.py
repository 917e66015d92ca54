"""Multiplexer: one ordered command stream out to both runtimes of a replica. It keeps no state between commands.

    command                      maintenance   interactive
    Peek, CancelPeek                  no           yes
    everything else               yes (first)      yes

The broadcast is what makes placement a pure function: each runtime sees every collection come and go, builds what its
role renders and keeps a *peer hold* for the rest. Every worker of a runtime gets the whole stream on its own socket, so
all workers see one total order; which rounds they run is ordered by worker 0 of the runtime (see `runtime.rounds`).
A Solo replica has no interactive side: its one runtime gets everything.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from compute.protocol.command import CancelPeek, ComputeCommand, Peek
from compute.protocol.framing import encode_message, frame


class CommandSink(Protocol):
    """One worker's control socket, or its stand-in in a simulation."""

    def send(self, data: bytes) -> None: ...


class Multiplexer:
    """maintenance: the workers of the rendering runtime (or of Solo). interactive: the readers, or None for Solo."""

    def __init__(self, maintenance: Sequence[CommandSink], interactive: Sequence[CommandSink] | None) -> None:
        assert interactive is None or len(maintenance) == len(interactive), "runtimes differ in their worker count"
        self._first = tuple(maintenance)
        self._second = tuple(interactive) if interactive is not None else ()
        self._readers = self._second or self._first

    def send(self, commands: Sequence[ComputeCommand]) -> None:
        """Deliver commands in order. Runs of equally routed commands travel in one frame."""
        run: list[ComputeCommand] = []
        run_is_read = False
        for command in commands:
            is_read = isinstance(command, (Peek, CancelPeek))
            if run and is_read is not run_is_read:
                self._send_run(run, run_is_read)
                run = []
            run.append(command)
            run_is_read = is_read
        if run:
            self._send_run(run, run_is_read)

    def _send_run(self, run: list[ComputeCommand], is_read: bool) -> None:
        data = frame(encode_message(run))
        if is_read:
            for reader in self._readers:
                reader.send(data)
            return
        for worker in self._first:
            worker.send(data)
        for reader in self._second:
            reader.send(data)
