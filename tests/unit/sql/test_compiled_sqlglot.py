"""The parser means the same with sqlglot's compiled build as without.

`./dev test` puts the compiled build into a folder of its own (<venv>/sqlglotc), where only this test looks.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

COMPILED = Path(sys.prefix) / "sqlglotc"

STATEMENTS = """
SELECT date_trunc(c, ts), x[1], x[1 + 1], md5(a, b), to_char(x, 'YYYY'), mod(a, b), ~1 + 2, -2 ^ 2 FROM t;
SELECT first_value(a) IGNORE NULLS OVER (PARTITION BY b ORDER BY c ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM t;
WITH MUTUALLY RECURSIVE (RETURN AT RECURSION LIMIT 5) r (n int) AS (SELECT 1 UNION SELECT n + 1 FROM r) SELECT * FROM r;
SELECT * FROM ROWS FROM (generate_series(1, 2), unnest(ARRAY[1, 2])) WITH ORDINALITY AS x (a, b, c) AS OF AT LEAST 5;
SELECT a @> b || c, a -> 'b' ->> 'c', LIST[1, 2], MAP['a' => 1], INTERVAL '1' DAY FROM t JOIN s USING (k) AS u;
CREATE MATERIALIZED VIEW mv IN CLUSTER c WITH (ASSERT NOT NULL a, REFRESH EVERY '1 day') AS SELECT 1 AS a;
CREATE DEFAULT INDEX i IN CLUSTER c ON t;
SUBSCRIBE (SELECT 1) WITH (PROGRESS) AS OF 1 UP TO 9;
EXPLAIN OPTIMIZED PLAN WITH (humanized expressions) AS VERBOSE TEXT FOR SELECT 'it''s', E'\\n', $$x$$, "Q";
COPY t (a) FROM STDIN WITH (FORMAT csv, HEADER);
DECLARE c CURSOR FOR SELECT 1; FETCH 5 c WITH (timeout = '1s');
ALTER SYSTEM SET x = 'y'; SHOW COLUMNS FROM t LIKE 'a%';
"""

SCRIPT = """
import sys, sqlglot.tokens
from adapter.sql.parse import parse_statements
print(any(str(getattr(m, "__file__", "")).endswith(".so") for n, m in sys.modules.items() if n.startswith("sqlglot")))
for statement in parse_statements(sys.stdin.read()):
    print(repr(statement))
"""


def parsed(*path: Path) -> list[str]:
    root = Path(__file__).parents[3]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (*path, root)))}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], input=STATEMENTS, capture_output=True, text=True, env=env, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_both_builds_parse_alike() -> None:
    if not COMPILED.is_dir():
        pytest.skip("the compiled build of sqlglot is not installed beside the environment")
    pure, compiled = parsed(), parsed(COMPILED)
    assert (pure[0], compiled[0]) == ("False", "True")
    assert len(pure) > 12
    assert compiled[1:] == pure[1:]
