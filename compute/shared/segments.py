"""Segments: anonymous memory files, each holding one sealed batch.

A segment has no name: it lives as long as a descriptor or a mapping of it does, so a reader never loses what it reads
and nothing is left behind when processes die. The writer maps its own segment too and drops its private copy, so a
large batch exists once in memory. Source: memfd_create and SCM_RIGHTS; an unlinked temporary file where there is none.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import tempfile

from compute.trace.batch import Batch

INLINE_BYTES = 64 << 10
"""Smaller batches travel inside the message: a mapping costs more than the copy."""


def create(size: int) -> int:
    """A descriptor of a zeroed anonymous file of `size` bytes."""
    if hasattr(os, "memfd_create"):
        fd = os.memfd_create("segment", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    else:
        fd, path = tempfile.mkstemp()
        os.unlink(path)
    os.ftruncate(fd, size)
    return fd


def write(batch: Batch) -> int:
    """A descriptor of a segment holding `batch`. The caller closes it. cost: one copy of the batch."""
    size = batch.size_encoded
    fd = create(size)
    with contextlib.closing(mmap.mmap(fd, size)) as mapping, memoryview(mapping) as view:
        batch.write_into(view)
    return fd


def read(fd: int, size: int) -> Batch:
    """The batch in a segment, mapped read-only. The descriptor may be closed afterwards. cost: no copy."""
    return Batch.read_from(memoryview(mmap.mmap(fd, size, prot=mmap.PROT_READ)))
