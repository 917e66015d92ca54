"""A change feed added up, and the table that is drawn of it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prompt_toolkit.application import create_app_session
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from mzlite.repl.client import Client, ResultColumn, Row
from mzlite.repl.live import LiveSubscribe
from mzlite.repl.subscribe import FRESH_S, SubscribeState, draw, envelope_key, format_timestamp, inner_subscribe

MZ_TIMESTAMP, INT8, INT4, TEXT, BOOL = 16552, 20, 23, 25, 16
PLAIN = (
    ResultColumn("mz_timestamp", MZ_TIMESTAMP),
    ResultColumn("mz_diff", INT8),
    ResultColumn("item", TEXT),
    ResultColumn("price", INT4),
)


def state_of(columns: tuple[ResultColumn, ...], *rows: Row, key: list[str] | None = None) -> SubscribeState:
    state = SubscribeState()
    state.start(columns, key or [])
    for i, row in enumerate(rows):
        state.apply(row, now=float(i))
    return state


def counts(state: SubscribeState) -> dict[Row, int]:
    return {row: entry.count for row, entry in state.rows.items()}


def drawn(state: SubscribeState, *, now: float = 1e9, columns: int = 60, lines: int = 20, offset: int = 0) -> list[str]:
    parts = draw(state, now=now, columns=columns, lines=lines, offset=offset, null="<null>")
    return "".join(text for _, text in parts).split("\n")


def test_updates_add_up() -> None:
    state = state_of(
        PLAIN,
        ("100", "1", "tea", "3"),
        ("100", "2", "pot", None),
        ("200", "-1", "tea", "3"),
        ("200", "1", "tea", "4"),
        ("300", "-1", "pot", None),
    )
    assert counts(state) == {("tea", "4"): 1, ("pot", None): 1}
    assert state.timestamp == "300"
    assert state.row_count == 2
    assert state.change_count == 5


def test_progress_moves_the_timestamp_and_nothing_else() -> None:
    columns = (PLAIN[0], ResultColumn("mz_progressed", BOOL), *PLAIN[1:])
    state = state_of(columns, ("100", "f", "1", "tea", "3"), ("500", "t", None, None, None))
    assert counts(state) == {("tea", "3"): 1}
    assert (state.timestamp, state.change_count) == ("500", 1)


def test_upsert_replaces_by_key() -> None:
    columns = (PLAIN[0], ResultColumn("mz_state", TEXT), *PLAIN[2:])
    state = state_of(
        columns,
        ("1", "upsert", "tea", "3"),
        ("2", "upsert", "tea", "4"),
        ("2", "upsert", "pot", "9"),
        ("3", "delete", "pot", None),
        key=["item"],
    )
    assert counts(state) == {("tea", "4"): 1}


def test_debezium_shows_what_is_after() -> None:
    columns = (
        PLAIN[0],
        ResultColumn("mz_state", TEXT),
        ResultColumn("item", TEXT),
        ResultColumn("before_price", INT4),
        ResultColumn("after_price", INT4),
    )
    state = state_of(
        columns,
        ("1", "insert", "tea", None, "3"),
        ("2", "upsert", "tea", "3", "5"),
        ("3", "insert", "pot", None, "1"),
        ("4", "delete", "pot", "1", None),
        key=["item"],
    )
    assert [column.name for column in state.columns] == ["item", "price"]
    assert counts(state) == {("tea", "5"): 1}


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(-2, 2))))
def test_the_rows_are_the_sum_of_the_updates(updates: list[tuple[str, int]]) -> None:
    state = state_of(PLAIN, *(("1", str(diff), name, None) for name, diff in updates))
    totals = {name: sum(diff for each, diff in updates if each == name) for name in "abc"}
    assert counts(state) == {(name, None): total for name, total in totals.items() if total}


def test_the_key_is_read_from_the_statement() -> None:
    assert envelope_key('SUBSCRIBE t ENVELOPE UPSERT (KEY (a, "B c")) AS OF 3') == ["a", "B c"]
    assert envelope_key("SUBSCRIBE t") == []


def test_what_counts_as_a_subscribe() -> None:
    assert inner_subscribe("subscribe to t;") == "subscribe to t;"
    assert inner_subscribe("COPY (SUBSCRIBE (select f(1) from t) AS OF 3) TO STDOUT;") == (
        "SUBSCRIBE (select f(1) from t) AS OF 3"
    )
    assert inner_subscribe("COPY (SELECT 1) TO STDOUT") is None
    assert inner_subscribe("select 'SUBSCRIBE t'") is None


def test_rows_are_drawn_in_the_order_of_their_values() -> None:
    state = state_of(PLAIN, ("100", "1", "pot", "10"), ("100", "1", "pot", "9"), ("100", "1", "jam", None))
    lines = drawn(state)
    assert [line.rstrip() for line in lines[2:5]] == [" jam  | <null>", " pot  |      9", " pot  |     10"]
    assert lines[1] == "------+--------"


def test_counts_are_shown_when_a_row_is_there_more_than_once() -> None:
    once = drawn(state_of(PLAIN, ("1", "1", "tea", "3")))
    assert "count" not in once[0]
    twice = drawn(state_of(PLAIN, ("1", "2", "tea", "3")))
    assert twice[0].split("|")[0].strip() == "count"
    assert twice[2].split("|")[0].strip() == "2"


def test_recent_changes_stand_out_and_then_do_not() -> None:
    state = state_of(PLAIN, ("1", "1", "tea", "3"))
    fresh = draw(state, now=FRESH_S / 2, columns=60, lines=20)
    later = draw(state, now=FRESH_S * 2, columns=60, lines=20)
    assert [style for style, text in fresh if "tea" in text] == ["class:subscribe.fresh"]
    assert [style for style, text in later if "tea" in text] == [""]


def test_the_screen_is_never_overfull() -> None:
    state = state_of(PLAIN, *(("1", "1", f"item {i:03}", "x" * 200) for i in range(100)))
    for offset in (0, 50, 500):
        lines = drawn(state, columns=40, lines=12, offset=offset)
        assert len(lines) <= 12
        assert all(len(line) <= 40 for line in lines)
    assert "item 099" in "\n".join(drawn(state, lines=12, offset=500))


def test_timestamps_in_milliseconds_are_also_shown_as_time_of_day() -> None:
    assert format_timestamp("1700000000123") == "1700000000123 (22:13:20.123 UTC)"
    assert format_timestamp("7") == "7"


class FeedClient(Client):
    """Streams what it is given, then waits to be cancelled, as a subscription does."""

    def __init__(self, rows: list[Row], *, ends: bool = False, error: psycopg.Error | None = None) -> None:
        super().__init__("")
        self._rows, self._ends, self._error = rows, ends, error
        self.cancelled = threading.Event()
        self.sent = threading.Event()

    def stream(self, sql: str) -> tuple[tuple[ResultColumn, ...], Iterator[Row]]:
        def rows() -> Iterator[Row]:
            yield from self._rows
            self.sent.set()
            if self._error is not None:
                raise self._error
            if not self._ends:
                self.cancelled.wait()
                raise psycopg.errors.QueryCanceled("canceling statement due to user request")

        return PLAIN, rows()

    def cancel(self) -> None:
        self.cancelled.set()


def run_live(client: FeedClient, during: Callable[[Callable[[str], None]], None]) -> str:
    with create_pipe_input() as keys, create_app_session(input=keys, output=DummyOutput()):
        view = LiveSubscribe(client, "SUBSCRIBE t", null="")
        helper = threading.Thread(target=during, args=(keys.send_text,))
        helper.start()
        try:
            return view.run()
        finally:
            helper.join()


def test_ctrl_c_cancels_and_returns_quietly() -> None:
    client = FeedClient([("5", "1", "tea", "3")])

    def during(press: Callable[[str], None]) -> None:
        assert client.sent.wait(20)
        press("\x03")

    assert run_live(client, during).startswith("1 row  ·  at 5")
    assert client.cancelled.is_set()


def test_a_subscription_with_an_end_ends_by_itself() -> None:
    client = FeedClient([("5", "1", "tea", "3"), ("6", "1", "pot", "4")], ends=True)
    assert run_live(client, lambda press: None).startswith("2 rows")


def test_an_error_of_the_server_is_raised() -> None:
    client = FeedClient([], error=psycopg.errors.UndefinedTable("unknown catalog item 't'"))
    with pytest.raises(psycopg.errors.UndefinedTable):
        run_live(client, lambda press: None)
