"""LIKE patterns and regular expressions.

LIKE: split once into literal pieces and wildcards; the common shapes (exact, prefix, suffix, infix) need no regex.
Regular expressions: Materialize's are Rust's (no look-around, no back-references); they are translated to Python's `re`,
which differs in anchors, POSIX classes and group names, and scanned the way Rust does: an empty match directly after
another match does not count.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator

from mzlite.repr.errors import SqlError

MAX_PATTERN_BYTES = 1_048_576


# --- LIKE -------------------------------------------------------------------------------------------------------------


@functools.lru_cache(1024)
def like_matcher(pattern: str, ignore_case: bool) -> Callable[[str], bool]:
    """A predicate for `text LIKE pattern` with `\\` as escape."""
    parts = _like_parts(pattern)
    if not ignore_case:
        simple = _simple_like(parts)
        if simple is not None:
            return simple
    source = "".join(".*" if p is None else "." if p == "" else re.escape(p) for p in parts)
    compiled = re.compile(source, re.DOTALL | (re.IGNORECASE if ignore_case else 0))
    return lambda text: compiled.fullmatch(text) is not None


def _like_parts(pattern: str) -> list[str | None]:
    """None for %, "" for _, otherwise a literal piece."""
    parts: list[str | None] = []
    literal: list[str] = []

    def flush() -> None:
        if literal:
            parts.append("".join(literal))
            literal.clear()

    i = 0
    while i < len(pattern):
        c = pattern[i]
        if c == "\\":
            i += 1
            if i == len(pattern):
                raise SqlError("22025", "unterminated escape sequence in LIKE")
            literal.append(pattern[i])
        elif c == "%":
            flush()
            if not parts or parts[-1] is not None:
                parts.append(None)
        elif c == "_":
            flush()
            parts.append("")
        else:
            literal.append(c)
        i += 1
    flush()
    return parts


def _simple_like(parts: list[str | None]) -> Callable[[str], bool] | None:
    match parts:
        case []:
            return lambda text: text == ""
        case [None]:
            return lambda text: True
        case [str(exact)] if exact:
            return lambda text: text == exact
        case [str(prefix), None] if prefix:
            return lambda text: text.startswith(prefix)
        case [None, str(suffix)] if suffix:
            return lambda text: text.endswith(suffix)
        case [None, str(infix), None] if infix:
            return lambda text: infix in text
        case _:
            return None


def like_escape(pattern: str, escape: str) -> str:
    """pattern with its own escape character rewritten to `\\`."""
    if len(escape) > 1:
        raise SqlError("22019", "invalid escape string")
    if escape == "\\":
        return pattern
    out = []
    i = 0
    while i < len(pattern):
        c = pattern[i]
        if escape and c == escape:
            i += 1
            if i == len(pattern):
                raise SqlError("22025", "unterminated escape sequence in LIKE")
            out.append("\\" + pattern[i])
        elif c == "\\":
            out.append("\\\\")
        else:
            out.append(c)
        i += 1
    return "".join(out)


# --- regular expressions ----------------------------------------------------------------------------------------------


_POSIX = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": "\\x00-\\x7F",
    "blank": "\\t ",
    "cntrl": "\\x00-\\x1F\\x7F",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": "!-/:-@\\[-`{-~",
    "space": "\\t\\n\\v\\f\\r ",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}


def _parse_error(pattern: str, at: int, why: str) -> SqlError:
    where = " " * (4 + at) + "^"
    return SqlError("2201B", f"invalid regular expression: regex parse error:\n    {pattern}\n{where}\nerror: {why}")


@functools.lru_cache(512)
def regex(pattern: str, flags: str = "") -> re.Pattern[str]:
    """Compile a pattern. flags: i, c (case; the last counts), n/m, s, x as far as Materialize knows them."""
    size = len(pattern.encode())
    if size > MAX_PATTERN_BYTES:
        raise SqlError(
            "2201B",
            f"invalid regular expression: regex pattern too large ({size} bytes, max {MAX_PATTERN_BYTES} bytes)",
        )
    options = re.DOTALL
    for flag in flags:
        if flag == "i":
            options |= re.IGNORECASE
        elif flag == "c":
            options &= ~re.IGNORECASE
        elif flag in "mn":
            options = (options | re.MULTILINE) & ~re.DOTALL
        elif flag == "s":
            options = (options & ~re.MULTILINE) | re.DOTALL
        elif flag != "g":
            raise SqlError("2201B", f"invalid regular expression flag: {flag}")
    translated = _translate(pattern, multiline=bool(options & re.MULTILINE))
    try:
        return re.compile(translated, options)
    except re.error as error:
        raise _re_error(pattern, error) from None
    except (RecursionError, OverflowError):
        raise SqlError("2201B", "invalid regular expression: Compiled regex exceeds size limit") from None


def _re_error(pattern: str, error: re.error) -> SqlError:
    message = error.msg
    at = min(error.pos or 0, len(pattern))
    if "unterminated subpattern" in message:
        return _parse_error(pattern, pattern.find("(") if at >= len(pattern) else at, "unclosed group")
    if "unbalanced parenthesis" in message:
        return _parse_error(pattern, at, "unopened group")
    if "nothing to repeat" in message or "multiple repeat" in message:
        return _parse_error(pattern, at, "repetition operator missing expression")
    if "unterminated character set" in message:
        return _parse_error(pattern, at, "unclosed character class")
    if "bad character range" in message:
        return _parse_error(pattern, at, "invalid character class range, the start must be <= the end")
    return _parse_error(pattern, at, message)


def _translate(pattern: str, *, multiline: bool) -> str:
    """Rust's syntax as Python's."""
    out: list[str] = []
    i = 0
    n = len(pattern)
    while i < n:
        c = pattern[i]
        if c == "\\":
            if i + 1 == n:
                raise _parse_error(pattern, i, "incomplete escape sequence, reached end of pattern prematurely")
            i = _escape(pattern, i, out)
        elif c == "[":
            i = _class(pattern, i, out)
        elif c == "$" and not multiline:
            out.append(r"\Z")
            i += 1
        elif pattern.startswith("(?<", i) and pattern[i + 3 : i + 4] not in ("=", "!"):
            out.append("(?P<")
            i += 3
        elif pattern.startswith(("(?=", "(?!", "(?<=", "(?<!"), i):
            raise _parse_error(pattern, i, "look-around, including look-ahead and look-behind, is not supported")
        else:
            out.append(c)
            i += 1
    return "".join(out)


def _escape(pattern: str, i: int, out: list[str]) -> int:
    c = pattern[i + 1]
    if c == "z":
        out.append(r"\Z")
    elif c in "123456789":
        raise _parse_error(pattern, i, "backreferences are not supported")
    elif c in "pP":
        return _property(pattern, i, out)
    elif c == "x" and pattern.startswith("{", i + 2):
        end = pattern.find("}", i)
        if end < 0:
            raise _parse_error(pattern, i, "incomplete escape sequence, reached end of pattern prematurely")
        out.append(re.escape(chr(int(pattern[i + 3 : end], 16))))
        return end + 1
    elif c.isalpha() and c not in "AbBdDfnrsStUuvwWx" + "a":
        raise _parse_error(pattern, i, "unrecognized escape sequence")
    else:
        out.append("\\" + c if not c.isspace() else re.escape(c))
    return i + 2


_PROPERTIES = {"L": r"[^\W\d_]", "N": r"\d", "Lu": "[A-ZÀ-ÖØ-Þ]", "Ll": "[a-zß-öø-ÿ]", "P": r"[^\w\s]", "Z": r"\s"}


def _property(pattern: str, i: int, out: list[str]) -> int:
    if pattern.startswith("{", i + 2):
        end = pattern.find("}", i)
        name, after = pattern[i + 3 : end], end + 1
    else:
        name, after = pattern[i + 2 : i + 3], i + 3
    found = _PROPERTIES.get(name)
    if found is None:
        raise _parse_error(pattern, i, "Unicode property not found")
    out.append(f"(?!{found})." if pattern[i + 1] == "P" else found)
    return after


def _class(pattern: str, i: int, out: list[str]) -> int:
    """A bracket class from its [ to past its ]."""
    start = i
    out.append("[")
    i += 1
    if pattern.startswith("^", i):
        out.append("^")
        i += 1
    first = True
    while True:
        if i >= len(pattern):
            raise _parse_error(pattern, start, "unclosed character class")
        c = pattern[i]
        if c == "]" and not first:
            out.append("]")
            return i + 1
        first = False
        if pattern.startswith("[:", i):
            end = pattern.find(":]", i)
            name = pattern[i + 2 : end] if end > 0 else ""
            if name in _POSIX:
                out.append(_POSIX[name])
                i = end + 2
                continue
        if c == "\\" and i + 1 < len(pattern):
            out.append(pattern[i : i + 2])
            i += 2
        else:
            out.append("\\" + c if c in "[]" else c)
            i += 1


def matches(compiled: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """Matches left to right, by Rust's rule for empty ones."""
    last = -1
    for match in compiled.finditer(text):
        if match.start() == match.end() == last:
            continue
        last = match.end()
        yield match


