"""Completes names and keywords from what the server has told, never asking it while a person types.

    names changed ─▶ NamesCache (a thread with its own connection) ─▶ Names, immutable ─▶ SqlCompleter

The one idea: the completer reads a snapshot. Refreshing replaces the snapshot; until then, or without a server, the last
one serves.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeVar

import psycopg
from prompt_toolkit.completion import CompleteEvent, Completer, Completion, PathCompleter
from prompt_toolkit.document import Document

from mzlite.repl import keywords
from mzlite.repl.catalog import ColumnInfo, Relation, open_catalog
from mzlite.repl.client import Client
from mzlite.repl.commands import COMMANDS
from mzlite.repl.scope import Cursor, Source, locate
from mzlite.repl.syntax import SYNTAX

_T = TypeVar("_T")
_PLAIN_IDENT = re.compile(r"[a-z_][a-z0-9_$]*\Z")
_RESERVED = frozenset(
    keywords.words(
        """
    all analyze and any array as asc case cast check collate column constraint create cross default desc
    distinct do else end except false fetch for foreign from full grant group having in inner intersect into
    is join lateral left like limit natural not null offset on only or order outer primary references
    returning right select some table then to true union unique user using when where window with
    """
    )
)


@dataclass(frozen=True, slots=True)
class Names:
    """What can be named, as of one moment."""

    relations: tuple[Relation, ...] = ()
    columns: dict[tuple[str, str], list[ColumnInfo]] = field(default_factory=dict)
    schemas: tuple[str, ...] = ()
    search_path: tuple[str, ...] = ()
    databases: tuple[str, ...] = ()
    clusters: tuple[str, ...] = ()
    functions: tuple[str, ...] = keywords.FUNCTIONS

    def columns_of(self, source: Source) -> list[ColumnInfo]:
        """The columns of a relation as named in FROM: with its schema, by the search path, or wherever it is unique."""
        if source.schema is not None:
            return self.columns.get((source.schema, source.name), [])
        for schema in self.search_path:
            if (schema, source.name) in self.columns:
                return self.columns[schema, source.name]
        for (_, name), columns in self.columns.items():
            if name == source.name:
                return columns
        return []


def read_names(client: Client) -> Names:
    """Asks the server; what it refuses to tell stays empty."""
    catalog = open_catalog(client.query, client.parameter("mz_version"))

    def ask(question: Callable[[], Iterable[_T]]) -> tuple[_T, ...]:
        try:
            return tuple(question())
        except psycopg.Error as error:
            if error.sqlstate is None:  # not refused: the server is gone
                raise
            return ()

    kinds = frozenset({"table", "view", "materialized view", "source", "index"})
    schemas = ask(lambda: [name for name, _ in catalog.schemas(system=True)])
    return Names(
        relations=ask(lambda: catalog.relations(kinds, list(schemas))),
        columns=dict(ask(lambda: catalog.all_columns().items())),
        schemas=schemas,
        search_path=ask(catalog.current_schemas),
        databases=ask(lambda: [row[0] or "" for row in catalog.databases().rows]),
        clusters=ask(lambda: [row[0] or "" for row in catalog.clusters().rows]),
        functions=tuple(
            sorted({*keywords.FUNCTIONS, *ask(lambda: [each.name for each in catalog.functions(system=True)])})
        ),
    )


class NamesCache:
    """Keeps a snapshot of names, refreshed in the background on a connection of its own.

    Requests that come while one is being served are served together after it.
    """

    def __init__(self, read: Callable[[], Names]) -> None:
        self._read = read
        self._wanted = threading.Event()
        self._stopped = False
        self._thread: threading.Thread | None = None
        self._served = threading.Condition()
        self._requests = self._answers = 0
        self.names = Names()

    def refresh(self) -> None:
        """Asks for a new snapshot; returns at once."""
        with self._served:
            self._requests += 1
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="names", daemon=True)
            self._thread.start()
        self._wanted.set()

    def wait(self, timeout_s: float) -> bool:
        """Whether all that was asked for so far has been answered within the time; for tests."""
        with self._served:
            asked = self._requests
            return self._served.wait_for(lambda: self._answers >= asked, timeout_s)

    def stop(self) -> None:
        self._stopped = True
        self._wanted.set()

    def _run(self) -> None:
        while True:
            self._wanted.wait()
            self._wanted.clear()
            if self._stopped:
                return
            with self._served:
                asked = self._requests
            with suppress(psycopg.Error):  # names are a convenience: keep the old ones, say nothing
                self.names = self._read()
            with self._served:
                self._answers = asked
                self._served.notify_all()


def reader_for(dsn: Callable[[], str]) -> Callable[[], Names]:
    """Reads names over a connection that is kept between refreshes and made anew when lost or when the DSN changes."""
    kept: list[Client] = []

    def read() -> Names:
        wanted = dsn()
        if kept and (kept[0].dsn != wanted or not kept[0].is_connected):
            kept.pop().close()
        if not kept:
            client = Client(wanted, application_name="mzlite completion")
            client.connect()
            kept.append(client)
        return read_names(kept[0])

    return read


class SqlCompleter(Completer):
    """Completes SQL and shell commands from a snapshot of names."""

    def __init__(self, names: Callable[[], Names]) -> None:
        self._names = names
        self._paths = PathCompleter(expanduser=True)

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        line = document.text_before_cursor
        if line.lstrip().startswith("\\"):
            yield from self._meta(line.lstrip(), document, complete_event)
            return
        cursor = locate(document.text, document.cursor_position)
        if cursor.is_inert:
            return
        if not complete_event.completion_requested and not cursor.word and not cursor.prefix:
            return  # while typing, only a name begun is completed
        yield from _ranked(cursor.word, self._candidates(cursor))

    def _meta(self, line: str, document: Document, event: CompleteEvent) -> Iterator[Completion]:
        name, space, argument = line[1:].partition(" ")
        if not space:
            described = {key: command.summary for key, command in COMMANDS.items() if command.usage}
            yield from _ranked(name, [(key, summary) for key, summary in sorted(described.items())])
            return
        word = argument.split(" ")[-1]
        names = self._names()
        if name in ("i", "ir", "o", "cd", "include", "e"):
            yield from self._paths.get_completions(Document(argument), event)
        elif name in ("c", "connect"):
            yield from _ranked(word, [(each, "database") for each in names.databases])
        elif name.startswith("dn"):
            yield from _ranked(word, [(each, "schema") for each in names.schemas])
        elif name.startswith("dC"):
            yield from _ranked(word, [(each, "cluster") for each in names.clusters])
        elif name.startswith("df"):
            yield from _ranked(word, [(each, "function") for each in names.functions])
        elif name in ("h", "help"):
            yield from _ranked(argument, [(each, "") for each in sorted(SYNTAX)])
        elif name.startswith("d") or name in ("sv", "copy"):
            schema, dot, part = word.rpartition(".")
            yield from _ranked(part if dot else word, self._relations(names, schema if dot else None))

    def _candidates(self, cursor: Cursor) -> Iterator[tuple[str, str]]:
        """(text, what it is), the likeliest kind first."""
        names = self._names()
        previous = cursor.previous
        if cursor.prefix:
            yield from self._dotted(cursor, names)
        elif cursor.insert_columns_of is not None:
            yield from _column_items(names.columns_of(cursor.insert_columns_of))
        elif not previous or previous == ("EXPLAIN",):
            yield from _keyword_items(keywords.STATEMENT_STARTS)
        elif previous[-2:] in (("IN", "CLUSTER"), ("DROP", "CLUSTER"), ("SET", "CLUSTER"), ("ALTER", "CLUSTER")) or (
            previous[-3:-1] == ("SET", "CLUSTER") and cursor.last in ("=", "TO")
        ):
            yield from ((_quoted(each), "cluster") for each in names.clusters)
        elif previous == ("SHOW",):
            yield from _keyword_items(keywords.SHOW_WORDS)
            yield from ((each, "variable") for each in keywords.VARIABLES)
        elif previous in (("SET",), ("RESET",), ("SET", "SESSION"), ("SET", "LOCAL")):
            yield from ((each, "variable") for each in keywords.VARIABLES)
        elif previous == ("CREATE",):
            yield from _keyword_items(keywords.CREATE_KINDS)
        elif previous in (("DROP",), ("ALTER",), ("SHOW", "CREATE"), ("COMMENT", "ON")):
            yield from _keyword_items(keywords.OBJECT_KINDS)
        elif previous[0] in ("DROP", "ALTER", "SHOW") and (kind := _kind_named(previous[1:])) is not None:
            yield from self._of_kind(kind, names)
        elif previous[:2] == ("SHOW", "COLUMNS") and cursor.last in ("FROM", "IN"):
            yield from self._relations(names, None)
        elif previous[0] == "SHOW" and cursor.last in ("FROM", "IN"):
            yield from ((_quoted(each), "schema") for each in names.schemas)
        elif cursor.last == "::":
            yield from ((each, "type") for each in keywords.TYPES)
        elif cursor.wants_relation or previous == ("COPY",):
            yield from ((_quoted(each), "with") for each in cursor.ctes)
            yield from self._relations(names, None)
            yield from ((_quoted(each), "schema") for each in names.schemas)
            yield from _keyword_items(("SELECT", "LATERAL", "TO"))
        else:
            yield from self._expression(cursor, names)

    def _dotted(self, cursor: Cursor, names: Names) -> Iterator[tuple[str, str]]:
        """After a dot: columns of what is called so in FROM, else relations of the schema."""
        last = cursor.prefix[-1]
        matching = [source for source in cursor.sources if source.alias == last]
        for source in matching:
            yield from _column_items(names.columns_of(source))
        if not matching or cursor.wants_relation:
            yield from self._relations(names, last)
        if not matching and not cursor.wants_relation:
            yield from _column_items(names.columns_of(Source(last, None, last)))

    def _expression(self, cursor: Cursor, names: Names) -> Iterator[tuple[str, str]]:
        for source in cursor.sources:
            yield from _column_items(names.columns_of(source))
        for source in cursor.sources:
            yield _quoted(source.alias), "alias"
        if cursor.sources or cursor.clause:
            yield from ((f"{each}(", "function") for each in names.functions)
        yield from _keyword_items(keywords.KEYWORDS)
        if not cursor.sources:
            yield from self._relations(names, None)

    def _relations(self, names: Names, schema: str | None) -> Iterator[tuple[str, str]]:
        """Of a schema; for `None`, those of the search path first, then system relations, which need no schema either."""
        wanted = [r for r in names.relations if r.kind != "index"]
        if schema is not None:
            yield from ((_quoted(r.name), r.kind) for r in wanted if r.schema == schema)
            return
        yield from ((_quoted(r.name), r.kind) for r in wanted if r.schema in names.search_path)
        system = ("mz_catalog", "mz_internal", "mz_introspection", "pg_catalog")
        yield from ((_quoted(r.name), r.schema) for r in wanted if r.schema in system)

    def _of_kind(self, kind: str, names: Names) -> Iterator[tuple[str, str]]:
        if kind == "cluster":
            yield from ((_quoted(each), kind) for each in names.clusters)
        elif kind == "database":
            yield from ((_quoted(each), kind) for each in names.databases)
        elif kind == "schema":
            yield from ((_quoted(each), kind) for each in names.schemas)
        else:
            for relation in names.relations:
                if relation.kind == kind and relation.schema in names.search_path:
                    yield _quoted(relation.name), kind
        yield from _keyword_items(("IF EXISTS",))


def _kind_named(words: tuple[str, ...]) -> str | None:
    """The kind of object that is named last and whose name comes next: VIEW, CREATE VIEW, VIEW IF EXISTS."""
    kept = [word for word in words if word not in ("CREATE", "IF", "EXISTS")]
    text = " ".join(kept)
    return text.lower() if text in keywords.OBJECT_KINDS else None


def _column_items(columns: Iterable[ColumnInfo]) -> Iterator[tuple[str, str]]:
    return ((_quoted(column.name), column.type) for column in columns)


def _keyword_items(words: Iterable[str]) -> Iterator[tuple[str, str]]:
    return ((word, "") for word in words)


def _quoted(name: str) -> str:
    """`name` as one has to write it."""
    if _PLAIN_IDENT.match(name) and name not in _RESERVED:
        return name
    return '"' + name.replace('"', '""') + '"'


def _ranked(word: str, items: Iterable[tuple[str, str]]) -> Iterator[Completion]:
    """Those that begin with `word`, then those that contain it at the start of a part (`order` finds `sales_orders`)."""
    typed = word.strip('"').lower()
    lower_case = bool(word) and word[-1].islower()
    seen: set[str] = set()
    later: list[tuple[str, str]] = []
    for text, meta in items:
        plain = text.strip('"').lower()
        if text in seen or (plain == typed and not meta):
            continue
        seen.add(text)
        if plain.startswith(typed):
            yield _completion(text, meta, word, lower_case)
        elif len(typed) >= 3 and f"_{typed}" in plain:
            later.append((text, meta))
    for text, meta in later:
        yield _completion(text, meta, word, lower_case)


def _completion(text: str, meta: str, word: str, lower_case: bool) -> Completion:
    is_keyword = (not meta and text.isupper()) or (" " in text and text.isupper())
    shown = text.lower() if is_keyword and lower_case else text
    return Completion(shown, start_position=-len(word), display_meta=meta or ("keyword" if is_keyword else ""))
