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
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from mzlite.expr.call import Args, CallSite, RowErrors
from mzlite.expr.functions.registry import Registry, Signature, bind, default_id, parse_signature
from mzlite.expr.kernels import patterns
from mzlite.expr.kernels.adapt import merge_valid
from mzlite.expr.kernels.calendar_math import add_interval
from mzlite.expr.scalar import TableFunc
from mzlite.repr import jsonb
from mzlite.repr.calendar import DAY_US
from mzlite.repr.column import I64, Column
from mzlite.repr.datum import ArrayDatum, column_from_datums, column_to_datums
from mzlite.repr.errors import SqlError
from mzlite.repr.fixed import FixedColumn
from mzlite.repr.interval import Interval, IntervalColumn
from mzlite.repr.types import BOOL, INT4, JSONB, TEXT, ColumnType, Layout, RelationType, ScalarType, array_of
from mzlite.repr.var import VarColumn

OutColumn = tuple[str, ScalarType, bool]
TableKernel = Callable[[CallSite, Args, int, RowErrors], tuple[I64, list[Column]]]


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
        _, place = _flatten(np.bincount(owner, minlength=n).astype(np.int64))
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


# --- series -----------------------------------------------------------------------------------------------------------


def _fixed(column: Column) -> Any:
    assert isinstance(column, FixedColumn)
    return column.values


def _flatten(counts: I64) -> tuple[I64, I64]:
    """(owner, position within its owner) of counts[i] rows for each i."""
    owner = np.repeat(np.arange(len(counts), dtype=np.int64), counts)
    firsts = np.cumsum(counts) - counts
    return owner, np.arange(len(owner), dtype=np.int64) - np.repeat(firsts, counts)


