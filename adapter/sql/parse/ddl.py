"""CREATE of relations, indexes, types, namespaces, clusters; DROP and COMMENT."""

from __future__ import annotations

from adapter.sql import ast
from adapter.sql import statements as st
from adapter.sql.parse import options as opt
from adapter.sql.parse.cursor import Cursor
from adapter.sql.parse.expressions import parse_expr, parse_order_by
from adapter.sql.parse.lexer import NUMBER, QUOTED, STRING, WORD
from adapter.sql.parse.queries import parse_query
from adapter.sql.parse.types import parse_interval_fields, parse_type
from mzlite.repr.errors import SqlError, unsupported


def parse_create(c: Cursor) -> st.Statement:
    pos = c.tok.start
    c.expect("create")
    or_replace = c.take("or", "replace")
    temporary = c.take_any("temp", "temporary") is not None
    if c.at("table") and not or_replace:
        return _table(c, temporary, pos)
    if c.take("view"):
        return _view(c, or_replace, temporary, pos)
    if c.take("materialized"):
        c.expect("view")
        return _materialized_view(c, or_replace, pos)
    if or_replace or temporary:
        c.expected(
            "VIEW, or MATERIALIZED VIEW after CREATE OR REPLACE"
            if or_replace
            else "VIEW or TABLE after CREATE TEMPORARY"
        )
    if c.at("index", "default", "unique", "inverted"):
        return _index(c, pos)
    word = c.tok.value if c.tok.kind == WORD else ""
    match word:
        case "database":
            c.advance()
            if_not_exists = c.take("if", "not", "exists")
            return st.CreateDatabase(name=c.name(), if_not_exists=if_not_exists, tag="CREATE DATABASE")
        case "schema":
            c.advance()
            if_not_exists = c.take("if", "not", "exists")
            return st.CreateSchema(name=c.qualified(), if_not_exists=if_not_exists, pos=pos, tag="CREATE SCHEMA")
        case "cluster":
            c.advance()
            return _cluster_replica(c) if c.take("replica") else _cluster(c)
        case "type":
            c.advance()
            return _type(c, pos)
        case "role" | "user":
            c.advance()
            name = c.name()
            return st.CreateRole(name=name, options=_words(c), tag="CREATE ROLE")
        case "source":
            c.advance()
            return _source(c, pos)
        case (
            "secret" | "connection" | "sink" | "function" | "trigger" | "sequence" | "extension" | "policy" | "network"
        ):
            skip_rest(c)
            return st.Unsupported(what=f"CREATE {word.upper()}", tag=f"CREATE {word.upper()}")
        case "replacement":
            skip_rest(c)
            return st.Unsupported(what="CREATE REPLACEMENT MATERIALIZED VIEW", tag="CREATE REPLACEMENT")
    c.expected(
        "DATABASE, SCHEMA, ROLE, TYPE, INDEX, SINK, SOURCE, [TEMPORARY] TABLE, SECRET, [OR REPLACE] [TEMPORARY] VIEW, "
        "or [OR REPLACE] MATERIALIZED VIEW after CREATE"
    )


def skip_rest(c: Cursor) -> tuple[str, ...]:
    """Accept everything up to the end of the statement; the words."""
    words: list[str] = []
    while c.tok.kind not in (";", "eof"):
        words.append(c.advance().value)
    return tuple(words)


def _words(c: Cursor) -> tuple[str, ...]:
    words: list[str] = []
    while c.tok.kind in (WORD, STRING, NUMBER, QUOTED) or c.tok.kind == ",":
        words.append(c.advance().value)
    return tuple(words)


def _with_options(c: Cursor) -> st.Options:
    return opt.parse_options(c) if c.take("with") else ()


def _in_cluster(c: Cursor) -> str | None:
    if not c.take("in", "cluster"):
        return None
    name = c.name()
    if c.take("replica"):
        c.name()
    return name


