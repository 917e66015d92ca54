"""`--auto-index-selects`: every SELECT once more, through a view with an index, for the same rows.

    SELECT a FROM t ORDER BY b DESC LIMIT 3

becomes

    CREATE VIEW v AS SELECT a, b AS a2 FROM t ORDER BY b DESC LIMIT 3
    CREATE DEFAULT INDEX ON v
    SELECT "a" FROM v ORDER BY a2 DESC
    DROP VIEW v

so what a one-shot read answers is set against what an incrementally maintained view answers, on every file, for nothing.
A view forgets the order of its query, so ORDER BY is applied again outside: an expression that is projected by its
ordinal, another through a hidden column. The view first takes the query's own column names; where that fails (a name
twice, no name at all) it is made again with columns a1, a2, ...

Some queries cannot be views and say so; those errors are no failure and the record is not counted among the views.
"""

from __future__ import annotations

import contextlib
import dataclasses
import re

from sqllogictest import sqlscan
from sqllogictest.compare import Mismatch, check_error, check_rows
from sqllogictest.records import ExpectedError, Hashed, Query, Sort
from sqllogictest.session import Result, ServerError, Session

VIEW = "sqllogictest_view"

_NOT_A_VIEW = re.compile(
    r"cannot materialize call to"
    r"|calls to mz_now are only supported"
    r"|SHOW commands are not allowed in views"
    r"|cannot create view with unstable dependencies"
    r"|cannot use wildcard expansions or NATURAL JOINs in a view that depends on system objects"
    r"|no valid schema selected"
    r"|system schema .* cannot be modified"
    r"|permission denied for (?:SCHEMA|CLUSTER)"
    r'|column "[^"]*" specified more than once'
    r'|column "[^"]*" does not exist'
)


class NotAView(Exception):
    """This SELECT is not checked through a view."""


@dataclasses.dataclass(frozen=True, slots=True)
class ViewPlan:
    """The statements of one try. named: the view has the query's own column names."""

    create: str
    select: str
    named: bool


def is_candidate(record: object) -> bool:
    """Whether `record` is checked through a view at all."""
    return isinstance(record, Query | ExpectedError) and sqlscan.is_select(record.sql)


def plans(sql: str, names: list[str] | None) -> list[ViewPlan]:
    """The tries for `sql`, in order. names: the columns of its result, None where it had none. Raises `NotAView`."""
    parts = sqlscan.take_apart(sql)
    if parts.as_of:
        raise NotAView("AS OF")
    if names is None:
        return [ViewPlan(f"CREATE VIEW {VIEW} AS {parts.text}", f"SELECT * FROM {VIEW}", True)]
    if not names:
        raise NotAView("no columns")
    count = len(names)
    hidden: list[str] = []
    order: list[str] = []
    for item in parts.order:
        ordinal = _ordinal(item.expr, parts, names)
        if ordinal is None:
            if parts.items is None:
                raise NotAView(f"ORDER BY {item.expr} is not projected")
            hidden.append(item.expr)
            key = f"a{count + len(hidden)}"
        else:
            key = str(ordinal)
        order.append(f"{key} {item.modifiers}".strip())
    body = parts.text
    if hidden:
        extra = "".join(f", {expr} AS a{count + i}" for i, expr in enumerate(hidden, 1))
        body = body[: parts.list_end] + extra + body[parts.list_end :]
    tail = f" FROM {VIEW}" + (f" ORDER BY {', '.join(order)}" if order else "")
    own = ", ".join('"' + name.replace('"', '""') + '"' for name in names)
    renamed = [f"a{i}" for i in range(1, count + len(hidden) + 1)]
    return [
        ViewPlan(f"CREATE VIEW {VIEW} AS {body}", f"SELECT {own if hidden else '*'}{tail}", True),
        ViewPlan(
            f"CREATE VIEW {VIEW} ({', '.join(renamed)}) AS {body}", f"SELECT {', '.join(renamed[:count])}{tail}", False
        ),
    ]


