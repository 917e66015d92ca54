"""A server that speaks just enough of the PostgreSQL protocol to be a test's counterpart; no database behind it.

Run as a script it is what `Subprocess` starts: it listens on a free port and prints its address. What it answers depends
on the SQL alone:

    SELECT n, 'text'     one row of int4 and text
    hang                 never answers
    die                  ends the process with status 3
    hang up              closes the connection
    fail                 an error with detail and hint
    anything else        success; the tag is the number of statements this process has seen
"""

from __future__ import annotations

import os
import re
import socket
import struct
import sys
import threading

_VALUE = re.compile(r"\s*(?:(-?\d+)|'([^']*)')\s*")
_seen = 0


def _message(tag: bytes, body: bytes = b"") -> bytes:
    return tag + struct.pack("!i", len(body) + 4) + body


def _error(message: str) -> bytes:
    fields = b"SERROR\0C22012\0M" + message.encode() + b"\0Dthe detail\0Hthe hint\0\0"
    return _message(b"E", fields)


def _answer(sql: str, binary: bool) -> bytes:
    global _seen
    _seen += 1
    command = sql.strip().rstrip(";").strip()
    if command == "hang":
        threading.Event().wait()
    if command == "die":
        print("these are my last words", flush=True)
        os._exit(3)
    if command == "hang up":
        raise ConnectionResetError
    if command == "fail":
        return _error("division by zero")
    if command.startswith("SELECT ") and "FROM" not in command and "(" not in command:
        cells = [_VALUE.fullmatch(cell) for cell in command[7:].split(",")]
        head, row = struct.pack("!h", len(cells)), struct.pack("!h", len(cells))
        for i, cell in enumerate(cells):
            assert cell is not None, command
            number, text = cell.groups()
            oid = 23 if number else 25
            head += f"c{i + 1}".encode() + b"\0" + struct.pack("!ihihih", 0, 0, oid, 4, -1, int(binary))
            data = struct.pack("!i", int(number)) if number and binary else (number or text).encode()
            row += struct.pack("!i", len(data)) + data
        return _message(b"T", head) + _message(b"D", row) + _message(b"C", b"SELECT 1\0")
    if command.startswith("SELECT"):
        names = ["c"] * (3 if "mz_clusters" in command else 1)
        head = struct.pack("!h", len(names))
        for name in names:
            head += name.encode() + b"\0" + struct.pack("!ihihih", 0, 0, 25, -1, -1, int(binary))
        return _message(b"T", head) + _message(b"C", b"SELECT 0\0")
    return _message(b"C", f"DO {_seen}".encode() + b"\0")


def _read(sock: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = sock.recv(size - len(data))
        if not more:
            raise ConnectionResetError
        data += more
    return data


def _startup(sock: socket.socket) -> None:
    while True:
        size = struct.unpack("!i", _read(sock, 4))[0]
        code = struct.unpack("!i", _read(sock, size - 4)[:4])[0]
        if code == 196608:
            break
        sock.sendall(b"N")
    status = b"".join(
        _message(b"S", pair) for pair in (b"server_version\x0015.0\0", b"client_encoding\0UTF8\0", b"TimeZone\0UTC\0")
    )
    sock.sendall(_message(b"R", struct.pack("!i", 0)) + status + _message(b"Z", b"I"))


def _serve(sock: socket.socket) -> None:
    sql = ""
    try:
        _startup(sock)
        while True:
            tag = _read(sock, 1)
            body = _read(sock, struct.unpack("!i", _read(sock, 4))[0] - 4)
            match tag:
                case b"Q":
                    out = b""
                    for part in body[:-1].decode().split(";"):
                        if part.strip():
                            out += _answer(part, False)
                            if out.startswith(b"E") or b"SERROR" in out:
                                break
                    sock.sendall(out + _message(b"Z", b"I"))
                case b"P":
                    sql = body.split(b"\0")[1].decode()
                case b"S":
                    answer = _answer(sql, True)
                    ok = b"" if answer.startswith(b"E") else _message(b"1") + _message(b"2")
                    sock.sendall(ok + answer + _message(b"Z", b"I"))
                case b"X":
                    return
                case _:
                    pass
    except OSError:
        return
    finally:
        sock.close()


def main() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    if "--silent" in sys.argv:
        return
    print(f"ready on postgres://anyone@127.0.0.1:{listener.getsockname()[1]}/materialize", flush=True)
    while True:
        sock, _ = listener.accept()
        threading.Thread(target=_serve, args=(sock,), daemon=True).start()


if __name__ == "__main__":
    main()
