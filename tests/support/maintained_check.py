"""The engine on SQL: a random query as a maintained view, through random commits, against DuckDB after each of them.

Planned, optimized (with the indexes that `sql_check` pretends) and lowered as the adapter does, then run by dataflows
in this process; tables with an index are read through it. A failing seed is shrunk to the commits that matter and
printed as a script.
"""

from __future__ import annotations

import functools
import random
from collections import Counter
from typing import Any

import duckdb

from adapter.transform import optimize_dataflow
from compute.plan.description import DataflowDescription, IndexDesc, IndexExport, IndexImport, SourceImport
from compute.plan.lower import lower
from compute.render.context import RenderContext
from compute.render.dataflow import Dataflow
from mzlite.expr import relation as r
from mzlite.expr.typecheck import typ
from mzlite.repr.errors import SqlError
from mzlite.repr.types import INT4
from mzlite.repr.updates import Updates, updates_from_rows
from tests.oracle.harness import exported, read, run
from tests.support.random_sql import TABLES, RandomSql, Row, random_rows
from tests.support.sql_check import CATALOG, INDEXES
from tests.support.sql_planner import plan_sql

COMMITS = 5
IDS: Any = {name: f"u{i + 1}" for i, name in enumerate(TABLES)}
Commit = tuple[tuple[str, Row, int], ...]  # (table, row, +1 or -1)s


def random_commits(rng: random.Random, tables: dict[str, list[Row]]) -> list[Commit]:
    """The tables' first rows as one commit, then inserts, deletes and updates. Table s keeps its key unique."""
    commits: list[Commit] = [tuple((name, row, 1) for name, rows in tables.items() for row in rows)]
    now = {name: list(rows) for name, rows in tables.items()}
    for _ in range(COMMITS - 1):
        changes: list[tuple[str, Row, int]] = []
        for _ in range(rng.randint(1, 4)):
            name = rng.choice(list(TABLES))
            rows = now[name]
            kind = rng.choice(["insert", "delete", "update"])
            if kind != "insert" and rows:
                old = rows.pop(rng.randrange(len(rows)))
                changes.append((name, old, -1))
            if kind != "delete":
                new = tuple(None if rng.random() < 0.2 else rng.randint(0, 4) for _ in TABLES[name])
                if name == "s":
                    used = {row[0] for row in rows}
                    new = (next(i for i in range(100) if i not in used), *new[1:])
                rows.append(new)
                changes.append((name, new, 1))
        commits.append(tuple(changes))
    return commits


def maintained(text: str, commits: list[Commit]) -> list[Counter[tuple[Any, ...]]]:
    """The view's rows after each commit."""
    mir, _ = plan_sql(text, CATALOG)
    plan = optimize_dataflow(mir, INDEXES)
    used = r.global_ids(plan)
    tables: dict[str, Dataflow] = {}
    imports: Any = {}
    sources: Any = {}
    for name, id in IDS.items():
        arity_type = CATALOG.get_item(id).desc.typ
        if id in INDEXES:
            for info in INDEXES[id]:
                exports: Any = {info.id: IndexExport(IndexDesc(id, info.key), arity_type)}
                description = DataflowDescription("t", {id: SourceImport(name, arity_type)}, {}, (), exports, {}, 0)
                tables[info.id] = Dataflow(description, RenderContext())
                if id in used:
                    imports[info.id] = IndexImport(IndexDesc(id, info.key), arity_type)
        elif id in used:
            sources[id] = SourceImport(name, arity_type)
    t = typ(plan)
    exports = {"u99": IndexExport(IndexDesc("u98", ()), t)}  # type: ignore[arg-type]
    objects: Any = lower([("u98", plan)], imports)  # type: ignore[list-item]
    view = Dataflow(
        DataflowDescription("v", sources, imports, objects, exports, {}, 0),
        RenderContext(trace=lambda id, _: exported(tables[id], id).source),
    )
    out = []
    for at, commit in enumerate(commits):
        by_id: dict[str, Updates] = {}
        for name, id in IDS.items():
            rows = [(row, diff) for table, row, diff in commit if table == name]
            if rows:
                parts = [updates_from_rows([INT4] * len(TABLES[name]), [row], at, diff) for row, diff in rows]
                for part in parts:
                    by_id[id] = part if id not in by_id else _joined(by_id[id], part)
        for dataflow in (*tables.values(), view):
            for id, source in dataflow.inputs.items():
                if id in by_id or id in IDS.values():
                    push: Any = source
                    push.push(by_id.get(id), at + 1)
            run(dataflow)
        for dataflow in tables.values():
            for export in dataflow.exports.values():
                export.allow_compaction(at)
        source_of: Any = exported(view, "u99").source
        out.append(read(source_of.chains(), source_of.layout, t, at))
        if not imports and not sources:
            out = [out[0]] * len(commits)
            break
    return out


