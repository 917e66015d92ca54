"""Text functions: lengths, case, slicing, padding, searching, concatenation."""

from __future__ import annotations

import codecs
import unicodedata
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import pyarrow.compute as pc

from mzlite.expr.call import Args, CallSite, Kernel, RowErrors
from mzlite.expr.functions.registry import operator, register
from mzlite.expr.kernels.adapt import merge_valid, per_value, spread_valid, values_of, width
from mzlite.repr.column import Column
from mzlite.repr.datum import ArrayDatum
from mzlite.repr.errors import SqlError
from mzlite.repr.fixed import FixedColumn
from mzlite.repr.textcolumns import format_column
from mzlite.repr.var import VarColumn

_FEW = 24
MAX_RESULT_BYTES = 100 * 1024 * 1024


def too_large() -> SqlError:
    return SqlError("54000", "requested length too large")


F = TypeVar("F", bound=Callable[..., Any])


def value(name: str, signature: str, **options: Any) -> Callable[[F], F]:
    """Decorator: register a function of Python values."""

    def decorate(f: F) -> F:
        strict = options.get("strict", True)
        with_site = options.pop("with_site", False)
        register(name, signature, per_value(f, strict=strict, with_site=with_site), **options)
        return f

    return decorate


# --- vectorised -------------------------------------------------------------------------------------------------------


def _text_to_text(arrow: str, plain: Callable[[str], str]) -> Kernel:
    def kernel(site: CallSite, args: Args, n: int, errors: RowErrors) -> Column:
        column = args[0]
        assert isinstance(column, VarColumn)
        if len(column) <= _FEW:
            return VarColumn.from_strings([None if s is None else plain(s) for s in column.to_strings()])
        out = VarColumn.from_arrow(
            pc.call_function(arrow, [VarColumn(column.offsets, column.data).to_arrow(text=True)])
        )
        out.valid = column.valid
        return out

    return kernel


def char_length(site: CallSite, args: Args, n: int, errors: RowErrors) -> Column:
    column = args[0]
    assert isinstance(column, VarColumn)
    if len(column) <= _FEW:
        lengths = np.array([len(s or "") for s in column.to_strings()], np.int32)
    else:
        arrow = VarColumn(column.offsets, column.data).to_arrow(text=True)
        lengths = pc.utf8_length(arrow).to_numpy(zero_copy_only=False).astype(np.int32)
    return FixedColumn(lengths, column.valid)


def byte_length(times: int) -> Kernel:
    def kernel(site: CallSite, args: Args, n: int, errors: RowErrors) -> Column:
        column = args[0]
        assert isinstance(column, VarColumn)
        return FixedColumn((column.lengths() * times).astype(np.int32), column.valid)

    return kernel


def concat_columns(site: CallSite, args: Args, n: int, errors: RowErrors) -> Column:
    """a || b on bytes: NULL if either is."""
    rows = width(args)
    valid = spread_valid(merge_valid(args), rows)
    columns = []
    for arg in args:
        assert isinstance(arg, VarColumn)
        columns.append(arg if len(arg) == rows else arg.take(np.zeros(rows, np.int64)))
    if rows <= _FEW:
        a, b = (c.to_bytes() for c in columns)
        return VarColumn.from_bytes([None if x is None or y is None else x + y for x, y in zip(a, b)])
    arrows = [VarColumn(c.offsets, c.data).to_arrow() for c in columns]
    empty = VarColumn.from_bytes([b""]).to_arrow()[0]
    out = VarColumn.from_arrow(pc.binary_join_element_wise(*arrows, empty))
    out.valid = valid
    return out


register("upper", "text -> text", _text_to_text("utf8_upper", str.upper), id="upper", can_error=False)
register("lower", "text -> text", _text_to_text("utf8_lower", str.lower), id="lower", can_error=False)
for _name in ("char_length", "character_length", "length"):
    register(_name, "text -> int4", char_length, id=f"{_name}_text", can_error=False, display="char_length")
register("length", "bytea -> int4", byte_length(1), can_error=False)
for _kind in ("text", "bpchar", "bytea"):
    register("octet_length", f"{_kind} -> int4", byte_length(1), can_error=False, pads=True)
    register("bit_length", f"{_kind} -> int4", byte_length(8), can_error=False, pads=True)
operator("||", "concat", "text, text -> text", concat_columns, id="text_concat", can_error=False)
operator("||", "concat", "bytea, bytea -> bytea", concat_columns, id="bytea_concat", can_error=False)


# --- concat: any types, as their text -----------------------------------------------------------------------------------


def _texts(site: CallSite, args: Args, rows: int) -> list[list[str | None]]:
    """Each argument's values as text, the way output shows them."""
    out: list[list[str | None]] = []
    for typ, arg in zip(site.params, args):
        values = [None if b is None else b.decode() for b in format_column(typ, arg)]
        out.append(values if len(values) == rows else values * rows)
    return out


