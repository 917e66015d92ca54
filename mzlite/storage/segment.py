"""Segments: memory files that hold one batch of updates and are shared with workers by descriptor.

Nothing has a name, so nothing leaks when a process dies and nothing is unlinked under a reader. A segment is an
anonymous memory file in the flat encoding (`repr.encode`), or a shard's Arrow IPC file on disk; a reader maps either.
"""

from __future__ import annotations

import mmap
import os
import tempfile

from mzlite.repr.encode import decode_updates, plan_updates
from mzlite.repr.updates import Updates

# Smaller batches travel inline: a mapping costs more than the copy.
INLINE_BYTES = 64 * 1024
FLAT, ARROW = "flat", "arrow"


def anonymous_file(size: int) -> int:
    """A descriptor of a zeroed memory file without a name."""
    if hasattr(os, "memfd_create"):
        fd = os.memfd_create("mzlite", os.MFD_CLOEXEC)
    else:
        fd, path = tempfile.mkstemp()
        os.unlink(path)
    os.ftruncate(fd, size)
    return fd


class Segment:
    """A descriptor, owned and closed with the object (mappings outlive it). kind: FLAT or ARROW."""

    __slots__ = ("fd", "kind", "size")

    def __init__(self, fd: int, size: int, kind: str) -> None:
        self.fd = fd
        self.size = size
        self.kind = kind

    @classmethod
    def of(cls, updates: Updates) -> Segment:
        """A memory file with a copy of `updates`."""
        encoding = plan_updates(updates)
        fd = anonymous_file(encoding.size)
        with mmap.mmap(fd, encoding.size) as mapping, memoryview(mapping) as view:
            encoding.write_into(view)
        return cls(fd, encoding.size, FLAT)

    def read(self) -> Updates:
        """The updates, over the mapped memory."""
        return read_segment(self.fd, self.size, self.kind)

    def __del__(self) -> None:
        os.close(self.fd)


def read_segment(fd: int, size: int, kind: str) -> Updates:
    """Map a segment read-only. The descriptor may be closed afterwards; the mapping lives as long as the updates."""
    mapping = mmap.mmap(fd, size, prot=mmap.PROT_READ)
    if kind == FLAT:
        return decode_updates(memoryview(mapping))
    from mzlite.storage.arrowfile import read_arrow

    return read_arrow(mapping)
