"""Lists of experiments read what they show, and no more than a page's bytes: each summary may have 64 MiB."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import Engine, create_engine, event, text

from controller.store import listing
from controller.store.database import migrate, open_database
from controller.store.experiments import ExperimentStore
from controller.store.listing import PageQuery
from controller.store.models import COMPARED, MOST_COMPARED_BYTES, compared_part
from tests.unit.conftest import NewDatabase
from tests.unit.experiments_store import new_experiment

SUMMARY = {"schemes": {"caps": {"short": 1.5}}, "cpu_limited": True, "baseline": "caps", "runs": ["x" * 100]}


def test_no_summary_is_read_for_a_list(engine: Engine) -> None:
    store = ExperimentStore(engine)
    number = new_experiment(store)
    running = new_experiment(store)
    store.finish(number, "finished", SUMMARY)
    asked: list[str] = []
    event.listen(engine, "before_cursor_execute", lambda *given: asked.append(given[2]))
    listed = store.page(PageQuery(10))[0]
    assert store.children(number) == []
    assert not [statement for statement in asked if "summary" in statement]
    assert [one["id"] for one in listed] == [running, number]
    assert listed[0]["summary"] is None
    assert listed[1]["summary"] == {name: SUMMARY[name] for name in COMPARED if name in SUMMARY}
    assert store.experiment(number)["summary"] == SUMMARY


def test_what_is_compared_is_small_whatever_a_summary_has() -> None:
    large = "x" * MOST_COMPARED_BYTES
    assert compared_part({"schemes": {"caps": large}, "cpu_limited": False}) == {"cpu_limited": False}
    assert compared_part({"other": large}) == {}
    assert compared_part(None) is None


def test_a_page_has_a_number_of_bytes_and_pages_together_have_all(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "MOST_LISTED_BYTES", 3000)
    store = ExperimentStore(engine)
    made = [
        store.create("one", 1, {"text": "x" * size}, versions={}, machine={})["id"]
        for size in (10, 900, 900, 900, 9000, 10, 10)
    ]
    pages: list[list[int]] = []
    before: int | None = None
    while True:
        rows, before = store.page(PageQuery(3, before=before))
        pages.append([row["id"] for row in rows])
        assert sum(len(row["spec"]["text"]) for row in rows) < 3000 or len(rows) == 1
        if before is None:
            break
    assert [number for page in pages for number in page] == made[::-1]
    assert pages[:2] == [[made[6], made[5]], [made[4]]]


def test_lists_of_an_older_database_show_the_same(new_database: NewDatabase) -> None:
    url = new_database()
    old = create_engine(url)
    migrate(old, "0006")
    with old.begin() as connection:
        for name, summary in (("a", '{"cpu_limited": true, "runs": []}'), ("b", "null")):
            columns: dict[str, Any] = {"name": name, "summary": summary}
            connection.execute(
                text(
                    "INSERT INTO experiments (name, seed, spec, versions, machine, state, error, summary, created_at) "
                    "VALUES (:name, 1, '{}', '{}', '{}', 'finished', '', :summary, 1.0)"
                ),
                columns,
            )
    old.dispose()
    engine = open_database(url)
    assert [one["summary"] for one in ExperimentStore(engine).page(PageQuery(9))[0]] == [
        None,
        {"cpu_limited": True},
    ]
    engine.dispose()
