"""The ordered list of rules, and its runner.

    optimize_local(mir)               no index knowledge: what views keep (LOGICAL)
    optimize_dataflow(mir, indexes)   for one dataflow on one cluster: LOGICAL again, then PHYSICAL

With `CHECKS` on (tests; MZLITE_CHECKS=1) every rule's result is type-checked, and the rule that broke a plan is named.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from adapter.transform.canonicalize_mfp import canonicalize_mfp
from adapter.transform.context import Context, IndexInfo
from adapter.transform.distinct_fusion import distinct_fusion
from adapter.transform.elision import elision
from adapter.transform.equivalence_propagation import equivalence_propagation
from adapter.transform.flat_map_elimination import flat_map_elimination
from adapter.transform.fold_constants import fold_constants
from adapter.transform.fusion import fusion
from adapter.transform.join_implementation import join_implementation
from adapter.transform.key_semijoin import key_semijoin
from adapter.transform.literal_constraints import literal_constraints
from adapter.transform.literal_lifting import literal_lifting
from adapter.transform.monotonicity import monotonicity
from adapter.transform.non_null_requirements import non_null_requirements
from adapter.transform.normalize_lets import normalize_lets
from adapter.transform.predicate_pushdown import predicate_pushdown
from adapter.transform.projection_pushdown import projection_pushdown
from adapter.transform.reduce_elision import reduce_elision
from adapter.transform.redundant_join import redundant_join
from adapter.transform.semijoin_idempotence import semijoin_idempotence
from adapter.transform.simplify_scalars import simplify_scalars
from adapter.transform.threshold_elision import threshold_elision
from adapter.transform.top_k_fusion import top_k_fusion
from adapter.transform.union_cancellation import union_cancellation
from adapter.transform.window_top_k import window_top_k
from mzlite.expr import relation as r
from mzlite.expr.typecheck import PlanError, check
from mzlite.repr.errors import SqlError
from mzlite.repr.ids import GlobalId

CHECKS = os.environ.get("MZLITE_CHECKS", "") == "1"
MAX_ROUNDS = 10
MAX_DEPTH = 1000

Rule = Callable[[r.Mir, Context], r.Mir]


@dataclass(frozen=True, slots=True)
class Step:
    """One rule and why it stands where it stands. only: node kinds of which the plan must hold one (empty: always)."""

    rule: Rule
    reason: str
    only: tuple[type, ...] = ()


LOGICAL: tuple[Step, ...] = (
    Step(
        normalize_lets,
        "equal expressions become one before anything is decided about them",
        (r.Let, r.LetRec, r.Join, r.Union),
    ),
    Step(fold_constants, "literals and empty inputs shrink everything above them"),
    Step(simplify_scalars, "fewer forms for the rules below to know"),
    Step(key_semijoin, "while both sides of an outer join still look the same", (r.Join,)),
    Step(flat_map_elimination, "table functions of literals are constants", (r.FlatMap,)),
    Step(fusion, "one join per join tree, so that predicates find all inputs"),
    Step(literal_lifting, "joins carry no constants, so classes get literal members", (r.Join,)),
    Step(equivalence_propagation, "known and equal columns, before predicates move away from what knows them"),
    Step(predicate_pushdown, "filters and join keys to where they act"),
    Step(non_null_requirements, "outer joins become inner while predicates stand right above them", (r.Union,)),
    Step(fold_constants, "pushed predicates may meet constants"),
    Step(window_top_k, "filters stand right above windows now; before columns nobody reads go", (r.Window,)),
    Step(union_cancellation, "what outer joins and subqueries subtract may be all they add", (r.Union,)),
    Step(fusion, "what pushdown left behind"),
    Step(projection_pushdown, "columns nobody reads now that predicates have settled"),
    Step(reduce_elision, "groups of one row, once keys are known", (r.Reduce,)),
    Step(distinct_fusion, "a distinct below another", (r.Reduce,)),
    Step(semijoin_idempotence, "restrictions to what a join will look up anyway", (r.Join,)),
    Step(redundant_join, "joins that neither add columns nor drop rows", (r.Join,)),
    Step(threshold_elision, "differences that cannot dip", (r.Threshold,)),
    Step(top_k_fusion, "limits of limits", (r.TopK,)),
    Step(elision, "nodes that keep everything", (r.TopK, r.ArrangeBy)),
    Step(fusion, "projections that pushdown and elision inserted"),
)

PHYSICAL: tuple[Step, ...] = (
    Step(literal_constraints, "point lookups before joins are planned: they are the best inputs"),
    Step(normalize_lets, "last sharing before joins commit to arrangements", (r.Let, r.LetRec, r.Join, r.Union)),
    Step(join_implementation, "orders and arrangements", (r.Join,)),
    Step(fusion, "leftover projections"),
    Step(monotonicity, "what physical plans may take for granted", (r.Reduce, r.TopK)),
    Step(canonicalize_mfp, "last: the one shape that lowering and EXPLAIN see"),
)


ROW_WISE: tuple[Step, ...] = (
    Step(fusion, "one filter"),
    Step(predicate_pushdown, "filters to the collection, where literal constraints look for them"),
    Step(fold_constants, "literals"),
    Step(simplify_scalars, "as in LOGICAL"),
    Step(equivalence_propagation, "columns that filters fix"),
    Step(fold_constants, "what became constant"),
    Step(literal_constraints, "point lookups"),
    Step(canonicalize_mfp, "as in PHYSICAL"),
)
"""For a chain of row-wise nodes over one collection, where nothing else applies: most reads, and those in a hurry."""

_ROW_WISE_NODES = (r.Project, r.Map, r.Filter)


def run(e: r.Mir, steps: tuple[Step, ...], context: Context) -> r.Mir:
    kinds = {type(node) for node in r.walk(e)}
    for step in steps:
        if step.only and kinds.isdisjoint(step.only):
            continue
        before = e
        e = step.rule(e, context)
        if e is not before:
            kinds = {type(node) for node in r.walk(e)}
            if CHECKS:
                _check(before, e, step)
    return e


def _check(before: r.Mir, after: r.Mir, step: Step) -> None:
    try:
        old, new = check(before), check(after)
    except PlanError as error:
        raise PlanError(f"{step.rule.__name__} broke the plan: {error}") from None
    if [c.scalar.base() for c in old.columns] != [c.scalar.base() for c in new.columns]:
        raise PlanError(f"{step.rule.__name__} changed the columns from {old.columns} to {new.columns}")


def fixpoint(e: r.Mir, steps: tuple[Step, ...], context: Context) -> r.Mir:
    """Repeat until nothing changes, at most MAX_ROUNDS times."""
    for _ in range(MAX_ROUNDS):
        new = run(e, steps, context)
        if new == e:
            return new
        e = new
    return e


def _bounded(e: r.Mir) -> None:
    """Rules recurse: a plan beyond the bound is the user's mistake, not a crash. errors: SqlError 54001."""
    level, depth = [e], 0
    while level:
        depth += 1
        if depth > MAX_DEPTH:
            raise SqlError("54001", "query is nested too deeply to be planned")
        level = [k for node in level for k in r.children(node)]


def optimize_local(e: r.Mir) -> r.Mir:
    _bounded(e)
    return fixpoint(e, LOGICAL, Context())


def optimize_dataflow(
    e: r.Mir,
    indexes: Mapping[GlobalId, tuple[IndexInfo, ...]],
    *,
    single_time: bool = False,
    append_only: frozenset[GlobalId] = frozenset(),
) -> r.Mir:
    """single_time: for a read at one time, not a maintained object. append_only: collections that never take a row back."""
    below = e
    while isinstance(below, _ROW_WISE_NODES):
        below = below.input
    if isinstance(below, r.Get):
        return run(e, ROW_WISE, Context(indexes, single_time=single_time))
    _bounded(e)
    e = fixpoint(e, LOGICAL, Context())
    return run(e, PHYSICAL, Context(indexes, single_time=single_time, append_only=append_only))


def optimize_read(e: r.Mir, indexes: Mapping[GlobalId, tuple[IndexInfo, ...]]) -> r.Mir:
    """For a read at one time."""
    return optimize_dataflow(e, indexes, single_time=True)
