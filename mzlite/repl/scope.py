"""What the cursor stands in: which statement, which clause, which relations its columns may come from.

The one idea: completion reads tokens, not a grammar. A half-typed statement has no parse tree, but the word before the cursor
says what kind of name comes next, and the FROM clauses around it say whose columns are meant:

    select c.‸ from customers c         dotted, prefix "c": the columns of customers
    select * from t join ‸              a relation
    insert into t (a, ‸                 a column of t
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from mzlite.repl.keywords import words
from mzlite.repl.tokens import Kind, Lexer, Mode, Token, unquote_ident

# After these a relation's name comes; FROM and JOIN also after a comma.
_RELATION_AFTER = frozenset({"FROM", "JOIN", "INTO", "UPDATE", "TABLE", "SUBSCRIBE", "USING"})
_CLAUSES = frozenset(
    words(
        """
    SELECT FROM WHERE GROUP HAVING ORDER LIMIT OFFSET ON USING SET VALUES RETURNING JOIN INTO UPDATE WINDOW
    UNION EXCEPT INTERSECT WITH SUBSCRIBE AS ENVELOPE WITHIN
    """
    )
)
_NOT_AN_ALIAS = frozenset(
    words(
        """
    WHERE GROUP HAVING ORDER LIMIT OFFSET ON USING SET VALUES RETURNING JOIN LEFT RIGHT FULL INNER OUTER CROSS
    NATURAL UNION EXCEPT INTERSECT WINDOW AS FETCH FOR TO WITH SELECT LATERAL ENVELOPE WITHIN UP FROM DEFAULT
    """
    )
)


@dataclass(frozen=True, slots=True)
class Source:
    """A relation in a FROM clause: how it is called there, and what it is (empty name: a subquery)."""

    alias: str
    schema: str | None
    name: str


@dataclass(slots=True)
class Cursor:
    """Where the cursor is.

    word: the partial name under it; prefix: the names before its dots; clause: the last clause word before it, in the
    same parentheses; previous: the words before `word`, nearest last; sources: relations in scope; ctes: names from WITH.
    """

    word: str
    prefix: tuple[str, ...] = ()
    clause: str = ""
    previous: tuple[str, ...] = ()
    sources: list[Source] = field(default_factory=list)
    ctes: list[str] = field(default_factory=list)
    insert_columns_of: Source | None = None
    is_inert: bool = False  # in a string or comment

    @property
    def last(self) -> str:
        return self.previous[-1] if self.previous else ""

    @property
    def wants_relation(self) -> bool:
        """Whether a relation is what comes next."""
        if self.last in _RELATION_AFTER:
            return self.last != "USING" or self.previous[0] == "DELETE"
        if self.last == "TO" and "SUBSCRIBE" in self.previous[-2:]:
            return True
        if self.last == "," and self.clause in ("FROM", "SUBSCRIBE"):
            return True
        return (self.last == "ON" and "INDEX" in self.previous) or self.previous[-2:] == ("INDEXES", "ON")


def locate(text: str, position: int) -> Cursor:
    """Reads `text` around `position`."""
    lexer = Lexer()
    before = lexer.feed(text[:position])
    inside = lexer.inside.mode
    if inside not in (Mode.NORMAL, Mode.IDENT) or (before and _is_line_comment(before[-1])):
        return Cursor("", is_inert=True)
    start = max((i + 1 for i, token in enumerate(before) if token.kind is Kind.SEMICOLON), default=0)
    before = before[start:]
    after = _until_semicolon(Lexer().feed(text[position:])) if inside is Mode.NORMAL else []
    word, prefix, before = _take_word(before)
    tokens = [token for token in before if token.kind not in (Kind.SPACE, Kind.COMMENT)]
    rest = [token for token in after if token.kind not in (Kind.SPACE, Kind.COMMENT)]
    own = _same_level(tokens)
    cursor = Cursor(word, prefix)
    cursor.clause = next((token.word for token in reversed(own) if token.word in _CLAUSES), "")
    cursor.previous = tuple((token.word or token.text) for token in tokens)
    cursor.ctes = _ctes(tokens)
    # Columns may come from the FROM of the cursor's own query, before or after it, and from the queries around it.
    cursor.sources = _sources([*_enclosing(tokens), *own, *_rest_of_level(rest)])
    cursor.insert_columns_of = _insert_target(tokens)
    return cursor


def _is_line_comment(token: Token) -> bool:
    return token.kind is Kind.COMMENT and token.text.startswith("--") and not token.text.endswith("\n")


def _until_semicolon(tokens: Sequence[Token]) -> list[Token]:
    out: list[Token] = []
    for token in tokens:
        if token.kind is Kind.SEMICOLON:
            break
        out.append(token)
    return out


def _take_word(tokens: list[Token]) -> tuple[str, tuple[str, ...], list[Token]]:
    """Splits off the name that ends at the cursor: `a."B".c` gives "c" with prefix (a, B)."""
    rest = list(tokens)
    word = ""
    if rest and rest[-1].kind in (Kind.WORD, Kind.IDENT):
        word = rest.pop().text
    prefix: list[str] = []
    while len(rest) >= 2 and rest[-1].text == "." and rest[-2].kind in (Kind.WORD, Kind.IDENT):
        rest.pop()
        prefix.insert(0, unquote_ident(rest.pop().text))
    return word, tuple(prefix), rest


def _same_level(tokens: Sequence[Token]) -> list[Token]:
    """The tokens before the cursor in its own parentheses; what nested parentheses hold is left out."""
    out: list[Token] = []
    depth = 0
    for token in reversed(tokens):
        if token.kind is Kind.CLOSE:
            depth += 1
            if depth == 1:
                out.append(token)
        elif token.kind is Kind.OPEN:
            if depth == 0:
                break
            depth -= 1
            if depth == 0:
                out.append(token)
        elif depth == 0:
            out.append(token)
    return out[::-1]


def _enclosing(tokens: Sequence[Token]) -> list[Token]:
    """The tokens of the queries around the cursor's own, outermost first, each without nested parentheses."""
    opens: list[int] = []
    for i, token in enumerate(tokens):
        if token.kind is Kind.OPEN:
            opens.append(i)
        elif token.kind is Kind.CLOSE and opens:
            opens.pop()
    out: list[Token] = []
    for i in opens:
        out += _same_level(tokens[:i])
    return out


