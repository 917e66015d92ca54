"""SourceFeed: what a shard's reader delivers becomes input of a dataflow."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from compute.render.inputs import SourceInput
from compute.runtime.storage_link import StorageLink
from mzlite.repr.timestamp import Frontier, Timestamp
from mzlite.repr.updates import Updates


class SourceFeed:
    """moved(): the input has news. unreadable(message): the shard could not be read at as_of, which is a violation.

    A shard that is dropped while it is read says nothing more: the dataflow will be dropped too.
    """

    def __init__(self, input: SourceInput, moved: Callable[[], None], unreadable: Callable[[str], None]) -> None:
        self._input = input
        self._moved = moved
        self._unreadable = unreadable
        self._opened = False
        self._shard = ""

    def open(self, storage: StorageLink, shard: str, as_of: Timestamp) -> int:
        self._shard = shard
        return storage.open(shard, as_of, self._push, self._push_errors, self._failed)

    def _push(self, parts: Sequence[Updates], upper: Frontier) -> None:
        self._opened = True
        for part in parts:
            self._input.push(part, self._input.upper)
        self._input.push(None, upper)
        self._moved()

    def _push_errors(self, parts: Sequence[Updates], upper: Frontier) -> None:
        for part in parts:
            self._input.push_errors(part)

    def _failed(self, message: str) -> None:
        if not self._opened:
            self._unreadable(f"shard {self._shard} cannot be read: {message}")
