"""jsonb's text: parsing JSON, and printing it in Materialize's compact or PostgreSQL's spaced form."""

from __future__ import annotations

import json
from decimal import Decimal
from json.encoder import encode_basestring
from typing import Any, NoReturn

from mzlite.repr.decimals import NumericTextError, parse_numeric
from mzlite.repr.jsonb import JSON_NULL, Json, JsonNull


class JsonTextError(ValueError):
    """Why a text is no JSON value."""


_MAX_DEPTH = 128


def parse_json(text: str) -> Json:
    """Parse; keys' last value wins, numbers become Decimals of at most 39 digits; JsonTextError otherwise."""
    try:
        value = json.loads(text, parse_float=_number, parse_int=_number, parse_constant=_constant)
        return _settle(value, 0)
    except json.JSONDecodeError as e:
        raise JsonTextError(_explain(text, e)) from None
    except NumericTextError as e:
        raise JsonTextError(
            f'"{e.args[0]}" is out of range for type numeric: exceeds maximum precision 39 at line 1 column {len(text)}'
        ) from None
    except RecursionError:
        raise JsonTextError("recursion limit exceeded") from None


def _number(text: str) -> Decimal:
    try:
        return parse_numeric(text)
    except NumericTextError as e:
        e.args = (text,)
        raise


def _constant(_: str) -> NoReturn:
    raise JsonTextError("expected value at line 1 column 1")


def _settle(value: Any, depth: int) -> Json:
    """JSON's null made JSON_NULL, and text that is no Unicode rejected."""
    if value is None:
        return JSON_NULL
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            raise JsonTextError("lone leading surrogate in hex escape") from None
    elif isinstance(value, list | dict):
        if depth >= _MAX_DEPTH:
            raise JsonTextError("recursion limit exceeded")
        if isinstance(value, list):
            return [_settle(v, depth + 1) for v in value]
        return {_settle(k, depth + 1): _settle(v, depth + 1) for k, v in value.items()}
    return value


def _explain(text: str, e: json.JSONDecodeError) -> str:
    """serde_json's words for the place and kind of an error."""
    column = e.colno
    if e.pos >= len(text.rstrip()):
        ended = {
            "Expecting value": "EOF while parsing a value",
            "Unterminated string starting at": "EOF while parsing a string",
            "Expecting property name enclosed in double quotes": "EOF while parsing an object",
            "Expecting ',' delimiter": "EOF while parsing a list" if "[" in text else "EOF while parsing an object",
        }.get(e.msg, "EOF while parsing an object")
        return f"{ended} at line {e.lineno} column {max(column - 1, 0)}"
    kind: str | None = {
        "Expecting value": "expected value",
        "Extra data": "trailing characters",
        "Expecting property name enclosed in double quotes": "key must be a string",
        "Expecting ':' delimiter": "expected `:`",
        "Expecting ',' delimiter": "expected `,` or `]`" if "[" in text else "expected `,` or `}`",
        "Unterminated string starting at": "EOF while parsing a string",
    }.get(e.msg)
    if kind is None:
        if e.msg.startswith("Invalid control character"):
            kind = "control character (\\u0000-\\u001F) found while parsing a string"
        elif e.msg.startswith("Invalid") and "escape" in e.msg:
            kind = "invalid escape"
        elif e.msg.startswith("Illegal trailing comma"):
            kind = "trailing comma"
        else:
            kind = "expected value"
    elif kind == "expected value" and text[e.pos] in "tfn":
        kind = "expected ident"
        column += 1
    return f"{kind} at line {e.lineno} column {column}"


def format_json(value: Json, *, spaced: bool = False) -> str:
    """Compact (`{"a":1}`), or spaced as PostgreSQL prints (`{"a": 1, "b": 2}`); keys in byte order."""
    out: list[str] = []
    _format(value, out, ", " if spaced else ",", ": " if spaced else ":")
    return "".join(out)


def _format(value: Json, out: list[str], comma: str, colon: str) -> None:
    if isinstance(value, str):
        out.append(encode_basestring(value))
    elif isinstance(value, Decimal):
        out.append(format_number(value))
    elif value is True:
        out.append("true")
    elif value is False:
        out.append("false")
    elif isinstance(value, JsonNull):
        out.append("null")
    elif isinstance(value, dict):
        out.append("{")
        for i, key in enumerate(sorted(value)):
            if i:
                out.append(comma)
            out.append(encode_basestring(key))
            out.append(colon)
            _format(value[key], out, comma, colon)
        out.append("}")
    else:
        out.append("[")
        for i, element in enumerate(value):
            if i:
                out.append(comma)
            _format(element, out, comma, colon)
        out.append("]")


def format_number(value: Decimal) -> str:
    """A JSON number in plain notation, without trailing zeros."""
    text = format(value, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def format_json_pretty(value: Json, indent: int = 0) -> str:
    """Two spaces a level, one entry a line; empty containers on one line (jsonb_pretty)."""
    pad = "  " * (indent + 1)
    if isinstance(value, dict) and value:
        rows = [f"{pad}{encode_basestring(k)}: {format_json_pretty(value[k], indent + 1)}" for k in sorted(value)]
        return "{\n" + ",\n".join(rows) + "\n" + "  " * indent + "}"
    if isinstance(value, list) and value:
        rows = [f"{pad}{format_json_pretty(v, indent + 1)}" for v in value]
        return "[\n" + ",\n".join(rows) + "\n" + "  " * indent + "]"
    return format_json(value)
