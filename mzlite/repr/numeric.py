"""NumericColumn: exact decimals at integer speed when they are small, canonical bytes when they are not.

    narrow   value i = values[i] / 10**scale, |values[i]| < 10**18, one scale (0..18) for the column
    wide     value i = wide's canonical bytes (`repr.number`), as soon as one value needs more than 18 digits or is
             NaN or an infinity; `values` is then empty and `scale` 0

The scale is a matter of representation only: hash, equality and order are those of the numbers, whatever the scale and
form. (What a client sees follows the declared type: see `repr.text`.)
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mzlite.repr import hashing
from mzlite.repr.column import I64, U64, BoolArray, Column
from mzlite.repr.fixed import concat_valid, equal_valid, mask_nulls, null_keys
from mzlite.repr.number import decode_number, encode_number, encode_scaled, scaled_parts
from mzlite.repr.types import Layout
from mzlite.repr.var import VarColumn

MAX_DIGITS = 18
LIMIT = 10**MAX_DIGITS
POW10: I64 = np.array([10**k for k in range(MAX_DIGITS + 1)], np.int64)
_POW10_F64 = POW10.astype(np.float64)  # each exact
_FLOAT_EXACT = 10**15  # mantissas below are exact in float64, and so is 10**scale: their quotient is correctly rounded
_NO_VALUES: I64 = np.zeros(0, np.int64)


class NumericColumn(Column):
    """n decimals, narrow (values, scale) or wide (see the module).

    valid: as for every column; in the wide form it is wide's mask too.
    """

    __slots__ = ("scale", "values", "wide")

    def __init__(self, values: I64, scale: int, valid: BoolArray | None = None, wide: VarColumn | None = None) -> None:
        assert 0 <= scale <= MAX_DIGITS, scale
        self.values = _NO_VALUES if wide is not None else values
        self.scale = 0 if wide is not None else scale
        self.wide = wide
        self.valid = valid if wide is None else wide.valid

    @classmethod
    def from_wide(cls, wide: VarColumn) -> NumericColumn:
        return cls(_NO_VALUES, 0, None, wide)

    @classmethod
    def from_decimals(cls, values: Sequence[Decimal | None]) -> NumericColumn:
        """From Python Decimals (None = NULL), narrow whenever it can be. A row at a time: for literals and rare kernels."""
        scale = 0
        narrow = True
        parts: list[tuple[int, int]] = []
        for value in values:
            if value is None:
                parts.append((0, 0))
                continue
            sign, digits, exponent = value.as_tuple()
            if isinstance(exponent, str) or exponent < -40 or exponent > MAX_DIGITS:
                narrow = bool(value.is_finite() and not value)
                if not narrow:
                    break
                exponent = 0
            mantissa = int("".join(map(str, digits)))
            while exponent < 0 and mantissa % 10 == 0:
                mantissa //= 10
                exponent += 1
            if exponent > 0:
                mantissa *= 10**exponent
                exponent = 0
            if mantissa >= LIMIT or exponent < -MAX_DIGITS:
                narrow = False
                break
            scale = max(scale, -exponent)
            parts.append((-mantissa if sign else mantissa, exponent))
        if narrow and scale <= MAX_DIGITS:
            scaled = [m * 10 ** (scale + e) for m, e in parts]
            if all(-LIMIT < v < LIMIT for v in scaled):
                valid = None
                if None in values:
                    valid = np.array([v is not None for v in values], np.bool_)
                return cls(np.array(scaled, np.int64), scale, valid)
        encoded = [None if v is None else encode_number(v) for v in values]
        return cls.from_wide(VarColumn.from_bytes(encoded))

    @classmethod
    def from_integers(cls, values: NDArray[Any], valid: BoolArray | None = None) -> NumericColumn:
        """From an integer array of any dtype."""
        if values.dtype.itemsize < 8:
            return cls(values.astype(np.int64), 0, valid)
        outside = (values >= LIMIT) | (values <= -LIMIT) if values.dtype.kind == "i" else values >= LIMIT
        if valid is not None:
            outside = outside & valid
        if not outside.any():
            return cls(values.astype(np.int64), 0, valid)
        items = values.tolist()
        if valid is not None:
            encoded = [encode_scaled(v, 0) if ok else None for v, ok in zip(items, valid.tolist())]
        else:
            encoded = [encode_scaled(v, 0) for v in items]
        return cls.from_wide(VarColumn.from_bytes(encoded))

    @property
    def layout(self) -> Layout:
        return Layout.NUMERIC

    def __len__(self) -> int:
        return len(self.values) if self.wide is None else len(self.wide)

    def __repr__(self) -> str:
        return f"NumericColumn(n={len(self)}, {f'scale={self.scale}' if self.wide is None else 'wide'})"

    def to_decimals(self) -> list[Decimal | None]:
        """Python Decimals (None = NULL), trailing zeros of the column's scale included. A row at a time."""
        if self.wide is not None:
            return [None if b is None else decode_number(b) for b in self.wide.to_bytes()]
        scale = self.scale
        if scale:
            out: list[Decimal | None] = [Decimal(f"{v}E-{scale}") for v in self.values.tolist()]
        else:
            out = [Decimal(v) for v in self.values.tolist()]
        if self.valid is not None:
            for i in np.flatnonzero(~self.valid).tolist():
                out[i] = None
        return out

    def to_wide(self) -> NumericColumn:
        """The same numbers in the wide form. A row at a time."""
        if self.wide is not None:
            return self
        scale = self.scale
        encoded: list[bytes | None] = [encode_scaled(v, scale) for v in self.values.tolist()]
        if self.valid is not None:
            for i in np.flatnonzero(~self.valid).tolist():
                encoded[i] = None
        return NumericColumn.from_wide(VarColumn.from_bytes(encoded))

    def narrowed(self) -> NumericColumn:
        """The narrow form if every value fits it, else itself."""
        if self.wide is None:
            return self
        return NumericColumn.from_decimals(self.to_decimals())

    def live_values(self) -> I64:
        """Narrow form only: values with 0 under NULLs."""
        assert self.wide is None
        return self.values if self.valid is None else np.where(self.valid, self.values, 0)

    def magnitude(self) -> int:
        """Narrow form only: the greatest |values[i]| over valid rows, 0 when there are none."""
        live = self.live_values()
        return max(int(live.max()), -int(live.min())) if len(live) else 0

    def rescaled(self, scale: int) -> NumericColumn | None:
        """The narrow form at a scale >= the own one; None when a value does not fit 18 digits there, or when wide."""
        if self.wide is not None or scale > MAX_DIGITS:
            return None
        if scale == self.scale:
            return self
        assert scale > self.scale, (scale, self.scale)
        factor = int(POW10[scale - self.scale])
        if self.magnitude() * factor >= LIMIT:
            return None
        return NumericColumn(self.live_values() * factor, scale, self.valid)

    def reduced(self) -> NumericColumn:
        """The narrow form at its smallest scale; itself when wide."""
        if self.wide is not None or self.scale == 0:
            return self
        live = self.live_values()
        scale = self.scale
        while scale and not (live % 10).any():
            live = live // 10
            scale -= 1
        return NumericColumn(live, scale, self.valid)

    def take(self, idx: NDArray[np.intp] | I64) -> NumericColumn:
        if self.wide is not None:
            return NumericColumn.from_wide(self.wide.take(idx))
        return NumericColumn(self.values[idx], self.scale, None if self.valid is None else self.valid[idx])

    def filter(self, mask: BoolArray) -> NumericColumn:
        if self.wide is not None:
            return NumericColumn.from_wide(self.wide.filter(mask))
        return NumericColumn(self.values[mask], self.scale, None if self.valid is None else self.valid[mask])

    def slice(self, start: int, stop: int) -> NumericColumn:
        if self.wide is not None:
            return NumericColumn.from_wide(self.wide.slice(start, stop))
        valid = None if self.valid is None else self.valid[start:stop]
        return NumericColumn(self.values[start:stop], self.scale, valid)

    def concat_with(self, others: Sequence[Column]) -> NumericColumn:
        parts: list[NumericColumn] = [self]
        for other in others:
            assert isinstance(other, NumericColumn), other
            parts.append(other)
        aligned = align(parts)
        if aligned[0].wide is not None:
            wides = [p.wide for p in aligned if p.wide is not None]
            return NumericColumn.from_wide(wides[0].concat_with(wides[1:]))
        values = np.concatenate([p.values for p in aligned])
        return NumericColumn(values, aligned[0].scale, concat_valid(parts))

    def hash(self) -> U64:
        if self.wide is not None:
            hashes = _hash_wide(self.wide)
        else:
            hashes = _hash_narrow(self.values, self.scale)
        return mask_nulls(hashes, self.valid)

    def equals(self, other: Column) -> BoolArray:
        assert isinstance(other, NumericColumn), (self, other)
        if self.wide is None and other.wide is None:
            a, b = (self, other) if self.scale <= other.scale else (other, self)
            same: BoolArray
            if a.scale == b.scale:
                same = a.values == b.values
            else:
                quotient, rest = np.divmod(b.values, POW10[b.scale - a.scale])
                same = (rest == 0) & (quotient == a.values)
            return equal_valid(same, self.valid, other.valid)
        ours, theirs = self.to_wide().wide, other.to_wide().wide
        assert ours is not None and theirs is not None
        return ours.equals(theirs)

    def keys(self) -> list[Any]:
        if self.wide is not None:
            return self.wide.keys()
        return null_keys(self.values.tolist(), self.valid)

    def order_codes(self) -> I64:
        if self.wide is not None:
            return self.wide.order_codes()
        return self.values

    def buffers(self) -> tuple[tuple[Any, ...], list[NDArray[Any]]]:
        if self.wide is not None:
            header, arrays = self.wide.buffers()
            return ("w", header[1]), arrays
        if self.valid is None:
            return ("n", self.scale, 0), [self.values]
        return ("n", self.scale, 1), [self.values, self.valid]

    @property
    def nbytes(self) -> int:
        if self.wide is not None:
            return self.wide.nbytes
        return self.values.nbytes + (0 if self.valid is None else self.valid.nbytes)


