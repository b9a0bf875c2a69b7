"""Databases for tests of the store: a file of SQLite, and a database of a real PostgreSQL server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.unit.postgresql import Server, postgresql_server

KINDS = ("sqlite", "postgresql")
NewDatabase = Callable[[], str]
"""Gives the URL of an empty database, another each time."""


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Server]:
    with postgresql_server() as server:
        yield server


@pytest.fixture(scope="module", params=KINDS)
def new_database(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> NewDatabase:
    """Return a function that makes a new database and returns its URL; tests that take it run once for each kind."""
    if request.param == "postgresql":
        server: Server = request.getfixturevalue("postgresql")
        return server.new

    def file() -> str:
        directory: Path = tmp_path_factory.mktemp("database")
        return f"sqlite:///{directory / 'capstan.db'}"

    return file
