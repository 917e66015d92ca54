"""COPY's data formats: text, csv and binary, in both directions.

`CopyReader.feed(bytes)` cuts a stream into rows wherever the client cut its messages, and parses whole batches of lines
at once: the text path splits with bytes methods and hands columns of strings to `repr.text.parse_column`.
Source: PostgreSQL 15 documentation, COPY, "File Formats".
"""

from __future__ import annotations

import csv
import io
import re
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.csv as pacsv

from adapter.sql.plans import CopyFormat
from mzlite.repr.binary import decode_param, encode_column
from mzlite.repr.column import Column
from mzlite.repr.datum import column_from_datums
from mzlite.repr.errors import SqlError
from mzlite.repr.text import format_column, parse_column
from mzlite.repr.types import RelationDesc
from mzlite.repr.var import VarColumn

BATCH_BYTES = 1 << 20
FAST_BYTES = 2_000
BINARY_SIGNATURE = b"PGCOPY\n\xff\r\n\0"

_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


@dataclass(frozen=True, slots=True)
class Resolved:
    """A CopyFormat with the defaults of its format filled in."""

    format: str
    delimiter: str
    null: str
    header: bool
    quote: str
    escape: str

    @staticmethod
    def of(options: CopyFormat) -> Resolved:
        is_csv = options.format == "csv"
        quote = options.quote or '"'
        return Resolved(
            options.format,
            options.delimiter if options.delimiter is not None else ("," if is_csv else "\t"),
            options.null if options.null is not None else ("" if is_csv else "\\N"),
            options.header,
            quote,
            options.escape or quote,
        )


