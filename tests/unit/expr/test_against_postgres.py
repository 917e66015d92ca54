"""Scalar expressions give what PostgreSQL gives: a few hundred of them, compared as text."""

from __future__ import annotations

import re
from pathlib import Path

import psycopg

from mzlite.repr.errors import SqlError
from tests.unit.expr.planning import text

_EXPRESSIONS = Path(__file__).with_name("postgres_expressions.txt")


def expressions() -> list[str]:
    lines = _EXPRESSIONS.read_text().splitlines()
    return [line for line in lines if line.strip() and not line.startswith("#")]


def ours(expression: str) -> str | None:
    try:
        return text(f"({expression})::text")
    except SqlError as error:
        return f"error class {error.sqlstate[:2]}"


def theirs(connection: psycopg.Connection[tuple[str | None]], expression: str) -> str | None:
    try:
        row = connection.execute(f"SELECT ({expression})::text".encode()).fetchone()
    except psycopg.Error as error:
        return f"error class {(error.sqlstate or '')[:2]}"
    assert row is not None
    # Materialize writes the month of an interval out.
    return None if row[0] is None else re.sub(r"\bmon(s?)\b", r"month\1", row[0])


def test_expressions_agree(postgres_dsn: str) -> None:
    with psycopg.connect(postgres_dsn, autocommit=True) as connection:
        connection.execute("SET timezone = 'UTC'")
        different = []
        for expression in expressions():
            a, b = ours(expression), theirs(connection, expression)
            if a != b:
                different.append(f"{expression}: {a!r}, PostgreSQL {b!r}")
    assert not different, "\n".join(different)
