"""TLS: accepted with a certificate, refused politely without one."""

from __future__ import annotations

import shutil
import socket
import ssl
import struct
import subprocess
from pathlib import Path

import psycopg
import pytest

from tests.support.mzlite_server import Server, running

SSL_REQUEST = struct.pack("!ii", 8, 80877103)
GSS_REQUEST = struct.pack("!ii", 8, 80877104)


def test_without_a_certificate_the_server_says_no(mzlite_server: Server) -> None:
    with socket.create_connection(("127.0.0.1", mzlite_server.port), timeout=10) as s:
        s.sendall(GSS_REQUEST)
        assert s.recv(1) == b"N"
        s.sendall(SSL_REQUEST)
        assert s.recv(1) == b"N"
    with mzlite_server.connect(sslmode="prefer") as conn:
        assert conn.execute("SELECT 1").fetchone() == (1,)
    with pytest.raises(psycopg.OperationalError, match="SSL"):
        mzlite_server.connect(sslmode="require")


def test_with_a_certificate(tmp_path: Path) -> None:
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("there is no openssl to make a certificate with")
    key, cert = tmp_path / "key.pem", tmp_path / "cert.pem"
    subprocess.run(
        [openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key, "-out",
         cert, "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"],
        check=True,
        capture_output=True,
    )  # fmt: skip
    with running("--tls-cert", str(cert), "--tls-key", str(key)) as server:
        with server.connect(sslmode="verify-full", sslrootcert=str(cert)) as conn:
            assert conn.pgconn.ssl_in_use
            assert conn.execute("SELECT length(repeat('x', 3000000)), repeat('y', 200000)").fetchone() == (
                3000000,
                "y" * 200000,
            )
            conn.cancel()
        with server.connect(sslmode="disable") as conn:
            assert conn.execute("SELECT 1").fetchone() == (1,)
        # Bytes sent along with the request, before encryption, are an injection attempt: refused.
        with socket.create_connection(("127.0.0.1", server.port), timeout=10) as s:
            s.sendall(SSL_REQUEST + struct.pack("!i", 8) + b"junk")
            assert s.recv(200).startswith(b"E")
        # Somebody who does not speak TLS after all.
        with socket.create_connection(("127.0.0.1", server.port), timeout=10) as s:
            s.sendall(SSL_REQUEST)
            assert s.recv(1) == b"S"
            s.sendall(b"GET / HTTP/1.0\r\n\r\n")
        with pytest.raises(ssl.SSLError), socket.create_connection(("127.0.0.1", server.port), timeout=10) as s:
            s.sendall(SSL_REQUEST)
            assert s.recv(1) == b"S"
            ssl.create_default_context().wrap_socket(s, server_hostname="other")
        with server.connect(sslmode="require") as conn:
            assert conn.execute("SELECT 1").fetchone() == (1,)


def test_a_certificate_that_cannot_be_read(tmp_path: Path) -> None:
    import sys

    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "mzlite",
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--tls-cert",
            "no.pem",
            "--tls-key",
            "no.pem",
        ],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1 and "cannot use the TLS certificate" in done.stderr and "Traceback" not in done.stderr
