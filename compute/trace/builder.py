"""BatchBuilder: one round's chunks of updates become one sealed batch.

Each chunk is sealed as it comes (a small sort), the sorted chunks are merged at the end, so that no step is longer than
a slice however large the round is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from compute.trace.batch import Batch, Description
from compute.trace.merge import SLICE_ROWS, Merge, batch_of
from compute.trace.sorting import Rows, cat_rows, codes_of, seal, shrink
from mzlite.repr.column import I64, U64, Column

_FEW_ROWS = 8_192


class BatchBuilder:
    """key: positions of the key among the columns pushed; diffs may be vectors.

    Small chunks are collected and sealed together.
    """

    def __init__(self, key: Sequence[int]) -> None:
        self.key = tuple(key)
        self.runs: list[Rows] = []
        self.small: list[Rows] = []
        self.small_rows = 0
        self.result: Batch | None = None

    def __bool__(self) -> bool:
        return bool(self.runs or self.small)

    def push(self, columns: Sequence[Column], time: U64, diff: I64, order: I64 | None = None) -> None:
        """cost: a sort of the chunk, once enough small ones are there."""
        n = len(time)
        if n == 0:
            return
        key = [columns[i] for i in self.key]
        rest = [c for i, c in enumerate(columns) if i not in self.key]
        self.small.append(Rows(codes_of(key, rest, n), tuple(columns), time, diff, order))
        self.small_rows += n
        if self.small_rows >= _FEW_ROWS:
            self._seal_small()

    def _seal_small(self) -> None:
        rows = seal(cat_rows(self.small))
        self.runs.append(rows._replace(time=shrink(rows.time), diff=shrink(rows.diff)))
        self.small = []
        self.small_rows = 0

    def done_now(self, description: Description) -> Batch | None:
        """The batch, if that is little work; else None (use `done`)."""
        if self.runs or not self.small:
            return None
        rows = seal(cat_rows(self.small))
        self.small = []
        self.small_rows = 0
        return batch_of(rows, description)

    def take(self) -> Batch | None:
        """The result, which is the caller's from now on: an idle builder keeps no batch alive."""
        result, self.result = self.result, None
        return result

    def done(self, description: Description) -> Iterator[None]:
        """Slices of work; afterwards `result`. The builder is empty again."""
        self.result = None
        if self.small:
            self._seal_small()
            yield
        if not self.runs:
            return
        runs, self.runs = self.runs, []
        if len(runs) == 1:
            self.result = batch_of(runs[0], description)
            return
        merge = Merge([batch_of(r, description) for r in runs], 0, description)
        runs.clear()
        while not merge.work(SLICE_ROWS):
            yield
        self.result = merge.result