class CopyReader:
    """Bytes of a COPY FROM to batches of columns.

    errors: SqlError 22P04 (bad file format), 22P02 … (bad value), naming table line and column in the detail.
    """

    def __init__(self, desc: RelationDesc, options: CopyFormat) -> None:
        self._desc = desc
        self._options = Resolved.of(options)
        self._pending: list[bytes] = []
        self._pending_bytes = 0
        self._line = 0
        self._ended = False
        self._skip_header = options.header
        self._binary_started = False

    def feed(self, data: bytes) -> Iterator[tuple[list[Column], int]]:
        self._pending.append(data)
        self._pending_bytes += len(data)
        if self._pending_bytes >= BATCH_BYTES:
            yield from self._parse(final=False)

    def finish(self) -> Iterator[tuple[list[Column], int]]:
        yield from self._parse(final=True)

    def _parse(self, final: bool) -> Iterator[tuple[list[Column], int]]:
        data = b"".join(self._pending)
        if self._options.format == "binary":
            rows, rest = self._binary(data, final)
            self._pending, self._pending_bytes = [rest], len(rest)
            if rows:
                columns = [
                    column_from_datums(t.scalar, [r[i] for r in rows]) for i, t in enumerate(self._desc.typ.columns)
                ]
                yield columns, len(rows)
            return
        whole, rest = (data, b"") if final else self._cut(data)
        self._pending, self._pending_bytes = [rest], len(rest)
        fast = self._fast(whole)
        if fast is not None:
            yield fast
            return
        try:
            text = whole.decode()
        except UnicodeDecodeError as e:
            raise SqlError("22021", f'invalid byte sequence for encoding "UTF8": 0x{whole[e.start]:02x}') from None
        rows_text = self._csv_rows(text) if self._options.format == "csv" else self._text_rows(text)
        if rows_text:
            yield self._columns(rows_text), len(rows_text)

    def _fast(self, data: bytes) -> tuple[list[Column], int] | None:
        """A batch of plain rows, read by Arrow; None sends it down the careful way (which also words the errors)."""
        options, names = self._options, self._desc.names
        if self._ended or len(data) < FAST_BYTES or not names or b"\\." in data or b"\0" in data:
            return None
        is_csv = options.format == "csv"
        backslashes = data.count(b"\\")
        if not is_csv and (options.null != "\\N" or data.count(b"\\N") != backslashes or b"\r" in data):
            return None
        width = [f"c{i}" for i in range(len(names))]
        try:
            table = pacsv.read_csv(
                pa.BufferReader(data),
                pacsv.ReadOptions(use_threads=False, column_names=width, skip_rows=int(self._skip_header)),
                pacsv.ParseOptions(
                    delimiter=options.delimiter,
                    quote_char=options.quote if is_csv else False,
                    double_quote=options.escape == options.quote,
                    escape_char=options.escape if is_csv and options.escape != options.quote else False,
                    newlines_in_values=is_csv,
                    ignore_empty_lines=False,
                ),
                pacsv.ConvertOptions(
                    check_utf8=True,
                    column_types=dict.fromkeys(width, pa.string()),
                    null_values=[options.null],
                    strings_can_be_null=True,
                    quoted_strings_can_be_null=False,
                ),
            )
            if not is_csv and sum(c.null_count for c in table.columns) != backslashes:
                return None
            texts = [VarColumn.from_arrow(c) for c in table.columns]
            columns = [parse_column(t.scalar, c) for t, c in zip(self._desc.typ.columns, texts)]
        except (pa.ArrowInvalid, SqlError):
            return None
        self._line += table.num_rows + int(self._skip_header)
        self._skip_header = False
        return columns, table.num_rows

    def _cut(self, data: bytes) -> tuple[bytes, bytes]:
        """The part that holds whole rows, and the rest."""
        if self._options.format == "csv":
            # A newline inside quotes is data: cut at the last newline that has an even number of quotes before it.
            if self._options.escape != self._options.quote:
                return b"", data  # an escaped quote would have to be told from a closing one: wait for the end
            quote = self._options.quote.encode()
            at = len(data)
            while True:
                at = data.rfind(b"\n", 0, at)
                if at < 0:
                    return b"", data
                if data.count(quote, 0, at) % 2 == 0:
                    return data[: at + 1], data[at + 1 :]
        at = data.rfind(b"\n")
        return data[: at + 1], data[at + 1 :]

    def _text_rows(self, text: str) -> list[list[str | None]]:
        if self._ended or not text:
            return []
        lines = text.split("\n")
        if lines[-1] == "":
            lines.pop()
        if "\r" in text:
            lines = [line[:-1] if line.endswith("\r") else line for line in lines]
        out: list[list[str | None]] = []
        delimiter, null = self._options.delimiter, self._options.null
        width = len(self._desc.names)
        escaped = "\\" in text
        for line in lines:
            self._line += 1
            if self._skip_header:
                self._skip_header = False
                continue
            if line == "\\.":
                self._ended = True
                break
            cells: list[str | None] = [None if c == null else c for c in line.split(delimiter)]
            if escaped and "\\" in line:
                cells = [None if c == null else _unescape(c) for c in _split_escaped(line, delimiter)]
            if len(cells) != width:
                if width == 0 and cells == [""]:
                    cells = []
                else:
                    raise self._width_error(len(cells), cells)
            out.append(cells)
        return out

    def _csv_rows(self, text: str) -> list[list[str | None]]:
        options = self._options
        if self._ended or not text:
            return []
        out: list[list[str | None]] = []
        width = len(self._desc.names)
        # csv cannot tell a quoted field from an unquoted one; only an unquoted one is NULL. Mark the quoted ones first.
        marker = "\ue000"
        if f"{options.quote}{options.null}{options.quote}" in text:
            text = _mark_quoted(text, options.null, options.quote, options.escape, marker)
        reader = csv.reader(
            io.StringIO(text, newline=""),
            delimiter=options.delimiter,
            quotechar=options.quote,
            doublequote=options.escape == options.quote,
            escapechar=None if options.escape == options.quote else options.escape,
            strict=True,
        )
        try:
            for cells in reader:
                self._line += 1
                if self._skip_header:
                    self._skip_header = False
                    continue
                if cells == ["\\."]:
                    self._ended = True
                    break
                if not cells and width == 1:
                    cells = [""]
                if len(cells) != width:
                    raise self._width_error(len(cells), list(cells))
                out.append([None if c == options.null else options.null if c == marker else c for c in cells])
        except csv.Error as e:
            raise SqlError("22P04", f"malformed csv: {e}", detail=f"line {self._line + 1}") from None
        return out

    def _width_error(self, got: int, cells: list[str | None]) -> SqlError:
        names = self._desc.names
        where = f"line {self._line}"
        if got > len(names):
            return SqlError("22P04", "extra data after last expected column", detail=where)
        return SqlError("22P04", f'missing data for column "{names[got]}"', detail=where)

    def _columns(self, rows: list[list[str | None]]) -> list[Column]:
        out = []
        for i, (name, typ) in enumerate(zip(self._desc.names, self._desc.typ.columns)):
            try:
                out.append(parse_column(typ.scalar, [r[i] for r in rows]))
            except SqlError as error:
                raise self._locate(error, rows, i, name) from None
        return out

    def _locate(self, error: SqlError, rows: list[list[str | None]], i: int, name: str) -> SqlError:
        """Name the line of the first bad value."""
        first = self._line - len(rows) + 1
        typ = self._desc.typ.columns[i].scalar
        for n, row in enumerate(rows):
            try:
                parse_column(typ, [row[i]])
            except SqlError as exact:
                return SqlError(
                    exact.sqlstate,
                    exact.message,
                    detail=f'line {first + n}, column {name}: "{row[i]}"',
                    hint=exact.hint,
                )
        return error

    def _binary(self, data: bytes, final: bool) -> tuple[list[list[object]], bytes]:
        pos = 0
        if not self._binary_started:
            if len(data) < 19:
                if final:
                    raise SqlError("22P04", "COPY file signature not recognized")
                return [], data
            if not data.startswith(BINARY_SIGNATURE):
                raise SqlError("22P04", "COPY file signature not recognized")
            extension = struct.unpack_from("!i", data, 15)[0]
            pos = 19 + extension
            self._binary_started = True
        rows: list[list[object]] = []
        types = [c.scalar for c in self._desc.typ.columns]
        while not self._ended and len(data) - pos >= 2:
            start = pos
            count = struct.unpack_from("!h", data, pos)[0]
            pos += 2
            if count == -1:
                self._ended = True
                break
            if count != len(types):
                raise SqlError("22P04", f"row field count is {count}, expected {len(types)}")
            row: list[object] = []
            for typ in types:
                if len(data) - pos < 4:
                    break
                n = struct.unpack_from("!i", data, pos)[0]
                if n == -1:
                    row.append(None)
                    pos += 4
                    continue
                if len(data) - pos - 4 < n:
                    break
                row.append(decode_param(typ, data[pos + 4 : pos + 4 + n]))
                pos += 4 + n
            if len(row) < len(types):
                if final:
                    raise SqlError("22P04", "unexpected end of COPY data")
                return rows, data[start:]
            rows.append(row)
        return rows, data[pos:]