def align(parts: Sequence[NumericColumn]) -> list[NumericColumn]:
    """The columns in one form: all narrow at one scale if that fits 18 digits, else all wide."""
    if all(p.wide is None for p in parts):
        scale = max(p.scale for p in parts)
        out = [p.rescaled(scale) for p in parts]
        if all(p is not None for p in out):
            return [p for p in out if p is not None]
        reduced = [p.reduced() for p in parts]
        scale = max(p.scale for p in reduced)
        out = [p.rescaled(scale) for p in reduced]
        if all(p is not None for p in out):
            return [p for p in out if p is not None]
    return [p.to_wide() for p in parts]


def _hash_narrow(values: I64, scale: int) -> U64:
    """Hash of values / 10**scale, by the number alone: see `_hash_number` for the two classes."""
    if len(values) == 1:
        return np.array([_hash_number(*_reduce(int(values[0]), -scale))], np.uint64)
    as_f64 = values.astype(np.float64)
    if scale:
        as_f64 /= _POW10_F64[scale]
    hashes = hashing.mix((as_f64 + 0.0).view(np.uint64))
    big = np.flatnonzero((values >= _FLOAT_EXACT) | (values <= -_FLOAT_EXACT))
    if len(big):
        mantissa = values[big]
        exponent = np.full(len(big), -scale, np.int64)
        for step in (16, 8, 4, 2, 1):
            quotient, rest = np.divmod(mantissa, POW10[step])
            even = rest == 0
            mantissa = np.where(even, quotient, mantissa)
            exponent += np.where(even, step, 0)
        exact = (mantissa < _FLOAT_EXACT) & (mantissa > -_FLOAT_EXACT)
        # A reduced mantissa under 10**15 with |exponent| <= 18: both factors are exact, one rounding.
        up = _POW10_F64[np.clip(exponent, 0, MAX_DIGITS)]
        down = _POW10_F64[np.clip(-exponent, 0, MAX_DIGITS)]
        floats = mantissa.astype(np.float64) * up / down
        small = hashing.mix(floats.view(np.uint64))
        large = hashing.combine(mantissa.view(np.uint64), exponent.view(np.uint64))
        hashes[big] = np.where(exact, small, large)
    return hashes


