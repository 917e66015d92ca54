"""Session and system variables: values, transactions, and the lists that cover every flag."""

from __future__ import annotations

import pytest

from adapter.coord.session_vars import SessionVars, split_identifiers
from adapter.coord.system_vars import FLAGS, MINIMAL, SYSTEM_VARS, UNINTERESTING, VARIABLE, SystemVars
from adapter.coord.var_types import format_bytes, format_duration, human_bytes
from mzlite.repr.errors import SqlError


def test_set_is_undone_by_rollback_and_kept_by_commit() -> None:
    v = SessionVars({})
    v.set("extra_float_digits", ["2"])
    v.end_transaction(True)
    v.set("extra_float_digits", ["1"])
    assert v.show("extra_float_digits") == "1"
    v.end_transaction(False)
    assert v.show("extra_float_digits") == "2"


def test_set_local_ends_with_the_transaction() -> None:
    v = SessionVars({})
    v.set("extra_float_digits", ["1"], local=True)
    assert v.show("extra_float_digits") == "1"
    v.end_transaction(True)
    assert v.show("extra_float_digits") == "3"


def test_reset_goes_back_to_the_session_default() -> None:
    v = SessionVars({"cluster": "mine"})
    assert v.cluster == "mine"
    v.set("cluster", ["other"])
    v.reset("cluster")
    assert v.cluster == "mine"


def test_the_weaker_isolation_levels_are_serializable() -> None:
    v = SessionVars({})
    v.set("transaction_isolation", ["read committed"])
    assert v.show("transaction_isolation") == "serializable"
    with pytest.raises(SqlError, match='invalid value for parameter "transaction_isolation": "snapshot isolation"'):
        v.set("transaction_isolation", ["snapshot isolation"])


def test_search_path_quotes_what_needs_it() -> None:
    v = SessionVars({})
    v.set("search_path", ["ba r", "foo", "x, y"])
    assert v.show("search_path") == '"ba r", foo, "x, y"'
    assert v.search_path == ("ba r", "foo", "x, y")
    assert split_identifiers('"ba r", foo, "x, y"') == ["ba r", "foo", "x, y"]


def test_several_values_where_one_belongs() -> None:
    with pytest.raises(SqlError, match='parameter "database" cannot have value "one","two": expects a single value'):
        SessionVars({}).set("database", ["one", "two"])


def test_unknown_and_read_only_parameters() -> None:
    v = SessionVars({})
    with pytest.raises(SqlError, match='unrecognized configuration parameter "nope"'):
        v.set("nope", ["1"])
    with pytest.raises(SqlError, match='parameter "server_version" cannot be changed'):
        v.set("server_version", ["15"])
    v.reset("server_version")


def test_changes_of_reportable_parameters_are_reported_once() -> None:
    v = SessionVars({})
    v.reports()
    v.set("application_name", ["x"])
    v.set("extra_float_digits", ["1"])
    assert v.drain_reports() == {"application_name": "x"}
    assert v.drain_reports() == {}
    v.end_transaction(False)
    assert v.drain_reports() == {"application_name": ""}


def test_durations_and_sizes_print_in_their_largest_unit() -> None:
    assert format_duration(60_000) == "1 min"
    assert format_duration(1_500) == "1500 ms"
    assert format_bytes(1 << 30) == "1GB"
    assert format_bytes(100) == "100B"
    assert human_bytes(100) == "100 B"
    assert human_bytes(1 << 20) == "1.0 MiB"


def test_duration_values() -> None:
    v = SessionVars({})
    v.set("statement_timeout", ["250ms"])
    assert v.statement_timeout_ms == 250
    with pytest.raises(SqlError, match='requires a "duration" value'):
        v.set("idle_in_transaction_session_timeout", ["-10ms"])


def test_system_variables_are_typed() -> None:
    s = SystemVars({"max_tables": "5"})
    assert s.get("max_tables") == 5
    assert s.check("enable_compute_interactive_runtime", ["false"]) == ("enable_compute_interactive_runtime", "off")
    with pytest.raises(SqlError, match='requires a "unsigned integer" value'):
        s.check("max_tables", ["many"])
    with pytest.raises(SqlError, match="unrecognized configuration parameter"):
        s.check("does_not_exist", ["1"])
    with pytest.raises(SqlError, match="only supports non-negative, non-NaN numeric values"):
        s.check("max_credit_consumption_rate", ["NaN"])


def test_session_defaults_come_from_the_system() -> None:
    s = SystemVars({})
    s.apply("cluster", "c")
    assert SessionVars(s.session_defaults).cluster == "c"
    s.apply("cluster", None)
    assert SessionVars(s.session_defaults).cluster == "quickstart"


def test_every_flag_stands_in_exactly_one_list() -> None:
    lists = [set(VARIABLE), set(MINIMAL), set(UNINTERESTING)]
    assert set().union(*lists) == set(FLAGS) == set(SYSTEM_VARS)
    assert sum(map(len, lists)) == len(FLAGS)


def test_the_interactive_runtime_is_explored_both_ways() -> None:
    assert set(VARIABLE["enable_compute_interactive_runtime"]) == {"on", "off"}


@pytest.mark.parametrize("name", sorted(VARIABLE))
def test_values_to_explore_are_valid(name: str) -> None:
    for value in VARIABLE[name]:
        SYSTEM_VARS[name].typ.parse(name, [value])
