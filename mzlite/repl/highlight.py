"""Colours for what a person types: pygments' PostgreSQL lexer, with Materialize's words and the shell's commands."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from prompt_toolkit.styles import Style
from pygments.lexers.sql import PostgresLexer
from pygments.token import Keyword, Name

from mzlite.repl.keywords import MATERIALIZE_KEYWORDS


class SqlLexer(PostgresLexer):  # type: ignore[misc, unused-ignore]
    """PostgreSQL's lexer, after which names that are keywords here become keywords."""

    name = "mzlite SQL"
    aliases = ["mzlite"]

    def get_tokens_unprocessed(self, text: str, *args: Any) -> Iterator[tuple[int, Any, str]]:
        stripped = text.lstrip()
        if stripped.startswith("\\"):
            start = len(text) - len(stripped)
            end = next((i for i in range(start, len(text)) if text[i].isspace()), len(text))
            yield start, Name.Builtin.Pseudo, text[:end]
            yield end, Name, text[end:]
            return
        for index, token, value in super().get_tokens_unprocessed(text, *args):
            if token in Name and value.upper() in MATERIALIZE_KEYWORDS:
                token = Keyword
            yield index, token, value


# Only the terminal's own sixteen colours: they are readable on whatever background the person has chosen.
STYLE = Style.from_dict(
    {
        "pygments.keyword": "bold ansiblue",
        "pygments.keyword.type": "nobold ansicyan",
        "pygments.name.builtin": "ansicyan",
        "pygments.name.builtin.pseudo": "ansimagenta",
        "pygments.name.function": "ansicyan",
        "pygments.literal.string": "ansigreen",
        "pygments.literal.number": "ansimagenta",
        "pygments.comment": "italic ansibrightblack",
        "pygments.operator": "",
        "pygments.error": "",
        "prompt": "bold",
        "prompt.transaction": "bold ansiyellow",
        "prompt.failed": "bold ansired",
        "prompt.continuation": "ansibrightblack",
        "subscribe.header": "bold",
        "subscribe.rule": "ansibrightblack",
        "subscribe.fresh": "ansigreen bold",
        "subscribe.wrong": "ansired bold",
        "subscribe.status": "reverse",
        "subscribe.hint": "reverse",
        "auto-suggestion": "ansibrightblack",
    }
)