def _table(c: Cursor, temporary: bool, pos: int) -> st.Statement:
    c.expect("table")
    if_not_exists = c.take("if", "not", "exists")
    name = c.qualified()
    if c.take("from"):
        c.expect("source")
        skip_rest(c)
        return st.Unsupported(what="CREATE TABLE .. FROM SOURCE", tag="CREATE TABLE")
    if c.at("as"):
        skip_rest(c)
        return st.Unsupported(what="CREATE TABLE .. AS", tag="CREATE TABLE")
    c.expect_punct("(")
    columns: list[st.ColumnDef] = []
    keys: list[tuple[bool, tuple[str, ...]]] = []
    while c.tok.kind != ")":
        if (
            c.at("constraint")
            and c.ahead(2).kind == WORD
            and c.ahead(2).value in ("primary", "unique", "foreign", "check")
        ):
            c.advance()
            c.name()
        if c.at_words("primary", "key") and c.ahead(2).kind == "(":
            c.take("primary", "key")
            keys.append((True, c.names()))
        elif c.at("unique") and (c.ahead().kind == "(" or c.at_words("unique", "nulls")):
            c.advance()
            if c.take("nulls"):
                c.take("not")
                c.expect("distinct")
            keys.append((False, c.names()))
        elif c.at("foreign", "check") and c.ahead().kind in ("(", WORD):
            what = "FOREIGN KEY" if c.at("foreign") else "CHECK"
            raise unsupported(f"CREATE TABLE with {what} constraint", position=c.tok.start + 1)
        else:
            columns.append(column_def(c))
        if not c.take_punct(","):
            break
    c.expect_punct(")")
    options = _with_options(c)
    return st.CreateTable(
        name=name,
        columns=tuple(columns),
        keys=tuple(keys),
        if_not_exists=if_not_exists,
        temporary=temporary,
        options=options,
        pos=pos,
        tag="CREATE TABLE",
    )


def column_def(c: Cursor) -> st.ColumnDef:
    pos = c.tok.start
    name = c.name()
    typ = parse_type(c)
    not_null = unique = primary = False
    default: ast.Expr | None = None
    refused: str | None = None
    while True:
        if c.take("constraint"):
            c.name()
        if c.take("collate"):
            c.qualified()
            refused = "CREATE TABLE with column collation"
        elif c.take("not", "null"):
            not_null = True
        elif c.take("null"):
            pass
        elif c.take("default"):
            default = parse_expr(c, 3)
        elif c.take("primary", "key"):
            primary = not_null = True
        elif c.take("unique"):
            unique = True
        elif c.at("references", "check", "generated"):
            what = c.tok.value.upper()
            if what == "REFERENCES":
                c.advance()
                c.qualified()
                if c.tok.kind == "(":
                    c.names()
            elif what == "CHECK":
                c.advance()
                c.expect_punct("(")
                parse_expr(c)
                c.expect_punct(")")
            refused = f"CREATE TABLE with column constraint: {what}"
            if what == "GENERATED":
                raise unsupported(refused, position=pos + 1)
        else:
            break
    return st.ColumnDef(name, typ, not_null, default, unique, primary, refused, pos)


def _view(c: Cursor, or_replace: bool, temporary: bool, pos: int) -> st.Statement:
    if_not_exists = c.take("if", "not", "exists")
    name = c.qualified()
    columns = c.names() if c.tok.kind == "(" else ()
    _with_options(c)
    c.expect("as")
    return st.CreateView(
        name=name,
        columns=columns,
        query=parse_query(c),
        if_not_exists=if_not_exists,
        or_replace=or_replace,
        temporary=temporary,
        pos=pos,
        tag="CREATE VIEW",
    )


def _materialized_view(c: Cursor, or_replace: bool, pos: int) -> st.Statement:
    if_not_exists = c.take("if", "not", "exists")
    name = c.qualified()
    columns = c.names() if c.tok.kind == "(" else ()
    in_cluster = _in_cluster(c)
    options: list[tuple[str, st.OptionValue | ast.Expr | tuple[ast.Expr, ast.Expr | None]]] = []
    if c.take("with"):
        c.expect_punct("(")
        while c.tok.kind != ")":
            if c.take("refresh"):
                c.take_op("=")
                options.append(_refresh(c))
            elif c.take("assert", "not", "null"):
                c.take_op("=")
                options.append(("assert not null", c.name()))
            else:
                options.append(opt.parse_option(c))
            if not c.take_punct(","):
                break
        c.expect_punct(")")
    c.expect("as")
    query = parse_query(c)
    as_of = parse_as_of(c)
    return st.CreateMaterializedView(
        name=name,
        columns=columns,
        query=query,
        in_cluster=in_cluster,
        options=tuple(options),
        as_of=as_of,
        if_not_exists=if_not_exists,
        or_replace=or_replace,
        pos=pos,
        tag="CREATE MATERIALIZED VIEW",
    )


