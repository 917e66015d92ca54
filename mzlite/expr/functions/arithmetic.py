"""Arithmetic and bit operators of the number types (dates and intervals: see `dates`)."""

from __future__ import annotations

import numpy as np

from mzlite.expr.functions.registry import operator, register
from mzlite.expr.kernels import floats, integers, numerics
from mzlite.expr.kernels.adapt import checked, elementwise
from mzlite.repr.types import LAYOUTS

_SIGNED = ("int2", "int4", "int8")
_UNSIGNED = ("uint2", "uint4", "uint8")
_WORDS = {"+": "add", "-": "sub", "*": "mul", "/": "div", "%": "mod"}
_BITS = {"&": ("bit_and", np.bitwise_and), "|": ("bit_or", np.bitwise_or), "#": ("bit_xor", np.bitwise_xor)}


def _integers() -> None:
    for kind in (*_SIGNED, *_UNSIGNED):
        layout = LAYOUTS[kind]
        pair = f"{kind}, {kind} -> {kind}"
        for symbol in "+-*":
            operator(symbol, _WORDS[symbol], pair, checked(integers.arithmetic(kind, symbol), layout))
        operator("/", "div", pair, checked(integers.division(kind), layout))
        operator("%", "mod", pair, checked(integers.remainder(kind), layout))
        register("mod", pair, checked(integers.remainder(kind), layout), id=f"mod_function_{kind}", infix="%")
        for symbol, (word, f) in _BITS.items():
            operator(symbol, word, pair, elementwise(f, layout), can_error=False)
        operator("~", "bit_not", f"{kind} -> {kind}", elementwise(np.invert, layout), can_error=False)
        # uint shifts take a uint4 amount in Materialize; an int4 literal reaches either.
        amount = "int4" if kind in _SIGNED else "uint4"
        for symbol, word in (("<<", "shift_left"), (">>", "shift_right")):
            operator(
                symbol,
                word,
                f"{kind}, {amount} -> {kind}",
                checked(integers.shift(kind, left=symbol == "<<"), layout),
                id=f"{word}_{kind}",
                can_error=False,
            )
    for kind in _SIGNED:
        operator("-", "neg", f"{kind} -> {kind}", checked(integers.negate(kind), LAYOUTS[kind]))
        register("abs", f"{kind} -> {kind}", checked(integers.absolute(kind), LAYOUTS[kind]))


def _floats() -> None:
    functions = {"+": floats.add, "-": floats.sub, "*": floats.mul, "/": floats.div, "%": floats.mod}
    for kind in ("float4", "float8"):
        layout = LAYOUTS[kind]
        for symbol, f in functions.items():
            operator(symbol, _WORDS[symbol], f"{kind}, {kind} -> {kind}", checked(f, layout))
        register("mod", f"{kind}, {kind} -> {kind}", checked(floats.mod, layout), id=f"mod_function_{kind}", infix="%")
        operator("-", "neg", f"{kind} -> {kind}", elementwise(np.negative, layout), can_error=False)
        register("abs", f"{kind} -> {kind}", elementwise(np.abs, layout), can_error=False)


def _numerics() -> None:
    kernels = {
        "+": numerics.add,
        "-": numerics.sub,
        "*": numerics.mul,
        "/": numerics.div,
        "%": numerics.mod,
    }
    for symbol, kernel in kernels.items():
        operator(symbol, _WORDS[symbol], "numeric, numeric -> numeric", kernel)
    register("mod", "numeric, numeric -> numeric", numerics.mod, id="mod_function_numeric", infix="%")
    operator("-", "neg", "numeric -> numeric", numerics.neg, can_error=False)
    register("abs", "numeric -> numeric", numerics.absolute, can_error=False)


def _plus() -> None:
    for kind in (*_SIGNED, *_UNSIGNED, "float4", "float8", "numeric", "interval"):
        operator("+", "plus", f"{kind} -> {kind}", lambda site, args, n, errors: args[0], can_error=False)


_integers()
_floats()
_numerics()
_plus()
