"""Datums as JSON values, by Materialize's to_jsonb: numbers, booleans, text and jsonb map to themselves, lists and arrays
to arrays, records to objects; everything else is its text.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from mzlite.repr.datum import JSON_NULL, ArrayDatum
from mzlite.repr.errors import SqlError
from mzlite.repr.text import format_datum
from mzlite.repr.types import ScalarType

_INTEGERS = frozenset(("int2", "int4", "int8", "uint2", "uint4", "uint8", "oid"))
_TEXT = frozenset(("text", "varchar", "bpchar", "char", "name", "unknown"))


def to_json(typ: ScalarType, datum: Any) -> Any:
    """The JSON value of a datum of `typ` (None = NULL becomes JSON null)."""
    if datum is None:
        return JSON_NULL
    kind = typ.kind
    if kind == "jsonb" or kind == "bool" or kind in _TEXT:
        return datum
    if kind in _INTEGERS:
        return Decimal(datum)
    if kind in ("float4", "float8", "numeric"):
        text = format_datum(typ, datum)
        number = Decimal(text)
        return number if number.is_finite() else text
    if kind == "array":
        return _nest(typ, datum)
    if kind in ("list", "int2vector"):
        element = typ.element or ScalarType("int2")
        return [to_json(element, e) for e in datum]
    if kind == "record":
        assert typ.fields is not None
        return {name: to_json(column.scalar, value) for (name, column), value in zip(typ.fields, datum)}
    if kind == "map":
        assert typ.element is not None
        return {key: to_json(typ.element, value) for key, value in datum.items()}
    return format_datum(typ, datum)


def _nest(typ: ScalarType, array: ArrayDatum) -> Any:
    assert typ.element is not None
    values = [to_json(typ.element, e) for e in array.elements]
    for length, _ in reversed(array.dims[1:]):
        values = [values[i : i + length] for i in range(0, len(values), length)]
    return values


def json_key(typ: ScalarType, datum: Any) -> str:
    """A datum as an object's key."""
    if datum is None:
        raise SqlError("22004", "key cannot be null")
    if typ.kind in _TEXT:
        return str(datum)
    if typ.kind == "bool":
        return "true" if datum else "false"
    return format_datum(typ, datum)