def _joined(a: Updates, b: Updates) -> Updates:
    from mzlite.repr.updates import concat_updates

    return concat_updates([a, b])


@functools.cache
def _duckdb() -> Any:
    return duckdb.connect(":memory:", config={"threads": 1})


def recomputed(text: str, commits: list[Commit]) -> list[Counter[tuple[Any, ...]]] | None:
    """DuckDB's rows after each commit; None where it cannot say."""
    db = _duckdb()
    tables: dict[str, Counter[Row]] = {name: Counter() for name in TABLES}
    for name, columns in TABLES.items():
        db.execute(f"CREATE OR REPLACE TABLE {name} ({', '.join(f'{c} INTEGER' for c in columns)})")
    out = []
    for commit in commits:
        for name, row, diff in commit:
            tables[name][row] += diff
        for name in {name for name, _, _ in commit}:
            db.execute(f"DELETE FROM {name}")
            rows = list(tables[name].elements())
            if rows:
                values = ", ".join("(" + ", ".join("NULL" if v is None else str(v) for v in row) + ")" for row in rows)
                db.execute(f"INSERT INTO {name} VALUES {values}")
        try:
            found = db.execute(text).fetchall()
        except duckdb.Error:
            return None
        out.append(Counter(tuple(None if v is None else int(v) for v in row) for row in found))
    return out


def wrong(text: str, commits: list[Commit]) -> str | None:
    """How the view differs from DuckDB, or None."""
    expected = recomputed(text, commits)
    if expected is None:
        return None
    try:
        got = maintained(text, commits)
    except SqlError as error:
        return None if error.sqlstate == "0A000" else f"fails: {error.message}"
    for at, (a, b) in enumerate(zip(got, expected)):
        a = Counter({tuple(None if v is None else int(v) for v in row): n for row, n in a.items()})
        if a != b:
            return f"after commit {at}: too much {dict(a - b)}, missing {dict(b - a)}"
    return None


def shrunk(text: str, commits: list[Commit]) -> list[Commit]:
    """Fewer changes that still show the difference."""
    smaller = True
    while smaller:
        smaller = False
        for i, commit in enumerate(commits):
            for j in range(len(commit)):
                candidate = [*commits]
                candidate[i] = commit[:j] + commit[j + 1 :]
                if _possible(candidate) and wrong(text, candidate) is not None:
                    commits, smaller = candidate, True
                    break
            if smaller:
                break
    return commits


def _possible(commits: list[Commit]) -> bool:
    present: Counter[tuple[str, Row]] = Counter()
    for commit in commits:
        for name, row, diff in commit:
            present[name, row] += diff
        if any(n < 0 for n in present.values()):
            return False
    return True


def check_seed(seed: int) -> None:
    rng = random.Random(seed)
    tables = random_rows(rng)
    text = RandomSql(rng).statement()
    commits = random_commits(rng, tables)
    if wrong(text, commits) is None:
        return
    commits = shrunk(text, commits)
    script = "\n".join(
        f"commit {at}: " + ", ".join(f"{'+' if diff > 0 else '-'} {name}{row}" for name, row, diff in commit)
        for at, commit in enumerate(commits)
    )
    raise AssertionError(f"{text}\n{script}\n{wrong(text, commits)}")
