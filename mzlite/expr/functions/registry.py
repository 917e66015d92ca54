"""The registry: what a function is, how families register theirs, how a polymorphic one becomes concrete.

One entry per overload, found by name (for the planner) or by id (for everyone else). `Call.func` holds the id.

    by_name("abs")          -> [abs_int2, abs_int4, ...]                   the planner picks one by argument types
    entry.bind(arg_types)   -> the concrete entry; its id goes into Call   abs_int4;  array_cat<int4[],int4[]>
    entry.result_type(args) -> ScalarType
    FUNCTIONS[id]           -> entry, also for bound ids (materialised on demand)

Source: Materialize's `sql/func.rs` (names, overloads, polymorphism) and `expr/scalar/func.rs` (nullability, errors).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from mzlite.expr.functions import polymorphic
from mzlite.expr.functions.type_ids import bare, parse_types, type_text
from mzlite.repr.types import ScalarType

if TYPE_CHECKING:
    from mzlite.expr.call import Kernel

Returns = ScalarType | Callable[[tuple[ScalarType, ...]], ScalarType]
Nullability = Literal["args", "all_args", "always", "never"]
S = TypeVar("S", bound="Signature")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """Name, parameters and result of one overload of a function, aggregate, table or window function.

    params: may hold the pseudo kinds of `polymorphic`. variadic: type of any number of further arguments.
    optional: how many trailing params may be left out. returns: a type (possibly pseudo), or a function of the
    concrete argument types. typed: whether evaluation needs to know the argument types (else one id serves all).
    """

    id: str
    name: str
    params: tuple[ScalarType, ...] = ()
    variadic: ScalarType | None = None
    returns: Returns
    typed: bool = True

    @property
    def is_polymorphic(self) -> bool:
        pseudo = polymorphic.is_pseudo
        return any(map(pseudo, self.params)) or (self.variadic is not None and pseudo(self.variadic))

    def param_types(self, count: int) -> tuple[ScalarType, ...] | None:
        """The declared types of `count` arguments, or None if this overload does not take that many."""
        if count == len(self.params):
            return self.params
        if self.variadic is None or count < len(self.params):
            return None
        return self.params + (self.variadic,) * (count - len(self.params))

    def result_type(self, arg_types: Sequence[ScalarType]) -> ScalarType:
        """arg_types: concrete, after casts."""
        if isinstance(self.returns, ScalarType):
            if polymorphic.is_pseudo(self.returns):
                declared = self.param_types(len(arg_types))
                assert declared is not None
                return polymorphic.result(self.returns, declared, tuple(arg_types))
            return self.returns
        return self.returns(tuple(arg_types))


def bind(entry: S, arg_types: Sequence[ScalarType]) -> S:
    """The concrete form of an overload for these argument types: itself unless it is polymorphic and typed."""
    if not entry.is_polymorphic or not entry.typed:
        return entry
    types = tuple(bare(t) for t in arg_types)
    suffix = ",".join(type_text(t) for t in types)
    return dataclasses.replace(
        entry,
        id=f"{entry.id}<{suffix}>",
        params=types,
        variadic=None,
        returns=bare(entry.result_type(types)) if types else entry.returns,
    )


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class FunctionEntry(Signature):
    """A scalar function.

    strict: NULL in, NULL out (the kernel never sees a row with a NULL argument as valid).
    nullable: "args" = NULL only if an argument is; "all_args" = only if all are; "always" = may make NULLs itself.
    can_error: a row can fail. infix: the operator's text in plans; display: the name in plans.
    kernel: evaluation over columns, see `mzlite.expr.call`; None for the lazy forms that `mzlite.expr.eval` knows.
    unmaterializable: the planner must replace it (now, current_user, ...). pads: sees bpchar(n) arguments with their
    blanks (`pad_char`); others see them without.
    """

    strict: bool = True
    nullable: Nullability = "args"
    can_error: bool = True
    infix: str | None = None
    display: str | None = None
    operator: bool = False
    prefix: bool = False
    is_cast: bool = False
    unmaterializable: bool = False
    pads: bool = False
    kernel: Kernel | None = None

    def bind(self, arg_types: Sequence[ScalarType]) -> FunctionEntry:
        return bind(self, arg_types)


class Registry(dict[str, S]):
    """Entries by id; looking up `name<types>` binds the polymorphic entry `name` on demand."""

    def __init__(self) -> None:
        super().__init__()
        self.names: dict[str, list[S]] = {}

    def add(self, entry: S) -> S:
        assert entry.id not in self, f"duplicate function id {entry.id}"
        self[entry.id] = entry
        if entry.name:
            self.names.setdefault(entry.name, []).append(entry)
        return entry

    def __missing__(self, id: str) -> S:
        base, bracket, rest = id.partition("<")
        if not bracket or base not in self:
            raise KeyError(id)
        entry = bind(self[base], parse_types(rest[:-1]))
        self[entry.id] = entry
        return entry

    def by_name(self, name: str) -> list[S]:
        """All overloads of a name in declaration order; empty if there are none."""
        return self.names.get(name, [])


FUNCTIONS: Registry[FunctionEntry] = Registry()


def parse_signature(text: str) -> tuple[tuple[ScalarType, ...], ScalarType | None, ScalarType]:
    """ "int4, text[], variadic any -> bool" as (params, variadic, returns)."""
    left, arrow, right = text.partition("->")
    assert arrow, text
    params = left.strip()
    variadic = None
    if "variadic" in params:
        params, _, last = params.partition("variadic")
        variadic = parse_types(last.strip())[0]
        params = params.strip().rstrip(",")
    (returns,) = parse_types(right.strip())
    return parse_types(params), variadic, returns


def default_id(name: str, params: tuple[ScalarType, ...]) -> str:
    """name_kind_kind: unique among a name's overloads, readable in errors and plans."""
    parts = [name]
    for param in params:
        element = param.element
        parts.append(param.kind if element is None else f"{element.kind}{param.kind}")
    return "_".join(parts)


def register(
    name: str,
    signature: str,
    kernel: Kernel | None = None,
    *,
    id: str | None = None,
    returns: Returns | None = None,
    **options: Any,
) -> FunctionEntry:
    """Add one overload. id: default is name and parameter kinds. returns: overrides the signature's."""
    params, variadic, result = parse_signature(signature)
    entry = FunctionEntry(
        id=id or default_id(name, params),
        name=name,
        params=params,
        variadic=variadic,
        returns=result if returns is None else returns,
        kernel=kernel,
        **options,
    )
    return FUNCTIONS.add(entry)


def operator(
    symbol: str,
    word: str,
    signature: str,
    kernel: Kernel | None = None,
    *,
    id: str | None = None,
    **options: Any,
) -> FunctionEntry:
    """Add an operator: registered under its symbol, id from a word ("add_int4"). One parameter makes it a prefix."""
    params, _, _ = parse_signature(signature)
    kinds = {p.kind for p in params}
    if id is None:
        id = default_id(word, params[:1] if len(kinds) == 1 and params[0].element is None else params)
    options.setdefault("infix", symbol)
    return register(symbol, signature, kernel, id=id, operator=True, prefix=len(params) == 1, **options)


def by_name(name: str) -> list[FunctionEntry]:
    return FUNCTIONS.by_name(name)
