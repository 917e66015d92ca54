"""IndexLookup: the rows of an arrangement under some literal keys; nothing else of it is read."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from compute.operators.base import Arranged, Graph, Operator, Port
from compute.operators.matching import matches
from compute.trace.literals import key_columns
from compute.trace.sorting import key_codes
from compute.trace.view import View
from mzlite.expr.relation import Datums
from mzlite.repr.column import U64, Column
from mzlite.repr.updates import Updates


class IndexLookup(Operator):
    """rows: key values to seek; a key given twice counts once."""

    def __init__(self, graph: Graph, arranged: Arranged, rows: tuple[Datums, ...]) -> None:
        super().__init__(graph)
        self.oks = Port(graph)
        self.arranged = arranged
        self.rows = list(dict.fromkeys(rows))
        self.keys: tuple[Column, ...] | None = None
        self.codes: U64 = np.zeros(0, np.uint64)
        arranged.users.append(self)

    def intake(self, index: int, updates: Updates) -> None:
        raise AssertionError("a lookup reads an arrangement")

    def flush(self) -> Iterator[None]:
        layout = self.arranged.layout
        for batch in self.arranged.delta:
            if self.keys is None:
                columns = key_columns(self.rows, [batch.columns[i].layout for i in layout.positions])
                codes = key_codes(columns, len(self.rows))
                by = np.argsort(codes)
                self.codes = codes[by]
                self.keys = tuple(c.take(by) for c in columns)
            for match in matches(self.codes, self.keys, View((batch,)), layout.positions):
                found = tuple(batch.columns[i].take(match.row) for i in range(layout.arity))
                self.oks.emit(Updates(found, batch.time[match.row], batch.diff[match.row]))
                yield