def _ordinal(expr: str, parts: sqlscan.SelectParts, names: list[str]) -> int | None:
    """The output column (from 1) that ORDER BY `expr` means, or None where it is not projected."""
    if expr.isdigit():
        return int(expr)
    found = sqlscan.tokens(expr)
    if len(found) == 1 and found[0].kind in ("word", "quoted"):
        token = found[0]
        name = token.text[1:-1].replace('""', '"') if token.kind == "quoted" else token.text.lower()
        if name in names:
            return names.index(name) + 1
    wanted = sqlscan.normal(expr)
    for i, item in enumerate(parts.items or ()):
        if item.endswith("*"):
            return None  # positions behind a star are not known
        if sqlscan.normal(item) == wanted:
            return i + 1
    return None


def check(
    session: Session,
    record: Query | ExpectedError,
    base: Result | ServerError,
    mismatch: Mismatch | None,
    *,
    indexed: bool,
) -> Mismatch | None:
    """Whether `record` through a view agrees with what it gave directly. Raises `NotAView`, `ConnectionLost`.

    base: what the SELECT answered; mismatch: what was wrong with that. indexed: the server knows CREATE DEFAULT INDEX.
    """
    names = base.names if isinstance(base, Result) else None
    tries = plans(record.sql, names)
    for i, plan in enumerate(tries):
        try:
            answer = _through_view(session, plan, indexed)
        except _CreateFailed as e:
            if i + 1 < len(tries):
                continue
            if _NOT_A_VIEW.search(e.error.message) is not None:
                raise NotAView(e.error.message) from None
            answer = e.error
        return _agree(record, base, mismatch, answer, plan)
    raise AssertionError("plans() gives at least one try")


class _CreateFailed(Exception):
    def __init__(self, error: ServerError) -> None:
        super().__init__(str(error))
        self.error = error


def _through_view(session: Session, plan: ViewPlan, indexed: bool) -> Result | ServerError:
    try:
        session.extended(plan.create)
    except ServerError as e:
        raise _CreateFailed(e) from None
    try:
        if indexed:
            try:
                session.extended(f"CREATE DEFAULT INDEX ON {VIEW}")
            except ServerError as e:
                raise _CreateFailed(e) from None
        return session.extended(plan.select)
    except ServerError as e:
        return e
    finally:
        with contextlib.suppress(ServerError):  # the next CREATE VIEW would say so
            session.extended(f"DROP VIEW {VIEW}")


def _agree(
    record: Query | ExpectedError,
    base: Result | ServerError,
    mismatch: Mismatch | None,
    answer: Result | ServerError,
    plan: ViewPlan,
) -> Mismatch | None:
    if isinstance(answer, ServerError):
        if isinstance(base, ServerError):
            if mismatch is None and isinstance(record, ExpectedError):
                return _view_failed(check_error(record, answer))
            return None
        return _view_failed(Mismatch("an error", [], answer.text.split("\n"), error=answer))
    if isinstance(base, ServerError):
        return Mismatch("through an indexed view: rows, where the SELECT answers an error", base.text.split("\n"))
    if isinstance(record, ExpectedError):
        return None  # both gave rows; the record has failed already
    wanted = record
    if mismatch is not None:
        # The rows must still agree with those of the SELECT as written.
        if mismatch.rows is None or isinstance(record.expected, Hashed):
            return None
        flat = [cell for row in mismatch.rows for cell in row]
        wanted = dataclasses.replace(record, expected=sorted(flat) if record.sort is Sort.VALUE else flat)
    return _view_failed(check_rows(wanted, answer, check_names=plan.named))


def _view_failed(mismatch: Mismatch | None) -> Mismatch | None:
    if mismatch is not None:
        mismatch.reason = f"through an indexed view: {mismatch.reason}"
    return mismatch
