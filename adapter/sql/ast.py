"""The syntax tree of expressions and queries: what was written, before any name means anything.

Nodes are frozen structs; `pos` is the source offset
(0-based) used only for errors. Names are folded already. A typed literal (`DATE '…'`) is a Cast of a String.
"""

from __future__ import annotations

import msgspec


class Node(msgspec.Struct, frozen=True):
    """Base of all syntax nodes."""


# ---- types


class TypeName(Node, frozen=True):
    """`name(modifiers)`; or a container: `array`, `list` of element, `map` of element."""

    parts: tuple[str, ...] = ()
    modifiers: tuple[int, ...] = ()
    container: str | None = None
    element: TypeName | None = None
    key: TypeName | None = None
    quoted: bool = False
    pos: int = 0


# ---- expressions


class Name(Node, frozen=True):
    """A column reference, possibly qualified; also a whole-row reference when it names a table."""

    parts: tuple[str, ...]
    pos: int = 0


class Star(Node, frozen=True):
    """`*`, `t.*` in a select list."""

    qualifier: tuple[str, ...] = ()
    pos: int = 0


class Number(Node, frozen=True):
    text: str
    pos: int = 0


class String(Node, frozen=True):
    value: str
    pos: int = 0


class Null(Node, frozen=True):
    pos: int = 0


class Bool(Node, frozen=True):
    value: bool
    pos: int = 0


class Param(Node, frozen=True):
    number: int
    pos: int = 0


class Interval(Node, frozen=True):
    """INTERVAL 'value' [from [TO to]] [(precision)]."""

    value: str
    start: str | None = None
    end: str | None = None
    precision: int | None = None
    pos: int = 0


class Default(Node, frozen=True):
    """DEFAULT as a value in INSERT and UPDATE."""

    pos: int = 0


class Unary(Node, frozen=True):
    op: str
    operand: Expr
    pos: int = 0


class Binary(Node, frozen=True):
    """Any infix operator that is a function: arithmetic, comparison, `~~` for LIKE, … schema: OPERATOR(schema.op)."""

    op: str
    left: Expr
    right: Expr
    pos: int = 0


class And(Node, frozen=True):
    """Operands of a chain of AND, flattened."""

    operands: tuple[Expr, ...]
    pos: int = 0


class Or(Node, frozen=True):
    operands: tuple[Expr, ...]
    pos: int = 0


class Not(Node, frozen=True):
    operand: Expr
    pos: int = 0


class Is(Node, frozen=True):
    """what: null, true, false, unknown; negated."""

    operand: Expr
    what: str
    negated: bool
    pos: int = 0


class IsDistinct(Node, frozen=True):
    left: Expr
    right: Expr
    negated: bool
    pos: int = 0


class Like(Node, frozen=True):
    """op: like, ilike, similar."""

    operand: Expr
    pattern: Expr
    escape: Expr | None
    op: str
    negated: bool
    pos: int = 0


class Between(Node, frozen=True):
    operand: Expr
    low: Expr
    high: Expr
    negated: bool
    symmetric: bool = False
    pos: int = 0


class InList(Node, frozen=True):
    operand: Expr
    items: tuple[Expr, ...]
    negated: bool
    pos: int = 0


class InQuery(Node, frozen=True):
    operand: Expr
    query: Query
    negated: bool
    pos: int = 0


class Quantified(Node, frozen=True):
    """operand op ANY|ALL (query or array/list expression)."""

    operand: Expr
    op: str
    all: bool
    right: Query | Expr
    pos: int = 0


class Cast(Node, frozen=True):
    operand: Expr
    typ: TypeName
    pos: int = 0


class Collate(Node, frozen=True):
    operand: Expr
    collation: tuple[str, ...]
    pos: int = 0


class Case(Node, frozen=True):
    operand: Expr | None
    whens: tuple[tuple[Expr, Expr], ...]
    default: Expr | None
    pos: int = 0


class OrderItem(Node, frozen=True):
    expr: Expr
    desc: bool = False
    nulls_first: bool | None = None
    using: str | None = None


class FrameBound(Node, frozen=True):
    """kind: unbounded_preceding, preceding, current_row, following, unbounded_following."""

    kind: str
    offset: Expr | None = None


class FrameSpec(Node, frozen=True):
    units: str
    start: FrameBound
    end: FrameBound
    exclude: str = "no_others"


class WindowSpec(Node, frozen=True):
    name: str | None = None
    partition_by: tuple[Expr, ...] = ()
    order_by: tuple[OrderItem, ...] = ()
    frame: FrameSpec | None = None
    pos: int = 0


class FuncCall(Node, frozen=True):
    """A call; `star` for count(*). syntax: how it was spelled when not f(…): "extract", "at_time_zone", "position", …"""

    name: tuple[str, ...]
    args: tuple[Expr, ...] = ()
    star: bool = False
    distinct: bool = False
    order_by: tuple[OrderItem, ...] = ()
    within_group: bool = False
    filter: Expr | None = None
    over: WindowSpec | None = None
    nulls: str | None = None
    syntax: str | None = None
    variadic: bool = False
    pos: int = 0


