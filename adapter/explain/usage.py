"""Which indexes a plan reads, and how: the words of `Used Indexes` and of ReadIndex.

lookup · *** full scan *** · differential join · delta join 1st input (full scan) · delta join lookup ·
plan root (no new arrangement) · fast path limit · index export
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from adapter.sequencer.dataflows import Imports
from mzlite.expr import relation as r
from mzlite.expr.scalar import Scalar
from mzlite.repr.ids import GlobalId

FULL_SCAN = "*** full scan ***"
LOOKUP = "lookup"
DIFFERENTIAL = "differential join"
DELTA_FIRST = "delta join 1st input (full scan)"
DELTA_LOOKUP = "delta join lookup"
PLAN_ROOT = "plan root (no new arrangement)"
FAST_PATH_LIMIT = "fast path limit"
INDEX_EXPORT = "index export"


@dataclass(slots=True)
class Usages:
    """reads: by identity of a Get, the indexes behind it. words: by index, in order of first use."""

    reads: dict[int, list[tuple[GlobalId, str]]] = field(default_factory=dict)
    words: dict[GlobalId, list[str]] = field(default_factory=dict)

    def add(self, index: GlobalId, word: str) -> None:
        known = self.words.setdefault(index, [])
        if word not in known:
            known.append(word)

    def _read(self, get: r.Get, index: GlobalId, word: str) -> None:
        at = self.reads.setdefault(id(get), [])
        if (index, word) not in at:
            at.append((index, word))
        self.add(index, word)


def usages(roots: Sequence[r.Mir], imports: Imports | None) -> Usages:
    out = Usages()
    if imports is None:
        return out
    by_key: dict[tuple[GlobalId, tuple[Scalar, ...]], GlobalId] = {}
    any_index: dict[GlobalId, GlobalId] = {}
    for index, (desc, _) in imports.indexes.items():
        by_key.setdefault((desc.on_id, desc.key), index)
        any_index.setdefault(desc.on_id, index)
    for node in (n for root in roots for n in r.walk(root)):
        match node:
            case r.Join(inputs, _, r.IndexedFilter(_, index, _, _)):
                get = inputs[0]
                assert isinstance(get, r.Get)
                out._read(get, index, LOOKUP)
            case r.Join(inputs, _, impl) if impl is not None:
                for i, input in enumerate(inputs):
                    if not isinstance(input, r.ArrangeBy) or not isinstance(input.input, r.Get):
                        continue
                    get = input.input
                    if not isinstance(get.id, str):
                        continue
                    for key in input.keys:
                        index_id = by_key.get((get.id, key))
                        if index_id is not None:
                            for word in _join_words(impl, i, key):
                                out._read(get, index_id, word)
            case r.ArrangeBy(r.Get(id_, _) as get, keys) if isinstance(id_, str) and id(get) not in out.reads:
                for key in keys:
                    index_id = by_key.get((id_, key))
                    if index_id is not None:
                        out._read(get, index_id, PLAN_ROOT)
            case r.Get(id_, _) if isinstance(id_, str) and id(node) not in out.reads and id_ in any_index:
                out._read(node, any_index[id_], FULL_SCAN)
            case _:
                pass
    return out


def _join_words(
    impl: r.Differential | r.DeltaQuery | r.IndexedFilter, input: int, key: tuple[Scalar, ...]
) -> list[str]:
    if not isinstance(impl, r.DeltaQuery):
        return [DIFFERENTIAL]
    words = [DELTA_LOOKUP] if any(i == input and k == key for p in impl.paths for i, k in p) else []
    # At the start of a dataflow only the first path has anything to read.
    return [*words, DELTA_FIRST] if input == 0 else words