def _split_escaped(line: str, delimiter: str) -> list[str]:
    """Split at delimiters that no backslash escapes; escapes stay in the pieces."""
    cells, start, i, n = [], 0, 0, len(line)
    while i < n:
        c = line[i]
        if c == "\\":
            i += 2
            continue
        if c == delimiter:
            cells.append(line[start:i])
            start = i + 1
        i += 1
    cells.append(line[start:])
    return cells


def _unescape(cell: str) -> str:
    if "\\" not in cell:
        return cell
    out, i, n = [], 0, len(cell)
    while i < n:
        c = cell[i]
        if c != "\\" or i + 1 >= n:
            out.append(c)
            i += 1
            continue
        e = cell[i + 1]
        i += 2
        if e in _ESCAPES:
            out.append(_ESCAPES[e])
        elif e in "01234567":
            digits = e
            while len(digits) < 3 and i < n and cell[i] in "01234567":
                digits += cell[i]
                i += 1
            out.append(chr(int(digits, 8) & 0xFF))
        elif e == "x" and i < n and cell[i] in "0123456789abcdefABCDEF":
            digits = cell[i]
            i += 1
            if i < n and cell[i] in "0123456789abcdefABCDEF":
                digits += cell[i]
                i += 1
            out.append(chr(int(digits, 16)))
        else:
            out.append(e)
    return "".join(out)