class Subquery(Node, frozen=True):
    """(query) as a scalar; kind: scalar, exists, array, list, map."""

    query: Query
    kind: str = "scalar"
    pos: int = 0


class ArrayLit(Node, frozen=True):
    items: tuple[Expr, ...]
    kind: str = "array"  # or list
    pos: int = 0


class MapLit(Node, frozen=True):
    entries: tuple[tuple[Expr, Expr], ...]
    pos: int = 0


class Row(Node, frozen=True):
    items: tuple[Expr, ...]
    explicit: bool = False
    pos: int = 0


class Slice(Node, frozen=True):
    start: Expr | None
    end: Expr | None


class Subscript(Node, frozen=True):
    operand: Expr
    indexes: tuple[Expr | Slice, ...]
    pos: int = 0


class Field(Node, frozen=True):
    """(expr).name"""

    operand: Expr
    name: str
    pos: int = 0


class FieldStar(Node, frozen=True):
    """(expr).*"""

    operand: Expr
    pos: int = 0


Expr = (
    Name
    | Star
    | Number
    | String
    | Null
    | Bool
    | Param
    | Interval
    | Default
    | Unary
    | Binary
    | And
    | Or
    | Not
    | Is
    | IsDistinct
    | Like
    | Between
    | InList
    | InQuery
    | Quantified
    | Cast
    | Collate
    | Case
    | FuncCall
    | Subquery
    | ArrayLit
    | MapLit
    | Row
    | Subscript
    | Field
    | FieldStar
)


# ---- queries


class Alias(Node, frozen=True):
    name: str
    columns: tuple[str, ...] = ()


class TableRef(Node, frozen=True):
    """parts: the name; id: of `[u1 AS a.b.c]`."""

    parts: tuple[str, ...]
    alias: Alias | None = None
    id: str | None = None
    pos: int = 0


class Derived(Node, frozen=True):
    """(query) AS alias in FROM."""

    query: Query
    alias: Alias | None = None
    lateral: bool = False
    pos: int = 0


class ShowDerived(Node, frozen=True):
    """(SHOW …) AS alias in FROM. statement: a ShowStatement."""

    statement: Node
    alias: Alias | None = None
    pos: int = 0


class TableFunction(Node, frozen=True):
    """f(…) or ROWS FROM (f(…), …), with or without ordinality."""

    functions: tuple[FuncCall, ...]
    rows_from: bool = False
    ordinality: bool = False
    alias: Alias | None = None
    lateral: bool = False
    pos: int = 0


class JoinExpr(Node, frozen=True):
    """kind: inner, left, right, full, cross. Of on, using, natural at most one. using_alias: USING (…) AS x."""

    kind: str
    left: TableExpr
    right: TableExpr
    on: Expr | None = None
    using: tuple[str, ...] | None = None
    natural: bool = False
    using_alias: str | None = None
    alias: Alias | None = None
    pos: int = 0


TableExpr = TableRef | Derived | ShowDerived | TableFunction | JoinExpr


class SelectItem(Node, frozen=True):
    expr: Expr
    alias: str | None = None


class Select(Node, frozen=True):
    """distinct: None, "all rows" as the empty tuple, or DISTINCT ON's expressions. from_: comma-separated items."""

    items: tuple[SelectItem, ...]
    from_: tuple[TableExpr, ...] = ()
    where: Expr | None = None
    group_by: tuple[Expr, ...] = ()
    grouped: bool = False
    having: Expr | None = None
    qualify: Expr | None = None
    distinct: tuple[Expr, ...] | None = None
    windows: tuple[tuple[str, WindowSpec], ...] = ()
    options: tuple[tuple[str, str], ...] = ()
    pos: int = 0


class SetOp(Node, frozen=True):
    """op: union, except, intersect."""

    op: str
    all: bool
    left: Body
    right: Body
    pos: int = 0


class Values(Node, frozen=True):
    rows: tuple[tuple[Expr, ...], ...]
    pos: int = 0


class TableBody(Node, frozen=True):
    """TABLE name."""

    parts: tuple[str, ...]
    pos: int = 0


class Cte(Node, frozen=True):
    name: str
    columns: tuple[str, ...]
    query: Query
    pos: int = 0


class RecursiveCte(Node, frozen=True):
    """A binding of WITH MUTUALLY RECURSIVE: column names with types."""

    name: str
    columns: tuple[tuple[str, TypeName], ...]
    query: Query
    pos: int = 0


class Recursion(Node, frozen=True):
    """WITH MUTUALLY RECURSIVE (options) bindings."""

    ctes: tuple[RecursiveCte, ...]
    options: tuple[tuple[str, str | None], ...] = ()
    pos: int = 0


class Query(Node, frozen=True):
    body: Body
    ctes: tuple[Cte, ...] = ()
    recursive: bool = False
    recursion: Recursion | None = None
    order_by: tuple[OrderItem, ...] = ()
    limit: Expr | None = None
    with_ties: bool = False
    offset: Expr | None = None
    pos: int = 0


class ShowBody(Node, frozen=True):
    """SHOW … as the body of a query (SELECT * FROM (SHOW …) without the wrapper)."""

    statement: Node
    pos: int = 0


Body = Select | SetOp | Values | TableBody | Query | ShowBody
