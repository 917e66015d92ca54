"""Canonical bytes of a decimal number: self-delimiting, equal numbers equal bytes, bytewise order is numeric order.

    00            -Infinity
    01 ~ee ~dd..  negative: exponent and digits complemented
    02            zero
    03 ee dd..    positive: 0.DIGITS * 10**e; ee = e + 0x8000 big-endian; one nibble (digit + 1) a digit, then nibble 0
    04            +Infinity
    05            NaN, the greatest

    12.5  ->  03 8002 23 60        (0.125 * 10**2; nibbles 2 3 6 0)

DIGITS has neither leading nor trailing zeros, so 1, 1.0 and 1e0 are the same bytes. Used for wide numeric values, for
numbers in jsonb and for numeric elements of arrays and the like.
"""

from __future__ import annotations

from decimal import Decimal

NEGATIVE_INFINITY, NEGATIVE, ZERO, POSITIVE, INFINITY, NAN = range(6)
_TO_NIBBLES = str.maketrans("0123456789", "123456789a")
_FROM_NIBBLES = str.maketrans("123456789a", "0123456789")
_BIAS = 0x8000
_COMPLEMENT = bytes(255 - b for b in range(256))
_SPECIAL: dict[int, Decimal] = {
    NEGATIVE_INFINITY: Decimal("-Infinity"),
    ZERO: Decimal(0),
    INFINITY: Decimal("Infinity"),
    NAN: Decimal("NaN"),
}


def encode_number(value: Decimal) -> bytes:
    """Canonical bytes of any Decimal; -0 is 0, every NaN is the NaN."""
    sign, digits, exponent = value.as_tuple()
    if isinstance(exponent, str):
        if exponent == "F":
            return b"\x00" if sign else b"\x04"
        return b"\x05"
    return _encode(sign, "".join(map(str, digits)), exponent)


def encode_scaled(value: int, scale: int) -> bytes:
    """Canonical bytes of value / 10**scale."""
    return _encode(1, str(-value), -scale) if value < 0 else _encode(0, str(value), -scale)


def _encode(sign: int, digits: str, exponent: int) -> bytes:
    exponent += len(digits)
    digits = digits.rstrip("0")
    if not digits:
        return b"\x02"
    nibbles = digits.translate(_TO_NIBBLES)
    tail = bytes.fromhex(nibbles + ("0" if len(nibbles) & 1 else "00"))
    body = (exponent + _BIAS).to_bytes(2, "big") + tail
    return b"\x01" + body.translate(_COMPLEMENT) if sign else b"\x03" + body


def decode_number(data: bytes) -> Decimal:
    """Inverse of `encode_number`, in its shortest plain form (an exponent of at most 0)."""
    return read_number(data, 0)[0]


def read_number(data: bytes, at: int) -> tuple[Decimal, int]:
    """The number that starts at data[at] and where the next value starts."""
    tag = data[at]
    if tag != POSITIVE and tag != NEGATIVE:
        return _SPECIAL[tag], at + 1
    negative, digits, exponent, end = _parts(data, at)
    if exponent > 0:
        digits += "0" * exponent
        exponent = 0
    return Decimal(f"-{digits}E{exponent}" if negative else f"{digits}E{exponent}"), end


def skip_number(data: bytes, at: int) -> int:
    """Where the value after the number at data[at] starts."""
    tag = data[at]
    if tag != POSITIVE and tag != NEGATIVE:
        return at + 1
    end = at + 3
    flip = 0x0F if tag == NEGATIVE else 0
    while (data[end] & 0x0F) ^ flip:
        end += 1
    return end + 1


def scaled_parts(data: bytes) -> tuple[int, int] | None:
    """(m, e) with value = m * 10**e and m not divisible by 10 (or 0, 0); None for NaN and the infinities."""
    tag = data[0]
    if tag == ZERO:
        return 0, 0
    if tag != POSITIVE and tag != NEGATIVE:
        return None
    negative, digits, exponent, _ = _parts(data, 0)
    return (-int(digits) if negative else int(digits)), exponent


def _parts(data: bytes, at: int) -> tuple[bool, str, int, int]:
    end = skip_number(data, at)
    body = data[at + 1 : end]
    negative = data[at] == NEGATIVE
    if negative:
        body = body.translate(_COMPLEMENT)
    digits = body[2:].hex().rstrip("0").translate(_FROM_NIBBLES)
    return negative, digits, int.from_bytes(body[:2], "big") - _BIAS - len(digits), end
