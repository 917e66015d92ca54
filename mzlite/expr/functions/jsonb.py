"""jsonb: casts, operators, functions.

Look-ups work on the canonical bytes and decode nothing they skip; what builds new values decodes.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

from mzlite.expr.call import CallSite
from mzlite.expr.functions.number_casts import cast
from mzlite.expr.functions.registry import operator, register
from mzlite.expr.functions.text import value
from mzlite.expr.kernels import integers, numerics
from mzlite.expr.kernels.adapt import per_bytes, per_value, predicate_bytes
from mzlite.expr.kernels.decimals import rescale
from mzlite.expr.kernels.json_values import json_key, to_json
from mzlite.repr import jsonb
from mzlite.repr.datum import JSON_NULL, decode_datum
from mzlite.repr.errors import SqlError
from mzlite.repr.jsontext import format_json, format_json_pretty
from mzlite.repr.types import TEXT, array_of

_TEXT_ARRAY = array_of(TEXT)


def json_text(data: bytes) -> bytes | None:
    """A jsonb value as ->> shows it: strings bare, null as NULL."""
    if data[0] == jsonb.NULL:
        return None
    if data[0] == jsonb.STRING:
        return jsonb.read_text(data, 1)[0]
    return format_json(jsonb.decode_jsonb(data)).encode()


def type_of(value: Any) -> str:
    if isinstance(value, dict):
        return "object"
    if isinstance(value, list):
        return "array"
    if isinstance(value, str):
        return "string"
    if isinstance(value, bool):
        return "boolean"
    return "number" if isinstance(value, Decimal) else "null"


# --- casts ------------------------------------------------------------------------------------------------------------


def _number(target: str, convert: Callable[[CallSite, Decimal], Any]) -> Callable[[CallSite, Any], Any]:
    def run(site: CallSite, json: Any) -> Any:
        if isinstance(json, Decimal):
            return convert(site, json)
        if isinstance(json, bool) and target == "boolean":
            return json
        raise SqlError("22023", f"cannot cast jsonb {type_of(json)} to type {target}")

    return run


def _integer(kind: str) -> Callable[[CallSite, Decimal], int]:
    low, high = {"int2": (-(1 << 15), 1 << 15), "int4": (-(1 << 31), 1 << 31), "int8": (-(1 << 63), 1 << 63)}[kind]

    def convert(site: CallSite, number: Decimal) -> int:
        whole = int(rescale(number, 0))
        if not low <= whole < high:
            raise integers.out_of_range(str(whole), kind)
        return whole

    return convert


def _to_bool(site: CallSite, json: Any) -> bool:
    if isinstance(json, bool):
        return json
    raise SqlError("22023", f"cannot cast jsonb {type_of(json)} to type boolean")


def _float(site: CallSite, number: Decimal) -> float:
    return float(number)


def _to_numeric(site: CallSite, number: Decimal) -> Decimal:
    return numerics.to_declared(number, site.typ.precision, site.typ.scale)


cast("jsonb", "bool", per_value(_to_bool, with_site=True))
for _kind, _long in integers.NAMES.items():
    if _kind.startswith("int"):
        cast("jsonb", _kind, per_value(_number(_long, _integer(_kind)), with_site=True))
cast("jsonb", "float4", per_value(_number("real", _float), with_site=True))
cast("jsonb", "float8", per_value(_number("double precision", _float), with_site=True))
cast("jsonb", "numeric", per_value(_number("numeric", _to_numeric), with_site=True))


# --- look-ups ---------------------------------------------------------------------------------------------------------


def _field(data: bytes, key: bytes) -> bytes | None:
    return jsonb.get_field(data, key)


def _element(data: bytes, index: int) -> bytes | None:
    return jsonb.get_element(data, index)


def _path(data: bytes, path: bytes) -> bytes | None:
    at: bytes | None = data
    for step in decode_datum(_TEXT_ARRAY, path).elements:
        if at is None or step is None:
            return None
        if at[0] == jsonb.ARRAY:
            try:
                at = jsonb.get_element(at, int(step))
            except ValueError:
                return None
        else:
            at = jsonb.get_field(at, step.encode())
    return at


def _as_text(f: Callable[[bytes, Any], bytes | None]) -> Callable[[bytes, Any], bytes | None]:
    def run(data: bytes, key: Any) -> bytes | None:
        found = f(data, key)
        return None if found is None else json_text(found)

    return run


for _params, _lookup in (("jsonb, text", _field), ("jsonb, int8", _element)):
    operator("->", "jsonb_get", f"{_params} -> jsonb", per_bytes(_lookup), nullable="always", can_error=False)
    operator(
        "->>", "jsonb_get_text", f"{_params} -> text", per_bytes(_as_text(_lookup)), nullable="always", can_error=False
    )
operator("#>", "jsonb_path", "jsonb, text[] -> jsonb", per_bytes(_path), nullable="always", can_error=False)
operator(
    "#>>", "jsonb_path_text", "jsonb, text[] -> text", per_bytes(_as_text(_path)), nullable="always", can_error=False
)
register("jsonb_subscript", "jsonb, int8 -> jsonb", per_bytes(_element), nullable="always", can_error=False, infix="->")
register("jsonb_subscript", "jsonb, text -> jsonb", per_bytes(_field), nullable="always", can_error=False, infix="->")


def contains(a: Any, b: Any, *, top: bool = True) -> bool:
    """Whether JSON a contains b, structure and all; at the top an array also contains a bare element."""
    if isinstance(a, dict) and isinstance(b, dict):
        return all(k in a and contains(a[k], v, top=False) for k, v in b.items())
    if isinstance(a, list) and isinstance(b, list):
        return all(any(contains(x, y, top=False) for x in a) for y in b)
    if isinstance(a, list) and top and not isinstance(b, dict):
        return any(_same_scalar(x, b) for x in a)
    return _same_scalar(a, b)


def _same_scalar(a: Any, b: Any) -> bool:
    return type(a) is type(b) and not isinstance(a, dict | list) and bool(a == b)


operator("@>", "jsonb_contains", "jsonb, jsonb -> bool", per_value(lambda a, b: contains(a, b)), can_error=False)
operator("<@", "jsonb_contained", "jsonb, jsonb -> bool", per_value(lambda a, b: contains(b, a)), can_error=False)


def _has(data: bytes, key: bytes) -> bool:
    if data[0] == jsonb.OBJECT:
        return jsonb.get_field(data, key) is not None
    if data[0] == jsonb.STRING:
        return jsonb.read_text(data, 1)[0] == key
    return any(e[0] == jsonb.STRING and jsonb.read_text(e, 1)[0] == key for e in jsonb.array_items(data))


operator("?", "jsonb_has", "jsonb, text -> bool", predicate_bytes(_has), can_error=False)


# --- building ---------------------------------------------------------------------------------------------------------


@value("to_jsonb", "any -> jsonb", with_site=True, pads=True, can_error=False, display="jsonbable_to_jsonb")
def _to_jsonb(site: CallSite, datum: Any) -> Any:
    return to_json(site.params[0], datum)


@value(
    "jsonb_build_array",
    "variadic any -> jsonb",
    id="jsonb_build_array",
    with_site=True,
    strict=False,
    nullable="never",
    can_error=False,
    pads=True,
)
def _build_array(site: CallSite, *datums: Any) -> Any:
    return [to_json(t, d) for t, d in zip(site.params, datums)]


@value(
    "jsonb_build_object",
    "variadic any -> jsonb",
    id="jsonb_build_object",
    with_site=True,
    strict=False,
    nullable="never",
    pads=True,
)
def _build_object(site: CallSite, *datums: Any) -> Any:
    if len(datums) % 2:
        raise SqlError("22023", "argument list must have even number of elements")
    out: dict[str, Any] = {}
    for i in range(0, len(datums), 2):
        out[json_key(site.params[i], datums[i])] = to_json(site.params[i + 1], datums[i + 1])
    return out


def _concat(a: Any, b: Any) -> Any:
    if isinstance(a, dict) and isinstance(b, dict):
        return {**a, **b}
    if isinstance(a, list):
        return [*a, *b] if isinstance(b, list) else [*a, b]
    if isinstance(b, list):
        return [a, *b]
    return None


def _delete_key(json: Any, key: str) -> Any:
    if isinstance(json, dict):
        return {k: v for k, v in json.items() if k != key}
    if isinstance(json, list):
        return [v for v in json if v != key]
    return None


def _delete_index(json: Any, index: int) -> Any:
    if not isinstance(json, list):
        return None
    at = index + len(json) if index < 0 else index
    return [v for i, v in enumerate(json) if i != at]


operator("||", "jsonb_concat", "jsonb, jsonb -> jsonb", per_value(_concat), nullable="always", can_error=False)
operator("-", "jsonb_delete", "jsonb, text -> jsonb", per_value(_delete_key), nullable="always", can_error=False)
operator("-", "jsonb_delete", "jsonb, int8 -> jsonb", per_value(_delete_index), nullable="always", can_error=False)


def strip_nulls(json: Any) -> Any:
    """Without object fields that are null, at every depth; array elements stay."""
    if isinstance(json, dict):
        return {k: strip_nulls(v) for k, v in json.items() if v is not JSON_NULL}
    if isinstance(json, list):
        return [strip_nulls(v) for v in json]
    return json


register("jsonb_strip_nulls", "jsonb -> jsonb", per_value(strip_nulls), id="jsonb_strip_nulls", can_error=False)
register("jsonb_typeof", "jsonb -> text", per_value(type_of), id="jsonb_typeof", can_error=False)
register("jsonb_pretty", "jsonb -> text", per_value(format_json_pretty), id="jsonb_pretty", can_error=False)


@value("jsonb_array_length", "jsonb -> int4", nullable="always", can_error=False)
def _array_length(json: Any) -> int | None:
    return len(json) if isinstance(json, list) else None
