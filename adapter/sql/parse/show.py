"""SHOW: objects, definitions, variables."""

from __future__ import annotations

from adapter.sql.parse.cursor import Cursor
from adapter.sql.parse.expressions import parse_expr
from adapter.sql.parse.lexer import STRING
from adapter.sql.statements import Show, ShowCreate, ShowVariable, Statement

# word sequences -> (what, kind of name that FROM/IN/ON takes)
_OBJECTS: tuple[tuple[tuple[str, ...], str], ...] = (
    (("databases",), "databases"),
    (("schemas",), "schemas"),
    (("tables",), "tables"),
    (("views",), "views"),
    (("materialized", "views"), "materialized views"),
    (("sources",), "sources"),
    (("subsources",), "subsources"),
    (("sinks",), "sinks"),
    (("indexes",), "indexes"),
    (("index",), "indexes"),
    (("keys",), "indexes"),
    (("columns",), "columns"),
    (("objects",), "objects"),
    (("types",), "types"),
    (("clusters",), "clusters"),
    (("cluster", "replicas"), "cluster replicas"),
    (("roles",), "roles"),
    (("users",), "roles"),
    (("secrets",), "secrets"),
    (("connections",), "connections"),
    (("network", "policies"), "network policies"),
    (("role", "membership"), "role membership"),
    (("privileges",), "privileges"),
    (("default", "privileges"), "default privileges"),
)
_KINDS = (
    ("materialized", "view"),
    ("view",),
    ("table",),
    ("source",),
    ("sink",),
    ("index",),
    ("connection",),
    ("cluster",),
    ("type",),
    ("schema",),
    ("database",),
    ("role",),
)


def parse_show(c: Cursor) -> Statement:
    pos = c.tok.start
    c.expect("show")
    redacted = c.at_words("redacted", "create") and c.take("redacted")
    if c.at("create") and c.ahead().kind == "word":
        c.advance()
        words: tuple[str, ...]
        for words in _KINDS:
            if c.take(*words):
                break
        else:
            c.expected("one of VIEW, MATERIALIZED VIEW, TABLE, SOURCE, SINK, INDEX, CONNECTION, CLUSTER or TYPE")
        return ShowCreate(kind=" ".join(words), name=c.qualified(), redacted=redacted, pos=pos, tag="SHOW")
    full = c.at("full", "extended") and c.ahead().kind == "word" and c.take_any("full", "extended") is not None
    for words, what in _OBJECTS:
        if c.at_words(*words):
            after = c.ahead(len(words))
            if len(words) == 1 and words[0] in ("index", "keys", "users") and after.kind != "word":
                continue
            c.take(*words)
            return _objects(c, what, full, pos)
    return _variable(c)


def _objects(c: Cursor, what: str, full: bool, pos: int) -> Show:
    on = None
    in_cluster = None
    like = None
    where = None
    while True:
        if c.at_words("in", "cluster"):
            c.take("in", "cluster")
            in_cluster = c.name()
        elif on is None and c.at("from", "in", "on", "for"):
            word = c.advance().value
            if word in ("on", "for") and c.at("table", "view", "source") and c.ahead().kind in ("word", "quoted"):
                c.advance()
            on = c.qualified()
        else:
            break
    if c.take("like"):
        if c.tok.kind != STRING:
            c.expected("literal string")
        like = c.advance().value
    elif c.take("where"):
        where = parse_expr(c)
    return Show(what=what, on=on, in_cluster=in_cluster, like=like, where=where, full=full, pos=pos, tag="SHOW")


def _variable(c: Cursor) -> ShowVariable:
    if c.take("all"):
        return ShowVariable(name=None, tag="SHOW")
    if c.take("time", "zone"):
        return ShowVariable(name="timezone", tag="SHOW")
    if c.take("transaction", "isolation", "level"):
        return ShowVariable(name="transaction_isolation", tag="SHOW")
    return ShowVariable(name=".".join(c.qualified()), tag="SHOW")
