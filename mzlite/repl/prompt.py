"""The line editor: prompt, keys, history, highlighting, completion.

materialize=> select *          a statement goes on until its semicolon; Enter begins a new line until then
materialize->   from t;
materialize=*>                  in a transaction; =!> in a failed one
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.completion import Completer
from prompt_toolkit.enums import DEFAULT_BUFFER
from prompt_toolkit.filters import completion_is_selected, has_completions, has_focus, is_done
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import PygmentsLexer

from mzlite.repl.highlight import STYLE, SqlLexer
from mzlite.repl.script import wants_more
from mzlite.repl.tokens import Lexer, Mode

# Words that a person in search of the way out types, as psql understands them.
BARE_COMMANDS = {"quit": "\\q", "exit": "\\q", "help": "\\?"}


class Prompt:
    """Reads what a person types; `database` (`materialize=`) and `transaction_mark` are asked for each time it is drawn."""

    def __init__(
        self,
        *,
        completer: Completer,
        history_path: Path | None,
        database: Callable[[], str],
        transaction_mark: Callable[[], str],
    ) -> None:
        self._database = database
        self._transaction_mark = transaction_mark
        self._session: PromptSession[str] = PromptSession(
            message=self.message,
            prompt_continuation=self._continuation,
            multiline=True,
            completer=completer,
            complete_while_typing=True,
            history=open_history(history_path),
            auto_suggest=AutoSuggestFromHistory(),
            lexer=PygmentsLexer(SqlLexer),
            style=STYLE,
            include_default_pygments_style=False,
            key_bindings=make_keys(),
            enable_open_in_editor=True,
            tempfile_suffix=".sql",
            search_ignore_case=True,
            reserve_space_for_menu=6,
            vi_mode=prefers_vi(),
        )

    def read(self, default: str = "") -> str:
        """One text that ends in a semicolon or holds a shell command. Raises EOFError, KeyboardInterrupt."""
        return self._session.prompt(default=default)

    def copy_lines(self) -> Iterator[str]:
        """The data of COPY ... FROM STDIN, a line at a time until `\\.` or Ctrl-D."""
        session: PromptSession[str] = PromptSession(history=InMemoryHistory())
        print("Enter data to be copied followed by a newline.\nEnd with a backslash and a period on a line by itself.")
        while True:
            try:
                line = session.prompt(">> ")
            except EOFError:
                return
            if line == "\\.":
                return
            yield line + "\n"

    def message(self) -> StyleAndTextTuples:
        """The prompt as it is drawn now."""
        mark = self._transaction_mark()
        style = {"": "class:prompt", "*": "class:prompt.transaction"}.get(mark, "class:prompt.failed")
        return [(style, f"{self._database()}{mark}> ")]

    def _continuation(self, width: int, line_number: int, is_soft_wrap: int) -> StyleAndTextTuples:
        if is_soft_wrap:
            return [("", " " * width)]
        lexer = Lexer()
        lexer.feed("\n".join(get_app().current_buffer.document.lines[:line_number]) + "\n")
        return [("class:prompt.continuation", f"{self._database().rstrip('=')}{lexer.inside.mark}> ".rjust(width))]


def open_history(path: Path | None) -> History:
    """Persistent where the file can be written; a shell that cannot remember still works."""
    if path is None:
        return InMemoryHistory()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.open("ab").close()
    except OSError:
        return InMemoryHistory()
    return FileHistory(path)


def prefers_vi() -> bool:
    """Whether the person's readline settings, which psql and most shells follow, ask for vi's keys."""
    path = Path(os.environ.get("INPUTRC") or "~/.inputrc").expanduser()
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return False
    return any(line.split() == ["set", "editing-mode", "vi"] for line in lines)


def make_keys() -> KeyBindings:
    keys = KeyBindings()
    editing = has_focus(DEFAULT_BUFFER) & ~is_done

    @keys.add("enter", filter=editing & completion_is_selected)
    def _accept_completion(event: KeyPressEvent) -> None:
        event.current_buffer.complete_state = None

    @keys.add("enter", filter=editing & ~completion_is_selected)
    def _send_or_new_line(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if wants_more(buffer.text) and buffer.text.strip().lower() not in BARE_COMMANDS:
            buffer.insert_text("\n" + _indentation(buffer.document.current_line_before_cursor, buffer.text))
        else:
            buffer.validate_and_handle()

    @keys.add("escape", "enter", filter=editing)
    def _new_line(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    @keys.add("escape", eager=True, filter=editing & has_completions & completion_is_selected)
    def _close_menu(event: KeyPressEvent) -> None:
        event.current_buffer.cancel_completion()

    @keys.add("tab", filter=editing)
    def _complete_or_indent(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        before = buffer.document.current_line_before_cursor
        if buffer.complete_state:
            buffer.complete_next()
        elif buffer.document.line_count > 1 and not before.strip():
            buffer.insert_text("    ")
        else:
            buffer.start_completion(select_first=False, insert_common_part=True)

    return keys


def _indentation(line: str, text: str) -> str:
    """A new line begins where the one above it does, except in a string, whose spaces would count."""
    lexer = Lexer()
    lexer.feed(text)
    if lexer.inside.mode is not Mode.NORMAL:
        return ""
    return line[: len(line) - len(line.lstrip())]
