"""Reads scalar expressions of the MIR text form: precedence climbing over tokens, overloads by argument types."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeVar

from mzlite.expr.functions import FUNCTIONS, polymorphic
from mzlite.expr.functions.registry import Registry, Signature, bind
from mzlite.expr.scalar import Call, If, Literal, Ref, Scalar
from mzlite.expr.typing import scalar_type
from mzlite.repr import types as t
from mzlite.repr.datum import encode_datum
from mzlite.repr.text import parse_datum
from mzlite.repr.typenames import type_by_name
from mzlite.repr.types import ColumnType, ScalarType

S = TypeVar("S", bound=Signature)


class MirSyntaxError(ValueError):
    """The text is no MIR. The message names the line."""


_TOKEN = re.compile(
    r"""\s*(?:
      (?P<column>\#\d+)(?:\{[^}]*\})?
    | (?P<number>\d+(?:\.\d+)?(?:e[+-]?\d+)?)
    | (?P<string>"(?:[^"\\]|\\.)*"|'(?:[^']|'')*')
    | (?P<name>[A-Za-z_][A-Za-z_0-9]*)
    | (?P<op>::|<=|>=|!=|<>|\|\||->>|->|@>|<@|[-+*/%<>=(),\[\]])
    )""",
    re.VERBOSE,
)

_BINDING = [
    {"or"},
    {"and"},
    {"=", "!=", "<>", "<", ">", "<=", ">=", "@>", "<@"},
    {"+", "-", "||", "->", "->>"},
    {"*", "/", "%"},
]
_INTS = (t.INT8, t.INT4, t.INT2, t.UINT8, t.UINT4, t.UINT2, t.NUMERIC, t.FLOAT8, t.FLOAT4, t.MZ_TIMESTAMP)


def unquote(text: str) -> str:
    if text[:1] == '"':
        return re.sub(r"\\(.)", lambda m: "\n" if m[1] == "n" else m[1], text[1:-1])
    if text[:1] == "'":
        return text[1:-1].replace("''", "'")
    return text


def literal_from(text: str, typ: ScalarType) -> Literal:
    body = text.split("::")[0].strip()
    if body == "null":
        return Literal(None, typ)
    return Literal(encode_datum(typ, parse_datum(typ, unquote(body))), typ)


class Number(str):
    """A bare number or null whose type its neighbours decide."""


def settle(e: Scalar | Number, want: ScalarType | None) -> Scalar:
    if not isinstance(e, Number):
        return e
    return literal_from(str(e), want or (t.NUMERIC if "." in e else t.INT8))


def resolve(
    registry: Registry[S], name: str, args: Sequence[Scalar | Number], columns: Sequence[ColumnType]
) -> tuple[S, list[Scalar]]:
    """The overload whose parameters are the arguments' types; bare numbers fit any number type."""
    known: list[ScalarType | None] = [None if isinstance(a, Number) else scalar_type(a, columns).scalar for a in args]
    entries = registry.by_name(name)
    if not entries and name in registry:
        entries = [registry[name]]
    if not entries:
        # Casts have no SQL name; plans show them by their display name.
        entries = [e for e in registry.values() if getattr(e, "display", None) == name]
    for guess in (next((k for k in known if k is not None), t.INT8), *_INTS):
        types = [k or guess for k in known]
        for entry in entries:
            params = entry.param_types(len(args))
            if params is None:
                continue
            if all(polymorphic.is_pseudo(p) or p.kind == x.kind for p, x in zip(params, types)):
                settled = [settle(a, x) for a, x in zip(args, types)]
                return bind(entry, types), settled
    shown = ", ".join("number" if k is None else k.kind for k in known)
    raise MirSyntaxError(f"no function {name}({shown})")


