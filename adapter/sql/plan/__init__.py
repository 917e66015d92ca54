"""Planning: a statement, a catalog and a session give a plan.

Reading order: statement (dispatch), query and select (relations with scopes), relations (FROM), expr and its families, overload and
coerce (types), dml, ddl, show.
"""

from adapter.sql.plan.statement import Planned, plan_statement

__all__ = ["Planned", "plan_statement"]