def _rest_of_level(tokens: Sequence[Token]) -> list[Token]:
    """The tokens after the cursor up to the end of its own query."""
    out: list[Token] = []
    depth = 0
    for token in tokens:
        if token.kind is Kind.OPEN:
            depth += 1
        elif token.kind is Kind.CLOSE:
            depth -= 1
            if depth < 0:
                break
        elif depth == 0 and token.word in ("UNION", "EXCEPT", "INTERSECT"):
            break
        if depth == 0 or (depth == 1 and token.kind is Kind.OPEN):
            out.append(token)
    return out


def _sources(tokens: Sequence[Token]) -> list[Source]:
    found: list[Source] = []
    i = 0
    expects = False
    while i < len(tokens):
        token = tokens[i]
        if token.word in ("FROM", "JOIN", "UPDATE", "INTO", "SUBSCRIBE") or (
            token.text == "," and expects is False and _in_from(tokens[:i])
        ):
            expects = True
        elif expects and token.word in ("LATERAL", "ONLY", "TABLE", "TO"):
            pass
        elif expects and token.kind is Kind.OPEN:
            while i + 1 < len(tokens) and tokens[i].kind is not Kind.CLOSE:
                i += 1
            alias, i = _alias(tokens, i + 1)
            if alias:
                found.append(Source(alias, None, ""))
            expects = False
            continue
        elif expects and token.kind in (Kind.WORD, Kind.IDENT) and token.word not in _NOT_AN_ALIAS:
            names = [unquote_ident(token.text)]
            i += 1
            while i + 1 < len(tokens) and tokens[i].text == "." and tokens[i + 1].kind in (Kind.WORD, Kind.IDENT):
                names.append(unquote_ident(tokens[i + 1].text))
                i += 2
            alias, i = _alias(tokens, i)
            found.append(Source(alias or names[-1], names[-2] if len(names) > 1 else None, names[-1]))
            expects = False
            continue
        else:
            expects = False
        i += 1
    return found


def _in_from(tokens: Sequence[Token]) -> bool:
    return next((token.word for token in reversed(tokens) if token.word in _CLAUSES - {"AS"}), "") in (
        "FROM",
        "JOIN",
        "ON",
    )


def _alias(tokens: Sequence[Token], i: int) -> tuple[str, int]:
    if i < len(tokens) and tokens[i].word == "AS":
        i += 1
    if i < len(tokens) and tokens[i].kind in (Kind.WORD, Kind.IDENT) and tokens[i].word not in _NOT_AN_ALIAS:
        return unquote_ident(tokens[i].text), i + 1
    return "", i


def _ctes(tokens: Sequence[Token]) -> list[str]:
    """Names that a WITH before the cursor gives: each `name AS (` or `name (columns) AS (`."""
    if not any(token.word == "WITH" for token in tokens):
        return []
    names: list[str] = []
    for i, token in enumerate(tokens):
        if token.word != "AS" or i + 1 >= len(tokens) or tokens[i + 1].text != "(":
            continue
        j = i - 1
        if j >= 0 and tokens[j].kind is Kind.CLOSE:
            while j > 0 and tokens[j].kind is not Kind.OPEN:
                j -= 1
            j -= 1
        if j >= 0 and tokens[j].kind in (Kind.WORD, Kind.IDENT):
            names.append(unquote_ident(tokens[j].text))
    return names


def _insert_target(tokens: Sequence[Token]) -> Source | None:
    """The table whose column list the cursor is in: `INSERT INTO t (a, ‸` or `COPY t (‸`, `CREATE INDEX ON t (‸`."""
    opened = next((i for i in range(len(tokens) - 1, -1, -1) if tokens[i].kind in (Kind.OPEN, Kind.CLOSE)), None)
    if opened is None or tokens[opened].kind is Kind.CLOSE:
        return None
    i = opened - 1
    names: list[str] = []
    while i >= 0 and tokens[i].kind in (Kind.WORD, Kind.IDENT):
        names.insert(0, unquote_ident(tokens[i].text))
        i -= 1
        if i >= 0 and tokens[i].text == ".":
            i -= 1
            continue
        break
    words = [token.word for token in tokens[: i + 1]]
    is_target = words[-1:] == ["INTO"] or words == ["COPY"] or (words[-1:] == ["ON"] and "INDEX" in words)
    if not names or not is_target:
        return None
    return Source(names[-1], names[-2] if len(names) > 1 else None, names[-1])
