"""Shows a SUBSCRIBE as a table that updates in place until Ctrl-C.

    pump thread: Client.stream ─ row ─▶ SubscribeState ◀─ draw ─ event loop of the terminal, a few times a second

The one idea: Ctrl-C only asks the server to cancel. The stream ends with the server's answer, the pump ends with the stream,
and the screen with the pump; so the connection is always back in step when the prompt returns.
"""

from __future__ import annotations

import threading
import time

import psycopg
from prompt_toolkit.application import Application, get_app
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.layout import Layout, Window
from prompt_toolkit.layout.controls import FormattedTextControl
from prompt_toolkit.styles import Style

from mzlite.repl.client import Client
from mzlite.repl.interrupts import PATIENCE
from mzlite.repl.subscribe import SubscribeState, draw, envelope_key, status_line

REFRESH_S = 0.25
MIN_REDRAW_S = 0.06


class LiveSubscribe:
    """One run of one SUBSCRIBE on a terminal."""

    def __init__(self, client: Client, sql: str, *, null: str, style: Style | None = None) -> None:
        self._client = client
        self._sql = sql
        self._null = null
        self._lock = threading.Lock()  # the pump writes the state, the screen reads it
        self._state = SubscribeState()
        self._error: psycopg.Error | None = None
        self._done = threading.Event()
        self._interrupts = 0
        self._offset = 0
        self._app: Application[None] = Application(
            layout=Layout(Window(FormattedTextControl(self._draw), wrap_lines=False, always_hide_cursor=True)),
            key_bindings=self._keys(),
            style=style,
            full_screen=False,
            refresh_interval=REFRESH_S,
            min_redraw_interval=MIN_REDRAW_S,
        )

    def run(self) -> str:
        """Returns the last status line. Raises psycopg.Error, except for the cancellation that was asked for."""
        pump = threading.Thread(target=self._pump, name="subscribe", daemon=True)
        self._app.run(pre_run=pump.start)
        self._done.wait()
        pump.join()
        asked_for = isinstance(self._error, psycopg.errors.QueryCanceled) and self._interrupts > 0
        if self._error is not None and not asked_for:
            raise self._error
        return status_line(self._state, time.monotonic())

    def _pump(self) -> None:
        try:
            columns, rows = self._client.stream(self._sql)
            with self._lock:
                self._state.start(columns, envelope_key(self._sql))
            for row in rows:
                with self._lock:
                    self._state.apply(row, time.monotonic())
                self._app.invalidate()
        except psycopg.Error as error:
            self._error = error
        finally:
            self._done.set()
            loop = self._app.loop
            if loop is not None:
                loop.call_soon_threadsafe(self._exit)

    def _exit(self) -> None:
        if self._app.is_running and not self._app.is_done:
            self._app.exit()

    def _draw(self) -> StyleAndTextTuples:
        size = get_app().output.get_size()
        with self._lock:
            fragments = draw(
                self._state,
                now=time.monotonic(),
                columns=size.columns,
                lines=size.rows - 1,
                offset=self._offset,
                null=self._null,
            )
        styled: StyleAndTextTuples = [*fragments]
        if self._done.is_set():
            return styled
        hint = "Ctrl-C stops" if not self._interrupts else "stopping"
        return [*styled, ("class:subscribe.hint", f"  ·  {hint}")]

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()

        @keys.add("c-c")
        @keys.add("c-d")
        @keys.add("q")
        @keys.add("<sigint>")
        def _stop(_event: KeyPressEvent) -> None:
            self._interrupts += 1
            act = self._client.cancel if self._interrupts <= PATIENCE else self._client.sever
            threading.Thread(target=act, name="cancel", daemon=True).start()

        def move(by: int) -> None:
            with self._lock:
                distinct = len(self._state.rows)
            self._offset = max(0, min(self._offset + by, distinct - 1))

        for key, by in (("up", -1), ("down", 1), ("pageup", -20), ("pagedown", 20), ("home", -(1 << 60))):
            keys.add(key)(lambda _event, by=by: move(by))
        return keys
