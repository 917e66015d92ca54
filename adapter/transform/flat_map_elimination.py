"""FlatMap elimination: a table function whose arguments are literals is evaluated now.

    FlatMap generate_series(1, 1)   ->   Map (1)
    FlatMap unnest({})              ->   empty

One row becomes literals, a few become a join with a constant; calls that fail or are not constant stay.
"""

from __future__ import annotations

from adapter.transform.context import Context
from mzlite.expr import relation as r
from mzlite.expr.eval import literal_value
from mzlite.expr.scalar import Literal
from mzlite.expr.table_functions import call_table_function
from mzlite.repr.datum import column_from_literals, column_to_datums, encode_datum
from mzlite.repr.types import RelationType

MAX_ROWS = 20


def flat_map_elimination(e: r.Mir, context: Context) -> r.Mir:
    def visit(node: r.Mir) -> r.Mir:
        if isinstance(node, r.FlatMap) and all(isinstance(x, Literal) and x.error is None for x in node.exprs):
            return _eliminate(node, context)
        return node

    return r.rewrite(e, visit)


def _eliminate(node: r.FlatMap, context: Context) -> r.Mir:
    args = [x for x in node.exprs if isinstance(x, Literal)]
    if not _small(node, args):
        return node
    columns = [column_from_literals(x.typ, [x.value]) for x in args]
    _, out, errors = call_table_function(node.func, columns, 1)
    if errors is not None:
        return node
    count = len(out[0]) if out else -1
    if count < 0 or count > MAX_ROWS:
        return node
    if count == 0:
        return r.Constant((), context.types.typ(node))
    cells = [
        [None if d is None else encode_datum(c.scalar, d) for d in column_to_datums(c.scalar, column)]
        for c, column in zip(node.func.typ.columns, out)
    ]
    if count == 1:
        return r.Map(node.input, tuple(Literal(cell[0], c.scalar) for c, cell in zip(node.func.typ.columns, cells)))
    rows = tuple((row, 1) for row in zip(*cells))
    return r.Join((node.input, r.Constant(rows, RelationType(node.func.typ.columns))))


def _small(node: r.FlatMap, args: list[Literal]) -> bool:
    """Cheap to evaluate: a series' length is checked before it is made; the guard and repeat functions have effects."""
    name = node.func.func.removeprefix("ordinality:")
    if name.startswith("generate_series_int"):
        if any(a.value is None for a in args):
            return True
        start, stop, *step = (literal_value(a) for a in args)
        stride = step[0] if step else 1
        return stride != 0 and (stop - start) // stride < MAX_ROWS
    if name.startswith(("unnest", "jsonb_", "regexp_", "generate_subscripts", "_pg_expandarray")):
        return all(a.value is None or len(a.value) < 4096 for a in args)
    return False
