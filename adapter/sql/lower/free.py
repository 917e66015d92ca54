"""Which outer columns a relation or scalar reads, and which of them must not be NULL for it to have a row."""

from __future__ import annotations

from adapter.sql import hir
from adapter.sql.lower.frame import Frame, Key


def free_keys(r: hir.Relation, frame: Frame, depth: int) -> set[Key]:
    """Outer columns read by r, whose own rows are scope `depth`: every key of a scope below it."""
    found: set[Key] = set()
    _relation(r, depth, depth, frame, found)
    return found


def free_in_scalar(e: hir.Scalar, frame: Frame, depth: int) -> set[Key]:
    """Columns of scopes below `depth` read by a scalar standing on scope `depth`; those of `depth` itself by its subqueries too."""
    found: set[Key] = set()
    _scalar(e, depth, depth, frame, found)
    return found


def _scalar(e: hir.Scalar, here: int, limit: int, frame: Frame, found: set[Key]) -> None:
    def f(e: hir.Scalar, nested: int) -> hir.Scalar | None:
        if isinstance(e, hir.Column):
            scope = here + nested - e.level
            if scope < limit:
                found.add((scope, e.column))
        elif isinstance(e, hir.Exists | hir.ScalarQuery | hir.Quantified):
            _bindings(e.relation, limit, frame, found)
        return None

    hir.rewrite(e, f)


def _relation(r: hir.Relation, here: int, limit: int, frame: Frame, found: set[Key]) -> None:
    def f(e: hir.Scalar, nested: int) -> hir.Scalar | None:
        if isinstance(e, hir.Column):
            scope = here + nested - e.level
            if scope < limit:
                found.add((scope, e.column))
        return None

    hir.rewrite_relation(r, f)
    _bindings(r, limit, frame, found)


def _bindings(r: hir.Relation, limit: int, frame: Frame, found: set[Key]) -> None:
    """A correlated Let that r reads brings its own outer columns."""
    if not any(b.low.keys for b in frame.bindings.values()):
        return
    stack: list[object] = [r]
    while stack:
        node = stack.pop()
        if isinstance(node, hir.Get) and isinstance(node.id, int) and node.id in frame.bindings:
            found.update(k for k in frame.bindings[node.id].low.keys if k[0] < limit)
        elif isinstance(node, hir.Node):
            stack.extend(getattr(node, name) for name in node.__struct_fields__)
        elif isinstance(node, tuple):
            stack.extend(node)


_STRICT = ("eq_", "lt_", "lte_", "gt_", "gte_", "not_eq_")


def rejects(r: hir.Relation, key: Key, depth: int) -> bool:
    """Whether r is certainly empty when that outer column is NULL. depth: scope of r's own rows."""
    match r:
        case hir.Filter(input, predicates):
            for p in predicates:
                if isinstance(p, hir.Call) and p.func.startswith(_STRICT):
                    for a in p.args:
                        if isinstance(a, hir.Column) and (depth - a.level, a.column) == key:
                            return True
            return rejects(input, key, depth)
        case hir.Project() | hir.Map() | hir.Distinct() | hir.TopK() | hir.Window() | hir.Negate() | hir.Threshold():
            return rejects(r.input, key, depth)
        case hir.Join(left, right, _, kind):
            if kind == "inner":
                return rejects(left, key, depth) or rejects(right, key, depth)
            return rejects(left, key, depth) if kind == "left" else False
        case hir.Lateral(left, right, _, kind):
            return rejects(left, key, depth) or (kind == "inner" and rejects(right, key, depth + 1))
        case hir.Reduce():
            return bool(r.group_key) and rejects(r.input, key, depth)
        case hir.Union(inputs):
            return all(rejects(i, key, depth) for i in inputs)
        case hir.Let():
            return rejects(r.body, key, depth)
        case _:
            return False


def at_most_one(r: hir.Relation) -> bool:
    """Whether r has at most one row, by its shape."""
    match r:
        case hir.Constant(rows):
            return len(rows) <= 1
        case hir.Reduce():
            return not r.group_key
        case hir.TopK():
            from mzlite.expr.scalar import Literal
            from mzlite.repr.datum import decode_datum

            limit = r.limit
            if not r.group_key and isinstance(limit, Literal) and limit.value is not None:
                return bool(decode_datum(limit.typ, limit.value) <= 1)
            return at_most_one(r.input)
        case hir.Project() | hir.Map() | hir.Filter() | hir.Distinct() | hir.Window() | hir.Threshold():
            return at_most_one(r.input)
        case hir.Join(left, right, _, kind):
            return kind in ("inner", "left") and at_most_one(left) and at_most_one(right)
        case hir.Let() | hir.LetRec():
            return at_most_one(r.body)
        case _:
            return False
