"""Text to syntax trees. Reading order: lexer (sqlglot's tokens, joined into PostgreSQL's), cursor, types, expressions, queries, statements.

"SELECT 1 + a FROM t"  ->  tokens  ->  SelectStatement(query=Query(body=Select(items=…)))
"""

from adapter.sql.parse.statements import parse_statements
from adapter.sql.statements import Statement

__all__ = ["Statement", "parse_statements"]