def _refresh(c: Cursor) -> tuple[str, st.OptionValue | ast.Expr | tuple[ast.Expr, ast.Expr | None]]:
    if c.take("on", "commit"):
        return "refresh on commit", None
    if c.take("at"):
        if c.take("creation"):
            return "refresh at creation", None
        return "refresh at", parse_expr(c)
    if not c.take("every"):
        c.expected("one of ON or AT or EVERY")
    pos = c.tok.start
    value = c.string()
    first, last, precision = parse_interval_fields(c)
    every = ast.Interval(value, first, last, precision, pos)
    aligned = None
    if c.take("aligned"):
        c.expect("to")
        aligned = parse_expr(c)
    return "refresh every", (every, aligned)


def parse_as_of(c: Cursor) -> st.AsOf | None:
    if not c.take("as"):
        return None
    c.expect("of")
    at_least = c.take("at", "least")
    if c.tok.kind in (";", "eof"):
        raise SqlError("42601", "Expected a timestamp value after 'AS OF', found EOF", position=c.tok.start + 1)
    return st.AsOf(parse_expr(c), at_least)


def _index(c: Cursor, pos: int) -> st.Statement:
    default = c.take("default")
    c.take("unique")
    c.expect("index")
    if_not_exists = c.take("if", "not", "exists")
    name = None
    if not c.at("on") and not c.at_words("in", "cluster"):
        name = c.qualified()
    in_cluster = _in_cluster(c)
    c.expect("on")
    table_pos = c.tok.start
    on = ast.TableRef(c.qualified(), pos=table_pos)
    key: tuple[ast.Expr, ...] | None = None
    if c.take("using"):
        method = c.name()
        if method != "arrangement":
            c.fail(f'index method "{method}" not supported')
    if not default:
        c.expect_punct("(")
        if c.tok.kind == ")":
            key = ()
        else:
            # ASC, DESC and NULLS order are accepted: an arrangement has no order to choose.
            key = tuple(item.expr for item in parse_order_by(c))
        c.expect_punct(")")
    return st.CreateIndex(
        name=name,
        on=on,
        key=key,
        in_cluster=in_cluster,
        options=_with_options(c),
        if_not_exists=if_not_exists,
        pos=pos,
        tag="CREATE INDEX",
    )


def _type(c: Cursor, pos: int) -> st.Statement:
    name = c.qualified()
    c.expect("as")
    arguments: list[tuple[str, ast.TypeName]] = []
    if c.tok.kind == "(":
        c.advance()
        while c.tok.kind != ")":
            field = c.name()
            arguments.append((field, parse_type(c)))
            if not c.take_punct(","):
                break
        c.expect_punct(")")
        return st.CreateType(name=name, kind="record", arguments=tuple(arguments), pos=pos, tag="CREATE TYPE")
    kind = c.expect_any("list", "map")
    c.expect_punct("(")
    while c.tok.kind != ")":
        if kind == "map" and not c.at("key", "value"):
            c.expected("one of KEY or VALUE")
        if kind == "list" and not c.at("element"):
            c.expected("ELEMENT")
        option = c.name()
        c.expect("type")
        c.take_op("=")
        arguments.append((option, parse_type(c)))
        if not c.take_punct(","):
            break
    c.expect_punct(")")
    return st.CreateType(name=name, kind=kind, arguments=tuple(arguments), pos=pos, tag="CREATE TYPE")


def _cluster(c: Cursor) -> st.Statement:
    if_not_exists = c.take("if", "not", "exists")
    name = c.name()
    parenthesised = c.tok.kind == "("
    if parenthesised:
        c.advance()
    options: list[tuple[str, st.OptionValue]] = []
    replicas: list[tuple[str, st.Options]] | None = None
    while c.tok.kind == WORD:
        if c.at("replicas"):
            c.advance()
            c.take_op("=")
            c.expect_punct("(")
            replicas = [] if replicas is None else replicas
            while c.tok.kind != ")":
                replica = c.name()
                replicas.append((replica, opt.parse_options(c)))
                if not c.take_punct(","):
                    break
            c.expect_punct(")")
        else:
            options.append(cluster_option(c))
        if not c.take_punct(","):
            break
    if parenthesised:
        c.expect_punct(")")
    return st.CreateCluster(
        name=name,
        options=tuple(options),
        replicas=None if replicas is None else tuple(replicas),
        if_not_exists=if_not_exists,
        tag="CREATE CLUSTER",
    )


_CLUSTER_OPTIONS = (
    ("availability", "zones"),
    ("disk",),
    ("introspection", "debugging"),
    ("introspection", "interval"),
    ("managed",),
    ("replication", "factor"),
    ("size",),
    ("schedule",),
    ("workload", "class"),
    ("workers",),
)


