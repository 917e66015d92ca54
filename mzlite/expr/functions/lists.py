"""Lists and maps: constructors, subscripts, slices, operators, functions."""

from __future__ import annotations

from typing import Any

from mzlite.expr.call import CallSite
from mzlite.expr.functions.arrays import element_type, same
from mzlite.expr.functions.registry import operator, register
from mzlite.expr.functions.text import value
from mzlite.expr.kernels.adapt import per_value
from mzlite.repr.datum import ArrayDatum, encode_datum
from mzlite.repr.errors import SqlError
from mzlite.repr.typenames import type_name
from mzlite.repr.types import ScalarType, map_of

List = tuple[Any, ...]


def layers(typ: ScalarType) -> int:
    count = 0
    while typ.kind == "list":
        typ = element_type(typ)
        count += 1
    return count


# --- lists ------------------------------------------------------------------------------------------------------------


@value(
    "list_create",
    "variadic anyelement -> anylist",
    strict=False,
    nullable="never",
    can_error=False,
    id="list_create",
    display="list",
)
def _create(*elements: Any) -> List:
    return elements


def _list_index_type(args: tuple[ScalarType, ...]) -> ScalarType:
    typ = args[0]
    for _ in args[1:]:
        typ = element_type(typ)
    return typ


@value(
    "list_index",
    "anylist, variadic int8 -> anyelement",
    nullable="always",
    can_error=False,
    id="list_index",
    returns=_list_index_type,
)
def _index(items: List, *indexes: int) -> Any:
    at: Any = items
    for index in indexes:
        if at is None or not 1 <= index <= len(at):
            return None
        at = at[index - 1]
    return at


@value(
    "list_slice", "anylist, variadic int8 -> anylist", strict=False, nullable="always", can_error=False, id="list_slice"
)
def _slice(items: List | None, *bounds: Any) -> List | None:
    """bounds: pairs (first, last), applied one after another; a NULL bound makes the result NULL."""
    if items is None or None in bounds:
        return None
    for first, last in zip(bounds[::2], bounds[1::2]):
        items = items[max(first - 1, 0) : max(last, 0)]
    return items


def _append(items: List | None, element: Any) -> List:
    return (*(items or ()), element)


def _prepend(element: Any, items: List | None) -> List:
    return (element, *(items or ()))


def _cat(a: List | None, b: List | None) -> List | None:
    if a is None and b is None:
        return None
    return (a or ()) + (b or ())


_ADD: dict[str, Any] = {"strict": False, "nullable": "never", "can_error": False}
_CAT: dict[str, Any] = {"strict": False, "nullable": "all_args", "can_error": False}
_APPEND = "anycompatiblelist, anycompatible -> anycompatiblelist"
_PREPEND = "anycompatible, anycompatiblelist -> anycompatiblelist"
_BOTH = "anycompatiblelist, anycompatiblelist -> anycompatiblelist"
register("list_cat", _BOTH, per_value(_cat, strict=False), id="list_cat", **_CAT)
register("list_append", _APPEND, per_value(_append, strict=False), id="list_append", **_ADD)
register("list_prepend", _PREPEND, per_value(_prepend, strict=False), id="list_prepend", **_ADD)
operator("||", "list_concat", _BOTH, per_value(_cat, strict=False), id="list_concat", **_CAT)
operator("||", "list_append", _APPEND, per_value(_append, strict=False), id="list_append_op", **_ADD)
operator("||", "list_prepend", _PREPEND, per_value(_prepend, strict=False), id="list_prepend_op", **_ADD)


@value("list_length", "anylist -> int4", can_error=False, id="list_length")
def _length(items: List) -> int:
    return len(items)


@value(
    "list_n_layers",
    "anylist -> int4",
    with_site=True,
    strict=False,
    nullable="never",
    can_error=False,
    id="list_n_layers",
)
def _n_layers(site: CallSite, items: List | None) -> int:
    return layers(site.params[0])


@value("list_length_max", "anylist, int8 -> int4", with_site=True, nullable="always", id="list_length_max")
def _length_max(site: CallSite, items: List, layer: int) -> int | None:
    depth = layers(site.params[0])
    if not 1 <= layer <= depth:
        raise SqlError("22023", f"invalid layer: {layer}; must use value within [1, {depth}]")
    level: list[Any] = [items]
    for _ in range(layer - 1):
        level = [x for part in level if part is not None for x in part]
    lengths = [len(x) for x in level if x is not None]
    return max(lengths) if lengths else None


