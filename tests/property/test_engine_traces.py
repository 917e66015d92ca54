"""What readers of a trace may rely on: compaction, segments and imports change nothing that can be read.

any compaction to c         reads at t >= c are as before
a batch as a segment        written, mapped back, read as before
an import at as_of          a second dataflow over the index means the same at every t >= as_of
one time                    a one-shot dataflow answers as the maintained one
"""

from __future__ import annotations

import os
from random import Random

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compute.plan.description import DataflowDescription, IndexDesc, IndexExport, IndexImport
from compute.plan.lower import lower
from compute.render.context import RenderContext
from compute.render.dataflow import Dataflow
from compute.trace.batch import Batch
from mzlite.expr import relation as r
from mzlite.expr.scalar import Ref
from mzlite.expr.typecheck import typ
from tests.oracle.harness import describe, exported, push, read, run
from tests.oracle.mir_model import evaluate
from tests.oracle.plans import SOURCES, Plans, inputs_at, relation, script

EXAMPLES = int(os.environ.get("ENGINE_EXAMPLES", "60"))
TIMES = 8
law = settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))


@law
@given(st.integers(0, 2**32))
def test_compaction_keeps_what_can_be_read(seed: int) -> None:
    random = Random(seed)
    plan = Plans(random).plan(2)
    t = typ(plan)
    changes = script(random, TIMES, 24)
    dataflow = Dataflow(describe(plan), RenderContext())
    since = 0
    for upper in range(1, TIMES + 1):
        push(dataflow, [c for c in changes if c[2] == upper - 1], upper)
        run(dataflow)
        if random.random() < 0.5:
            since = random.randint(since, upper - 1)
            exported(dataflow).allow_compaction(since)
        if random.random() < 0.5:
            while dataflow.maintain(1.0):
                pass
        arrangement = exported(dataflow).arrangement
        assert arrangement is not None
        arrangement.check()
        assert arrangement.since <= since
        for at in range(since, upper):
            expected = evaluate(plan, inputs_at(changes, at))
            assert read(arrangement.chains(), arrangement.layout, t, at) == expected


@law
@given(st.integers(0, 2**32))
def test_segments_read_as_written(seed: int) -> None:
    random = Random(seed)
    plan = Plans(random).plan(3)
    t = typ(plan)
    changes = script(random, TIMES, 24)
    dataflow = Dataflow(describe(plan), RenderContext())
    for upper in (2, 5, TIMES):
        push(dataflow, [c for c in changes if c[2] < upper and c[2] >= upper - 3], upper)
        run(dataflow)
    source = exported(dataflow).source
    oks, errs = source.chains()
    mapped = tuple(Batch.read_from(memoryview(b.encode())) for b in oks)
    for before, after in zip(oks, mapped):
        after.check()
        assert (after.time_min, after.time_max, after.description) == (
            before.time_min,
            before.time_max,
            before.description,
        )
    for at in range(TIMES):
        assert read((mapped, errs), source.layout, t, at) == read((oks, errs), source.layout, t, at)


@law
@given(st.integers(0, 2**32))
def test_an_import_means_what_it_imports(seed: int) -> None:
    random = Random(seed)
    changes = script(random, TIMES, 24)
    index_of = {}
    maintained = {}
    for n, (id, arity) in enumerate(SOURCES.items()):
        dataflow = Dataflow(describe(r.Get(id, relation(arity))), RenderContext())  # type: ignore[arg-type]
        maintained[id] = dataflow
        index_of[id] = f"u{100 + n}"
    plan = Plans(random).plan(random.randint(1, 3))
    t = typ(plan)
    as_of = random.randint(0, TIMES - 2)
    reader: Dataflow | None = None
    for upper in range(1, TIMES + 1):
        due = [c for c in changes if c[2] == upper - 1]
        for dataflow in maintained.values():
            push(dataflow, due, upper)
            run(dataflow)
        if upper == as_of + 1:
            for dataflow in maintained.values():
                exported(dataflow).allow_compaction(as_of)
            imports = {
                index_of[id]: IndexImport(IndexDesc(id, (Ref(0),)), relation(arity))  # type: ignore[arg-type]
                for id, arity in SOURCES.items()
            }
            by_index = {index_of[id]: exported(maintained[id]).source for id in SOURCES}
            description = DataflowDescription(
                "reader",
                {},
                imports,  # type: ignore[arg-type]
                lower([("u9", plan)], imports),  # type: ignore[list-item,arg-type]
                {"u10": IndexExport(IndexDesc("u9", ()), t)},  # type: ignore[dict-item,arg-type]
                {},
                as_of,
            )
            reader = Dataflow(description, RenderContext(trace=lambda id, _, by=by_index: by[id]))  # type: ignore[misc]
        if reader is not None and random.random() < 0.6:
            run(reader)
        for dataflow in maintained.values():
            if upper > as_of + 1:
                exported(dataflow).allow_compaction(upper - 1)
            while dataflow.maintain(1.0):
                pass
    assert reader is not None
    run(reader)
    source = exported(reader).source
    for at in range(as_of, TIMES):
        assert read(source.chains(), source.layout, t, at) == evaluate(plan, inputs_at(changes, at)), at
    reader.drop()
    for dataflow in maintained.values():
        assert exported(dataflow).source.since == TIMES - 1, "a dropped reader still holds its import"


@law
@given(st.integers(0, 2**32))
def test_one_time_is_a_time(seed: int) -> None:
    random = Random(seed)
    plan = Plans(random).plan(4)
    t = typ(plan)
    changes = script(random, TIMES, 24)
    at = random.randrange(TIMES)
    dataflow = Dataflow(describe(plan, as_of=at, until=at + 1), RenderContext())
    push(dataflow, [c for c in changes if c[2] <= at], at + 1)
    run(dataflow)
    assert dataflow.frontier is None
    source = exported(dataflow).source
    assert read(source.chains(), source.layout, t, at) == evaluate(plan, inputs_at(changes, at))
