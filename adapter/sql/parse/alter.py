"""ALTER, and the privilege statements that are accepted without effect."""

from __future__ import annotations

from adapter.sql import statements as st
from adapter.sql.parse import options as opt
from adapter.sql.parse.cursor import Cursor
from adapter.sql.parse.ddl import cluster_option, column_def, object_kind, skip_rest
from adapter.sql.parse.lexer import NUMBER, QUOTED, STRING, WORD


def parse_alter(c: Cursor) -> st.Statement:
    pos = c.tok.start
    c.expect("alter")
    if c.take("system"):
        return _alter_system(c)
    if c.at("default"):
        return st.Accepted(words=skip_rest(c), tag="ALTER DEFAULT PRIVILEGES")
    kind = object_kind(c)
    tag = f"ALTER {kind.upper()}"
    if_exists = c.take("if", "exists")
    name = c.qualified()

    def alter(action: str, **fields: object) -> st.Alter:
        return st.Alter(kind=kind, name=name, action=action, if_exists=if_exists, pos=pos, tag=tag, **fields)  # type: ignore[arg-type]

    if kind in ("role", "secret", "connection", "sink", "network policy"):
        if kind == "role" or c.at("owner", "rename"):
            words = skip_rest(c)
            if kind != "role":
                return st.Unsupported(what=tag, tag=tag)
            return st.Accepted(words=("alter", "role", *name, *words), tag=tag)
        skip_rest(c)
        return st.Unsupported(what=tag, tag=tag)
    if c.take("rename"):
        if c.take("column"):
            skip_rest(c)
            return st.Unsupported(what=f"{tag} ... RENAME COLUMN", tag=tag)
        c.expect("to")
        return alter("rename", to=c.name())
    if c.take("swap"):
        c.expect("with")
        return alter("swap", to=c.name())
    if c.take("owner"):
        c.expect("to")
        c.name()
        return alter("owner")
    if c.take("add"):
        if not c.take("column"):
            skip_rest(c)
            return st.Unsupported(what=f"{tag} ... ADD", tag=tag)
        column_exists = c.take("if", "not", "exists")
        return alter("add_column", column=column_def(c), options=(("if not exists", None),) if column_exists else ())
    if c.take("set"):
        if c.take("cluster"):
            c.take_op("=")
            return alter("set_cluster", to=c.name())
        if c.take("schema"):
            skip_rest(c)
            return st.Unsupported(what=f"{tag} ... SET SCHEMA", tag=tag)
        return alter("set", options=_settings(c, kind))
    if c.take("reset"):
        parenthesised = c.take_punct("(")
        names: list[str] = []
        while c.tok.kind == WORD:
            option: list[str] = []
            while c.tok.kind == WORD:
                option.append(c.advance().value)
            names.append(" ".join(option))
            if not c.take_punct(","):
                break
        if parenthesised:
            c.expect_punct(")")
        return alter("reset", names=tuple(names))
    if c.at("apply", "drop", "alter", "inherit"):
        skip_rest(c)
        return st.Unsupported(what=tag, tag=tag)
    c.expected("one of OWNER or RENAME or RESET or SET or SWAP")


def _settings(c: Cursor, kind: str) -> st.Options:
    parenthesised = c.take_punct("(")
    out: list[tuple[str, st.OptionValue]] = []
    while c.tok.kind == WORD:
        out.append(cluster_option(c) if kind == "cluster" else opt.parse_option(c))
        if not c.take_punct(","):
            break
    if parenthesised:
        c.expect_punct(")")
    # WITH (WAIT FOR …): how a graceful reconfiguration waits; here a reconfiguration is immediate.
    if c.take("with"):
        opt.parse_options(c)
    return tuple(out)


def _alter_system(c: Cursor) -> st.Statement:
    if c.take("reset"):
        if c.take("all"):
            return st.SetVariable(name=None, values=None, scope="system", tag="ALTER SYSTEM")
        return st.SetVariable(name=".".join(c.qualified()), values=None, scope="system", tag="ALTER SYSTEM")
    c.expect("set")
    name = ".".join(c.qualified())
    if not c.take_op("="):
        c.expect("to")
    return st.SetVariable(name=name, values=variable_values(c), scope="system", tag="ALTER SYSTEM")


def variable_values(c: Cursor, single: bool = False) -> tuple[str, ...] | None:
    """Values of SET, as text; None for DEFAULT."""
    if c.take("default"):
        return None
    out: list[str] = []
    while True:
        sign = "-" if c.take_op("-") else ""
        if c.tok.kind not in (STRING, NUMBER, WORD, QUOTED):
            c.expected("variable value")
        out.append(sign + c.advance().value)
        if single or not c.take_punct(","):
            return tuple(out)


def parse_grant(c: Cursor) -> st.Statement:
    """GRANT and REVOKE: mzlite has no privileges; well-formed enough is enough."""
    word = c.advance().value
    words = skip_rest(c)
    if not words:
        c.expected("one of privileges or roles")
    return st.Accepted(words=words, tag=word.upper())
