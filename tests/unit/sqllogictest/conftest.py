"""Fixtures: a running fake server, and the factory that starts one."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sqllogictest.server import Server
from sqllogictest.subprocess_server import Subprocess

FAKE_SERVER = Path(__file__).with_name("fake_server.py")


@pytest.fixture
def factory() -> Subprocess:
    return Subprocess((sys.executable, str(FAKE_SERVER)))


@pytest.fixture
def server(factory: Subprocess) -> Iterator[Server]:
    server = factory.start()
    yield server
    server.stop()
