"""Types as short text, for the ids of polymorphic function instances.

A `Call` must be evaluable without knowing the types of its input columns, so the id of an instance of a polymorphic
function carries its argument types: `array_length<int4[],int8>`. Modifiers and custom names are dropped: they never
change how a value is represented.

    int4   int4[]   int4 list   text=>int4 (as map<int4>)   range<int4>   record<"a":int4,"b":text>
"""

from __future__ import annotations

import functools
import json

from mzlite.repr.types import ColumnType, ScalarType

_RANGE_NAMES = {
    "int4range": "int4",
    "int8range": "int8",
    "numrange": "numeric",
    "daterange": "date",
    "tsrange": "timestamp",
    "tstzrange": "timestamptz",
}


def bare(typ: ScalarType) -> ScalarType:
    """typ without modifiers and custom names, at every depth."""
    element = None if typ.element is None else bare(typ.element)
    fields = None
    if typ.fields is not None:
        fields = tuple((name, ColumnType(bare(column.scalar), False)) for name, column in typ.fields)
    return ScalarType(typ.kind, element=element, fields=fields)


def type_text(typ: ScalarType) -> str:
    """The text of `bare(typ)`; inverse of `parse_type`."""
    match typ.kind:
        case "array" if typ.element is not None:
            return f"{type_text(typ.element)}[]"
        case "list" | "map" | "range" if typ.element is not None:
            return f"{typ.kind}<{type_text(typ.element)}>"
        case "record" if typ.fields is not None:
            fields = ",".join(f"{json.dumps(name)}:{type_text(column.scalar)}" for name, column in typ.fields)
            return f"record<{fields}>"
        case kind:
            return kind


def parse_type(text: str) -> ScalarType:
    """Type of a complete text."""
    typ, end = _parse(text, 0)
    assert end == len(text), f"trailing text in type id {text!r}"
    return typ


@functools.lru_cache(4096)
def parse_types(text: str) -> tuple[ScalarType, ...]:
    """Types of a comma-separated text; "" is no type."""
    types: list[ScalarType] = []
    at = 0
    while at < len(text):
        typ, at = _parse(text, at)
        types.append(typ)
        assert at == len(text) or text[at] == ",", f"bad type id {text!r}"
        at += 1
        while at < len(text) and text[at] == " ":
            at += 1
    return tuple(types)


def _parse(text: str, at: int) -> tuple[ScalarType, int]:
    end = at
    while end < len(text) and (text[end].isalnum() or text[end] == "_"):
        end += 1
    kind = text[at:end]
    assert kind, f"bad type id {text!r} at {at}"
    typ = ScalarType("range", element=ScalarType(_RANGE_NAMES[kind])) if kind in _RANGE_NAMES else ScalarType(kind)
    if text.startswith("<", end):
        if kind == "record":
            fields: list[tuple[str, ColumnType]] = []
            end += 1
            while text[end] != ">":
                name, end = json.JSONDecoder().raw_decode(text, end)
                column, end = _parse(text, end + 1)
                fields.append((name, ColumnType(column, False)))
                end += text[end] == ","
            typ = ScalarType("record", fields=tuple(fields))
        else:
            element, end = _parse(text, end + 1)
            assert text[end] == ">", f"bad type id {text!r} at {end}"
            typ = ScalarType(kind, element=element)
        end += 1
    while text.startswith("[]", end):
        typ = ScalarType("array", element=typ)
        end += 2
    return typ, end
