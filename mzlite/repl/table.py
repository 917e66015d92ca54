"""Lays out a result as text, byte for byte as psql does.

     id | name          -[ RECORD 1 ]
    ----+------         id   | 1
      1 | ada           name | ada
    (1 row)

A value of several lines is continued under itself, with a `+` at the right edge. Source: psql's print.c (border 1).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from mzlite.repl.client import Row, Table
from mzlite.repl.settings import Settings

# int2/4/8, float4/8, numeric, money, oid, xid, cid; then Materialize's uint2/4/8 and mz_timestamp.
NUMERIC_OIDS = frozenset({20, 21, 23, 26, 28, 29, 700, 701, 790, 1700, 16460, 16462, 16464, 16552})
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_PLAIN = re.compile(r"[ -~]*\Z")


def format_table(table: Table, settings: Settings, *, columns: int | None = None, title: str | None = None) -> str:
    """The text of `table`, ending in a newline; `columns` is the terminal's width, `None` where there is no terminal."""
    on_terminal = columns is not None
    rows: Sequence[Row] = table.rows
    hidden = 0
    if on_terminal and 0 < settings.row_limit < len(rows):
        hidden = len(rows) - settings.row_limit
        rows = rows[: settings.row_limit]
    names = [column.name for column in table.columns]
    if settings.format == "csv":
        return _csv(names, rows, settings)
    cell_limit = settings.cell_limit if on_terminal else 0
    cells = [[_clip(settings.null if value is None else value, cell_limit) for value in row] for row in rows]
    if settings.format == "unaligned":
        return _unaligned(names, cells, settings, title)
    right = [column.type_oid in NUMERIC_OIDS for column in table.columns]
    expanded = settings.expanded == "on"
    if settings.expanded == "auto" and columns is not None and rows and len(names) > 1:
        expanded = sum(_column_widths(names, cells)) + 3 * len(names) - 1 > columns
    footer = _footer(len(table.rows), hidden)
    if expanded and not rows:
        return "\n" if settings.tuples_only else f"{footer}\n\n"
    if expanded and names:
        return _expanded(names, cells, settings, title, footer if hidden else None)
    return _aligned(names, cells, right, settings, title, footer)


def _footer(count: int, hidden: int) -> str:
    rows = f"({count} row{'' if count == 1 else 's'})"
    return rows if not hidden else f"({count} rows, the first {count - hidden} shown; \\pset row_limit 0 shows all)"


def _clip(text: str, limit: int) -> str:
    return text if not 0 < limit < len(text) else f"{text[:limit]}… ({len(text)} characters)"


def width_of(text: str) -> int:
    """Terminal columns that `text` takes."""
    if _PLAIN.match(text):
        return len(text)
    from prompt_toolkit.utils import get_cwidth  # late: most text is ASCII, and `-c` then starts much sooner

    return get_cwidth(text)


def _lines(cell: str) -> list[str]:
    """A cell's lines, with what a terminal would act on made visible."""
    if _PLAIN.match(cell):
        return [cell]
    return [_visible(line) for line in cell.split("\n")]


def _visible(line: str) -> str:
    line = _CONTROL.sub(lambda m: "\\r" if m.group() == "\r" else f"\\x{ord(m.group()):02X}", line)
    while "\t" in line:  # tab stops every 8 columns of the cell, as psql has them
        before, after = line.split("\t", 1)
        line = before + " " * (8 - width_of(before) % 8) + after
    return line


def _plain_columns(cells: Sequence[Sequence[str]]) -> list[tuple[str, ...]] | None:
    """The cells by column, if there are any and each is one line of printable ASCII, which is quick to lay out."""
    columns = list(zip(*cells, strict=True))
    is_plain = bool(columns) and all(text.isascii() and text.isprintable() for text in map("".join, columns))
    return columns if is_plain else None


def _column_widths(names: Sequence[str], cells: Sequence[Sequence[str]]) -> list[int]:
    widths = [max(map(width_of, _lines(name))) for name in names]
    plain = _plain_columns(cells)
    if plain is not None:
        return [max(width, max(map(len, column))) for width, column in zip(widths, plain, strict=True)]
    for row in cells:
        for i, cell in enumerate(row):
            for line in _lines(cell):
                width = width_of(line)
                if width > widths[i]:
                    widths[i] = width
    return widths


