"""An empty database for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import Engine

from controller.store.database import open_database
from tests.unit.conftest import NewDatabase


@pytest.fixture
def engine(new_database: NewDatabase) -> Iterator[Engine]:
    engine = open_database(new_database())
    yield engine
    engine.dispose()
