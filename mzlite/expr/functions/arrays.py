"""Arrays: constructors, subscripts, operators, functions, and x op ANY/ALL (array or list)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mzlite.expr.call import CallSite
from mzlite.expr.functions.comparison import WORDS
from mzlite.expr.functions.registry import operator, register
from mzlite.expr.functions.text import value
from mzlite.expr.kernels import patterns
from mzlite.expr.kernels.adapt import per_value
from mzlite.repr.datum import ArrayDatum, encode_datum
from mzlite.repr.errors import SqlError
from mzlite.repr.text import format_datum
from mzlite.repr.types import ScalarType

MAX_DIMENSIONS = 6
_EMPTY = ArrayDatum((), ())


def incompatible(detail: str) -> SqlError:
    return SqlError("2202E", "cannot concatenate incompatible arrays", detail=detail)


# --- constructors -----------------------------------------------------------------------------------------------------


@value(
    "array_create", "variadic anyelement -> anyarray", strict=False, nullable="never", can_error=False, display="array"
)
def _create(*elements: Any) -> ArrayDatum:
    return ArrayDatum.of(elements)


@value("array_create_nested", "variadic anyarray -> anyarray", strict=False, nullable="never", display="array")
def stack(*arrays: ArrayDatum | None) -> ArrayDatum:
    """ARRAY[ARRAY[..], ..]: one dimension more."""
    present = [a if a is not None else _EMPTY for a in arrays]
    if not present or not any(a.elements for a in present):
        if any(len(a.dims) >= MAX_DIMENSIONS for a in present):
            raise _too_deep(MAX_DIMENSIONS + 1)
        return _EMPTY
    lengths = [[d[0] for d in a.dims] for a in present]
    for array, own in zip(present, lengths):
        if own != lengths[0]:
            raise SqlError(
                "2202E",
                f"number of array elements ({len(array.elements)}) does not match declared cardinality"
                f" ({len(present[0].elements)})",
            )
    if len(lengths[0]) + 1 > MAX_DIMENSIONS:
        raise _too_deep(len(lengths[0]) + 1)
    elements = tuple(e for a in present for e in a.elements)
    return ArrayDatum(((len(present), 1), *((n, 1) for n in lengths[0])), elements)


def _too_deep(count: int) -> SqlError:
    return SqlError("54000", f"number of array dimensions ({count}) exceeds the maximum allowed ({MAX_DIMENSIONS})")


# --- subscripts -------------------------------------------------------------------------------------------------------


@value("array_index", "anyarray, variadic int8 -> anyelement", nullable="always", can_error=False, id="array_index")
def _index(array: ArrayDatum | tuple[int, ...], *indexes: int) -> Any:
    if not isinstance(array, ArrayDatum):  # an int2vector, which counts from 0
        return array[indexes[0]] if len(indexes) == 1 and 0 <= indexes[0] < len(array) else None
    if len(indexes) != len(array.dims):
        return None
    at = 0
    for (length, lower), index in zip(array.dims, indexes):
        place = index - lower
        if not 0 <= place < length:
            return None
        at = at * length + place
    return array.elements[at]


# --- functions --------------------------------------------------------------------------------------------------------


@value("array_length", "anyarray, int8 -> int4", nullable="always", can_error=False, id="array_length")
def _length(array: ArrayDatum, dimension: int) -> int | None:
    return array.dims[dimension - 1][0] if 1 <= dimension <= len(array.dims) else None


@value("array_lower", "anyarray, int8 -> int4", nullable="always", can_error=False, id="array_lower")
def _lower(array: ArrayDatum, dimension: int) -> int | None:
    return array.dims[dimension - 1][1] if 1 <= dimension <= len(array.dims) else None


@value("array_upper", "anyarray, int8 -> int4", nullable="always", can_error=False, id="array_upper")
def _upper(array: ArrayDatum, dimension: int) -> int | None:
    if not 1 <= dimension <= len(array.dims):
        return None
    length, lower = array.dims[dimension - 1]
    return lower + length - 1


@value("array_ndims", "anyarray -> int4", nullable="always", can_error=False, id="array_ndims")
def _ndims(array: ArrayDatum) -> int | None:
    return len(array.dims) or None


@value("cardinality", "anyarray -> int4", can_error=False, id="cardinality")
def _cardinality(array: ArrayDatum) -> int:
    return len(array.elements)


def array_cat(a: ArrayDatum | None, b: ArrayDatum | None) -> ArrayDatum | None:
    """Concatenation along the first dimension; an array of one dimension less counts as one row."""
    if a is None or b is None:
        return a if b is None else b
    if not a.elements and not a.dims:
        return b
    if not b.elements and not b.dims:
        return a
    left, right = list(a.dims), list(b.dims)
    if abs(len(left) - len(right)) > 1:
        raise incompatible(f"Arrays of {len(left)} and {len(right)} dimensions are not compatible for concatenation.")
    if len(left) < len(right):
        left.insert(0, (1, 1))
    elif len(right) < len(left):
        right.insert(0, (1, 1))
    if [d[0] for d in left[1:]] != [d[0] for d in right[1:]]:
        if len(a.dims) == len(b.dims):
            raise incompatible("Arrays with differing dimensions are not compatible for concatenation.")
        raise incompatible("Arrays with differing element dimensions are not compatible for concatenation.")
    first = (left[0][0] + right[0][0], left[0][1])
    return ArrayDatum((first, *left[1:]), a.elements + b.elements)


_CAT: dict[str, Any] = {"strict": False, "nullable": "all_args"}
register(
    "array_cat",
    "anycompatiblearray, anycompatiblearray -> anycompatiblearray",
    per_value(array_cat, strict=False),
    id="array_cat",
    **_CAT,
)
operator(
    "||",
    "array_concat",
    "anycompatiblearray, anycompatiblearray -> anycompatiblearray",
    per_value(array_cat, strict=False),
    id="array_concat",
    **_CAT,
)


def _append(array: ArrayDatum | None, element: Any) -> ArrayDatum:
    if array is None or not array.dims:
        return ArrayDatum.of((element,))
    if len(array.dims) > 1:
        raise SqlError("22000", "argument must be empty or one-dimensional array")
    return ArrayDatum(((len(array.elements) + 1, array.dims[0][1]),), (*array.elements, element))


def _prepend(element: Any, array: ArrayDatum | None) -> ArrayDatum:
    if array is None or not array.dims:
        return ArrayDatum.of((element,))
    if len(array.dims) > 1:
        raise SqlError("22000", "argument must be empty or one-dimensional array")
    return ArrayDatum(((len(array.elements) + 1, array.dims[0][1]),), (element, *array.elements))


_ADD: dict[str, Any] = {"strict": False, "nullable": "never"}
register(
    "array_append",
    "anycompatiblearray, anycompatible -> anycompatiblearray",
    per_value(_append, strict=False),
    id="array_append",
    **_ADD,
)
register(
    "array_prepend",
    "anycompatible, anycompatiblearray -> anycompatiblearray",
    per_value(_prepend, strict=False),
    id="array_prepend",
    **_ADD,
)


def same(typ: ScalarType, wanted: Any) -> Callable[[Any], bool]:
    """Equality with `wanted` where NULL equals NULL."""
    if wanted is None:
        return lambda x: x is None
    bytes_of = encode_datum(typ, wanted)
    return lambda x: x is not None and encode_datum(typ, x) == bytes_of


def element_type(typ: ScalarType) -> ScalarType:
    assert typ.element is not None, typ
    return typ.element


@value(
    "array_remove",
    "anyarray, anyelement -> anyarray",
    with_site=True,
    strict=False,
    nullable="always",
    id="array_remove",
)
def _remove(site: CallSite, array: ArrayDatum | None, element: Any) -> ArrayDatum | None:
    if array is None:
        return None
    if len(array.dims) > 1:
        raise SqlError("0A000", "removing elements from multidimensional arrays is not supported")
    drop = same(element_type(site.params[0]), element)
    return ArrayDatum.of([e for e in array.elements if not drop(e)])


def _position_from(site: CallSite, array: ArrayDatum, element: Any, start: int) -> int | None:
    match = same(element_type(site.params[0]), element)
    for i, e in enumerate(array.elements):
        if i + 1 >= start and match(e):
            return i + 1
    return None


@value(
    "array_position",
    "anyarray, anyelement -> int4",
    with_site=True,
    strict=False,
    nullable="always",
    id="array_position",
)
def _position(site: CallSite, array: ArrayDatum | None, element: Any) -> int | None:
    return _position_start(site, array, element, 1)


@value(
    "array_position",
    "anyarray, anyelement, int4 -> int4",
    with_site=True,
    strict=False,
    nullable="always",
    id="array_position_from",
)
def _position_start(site: CallSite, array: ArrayDatum | None, element: Any, start: int | None) -> int | None:
    if array is None:
        return None
    if len(array.dims) > 1:
        raise SqlError("0A000", "searching for elements in multidimensional arrays is not supported")
    if element is None:
        return None
    if start is None:
        raise SqlError("22004", "initial position must not be null")
    return _position_from(site, array, element, start)


@value("array_contains", "anyelement, anyarray -> bool", with_site=True, can_error=False, id="array_contains")
def _contains_element(site: CallSite, element: Any, array: ArrayDatum) -> bool:
    return any(map(same(element_type(site.params[1]), element), array.elements))


def _texts(site: CallSite, array: ArrayDatum, null: str | None) -> list[str]:
    typ = element_type(site.params[0])
    texts = []
    for e in array.elements:
        if e is not None:
            texts.append(format_datum(typ, e))
        elif null is not None:
            texts.append(null)
    return texts


@value("array_to_string", "anyarray, text -> text", with_site=True, can_error=False, id="array_to_string")
def _to_string(site: CallSite, array: ArrayDatum, separator: str) -> str:
    return separator.join(_texts(site, array, None))


@value(
    "array_to_string",
    "anyarray, text, text -> text",
    with_site=True,
    strict=False,
    nullable="always",
    can_error=False,
    id="array_to_string_null",
)
def _to_string_null(site: CallSite, array: ArrayDatum | None, separator: str | None, null: str | None) -> str | None:
    if array is None or separator is None:
        return None
    return separator.join(_texts(site, array, null))


def _fill(element: Any, lengths: ArrayDatum | None, lowers: ArrayDatum | None) -> ArrayDatum:
    if lengths is None or lowers is None:
        raise SqlError("22004", "dimension array or low bound array must not be null")
    if None in lengths.elements or None in lowers.elements:
        raise SqlError("22004", "dimension values must not be null")
    if len(lengths.dims) > 1 or len(lowers.dims) > 1:
        raise SqlError("2202E", "wrong number of array subscripts")
    sizes = list(lengths.elements)
    if len(sizes) > MAX_DIMENSIONS:
        raise _too_deep(len(sizes))
    total = 1
    for size in sizes:
        if size < 0:
            raise SqlError("22023", "dimension values must be non-negative")
        total *= size
    if not sizes or not total:
        return _EMPTY
    if len(lowers.elements) != len(sizes):
        raise SqlError("2202E", "wrong number of array subscripts")
    if total > 10_000_000:
        raise SqlError("54000", f"array size exceeds the maximum allowed ({10_000_000})")
    return ArrayDatum(tuple(zip(sizes, lowers.elements)), (element,) * total)


def _fill_ones(element: Any, lengths: ArrayDatum | None) -> ArrayDatum:
    ones = None if lengths is None else ArrayDatum.of((1,) * len(lengths.elements))
    return _fill(element, lengths, ones)


for _int in ("int4", "int8"):
    for _params, _filler, _id in (("", _fill_ones, ""), (f", {_int}[]", _fill, "_bounds")):
        register(
            "array_fill",
            f"anyelement, {_int}[]{_params} -> anyarray",
            per_value(_filler, strict=False),
            id=f"array_fill_{_int}{_id}",
            strict=False,
            nullable="never",
        )


def _has_all(site: CallSite, a: Sequence[Any], b: Sequence[Any]) -> bool:
    typ = element_type(site.params[0])
    have = {encode_datum(typ, e) for e in a if e is not None}
    return all(e is not None and encode_datum(typ, e) in have for e in b)


@value(
    "@>", "anyarray, anyarray -> bool", with_site=True, operator=True, infix="@>", id="array_has_all", can_error=False
)
def _array_has_all(site: CallSite, a: ArrayDatum, b: ArrayDatum) -> bool:
    return _has_all(site, a.elements, b.elements)


@value(
    "<@", "anyarray, anyarray -> bool", with_site=True, operator=True, infix="<@", id="array_in_all", can_error=False
)
def _array_in_all(site: CallSite, a: ArrayDatum, b: ArrayDatum) -> bool:
    return _has_all(site, b.elements, a.elements)


@value(
    "&&", "anyarray, anyarray -> bool", with_site=True, operator=True, infix="&&", id="array_overlaps", can_error=False
)
def _array_overlaps(site: CallSite, a: ArrayDatum, b: ArrayDatum) -> bool:
    typ = element_type(site.params[0])
    have = {encode_datum(typ, e) for e in a.elements if e is not None}
    return any(e is not None and encode_datum(typ, e) in have for e in b.elements)


# --- op ANY, op ALL -----------------------------------------------------------------------------------------------------


Test = Callable[[ScalarType, Any, Any], bool]


def _ordered(accept: Callable[[bytes, bytes], bool]) -> Test:
    return lambda typ, a, b: accept(encode_datum(typ, a), encode_datum(typ, b))


_TESTS: dict[str, Test] = {
    "eq": _ordered(lambda a, b: a == b),
    "not_eq": _ordered(lambda a, b: a != b),
    "lt": _ordered(lambda a, b: a < b),
    "lte": _ordered(lambda a, b: a <= b),
    "gt": _ordered(lambda a, b: a > b),
    "gte": _ordered(lambda a, b: a >= b),
    "like": lambda typ, a, b: patterns.like_matcher(b, False)(a),
    "not_like": lambda typ, a, b: not patterns.like_matcher(b, False)(a),
    "ilike": lambda typ, a, b: patterns.like_matcher(b, True)(a),
    "not_ilike": lambda typ, a, b: not patterns.like_matcher(b, True)(a),
    "regex": lambda typ, a, b: patterns.regex(b).search(a) is not None,
    "iregex": lambda typ, a, b: patterns.regex(b, "i").search(a) is not None,
    "not_regex": lambda typ, a, b: patterns.regex(b).search(a) is None,
    "not_iregex": lambda typ, a, b: patterns.regex(b, "i").search(a) is None,
}
_SYMBOLS = {
    **{word: symbol for symbol, word in WORDS.items()},
    "like": "like",
    "not_like": "not like",
    "ilike": "ilike",
    "not_ilike": "not ilike",
    "regex": "~",
    "iregex": "~*",
    "not_regex": "!~",
    "not_iregex": "!~*",
}


def _quantified(test: Test, *, every: bool) -> Callable[..., bool | None]:
    def run(site: CallSite, a: Any, container: Any) -> bool | None:
        if container is None:
            return None
        elements = container.elements if isinstance(container, ArrayDatum) else container
        unknown = False
        for e in elements:
            if e is None or a is None:
                unknown = True
            elif test(site.params[0], a, e) is not every:
                return not every
        return None if unknown else every

    return run


for _word, _test in _TESTS.items():
    for _quantifier in ("any", "all"):
        for _container in ("array", "list"):
            _suffix = "" if _container == "array" else "_list"
            register(
                f"{_quantifier}_{_word}{_suffix}",
                f"anyelement, any{_container} -> bool",
                per_value(_quantified(_test, every=_quantifier == "all"), strict=False, with_site=True),
                id=f"{_quantifier}_{_word}{_suffix}",
                strict=False,
                nullable="always",
                infix=f"{_SYMBOLS[_word]} {_quantifier}",
            )
