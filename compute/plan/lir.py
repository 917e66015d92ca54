"""LIR: how a dataflow runs. Every arrangement, join plan and reduce plan is explicit.

Each node has an `lir_id` unique in its dataflow (introspection maps operators to it). Data between nodes is a
*collection* (a stream of Updates); arrangements appear only where a plan names one: `ArrangeBy` outputs, imported
indexes, and the state inside Reduce/TopK/Threshold.
"""

from __future__ import annotations

import msgspec

from mzlite.expr.mfp import MapFilterProject
from mzlite.expr.relation import Datums
from mzlite.expr.scalar import Aggregate, ColumnOrder, Scalar, TableFunc, WindowCall
from mzlite.repr.ids import GlobalId, LirId, LocalId
from mzlite.repr.types import RelationType


class LirConstant(msgspec.Struct, frozen=True, tag="constant"):
    lir_id: LirId
    rows: tuple[tuple[Datums, int], ...]
    typ: RelationType
    error: bytes | None = None


class LirGet(msgspec.Struct, frozen=True, tag="get"):
    """A collection or binding, through mfp. key: read the arrangement by this key (None = any/raw collection).

    lookup: rows of key values to seek in that arrangement (None = all).
    """

    lir_id: LirId
    id: GlobalId | LocalId
    mfp: MapFilterProject
    key: tuple[Scalar, ...] | None = None
    lookup: tuple[Datums, ...] | None = None


class LirLet(msgspec.Struct, frozen=True, tag="let"):
    lir_id: LirId
    id: LocalId
    value: Lir
    body: Lir


class LirLetRec(msgspec.Struct, frozen=True, tag="letrec"):
    lir_id: LirId
    ids: tuple[LocalId, ...]
    values: tuple[Lir, ...]
    typs: tuple[RelationType, ...]
    body: Lir
    limit: int | None = None
    return_at_limit: bool = False


class LirMfp(msgspec.Struct, frozen=True, tag="mfp"):
    lir_id: LirId
    input: Lir
    mfp: MapFilterProject


class LirFlatMap(msgspec.Struct, frozen=True, tag="flatmap"):
    """mfp: applied to (input columns, function columns)."""

    lir_id: LirId
    input: Lir
    func: TableFunc
    exprs: tuple[Scalar, ...]
    mfp: MapFilterProject


class JoinStage(msgspec.Struct, frozen=True):
    """Look one input up. stream_key: over the columns accumulated so far; lookup_key: over that input's columns (equal length;
    both empty for a cross product). closure: applied to (accumulated columns, that input's columns)."""

    input: int
    stream_key: tuple[Scalar, ...]
    lookup_key: tuple[Scalar, ...]
    closure: MapFilterProject


class LinearJoin(msgspec.Struct, frozen=True, tag="linear"):
    """Stages from `source`; the stream before each stage is arranged by its stream_key (state)."""

    source: int
    source_mfp: MapFilterProject
    stages: tuple[JoinStage, ...]


class DeltaJoin(msgspec.Struct, frozen=True, tag="delta"):
    """paths[i] starts from changes of input i; no state beyond the inputs' arrangements."""

    paths: tuple[tuple[JoinStage, ...], ...]
    source_mfps: tuple[MapFilterProject, ...]
    final: tuple[MapFilterProject, ...]


class LirJoin(msgspec.Struct, frozen=True, tag="join"):
    lir_id: LirId
    inputs: tuple[Lir, ...]
    plan: LinearJoin | DeltaJoin


class LirReduce(msgspec.Struct, frozen=True, tag="reduce"):
    """kind: distinct | accumulable | hierarchical | basic | mixed (classes side by side, joined on the key).

    Columns: keys then aggregates; mfp applied after. monotonic: input only grows and is read at one time (no state for retractions).
    """

    lir_id: LirId
    input: Lir
    key: tuple[Scalar, ...]
    aggregates: tuple[Aggregate, ...]
    kind: str
    mfp: MapFilterProject
    monotonic: bool = False


class LirTopK(msgspec.Struct, frozen=True, tag="topk"):
    lir_id: LirId
    input: Lir
    group_key: tuple[int, ...]
    order_by: tuple[ColumnOrder, ...]
    limit: Scalar | None
    offset: int
    monotonic: bool = False


class LirWindow(msgspec.Struct, frozen=True, tag="window"):
    lir_id: LirId
    input: Lir
    partition_by: tuple[int, ...]
    order_by: tuple[ColumnOrder, ...]
    calls: tuple[WindowCall, ...]
    input_typ: RelationType


class LirNegate(msgspec.Struct, frozen=True, tag="negate"):
    lir_id: LirId
    input: Lir


class LirThreshold(msgspec.Struct, frozen=True, tag="threshold"):
    lir_id: LirId
    input: Lir


class LirUnion(msgspec.Struct, frozen=True, tag="union"):
    lir_id: LirId
    inputs: tuple[Lir, ...]
    consolidate: bool = False


class LirArrangeBy(msgspec.Struct, frozen=True, tag="arrange_by"):
    """The input, and its arrangements by each key (over whole rows of the input)."""

    lir_id: LirId
    input: Lir
    keys: tuple[tuple[Scalar, ...], ...]


Lir = (
    LirConstant
    | LirGet
    | LirLet
    | LirLetRec
    | LirMfp
    | LirFlatMap
    | LirJoin
    | LirReduce
    | LirTopK
    | LirWindow
    | LirNegate
    | LirThreshold
    | LirUnion
    | LirArrangeBy
)