def _concat(site: CallSite, args: Args, n: int, errors: RowErrors) -> Column:
    rows = width(args)
    columns = _texts(site, args, rows)
    return VarColumn.from_strings(["".join(t for t in row if t is not None) for row in zip(*columns)])


def _concat_ws(site: CallSite, args: Args, n: int, errors: RowErrors) -> Column:
    rows = width(args)
    columns = _texts(site, args, rows)
    return VarColumn.from_strings(
        [None if row[0] is None else row[0].join(t for t in row[1:] if t is not None) for row in zip(*columns)]
    )


register(
    "concat", "variadic any -> text", _concat, id="concat", strict=False, nullable="never", can_error=False, pads=True
)
register(
    "concat_ws", "text, any, variadic any -> text", _concat_ws, id="concat_ws", strict=False, can_error=False, pads=True
)


# --- per value --------------------------------------------------------------------------------------------------------


def _slice_kernel(slow: Kernel) -> Kernel:
    """substr at a constant place, over many rows."""

    def kernel(site: CallSite, args: Args, n: int, errors: RowErrors) -> Column:
        column, bounds = args[0], args[1:]
        if len(column) <= _FEW or any(len(b) != 1 or b.valid is not None for b in bounds):
            return slow(site, args, n, errors)
        assert isinstance(column, VarColumn)
        start, *length = (int(values_of(b)[0]) for b in bounds)
        if length and length[0] < 0:
            return slow(site, args, n, errors)
        stop = max(start - 1 + length[0], 0) if length else None
        arrow = VarColumn(column.offsets, column.data).to_arrow(text=True)
        out = VarColumn.from_arrow(pc.utf8_slice_codeunits(arrow, max(start - 1, 0), stop))
        out.valid = column.valid
        return out

    return kernel


def _substr(text: str, start: int) -> str:
    return text[max(start - 1, 0) :]


def _substr_length(text: str, start: int, length: int) -> str:
    if length < 0:
        raise SqlError("22011", "negative substring length not allowed")
    return text[max(start - 1, 0) : max(start - 1 + length, 0)]


for _name in ("substr", "substring"):
    register(
        _name,
        "text, int8 -> text",
        _slice_kernel(per_value(_substr)),
        id=f"{_name}_2",
        display="substr",
        can_error=False,
    )
    register(
        _name, "text, int8, int8 -> text", _slice_kernel(per_value(_substr_length)), id=f"{_name}_3", display="substr"
    )


@value("substr", "bytea, int8 -> bytea", can_error=False)
@value("substring", "bytea, int8 -> bytea", can_error=False)
def _substr_bytes(data: bytes, start: int) -> bytes:
    return data[max(start - 1, 0) :]


@value("substr", "bytea, int8, int8 -> bytea")
@value("substring", "bytea, int8, int8 -> bytea")
def _substr_bytes_length(data: bytes, start: int, length: int) -> bytes:
    if length < 0:
        raise SqlError("22011", "negative substring length not allowed")
    return data[max(start - 1, 0) : max(start - 1 + length, 0)]


@value("left", "text, int4 -> text", can_error=False)
def _left(text: str, count: int) -> str:
    return text[:count]


@value("right", "text, int4 -> text", can_error=False)
def _right(text: str, count: int) -> str:
    if count == -(1 << 31):
        return text  # its negation wraps round to itself
    return text[-count:] if count > 0 else text[-count:] if count < 0 else ""


