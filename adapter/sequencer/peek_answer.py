"""What comes back from a peek, and what goes into one: responses as rows or errors, literals replaced in an MFP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from adapter.sequencer.finishing import result_too_large
from adapter.sequencer.scalars import substitute_scalar
from compute.client.errors import ComputeError
from compute.protocol.response import PeekCanceled, PeekError, PeekResponse, PeekRows
from mzlite.expr.mfp import MapFilterProject
from mzlite.expr.scalar import Literal, Scalar, rewrite
from mzlite.repr.encode import decode_updates
from mzlite.repr.errors import SqlError, decode_error
from mzlite.repr.updates import Updates

if TYPE_CHECKING:
    pass


def replace_literals(mfp: MapFilterProject, values: dict[bytes, bytes]) -> MapFilterProject:
    """mfp with the bytes of literals exchanged."""

    def visit(e: Scalar) -> Scalar:
        if isinstance(e, Literal) and e.value is not None and e.value in values:
            return Literal(values[e.value], e.typ)
        return e

    return msgspec.structs.replace(
        mfp,
        expressions=tuple(rewrite(e, visit) for e in mfp.expressions),
        predicates=tuple((n, rewrite(e, visit)) for n, e in mfp.predicates),
    )


def replace_mfp(mfp: MapFilterProject, value: Any) -> MapFilterProject:
    return msgspec.structs.replace(
        mfp,
        expressions=tuple(substitute_scalar(e, value) for e in mfp.expressions),
        predicates=tuple((n, substitute_scalar(e, value)) for n, e in mfp.predicates),
    )


def peek_rows(response: PeekResponse, limit: int) -> Updates:
    match response:
        case PeekRows(_, rows):
            u = decode_updates(rows)
            if len(rows) > limit and len(u) > 1:
                raise result_too_large(limit)
            return u
        case PeekError(_, error):
            raise evaluation_error(decode_error(error))
        case PeekCanceled():
            raise SqlError("57014", "canceling statement due to user request")


def evaluation_error(error: SqlError) -> SqlError:
    """An error that rows of a collection made, as a read of it tells."""
    made_by_rows = error.sqlstate[:2] in ("21", "22", "23", "2F") or error.message.startswith("Recursive query")
    if made_by_rows and not error.message.startswith("Evaluation error"):
        message = f"Evaluation error: {error.message}"
        return SqlError(error.sqlstate, message, detail=error.detail, hint=error.hint)
    return error


def compute_error(error: ComputeError) -> SqlError:
    return SqlError("XX000", str(error))
