"""HIR to MIR: decorrelation. Reading order: frame (what a lowered relation is), relations, scalars, subqueries, joins, split.

The one idea: a correlated relation is computed for all outer rows at once. Its lowered form starts with the *domain*, the distinct
combinations of the outer columns it reads, and the outer relation is joined back to it. A relation that reads nothing from outside
is lowered as it stands, and correlation that is only a conjunction of equalities (`split`) needs no domain.
"""

from adapter.sql.lower.relations import lower_relation

__all__ = ["lower_relation"]
