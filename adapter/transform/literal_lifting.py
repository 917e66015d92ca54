"""Literal lifting: a join's inputs do not carry constants.

    Join (#0 = #2)                    Map (7)
      Get u1                 ->         Filter (#0 = 1)
      Constant (1, 7)                     Get u1

An input that is one constant row goes; literals mapped on top of an input move above the join. What the join compares
with them becomes a literal member of its class, which equivalence propagation turns into filters.
"""

from __future__ import annotations

from adapter.transform.context import Context
from mzlite.expr import relation as r
from mzlite.expr.scalar import Literal, Ref, Scalar, substitute


def literal_lifting(e: r.Mir, context: Context) -> r.Mir:
    return r.rewrite(e, lambda n: _lift(n, context) if isinstance(n, r.Join) and n.implementation is None else n)


def _lift(join: r.Join, context: Context) -> r.Mir:
    inputs: list[r.Mir] = []
    columns: list[Scalar] = []  # each old column over the new join's columns, or a literal
    base = 0
    lifted = False
    for input in join.inputs:
        below, own = _split(input)
        if below is not input:
            lifted = True
        n = context.types.arity(below)
        columns += [s if isinstance(s, Literal) else Ref(base + s.column) for s in own(n)]
        inputs.append(below)
        base += n
    if not lifted:
        return join
    moved = tuple(columns)
    classes = tuple(tuple(dict.fromkeys(substitute(m, moved) for m in cls)) for cls in join.equivalences)
    out: r.Mir = r.Join(tuple(inputs), classes)
    literals = [c for c in columns if isinstance(c, Literal)]
    at = iter(range(base, base + len(literals)))
    outputs = tuple(next(at) if isinstance(c, Literal) else c.column for c in columns if isinstance(c, Literal | Ref))
    if literals:
        out = r.Map(out, tuple(literals))
    return out if outputs == tuple(range(base + len(literals))) else r.Project(out, outputs)


class _Own:
    """The columns of an input, over what is left of it."""

    def __init__(self, extra: tuple[Literal, ...], everything: bool) -> None:
        self.extra = extra
        self.everything = everything

    def __call__(self, n: int) -> list[Ref | Literal]:
        return list(self.extra) if self.everything else [*(Ref(i) for i in range(n)), *self.extra]


def _split(e: r.Mir) -> tuple[r.Mir, _Own]:
    match e:
        case r.Constant(((row, 1),), typ, None) if typ.columns:
            literals = tuple(Literal(d, c.scalar) for d, c in zip(row, typ.columns))
            return r.Constant((((), 1),), typ.__class__(())), _Own(literals, True)
        case r.Map(input, scalars):
            kept = list(scalars)
            extra: list[Literal] = []
            while kept and isinstance(kept[-1], Literal) and kept[-1].error is None:
                last = kept.pop()
                assert isinstance(last, Literal)
                extra.insert(0, last)
            if extra:
                return (r.Map(input, tuple(kept)) if kept else input), _Own(tuple(extra), False)
            return e, _Own((), False)
        case _:
            return e, _Own((), False)
