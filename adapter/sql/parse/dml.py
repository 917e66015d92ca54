"""INSERT, UPDATE, DELETE, COPY, SUBSCRIBE, EXPLAIN: statements around queries."""

from __future__ import annotations

from adapter.sql import ast
from adapter.sql import statements as st
from adapter.sql.parse import options as opt
from adapter.sql.parse.cursor import Cursor
from adapter.sql.parse.ddl import parse_as_of, skip_rest
from adapter.sql.parse.expressions import parse_expr, parse_order_by, parse_select_item
from adapter.sql.parse.lexer import QUOTED, WORD
from adapter.sql.parse.queries import parse_query, parse_table_expr


def parse_select(c: Cursor) -> st.Statement:
    query = parse_query(c)
    return st.SelectStatement(query=query, as_of=parse_as_of(c), tag="SELECT")


def _target(c: Cursor, stop: tuple[str, ...]) -> ast.TableRef:
    pos = c.tok.start
    parts = c.qualified()
    alias = None
    if c.take("as") or (c.tok.kind == WORD and c.tok.value not in stop and c.at_name()) or c.tok.kind == QUOTED:
        alias = ast.Alias(c.name())
    return ast.TableRef(parts, alias, None, pos)


def parse_insert(c: Cursor) -> st.Statement:
    c.expect("insert")
    c.expect("into")
    table = _target(c, ("values", "default", "select", "with", "table", "returning"))
    columns: tuple[str, ...] | None = None
    if (
        c.tok.kind == "("
        and not (c.ahead().kind == WORD and c.ahead().value in ("select", "with", "values"))
        and c.ahead().kind != "("
    ):
        columns = c.names()
    query: ast.Query | None = None
    if c.take("default", "values"):
        pass
    else:
        query = parse_query(c)
    returning: list[ast.SelectItem] = []
    if c.take("returning"):
        returning.append(parse_select_item(c))
        while c.take_punct(","):
            returning.append(parse_select_item(c))
    return st.Insert(table=table, columns=columns, query=query, returning=tuple(returning), tag="INSERT")


def parse_update(c: Cursor) -> st.Statement:
    c.expect("update")
    table = _target(c, ("set",))
    c.expect("set")
    assignments: list[tuple[str, ast.Expr, int]] = []
    while True:
        pos = c.tok.start
        column = c.name()
        c.expect_op("=")
        assignments.append((column, parse_expr(c), pos))
        if not c.take_punct(","):
            break
    where = parse_expr(c) if c.take("where") else None
    return st.Update(table=table, assignments=tuple(assignments), where=where, tag="UPDATE")


def parse_delete(c: Cursor) -> st.Statement:
    c.expect("delete")
    c.expect("from")
    table = _target(c, ("using", "where"))
    using: list[ast.TableExpr] = []
    if c.take("using"):
        using.append(parse_table_expr(c))
        while c.take_punct(","):
            using.append(parse_table_expr(c))
    where = parse_expr(c) if c.take("where") else None
    return st.Delete(table=table, using=tuple(using), where=where, tag="DELETE")


def parse_copy(c: Cursor) -> st.Statement:
    pos = c.tok.start
    c.expect("copy")
    table: tuple[str, ...] | None = None
    columns: tuple[str, ...] | None = None
    statement: st.Statement | None = None
    if c.tok.kind == "(":
        c.advance()
        statement = parse_subscribe(c) if c.at("subscribe", "tail") else parse_select(c)
        c.expect_punct(")")
    else:
        c.take("into")
        table = c.qualified()
        if c.tok.kind == "(":
            columns = c.names()
    direction = c.expect_any("from", "to")
    if direction == "from" and statement is not None:
        c.expected("identifier")
    if c.at("stdin", "stdout") or c.tok.kind == "string":
        target = c.advance().value
    else:
        c.expected("STDIN" if direction == "from" else "STDOUT")
    options: st.Options = ()
    if c.take("with"):
        options = opt.parse_options(c) if c.tok.kind == "(" else opt.parse_bare_options(c)
    elif c.tok.kind == "(":
        options = opt.parse_options(c)
    elif c.at("csv", "delimiter", "null", "header", "binary"):
        bare: list[tuple[str, st.OptionValue]] = []
        while c.tok.kind == WORD:
            word = c.advance().value
            c.take("as")
            bare.append(
                ("format", word)
                if word in ("csv", "binary")
                else (word, c.string() if c.tok.kind == "string" else None)
            )
        options = tuple(bare)
    return st.Copy(
        direction=direction,
        table=table,
        columns=columns,
        statement=statement,
        target=target,
        options=options,
        pos=pos,
        tag="COPY",
    )