def _aligned(
    names: Sequence[str],
    cells: Sequence[Sequence[str]],
    right: Sequence[bool],
    settings: Settings,
    title: str | None,
    footer: str,
) -> str:
    headers = [_lines(name) for name in names]
    widths = _column_widths(names, cells)
    out: list[str] = []
    if not settings.tuples_only:
        total = sum(widths) + 3 * len(widths) - 1
        if title:
            out.append(" " * max(0, (total - width_of(title)) // 2) + title)
        height = max((len(lines) for lines in headers), default=0)
        for k in range(height):
            parts = []
            for lines, width in zip(headers, widths, strict=True):
                text = lines[k] if k < len(lines) else ""
                space = width - width_of(text)
                mark = "+" if k + 1 < len(lines) else " "
                parts.append(" " + " " * (space // 2) + text + " " * ((space + 1) // 2) + mark)
            out.append("|".join(parts))
        out.append("+".join("-" * (width + 2) for width in widths) if widths else "--")
    plain = _plain_columns(cells)
    out += _plain_lines(plain, widths, right) if plain is not None else _split_lines(cells, widths, right)
    if settings.footer and not settings.tuples_only:
        out.append(footer)
    out.append("")
    return "\n".join(out) + "\n"


def _plain_lines(columns: Sequence[Sequence[str]], widths: Sequence[int], right: Sequence[bool]) -> list[str]:
    padded: list[Sequence[str]] = []
    for column, width, is_right in zip(columns, widths, right, strict=True):
        if is_right:
            padded.append([cell.rjust(width) for cell in column])
        elif len(padded) + 1 < len(columns):
            padded.append([cell.ljust(width) for cell in column])
        else:
            padded.append(column)  # nothing follows that would have to stand under itself
    return [" " + " | ".join(parts) for parts in zip(*padded, strict=True)]


def _split_lines(cells: Sequence[Sequence[str]], widths: Sequence[int], right: Sequence[bool]) -> list[str]:
    """Where cells have several lines, wide characters, or what a terminal must not see."""
    out: list[str] = []
    last = len(widths) - 1
    for row in ([_lines(cell) for cell in each] for each in cells):
        for k in range(max(map(len, row), default=0)):
            parts = []
            for i, lines in enumerate(row):
                text = lines[k] if k < len(lines) else ""
                more = k + 1 < len(lines)
                pad = " " * (widths[i] - width_of(text))
                if right[i]:
                    text = pad + text
                elif i < last or more:
                    text += pad
                parts.append(" " + text + ("+" if more else " " if i < last else ""))
            out.append("|".join(parts))
    return out


def _expanded(
    names: Sequence[str],
    cells: Sequence[Sequence[str]],
    settings: Settings,
    title: str | None,
    footer: str | None,
) -> str:
    split = [[_lines(cell) for cell in row] for row in cells]
    headers = [_lines(name) for name in names]
    name_width = max((width_of(line) for lines in headers for line in lines), default=0)
    value_width = max((width_of(line) for row in split for cell in row for line in cell), default=0)
    out: list[str] = [title] if title and not settings.tuples_only else []
    for number, row in enumerate(split, 1):
        if not settings.tuples_only:
            out.append(_record_line(number, name_width, value_width))
        elif number > 1:
            out.append("-" * (name_width + 1) + "+" + "-" * (value_width + 1))
        for name_lines, cell in zip(headers, row, strict=True):
            for k in range(max(len(name_lines), len(cell))):
                name = name_lines[k] if k < len(name_lines) else ""
                label = name + " " * (name_width - width_of(name)) + ("+" if k + 1 < len(name_lines) else " ")
                if k >= len(cell):
                    out.append(f"{label}|")
                    continue
                more = k + 1 < len(cell)
                value = cell[k] + (" " * (value_width - width_of(cell[k])) + "+" if more else "")
                out.append(f"{label}| {value}")
    if footer and not settings.tuples_only:
        out.append(footer)
    out.append("")
    return "\n".join(out) + "\n"


def _record_line(number: int, name_width: int, value_width: int) -> str:
    label = f"-[ RECORD {number} ]"
    rule = "-" * (name_width + 1) + "+" + "-" * (value_width + 1)
    return label + rule[len(label) :]


def _unaligned(names: Sequence[str], cells: Sequence[Sequence[str]], settings: Settings, title: str | None) -> str:
    sep = settings.fieldsep
    out: list[str] = []
    if settings.expanded == "on":
        for number, row in enumerate(cells):
            out += [""] if number else []
            out += [f"{name}{sep}{value}" for name, value in zip(names, row, strict=True)]
        return "".join(f"{line}\n" for line in out)
    if not settings.tuples_only:
        out += [title] if title else []
        out.append(sep.join(names))
    out += [sep.join(row) for row in cells]
    if settings.footer and not settings.tuples_only:
        out.append(_footer(len(cells), 0))
    return "".join(f"{line}\n" for line in out)


def _csv(names: list[str], rows: Sequence[Row], settings: Settings) -> str:
    lines = [] if settings.tuples_only else [names]
    lines += [[settings.null if value is None else value for value in row] for row in rows]
    return "".join(",".join(map(_csv_field, line)) + "\n" for line in lines)


def _csv_field(value: str) -> str:
    """Quoted where needed, and where the whole line would otherwise end a COPY."""
    if value == "\\." or any(ch in value for ch in ',"\n\r'):
        return '"' + value.replace('"', '""') + '"'
    return value


def iter_unaligned(columns: Sequence[str], rows: Iterator[Row], settings: Settings) -> Iterator[str]:
    """Lines of an endless result, each as soon as it is there: names, then rows, tab-separated like COPY's text."""
    if not settings.tuples_only:
        yield "\t".join(columns) + "\n"
    for row in rows:
        yield "\t".join(settings.null if value is None else _tab_safe(value) for value in row) + "\n"


def _tab_safe(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")
