"""Statements: splitting a query string, dispatch on the first word, and the session statements."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from adapter.sql import ast
from adapter.sql import statements as st
from adapter.sql.parse import alter, ddl, dml
from adapter.sql.parse.alter import variable_values
from adapter.sql.parse.cursor import Cursor
from adapter.sql.parse.expressions import parse_exprs
from adapter.sql.parse.lexer import tokenize
from adapter.sql.parse.options import parse_options
from adapter.sql.parse.show import parse_show
from adapter.sql.parse.types import parse_type
from mzlite.repr.errors import SqlError

MAX_STATEMENT_BYTES = 8_000_000


def parse_statements(text: str) -> list[st.Statement]:
    """The statements of a query string; none for blanks and comments. SqlError 42601 with a position."""
    if len(text) > MAX_STATEMENT_BYTES:
        raise SqlError("54000", f"statement batch size cannot exceed {MAX_STATEMENT_BYTES // 1_000_000}.0 MB")
    c = Cursor(text, tokenize(text))
    out: list[st.Statement] = []
    while True:
        while c.take_punct(";"):
            pass
        if c.tok.kind == "eof":
            return out
        start = c.tok.start
        c.depth = 0
        c.max_param = 0
        statement = parse_statement(c)
        if c.tok.kind not in (";", "eof"):
            c.expected("end of statement")
        end = c.tokens[c.i - 1].end
        out.append(msgspec.structs.replace(statement, text=text[start:end], start=start, parameter_count=c.max_param))


def parse_statement(c: Cursor) -> st.Statement:
    if c.tok.kind == "(":
        return dml.parse_select(c)
    rule = _RULES.get(c.tok.value) if c.tok.kind == "word" else None
    if rule is None:
        c.expected("a keyword at the beginning of a statement")
    return rule(c)


def _begin(c: Cursor) -> st.Statement:
    starts = c.tok.value == "start"
    c.advance()
    if starts:
        c.expect("transaction")
    else:
        c.take_any("work", "transaction")
    isolation, read_only = _transaction_modes(c)
    tag = "START TRANSACTION" if starts else "BEGIN"
    return st.Begin(isolation=isolation, read_only=read_only, starts=starts, tag=tag)


def _transaction_modes(c: Cursor, required: bool = False) -> tuple[str | None, bool | None]:
    isolation: str | None = None
    read_only: bool | None = None
    while True:
        if c.take("isolation"):
            c.expect("level")
            if c.take("read"):
                isolation = "read " + c.expect_any("committed", "uncommitted")
            elif c.take("repeatable"):
                c.expect("read")
                isolation = "repeatable read"
            elif c.take("strong"):
                c.expect("session", "serializable")
                isolation = "strong session serializable"
            elif c.take("strict"):
                c.expect("serializable")
                isolation = "strict serializable"
            else:
                c.expect_any("serializable")
                isolation = "serializable"
        elif c.take("read"):
            read_only = c.expect_any("only", "write") == "only"
        elif c.at("not") or c.at("deferrable"):
            c.take("not")
            c.expect("deferrable")
        else:
            if required and isolation is None and read_only is None:
                c.expected("transaction mode")
            return isolation, read_only
        c.take_punct(",")


def _end(c: Cursor) -> st.Statement:
    word = c.advance().value
    c.take_any("work", "transaction")
    chain = False
    if c.take("and"):
        chain = not c.take("no")
        c.expect("chain")
    if word in ("commit", "end"):
        return st.Commit(chain=chain, tag="COMMIT")
    return st.Rollback(chain=chain, tag="ROLLBACK")


def _set(c: Cursor) -> st.Statement:
    c.advance()
    if c.take("transaction"):
        isolation, read_only = _transaction_modes(c, required=True)
        return st.SetTransaction(isolation=isolation, read_only=read_only, tag="SET")
    if c.at_words("session", "characteristics"):
        c.take("session", "characteristics")
        c.expect("as", "transaction")
        isolation, read_only = _transaction_modes(c)
        return st.SetTransaction(isolation=isolation, read_only=read_only, session=True, tag="SET")
    scope = "session"
    if c.at("session", "local") and c.ahead().kind in ("word", "quoted") and c.ahead().value != "to":
        scope = c.advance().value
    if c.take("time", "zone"):
        values = ("UTC",) if c.take("local") else variable_values(c)
        return st.SetVariable(name="timezone", values=values, scope=scope, tag="SET")
    if c.at("schema") and c.ahead().kind == "string":
        c.advance()
        return st.SetVariable(name="search_path", values=(c.string(),), scope=scope, tag="SET")
    if c.at("names") and c.ahead().kind in ("string", "word") and c.ahead().value != "to":
        c.advance()
        return st.SetVariable(name="client_encoding", values=variable_values(c), scope=scope, tag="SET")
    name = ".".join(c.qualified())
    if not c.take_op("=") and not c.take("to"):
        c.expected("equals sign or TO")
    values = variable_values(c, single=name == "schema")
    if name == "schema":
        name = "search_path"
    return st.SetVariable(name=name, values=values, scope=scope, tag="SET")


def _reset(c: Cursor) -> st.Statement:
    c.advance()
    if c.take("all"):
        return st.SetVariable(name=None, values=None, tag="RESET")
    if c.take("time", "zone"):
        return st.SetVariable(name="timezone", values=None, tag="RESET")
    name = ".".join(c.qualified())
    return st.SetVariable(name="search_path" if name == "schema" else name, values=None, tag="RESET")


def _prepare(c: Cursor) -> st.Statement:
    c.advance()
    name = c.name()
    types = []
    if c.take_punct("("):
        while c.tok.kind != ")":
            types.append(parse_type(c))
            if not c.take_punct(","):
                break
        c.expect_punct(")")
    c.expect("as")
    start = c.tok.start
    inner = parse_statement(c)
    end = c.tokens[c.i - 1].end
    inner = msgspec.structs.replace(inner, text=c.source[start:end], start=start, parameter_count=c.max_param)
    c.max_param = 0
    return st.Prepare(name=name, statement=inner, types=tuple(types), tag="PREPARE")


def _execute(c: Cursor) -> st.Statement:
    c.advance()
    name = c.name()
    args: tuple[ast.Expr, ...] = ()
    if c.take_punct("("):
        args = () if c.tok.kind == ")" else parse_exprs(c)
        c.expect_punct(")")
    return st.Execute(name=name, args=args, tag="EXECUTE")


def _deallocate(c: Cursor) -> st.Statement:
    c.advance()
    c.take("prepare")
    return st.Deallocate(name=None if c.take("all") else c.name(), tag="DEALLOCATE")


def _declare(c: Cursor) -> st.Statement:
    c.advance()
    name = c.name()
    while c.at("binary", "insensitive", "asensitive", "scroll", "no"):
        c.advance()
    c.expect("cursor")
    hold = False
    if c.take_any("with", "without") is not None:
        hold = c.tokens[c.i - 1].value == "with"
        c.expect("hold")
    c.expect("for")
    start = c.tok.start
    inner = parse_statement(c)
    end = c.tokens[c.i - 1].end
    inner = msgspec.structs.replace(inner, text=c.source[start:end], start=start, parameter_count=c.max_param)
    return st.Declare(name=name, statement=inner, hold=hold, tag="DECLARE CURSOR")


def _fetch(c: Cursor) -> st.Statement:
    c.advance()
    c.take_any("forward", "next")
    count: int | None = 1
    if c.take("all"):
        count = None
    elif c.tok.kind == "number":
        count = c.integer()
    c.take_any("from", "in")
    name = c.name()
    options: st.Options = ()
    if c.take("with"):
        options = parse_options(c)
    return st.Fetch(name=name, count=count, options=options, tag="FETCH")


def _close(c: Cursor) -> st.Statement:
    c.advance()
    return st.Close(name="all" if c.take("all") else c.name(), tag="CLOSE CURSOR")


def _discard(c: Cursor) -> st.Statement:
    c.advance()
    what = c.expect_any("all", "plans", "sequences", "temp", "temporary")
    return st.Discard(what="temp" if what == "temporary" else what, tag=f"DISCARD {what.upper()}")


def _accepted(tag: str) -> Callable[[Cursor], st.Statement]:
    def rule(c: Cursor) -> st.Statement:
        return st.Accepted(words=ddl.skip_rest(c), tag=tag)

    return rule


def _unsupported(what: str) -> Callable[[Cursor], st.Statement]:
    def rule(c: Cursor) -> st.Statement:
        ddl.skip_rest(c)
        return st.Unsupported(what=what, tag=what)

    return rule


_RULES: dict[str, Callable[[Cursor], st.Statement]] = {
    "select": dml.parse_select,
    "with": dml.parse_select,
    "values": dml.parse_select,
    "table": dml.parse_select,
    "insert": dml.parse_insert,
    "update": dml.parse_update,
    "delete": dml.parse_delete,
    "copy": dml.parse_copy,
    "subscribe": dml.parse_subscribe,
    "tail": dml.parse_subscribe,
    "explain": dml.parse_explain,
    "create": ddl.parse_create,
    "drop": ddl.parse_drop,
    "comment": ddl.parse_comment,
    "alter": alter.parse_alter,
    "grant": alter.parse_grant,
    "revoke": alter.parse_grant,
    "reassign": _accepted("REASSIGN OWNED"),
    "show": parse_show,
    "set": _set,
    "reset": _reset,
    "begin": _begin,
    "start": _begin,
    "commit": _end,
    "end": _end,
    "rollback": _end,
    "abort": _end,
    "prepare": _prepare,
    "execute": _execute,
    "deallocate": _deallocate,
    "declare": _declare,
    "fetch": _fetch,
    "close": _close,
    "discard": _discard,
    "unlisten": _accepted("UNLISTEN"),
    "vacuum": _accepted("VACUUM"),
    "analyze": _accepted("ANALYZE"),
    "validate": _unsupported("VALIDATE CONNECTION"),
    "inspect": _unsupported("INSPECT"),
    "savepoint": _unsupported("SAVEPOINT"),
    "release": _unsupported("RELEASE"),
    "truncate": _unsupported("TRUNCATE"),
    "lock": _unsupported("LOCK"),
    "listen": _unsupported("LISTEN"),
    "notify": _unsupported("NOTIFY"),
    "call": _unsupported("CALL"),
    "merge": _unsupported("MERGE"),
}
