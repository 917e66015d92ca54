"""The spec language: stanzas, arguments, schemas, dataflow bodies; above all the flag that decides placement."""

from __future__ import annotations

from pathlib import Path

import pytest

from compute.client.placement import Role
from compute.plan.description import DataflowClass, IndexDesc, MaterializedViewSink, SubscribeSink
from mzlite.driver import main
from mzlite.driver.dataflows import KnownIndex, World, build_dataflow, parse_frontier, parse_id
from mzlite.driver.schema import DEFAULT, format_row, parse_row, parse_schema, sort_key
from mzlite.driver.spec import SpecError, Stanza, parse_arguments, parse_list, parse_spec
from mzlite.expr.scalar import Ref
from mzlite.repr.ids import GlobalId

SPEC = """\
# a comment
peek id=u5 schema=two ts=0
----
1 "a"
2 "b"

create-dataflow name=read as-of=3 single-read
  import index=2
  build id=3
    Get u1
  export index=t4 on=3 key=[0]
----
ok

schedule id=t4
"""


def world() -> World:
    return World({"default": DEFAULT}, {GlobalId("u2"): KnownIndex(IndexDesc(GlobalId("u1"), (Ref(0),)), DEFAULT.typ)})


def stanza(name: str) -> Stanza:
    return next(s for s in parse_spec(SPEC) if s.command == name)


def test_stanzas() -> None:
    peek, create, schedule = parse_spec(SPEC)
    assert (peek.line, peek.args, peek.expected) == (2, {"id": "u5", "schema": "two", "ts": "0"}, ['1 "a"', '2 "b"'])
    assert next(line.strip() for line in create.body) == "import index=2"
    assert create.flags == {"single-read"}
    assert schedule.expected is None
    with pytest.raises(SpecError, match="line 1"):
        parse_spec("  indented first")


def test_arguments() -> None:
    args, flags = parse_arguments('a=1 b="x y \\"z\\"" key=[0, 1] defer empty= frontier=')
    assert args == {"a": "1", "b": 'x y "z"', "key": "[0, 1]", "empty": "", "frontier": ""}
    assert flags == {"defer"}
    assert parse_list("[0, 1]") == ["0", "1"] and parse_list("[]") == [] and parse_list("7") == ["7"]
    with pytest.raises(SpecError):
        parse_arguments("a=1 =oops")


@pytest.mark.parametrize("text, id", [("5", "u5"), ("u5", "u5"), ("s3", "s3"), ("t4000", "t4000")])
def test_ids(text: str, id: str) -> None:
    assert parse_id(text) == id


@pytest.mark.parametrize("text", ["", "x5", "u", "-1"])
def test_what_is_no_id(text: str) -> None:
    with pytest.raises(SpecError):
        parse_id(text)


def test_frontiers() -> None:
    assert parse_frontier("") is None and parse_frontier("17") == 17


def test_single_read_sets_class_and_until() -> None:
    create = stanza("create-dataflow")
    for single_read in (True, False):
        dataflow = build_dataflow(
            world(), "read", create.body, as_of=3, until=None, single_read=single_read, optimize=False
        )
        assert dataflow.as_of == 3
        assert (dataflow.until, dataflow.cls) == (
            (4, DataflowClass.ONE_SHOT_READ) if single_read else (None, DataflowClass.MAINTAINED)
        )


def test_a_read_without_the_flag_runs_on_maintenance_and_the_report_says_so(tmp_path: Path) -> None:
    """The output does not change when the flag is dropped: only the placement shows it."""
    text = """\
create-instance

initialization-complete

write-rows shard=r ts=0
  1 a

define-index source=1 index=2 shard=r key=[0] as-of=0 upper=1

schedule id=2

create-dataflow name=read as-of=0 FLAG
  import index=2
  export index=t4 on=1 key=[1]

schedule id=t4

peek id=t4 ts=0
----
1 "a"
"""
    import json

    placed = {}
    for flag in ("single-read", ""):
        path, report = tmp_path / "x.spec", tmp_path / "x.json"
        path.write_text(text.replace("FLAG", flag))
        assert main(["--json", str(report), str(path)]) == 0
        placed[flag] = json.loads(report.read_text())[0]["rendered"]["t4"]
    assert placed == {"single-read": [Role.INTERACTIVE.value], "": [Role.MAINTENANCE.value]}


def test_exports() -> None:
    body = [
        "  import index=2",
        "  export kind=materialized-view sink=5 on=1 shard=out",
        "  export kind=subscribe sink=t6 on=1 up-to=9",
        "  export kind=index index=7 on=1 key=[1]",
    ]
    made = world()
    dataflow = build_dataflow(made, "d", body, as_of=0, until=None, single_read=False, optimize=False)
    assert dataflow.sink_exports[GlobalId("u5")].connection == MaterializedViewSink("out")
    assert dataflow.sink_exports[GlobalId("t6")].connection == SubscribeSink(9)
    assert dataflow.index_exports[GlobalId("u7")].desc.key == (Ref(1),)
    assert made.sinks[GlobalId("u5")][0] == "out" and GlobalId("u7") in made.indexes


@pytest.mark.parametrize(
    "body, message",
    [
        (["import index=9", "export index=3 on=1 key=[0]"], "unknown index u9"),
        (["import index=2", "export index=3 on=8 key=[0]"], "unknown collection u8"),
        (["import index=2", "export index=3 on=1 key=[2]"], "key column 2 out of range for a 2-column schema"),
        (["import index=2"], "exports nothing"),
        (["import index=2", "explode"], 'unknown statement "explode"'),
        (["import source=1 shard=s schema=nope", "export index=3 on=1 key=[0]"], 'unknown schema "nope"'),
        (["import index=2", "build id=4", "  Frobnicate", "export index=3 on=4 key=[0]"], "line"),
    ],
)
def test_bad_bodies(body: list[str], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        build_dataflow(world(), "d", body, as_of=0, until=None, single_read=False, optimize=False)


def test_rows() -> None:
    schema = parse_schema("s", ["  a int32", "  b string nullable", "  c bool"])
    row = parse_row(schema, '  7 "x \\"y\\"" true', 0)
    assert format_row(schema, row) == '7 "x \\"y\\"" true'
    assert format_row(schema, parse_row(schema, "-1 null false", 1)) == "-1 null false"
    rows = [(2, None), (1, "b"), (None, "a"), (1, "a")]
    assert sorted(rows, key=sort_key) == [(1, "a"), (1, "b"), (2, None), (None, "a")]
    for line, message in [
        ("1 a", "row 3 has 2 values but schema has 3 columns"),
        ("x a true", 'parsing "x" as int32: invalid input syntax for type integer'),
        ("null a true", "not nullable"),
    ]:
        with pytest.raises(SpecError, match=message):
            parse_row(schema, line, 3)
    with pytest.raises(SpecError, match="unknown column type"):
        parse_schema("s", ["a quaternion"])


def test_rewrite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.spec"
    path.write_text("create-instance\n----\nwrong\n\n# kept\ndefine-schema name=x\n  a bigint\n----\n")
    assert main([str(path)]) == 1
    monkeypatch.setenv("REWRITE", "1")
    main([str(path)])
    assert path.read_text() == "create-instance\n----\nok\n\n# kept\ndefine-schema name=x\n  a bigint\n----\nok\n"
    monkeypatch.delenv("REWRITE")
    assert main([str(path)]) == 0
