"""Schemas of specs: named lists of typed columns; rows of tokens in, rows of text out."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from mzlite.driver.spec import SpecError
from mzlite.repr.column import Column
from mzlite.repr.datum import column_to_datums
from mzlite.repr.errors import SqlError
from mzlite.repr.text import format_datum, parse_datum
from mzlite.repr.typenames import type_by_name
from mzlite.repr.types import BOOL as BOOLEAN
from mzlite.repr.types import BYTEA, INT2, INT4, INT8, TEXT, ColumnType, RelationDesc, RelationType, ScalarType

_TOKEN = re.compile(r'\s*("(?:[^"\\]|\\.)*"|\S+)')
# The names a driver's schema has for SQL types; errors speak of these.
_NAMES: dict[str, ScalarType] = {
    "int16": INT2,
    "int32": INT4,
    "int64": INT8,
    "string": TEXT,
    "bytes": BYTEA,
    "bool": BOOLEAN,
}
_SHOWN = {"int2": "int16", "int4": "int32", "int8": "int64", "text": "string", "bytea": "bytes"}


class Schema(msgspec.Struct, frozen=True):
    name: str
    desc: RelationDesc

    @property
    def typ(self) -> RelationType:
        return self.desc.typ

    @property
    def types(self) -> tuple[ScalarType, ...]:
        return tuple(c.scalar for c in self.desc.typ.columns)


DEFAULT = Schema(
    "default", RelationDesc(("key", "value"), RelationType((ColumnType(INT8, False), ColumnType(TEXT, False))))
)


def parse_schema(name: str, body: list[str]) -> Schema:
    """`column type [nullable]` lines."""
    names = []
    columns = []
    for line in body:
        words = line.split()
        if len(words) not in (2, 3) or (len(words) == 3 and words[2] != "nullable"):
            raise SpecError(f"schema column must be `name type [nullable]`, found {line.strip()!r}")
        typ = _NAMES.get(words[1])
        if typ is None:
            typ = type_by_name(words[1])
        if typ is None:
            raise SpecError(f"unknown column type {words[1]!r}".replace("'", '"'))
        names.append(words[0])
        columns.append(ColumnType(typ, len(words) == 3))
    return Schema(name, RelationDesc(tuple(names), RelationType(tuple(columns))))


def parse_row(schema: Schema, line: str, position: int) -> tuple[Any, ...]:
    """One row of tokens as datums."""
    tokens = _TOKEN.findall(line)
    columns = schema.typ.columns
    if len(tokens) != len(columns):
        raise SpecError(f"row {position} has {len(tokens)} values but schema has {len(columns)} columns")
    row: list[Any] = []
    for token, column in zip(tokens, columns):
        if token == "null":
            if not column.nullable:
                raise SpecError(f"row {position} has a null in a column that is not nullable")
            row.append(None)
            continue
        text = re.sub(r"\\(.)", r"\1", token[1:-1]) if token[0] == '"' and len(token) > 1 else token
        try:
            row.append(parse_datum(column.scalar, text))
        except SqlError as error:
            shown = _SHOWN.get(column.scalar.kind, column.scalar.kind)
            raise SpecError(f'parsing "{text}" as {shown}: {error.message}') from None
    return tuple(row)


def format_value(typ: ScalarType, datum: Any) -> str:
    """Text in double quotes, the rest as SQL prints it."""
    if datum is None:
        return "null"
    if typ.kind == "bool":
        return "true" if datum else "false"
    text = format_datum(typ, datum)
    if typ.kind in ("text", "varchar", "bpchar", "name", "char"):
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return text


def rows_of(schema: Schema, columns: tuple[Column, ...], count: int) -> list[tuple[Any, ...]]:
    if not columns:
        return [()] * count
    return list(zip(*(column_to_datums(t, c) for t, c in zip(schema.types, columns))))


def sort_key(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """SQL order, nulls last."""
    return tuple((value is None, 0 if value is None else value) for value in row)


def format_row(schema: Schema, row: tuple[Any, ...]) -> str:
    return " ".join(format_value(t, v) for t, v in zip(schema.types, row))
