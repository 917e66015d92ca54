"""Table functions: names and types for the planner, and their rows for the engine.

    owner, columns, errors = call_table_function(func, args, n)

args: columns of n rows. Output row j belongs to input row owner[j] (ascending) and is columns[..][j]. errors: failed
input rows and their errors, or None. A strict function makes no rows of a row with a NULL argument.
Source: Materialize's `expr/relation/func.rs` (TableFunc).
"""

from __future__ import annotations

import csv
import dataclasses
import io
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mzlite.expr.call import CallSite, RowErrors
from mzlite.expr.functions.registry import Registry, Signature, bind, default_id, parse_signature
from mzlite.expr.kernels import patterns
from mzlite.expr.kernels.table_rows import (
    TableKernel,
    flatten,
    guard_subquery_size,
    hopping,
    per_value,
    repeat_row,
    series,
    timestamp_series,
)
from mzlite.expr.scalar import TableFunc
from mzlite.repr import jsonb
from mzlite.repr.column import I64, Column
from mzlite.repr.datum import ArrayDatum
from mzlite.repr.errors import SqlError
from mzlite.repr.fixed import FixedColumn
from mzlite.repr.types import BOOL, INT4, JSONB, TEXT, ColumnType, RelationType, ScalarType, array_of

OutColumn = tuple[str, ScalarType, bool]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class TableFunctionEntry(Signature):
    """One overload. columns: (name, type, nullable) of the output, from the argument types.

    pattern_columns: the output depends on the value of the first argument, a literal (regexp_extract, csv_extract).
    """

    columns: Callable[[tuple[ScalarType, ...]], tuple[OutColumn, ...]]
    kernel: TableKernel
    strict: bool = True
    pattern_columns: Callable[[Any], tuple[OutColumn, ...]] | None = None

    def bind(self, arg_types: Sequence[ScalarType]) -> TableFunctionEntry:
        return bind(self, arg_types)

    def relation_type(self, arg_types: Sequence[ScalarType]) -> RelationType:
        return RelationType(tuple(ColumnType(typ, nullable) for _, typ, nullable in self.columns(tuple(arg_types))))

    def names(self, arg_types: Sequence[ScalarType]) -> tuple[str, ...]:
        return tuple(name for name, _, _ in self.columns(tuple(arg_types)))


TABLE_FUNCTIONS: Registry[TableFunctionEntry] = Registry()


def by_name(name: str) -> list[TableFunctionEntry]:
    return TABLE_FUNCTIONS.by_name(name)


def call_table_function(
    func: TableFunc, args: Sequence[Column], n: int
) -> tuple[I64, list[Column], tuple[I64, list[bytes]] | None]:
    """See the module. `ordinality:<id>` is a function WITH ORDINALITY: its columns, then the row's number within its input row."""
    if func.func.startswith("ordinality:"):
        inner = TableFunc(func.func.removeprefix("ordinality:"), RelationType(func.typ.columns[:-1]))
        owner, columns, failed = call_table_function(inner, args, n)
        _, place = flatten(np.bincount(owner, minlength=n).astype(np.int64))
        return owner, [*columns, FixedColumn(place + 1)], failed
    entry = TABLE_FUNCTIONS[func.func]
    typ = func.typ.columns[0].scalar if func.typ.columns else BOOL
    site = CallSite(func.func, entry.param_types(len(args)) or entry.params, typ)
    site.cache["columns"] = [c.scalar for c in func.typ.columns]
    errors = RowErrors()
    owner, columns = entry.kernel(site, args, n, errors)
    return owner, columns, errors.items() if errors else None


def _register(
    name: str,
    signature: str,
    kernel: TableKernel,
    *,
    columns: Callable[[tuple[ScalarType, ...]], tuple[OutColumn, ...]] | None = None,
    id: str | None = None,
    pattern_columns: Callable[[Any], tuple[OutColumn, ...]] | None = None,
) -> None:
    params, variadic, returns = parse_signature(signature)
    TABLE_FUNCTIONS.add(
        TableFunctionEntry(
            id=id or default_id(name, params),
            name=name,
            params=params,
            variadic=variadic,
            returns=returns,
            columns=columns or (lambda args: ((name, returns, False),)),
            kernel=kernel,
            pattern_columns=pattern_columns,
        )
    )


_register("generate_series", "int4, int4 -> int4", series, id="generate_series_int4")
_register("generate_series", "int4, int4, int4 -> int4", series, id="generate_series_int4_step")
_register("generate_series", "int8, int8 -> int8", series, id="generate_series_int8")
_register("generate_series", "int8, int8, int8 -> int8", series, id="generate_series_int8_step")
_register("generate_series", "timestamp, timestamp, interval -> timestamp", timestamp_series)
_register("generate_series", "timestamptz, timestamptz, interval -> timestamptz", timestamp_series)


# --- from values ------------------------------------------------------------------------------------------------------


def _element_column(name: str) -> Callable[[tuple[ScalarType, ...]], tuple[OutColumn, ...]]:
    def columns(args: tuple[ScalarType, ...]) -> tuple[OutColumn, ...]:
        element = args[0].element
        return ((name, element if element is not None else ScalarType("int2"), True),)

    return columns


for _kind in ("timestamp", "timestamptz"):
    _register("date_bin_hopping", f"interval, interval, {_kind} -> {_kind}", per_value(hopping))
    _register("date_bin_hopping", f"interval, interval, {_kind}, {_kind} -> {_kind}", per_value(hopping))