def split(compiled: re.Pattern[str], text: str) -> list[str]:
    """Pieces between the matches; empty matches at either end do not split."""
    pieces = []
    last = 0
    for match in matches(compiled, text):
        if match.end() == 0 or match.start() == len(text):
            continue
        pieces.append(text[last : match.start()])
        last = match.end()
    pieces.append(text[last:])
    return pieces


_REFERENCE = re.compile(r"\$(?:(\$)|\{([^}]*)\}|([0-9A-Za-z_]+))")


def replace(compiled: re.Pattern[str], text: str, replacement: str, *, everywhere: bool) -> str:
    """Replace the first match or all; `$1`, `${1}`, `${name}` in the replacement are groups, `$$` a dollar."""

    def expand(match: re.Match[str]) -> str:
        def group(reference: re.Match[str]) -> str:
            if reference[1]:
                return "$"
            name = reference[2] if reference[2] is not None else reference[3]
            try:
                return match[int(name) if name.isdigit() else name] or ""
            except IndexError:
                return ""

        return _REFERENCE.sub(group, replacement) if "$" in replacement else replacement

    out = []
    last = 0
    for match in matches(compiled, text):
        out.append(text[last : match.start()])
        out.append(expand(match))
        last = match.end()
        if not everywhere:
            break
    out.append(text[last:])
    return "".join(out)
