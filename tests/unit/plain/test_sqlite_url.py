"""Databases in directories of any name."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sqlalchemy import make_url

from controller.store.database import open_database
from plain.sqlite_url import sqlite_url

NAMES = st.text(st.characters(blacklist_characters="/\0", codec="utf-8"), min_size=1).filter(
    lambda name: name not in (".", "..")
)


@given(NAMES)
@example("a%20b")
@example("what?")
@example("a?b=c&d#e %")
@example("50 %25")
def test_the_url_of_a_file_is_of_that_file(name: str) -> None:
    file = Path("/results") / name / "capstan.db"
    url = make_url(sqlite_url(file))
    assert (url.database, dict(url.query)) == (str(file), {})


@pytest.mark.parametrize("name", ["a%20b", "what?", "größe 中文 #1"])
def test_a_database_is_where_its_directory_is(tmp_path: Path, name: str) -> None:
    file = tmp_path / name / "capstan.db"
    open_database(sqlite_url(file)).dispose()
    assert file.is_file()
    assert [path.name for path in tmp_path.iterdir()] == [name]