def _mark_quoted(text: str, null: str, quote: str, escape: str, marker: str) -> str:
    """Put a marker for the content of fields that are NULL's text in quotes: they are strings. Whole quoted fields are
    matched from the left, so that nothing inside one is taken for another."""
    q, e = re.escape(quote), re.escape(escape)
    inside = rf"[^{q}]|{q}{q}" if quote == escape else rf"[^{q}{e}]|{e}."
    wanted = f"{quote}{null}{quote}"

    def mark(match: re.Match[str]) -> str:
        return f"{quote}{marker}{quote}" if match.group() == wanted else match.group()

    return re.sub(rf"{q}(?:{inside})*+{q}", mark, text, flags=re.S)


class CopyWriter:
    """Columns to the bytes of a COPY TO, one piece per row."""

    def __init__(self, desc: RelationDesc, options: CopyFormat) -> None:
        self._desc = desc
        self._options = Resolved.of(options)

    def header(self) -> Iterator[bytes]:
        if self._options.format == "binary":
            yield BINARY_SIGNATURE + struct.pack("!ii", 0, 0)
        elif self._options.header:
            if self._options.format == "csv":
                yield self._csv_line(list(self._desc.names)).encode()
            else:
                yield (self._options.delimiter.join(self._desc.names) + "\n").encode()

    def trailer(self) -> Iterator[bytes]:
        if self._options.format == "binary":
            yield struct.pack("!h", -1)

    def rows(self, columns: Sequence[Column], n: int) -> Iterator[bytes]:
        types = [c.scalar for c in self._desc.typ.columns]
        if self._options.format == "binary":
            head = struct.pack("!h", len(types))
            for row in zip(*[encode_column(t, c) for t, c in zip(types, columns)]):
                yield head + b"".join(b"\xff\xff\xff\xff" if v is None else struct.pack("!i", len(v)) + v for v in row)
            return
        cells = [format_column(t, c) for t, c in zip(types, columns)]
        if not cells:
            yield from [b"\n"] * n
        elif self._options.format == "csv":
            for row in zip(*cells):
                yield self._csv_line([None if v is None else v.decode() for v in row]).encode()
        else:
            delimiter, null = self._options.delimiter.encode(), self._options.null.encode()
            for row in zip(*cells):
                yield delimiter.join(null if v is None else _escape(v, delimiter) for v in row) + b"\n"

    def _csv_line(self, cells: Sequence[str | None]) -> str:
        o = self._options
        special = (o.delimiter, o.quote, o.escape, "\n", "\r")
        out = []
        for c in cells:
            if c is None:
                out.append(o.null)
            elif c == o.null or any(s in c for s in special) or (len(cells) == 1 and c == "\\."):
                body = c.replace(o.escape, o.escape * 2) if o.escape != o.quote else c
                out.append(o.quote + body.replace(o.quote, o.escape + o.quote) + o.quote)
            else:
                out.append(c)
        return o.delimiter.join(out) + "\n"


def _escape(value: bytes, delimiter: bytes) -> bytes:
    if b"\\" in value:
        value = value.replace(b"\\", b"\\\\")
    for raw, name in (
        (b"\n", b"\\n"),
        (b"\r", b"\\r"),
        (b"\t", b"\\t"),
        (b"\b", b"\\b"),
        (b"\f", b"\\f"),
        (b"\v", b"\\v"),
    ):
        if raw in value:
            value = value.replace(raw, name)
    if delimiter not in (b"\t", b"\\") and delimiter in value:
        value = value.replace(delimiter, b"\\" + delimiter)
    return value
