"""The one exception for a user's mistake, and its form as data.

`SqlError` is what a client sees: SQLSTATE, message, detail, hint, position. Inside a dataflow an error is a *row*
(see `Updates` pairs oks/errs), so it also has a canonical byte form.
"""

from __future__ import annotations

import msgspec


class SqlError(Exception):
    """A mistake of the user, in PostgreSQL's style: lower case, no full stop.

    sqlstate: five characters. position: 1-based character offset in the statement, or None.
    """

    def __init__(
        self,
        sqlstate: str,
        message: str,
        *,
        detail: str | None = None,
        hint: str | None = None,
        position: int | None = None,
    ) -> None:
        super().__init__(message)
        self.sqlstate = sqlstate
        self.message = message
        self.detail = detail
        self.hint = hint
        self.position = position

    def __repr__(self) -> str:
        return f"SqlError({self.sqlstate!r}, {self.message!r})"


_encoder = msgspec.msgpack.Encoder()


def encode_error(error: SqlError) -> bytes:
    """Canonical bytes of an evaluation error: the row of an errs collection."""
    return _encoder.encode((error.sqlstate, error.message, error.detail, error.hint))


def decode_error(data: bytes) -> SqlError:
    """Inverse of `encode_error`."""
    sqlstate, message, detail, hint = msgspec.msgpack.decode(data)
    return SqlError(sqlstate, message, detail=detail, hint=hint)


def unsupported(what: str, *, position: int | None = None) -> SqlError:
    """The error for a feature that mzlite does not have."""
    return SqlError("0A000", f"{what} not yet supported", position=position)
