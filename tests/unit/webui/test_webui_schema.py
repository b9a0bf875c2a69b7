"""The page's types of the API's answers against the API's document."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.api_world import api_world
from tests.unit.webui_schema import SCHEMA, generated


@pytest.mark.slow
def test_the_pages_types_are_those_of_the_document(tmp_path: Path) -> None:
    with api_world(tmp_path) as world:
        wanted = generated(world.document)
    assert "export type FabricView = " in wanted
    assert SCHEMA.read_text() == wanted, "make them anew: .venv/bin/python -m tests.unit.webui_schema"
