"""Random SELECTs over three small tables of integers, in the dialect that PostgreSQL, DuckDB and mzlite share.

Deterministic from the `random.Random` given. Everything is an integer, so that answers compare; orders are total and
say where NULLs go; nothing divides.
"""

from __future__ import annotations

import random

TABLES = {"t": ("a", "b", "c"), "u": ("k", "v", "w"), "s": ("id", "x")}

Row = tuple[int | None, ...]


def random_rows(rng: random.Random) -> dict[str, list[Row]]:
    """s.id is a key and never NULL."""
    out: dict[str, list[Row]] = {}
    for name, columns in TABLES.items():
        rows: list[Row] = [
            tuple(None if rng.random() < 0.2 else rng.randrange(4) for _ in columns) for _ in range(rng.randint(1, 8))
        ]
        if name == "s":
            rows = [
                (i, None if rng.random() < 0.2 else rng.randrange(4)) for i in rng.sample(range(6), rng.randint(1, 5))
            ]
        out[name] = rows
    return out


class RandomSql:
    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.aliases = 0
        self.ctes: list[tuple[str, int]] = []

    def statement(self, depth: int = 3) -> str:
        """A query, perhaps with CTEs."""
        if self.rng.random() < 0.2:
            name = f"cte{self.aliases}"
            self.aliases += 1
            body, width = self.query(depth - 1, [])
            names = ", ".join(f"c{i}" for i in range(width))
            self.ctes.append((name, width))
            rest, _ = self.query(depth, [])
            return f"WITH {name} ({names}) AS ({body}) {rest}"
        return self.query(depth, [])[0]

    def query(self, depth: int, outer: list[str], width: int | None = None) -> tuple[str, int]:
        """(text, number of columns); columns are called c0, c1, …"""
        rng = self.rng
        if depth > 1 and rng.random() < 0.15:
            left, n = self.query(depth - 1, outer, width)
            right, _ = self.query(depth - 1, outer, n)
            op = rng.choice(["UNION", "UNION ALL", "EXCEPT", "INTERSECT", "EXCEPT ALL", "INTERSECT ALL"])
            return f"({left}) {op} ({right})", n
        return self.select(depth, outer, width)

    def select(self, depth: int, outer: list[str], width: int | None) -> tuple[str, int]:
        rng = self.rng
        source, scope = self.source(depth, outer)
        everything = scope + outer
        n = width or rng.randint(1, 3)
        where = f" WHERE {self.predicate(everything, depth)}" if rng.random() < 0.6 else ""
        roll = rng.random()
        if roll < 0.25:
            keys = rng.sample(scope, rng.randint(0, min(2, len(scope))))
            items = [rng.choice(keys) if keys and rng.random() < 0.4 else self.aggregate(scope) for _ in range(n)]
            group = f" GROUP BY {', '.join(keys)}" if keys else ""
            having = f" HAVING {self.aggregate(scope)} >= {rng.randrange(3)}" if rng.random() < 0.3 else ""
            return f"SELECT {self._named(items)} FROM {source}{where}{group}{having}", n
        items = [self.scalar(everything, depth) for _ in range(n)]
        distinct = "DISTINCT " if roll < 0.4 else ""
        text = f"SELECT {distinct}{self._named(items)} FROM {source}{where}"
        if rng.random() < 0.15:
            order = ", ".join(
                f"{i + 1} {rng.choice(['ASC', 'DESC'])} NULLS {rng.choice(['FIRST', 'LAST'])}" for i in range(n)
            )
            text += f" ORDER BY {order} LIMIT {rng.randrange(4)}"
            if rng.random() < 0.3:
                text += " OFFSET 1"
            return f"SELECT * FROM ({text}) AS q{self._alias()}", n
        return text, n

    def _named(self, items: list[str]) -> str:
        return ", ".join(f"{item} AS c{i}" for i, item in enumerate(items))

    def _alias(self) -> int:
        self.aliases += 1
        return self.aliases

    def source(self, depth: int, outer: list[str]) -> tuple[str, list[str]]:
        """FROM items and the columns they bring."""
        rng = self.rng
        text, scope = self.item(depth, outer)
        for _ in range(rng.choice([0, 0, 1, 1, 2])):
            other, columns = self.item(depth - 1, outer)
            kind = rng.choice(["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "CROSS JOIN", "JOIN", "LEFT JOIN"])
            if kind == "CROSS JOIN":
                text = f"{text} CROSS JOIN {other}"
            else:
                on = f"{rng.choice(scope)} = {rng.choice(columns)}"
                if rng.random() < 0.2 and kind != "FULL JOIN":
                    on += f" AND {self.comparison(scope + columns)}"
                text = f"{text} {kind} {other} ON {on}"
            scope = scope + columns
        if depth > 1 and rng.random() < 0.1:
            inner, n = self.query(depth - 2, scope)
            alias = f"l{self._alias()}"
            return f"{text} CROSS JOIN LATERAL ({inner}) AS {alias}", scope + [f"{alias}.c{i}" for i in range(n)]
        return text, scope

    def item(self, depth: int, outer: list[str]) -> tuple[str, list[str]]:
        rng = self.rng
        alias = f"r{self._alias()}"
        if depth > 1 and rng.random() < 0.25:
            inner, n = self.query(depth - 1, [])
            return f"({inner}) AS {alias}", [f"{alias}.c{i}" for i in range(n)]
        if self.ctes and rng.random() < 0.4:
            name, n = rng.choice(self.ctes)
            return f"{name} AS {alias}", [f"{alias}.c{i}" for i in range(n)]
        name = rng.choice(list(TABLES))
        return f"{name} AS {alias}", [f"{alias}.{c}" for c in TABLES[name]]

    def aggregate(self, scope: list[str]) -> str:
        rng = self.rng
        column = rng.choice(scope)
        text = rng.choice(
            ["count(*)", f"count({column})", f"sum({column})", f"max({column})", f"min({column})",
             f"count(DISTINCT {column})", f"sum(DISTINCT {column})"]
        )  # fmt: skip
        if rng.random() < 0.15:
            text += f" FILTER (WHERE {self.comparison(scope)})"
        return text

    def scalar(self, scope: list[str], depth: int) -> str:
        rng = self.rng
        roll = rng.random()
        if roll < 0.55 or depth <= 0:
            return rng.choice(scope) if rng.random() < 0.85 else str(rng.randrange(4))
        if roll < 0.65:
            return f"({self.scalar(scope, depth - 1)} + {self.scalar(scope, depth - 1)})"
        if roll < 0.75:
            return f"coalesce({self.scalar(scope, depth - 1)}, {self.scalar(scope, depth - 1)})"
        if roll < 0.87:
            condition = self.predicate(scope, depth - 1)
            return f"CASE WHEN {condition} THEN {self.scalar(scope, 0)} ELSE {self.scalar(scope, 0)} END"
        source, columns = self.item(0, scope)
        where = self.correlation(columns, scope, depth - 1)
        return f"(SELECT {self.aggregate(columns)} FROM {source} WHERE {where})"

    def correlation(self, columns: list[str], scope: list[str], depth: int) -> str:
        rng = self.rng
        first = f"{rng.choice(columns)} {rng.choice(['=', '=', '=', '<', '>='])} {rng.choice(scope)}"
        return first if rng.random() < 0.6 else f"{first} AND {self.predicate(columns + scope, depth - 1)}"

    def comparison(self, scope: list[str]) -> str:
        op = self.rng.choice(["=", "=", "<", ">", "<>", "<=", ">="])
        return f"{self.scalar(scope, 0)} {op} {self.scalar(scope, 0)}"

    def predicate(self, scope: list[str], depth: int) -> str:
        rng = self.rng
        roll = rng.random()
        if depth <= 0 or roll < 0.35:
            return self.comparison(scope)
        if roll < 0.45:
            return f"{rng.choice(scope)} IS {rng.choice(['', 'NOT '])}NULL"
        if roll < 0.55:
            return (
                f"({self.predicate(scope, depth - 1)} {rng.choice(['AND', 'OR'])} {self.predicate(scope, depth - 1)})"
            )
        if roll < 0.6:
            return f"NOT ({self.predicate(scope, depth - 1)})"
        if roll < 0.68:
            values = ", ".join(rng.choice(["0", "1", "2", "NULL"]) for _ in range(rng.randint(1, 3)))
            return f"{rng.choice(scope)} {rng.choice(['', 'NOT '])}IN ({values})"
        negated = rng.choice(["", "", "NOT "])
        if roll < 0.82:
            inner, _ = self.query(depth - 1, scope if rng.random() < 0.4 else [], 1)
            return f"{rng.choice(scope)} {negated}IN ({inner})"
        if roll < 0.88:
            inner, _ = self.query(depth - 1, [], 1)
            return f"{rng.choice(scope)} {rng.choice(['<', '>=', '='])} {rng.choice(['ANY', 'ALL'])} ({inner})"
        source, columns = self.item(depth - 1, scope)
        return f"{negated}EXISTS (SELECT 1 FROM {source} WHERE {self.correlation(columns, scope, depth - 1)})"