_register(
    "unnest",
    "anyarray -> anyelement",
    per_value(lambda a: [(e,) for e in a.elements]),
    columns=_element_column("unnest"),
)
_register(
    "unnest", "anylist -> anyelement", per_value(lambda xs: [(e,) for e in xs]), columns=_element_column("unnest")
)
_register(
    "unnest",
    "anymap -> record",
    per_value(lambda m: sorted(m.items())),
    columns=lambda args: (("key", TEXT, False), ("value", args[0].element or TEXT, True)),
)


def _subscripts(array: ArrayDatum, dimension: int) -> list[tuple[int]]:
    if not 1 <= dimension <= len(array.dims):
        return []
    length, lower = array.dims[dimension - 1]
    return [(lower + i,) for i in range(length)]


_register(
    "generate_subscripts",
    "anyarray, int4 -> int4",
    per_value(_subscripts),
    columns=lambda args: (("generate_subscripts", INT4, False),),
)
_register(
    "_pg_expandarray",
    "anyarray -> record",
    per_value(lambda a: [(e, i + 1) for i, e in enumerate(a.elements)]),
    columns=lambda args: (("x", args[0].element or TEXT, True), ("n", INT4, False)),
)


def json_text(data: bytes) -> bytes | None:
    """A jsonb value as ->> shows it: strings bare, null as NULL."""
    if data[0] == jsonb.NULL:
        return None
    if data[0] == jsonb.STRING:
        return jsonb.read_text(data, 1)[0]
    from mzlite.repr.jsontext import format_json

    return format_json(jsonb.decode_jsonb(data)).encode()


# Materialize's jsonb functions give no rows for a value of another kind.
_register(
    "jsonb_array_elements",
    "jsonb -> jsonb",
    per_value(lambda data: [(e,) for e in jsonb.array_items(data)], raw=True),
    columns=lambda args: (("value", JSONB, False),),
)
_register(
    "jsonb_array_elements_text",
    "jsonb -> text",
    per_value(lambda data: [(json_text(e),) for e in jsonb.array_items(data)], raw=True),
    columns=lambda args: (("value", TEXT, True),),
)
_register(
    "jsonb_each",
    "jsonb -> record",
    per_value(lambda data: list(jsonb.object_items(data)), raw=True),
    columns=lambda args: (("key", TEXT, False), ("value", JSONB, False)),
)
_register(
    "jsonb_each_text",
    "jsonb -> record",
    per_value(lambda data: [(k, json_text(v)) for k, v in jsonb.object_items(data)], raw=True),
    columns=lambda args: (("key", TEXT, False), ("value", TEXT, True)),
)
_register(
    "jsonb_object_keys",
    "jsonb -> text",
    per_value(lambda data: [(k,) for k, _ in jsonb.object_items(data)], raw=True),
)


# --- text -------------------------------------------------------------------------------------------------------------


def _regexp_matches(text: str, pattern: str, flags: str = "") -> list[tuple[ArrayDatum]]:
    compiled = patterns.regex(pattern, flags)
    found = [(ArrayDatum.of(m.groups()),) for m in patterns.matches(compiled, text)]
    return found if "g" in flags else found[:1]


_TEXT_ARRAY = array_of(TEXT)
for _count in (2, 3):
    _register(
        "regexp_matches",
        ", ".join(["text"] * _count) + " -> text[]",
        per_value(_regexp_matches),
        columns=lambda args: (("regexp_matches", _TEXT_ARRAY, False),),
    )


def _regexp_split(text: str, pattern: str, flags: str = "") -> list[tuple[str]]:
    return [(piece,) for piece in patterns.split(patterns.regex(pattern, flags.replace("g", "")), text)]


for _count in (2, 3):
    _register("regexp_split_to_table", ", ".join(["text"] * _count) + " -> text", per_value(_regexp_split))


def regexp_extract_columns(pattern: str) -> tuple[OutColumn, ...]:
    """One nullable text column a group: its name, or column1, column2, ..."""
    compiled = patterns.regex(pattern)
    if not compiled.groups:
        raise SqlError("42601", "regexp_extract must specify at least one capture group")
    names = {index: name for name, index in compiled.groupindex.items()}
    return tuple((names.get(i, f"column{i}"), TEXT, True) for i in range(1, compiled.groups + 1))


def _regexp_extract(pattern: str, text: str) -> list[tuple[str | None, ...]]:
    match = patterns.regex(pattern).search(text)
    return [] if match is None else [match.groups()]


_register(
    "regexp_extract",
    "text, text -> record",
    per_value(_regexp_extract),
    columns=lambda args: (),
    pattern_columns=regexp_extract_columns,
)


def csv_extract_columns(count: int) -> tuple[OutColumn, ...]:
    return tuple((f"column{i}", TEXT, False) for i in range(1, count + 1))


def _csv_extract(count: int, text: str) -> list[tuple[str, ...]]:
    rows = csv.reader(io.StringIO(text, newline=""))
    return [tuple(row) for row in rows if len(row) == count]


_register(
    "csv_extract",
    "int8, text -> record",
    per_value(_csv_extract),
    columns=lambda args: (),
    pattern_columns=csv_extract_columns,
)


# --- rows without columns ---------------------------------------------------------------------------------------------


_register("repeat_row", "int8 -> record", repeat_row("repeat_row"), columns=lambda args: ())
_register(
    "repeat_row_non_negative",
    "int8 -> record",
    repeat_row("repeat_row_non_negative"),
    columns=lambda args: (),
)


_register("guard_subquery_size", "int8 -> record", guard_subquery_size, columns=lambda args: ())
