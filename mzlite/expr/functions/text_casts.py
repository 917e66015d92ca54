"""Casts to and from text for every type, among the text types, and element by element inside containers."""

from __future__ import annotations

from typing import Any

from mzlite.expr.call import Args, CallSite, Kernel, RowErrors
from mzlite.expr.functions.number_casts import LONG_NAMES, cast, identity
from mzlite.expr.functions.registry import FUNCTIONS, operator, register
from mzlite.expr.kernels.adapt import per_value
from mzlite.repr.column import Column
from mzlite.repr.datum import ArrayDatum, column_from_datums, column_to_datums
from mzlite.repr.errors import SqlError, unsupported
from mzlite.repr.text import format_datum, parse_datum
from mzlite.repr.textcolumns import format_column, parse_column
from mzlite.repr.typenames import type_name
from mzlite.repr.types import ScalarType
from mzlite.repr.var import VarColumn

_FEW = 24
_SCALARS = (
    "bool int2 int4 int8 uint2 uint4 uint8 float4 float8 numeric oid regclass regproc regtype mz_timestamp date time"
    " timestamp timestamptz interval bytea uuid jsonb int2vector"
)
_CONTAINERS = ("array", "list", "map", "record", "range")
_TEXTS = ("text", "varchar", "bpchar")
# Vectorised both ways; the wire form of bool and jsonb is not the form of a cast.
_BY_COLUMN = frozenset(
    (
        "int2",
        "int4",
        "int8",
        "uint2",
        "uint4",
        "uint8",
        "oid",
        "date",
        "timestamp",
        "timestamptz",
        "time",
        "mz_timestamp",
    )
)


# --- to text ----------------------------------------------------------------------------------------------------------


def text_of(typ: ScalarType, datum: Any) -> str:
    """A datum as CAST to text prints it."""
    if typ.kind == "bool":
        return "true" if datum else "false"
    return format_datum(typ, datum)


def _to_text(source: ScalarType | None = None) -> Kernel:
    """source: overrides the parameter's type (a numeric's declared scale)."""
    slow = per_value(lambda site, datum: text_of(source or site.params[0], datum), with_site=True)

    def kernel(site: CallSite, args: Args, n: int, errors: RowErrors) -> Column:
        typ = source or site.params[0]
        if len(args[0]) > _FEW and (typ.kind in _BY_COLUMN or typ.kind == "numeric"):
            return VarColumn.from_bytes(format_column(typ, args[0]))
        return slow(site, args, n, errors)

    return kernel


def _fit_value(site: CallSite, text: str) -> str:
    """An explicit cast to varchar(n) or bpchar(n) cuts; bpchar keeps no trailing blanks."""
    if site.typ.length is not None:
        text = text[: site.typ.length]
    return text.rstrip(" ") if site.typ.kind == "bpchar" else text


def _fit_strict_value(site: CallSite, text: str) -> str:
    """An assignment refuses to cut anything but blanks."""
    length = site.typ.length
    if length is not None and len(text) > length:
        if text[length:].strip(" "):
            name = type_name(ScalarType(site.typ.kind))
            raise SqlError("22001", f"value too long for type {name}({length})")
        text = text[:length]
    return text.rstrip(" ") if site.typ.kind == "bpchar" else text


_fit = per_value(_fit_value, with_site=True)
_fit_strict = per_value(_fit_strict_value, with_site=True)
_TEXT_SITE = "text"


def _text_site(site: CallSite) -> CallSite:
    own = site.cache.get(_TEXT_SITE)
    if own is None:
        own = site.cache[_TEXT_SITE] = CallSite(site.id, (ScalarType("text"),), site.typ)
    assert isinstance(own, CallSite)
    return own


def _then_fit(kernel: Kernel, fit: Kernel) -> Kernel:
    def run(site: CallSite, args: Args, n: int, errors: RowErrors) -> Column:
        text = kernel(site, args, n, errors)
        if site.typ.length is None and site.typ.kind != "bpchar":
            return text
        return fit(_text_site(site), (text,), n, errors)

    return run


