"""Statements with tokens changed at random are planned or refused, and never break the planner."""

from __future__ import annotations

from random import Random

import pytest

from adapter.sql.parse import parse_statements
from adapter.sql.parse.lexer import tokenize
from adapter.sql.plan import plan_statement
from mzlite.repr.errors import SqlError
from tests.unit.sql.planning import CATALOG, Session
from tests.unit.sql.random_queries import Queries
from tests.unit.sql.test_parse import ROUND_TRIPS, STATEMENTS
from tests.unit.sql.test_planning import ERRORS


def seeds(random: Random) -> list[str]:
    texts = [*ROUND_TRIPS.strip().splitlines(), *STATEMENTS, *(e[0] for e in ERRORS)]
    return texts + [Queries(random).query([], 2)[0] for _ in range(60)]


@pytest.mark.parametrize("seed", range(4))
def test_mutated_statements_are_planned_or_refused(seed: int) -> None:
    random = Random(seed)
    texts = seeds(random)
    by_kind: dict[str, list[str]] = {}
    for text in texts:
        for token in tokenize(text)[:-1]:
            by_kind.setdefault(token.kind, []).append(text[token.start : token.end])
    planned = 0
    for _ in range(600):
        text = random.choice(texts)
        tokens = tokenize(text)[:-1]
        parts = [text[t.start : t.end] for t in tokens]
        for _ in range(random.randint(0, 3)):
            at = random.randrange(1, len(parts)) if len(parts) > 1 else 0
            action = random.random()
            if action < 0.7 and at < len(tokens):
                parts[at] = random.choice(by_kind[tokens[at].kind])
            elif action < 0.8:
                del parts[at]
            else:
                parts.insert(at, random.choice(by_kind[random.choice(list(by_kind))]))
            if not parts:
                break
        try:
            for statement in parse_statements(" ".join(parts)):
                plan_statement(statement, CATALOG, Session())
                planned += 1
        except SqlError as error:
            assert len(error.sqlstate) == 5
            assert error.message
    assert planned > 50
