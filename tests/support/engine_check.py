"""One random engine case from a seed: a plan, a history, rounds, workers; shrunk to a minimal script when it fails.

for every t:  accumulate(engine(script), t) == model(accumulate(script, t))
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from random import Random
from unittest.mock import patch

from mzlite.expr import relation as r
from mzlite.expr.text import print_mir
from mzlite.expr.typecheck import typ
from mzlite.repr.column import set_hash_mask
from mzlite.repr.errors import SqlError
from tests.oracle.harness import describe, push, read_export, run_all, workers
from tests.oracle.mir_model import evaluate
from tests.oracle.plans import SOURCES, Change, Plans, inputs_at, script

TIMES = 6

# Every size at which work is cut into slices, or batches are merged.
SIZES = {
    "compute.trace.merge.SLICE_ROWS": 3,
    "compute.trace.merge.MARK_ROWS": 1,
    "compute.trace.builder.SLICE_ROWS": 3,
    "compute.trace.builder._FEW_ROWS": 2,
    "compute.trace.spine.SLICE_ROWS": 3,
    "compute.trace.spine.SMALL_ROWS": 4,
    "compute.trace.spine.FUEL_STEP": 8,
    "compute.trace.peek.SLICE_ROWS": 2,
    "compute.operators.points.SLICE_GROUPS": 1,
    "compute.operators.reduce.FEW_ROWS": 1,
    "compute.operators.chunks._FEW_GROUPS": 1,
    "compute.operators.ordered.FIRST_WINDOW": 1,
    "compute.operators.ordered.WIDE_WINDOW": 2,
    "compute.operators.ordered.MAX_ROWS": 8,
    "compute.operators.front.MAX_ROWS": 8,
    "compute.operators.front.KEEP_ROWS": 1,
    "compute.operators.front.FIRST_READ": 1,
    "compute.operators.base.CHUNK_ROWS": 2,
    "compute.operators.matching.CHUNK_ROWS": 2,
    "compute.operators.join.CHUNK_ROWS": 2,
    "compute.operators.flatmap.CHUNK_ROWS": 2,
    "compute.operators.flatmap.ROWS_A_CALL": 2,
}


@contextmanager
def small_slices() -> Iterator[None]:
    """Sizes so small that a dozen rows take every path that a million take."""
    patches = [patch(name, size) for name, size in SIZES.items()]
    for p in patches:
        p.start()
    try:
        yield
    finally:
        for p in patches:
            p.stop()


@dataclasses.dataclass(frozen=True)
class Case:
    """bounds: uppers of the rounds before the last two (TIMES, then the end). mask: hash bits kept, None = all."""

    plan: r.Mir
    changes: tuple[Change, ...]
    bounds: tuple[int, ...]
    worker_count: int = 1
    mask: int | None = None
    small: bool = False

    def show(self) -> str:
        rounds = (*self.bounds, TIMES, None)
        lines = [f"workers {self.worker_count}, hash mask {self.mask}, small slices {self.small}, rounds {rounds}"]
        lines += [print_mir(self.plan), *(f"{c[0]} {c[1]} at {c[2]}: {c[3]:+}" for c in self.changes)]
        return "\n".join(lines)


def random_case(
    random: Random, depth: int, worker_count: int = 1, mask: int | None = None, small: bool = False
) -> Case:
    plan = Plans(random).plan(depth)
    changes = script(random, TIMES, random.randint(0, 24))
    bounds = sorted(random.sample(range(1, TIMES), random.randint(0, 3)))
    return Case(plan, tuple(changes), tuple(bounds), worker_count, mask, small)


def difference(case: Case) -> str | None:
    """What is wrong with the engine's answer, or None. Plans that the engine refuses are fine."""
    set_hash_mask(case.mask)
    try:
        with small_slices() if case.small else nullcontext():
            return _difference(case)
    except SqlError as error:
        return None if error.sqlstate == "0A000" else repr(error)
    except (AssertionError, IndexError, KeyError, TypeError, ValueError) as error:
        return f"{type(error).__name__}: {error}"
    finally:
        set_hash_mask(None)


def _difference(case: Case) -> str | None:
    plan, changes = case.plan, case.changes
    t = typ(plan)
    dataflows = workers(describe(plan), case.worker_count)
    lower = 0
    for upper in (*case.bounds, TIMES, None):
        due = [c for c in changes if lower <= c[2] and (upper is None or c[2] < upper)]
        for dataflow in dataflows:
            push(dataflow, due, upper)
        run_all(dataflows, upper)
        lower = lower if upper is None else upper
    for at in range(TIMES):
        expected = evaluate(plan, inputs_at(changes, at))
        got = read_export(dataflows, t, at)
        if got != expected:
            return f"at {at}: too much {dict(got - expected)}, missing {dict(expected - got)}"
    return None


def shrink(case: Case) -> Case:
    """A smaller case that still fails: fewer changes, a subplan, one round, one worker, plain hashes and slices."""
    smaller = True
    while smaller:
        smaller = False
        for candidate in _candidates(case):
            if difference(candidate) is not None:
                case, smaller = candidate, True
                break
    return case


def _candidates(case: Case) -> Iterator[Case]:
    for plan in r.children(case.plan):
        if not _open(plan):
            yield dataclasses.replace(case, plan=plan)
    for i in range(len(case.changes)):
        changes = case.changes[:i] + case.changes[i + 1 :]
        if _possible(changes):
            yield dataclasses.replace(case, changes=changes)
    for i in range(len(case.bounds)):
        yield dataclasses.replace(case, bounds=case.bounds[:i] + case.bounds[i + 1 :])
    if case.worker_count > 1:
        yield dataclasses.replace(case, worker_count=1)
    if case.mask is not None:
        yield dataclasses.replace(case, mask=None)
    if case.small:
        yield dataclasses.replace(case, small=False)


def _open(plan: r.Mir) -> bool:
    """Does it read a binding that it does not make?"""
    bound: set[object] = set()
    for node in r.walk(plan):
        if isinstance(node, r.Let):
            bound.add(node.id)
        elif isinstance(node, r.LetRec):
            bound |= set(node.ids)
    return any(isinstance(n, r.Get) and not isinstance(n.id, str) and n.id not in bound for n in r.walk(plan))


def _possible(changes: Sequence[Change]) -> bool:
    """No multiplicity below zero, ever."""
    contents = (inputs_at(changes, at)[id] for at in range(TIMES) for id in SOURCES)
    return all(n >= 0 for rows in contents for n in rows.values())


def check(case: Case) -> None:
    """Raise AssertionError with a minimal script if the engine is wrong."""
    if difference(case) is not None:
        case = shrink(case)
        raise AssertionError(f"{difference(case)}\n{case.show()}")


def check_seed(seed: int) -> None:
    random = Random(seed)
    depth = random.randint(1, 6)
    worker_count = random.choice([1, 1, 1, 2, 4])
    check(random_case(random, depth, worker_count, random.choice([None, None, 0, 1, 7]), random.random() < 0.3))