class Expression:
    """One scalar, by precedence climbing over the tokens of its text."""

    def __init__(self, text: str, columns: Sequence[ColumnType]) -> None:
        self.columns = columns
        self.text = text
        self.tokens: list[tuple[str, str]] = []
        at = 0
        while at < len(text.rstrip()):
            found = _TOKEN.match(text, at)
            if found is None:
                raise MirSyntaxError(f"cannot read {text[at:]!r}")
            kind = found.lastgroup or ""
            self.tokens.append((kind, found[kind]))
            at = found.end()
        self.at = 0

    def parse(self) -> Scalar | Number:
        e = self._binary(0)
        if self.at < len(self.tokens):
            raise MirSyntaxError(f"unexpected {self._peek()!r} in {self.text!r}")
        return e

    def _peek(self) -> str:
        return self.tokens[self.at][1] if self.at < len(self.tokens) else ""

    def _take(self, expected: str | None = None) -> tuple[str, str]:
        if self.at >= len(self.tokens) or (expected is not None and self._peek().lower() != expected):
            raise MirSyntaxError(f"expected {expected or 'more'} in {self.text!r}")
        self.at += 1
        return self.tokens[self.at - 1]

    def _binary(self, level: int) -> Scalar | Number:
        if level == len(_BINDING):
            return self._postfix()
        left = self._binary(level + 1)
        while self._peek().lower() in _BINDING[level] and self._peek():
            op = self._take()[1].lower()
            right = self._binary(level + 1)
            if op in ("and", "or"):
                args = (settle(left, t.BOOL), settle(right, t.BOOL))
                head = args[0]
                flat = (*head.args, args[1]) if isinstance(head, Call) and head.func == op else args
                left = Call(op, flat, t.BOOL)
            else:
                left = self._call("<>" if op == "!=" else op, [left, right])
        return left

    def _call(self, name: str, args: Sequence[Scalar | Number]) -> Scalar:
        entry, settled = resolve(FUNCTIONS, name, args, self.columns)
        return Call(entry.id, tuple(settled), entry.result_type([scalar_type(a, self.columns).scalar for a in settled]))

    def _postfix(self) -> Scalar | Number:
        e = self._primary()
        while self._peek().lower() in ("is", "::"):
            if self._take()[1] == "::":
                name = self._take()[1]
                typ = type_by_name(name)
                if typ is None or not isinstance(e, Number | Literal):
                    raise MirSyntaxError(f"cannot pin {name!r}")
                e = literal_from(str(e), typ) if isinstance(e, Number) else e
                continue
            negated = self._peek().lower() == "not"
            if negated:
                self._take()
            word = self._take()[1].lower()
            if word not in ("null", "true", "false"):
                raise MirSyntaxError(f"unexpected {word!r} after IS")
            e = self._call(f"is_{word}", [settle(e, None)])
            if negated:
                e = Call("not", (e,), t.BOOL)
        return e

    def _primary(self) -> Scalar | Number:
        kind, text = self._take()
        word = text.lower()
        match kind:
            case "column":
                column = int(text[1:])
                if column >= len(self.columns):
                    raise MirSyntaxError(f"column #{column} of {len(self.columns)}")
                return Ref(column)
            case "number":
                return Number(text)
            case "string":
                return literal_from(text, t.TEXT)
            case "op" if text == "(":
                e = self._binary(0)
                self._take(")")
                return e
            case "op" if text == "-":
                inner = self._primary()
                return Number(f"-{inner}") if isinstance(inner, Number) else self._call("-", [inner])
            case "name" if word in ("true", "false"):
                return Literal(b"\x01" if word == "true" else b"\x00", t.BOOL)
            case "name" if word == "null":
                return Number("null")
            case "name" if word == "case":
                return self._case()
            case "name":
                self._take("(")
                args: list[Scalar | Number] = []
                while self._peek() != ")":
                    args.append(self._binary(0))
                    if self._peek() == ",":
                        self._take()
                self._take(")")
                return self._call(word, args)
        raise MirSyntaxError(f"unexpected {text!r} in {self.text!r}")

    def _case(self) -> Scalar:
        self._take("when")
        cond = settle(self._binary(0), t.BOOL)
        self._take("then")
        then = settle(self._binary(0), None)
        self._take("else")
        typ = scalar_type(then, self.columns).scalar
        els = settle(self._binary(0), typ)
        self._take("end")
        return If(cond, then, els)
