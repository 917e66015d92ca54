"""The PostgreSQL wire protocol, version 3.

    frontend.py    bytes from a client -> messages (no I/O; a decoder that can be fuzzed)
    backend.py     answers -> bytes
    rows.py        columns of a result -> DataRow messages, text or binary by column
    connection.py  one client: the message loop over a session
    server.py      listening, TLS, cancel requests

A message travels: socket -> `FrontendDecoder.feed` -> `Connection` (a `match` over messages) -> `Session` of the adapter
-> result -> `rows`/`backend` -> socket.
"""
