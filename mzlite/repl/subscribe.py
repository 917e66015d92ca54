"""Adds up the updates of a SUBSCRIBE into the rows that are there now, and draws them.

The one idea: a change feed is a sum. Each update says "this row, so many more (or fewer) times"; what the collection holds
at the last timestamp is the total, and a table that keeps itself up to date is that total drawn again and again.

    mz_timestamp  mz_diff  item   price            item   price
    100            1       tea    3          ─▶    tea    4
    200           -1       tea    3
    200            1       tea    4

`SubscribeState` is arithmetic and `draw` is layout; neither knows a terminal, a clock or a connection (see `live`).
"""

from __future__ import annotations

import datetime
import heapq
import re
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from mzlite.repl.client import ResultColumn, Row
from mzlite.repl.table import NUMERIC_OIDS, width_of
from mzlite.repl.tokens import Kind, Token, leading_words, significant, unquote_ident

FRESH_S = 1.5  # how long a change stands out
RATE_WINDOW_S = 5.0
MAX_CELL_COLUMNS = 60
Fragments = list[tuple[str, str]]


def inner_subscribe(sql: str) -> str | None:
    """The SUBSCRIBE that `sql` is, or that it copies to standard output; `None` if it is neither."""
    if leading_words(sql, 1) == ("SUBSCRIBE",):
        return sql
    tokens = significant(sql)
    if len(tokens) < 3 or tokens[0].word != "COPY" or tokens[1].text != "(" or tokens[2].word != "SUBSCRIBE":
        return None
    depth = 0
    for i, token in enumerate(tokens):
        depth += (token.kind is Kind.OPEN) - (token.kind is Kind.CLOSE)
        if depth == 0 and i > 0:
            words = [each.word for each in tokens[i + 1 : i + 3]]
            return sql[tokens[2].start : token.start].strip() if words == ["TO", "STDOUT"] else None
    return None


def envelope_key(sql: str) -> list[str]:
    """The columns of `ENVELOPE UPSERT (KEY (a, b))` or `ENVELOPE DEBEZIUM (KEY (a, b))`; none without an envelope."""
    tokens = significant(sql)
    for i, token in enumerate(tokens):
        if token.word == "ENVELOPE" and [t.text.upper() for t in tokens[i + 2 : i + 5]] == ["(", "KEY", "("]:
            return _names(tokens[i + 5 :])
    return []


def _names(tokens: Iterable[Token]) -> list[str]:
    names: list[str] = []
    for token in tokens:
        if token.kind is Kind.CLOSE:
            break
        if token.kind in (Kind.WORD, Kind.IDENT):
            names.append(unquote_ident(token.text))
    return names


@dataclass(slots=True)
class _Entry:
    count: int
    changed_at: float
    order: tuple[tuple[int, float, str], ...]


@dataclass(slots=True)
class SubscribeState:
    """The current rows of a subscription with their counts.

    Invariants: 1. no row has count 0; 2. every row has as many values as there are `columns`.
    A negative count is kept and shown: it means that the feed, not the shell, has lost something.
    """

    columns: tuple[ResultColumn, ...] = ()
    rows: dict[Row, _Entry] = field(default_factory=dict)
    timestamp: str = ""
    change_count: int = 0
    _recent: deque[tuple[float, int]] = field(default_factory=deque)
    _last_of_key: dict[Row, Row] = field(default_factory=dict)
    _take: Callable[[Row, float], None] | None = None
    _numeric: tuple[bool, ...] = ()

    def start(self, columns: tuple[ResultColumn, ...], key: list[str]) -> None:
        """Call once, with the columns as they arrive and the key of the envelope, if there is one."""
        names = [column.name for column in columns]
        first = 1 + ("mz_progressed" in names)
        progressed = names.index("mz_progressed") if "mz_progressed" in names else None

        def taking(apply: Callable[[Row, float], None]) -> Callable[[Row, float], None]:
            def take(row: Row, now: float) -> None:
                self.timestamp = row[0] or ""
                if progressed is None or row[progressed] not in ("t", "true"):
                    self._count(now)
                    apply(row, now)

            return take

        if "mz_state" not in names:
            diff = names.index("mz_diff") if "mz_diff" in names else None
            data = [i for i in range(first, len(names)) if i != diff]
            self.columns = tuple(columns[i] for i in data)

            def plain(row: Row, now: float) -> None:
                change = 1 if diff is None else int(row[diff] or 0)
                self._add(tuple(row[i] for i in data), change, now)

            self._take = taking(plain)
        else:
            self._take = taking(self._start_envelope(columns, names, key))
        self._numeric = tuple(column.type_oid in NUMERIC_OIDS for column in self.columns)

    def _start_envelope(
        self, columns: tuple[ResultColumn, ...], names: list[str], key: list[str]
    ) -> Callable[[Row, float], None]:
        """Upsert and Debezium name the row by its key: what was under the key before goes, what comes stays."""
        state = names.index("mz_state")
        data = [i for i in range(state + 1, len(names)) if not names[i].startswith("before_")]
        is_debezium = any(name.startswith("before_") for name in names)
        shown = [
            ResultColumn(names[i].removeprefix("after_") if is_debezium else names[i], columns[i].type_oid)
            for i in data
        ]
        self.columns = tuple(shown)
        key_at = [i for i in data if names[i] in key]

        def apply(row: Row, now: float) -> None:
            row_key = tuple(row[i] for i in key_at)
            before = self._last_of_key.pop(row_key, None)
            if before is not None:
                self._add(before, -1, now)
            if row[state] in ("upsert", "insert"):
                after = tuple(row[i] for i in data)
                self._last_of_key[row_key] = after
                self._add(after, 1, now)

        return apply

    def apply(self, row: Row, now: float) -> None:
        """Takes one row of the feed."""
        assert self._take is not None, "start() comes first"
        self._take(row, now)

    def _count(self, now: float) -> None:
        self.change_count += 1
        if self._recent and now - self._recent[-1][0] < 0.1:
            self._recent[-1] = (self._recent[-1][0], self._recent[-1][1] + 1)
        else:
            self._recent.append((now, 1))

    def _add(self, data: Row, change: int, now: float) -> None:
        entry = self.rows.get(data)
        if entry is None:
            if change:
                self.rows[data] = _Entry(change, now, tuple(map(_order, data, self._numeric)))
            return
        entry.count += change
        entry.changed_at = now
        if entry.count == 0:
            del self.rows[data]

    @property
    def row_count(self) -> int:
        return sum(entry.count for entry in self.rows.values())

    def rate(self, now: float) -> float:
        """Changes a second over the last few seconds."""
        while self._recent and now - self._recent[0][0] > RATE_WINDOW_S:
            self._recent.popleft()
        return sum(count for _, count in self._recent) / RATE_WINDOW_S

    def window(self, offset: int, height: int) -> list[tuple[Row, int, float]]:
        """`height` rows from the `offset`-th on, in the order of their values, as (row, count, changed at)."""
        stop = offset + height
        picked = heapq.nsmallest(stop, self.rows.items(), key=lambda item: item[1].order)[offset:]
        return [(row, entry.count, entry.changed_at) for row, entry in picked]