def _reduce(mantissa: int, exponent: int) -> tuple[int, int]:
    if mantissa == 0:
        return 0, 0
    while mantissa % 10 == 0:
        mantissa //= 10
        exponent += 1
    return mantissa, exponent


_TWO64 = 2**64


def _hash_number(mantissa: int, exponent: int) -> int:
    """Hash of mantissa * 10**exponent, reduced: by its float64 when that is its correctly rounded value, else by parts."""
    if -_FLOAT_EXACT < mantissa < _FLOAT_EXACT and -300 < exponent < 290:
        if exponent < 0:
            value = mantissa / 10**-exponent  # int / int rounds correctly
        else:
            value = float(mantissa * 10**exponent)
        return hashing.mix_int(int(np.float64(value).view(np.uint64)))
    parts = np.array([mantissa % _TWO64], np.uint64), np.array([exponent % _TWO64], np.uint64)
    return int(hashing.combine(*parts)[0])


# Encodings this long hold at least 20 digits: no narrow form to agree with, so their bytes are hashed at once.
_LONG_BYTES = 14


def _hash_wide(wide: VarColumn) -> U64:
    """Wide numbers that also fit the narrow form must hash as they do there: those are hashed per value."""
    hashes = hashing.hash_slices(wide.offsets, wide.data)
    short = np.flatnonzero(wide.lengths() < _LONG_BYTES)
    if len(short):
        for i, data in zip(short.tolist(), wide.take(short).to_bytes()):
            parts = scaled_parts(data) if data else None
            if parts is not None:
                hashes[i] = _hash_number(*parts)
    return hashes