def _register_strict(source: str, target: str, kernel: Kernel, *, polymorphic: bool = False) -> None:
    shown = f"{LONG_NAMES.get(source, source)}_to_{LONG_NAMES.get(target, target)}"
    param = f"any{source}" if polymorphic and source != "record" else source
    register("", f"{param} -> {target}", kernel, id=f"cast_{source}_{target}_strict", is_cast=True, display=shown)


def _register_to_text() -> None:
    for kind in _SCALARS.split():
        kernel = _to_text()
        cast(kind, "text", kernel, can_error=False)
        for target in ("varchar", "bpchar"):
            cast(kind, target, _then_fit(kernel, _fit), can_error=False)
            _register_strict(kind, target, _then_fit(kernel, _fit_strict))
    for scale in range(40):
        typ = ScalarType("numeric", scale=scale)
        register(
            "",
            "numeric -> text",
            _to_text(typ),
            id=f"cast_numeric_text_scale_{scale}",
            is_cast=True,
            can_error=False,
            display="numeric_to_text",
        )
    for kind in _CONTAINERS:
        kernel = _to_text()
        param = kind if kind == "record" else f"any{kind}"
        for target in _TEXTS:
            register(
                "",
                f"{param} -> {target}",
                kernel if target == "text" else _then_fit(kernel, _fit),
                id=f"cast_{kind}_{target}",
                is_cast=True,
                can_error=False,
                display=f"{kind}_to_{LONG_NAMES.get(target, target)}",
            )
            if target != "text":
                _register_strict(kind, target, _then_fit(kernel, _fit_strict), polymorphic=True)


# --- among text types ---------------------------------------------------------------------------------------------------


def _register_among_texts() -> None:
    for source in ("text", "varchar", "bpchar", "name", "char", "aclitem", "mz_aclitem"):
        for target in _TEXTS:
            if source == target and target == "text":
                continue
            display = f"{LONG_NAMES.get(source, source)}_to_{LONG_NAMES.get(target, target)}"
            kernel = identity if target == "text" else _then_fit(identity, _fit)
            cast(source, target, kernel, can_error=False, display=display)
            if target != "text":
                _register_strict(source, target, _then_fit(identity, _fit_strict))
    for source in ("text", "varchar", "bpchar"):
        cast(source, "name", per_value(lambda s: s.encode()[:63].decode(errors="ignore")), can_error=False)
        cast(source, "char", per_value(lambda s: s[:1]), can_error=False)
    cast("name", "char", per_value(lambda s: s[:1]), can_error=False)
    cast("char", "int4", per_value(lambda s: int.from_bytes(s.encode()[:1], "big", signed=True)), can_error=False)
    cast("int4", "char", per_value(lambda i: chr(i & 127) if i else ""), can_error=False)
    cast("mz_aclitem", "aclitem", identity, can_error=False)
    # bpchar(n) as functions over "any character string" see it: with its blanks.
    register(
        "pad_char",
        "bpchar -> bpchar",
        per_value(lambda site, s: s.ljust(site.typ.length or 0), with_site=True),
        id="pad_char",
        can_error=False,
        display="padchar",
    )


# --- from text --------------------------------------------------------------------------------------------------------


def parse_value(site: CallSite, text: str) -> Any:
    return parse_datum(site.typ, text)


_parse_slow = per_value(parse_value, with_site=True)


def from_text(site: CallSite, args: Args, n: int, errors: RowErrors) -> Column:
    text = args[0]
    assert isinstance(text, VarColumn)
    if len(text) > _FEW and site.typ.layout.value != "var":
        try:
            return parse_column(site.typ, text)
        except SqlError:
            pass  # some row is bad: find out which
    return _parse_slow(site, args, n, errors)


