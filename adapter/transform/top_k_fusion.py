"""TopK fusion: a limit of a limit is one limit.

    TopK limit=5 offset=1                TopK limit=5 offset=3        (of rows 2..12: those from 3, at most 5)
      TopK limit=10 offset=2      ->

Both must group and order alike; limits must be literals.
"""

from __future__ import annotations

import msgspec

from adapter.transform.context import Context
from mzlite.expr import relation as r
from mzlite.expr.scalar import Literal, Scalar
from mzlite.repr.datum import decode_datum, encode_datum
from mzlite.repr.types import INT8


def top_k_fusion(e: r.Mir, context: Context) -> r.Mir:
    return r.rewrite(e, _fuse)


def _fuse(node: r.Mir) -> r.Mir:
    match node:
        case r.TopK(r.TopK() as inner, group_key, order_by, limit, offset):
            if inner.group_key != group_key or inner.order_by != order_by:
                return node
            first, second = _limit(inner.limit), _limit(limit)
            if first == "unknown" or second == "unknown":
                return node
            assert not isinstance(first, str) and not isinstance(second, str)
            left = None if first is None else max(0, first - offset)
            together = left if second is None else second if left is None else min(left, second)
            return msgspec.structs.replace(
                inner,
                limit=None if together is None else Literal(encode_datum(INT8, together), INT8),
                offset=inner.offset + offset,
            )
        case _:
            return node


def _limit(e: Scalar | None) -> int | str | None:
    if e is None:
        return None
    if not isinstance(e, Literal) or e.error is not None:
        return "unknown"
    return None if e.value is None else int(decode_datum(e.typ, e.value))
