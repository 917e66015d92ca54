"""The first rows of each partition: a filter on row_number() needs only that many rows of each.

    Filter (#2 <= 3)                                     Window … functions=[row_number()]
      Window partition_by=[#0] order_by=[#1 …]     ->      TopK group_by=[#0] order_by=[#1 …] limit=3
             functions=[row_number()]                        Get u1
        Get u1

Both number rows alike: by the order, then by the whole row. A window is recomputed a partition at a time, so this bounds
what a change costs; when nobody reads the number, projection pushdown then drops the window.
"""

from __future__ import annotations

from adapter.transform.context import Context
from mzlite.expr import relation as r
from mzlite.expr.functions import FUNCTIONS
from mzlite.expr.scalar import Call, Literal, Ref, Scalar
from mzlite.repr.datum import decode_datum, encode_datum
from mzlite.repr.types import INT8

_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}


def window_top_k(e: r.Mir, context: Context) -> r.Mir:
    def visit(node: r.Mir) -> r.Mir:
        match node:
            case r.Filter(r.Window() as window, predicates) if all(c.func == "row_number" for c in window.calls):
                return _limited(window, predicates, context.types.arity(window.input)) or node
            case _:
                return node

    return r.rewrite(e, visit)


def _limited(window: r.Window, predicates: tuple[Scalar, ...], first: int) -> r.Mir | None:
    """first: the column of the first call."""
    bounds = [_bound(p, first) for p in predicates]
    known = [b for b in bounds if b is not None]
    if not known:
        return None
    limit = max(0, min(last for last, _ in known))
    below = window.input
    if (
        isinstance(below, r.TopK)
        and (below.group_key, below.order_by, below.offset) == (window.partition_by, window.order_by, 0)
        and isinstance(below.limit, Literal)
        and below.limit.value is not None
        and decode_datum(below.limit.typ, below.limit.value) <= limit
    ):
        return None
    top = r.TopK(below, window.partition_by, window.order_by, Literal(encode_datum(INT8, limit), INT8))
    # An upper bound that is not below the limit is now true of every row.
    kept = tuple(p for p, b in zip(predicates, bounds) if b is None or b[1] or b[0] < limit)
    out: r.Mir = r.Window(top, window.partition_by, window.order_by, window.calls)
    if limit == 1 and window.calls:
        one = Literal(encode_datum(INT8, 1), INT8)
        out = r.Map(top, (one,) * len(window.calls))
    return r.Filter(out, kept) if kept else out


def _bound(p: Scalar, first: int) -> tuple[int, bool] | None:
    """(the last row number that passes, whether the predicate says more than that)."""
    if not isinstance(p, Call) or len(p.args) != 2 or not FUNCTIONS[p.func].operator:
        return None
    a, b = p.args
    name = FUNCTIONS[p.func].name
    if isinstance(a, Literal):
        a, b, name = b, a, _FLIPPED.get(name, "")
    if not isinstance(a, Ref) or a.column < first or not isinstance(b, Literal):
        return None
    if b.value is None or b.typ.kind != "int8":
        return None
    value = int(decode_datum(b.typ, b.value))
    match name:
        case "<=":
            return value, False
        case "<":
            return value - 1, False
        case "=":
            return value, True
        case _:
            return None
