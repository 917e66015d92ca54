"""A cursor over tokens, and the wording of syntax errors: `Expected <what>, found <token>`, as Materialize says it.

Words are keywords only where a rule looks for one; `RESERVED` words cannot be names at all, `NOT_ALIAS` not bare aliases.
"""

from __future__ import annotations

from typing import NoReturn

from adapter.sql.parse.lexer import EOF, HEX, NUMBER, OP, PARAM, QUOTED, STRING, WORD, Token
from mzlite.expr.scalar import RECURSION_LIMIT
from mzlite.repr.errors import SqlError

MAX_DEPTH = 300
# A level of nesting is a few Python frames in the parser, the planner and the optimizer.
assert MAX_DEPTH * 20 < RECURSION_LIMIT

RESERVED = frozenset(
    [
        "with",
        "select",
        "from",
        "where",
        "group",
        "having",
        "qualify",
        "order",
        "limit",
        "offset",
        "fetch",
        "options",
        "returning",
        "union",
        "except",
        "intersect",
    ]
)
_JOIN_WORDS = frozenset(["cross", "full", "inner", "join", "left", "natural", "on", "right", "using", "outer"])
NOT_TABLE_ALIAS = (
    RESERVED | _JOIN_WORDS | frozenset(["as", "set", "values", "when", "then", "else", "end", "window", "tablesample"])
)
NOT_COLUMN_ALIAS = RESERVED | frozenset(["as", "and", "or", "not", "when", "then", "else", "end"])
# Words that say so in error messages; the rest are identifiers there.
KEYWORDS = (
    RESERVED
    | NOT_TABLE_ALIAS
    | NOT_COLUMN_ALIAS
    | frozenset(
        [
            "access",
            "add",
            "aligned",
            "all",
            "alter",
            "analyze",
            "any",
            "array",
            "asc",
            "assert",
            "at",
            "auto",
            "begin",
            "between",
            "broken",
            "by",
            "cascade",
            "case",
            "cast",
            "char",
            "close",
            "cluster",
            "clusters",
            "collate",
            "column",
            "columns",
            "comment",
            "commit",
            "connection",
            "constraint",
            "copy",
            "create",
            "current",
            "cursor",
            "database",
            "databases",
            "day",
            "deallocate",
            "debezium",
            "declare",
            "default",
            "delete",
            "desc",
            "discard",
            "distinct",
            "double",
            "drop",
            "envelope",
            "error",
            "escape",
            "every",
            "execute",
            "exists",
            "explain",
            "extract",
            "false",
            "for",
            "foreign",
            "forward",
            "function",
            "generator",
            "global",
            "grant",
            "group_size",
            "hold",
            "hour",
            "if",
            "ignore",
            "ilike",
            "in",
            "index",
            "indexes",
            "input",
            "insert",
            "interval",
            "into",
            "is",
            "isnull",
            "key",
            "last",
            "lateral",
            "like",
            "list",
            "load",
            "local",
            "map",
            "materialized",
            "minute",
            "month",
            "mutually",
            "name",
            "no",
            "notnull",
            "null",
            "nulls",
            "object",
            "objects",
            "of",
            "only",
            "optimized",
            "or",
            "ordinality",
            "owner",
            "partition",
            "physical",
            "plan",
            "preceding",
            "precision",
            "prepare",
            "primary",
            "progress",
            "range",
            "raw",
            "read",
            "recursion",
            "recursive",
            "refresh",
            "rename",
            "replace",
            "replica",
            "replicas",
            "reset",
            "restrict",
            "return",
            "role",
            "rollback",
            "row",
            "rows",
            "schema",
            "schemas",
            "second",
            "secret",
            "secrets",
            "session",
            "show",
            "similar",
            "sink",
            "sinks",
            "size",
            "snapshot",
            "some",
            "source",
            "sources",
            "start",
            "subscribe",
            "swap",
            "system",
            "table",
            "tables",
            "temp",
            "temporary",
            "ties",
            "time",
            "timestamp",
            "to",
            "transaction",
            "true",
            "type",
            "types",
            "unbounded",
            "unique",
            "unknown",
            "up",
            "update",
            "upsert",
            "user",
            "values",
            "varying",
            "view",
            "views",
            "without",
            "work",
            "write",
            "year",
            "zone",
        ]
    )
)
_PUNCTUATION = {
    "(": "left parenthesis",
    ")": "right parenthesis",
    "[": "left square bracket",
    "]": "right square bracket",
    ",": "comma",
    ".": "dot",
    ";": "semicolon",
    ":": "colon",
    "::": "double colon",
    "{": "left brace",
    "}": "right brace",
}


def describe(token: Token) -> str:
    """A token as error messages name it."""
    match token.kind:
        case "word":
            return token.value.upper() if token.value in KEYWORDS else f'identifier "{token.value}"'
        case "quoted":
            return f'identifier "{token.value}"'
        case "string":
            return f'string literal "{token.value}"'.replace('"', "'")
        case "hex":
            return f'hex string literal "{token.value}"'
        case "number":
            return f'number "{token.value}"'
        case "param":
            return f"parameter ${token.value}"
        case "op":
            return {"*": "star", "=": "equals sign", "=>": "arrow"}.get(token.value, f'operator "{token.value}"')
        case "eof":
            return "EOF"
        case kind:
            return _PUNCTUATION[kind]


