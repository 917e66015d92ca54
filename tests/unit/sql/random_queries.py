"""Random SELECTs over three small tables of integers with NULLs: joins of every kind, subqueries correlated at any depth, grouping, set operations.

Every query is valid in PostgreSQL and its answer does not depend on an order that was not asked for.
"""

from __future__ import annotations

from random import Random

TABLES = {"t": ("a", "b", "c"), "u": ("a", "b"), "v": ("k", "a")}
Column = str


class Queries:
    def __init__(self, random: Random) -> None:
        self.random = random
        self.aliases = 0

    def chance(self, p: float) -> bool:
        return self.random.random() < p

    def alias(self) -> str:
        self.aliases += 1
        return f"x{self.aliases}"

    # ---- expressions; columns: what is in scope, outer scopes included

    def number(self, columns: list[Column], depth: int) -> str:
        pick = self.random.random()
        if columns and (pick < 0.55 or depth <= 0):
            return self.random.choice(columns)
        if pick < 0.7 or depth <= 0:
            return str(self.random.randint(0, 3))
        if pick < 0.78:
            return f"({self.number(columns, depth - 1)} {self.random.choice('+-')} {self.number(columns, depth - 1)})"
        if pick < 0.84:
            return f"coalesce({self.number(columns, depth - 1)}, {self.number(columns, depth - 1)})"
        if pick < 0.9:
            condition = self.condition(columns, depth - 1)
            return f"CASE WHEN {condition} THEN {self.number(columns, depth - 1)} ELSE {self.number(columns, depth - 1)} END"
        return self.scalar_query(columns, depth - 1)

    def scalar_query(self, outer: list[Column], depth: int) -> str:
        source, columns = self.from_clause(outer, depth)
        aggregate = self.aggregate(columns, outer, depth)
        where = self.where(columns + outer, depth)
        extra = self.random.choice(["", " + 1", ""])
        return f"(SELECT {aggregate}{extra} FROM {source}{where})"

    def aggregate(self, columns: list[Column], outer: list[Column], depth: int) -> str:
        value = self.random.choice(columns)
        if outer and self.chance(0.2):
            value = f"{value} + {self.random.choice(outer)}"
        call = self.random.choice(
            [
                "count(*)",
                f"count({value})",
                f"sum({value})",
                f"min({value})",
                f"max({value})",
                f"count(DISTINCT {value})",
            ]
        )
        if self.chance(0.15):
            call += f" FILTER (WHERE {self.comparison(columns, 0)})"
        return f"({call})::int"

    def comparison(self, columns: list[Column], depth: int) -> str:
        op = self.random.choice(["=", "=", "=", "<>", "<", ">=", "IS DISTINCT FROM"])
        return f"{self.number(columns, depth)} {op} {self.number(columns, depth)}"

    def condition(self, columns: list[Column], depth: int) -> str:
        pick = self.random.random()
        if depth <= 0 or pick < 0.45:
            return self.comparison(columns, depth - 1)
        if pick < 0.52:
            return f"{self.number(columns, depth - 1)} IS {self.random.choice(['', 'NOT '])}NULL"
        if pick < 0.66:
            word = self.random.choice([" AND ", " OR "])
            return f"({self.condition(columns, depth - 1)}{word}{self.condition(columns, depth - 1)})"
        if pick < 0.72:
            return f"NOT ({self.condition(columns, depth - 1)})"
        if pick < 0.84:
            source, own = self.from_clause(columns, depth - 1)
            where = self.where(own + columns, depth - 1)
            return f"{self.random.choice(['', 'NOT '])}EXISTS (SELECT 1 FROM {source}{where})"
        source, own = self.from_clause(columns, depth - 1)
        where = self.where(own + columns, depth - 1)
        query = f"(SELECT {self.number(own, 0)} FROM {source}{where})"
        left = self.number(columns, depth - 2)
        if pick < 0.94:
            return f"{left} {self.random.choice(['', 'NOT '])}IN {query}"
        return f"{left} {self.random.choice(['=', '<', '<>'])} {self.random.choice(['ANY', 'ALL'])} {query}"

    def where(self, columns: list[Column], depth: int) -> str:
        if self.chance(0.2):
            return ""
        parts = [self.comparison(columns, 0)] if self.chance(0.6) else []
        if not parts or self.chance(0.5):
            parts.append(self.condition(columns, depth))
        return " WHERE " + " AND ".join(parts)

    # ---- FROM

    def factor(self, outer: list[Column], depth: int) -> tuple[str, list[Column]]:
        alias = self.alias()
        if depth <= 0 or self.chance(0.7):
            table = self.random.choice(list(TABLES))
            return f"{table} AS {alias}", [f"{alias}.{c}" for c in TABLES[table]]
        query, width = self.query(outer, depth - 1)
        names = [f"c{i}" for i in range(width)]
        return f"({query}) AS {alias}({', '.join(names)})", [f"{alias}.{n}" for n in names]

    def from_clause(self, outer: list[Column], depth: int) -> tuple[str, list[Column]]:
        text, columns = self.factor(outer, depth)
        while self.chance(0.4 if depth > 0 else 0.2):
            kind = self.random.choice(
                [
                    "JOIN",
                    "JOIN",
                    "LEFT JOIN",
                    "LEFT JOIN",
                    "RIGHT JOIN",
                    "FULL JOIN",
                    "CROSS JOIN",
                    "LATERAL",
                    "LEFT JOIN LATERAL",
                ]
            )
            if "LATERAL" in kind:
                query, width = self.query(columns + outer, depth - 1)
                alias = self.alias()
                names = [f"c{i}" for i in range(width)]
                own = [f"{alias}.{n}" for n in names]
                item = f"LATERAL ({query}) AS {alias}({', '.join(names)})"
                if kind == "LATERAL":
                    text = f"{text} CROSS JOIN {item}"
                else:
                    condition = "true" if self.chance(0.4) else self.comparison(columns + own, 0)
                    text = f"{text} LEFT JOIN {item} ON {condition}"
                columns = columns + own
                continue
            item, own = self.factor(outer, depth - 1)
            if kind == "CROSS JOIN":
                text = f"{text} CROSS JOIN {item}"
            else:
                text = f"{text} {kind} {item} ON {self.on(columns, own, kind, depth, outer)}"
            columns = columns + own
        return text, columns

    def on(self, left: list[Column], right: list[Column], kind: str, depth: int, outer: list[Column]) -> str:
        equal = f"{self.random.choice(left)} = {self.random.choice(right)}"
        if kind == "FULL JOIN" or self.chance(0.6):
            return equal  # PostgreSQL's FULL JOIN wants an equality alone
        condition = self.condition(left + right + (outer if self.chance(0.3) else []), min(depth, 1))
        return condition if self.chance(0.4) else f"{equal} AND {condition}"

    # ---- queries

    def query(self, outer: list[Column], depth: int) -> tuple[str, int]:
        """A query and how many (integer) columns it has."""
        if depth > 0 and self.chance(0.12):
            width = self.random.randint(1, 2)
            op = self.random.choice(["UNION", "UNION ALL", "EXCEPT", "EXCEPT ALL", "INTERSECT", "INTERSECT ALL"])
            return f"{self.select(outer, depth - 1, width)} {op} {self.select(outer, depth - 1, width)}", width
        if depth > 0 and self.chance(0.08):
            name = self.alias()
            inner, width = self.query(outer, depth - 1)
            names = [f"c{i}" for i in range(width)]
            columns = [f"{name}.{n}" for n in names]
            items = ", ".join(self.number(columns, 0) for _ in range(width))
            other = self.alias()
            body = f"SELECT {items} FROM {name}"
            if self.chance(0.5):
                body += f" LEFT JOIN {name} AS {other} ON {columns[0]} = {other}.{names[-1]}"
            if self.chance(0.5):
                body += (
                    f" WHERE {columns[0]} IN (SELECT {names[0]} FROM {name} AS y WHERE y.{names[-1]} >= {columns[-1]})"
                )
            return f"WITH {name}({', '.join(names)}) AS ({inner}) {body}", width
        width = self.random.randint(1, 3)
        return self.select(outer, depth, width), width

    def window(self, columns: list[Column], outer: list[Column]) -> str:
        """A window function whose order is total up to equal rows, so that its answers do not depend on ties."""
        value = self.number(columns + outer, 0)
        pick = self.random.random()
        frame = ""
        if pick < 0.4:
            call = self.random.choice(
                ["row_number()", "rank()", "dense_rank()", f"lag({value})", f"lead({value}, 2, -1)", "ntile(2)"]
            )
        else:
            call = self.random.choice(
                [
                    f"sum({value})",
                    "count(*)",
                    f"min({value})",
                    f"max({value})",
                    f"first_value({value})",
                    f"last_value({value})",
                ]
            )
            frame = self.random.choice(
                [
                    "",
                    " ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING",
                    " ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING",
                    " ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING EXCLUDE CURRENT ROW",
                    " RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
                    " GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE TIES",
                    " GROUPS BETWEEN 1 FOLLOWING AND 2 FOLLOWING",
                ]
            )
        order = list(columns)
        self.random.shuffle(order)
        keys = ", ".join(c + self.random.choice(["", " DESC", " NULLS FIRST"]) for c in order)
        partition = f"PARTITION BY {self.random.choice(columns)} " if self.chance(0.5) else ""
        return f"({call} OVER ({partition}ORDER BY {keys}{frame}))::int"

    def select(self, outer: list[Column], depth: int, width: int) -> str:
        source, columns = self.from_clause(outer, depth)
        where = self.where(columns + outer, depth)
        if self.chance(0.25):
            keys = [self.random.choice(columns) for _ in range(self.random.randint(0, 2))]
            items = [
                self.random.choice(keys) if keys and self.chance(0.5) else self.aggregate(columns, outer, depth)
                for _ in range(width)
            ]
            text = f"SELECT {', '.join(items)} FROM {source}{where}"
            if keys:
                text += f" GROUP BY {', '.join(keys)}"
            elif not any("(" in item for item in items):
                text += " GROUP BY ()"
            if self.chance(0.3):
                text += (
                    f" HAVING {self.random.choice(['count(*) > 1', 'max(' + columns[0] + ') >= 1', 'count(*) < 9'])}"
                )
            return text
        if self.chance(0.15):
            # One call: two would tell equal rows apart, each in its own way.
            items = [self.random.choice(columns) for _ in range(width - 1)] + [self.window(columns, outer)]
            return f"SELECT {', '.join(items)} FROM {source}{where}"
        items = [self.number(columns + outer, depth) for _ in range(width)]
        distinct = "DISTINCT " if self.chance(0.15) else ""
        text = f"SELECT {distinct}{', '.join(items)} FROM {source}{where}"
        if self.chance(0.1):
            order = ", ".join(str(i + 1) for i in range(width))
            text = f"({text} ORDER BY {order} LIMIT {self.random.randint(0, 4)} OFFSET {self.random.randint(0, 2)})"
        return text