def parse_subscribe(c: Cursor) -> st.Statement:
    pos = c.tok.start
    c.expect_any("subscribe", "tail")
    c.take("to")
    relation: tuple[str, ...] | None = None
    query: ast.Query | None = None
    if c.tok.kind == "(":
        c.advance()
        query = parse_query(c)
        c.expect_punct(")")
    elif c.at("select", "values", "with"):
        query = parse_query(c)
    else:
        if c.at("table", "view", "source") and c.ahead().kind in (WORD, QUOTED):
            c.advance()
        relation = c.qualified()
    options: st.Options = ()
    if c.take("with"):
        options = opt.parse_options(c)
    as_of = parse_as_of(c)
    up_to = None
    if c.take("up"):
        c.expect("to")
        up_to = parse_expr(c)
    output = "diffs"
    order_by: tuple[ast.OrderItem, ...] = ()
    key: tuple[str, ...] = ()
    if c.take("envelope"):
        word = c.expect_any("upsert", "debezium")
        output = f"envelope_{word}"
        c.expect_punct("(")
        c.expect("key")
        key = c.names()
        c.expect_punct(")")
    elif c.take("within"):
        c.expect("timestamp", "order", "by")
        output = "within_timestamp_order_by"
        order_by = parse_order_by(c)
    if not options and c.take("with"):
        options = opt.parse_options(c)
    return st.Subscribe(
        relation=relation,
        query=query,
        options=options,
        as_of=as_of,
        up_to=up_to,
        output=output,
        order_by=order_by,
        key=key,
        pos=pos,
        tag="SUBSCRIBE",
    )


_STAGES = (
    (("raw", "plan"), "raw"),
    (("decorrelated", "plan"), "decorrelated"),
    (("locally", "optimized", "plan"), "locally_optimized"),
    (("optimized", "plan"), "optimized"),
    (("physical", "plan"), "physical"),
    (("plan", "insights"), "insights"),
    (("optimizer", "trace"), "trace"),
    (("plan",), "physical"),
)


def parse_explain(c: Cursor) -> st.Statement:
    pos = c.tok.start
    c.expect("explain")
    if c.take("analyze"):
        return _explain_analyze(c, pos)
    if c.at("timestamp") and c.ahead().kind == WORD and c.ahead().value in ("for", "as"):
        c.advance()
        format_ = _format(c)
        c.expect("for")
        return st.Explain(
            kind="timestamp", stage=None, format=format_, statement=parse_select(c), pos=pos, tag="EXPLAIN"
        )
    if c.take("filter", "pushdown"):
        c.expect("for")
        statement, target, broken, _ = _explainee(c)
        return st.Explain(
            kind="filter_pushdown",
            stage=None,
            format=None,
            statement=statement,
            target=target,
            broken=broken,
            pos=pos,
            tag="EXPLAIN",
        )
    if c.at_words("key", "schema") or c.at_words("value", "schema"):
        skip_rest(c)
        return st.Unsupported(what="EXPLAIN SCHEMA", tag="EXPLAIN")
    stage: str | None = None
    for words, name in _STAGES:
        if c.take(*words):
            stage = name
            break
    options: tuple[str, ...] = ()
    if c.at("with") and c.ahead().kind == "(":  # otherwise a query that starts with WITH
        c.advance()
        options = tuple(
            f"{name}={value}" if value is not None else name
            for name, value in opt.parse_options(c)
            if value not in ("false", "off")
        )
    format_ = _format(c)
    if stage is not None or options or format_ is not None:
        c.expect("for")
    else:
        c.take("for")
    statement, target, broken, replan = _explainee(c)
    return st.Explain(
        kind="plan",
        stage=stage,
        format=format_,
        options=options,
        statement=statement,
        target=target,
        broken=broken,
        replan=replan,
        pos=pos,
        tag="EXPLAIN",
    )


def _format(c: Cursor) -> str | None:
    if not c.take("as"):
        return None
    verbose = c.take("verbose")
    word = c.expect_any("text", "json", "dot", "sql")
    return f"verbose {word}" if verbose else word


def _explainee(c: Cursor) -> tuple[st.Statement | None, tuple[str, tuple[str, ...]] | None, bool, bool]:
    from adapter.sql.parse.ddl import parse_create

    broken = c.take("broken")
    replan = c.take("replan")
    for words in (("materialized", "view"), ("view",), ("index",)):
        if c.take(*words):
            return None, (" ".join(words), c.qualified()), broken, replan
    if c.at("create"):
        return parse_create(c), None, broken, replan
    if c.at("subscribe"):
        return parse_subscribe(c), None, broken, replan
    if c.at("insert"):
        return parse_insert(c), None, broken, replan
    if c.at("update"):
        return parse_update(c), None, broken, replan
    if c.at("delete"):
        return parse_delete(c), None, broken, replan
    return parse_select(c), None, broken, replan


def _explain_analyze(c: Cursor, pos: int) -> st.Statement:
    what: list[str] = []
    cluster = c.take("cluster")
    while True:
        what.append(c.expect_any("cpu", "memory", "hints"))
        if not c.take_punct(","):
            break
    options: tuple[str, ...] = ()
    if c.take("with"):
        c.expect("skew")
        options = ("skew",)
    target: tuple[str, tuple[str, ...]] | None = None
    if not cluster:
        c.expect("for")
        kind = "materialized view" if c.take("materialized", "view") else c.expect_any("index", "view")
        target = (kind, c.qualified())
    format_ = _format(c)
    return st.Explain(
        kind="analyze",
        stage=None,
        format=format_,
        options=options,
        target=target,
        what=tuple(what),
        pos=pos,
        tag="EXPLAIN",
    )
