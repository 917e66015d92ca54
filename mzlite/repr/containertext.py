"""Text of arrays, lists, maps, records and ranges: lexing and printing; elements go through the element type's own text.

    array {1,2,NULL} {{1},{2}} [0:1]={1,2}     list {1,{2}}     map {a=>1,b=>NULL}     record (1,"a b",)     range [1,5)

Parsers return element *texts* in structure (None = NULL) and know no types; `repr.text` turns texts into datums.
"""

from __future__ import annotations

_SPACE = " \t\n\r\x0b\x0c"


class ContainerTextError(ValueError):
    """Why a text is no literal of its type."""


class Lexer:
    """A cursor over a text."""

    __slots__ = ("at", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def peek(self) -> str:
        """The next character, '' at the end."""
        return self.text[self.at] if self.at < len(self.text) else ""

    def next(self) -> str:
        c = self.peek()
        self.at += len(c)
        return c

    def consume(self, c: str) -> bool:
        if self.peek() == c:
            self.at += 1
            return True
        return False

    def skip_space(self) -> None:
        while self.at < len(self.text) and self.text[self.at] in _SPACE:
            self.at += 1


def parse_array(text: str) -> tuple[tuple[int, ...], list[str | None]]:
    """(lengths of the dimensions, () when empty; element texts in row-major order)."""
    lex = Lexer(text)
    lex.skip_space()
    if lex.peek() == "[":
        raise ContainerTextError("Specifying array lower bounds is not supported")
    if not lex.consume("{"):
        raise ContainerTextError('Array value must start with "{"')
    lengths: dict[int, int] = {}  # depth -> elements of a closed sub-array there
    counts = [0]  # elements so far in each open sub-array
    depth_of_elements: int | None = None
    elements: list[str | None] = []
    fresh = True  # just after "{"
    wants_item = True  # an item may come: after "{" or ","
    while counts:
        lex.skip_space()
        c = lex.peek()
        if not c:
            raise ContainerTextError("Unexpected end of input.")
        if c == "{":
            if not wants_item:
                raise ContainerTextError('Unexpected "{" character.')
            if depth_of_elements is not None and len(counts) >= depth_of_elements:
                raise _mismatch()
            lex.next()
            counts[-1] += 1
            counts.append(0)
            fresh = True
        elif c == "}":
            if wants_item and not fresh:
                raise ContainerTextError('Unexpected "}" character.')
            lex.next()
            depth = len(counts)
            if depth_of_elements is None:
                depth_of_elements = depth
            length = counts.pop()
            if lengths.setdefault(depth, length) != length:
                raise _mismatch()
            fresh, wants_item = False, False
        elif c == ",":
            if wants_item:
                raise ContainerTextError('Unexpected "," character.')
            lex.next()
            wants_item = True
        else:
            if not wants_item or (depth_of_elements is not None and len(counts) != depth_of_elements):
                raise ContainerTextError("Unexpected array element.")
            depth_of_elements = len(counts)
            elements.append(_array_element(lex))
            counts[-1] += 1
            fresh, wants_item = False, False
    lex.skip_space()
    if lex.peek():
        raise ContainerTextError("Junk after closing right brace.")
    if not elements:
        return (), []
    return tuple(lengths[d] for d in sorted(lengths)), elements


def _mismatch() -> ContainerTextError:
    return ContainerTextError("Multidimensional arrays must have sub-arrays with matching dimensions.")


def _array_element(lex: Lexer) -> str | None:
    if lex.peek() == '"':
        return _quoted(lex)
    out: list[str] = []
    trimmed = 0
    escaped = False
    while True:
        c = lex.peek()
        if c in ("", ",", "}", "{", '"'):
            if c == "":
                raise ContainerTextError("unterminated element" if escaped else "Unexpected end of input.")
            if c in ("{", '"'):
                raise ContainerTextError("Unexpected array element." if c == '"' else 'Unexpected "{" character.')
            break
        lex.next()
        if c == "\\":
            c = lex.next()
            if not c:
                raise ContainerTextError("unterminated element")
            escaped = True
            out.append(c)
            trimmed = len(out)
        else:
            out.append(c)
            if c not in _SPACE:
                trimmed = len(out)
    element = "".join(out[:trimmed])
    return None if element.upper() == "NULL" and not escaped else element


def _quoted(lex: Lexer) -> str:
    lex.next()
    out: list[str] = []
    while True:
        c = lex.next()
        if c == '"':
            return "".join(out)
        if c == "\\":
            c = lex.next()
        if not c:
            raise ContainerTextError("unterminated quoted string")
        out.append(c)


def parse_list(text: str, nested: bool) -> list[str | None]:
    """Element texts; nested: the elements are lists, whose texts may stand unquoted."""
    lex = Lexer(text)
    _open(lex)
    elements: list[str | None] = []
    while True:
        lex.skip_space()
        if not _separator(lex, bool(elements), "expected ',' or '}', got"):
            break
        lex.skip_space()
        c = lex.peek()
        if not c:
            raise ContainerTextError("unexpected end of input")
        if c == '"':
            elements.append(_quoted(lex))
        elif c == "{":
            if not nested:
                raise ContainerTextError(
                    "unescaped '{' at beginning of element; perhaps you want a nested list, e.g. '{a}'::text list list"
                )
            elements.append(_embedded(lex))
        else:
            elements.append(_unquoted(lex, '{},\\"', ",}"))
    lex.skip_space()
    if lex.peek():
        raise ContainerTextError(f"malformed array literal; contains '{lex.peek()}' after terminal '}}'")
    return elements


def parse_map(text: str, nested: bool) -> dict[str, str | None]:
    """Value texts by key; nested: the values are maps or lists, whose texts may stand unquoted."""
    lex = Lexer(text)
    _open(lex)
    entries: dict[str, str | None] = {}
    while True:
        lex.skip_space()
        if not _separator(lex, bool(entries), "expected ',' or end of input, got"):
            break
        lex.skip_space()
        if not lex.peek():
            raise ContainerTextError("unexpected end of input")
        key = _quoted(lex) if lex.peek() == '"' else _unquoted(lex, '{},"=>\\', ",}=")
        if key is None:
            raise ContainerTextError("expected key")
        lex.skip_space()
        if not (lex.consume("=") and lex.consume(">")):
            raise ContainerTextError("expected =>")
        lex.skip_space()
        c = lex.peek()
        if not c:
            raise ContainerTextError("unexpected end of input")
        if c == '"':
            entries[key] = _quoted(lex)
        elif c == "{":
            if not nested:
                raise ContainerTextError(
                    "unescaped '{' at beginning of value; perhaps you want a nested map, "
                    "e.g. '{a=>{a=>1}}'::map[text=>map[text=>int]]"
                )
            entries[key] = _embedded(lex)
        else:
            entries[key] = _unquoted(lex, '{},"=>\\', ",}=")
    lex.skip_space()
    if lex.peek():
        raise ContainerTextError(f"malformed map literal; contains '{lex.peek()}' after terminal '}}'")
    return entries


def _open(lex: Lexer) -> None:
    if not lex.consume("{"):
        raise ContainerTextError(f"expected '{{', found {lex.peek() or 'empty string'}")


def _separator(lex: Lexer, some: bool, complaint: str) -> bool:
    """Step over what separates elements; False at the closing brace."""
    c = lex.peek()
    if c == "}":
        lex.next()
        return False
    if not some:
        return True
    if not c:
        raise ContainerTextError("unexpected end of input")
    if c != ",":
        raise ContainerTextError(f"{complaint} '{c}'")
    lex.next()
    return True


def _embedded(lex: Lexer) -> str:
    start = lex.at
    depth = 0
    quoted = False
    while True:
        c = lex.next()
        if not c:
            raise ContainerTextError("unterminated embedded element")
        if c == "\\":
            lex.next()
        elif c == '"':
            quoted = not quoted
        elif c == "{" and not quoted:
            depth += 1
        elif c == "}" and not quoted:
            depth -= 1
            if depth == 0:
                return lex.text[start : lex.at]


def _unquoted(lex: Lexer, special: str, ends: str) -> str | None:
    out: list[str] = []
    trimmed = 0
    escaped = False
    while True:
        c = lex.peek()
        if not c:
            raise ContainerTextError("unterminated element")
        if c in ends:
            if not out:
                raise ContainerTextError("malformed literal; missing element")
            break
        lex.next()
        if c == "\\":
            c = lex.next()
            if not c:
                raise ContainerTextError("unterminated element")
            escaped = True
            out.append(c)
            trimmed = len(out)
        elif c in special:
            raise ContainerTextError(f"malformed literal; must escape special character '{c}'")
        else:
            out.append(c)
            if c not in _SPACE:
                trimmed = len(out)
    element = "".join(out[:trimmed])
    return None if element.upper() == "NULL" and not escaped else element


def parse_range(text: str) -> tuple[str | None, str | None, bool, bool] | None:
    """(lower text, upper text, lower inclusive, upper inclusive), None bounds infinite; None when the range is empty."""
    lex = Lexer(text)
    lex.skip_space()
    if lex.text[lex.at :].strip(_SPACE).lower() == "empty":
        return None
    opening = lex.next()
    if opening not in ("[", "(") or not opening:
        raise ContainerTextError("Missing left parenthesis or bracket.")
    lower = _bound(lex)
    if not lex.consume(","):
        raise ContainerTextError("Missing comma after lower bound." if lex.peek() else "Unexpected end of input.")
    upper = _bound(lex)
    closing = lex.next()
    if closing == ",":
        raise ContainerTextError("Too many commas.")
    if not closing:
        raise ContainerTextError("Unexpected end of input.")
    lex.skip_space()
    if lex.peek():
        raise ContainerTextError("Junk after right parenthesis or bracket.")
    return lower, upper, opening == "[", closing == "]"


def _bound(lex: Lexer) -> str | None:
    if lex.peek() in (",", ")", "]"):
        return None
    out: list[str] = []
    while True:
        c = lex.peek()
        if not c:
            raise ContainerTextError("Unexpected end of input.")
        if c in ",)]([":
            return "".join(out)
        lex.next()
        if c == "\\":
            c = lex.next()
            if not c:
                raise ContainerTextError("Unexpected end of input.")
            out.append(c)
        elif c == '"':
            lex.at -= 1
            out.append(_range_quoted(lex))
        else:
            out.append(c)


def _range_quoted(lex: Lexer) -> str:
    lex.next()
    out: list[str] = []
    while True:
        c = lex.next()
        if not c:
            raise ContainerTextError("Unexpected end of input.")
        if c == "\\":
            out.append(lex.next())
        elif c == '"':
            if not lex.consume('"'):
                return "".join(out)
            out.append('"')
        else:
            out.append(c)


_LIST_SPECIAL = frozenset('{},"\\' + _SPACE)
_MAP_SPECIAL = frozenset('{},"=>\\' + _SPACE)
_RECORD_SPECIAL = frozenset('(),"\\' + _SPACE)
_RANGE_SPECIAL = frozenset('()[],"\\' + _SPACE)


def quote_list(element: str) -> str:
    """An element of an array or list, quoted where Materialize quotes (so `null` in lower case prints as it is)."""
    if not element or element == "NULL" or not _LIST_SPECIAL.isdisjoint(element):
        return '"' + element.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return element


def quote_map(element: str) -> str:
    """A key or value of a map."""
    if not element or element == "NULL" or not _MAP_SPECIAL.isdisjoint(element):
        return '"' + element.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return element


def quote_record(element: str) -> str:
    """A field of a record: quotes and backslashes doubled."""
    if not element or not _RECORD_SPECIAL.isdisjoint(element):
        return '"' + element.replace("\\", "\\\\").replace('"', '""') + '"'
    return element


def quote_bound(bound: str) -> str:
    """A bound of a range: quotes and backslashes doubled."""
    if not bound or not _RANGE_SPECIAL.isdisjoint(bound):
        return '"' + bound.replace("\\", "\\\\").replace('"', '""') + '"'
    return bound


def format_array(dims: tuple[tuple[int, int], ...], elements: list[str]) -> str:
    """dims: (length, lower bound) each; elements: printed and quoted, row-major."""
    if not dims:
        return "{}"
    prefix = ""
    if any(lower != 1 for _, lower in dims):
        prefix = "".join(f"[{lower}:{lower + length - 1}]" for length, lower in dims) + "="
    rows = elements
    for length, _ in reversed(dims):
        rows = ["{" + ",".join(rows[i : i + length]) + "}" for i in range(0, max(len(rows), 1), max(length, 1))]
    return prefix + rows[0]
