"""A controller without switches, whose API the tests of a file ask."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.unit.api_world import World, api_world


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with api_world(tmp_path_factory.mktemp("api")) as made:
        yield made