@value(
    "list_remove",
    "anycompatiblelist, anycompatible -> anycompatiblelist",
    with_site=True,
    strict=False,
    nullable="always",
    can_error=False,
    id="list_remove",
)
def _remove(site: CallSite, items: List | None, element: Any) -> List | None:
    if items is None:
        return None
    drop = same(element_type(site.params[0]), element)
    return tuple(x for x in items if not drop(x))


@value("@>", "anylist, anylist -> bool", with_site=True, operator=True, infix="@>", id="list_has_all", can_error=False)
def _has_all(site: CallSite, a: List, b: List) -> bool:
    typ = element_type(site.params[0])
    have = {encode_datum(typ, e) for e in a if e is not None}
    return all(e is not None and encode_datum(typ, e) in have for e in b)


@value("<@", "anylist, anylist -> bool", with_site=True, operator=True, infix="<@", id="list_in_all", can_error=False)
def _in_all(site: CallSite, a: List, b: List) -> bool:
    return _has_all(site, b, a)


# --- maps -------------------------------------------------------------------------------------------------------------


def _map_create_type(args: tuple[ScalarType, ...]) -> ScalarType:
    return map_of(args[1]) if len(args) > 1 else map_of(ScalarType("text"))


@value(
    "map_create",
    "variadic any -> anymap",
    strict=False,
    nullable="never",
    can_error=False,
    id="map_create",
    returns=_map_create_type,
    display="map",
)
def _map_create(*parts: Any) -> dict[str, Any]:
    """Keys and values alternate; a NULL key drops its pair."""
    return {k: v for k, v in zip(parts[::2], parts[1::2]) if k is not None}


def _map_build_type(args: tuple[ScalarType, ...]) -> ScalarType:
    record = element_type(args[0])
    fields = record.fields or ()
    if record.kind != "record" or len(fields) != 2 or fields[0][1].scalar.kind not in ("text", "unknown"):
        shown = f"{record.custom or type_name(record)} list"
        raise SqlError("42883", f"function map_build({shown}) does not exist")
    return map_of(fields[1][1].scalar)


@value("map_build", "anylist -> anymap", can_error=False, id="map_build", returns=_map_build_type)
def _map_build(rows: List) -> dict[str, Any]:
    return {row[0]: row[1] for row in rows if row is not None and row[0] is not None}


@value("map_length", "anymap -> int4", can_error=False, id="map_length")
def _map_length(m: dict[str, Any]) -> int:
    return len(m)


@value("->", "anymap, text -> anyelement", operator=True, infix="->", nullable="always", can_error=False, id="map_get")
def _map_get(m: dict[str, Any], key: str) -> Any:
    return m.get(key)


@value("?", "anymap, text -> bool", operator=True, infix="?", can_error=False, id="map_has")
def _map_has(m: dict[str, Any], key: str) -> bool:
    return key in m


@value("?&", "anymap, text[] -> bool", operator=True, infix="?&", can_error=False, id="map_has_all")
def _map_has_all(m: dict[str, Any], keys: ArrayDatum) -> bool:
    return all(k in m for k in keys.elements)


@value("?|", "anymap, text[] -> bool", operator=True, infix="?|", can_error=False, id="map_has_any")
def _map_has_any(m: dict[str, Any], keys: ArrayDatum) -> bool:
    return any(k in m for k in keys.elements)


def _map_contains(typ: ScalarType, a: dict[str, Any], b: dict[str, Any]) -> bool:
    value_type = element_type(typ)
    return all(k in a and same(value_type, v)(a[k]) for k, v in b.items())


@value("@>", "anymap, anymap -> bool", with_site=True, operator=True, infix="@>", can_error=False, id="map_contains")
def _contains(site: CallSite, a: dict[str, Any], b: dict[str, Any]) -> bool:
    return _map_contains(site.params[0], a, b)


@value("<@", "anymap, anymap -> bool", with_site=True, operator=True, infix="<@", can_error=False, id="map_contained")
def _contained(site: CallSite, a: dict[str, Any], b: dict[str, Any]) -> bool:
    return _map_contains(site.params[0], b, a)