class Cursor:
    """Position in a token list. `tok` is the current token; depth counts nested rules."""

    __slots__ = ("depth", "i", "max_param", "source", "tok", "tokens")

    def __init__(self, source: str, tokens: list[Token]) -> None:
        self.source = source
        self.tokens = tokens
        self.i = 0
        self.tok = tokens[0]
        self.depth = 0
        self.max_param = 0

    # ---- movement

    def advance(self) -> Token:
        token = self.tok
        if token.kind != EOF:
            self.i += 1
            self.tok = self.tokens[self.i]
        return token

    def seek(self, i: int) -> None:
        self.i = i
        self.tok = self.tokens[i]

    def ahead(self, n: int = 1) -> Token:
        """The token n after the current one (EOF beyond the end)."""
        i = self.i + n
        return self.tokens[i] if i < len(self.tokens) else self.tokens[-1]

    # ---- tests

    def at(self, *words: str) -> bool:
        """The current token is one of these words (unquoted)."""
        return self.tok.kind == WORD and self.tok.value in words

    def at_words(self, *words: str) -> bool:
        """These words follow one another from here."""
        for n, word in enumerate(words):
            token = self.ahead(n)
            if token.kind != WORD or token.value != word:
                return False
        return True

    def at_punct(self, kind: str) -> bool:
        return self.tok.kind == kind

    def at_op(self, op: str) -> bool:
        return self.tok.kind == OP and self.tok.value == op

    def at_name(self) -> bool:
        return self.tok.kind == QUOTED or (self.tok.kind == WORD and self.tok.value not in RESERVED)

    # ---- optional consumption

    def take(self, *words: str) -> bool:
        """Consume the words if all follow in this order."""
        if len(words) == 1:
            if self.tok.kind == WORD and self.tok.value == words[0]:
                self.advance()
                return True
            return False
        if not self.at_words(*words):
            return False
        for _ in words:
            self.advance()
        return True

    def take_any(self, *words: str) -> str | None:
        """Consume one of the words."""
        if self.tok.kind == WORD and self.tok.value in words:
            return self.advance().value
        return None

    def take_punct(self, kind: str) -> bool:
        if self.tok.kind == kind:
            self.advance()
            return True
        return False

    def take_op(self, op: str) -> bool:
        if self.tok.kind == OP and self.tok.value == op:
            self.advance()
            return True
        return False

    # ---- required consumption

    def expected(self, what: str) -> NoReturn:
        raise SqlError("42601", f"Expected {what}, found {describe(self.tok)}", position=self.tok.start + 1)

    def fail(self, message: str, at: int | None = None) -> NoReturn:
        raise SqlError("42601", message, position=(self.tok.start if at is None else at) + 1)

    def expect(self, *words: str) -> None:
        for word in words:
            if not self.take(word):
                self.expected(word.upper())

    def expect_any(self, *words: str) -> str:
        word = self.take_any(*words)
        if word is None:
            upper = [w.upper() for w in words]
            self.expected(upper[0] if len(upper) == 1 else "one of " + " or ".join(upper))
        return word

    def expect_punct(self, kind: str) -> None:
        if not self.take_punct(kind):
            self.expected(_PUNCTUATION[kind])

    def expect_op(self, op: str) -> None:
        if not self.take_op(op):
            self.expected({"=": "equals sign", "=>": "arrow", "*": "star"}.get(op, f'operator "{op}"'))

    # ---- leaves

    def name(self, what: str = "identifier") -> str:
        """One identifier."""
        token = self.tok
        if token.kind == QUOTED or (token.kind == WORD and token.value not in RESERVED):
            self.advance()
            if token.kind == QUOTED and not token.value:
                self.fail("zero-length delimited identifier", token.start)
            if len(token.value) > 63 and len(token.value.encode()) > 255:
                self.fail("identifier length exceeds 255 bytes", token.start)
            return token.value
        self.expected(what)

    def label(self) -> str:
        """An identifier after AS or a dot: reserved words too."""
        if self.tok.kind == WORD:
            return self.advance().value
        return self.name()

    def qualified(self) -> tuple[str, ...]:
        """a, a.b, a.b.c"""
        parts = [self.name()]
        while self.tok.kind == ".":
            self.advance()
            parts.append(self.label())
        return tuple(parts)

    def names(self) -> tuple[str, ...]:
        """(a, b, c)"""
        self.expect_punct("(")
        names = [self.name()]
        while self.take_punct(","):
            names.append(self.name())
        self.expect_punct(")")
        return tuple(names)

    def string(self) -> str:
        if self.tok.kind != STRING:
            self.expected("literal string")
        return self.advance().value

    def integer(self) -> int:
        """An unsigned integer literal."""
        token = self.tok
        if token.kind != NUMBER:
            self.expected("literal unsigned integer")
        self.advance()
        if not token.value.isdigit():
            self.fail(f"Could not parse '{token.value}' as u64: invalid digit found in string", token.start)
        value = int(token.value)
        if value >= 1 << 64:
            message = f"Unable to parse value {token.value} as a number: number too large to fit in target type"
            self.fail(message, token.start)
        return value

    # ---- depth

    def enter(self) -> None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise SqlError("54001", f"statement exceeds nested depth limit of {MAX_DEPTH}", position=self.tok.start + 1)

    def leave(self) -> None:
        self.depth -= 1


LITERALS = frozenset((STRING, NUMBER, PARAM, HEX))
