"""Basic aggregates: one value from the rows of a whole group, in order.

args: columns of n rows sorted by group; group i is rows starts[i] .. starts[i+1]. A group may have lost all its rows to
FILTER: then a container is empty, not NULL. Results are composite values, so
they are built a group at a time from Python data; this is the per-value fallback of aggregation.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

from mzlite.expr.call import Args, CallSite, RowErrors
from mzlite.expr.kernels.json_values import json_key, to_json
from mzlite.repr.column import I64, Column
from mzlite.repr.datum import JSON_NULL, ArrayDatum, column_from_datums, column_to_datums
from mzlite.repr.errors import SqlError

Groups = list[tuple[list[Any], ...]]


def _collect(
    site: CallSite, args: Args, starts: I64, errors: RowErrors, value: Callable[[tuple[list[Any], ...]], Any]
) -> Column:
    datums = [column_to_datums(typ, column) for typ, column in zip(site.params, args)]
    bounds = starts.tolist()
    out: list[Any] = []
    for row, (a, b) in enumerate(pairwise(bounds)):
        try:
            out.append(value(tuple(d[a:b] for d in datums)))
        except SqlError as error:
            errors.add(row, error)
            out.append(None)
    return column_from_datums(site.typ, out)


def array_agg(site: CallSite, args: Args, starts: I64, errors: RowErrors) -> Column:
    if site.params[0].kind != "array":
        return _collect(site, args, starts, errors, lambda g: ArrayDatum.of(g[0]))
    return _collect(site, args, starts, errors, lambda g: stack_arrays(g[0]))


def stack_arrays(arrays: list[ArrayDatum | None]) -> ArrayDatum:
    """Arrays of equal dimensions as the elements of one with a dimension more."""
    first = arrays[0]
    if any(a is None for a in arrays):
        raise SqlError("2202E", "cannot accumulate null arrays")
    assert first is not None
    elements: list[Any] = []
    for array in arrays:
        assert array is not None
        if [d[0] for d in array.dims] != [d[0] for d in first.dims]:
            raise SqlError("2202E", "cannot accumulate arrays of different dimensionality")
        elements.extend(array.elements)
    if not elements:
        return ArrayDatum((), ())
    return ArrayDatum(((len(arrays), 1), *first.dims), tuple(elements))


def list_agg(site: CallSite, args: Args, starts: I64, errors: RowErrors) -> Column:
    return _collect(site, args, starts, errors, lambda g: tuple(g[0]))


def map_agg(site: CallSite, args: Args, starts: I64, errors: RowErrors) -> Column:
    return _collect(site, args, starts, errors, lambda g: {k: v for k, v in zip(*g) if k is not None})


def jsonb_agg(site: CallSite, args: Args, starts: I64, errors: RowErrors) -> Column:
    typ = site.params[0]
    return _collect(site, args, starts, errors, lambda g: [to_json(typ, v) for v in g[0]])


def jsonb_object_agg(site: CallSite, args: Args, starts: I64, errors: RowErrors) -> Column:
    key_type, value_type = site.params

    def build(group: tuple[list[Any], ...]) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for key, value in zip(*group):
            if key is None:
                continue
            out[json_key(key_type, key)] = JSON_NULL if value is None else to_json(value_type, value)
        return out

    return _collect(site, args, starts, errors, build)


def string_agg(site: CallSite, args: Args, starts: I64, errors: RowErrors) -> Column:
    empty: Any = b"" if site.typ.kind == "bytea" else ""

    def build(group: tuple[list[Any], ...]) -> Any:
        parts: list[Any] = []
        for value, separator in zip(*group):
            if value is not None:
                if parts:
                    parts.append(empty if separator is None else separator)
                parts.append(value)
        return empty.join(parts) if parts else None

    return _collect(site, args, starts, errors, build)