_FROM_TEXT = (
    "bool int2 int4 int8 uint2 uint4 uint8 float4 float8 numeric oid mz_timestamp date time timestamp timestamptz"
    " interval bytea jsonb uuid array list map range int2vector regclass regproc regtype"
)
_UNNAMED = {"array", "list", "map", "range"}


def _register_from_text() -> None:
    for source in ("text", "varchar", "bpchar", "name"):
        for target in _FROM_TEXT.split():
            shown = f"{LONG_NAMES.get(source, source)}_to_{LONG_NAMES.get(target, target)}"
            register(
                "",
                f"{source} -> text" if target in _UNNAMED else f"{source} -> {target}",
                from_text,
                id=f"cast_{source}_{target}",
                is_cast=True,
                display=shown,
                # The concrete container type is the Call's own.
                returns=ScalarType(target),
            )


# --- inside containers ------------------------------------------------------------------------------------------------


def _convert_elements(site: CallSite, args: Args, n: int, errors: RowErrors) -> Column:
    """cast_elements<from,to>: params are (from, to); the Call's own type has the element's modifiers."""
    source, _ = site.params
    target = site.typ
    datums = column_to_datums(source, args[0])
    out: list[Any] = []
    for row, datum in enumerate(datums):
        try:
            out.append(None if datum is None else convert_datum(source, target, datum))
        except SqlError as error:
            errors.add(row, error)
            out.append(None)
    return column_from_datums(target, out)


def convert_datum(source: ScalarType, target: ScalarType, datum: Any) -> Any:
    """A datum of `source` cast to `target`, as an explicit cast."""
    from mzlite.expr.casts import find_cast

    if datum is None:
        return None
    if source.kind in ("array", "list", "map", "record") and target.kind in ("array", "list", "map", "record"):
        return _convert_container(source, target, datum)
    function = find_cast(source, target, "explicit")
    assert function is not None, (source, target)
    if not function:
        return datum
    entry = FUNCTIONS[function]
    assert entry.kernel is not None
    errors = RowErrors()
    column = entry.kernel(CallSite(function, entry.params, target), (column_from_datums(source, [datum]),), 1, errors)
    if errors:
        from mzlite.repr.errors import decode_error

        raise decode_error(errors.first[0])
    return column_to_datums(target, column)[0]


def _convert_container(source: ScalarType, target: ScalarType, datum: Any) -> Any:
    if source.kind == "record":
        assert source.fields is not None and target.fields is not None
        pairs = zip(source.fields, target.fields, datum)
        return tuple(convert_datum(s.scalar, t.scalar, value) for (_, s), (_, t), value in pairs)
    assert source.element is not None and target.element is not None
    a, b = source.element, target.element
    if target.kind == "list" and source.kind == "array":
        if len(datum.dims) > 1:
            raise unsupported(f"casting multi-dimensional array to list; got array with {len(datum.dims)} dimensions")
        return tuple(convert_datum(a, b, e) for e in datum.elements)
    if source.kind == "array":
        return ArrayDatum(datum.dims, tuple(convert_datum(a, b, e) for e in datum.elements))
    if source.kind == "list":
        return tuple(convert_datum(a, b, e) for e in datum)
    return {key: convert_datum(a, b, value) for key, value in datum.items()}


def _concat_any(site: CallSite, a: Any, b: Any) -> str:
    x, y = site.params
    return text_of(x, a) + text_of(y, b)


for _left, _right in (("text", "anynonarray"), ("anynonarray", "text")):
    operator(
        "||",
        "concat",
        f"{_left}, {_right} -> text",
        per_value(_concat_any, with_site=True),
        id=f"concat_{_left}_{_right}",
        can_error=False,
    )
_register_to_text()
_register_among_texts()
_register_from_text()
register(
    "",
    "any, any -> any",
    _convert_elements,
    id="cast_elements",
    is_cast=True,
    returns=lambda args: args[1],
    display="cast_elements",
)
cast(
    "int2vector",
    "array",
    per_value(lambda v: ArrayDatum(((len(v), 0),) if v else (), tuple(v))),
    can_error=False,
)
