"""The row description of a plan: what Describe answers before anything runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapter.sql import plans as p
from mzlite.repr import types as t
from mzlite.repr.errors import SqlError
from mzlite.repr.types import ColumnType, RelationDesc, RelationType

if TYPE_CHECKING:
    from adapter.coord.session import Session


def text_desc(*names: str) -> RelationDesc:
    return RelationDesc(tuple(names), RelationType(tuple(ColumnType(t.TEXT, True) for _ in names)))


def explain_column(plan: p.ExplainPlan) -> str:
    return {
        "raw": "Raw Plan",
        "decorrelated": "Decorrelated Plan",
        "locally_optimized": "Locally Optimized Plan",
        "optimized": "Optimized Plan",
        "physical": "Physical Plan",
        "insights": "Plan Insights",
        "filter_pushdown": "Source",
    }.get(plan.stage, "Optimized Plan")


def plan_desc(plan: p.Plan, session: Session) -> RelationDesc | None:
    """None: the statement returns no rows (COPY and the like included)."""
    match plan:
        case p.SelectPlan(copy_to=None, desc=desc):
            return desc
        case p.SubscribePlan(copy_to=None, output_desc=desc):
            return desc
        case p.InsertPlan(returning=returning) if returning is not None:
            return returning.desc
        case p.ExplainPlan():
            return text_desc(explain_column(plan))
        case p.ExplainTimestampPlan():
            return text_desc("Timestamp")
        case p.ShowVariablePlan(name):
            return text_desc(name)
        case p.ShowAllVariablesPlan():
            return text_desc("name", "setting", "description")
        case p.ExecutePlan(name, _):
            found = session.statements.get(name)
            if found is None:
                raise SqlError("26000", f'prepared statement "{name}" does not exist')
            return found.desc
        case p.FetchPlan(name, _):
            cursor = session.cursors.get(name)
            if cursor is None:
                raise SqlError("34000", f'cursor "{name}" does not exist')
            return cursor.desc
        case _:
            return None
