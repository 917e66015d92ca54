"""Runs statements and shell commands and prints what comes of them, wherever they come from.

    Script ── Statement ──▶ Shell.execute ──▶ Client ──▶ table, tag, error  ──▶ Output
          └── Meta ───────▶ commands.dispatch ──▶ any of these

The one idea: everything a session can change (connection, settings, output, last query) lives here, and nothing about a
terminal does. Interactive features are hooks, which `app` sets and `batch` leaves alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TextIO

import psycopg

from mzlite.repl import copying
from mzlite.repl.catalog import Catalog, open_catalog
from mzlite.repl.client import Client, Result, Table
from mzlite.repl.interrupts import cancel_on_interrupt
from mzlite.repl.messages import connection_error, format_diagnostic, format_error
from mzlite.repl.output import Output
from mzlite.repl.registry import Quit
from mzlite.repl.script import Meta, Script, Statement
from mzlite.repl.settings import Settings
from mzlite.repl.subscribe import inner_subscribe
from mzlite.repl.table import format_table, iter_unaligned
from mzlite.repl.tokens import leading_words

# After these the names a person can complete may differ.
_CHANGES_NAMES = frozenset(
    {"CREATE", "DROP", "ALTER", "SET", "RESET", "COMMIT", "END", "ROLLBACK", "DISCARD", "COMMENT"}
)


class NotConnected(psycopg.OperationalError):
    """The server was lost, and an attempt to reach it has failed just now."""


class Shell:
    """One session: a connection, what has been set about its output, and the query last sent."""

    def __init__(self, dsn: str, *, out: TextIO, err: TextIO, settings: Settings | None = None) -> None:
        self.settings = settings or Settings()
        self.output = Output(out, err)
        self.client = Client(dsn, on_notice=self._notice)
        self.last_query = ""
        self.include_stack: list[tuple[Path, Script]] = []  # files being run by \i, outermost first
        self._catalog: Catalog | None = None
        # Hooks for a terminal.
        self.watch_subscribe: Callable[[str], None] | None = None
        self.ask_copy_data: Callable[[], Iterator[str]] | None = None
        self.on_names_changed: Callable[[], None] | None = None

    # Connection

    def connect(self) -> None:
        """Raises psycopg.OperationalError."""
        self._catalog = None
        self.client.connect()

    @property
    def catalog(self) -> Catalog:
        """What the server says about its own objects."""
        self.require_connection()
        if self._catalog is None:
            self._catalog = open_catalog(self.client.query, self.client.parameter("mz_version"))
        return self._catalog

    def require_connection(self) -> None:
        """Connects again if the server was lost earlier; raises NotConnected."""
        if self.client.is_connected:
            return
        try:
            self.connect()
        except psycopg.Error as error:
            raise NotConnected(connection_error(error)) from None
        self.output.message("Connected again.")

    # Running

    def run_script(self, script: Script, *, stop_on_error: bool = False, is_file: bool = False) -> bool:
        """Runs it all; whether nothing failed. Quit passes through, except that in a file it ends the file."""
        from mzlite.repl import commands  # the commands know the shell; the shell only dispatches to them

        ok = True
        for item in script:
            match item:
                case Statement(sql):
                    done = self.execute(sql, script)
                case Meta():
                    try:
                        done = commands.dispatch(self, item, script)
                    except Quit:
                        if is_file:
                            break
                        raise
            ok = ok and done
            if not done and (stop_on_error or self.settings.on_error_stop):
                break
        return ok

    def execute(self, sql: str, script: Script | None = None, **overrides: object) -> bool:
        """Sends one statement and prints its outcome; whether it succeeded. `overrides` are settings, for this once."""
        words = leading_words(sql, 2)
        if not sql.strip(" \t\r\n;"):
            return True
        self.last_query = sql
        settings = replace(self.settings, **overrides)  # type: ignore[arg-type]
        started = time.perf_counter()
        try:
            self.require_connection()
            subscribe = inner_subscribe(sql) if words[:1] in (("SUBSCRIBE",), ("COPY",)) else None
            direction = copying.direction_of(sql) if words[:1] == ("COPY",) else None
            if subscribe is not None and self.watch_subscribe is not None and self.output.columns is not None:
                self.watch_subscribe(subscribe)
            elif words[:1] == ("SUBSCRIBE",):
                self._print_stream(sql, settings)
            elif direction is not None:
                self._copy(sql, direction, script, settings)
            else:
                with cancel_on_interrupt(self.client):
                    results = self.client.run(sql)
                elapsed = time.perf_counter() - started
                for result in results:
                    self.print_result(result, settings)
                self._print_time(elapsed)
                return True
            self._print_time(time.perf_counter() - started)
            return True
        except psycopg.Error as error:
            self.report(error, sql)
            self._print_time(time.perf_counter() - started)
            return False
        finally:
            if words[:1] and words[0] in _CHANGES_NAMES:
                self.names_changed()

    def names_changed(self) -> None:
        """Tells whoever completes names that they may differ now."""
        if self.on_names_changed is not None:
            self.on_names_changed()

    def query(self, sql: str) -> Table:
        """For shell commands: the answer to a question of their own. Raises psycopg.Error."""
        self.require_connection()
        with cancel_on_interrupt(self.client):
            return self.client.query(sql)

    # Printing

    def print_result(self, result: Result, settings: Settings) -> None:
        if result.table is not None:
            self.print_table(result.table, settings=settings)
            # RETURNING: the rows and what was done.
            if result.tag and result.tag.startswith(("INSERT", "UPDATE", "DELETE", "MERGE")):
                self.print_tag(result.tag, settings)
        elif result.tag:
            self.print_tag(result.tag, settings)

    def print_tag(self, tag: str, settings: Settings | None = None) -> None:
        if not (settings or self.settings).quiet:
            self.output.write(tag + "\n")

    def print_table(
        self,
        table: Table,
        *,
        title: str | None = None,
        settings: Settings | None = None,
        footers: Sequence[str] = (),
    ) -> None:
        text = format_table(table, settings or self.settings, columns=self.output.columns, title=title)
        if footers:
            text = text.removesuffix("\n\n") + "\n" + "".join(f"{line}\n" for line in footers) + "\n"
        self.output.write(text)

    def _print_stream(self, sql: str, settings: Settings) -> None:
        """An endless result to something that is not a terminal: each row as it comes."""
        with cancel_on_interrupt(self.client):
            columns, rows = self.client.stream(sql)
            for line in iter_unaligned([column.name for column in columns], rows, settings):
                self.output.write(line)

    def _print_time(self, elapsed_s: float) -> None:
        if not self.settings.timing:
            return
        text = f"Time: {elapsed_s * 1000:.3f} ms"
        if elapsed_s >= 1:
            minutes, seconds = divmod(elapsed_s, 60)
            hours, minutes = divmod(int(minutes), 60)
            clock = f"{hours:02d}:{minutes:02d}:{seconds:06.3f}" if hours else f"{minutes:02d}:{seconds:06.3f}"
            text += f" ({clock})"
        self.output.write(text + "\n")

    def report(self, error: psycopg.Error, sql: str = "") -> None:
        """Prints an error, and connects again when it came with the loss of the connection."""
        if isinstance(error, NotConnected):
            self.output.message(f"{connection_error(error)}\nThe next statement tries to connect again; \\q quits.")
            return
        lost = isinstance(error, psycopg.OperationalError) and not self.client.is_connected
        if error.diag.message_primary is None and lost:
            self.output.message(connection_error(error).partition("\n")[0])
        else:
            text = format_error(error, sql, self.settings.verbosity)
            if self.include_stack:
                path, script = self.include_stack[-1]
                text = f"{path}:{script.line_number}: {text}"
            self.output.message(text)
        if lost:
            self._reset()

    def _reset(self) -> None:
        prefix = "The connection to the server was lost. Attempting reset: "
        try:
            self.connect()
        except psycopg.Error as error:
            self.output.message(f"{prefix}Failed.")
            self.report(NotConnected(connection_error(error)))
        else:
            self.output.message(f"{prefix}Succeeded. Session settings and open transactions are gone.")

    def _notice(self, diag: psycopg.errors.Diagnostic) -> None:
        self.output.message(format_diagnostic(diag, "", self.settings.verbosity))

    # COPY

    def _copy(self, sql: str, direction: str, script: Script | None, settings: Settings) -> None:
        with cancel_on_interrupt(self.client):
            if direction == "out":
                tag = self.client.copy_out(sql, self.output.write_bytes)
            else:
                tag = self.client.copy_in(sql, (line.encode() for line in self.copy_lines(script)))
        if tag and direction == "in":
            self.print_tag(tag, settings)

    def copy_lines(self, script: Script | None) -> Iterator[str]:
        """The data of a COPY ... FROM STDIN: asked for at a terminal, else the lines that follow in the script."""
        if self.ask_copy_data is not None and not self.include_stack:
            return self.ask_copy_data()
        return iter(()) if script is None else script.copy_data()