def cluster_option(c: Cursor) -> tuple[str, st.OptionValue]:
    for words in _CLUSTER_OPTIONS:
        if c.take(*words):
            break
    else:
        c.expected("cluster option")
    c.take_op("=")
    name = " ".join(words)
    if name == "schedule":
        if c.take("manual"):
            return name, "manual"
        if not c.take("on"):
            c.expected("one of MANUAL or ON")
        c.expect("refresh")
        if c.tok.kind == "(":
            opt.parse_options(c)
        return name, "on refresh"
    if c.tok.kind in (",", ")", ";", "eof"):
        return name, None
    return name, opt.parse_value(c)


def _cluster_replica(c: Cursor) -> st.Statement:
    cluster = c.name()
    c.expect_punct(".")
    name = c.name()
    if c.tok.kind == "(":
        options = opt.parse_options(c)
    elif c.tok.kind == WORD:
        options = opt.parse_bare_options(c)
    else:
        options = ()
    return st.CreateClusterReplica(cluster=cluster, name=name, options=options, tag="CREATE CLUSTER REPLICA")


def _source(c: Cursor, pos: int) -> st.Statement:
    if_not_exists = c.take("if", "not", "exists")
    name = c.qualified()
    if c.tok.kind == "(":
        c.names()
    in_cluster = _in_cluster(c)
    c.expect("from")
    if not c.take("load", "generator"):
        connector = c.tok.value.upper()
        skip_rest(c)
        return st.CreateSource(name=name, connector=connector, generator=None, pos=pos, tag="CREATE SOURCE")
    generator_words = [c.name()]
    if generator_words[0] in ("key",):
        generator_words.append(c.name())
    generator_options = opt.parse_options(c) if c.tok.kind == "(" else ()
    for_all = False
    if c.take("for"):
        for_all = c.take("all", "tables")
        if not for_all:
            skip_rest(c)
    options: st.Options = ()
    while c.at("include", "envelope", "expose"):
        c.advance()
        while c.tok.kind in (WORD, QUOTED) and not c.at("with", "for"):
            c.advance()
    if c.take("for", "all", "tables"):
        for_all = True
    options = _with_options(c)
    return st.CreateSource(
        name=name,
        connector="LOAD GENERATOR",
        generator=" ".join(generator_words),
        generator_options=generator_options,
        in_cluster=in_cluster,
        for_all_tables=for_all,
        if_not_exists=if_not_exists,
        options=options,
        pos=pos,
        tag="CREATE SOURCE",
    )


_DROP_KINDS = (
    ("materialized", "view"),
    ("cluster", "replica"),
    ("network", "policy"),
    ("table",),
    ("view",),
    ("index",),
    ("source",),
    ("sink",),
    ("type",),
    ("schema",),
    ("database",),
    ("cluster",),
    ("role",),
    ("user",),
    ("secret",),
    ("connection",),
)


def object_kind(c: Cursor) -> str:
    """The kind of object that DROP, ALTER and COMMENT name."""
    for words in _DROP_KINDS:
        if c.take(*words):
            kind = " ".join(words)
            return "role" if kind == "user" else kind
    c.expected(
        "one of TABLE, VIEW, MATERIALIZED VIEW, SOURCE, SINK, INDEX, TYPE, ROLE, CLUSTER, SECRET, CONNECTION, DATABASE, or SCHEMA"
    )


def parse_drop(c: Cursor) -> st.Statement:
    pos = c.tok.start
    c.expect("drop")
    if c.at("owned"):
        return st.Accepted(words=skip_rest(c), tag="DROP OWNED")
    kind = object_kind(c)
    if_exists = c.take("if", "exists")
    names = [c.qualified()]
    while c.take_punct(","):
        names.append(c.qualified())
    cascade = c.take("cascade")
    restrict = not cascade and c.take("restrict")
    return st.Drop(
        kind=kind,
        names=tuple(names),
        if_exists=if_exists,
        cascade=cascade,
        restrict=restrict,
        pos=pos,
        tag=f"DROP {kind.upper()}",
    )


def parse_comment(c: Cursor) -> st.Statement:
    pos = c.tok.start
    c.expect("comment")
    c.expect("on")
    kind = "column" if c.take("column") else "function" if c.take("function") else object_kind(c)
    name = c.qualified()
    c.expect("is")
    comment = None if c.take("null") else c.string()
    return st.Comment(kind=kind, name=name, comment=comment, pos=pos, tag="COMMENT")