def _series(site: CallSite, args: Args, n: int, errors: RowErrors) -> tuple[I64, list[Column]]:
    start, stop = _fixed(args[0]).astype(np.int64), _fixed(args[1]).astype(np.int64)
    step = _fixed(args[2]).astype(np.int64) if len(args) > 2 else np.ones(n, np.int64)
    valid = merge_valid(args)
    live = np.ones(n, np.bool_) if valid is None else valid
    zero = live & (step == 0)
    errors.add_mask(zero, SqlError("22023", "step size cannot equal zero"))
    live = live & ~zero
    safe = np.where(step == 0, 1, step)
    # A span of more than 2^63 cannot be counted in int64; such a series could not be held anyway.
    spans = stop.astype(np.float64) - start.astype(np.float64)
    going = live & np.where(safe > 0, spans >= 0, spans <= 0)
    counts = np.where(going, (stop - start) // safe + 1, 0)
    owner, place = _flatten(np.maximum(counts, 0))
    values = start[owner] + place * safe[owner]
    if site.typ.layout is Layout.I32:
        return owner, [FixedColumn(values.astype(np.int32))]
    return owner, [FixedColumn(values)]


def _timestamp_series(site: CallSite, args: Args, n: int, errors: RowErrors) -> tuple[I64, list[Column]]:
    start, stop = _fixed(args[0]), _fixed(args[1])
    steps = args[2]
    assert isinstance(steps, IntervalColumn)
    valid = merge_valid(args)
    owners: list[I64] = []
    values: list[I64] = []
    for row in range(n):
        if valid is not None and not valid[row]:
            continue
        months, days, us = steps.values[row].tolist()
        at, end = int(start[row]), int(stop[row])
        fixed = days * DAY_US + us
        if not months and not fixed:
            errors.add(row, SqlError("22023", "step size cannot equal zero"))
            continue
        if not months:
            count = (end - at) // fixed + 1 if (end >= at) == (fixed > 0) or at == end else 0
            made = at + fixed * np.arange(max(count, 0), dtype=np.int64)
        else:
            forward = months * 30 * DAY_US + fixed > 0
            if months * 30 * DAY_US + fixed == 0:
                errors.add(row, SqlError("22023", "step size cannot equal zero"))
                continue
            listed = []
            # Step by step: a day cut to a short month's end stays cut.
            while (at <= end) if forward else (at >= end):
                listed.append(at)
                try:
                    at = add_interval(at, months, days, us)
                except SqlError as error:
                    errors.add(row, error)
                    break
            made = np.array(listed, np.int64)
        owners.append(np.full(len(made), row, np.int64))
        values.append(made)
    owner = np.concatenate(owners) if owners else np.zeros(0, np.int64)
    out = np.concatenate(values) if values else np.zeros(0, np.int64)
    return owner, [FixedColumn(out, None, Layout.TIMESTAMP)]


_register("generate_series", "int4, int4 -> int4", _series, id="generate_series_int4")
_register("generate_series", "int4, int4, int4 -> int4", _series, id="generate_series_int4_step")
_register("generate_series", "int8, int8 -> int8", _series, id="generate_series_int8")
_register("generate_series", "int8, int8, int8 -> int8", _series, id="generate_series_int8_step")
_register("generate_series", "timestamp, timestamp, interval -> timestamp", _timestamp_series)
_register("generate_series", "timestamptz, timestamptz, interval -> timestamptz", _timestamp_series)


def _hopping(hop: Interval, width: Interval, source: int, origin: int = 0) -> list[tuple[int]]:
    """Starts of the windows of `width`, one every `hop`, that hold the timestamp."""
    hop_us, width_us = hop.days * DAY_US + hop.us, width.days * DAY_US + width.us
    if hop.months or width.months:
        raise SqlError("0A000", "timestamps cannot be binned into intervals containing months or years")
    if hop_us <= 0 or width_us <= 0:
        raise SqlError("22008", "stride must be greater than zero")
    first = origin + (source - origin) // hop_us * hop_us + hop_us - width_us
    return [(start,) for start in range(first, source + 1, hop_us)]


# --- from values ------------------------------------------------------------------------------------------------------


def per_value(f: Callable[..., Iterable[tuple[Any, ...]]], *, raw: bool = False) -> TableKernel:
    """f(*datums) -> rows of datums, once for each input row. raw: VAR columns as canonical bytes, both ways."""

    def kernel(site: CallSite, args: Args, n: int, errors: RowErrors) -> tuple[I64, list[Column]]:
        types: list[ScalarType] = site.cache["columns"]
        inputs = [
            a.to_bytes() if raw and isinstance(a, VarColumn) else column_to_datums(t, a)
            for t, a in zip(site.params, args)
        ]
        owner: list[int] = []
        rows: list[tuple[Any, ...]] = []
        for row, datums in enumerate(zip(*inputs)):
            if None in datums:
                continue
            try:
                made = list(f(*datums))
            except SqlError as error:
                errors.add(row, error)
                continue
            owner.extend([row] * len(made))
            rows.extend(made)
        columns: list[Column] = []
        for i, typ in enumerate(types):
            values = [r[i] for r in rows]
            if raw and typ.layout is Layout.VAR:
                columns.append(VarColumn.from_bytes(values))
            else:
                columns.append(column_from_datums(typ, values))
        return np.array(owner, np.int64), columns

    return kernel


def _element_column(name: str) -> Callable[[tuple[ScalarType, ...]], tuple[OutColumn, ...]]:
    def columns(args: tuple[ScalarType, ...]) -> tuple[OutColumn, ...]:
        element = args[0].element
        return ((name, element if element is not None else ScalarType("int2"), True),)

    return columns


for _kind in ("timestamp", "timestamptz"):
    _register("date_bin_hopping", f"interval, interval, {_kind} -> {_kind}", per_value(_hopping))
    _register("date_bin_hopping", f"interval, interval, {_kind}, {_kind} -> {_kind}", per_value(_hopping))
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


def _repeat_row(name: str) -> TableKernel:
    def kernel(site: CallSite, args: Args, n: int, errors: RowErrors) -> tuple[I64, list[Column]]:
        counts = _fixed(args[0])
        valid = args[0].valid
        negative = counts < 0
        if valid is not None:
            negative = negative & valid
        for row in np.flatnonzero(negative).tolist():
            errors.add(row, SqlError("22023", f"{name} got {counts[row]}"))
        live = ~negative if valid is None else ~negative & valid
        owner, _ = _flatten(np.where(live, counts, 0))
        return owner, []

    return kernel


_register("repeat_row", "int8 -> record", _repeat_row("repeat_row"), columns=lambda args: ())
_register(
    "repeat_row_non_negative",
    "int8 -> record",
    _repeat_row("repeat_row_non_negative"),
    columns=lambda args: (),
)


def _guard_subquery_size(site: CallSite, args: Args, n: int, errors: RowErrors) -> tuple[I64, list[Column]]:
    counts = _fixed(args[0])
    errors.add_mask(counts < 0, SqlError("21000", "negative multiplicity in a subquery"))
    errors.add_mask(counts > 1, SqlError("21000", "more than one record produced in subquery"))
    return np.zeros(0, np.int64), []


_register("guard_subquery_size", "int8 -> record", _guard_subquery_size, columns=lambda args: ())
