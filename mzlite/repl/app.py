"""The interactive shell: reads, runs, prints, until Ctrl-D or `\\q`.

Prompt ── text ──▶ Script ──▶ Shell          completion: NamesCache, beside it on its own connection
   ▲──── what is left in the query buffer ──┘
"""

from __future__ import annotations

import sys
from pathlib import Path

import psycopg

from mzlite.repl.batch import run_stream
from mzlite.repl.completion import NamesCache, SqlCompleter, reader_for
from mzlite.repl.highlight import STYLE
from mzlite.repl.live import LiveSubscribe
from mzlite.repl.messages import connection_error
from mzlite.repl.prompt import BARE_COMMANDS, Prompt
from mzlite.repl.registry import Quit
from mzlite.repl.script import Script
from mzlite.repl.settings import Settings
from mzlite.repl.shell import Shell


def run(dsn: str, *, history_path: Path | None, banner: str, initial: str | None = None) -> int:
    """The shell on this terminal; the exit code. `initial` is run before the first prompt.

    Without a terminal on standard input, runs what comes from there instead.
    """
    if not sys.stdin.isatty():
        return run_stream(dsn, sys.stdin, out=sys.stdout, err=sys.stderr)
    return Repl(dsn, history_path=history_path).loop(banner=banner, initial=initial)


class Repl:
    """A `Shell` with a `Prompt` in front of it."""

    def __init__(self, dsn: str, *, history_path: Path | None) -> None:
        self.shell = Shell(dsn, out=sys.stdout, err=sys.stderr, settings=Settings.interactive())
        self.names = NamesCache(reader_for(lambda: self.shell.client.dsn))
        self._prompt = Prompt(
            completer=SqlCompleter(lambda: self.names.names),
            history_path=history_path,
            database=self._database,
            transaction_mark=lambda: self.shell.client.transaction_mark,
        )
        self.shell.watch_subscribe = self._watch
        self.shell.ask_copy_data = self._prompt.copy_lines
        self.shell.on_names_changed = self.names.refresh

    def loop(self, *, banner: str = "", initial: str | None = None) -> int:
        out = self.shell.output
        try:
            self.shell.connect()
        except psycopg.Error as error:
            out.message(f"mzlite: error: {connection_error(error)}")
            return 2
        self.names.refresh()
        if banner:
            out.write(banner.rstrip("\n") + "\n")
        rest = ""
        try:
            if initial:
                rest = self._run(initial)
            while True:
                try:
                    rest = self._run(self._prompt.read(default=rest))
                except KeyboardInterrupt:
                    rest = ""
        except EOFError:
            out.write("\\q\n")
        except Quit:
            pass
        finally:
            self.names.stop()
            out.redirect(None)
            self.shell.client.close()
        return 0

    def _run(self, text: str) -> str:
        """Runs what was typed; what it leaves in the query buffer."""
        text = BARE_COMMANDS.get(text.strip().lower(), text)
        script = Script((text + "\n").splitlines(keepends=True), self.shell.settings.variables)
        try:
            self.shell.run_script(script)
        except KeyboardInterrupt:
            self.shell.output.write("\n")
            return ""
        except BrokenPipeError:
            self.shell.output.redirect(None)  # the program behind \o has gone
            return ""
        return script.buffer.strip()

    def _watch(self, sql: str) -> None:
        LiveSubscribe(self.shell.client, sql, null=self.shell.settings.null, style=STYLE).run()

    def _database(self) -> str:
        client = self.shell.client
        if not client.is_connected:
            return "!"
        return f"{client.parameter('database') or client.conn.info.dbname}="