def _pad(text: str, length: int, fill: str) -> tuple[str, str]:
    """(text cut to length, what is missing)."""
    if length < 0 or length * 4 > MAX_RESULT_BYTES:
        raise too_large()
    if length <= len(text):
        return text[:length], ""
    if not fill:
        return text, ""
    missing = length - len(text)
    return text, (fill * (missing // len(fill) + 1))[:missing]


@value("lpad", "text, int8 -> text")
def _lpad(text: str, length: int) -> str:
    return _lpad_fill(text, length, " ")


@value("lpad", "text, int8, text -> text")
def _lpad_fill(text: str, length: int, fill: str) -> str:
    cut, padding = _pad(text, length, fill)
    return padding + cut


@value("rpad", "text, int8 -> text")
def _rpad(text: str, length: int) -> str:
    return _rpad_fill(text, length, " ")


@value("rpad", "text, int8, text -> text")
def _rpad_fill(text: str, length: int, fill: str) -> str:
    cut, padding = _pad(text, length, fill)
    return cut + padding


for _name, _strip in (("btrim", str.strip), ("trim", str.strip), ("ltrim", str.lstrip), ("rtrim", str.rstrip)):
    register(
        _name, "text -> text", per_value(lambda s, f=_strip: f(s, " ")), id=f"{_name}_1", can_error=False, display=_name
    )
    register(_name, "text, text -> text", per_value(_strip), id=f"{_name}_2", can_error=False, display=_name)


@value("repeat", "text, int4 -> text")
def _repeat(text: str, times: int) -> str:
    if times > 0 and len(text.encode()) * times > MAX_RESULT_BYTES:
        raise too_large()
    return text * max(times, 0)


@value("replace", "text, text, text -> text", can_error=False)
def _replace(text: str, old: str, new: str) -> str:
    return text.replace(old, new) if old else text


@value("translate", "text, text, text -> text", can_error=False)
def _translate(text: str, old: str, new: str) -> str:
    table: dict[int, str] = {}
    for i, c in enumerate(old):
        table.setdefault(ord(c), new[i] if i < len(new) else "")
    return text.translate(table)


@value("split_part", "text, text, int8 -> text")
def _split_part(text: str, separator: str, index: int) -> str:
    if index <= 0:
        raise SqlError("22023", "field position must be greater than zero")
    parts = text.split(separator) if separator else [text]
    return parts[index - 1] if index <= len(parts) else ""


@value("string_to_array", "text, text -> text[]", strict=False, nullable="always", can_error=False)
def _string_to_array(text: str | None, separator: str | None) -> ArrayDatum | None:
    return _string_to_array_null(text, separator, None)


@value("string_to_array", "text, text, text -> text[]", strict=False, nullable="always", can_error=False)
def _string_to_array_null(text: str | None, separator: str | None, null: str | None) -> ArrayDatum | None:
    if text is None:
        return None
    if not text:
        return ArrayDatum.of(())
    if separator == "":
        return ArrayDatum.of([text])
    parts = list(text) if separator is None else text.split(separator)
    return ArrayDatum.of([None if null is not None and p == null else p for p in parts])


@value("strpos", "text, text -> int4", can_error=False, display="position")
def _strpos(text: str, part: str) -> int:
    return text.find(part) + 1


@value("position", "text, text -> int4", can_error=False)
def _position(part: str, text: str) -> int:
    return text.find(part) + 1


@value("starts_with", "text, text -> bool", can_error=False)
def _starts_with(text: str, prefix: str) -> bool:
    return text.startswith(prefix)


@value("reverse", "text -> text", can_error=False)
def _reverse(text: str) -> str:
    return text[::-1]


@value("initcap", "text -> text", can_error=False)
def _initcap(text: str) -> str:
    out = []
    inside = False
    for c in text:
        out.append(c.lower() if inside else c.upper())
        inside = c.isalnum()
    return "".join(out)


@value("ascii", "text -> int4", can_error=False)
def _ascii(text: str) -> int:
    return ord(text[0]) if text else 0


@value("chr", "int4 -> text")
def _chr(code: int) -> str:
    if code == 0:
        raise SqlError("54000", "null character not permitted")
    if not 0 < code <= 0x10FFFF or 0xD800 <= code < 0xE000:
        raise SqlError("54000", f"requested character not valid for encoding: {code}")
    return chr(code)


@value("overlay", "text, text, int8 -> text")
def _overlay(text: str, new: str, start: int) -> str:
    return _overlay_length(text, new, start, len(new))


@value("overlay", "text, text, int8, int8 -> text")
def _overlay_length(text: str, new: str, start: int, length: int) -> str:
    if start <= 0:
        raise SqlError("22011", "negative substring length not allowed")
    return text[: start - 1] + new + text[max(start - 1 + length, 0) :]


@value("to_hex", "int4 -> text", can_error=False)
def _to_hex4(number: int) -> str:
    return f"{number & 0xFFFFFFFF:x}"


@value("to_hex", "int8 -> text", can_error=False)
def _to_hex8(number: int) -> str:
    return f"{number & 0xFFFFFFFFFFFFFFFF:x}"


@value("normalize", "text -> text", can_error=False)
def _normalize(text: str) -> str:
    return unicodedata.normalize("NFC", text)


@value("normalize", "text, text -> text")
def _normalize_form(text: str, form: str) -> str:
    name = form.upper()
    if name not in ("NFC", "NFD", "NFKC", "NFKD"):
        raise SqlError("22023", f"invalid normalization form: {form}")
    return unicodedata.normalize(name, text)  # type: ignore[arg-type]


@value("constant_time_eq", "text, text -> bool", can_error=False)
@value("constant_time_eq", "bytea, bytea -> bool", can_error=False)
def _constant_time_eq(a: Any, b: Any) -> bool:
    return bool(a == b)


def _codec(name: str) -> str:
    """Python's name of a text encoding."""
    known = name.lower().replace("_", "-")
    try:
        b"a".decode(known)
        return codecs.lookup(known).name
    except (LookupError, UnicodeError):
        raise SqlError("22023", f"invalid encoding name '{name}'") from None


@value("length", "bytea, text -> int4", display="length")
def _length_encoding(data: bytes, encoding: str) -> int:
    codec = _codec(encoding)
    try:
        return len(data.decode(codec, "replace" if codec != "utf-8" else "strict"))
    except UnicodeDecodeError:
        raise SqlError("22021", f'invalid byte sequence for encoding "{encoding}"') from None