def _order(value: str | None, is_numeric: bool) -> tuple[int, float, str]:
    """Sorts numbers as numbers, text as text, NULL last. Only for the eye: an order that keeps rows in place."""
    if value is None:
        return (2, 0.0, "")
    if is_numeric:
        try:
            return (0, float(value), value)
        except ValueError:
            pass
    return (1, 0.0, value)


def format_timestamp(text: str) -> str:
    """A timestamp in milliseconds, with the time of day it stands for when it is one."""
    if not re.fullmatch(r"\d{12,14}", text):
        return text
    moment = datetime.datetime.fromtimestamp(int(text) / 1000, datetime.UTC)
    return f"{text} ({moment:%H:%M:%S}.{int(text) % 1000:03d} UTC)"


def draw(state: SubscribeState, *, now: float, columns: int, lines: int, offset: int = 0, null: str = "") -> Fragments:
    """The table and its status line within `columns` x `lines` of a terminal, as styled text."""
    height = max(1, lines - 4)
    offset = max(0, min(offset, len(state.rows) - height))
    rows = state.window(offset, height)
    with_count = any(entry.count != 1 for entry in state.rows.values())
    header = (["count"] if with_count else []) + [column.name for column in state.columns]
    numeric = ([True] if with_count else []) + [column.type_oid in NUMERIC_OIDS for column in state.columns]
    body = [
        ([str(count)] if with_count else []) + [_cell(null if value is None else value) for value in row]
        for row, count, _ in rows
    ]
    widths = [width_of(name) for name in header]
    for cells in body:
        widths = [max(width, width_of(cell)) for width, cell in zip(widths, cells, strict=True)]
    out: Fragments = []
    if header:
        names = [_pad(name, width, False, centered=True) for name, width in zip(header, widths, strict=True)]
        out.append(("class:subscribe.header", _fit(" " + " | ".join(names), columns) + "\n"))
        out.append(("class:subscribe.rule", _fit("-" + "-+-".join("-" * w for w in widths) + "-", columns) + "\n"))
    for cells, (_, count, changed_at) in zip(body, rows, strict=True):
        text = " | ".join(_pad(c, w, right) for c, w, right in zip(cells, widths, numeric, strict=True))
        fresh = now - changed_at < FRESH_S
        style = "class:subscribe.wrong" if count < 0 else "class:subscribe.fresh" if fresh else ""
        out.append((style, _fit(" " + text, columns) + "\n"))
    distinct = len(state.rows)
    if distinct > len(rows):
        shown = f"rows {offset + 1} to {offset + len(rows)} of {distinct:,}; arrows and page keys move"
        out.append(("class:subscribe.status", _fit(f"({shown})", columns) + "\n"))
    out.append(("class:subscribe.status", _fit(status_line(state, now), columns)))
    return out


def status_line(state: SubscribeState, now: float) -> str:
    count = state.row_count
    parts = [f"{count:,} row{'' if count == 1 else 's'}"]
    if state.timestamp:
        parts.append(f"at {format_timestamp(state.timestamp)}")
    parts.append(f"{state.change_count:,} change{'' if state.change_count == 1 else 's'}")
    parts.append(f"{state.rate(now):.1f}/s")
    return "  ·  ".join(parts)


def _cell(value: str) -> str:
    flat = re.sub(r"[\x00-\x1f\x7f]", " ", value)
    return _fit(flat, MAX_CELL_COLUMNS)


def _fit(text: str, columns: int) -> str:
    """`text`, cut with an ellipsis where it would not fit."""
    if width_of(text) <= columns:
        return text
    while text and width_of(text) > columns - 1:
        text = text[: max(columns - 1, 0)] if len(text) > columns else text[:-1]
    return text + "…"


def _pad(text: str, width: int, right: bool, *, centered: bool = False) -> str:
    space = width - width_of(text)
    if centered:
        return " " * (space // 2) + text + " " * ((space + 1) // 2)
    return " " * space + text if right else text + " " * space
