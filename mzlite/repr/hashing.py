"""64-bit hashes: the integer that stands for a row when rows are sorted and matched.

Every process and every run must compute the same hash of the same value, because workers exchange rows by hash and
shared arrangements are ordered by it. So there is no per-process seed, and the numpy form, the plain Python form (a
call on one row is the common case, where numpy's fixed cost dominates) and the blake2b form for long byte strings each
own a disjoint set of inputs or agree bit for bit.

    fixed width   splitmix64's finalizer over the value as uint64
    bytes <= 128  8-byte little-endian words, multiply and fold, all rows of a column at once, one pass a word
    bytes > 128   blake2b, a row at a time (the call is worth its cost only for long strings)

source: splitmix64 (Steele, Lea, Flood 2014); the word loop follows murmur2's multiply and fold.
"""

from __future__ import annotations

from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

I64 = NDArray[np.int64]
U64 = NDArray[np.uint64]
U8 = NDArray[np.uint8]

NULL_HASH = 0x9AE16A3B2F90404F
_MASK = 2**64 - 1
_M1 = 0xBF58476D1CE4E5B9
_M2 = 0x94D049BB133111EB
_WORD = 0xC6A4A7935BD1E995
_LENGTH = 0x9E3779B97F4A7C15
_LONG = 128
_FEW = 6

# _TAIL[k] keeps the k low bytes of a word.
_TAIL = np.array([(1 << (8 * k)) - 1 for k in range(9)], np.uint64)


def mix(x: U64) -> U64:
    """splitmix64's finalizer, elementwise; a fresh array."""
    if len(x) == 1:
        return np.array([mix_int(int(x[0]))], np.uint64)
    x = x ^ (x >> np.uint64(30))
    x *= _M1
    x ^= x >> 27
    x *= _M2
    x ^= x >> 31
    return x


def mix_int(x: int) -> int:
    """`mix` of one value (0 <= x < 2**64)."""
    x = ((x ^ (x >> 30)) * _M1) & _MASK
    x = ((x ^ (x >> 27)) * _M2) & _MASK
    return x ^ (x >> 31)


def combine(acc: U64, h: U64) -> U64:
    """Hash of a row so far and of its next column; order matters."""
    if len(acc) == 1:
        return np.array([mix_int((int(acc[0]) * _LENGTH + int(h[0])) & _MASK)], np.uint64)
    return mix(acc * np.uint64(_LENGTH) + h)


def hash_bytes(data: bytes) -> int:
    """Hash of one byte string; agrees with `hash_slices`."""
    size = len(data)
    if size > _LONG:
        return int.from_bytes(blake2b(data, digest_size=8).digest(), "little")
    h = (size * _LENGTH) & _MASK
    for i in range(0, size, 8):
        h = ((h ^ int.from_bytes(data[i : i + 8], "little")) * _WORD) & _MASK
        h ^= h >> 47
    return mix_int(h)


def hash_slices(offsets: I64, data: U8) -> U64:
    """uint64[n]: hash of data[offsets[i]:offsets[i+1]] for each i.

    cost: one numpy pass a word of the longest value up to 128 bytes, over the rows that reach that far.
    """
    n = len(offsets) - 1
    if n <= _FEW:
        bounds = offsets.tolist()
        return np.array([hash_bytes(data[bounds[i] : bounds[i + 1]].tobytes()) for i in range(n)], np.uint64)
    base = int(offsets[0])
    starts = offsets[:-1] - base
    sizes = np.diff(offsets)
    # One word of padding, so that the last value's last word can be loaded whole.
    padded = np.concatenate([data[base : int(offsets[-1])], np.zeros(8, np.uint8)])
    words = np.ndarray((len(padded) - 7,), np.dtype("<u8"), padded, 0, (1,))
    h = sizes.astype(np.uint64) * np.uint64(_LENGTH)
    long = np.flatnonzero(sizes > _LONG)
    longest = min(int(sizes.max()), _LONG)
    smallest = int(sizes.min())
    for at in range(0, longest, 8):
        if smallest >= at + 8:
            h ^= words[starts + at]
            h *= _WORD
            h ^= h >> 47
            continue
        rows = np.flatnonzero(sizes > at)
        word = words[starts[rows] + at] & _TAIL[np.minimum(sizes[rows] - at, 8)]
        part = (h[rows] ^ word) * np.uint64(_WORD)
        h[rows] = part ^ (part >> np.uint64(47))
    h = mix(h)
    for i in long.tolist():
        h[i] = hash_bytes(data[int(offsets[i]) : int(offsets[i + 1])].tobytes())
    return h
