"""Equivalence propagation: what is known of an input's columns simplifies the expressions over it.

    Filter (#2 > 3)                      Filter (5 > 3)           then folded away
      Join (#0 = #2)           ->
        Filter (#0 = 5) …

Columns with a known value become literals; equal columns become the first of them, so that nobody reads the others.
A join class that holds a literal turns into a filter on each other member (which pushdown brings to the inputs, and
literal constraints to an index); two different literals make the join empty.

An expression is left alone when the substitution would make it fail.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from adapter.transform.context import Context
from adapter.transform.equality import equals, interchangeable
from adapter.transform.facts import Facts, FactsOf, learn
from mzlite.expr import relation as r
from mzlite.expr.eval import fold
from mzlite.expr.scalar import Literal, Ref, Scalar, rewrite, support, walk
from mzlite.expr.typing import can_error, scalar_type


def equivalence_propagation(e: r.Mir, context: Context) -> r.Mir:
    facts = FactsOf(e, context)
    return r.rewrite(e, lambda node: _apply(node, facts, context))


def _apply(node: r.Mir, facts: FactsOf, context: Context) -> r.Mir:
    match node:
        case r.Filter(input):
            return _filter(node, facts.of(input), context)
        case r.Join(_, _, None):
            return _join(node, facts, context)
        case r.Map() | r.FlatMap() | r.Reduce() | r.TopK() | r.Project():
            known = facts.of(node.input)
            return _single(node, known, context) if known else node
        case _:
            return node


def use(e: Scalar, known: Facts) -> Scalar:
    """e over the same columns with what is known put in."""
    reads = support(e)
    if not any(c in known.constants or c in known.same for c in reads):
        return e
    new = rewrite(e, lambda n: known.value(n.column) if isinstance(n, Ref) else n)
    if can_error(e):
        folded = fold(new)
        if any(isinstance(n, Literal) and n.error is not None for n in walk(folded)):
            return e
    return new


def _all(scalars: Sequence[Scalar], known: Facts) -> tuple[Scalar, ...]:
    return tuple(use(s, known) for s in scalars)


def _single(node: r.Map | r.FlatMap | r.Reduce | r.TopK | r.Project, known: Facts, context: Context) -> r.Mir:
    match node:
        case r.Map(input, scalars):
            new = _all(scalars, known)
            return node if new == scalars else r.Map(input, new)
        case r.FlatMap(input, func, exprs):
            new = _all(exprs, known)
            return node if new == exprs else r.FlatMap(input, func, new)
        case r.Project(input, outputs):
            # Worth it only where a join can then drop the column.
            if not isinstance(input, r.Join | r.Filter):
                return node
            roots = tuple(known.root(c) for c in outputs)
            return node if roots == outputs else r.Project(input, roots)
        case r.TopK(_, group_key, order_by, _, _):
            group = tuple(dict.fromkeys(known.root(c) for c in group_key if c not in known.constants))
            order = tuple(o for o in order_by if o.column not in known.constants)
            if group == group_key and order == order_by:
                return node
            return msgspec.structs.replace(node, group_key=group, order_by=order)
        case r.Reduce(_, group_key, aggregates):
            keys = _all(group_key, known)
            aggs = tuple(
                msgspec.structs.replace(
                    a, args=_all(a.args, known), filter=None if a.filter is None else use(a.filter, known)
                )
                for a in aggregates
            )
            if keys == group_key and aggs == aggregates:
                return node
            return msgspec.structs.replace(node, group_key=keys, aggregates=aggs)


def _filter(node: r.Filter, known: Facts, context: Context) -> r.Mir:
    """Each predicate sees what the input and the other predicates say."""
    columns = context.types.columns(node.input)
    said = []
    for p in node.predicates:
        own = Facts()
        learn(own, p, columns)
        said.append(own)
    telling = [i for i, own in enumerate(said) if own]
    if not known and not telling:
        return node
    out: list[Scalar] = []
    for i, p in enumerate(node.predicates):
        mine = Facts(dict(known.constants), dict(known.same))
        for j in telling:
            # Two predicates must not each be replaced by the other: a later one is believed only about constants.
            if j < i:
                learn(mine, out[j], columns)
            elif j > i and not any(c in said[i].constants for c in said[j].constants):
                for c, v in said[j].constants.items():
                    mine.fix(c, v)
        out.append(use(p, mine) if mine else p)
    return node if tuple(out) == node.predicates else r.Filter(node.input, tuple(out))


def _join(node: r.Join, facts: FactsOf, context: Context) -> r.Mir:
    known = Facts()
    base = 0
    for input in node.inputs:
        below = facts.of(input)
        known.constants.update({base + c: v for c, v in below.constants.items()})
        known.same.update({base + c: base + s for c, s in below.same.items()})
        base += context.types.arity(input)
    columns = [c for i in node.inputs for c in context.types.columns(i)]
    classes: list[tuple[Scalar, ...]] = []
    predicates: list[Scalar] = []
    changed = False
    for cls in node.equivalences:
        members = tuple(dict.fromkeys(use(m, known) for m in cls))
        literals = [m for m in members if isinstance(m, Literal) and m.error is None]
        if any(v.value is None for v in literals):
            return r.Constant((), context.types.typ(node))
        distinct = {v.value for v in literals}
        if len(distinct) > 1 and all(interchangeable(v.typ) for v in literals):
            return r.Constant((), context.types.typ(node))
        if len(distinct) == 1:
            made = _pinned(members, literals[0], columns)
            if made is not None:
                predicates += made
                changed = True
                continue
        if len(members) == 1 and len(cls) > 1 and not isinstance(members[0], Literal):
            # All the same within one input: what remains is that it is not NULL.
            classes.append(cls)
            continue
        changed = changed or members != cls
        classes.append(members)
    if not changed:
        return node
    join = r.Join(node.inputs, tuple(classes))
    return r.Filter(join, tuple(predicates)) if predicates else join


def _pinned(members: Sequence[Scalar], literal: Literal, columns: Sequence[object]) -> list[Scalar] | None:
    """`member = literal` for each other member."""
    out: list[Scalar] = []
    for m in members:
        if isinstance(m, Literal):
            continue
        typ = scalar_type(m, columns).scalar  # type: ignore[arg-type]
        made = equals(m, literal, typ) if typ.kind == literal.typ.kind else None
        if made is None:
            return None
        out.append(made)
    return out
