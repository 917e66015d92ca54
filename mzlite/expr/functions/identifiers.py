"""Quoting and taking apart SQL identifiers and literals."""

from __future__ import annotations

from mzlite.expr.functions.text import value
from mzlite.repr.datum import ArrayDatum
from mzlite.repr.errors import SqlError

# Words that cannot name a column or table without quotes.
_RESERVED = frozenset(
    [
        "all",
        "analyse",
        "analyze",
        "and",
        "any",
        "array",
        "as",
        "asc",
        "asymmetric",
        "both",
        "case",
        "cast",
        "check",
        "collate",
        "column",
        "constraint",
        "create",
        "cross",
        "current_catalog",
        "current_date",
        "current_role",
        "current_time",
        "current_timestamp",
        "current_user",
        "default",
        "deferrable",
        "desc",
        "distinct",
        "do",
        "else",
        "end",
        "except",
        "false",
        "fetch",
        "for",
        "foreign",
        "from",
        "full",
        "grant",
        "group",
        "having",
        "in",
        "initially",
        "inner",
        "intersect",
        "into",
        "is",
        "isnull",
        "join",
        "lateral",
        "leading",
        "left",
        "like",
        "limit",
        "localtime",
        "localtimestamp",
        "natural",
        "not",
        "notnull",
        "null",
        "offset",
        "on",
        "only",
        "or",
        "order",
        "outer",
        "overlaps",
        "placing",
        "primary",
        "references",
        "returning",
        "right",
        "select",
        "session_user",
        "similar",
        "some",
        "symmetric",
        "table",
        "tablesample",
        "then",
        "to",
        "trailing",
        "true",
        "union",
        "unique",
        "user",
        "using",
        "variadic",
        "verbose",
        "when",
        "where",
        "window",
        "with",
    ]
)


@value("quote_ident", "text -> text", can_error=False)
def _quote_ident(text: str) -> str:
    plain = text and (text[0].isalpha() or text[0] == "_") and all(c.isalnum() or c in "_$" for c in text)
    if plain and text == text.lower() and text.isascii() and text not in _RESERVED:
        return text
    return '"' + text.replace('"', '""') + '"'


@value("quote_literal", "text -> text", can_error=False)
def _quote_literal(text: str) -> str:
    quoted = "'" + text.replace("'", "''").replace("\\", "\\\\") + "'"
    return "E" + quoted if "\\" in text else quoted


@value("parse_ident", "text -> text[]")
def _parse_ident(text: str) -> ArrayDatum:
    return _parse_ident_strict(text, True)


@value("parse_ident", "text, bool -> text[]")
def _parse_ident_strict(text: str, strict: bool) -> ArrayDatum:
    def bad(detail: str | None = None) -> SqlError:
        return SqlError("22023", f'string is not a valid identifier: "{text}"', detail=detail)

    parts: list[str] = []
    i, n = 0, len(text)

    def spaces(i: int) -> int:
        while i < n and text[i].isspace():
            i += 1
        return i

    i = spaces(i)
    while True:
        if i < n and text[i] == '"':
            end = i + 1
            out = []
            while True:
                if end >= n:
                    raise bad("String has unclosed double quotes.")
                if text[end] == '"':
                    if text.startswith('""', end):
                        out.append('"')
                        end += 2
                        continue
                    break
                out.append(text[end])
                end += 1
            if not out:
                raise bad("Quoted identifier must not be empty.")
            parts.append("".join(out))
            i = end + 1
        else:
            end = i
            while end < n and (text[end].isalnum() or text[end] in "_$" or ord(text[end]) > 127):
                if end == i and (text[end].isdigit() or text[end] == "$"):
                    break
                end += 1
            if end == i:
                if i < n and text[i] == ".":
                    raise bad('No valid identifier before ".".')
                raise bad('No valid identifier after ".".' if parts else None)
            parts.append(text[i:end].lower())
            i = end
        i = spaces(i)
        if i >= n:
            break
        if text[i] != ".":
            if strict:
                raise bad()
            break
        i = spaces(i + 1)
    return ArrayDatum.of(parts)
