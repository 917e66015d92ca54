"""Text in and out: how every type is read and printed.

textparse     parse_datum(typ, text) -> datum, or an SqlError in Materialize's words
textformat    format_datum(typ, datum) -> text
textcolumns   parse_column, format_column: the same for columns, vectorised for the common types
"""

from __future__ import annotations

from mzlite.repr.textcolumns import format_column, parse_column
from mzlite.repr.textformat import format_bytea, format_datum, format_float, format_float4, format_uuid
from mzlite.repr.textparse import fit_length, parse_datum, quoted, range_error, round_timestamp, syntax_error

__all__ = [
    "fit_length",
    "format_bytea",
    "format_column",
    "format_datum",
    "format_float",
    "format_float4",
    "format_uuid",
    "parse_column",
    "parse_datum",
    "quoted",
    "range_error",
    "round_timestamp",
    "syntax_error",
]
