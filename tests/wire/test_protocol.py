"""The message flow: extended protocol, portals, errors, pipelines, notices, parameters, what is sent at the start."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import pytest

from tests.support.mzlite_server import Server
from tests.wire import raw
from tests.wire.raw import FLUSH, SYNC, RawClient, bind, close, describe, execute, names, parse, query


@pytest.fixture
def client(mzlite_server: Server) -> Iterator[RawClient]:
    with RawClient(mzlite_server.port) as c:
        yield c


def test_the_greeting_says_who_answers(client: RawClient) -> None:
    assert {
        "server_version", "server_encoding", "client_encoding", "DateStyle", "TimeZone", "IntervalStyle",
        "integer_datetimes", "standard_conforming_strings", "is_superuser", "application_name",
        "mz_version", "cluster", "cluster_replica", "database", "search_path",
    } <= set(client.parameters)  # fmt: skip
    assert client.parameters["database"] == "materialize" and client.parameters["cluster"] == "quickstart"
    assert client.greeting[0][0] == "Auth" and client.greeting[-1] == ("Ready", "I")
    assert client.key[0] > 0


def test_startup_parameters(mzlite_server: Server) -> None:
    given = {"application_name": "", "client_encoding": "utf-8", "options": "-c cluster=other -c search_path=a\\ b"}
    with RawClient(mzlite_server.port, given) as c:
        assert c.parameters["application_name"] == "" and c.parameters["client_encoding"] == "UTF8"
        assert c.parameters["cluster"] == "other"
        assert c.rows("SHOW cluster") == [(b"other",)]


def test_startup_without_a_user_is_refused(mzlite_server: Server) -> None:
    with RawClient(mzlite_server.port, None) as c:
        body = struct.pack("!i", 196608) + b"database\0materialize\0\0"
        c.send(struct.pack("!i", len(body) + 4) + body)
        assert c.message() == ("Error", "28000")
        assert c.at_end()


def test_later_minor_versions_are_negotiated_down(mzlite_server: Server) -> None:
    with RawClient(mzlite_server.port, None) as c:
        body = struct.pack("!i", 196610) + b"user\0materialize\0_pq_.whatever\0on\0\0"
        c.send(struct.pack("!i", len(body) + 4) + body)
        assert names(c.until_ready())[:2] == ["Negotiate", "Auth"]


def test_simple_query_of_nothing(client: RawClient) -> None:
    assert client.ask(query("")) == [("Empty", None), ("Ready", "I")]
    assert client.ask(query(" ; -- nothing\n;")) == [("Empty", None), ("Ready", "I")]


def test_statements_after_an_error_of_a_multi_statement_query_do_not_run(client: RawClient) -> None:
    got = client.ask(query("SELECT 1; SELECT 1/0; SELECT 2"))
    assert names(got) == ["RowDescription", "DataRow", "Complete", "Error", "Ready"]
    assert got[-2:] == [("Error", "22012"), ("Ready", "I")]


def test_a_syntax_error_anywhere_runs_nothing(client: RawClient) -> None:
    assert client.ask(query("SELECT 1; SELEKT 2")) == [("Error", "42601"), ("Ready", "I")]


def test_extended_query(client: RawClient) -> None:
    got = client.ask(parse("SELECT $1::int4 + 1"), describe("S"), bind((b"41",)), describe("P"), execute(), SYNC)
    assert names(got) == [
        "ParseComplete", "ParameterDescription", "RowDescription", "BindComplete", "RowDescription", "DataRow",
        "Complete", "Ready",
    ]  # fmt: skip
    assert ("DataRow", (b"42",)) in got and ("Complete", "SELECT 1") in got


def test_a_statement_without_rows_is_described_as_such(client: RawClient) -> None:
    got = client.ask(parse("SET application_name = 'x'"), describe("S"), bind(), describe("P"), execute(), SYNC)
    assert names(got) == [
        "ParseComplete", "ParameterDescription", "NoData", "BindComplete", "NoData", "ParameterStatus", "Complete", "Ready",
    ]  # fmt: skip


def test_binary_parameters_and_results(client: RawClient) -> None:
    got = client.ask(
        parse("SELECT $1::int8, $2::text, $3::bool", oids=(20, 25, 16)),
        bind((struct.pack("!q", -5), b"x", None), param_formats=(1, 0, 1), formats=(1, 0, 1)),
        execute(),
        SYNC,
    )
    assert ("DataRow", (struct.pack("!q", -5), b"x", None)) in got


def test_a_binary_parameter_of_the_wrong_size(client: RawClient) -> None:
    got = client.ask(parse("SELECT $1::int8", oids=(20,)), bind((b"abc",), param_formats=(1,)), execute(), SYNC)
    assert got[1:] == [("Error", "22P03"), ("Ready", "I")]


def test_text_parameters_are_checked(client: RawClient) -> None:
    got = client.ask(parse("SELECT $1::int8", oids=(20,)), bind((b"abc",)), execute(), SYNC)
    assert got[1:] == [("Error", "22P02"), ("Ready", "I")]
    got = client.ask(parse("SELECT $1::text"), bind((b"\xff",)), execute(), SYNC)
    assert got[1:] == [("Error", "22021"), ("Ready", "I")]
    assert client.ask(parse("SELECT $1::int"), bind(()), execute(), SYNC)[1:] == [("Error", "08P01"), ("Ready", "I")]


def test_everything_up_to_sync_is_skipped_after_an_error(client: RawClient) -> None:
    got = client.ask(
        parse("SELECT 1/0"), bind(), execute(), parse("SELECT 2"), bind(), execute(), query("SELECT 3"), SYNC
    )
    assert names(got) == ["ParseComplete", "BindComplete", "Error", "Ready"] or names(got) == ["Error", "Ready"]
    assert client.rows("SELECT 4") == [(b"4",)]


def test_a_pipeline_of_syncs_gets_one_ready_each(client: RawClient) -> None:
    unit = (parse("SELECT 7"), bind(), execute(), SYNC)
    client.send(*unit, parse("SELEKT"), SYNC, *unit)
    assert names(client.until_ready())[-3:] == ["DataRow", "Complete", "Ready"]
    assert names(client.until_ready()) == ["Error", "Ready"]
    assert names(client.until_ready())[-3:] == ["DataRow", "Complete", "Ready"]


def test_flush_delivers_without_sync(client: RawClient) -> None:
    client.send(parse("SELECT 1"), bind(), execute(), FLUSH)
    assert names(client.until("Complete")) == ["ParseComplete", "BindComplete", "DataRow", "Complete"]
    assert client.ask(SYNC) == [("Ready", "I")]


def test_a_portal_is_read_in_pieces(client: RawClient) -> None:
    client.ask(query("BEGIN"))
    sql = "SELECT * FROM generate_series(1, 5) ORDER BY 1"
    got = client.ask(parse(sql), bind(portal="p"), execute(2, "p"), execute(2, "p"), SYNC)
    assert names(got) == ["ParseComplete", "BindComplete", *["DataRow", "DataRow", "Suspended"] * 2, "Ready"]
    got = client.ask(execute(2, "p"), execute(2, "p"), SYNC)
    assert got == [("DataRow", (b"5",)), ("Complete", "SELECT 1"), ("Complete", "SELECT 0"), ("Ready", "T")]
    assert names(client.ask(close("P", "p"), execute(0, "p"), SYNC)) == ["CloseComplete", "Error", "Ready"]
    client.ask(query("ROLLBACK"))


def test_a_limit_met_exactly_still_suspends(client: RawClient) -> None:
    got = client.ask(parse("SELECT 1"), bind(), execute(1), execute(1), SYNC)
    assert names(got) == ["ParseComplete", "BindComplete", "DataRow", "Suspended", "Complete", "Ready"]


def test_portals_end_with_their_transaction(client: RawClient) -> None:
    client.ask(parse("SELECT 1"), bind(portal="p"), SYNC)
    assert client.ask(execute(0, "p"), SYNC) == [("Error", "34000"), ("Ready", "I")]


def test_named_statements_stay_until_closed(client: RawClient) -> None:
    client.ask(parse("SELECT $1::int", "s"), SYNC)
    assert client.ask(parse("SELECT 2", "s"), SYNC) == [("Error", "42P05"), ("Ready", "I")]
    assert ("DataRow", (b"3",)) in client.ask(bind((b"3",), statement="s"), execute(), SYNC)
    assert names(client.ask(close("S", "s"), close("S", "s"), SYNC)) == ["CloseComplete", "CloseComplete", "Ready"]
    assert client.ask(bind((b"3",), statement="s"), SYNC) == [("Error", "26000"), ("Ready", "I")]


def test_an_empty_statement(client: RawClient) -> None:
    assert names(client.ask(parse(""), describe("S"), bind(), execute(), SYNC)) == [
        "ParseComplete", "ParameterDescription", "NoData", "BindComplete", "Empty", "Ready",
    ]  # fmt: skip


def test_several_statements_cannot_be_prepared_as_one(client: RawClient) -> None:
    assert client.ask(parse("SELECT 1; SELECT 2"), SYNC) == [("Error", "42601"), ("Ready", "I")]


def test_result_formats_must_fit(client: RawClient) -> None:
    got = client.ask(parse("SELECT 1, 2"), bind(formats=(1, 1, 1)), execute(), SYNC)
    assert got[1:] == [("Error", "08P01"), ("Ready", "I")]


def test_a_failed_transaction_refuses_until_it_ends(client: RawClient) -> None:
    assert client.ask(query("BEGIN"))[-1] == ("Ready", "T")
    assert client.ask(query("SELECT 1/0"))[-1] == ("Ready", "E")
    assert client.ask(query("SELECT 1")) == [("Error", "25P02"), ("Ready", "E")]
    assert client.ask(parse("SELECT 1"), SYNC) == [("Error", "25P02"), ("Ready", "E")]
    assert client.ask(query("COMMIT")) == [("Complete", "ROLLBACK"), ("Ready", "I")]


def test_changed_parameters_are_reported(client: RawClient) -> None:
    got = client.ask(query("SET application_name = 'other'"))
    assert ("ParameterStatus", ("application_name", "other")) in got
    client.ask(query("BEGIN; SET LOCAL cluster = 'elsewhere'"))
    got = client.ask(query("COMMIT"))
    assert ("ParameterStatus", ("cluster", "quickstart")) in got


def test_notices_come_before_the_answer(client: RawClient) -> None:
    got = client.ask(query("DROP TABLE IF EXISTS there_is_no_such_table"))
    assert names(got) == ["Notice", "Complete", "Ready"]
    assert names(client.ask(query("BEGIN; BEGIN"))).count("Notice") == 1
    client.ask(query("COMMIT"))


def test_messages_that_do_not_belong(client: RawClient) -> None:
    # COPY messages outside COPY are ignored, as after a COPY that failed.
    assert client.ask(raw.packet(b"d", b"1\n"), raw.COPY_DONE, query("SELECT 1"))[-1] == ("Ready", "I")
    got = client.ask(describe("X"), SYNC)
    assert got == [("Error", "08P01"), ("Ready", "I")]


def test_copy_in(client: RawClient) -> None:
    client.ask(query("CREATE TABLE wire_copy (a int, b text)"))
    client.send(query("COPY wire_copy FROM STDIN"))
    assert names(client.until("CopyIn")) == ["CopyIn"]
    # Rows are cut anywhere.
    for piece in (b"1\tx\n2", b"\t", b"y\n3\t\\N", b"\n\\.\n"):
        client.send(raw.packet(b"d", piece))
    assert client.ask(raw.COPY_DONE) == [("Complete", "COPY 3"), ("Ready", "I")]
    assert client.rows("SELECT * FROM wire_copy ORDER BY a") == [(b"1", b"x"), (b"2", b"y"), (b"3", None)]
    client.send(query("COPY wire_copy FROM STDIN"))
    client.until("CopyIn")
    assert client.ask(raw.packet(b"d", b"4\tz\n"), raw.packet(b"f", b"enough\0")) == [
        ("Error", "57014"),
        ("Ready", "I"),
    ]
    client.send(query("COPY wire_copy FROM STDIN"))
    client.until("CopyIn")
    got = client.ask(raw.packet(b"d", b"no number\tz\n"), raw.packet(b"d", b"5\tv\n"), raw.COPY_DONE)
    assert got == [("Error", "22P02"), ("Ready", "I")]
    client.send(query("COPY wire_copy FROM STDIN"))
    client.until("CopyIn")
    assert client.ask(raw.packet(b"d", b"6\tv\n"), query("SELECT 1")) == [("Error", "08P01"), ("Ready", "I")]
    assert client.rows("SELECT count(*) FROM wire_copy") == [(b"3",)]
    got = client.ask(query("COPY (SELECT a FROM wire_copy ORDER BY a) TO STDOUT"))
    assert [w for n, w in got if n == "CopyData"] == [b"1\n", b"2\n", b"3\n"]
    assert names(got)[-3:] == ["CopyDone", "Complete", "Ready"]
    client.ask(query("DROP TABLE wire_copy"))


def test_copy_in_the_extended_protocol(client: RawClient) -> None:
    client.ask(query("CREATE TABLE wire_copy2 (a int)"))
    client.send(parse("COPY wire_copy2 FROM STDIN"), bind(), execute(), FLUSH)
    client.until("CopyIn")
    got = client.ask(raw.packet(b"d", b"1\n2\n"), raw.COPY_DONE, SYNC)
    assert got == [("Complete", "COPY 2"), ("Ready", "I")]
    client.send(parse("COPY wire_copy2 FROM STDIN"), bind(), execute(), FLUSH)
    client.until("CopyIn")
    # After an error in the extended protocol everything up to Sync is discarded, the rest of the COPY included.
    got = client.ask(raw.packet(b"d", b"x\n"), raw.packet(b"d", b"3\n"), raw.COPY_DONE, SYNC)
    assert got == [("Error", "22P02"), ("Ready", "I")]
    assert client.rows("SELECT count(*) FROM wire_copy2") == [(b"2",)]
    client.ask(query("DROP TABLE wire_copy2"))
