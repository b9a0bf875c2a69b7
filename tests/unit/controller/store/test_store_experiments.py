"""Experiments, runs, flows and mode events in a real database: what goes in comes out, whatever else is at work."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine, text

from controller.store.database import open_database
from controller.store.experiments import ExperimentStore, NotFoundError, StateError, flow_columns
from controller.store.listing import PageQuery
from controller.store.models import Base, FlowRecord
from tests.unit.conftest import NewDatabase
from tests.unit.experiments_store import flow_row, new_experiment, recording_row, run_row

ROOT = Path(__file__).resolve().parents[4]
MODE = {"at_s": 0.41, "leaf": "l1", "mode": "on", "cause": "first-packet"}


@pytest.fixture
def store(engine: Engine) -> ExperimentStore:
    return ExperimentStore(engine)


@pytest.fixture(scope="module")
def shared(new_database: NewDatabase) -> Iterator[ExperimentStore]:
    engine = open_database(new_database())
    yield ExperimentStore(engine)
    engine.dispose()


WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\0"))
"""What the API lets through: PostgreSQL keeps no NUL."""


def test_an_experiment_goes_from_running_to_finished_with_all_that_belongs_to_it(
    store: ExperimentStore,
) -> None:
    number = new_experiment(store)
    made = store.experiment(number)
    assert (made["state"], made["summary"], made["finished_at"], made["runs"]) == ("running", None, None, [])
    recording = recording_row()
    row = store.add_run(number, run_row(), [flow_row(1), flow_row(2)], [MODE, MODE], recording=recording)
    assert row["mode_events"] == 2
    assert store.recording(row["id"]) == recording.pop("file")
    assert row["recording"] == recording
    assert store.modes(number, row["id"]) == [{"run": row["id"], **MODE}] * 2
    ended = store.finish(number, "finished", {"best": "caps"})
    assert (ended["state"], ended["summary"]) == ("finished", {"best": "caps"})
    assert ended["finished_at"] >= ended["created_at"]
    again = store.experiment(number)
    assert again["runs"] == [{key: row[key] for key in row if key != "mode_events"}]
    assert again["spec"] == {"name": "one"}


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
    | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=8,
)  # fmt: skip
TYPES: dict[str, st.SearchStrategy[Any]] = {
    "BIGINT": st.integers(-(2**63), 2**63 - 1),
    "DOUBLE": st.floats(allow_nan=False, allow_infinity=False),
    "VARCHAR": WORDS,
    "JSON": st.dictionaries(WORDS, st.integers(0, 2**53), max_size=5),
}
FLOWS = st.fixed_dictionaries(
    {
        column.name: TYPES[str(column.type)] | (st.none() if column.nullable else st.nothing())
        for column in FlowRecord.__table__.columns
        if column.name not in ("id", "run_id")
    }
)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(flow=FLOWS, measures=st.dictionaries(WORDS, JSON_VALUES, max_size=4))
def test_every_column_of_a_flow_and_any_document_come_back_as_they_went_in(
    shared: ExperimentStore, flow: dict[str, Any], measures: dict[str, Any]
) -> None:
    number = new_experiment(shared)
    row = shared.add_run(number, run_row(measures=measures), [flow], [])
    assert shared.experiment(number)["runs"][0]["measures"] == measures
    (kept,) = shared.flows(number, row["id"], 0, 10)
    assert {name: kept[name] for name in flow} == flow


def test_every_table_has_a_model_that_is_written_and_read(engine: Engine, store: ExperimentStore) -> None:
    number = new_experiment(store)
    store.add_run(number, run_row(), [flow_row(1)], [MODE], recording=recording_row())
    store.finish(number, "finished", {"baseline": "caps"})
    with engine.connect() as connection:
        counts = {
            name: connection.execute(text(f"SELECT count(*) FROM {name}")).scalar_one()
            for name in Base.metadata.tables
        }
    assert counts.pop("finished_flows") == counts.pop("jobs") == 0  # stores of their own write them
    once = ("experiments", "compared", "runs", "flows", "mode_events", "recordings")
    assert counts == dict.fromkeys(once, 1)
    assert flow_columns()[:3] == ["id", "run_id", "flow"]


def test_pages_of_flows_are_disjoint_and_complete(store: ExperimentStore) -> None:
    number = new_experiment(store)
    first = store.add_run(number, run_row(0), [flow_row(one) for one in range(1200)], [])
    store.add_run(number, run_row(1), [flow_row(one) for one in range(1200, 2500)], [])
    other = new_experiment(store, "two")
    store.add_run(other, run_row(0), [flow_row(9999)], [])
    seen, after = [], 0
    while page := store.flows(number, None, after, 700):
        seen += page
        after = page[-1]["id"]
    assert [flow["flow"] for flow in seen] == list(range(2500))
    assert [flow["flow"] for flow in store.all_flows(number, first["id"])] == list(range(1200))
    assert [one["id"] for one in store.page(PageQuery(1))[0]] == [other]
    assert [one["id"] for one in store.page(PageQuery(5, before=other))[0]] == [number]


def test_what_is_not_there_is_said(store: ExperimentStore) -> None:
    with pytest.raises(NotFoundError, match="there is no experiment 5"):
        store.experiment(5)
    with pytest.raises(NotFoundError, match="there is no experiment 5"):
        store.add_run(5, run_row(), [], [])
    with pytest.raises(NotFoundError, match="there is no experiment 5"):
        store.finish(5, "failed")
    one, two = new_experiment(store), new_experiment(store, "two")
    row = store.add_run(two, run_row(), [], [])
    with pytest.raises(NotFoundError, match=f"experiment {one} has no run {row['id']}"):
        store.flows(one, row["id"], 0, 10)


def test_an_ended_experiment_takes_nothing_more(store: ExperimentStore) -> None:
    number = new_experiment(store)
    store.add_run(number, run_row(), [], [])
    store.finish(number, "failed", error="a switch died")
    with pytest.raises(StateError, match=f"experiment {number} is failed, not running"):
        store.add_run(number, run_row(1), [flow_row(1)], [])
    with pytest.raises(StateError, match=f"experiment {number} is failed, not running"):
        store.finish(number, "finished")
    assert store.experiment(number)["error"] == "a switch died"


def test_a_run_is_kept_whole_or_not_at_all(store: ExperimentStore) -> None:
    number = new_experiment(store)
    store.add_run(number, run_row(0), [flow_row(1)], [MODE])
    later = {**run_row(0), "started_at": run_row(0)["started_at"] + 1.0}
    with pytest.raises(StateError, match="has repeat 0 of 'caps' already"):
        store.add_run(number, later, [flow_row(2)], [MODE])
    with pytest.raises(KeyError):
        store.add_run(number, run_row(1), [flow_row(one) for one in range(1500)], [{**MODE, "leaf": {}[""]}])
    broken = [*(flow_row(one) for one in range(1500)), flow_row(1500, flow=None)]
    with pytest.raises(StateError):
        store.add_run(number, run_row(1), broken, [MODE])
    assert [flow["flow"] for flow in store.all_flows(number, None)] == [1]
    assert len(store.modes(number, None)) == 1
    assert len(store.experiment(number)["runs"]) == 1


def test_a_run_and_an_end_whose_answers_were_lost_may_be_reported_again(store: ExperimentStore) -> None:
    number = new_experiment(store)
    kept = store.add_run(number, run_row(0), [flow_row(1)], [MODE])
    again = store.add_run(number, run_row(0), [flow_row(1)], [MODE])
    assert (again["id"], again["again"]) == (kept["id"], True)
    assert [flow["flow"] for flow in store.all_flows(number, None)] == [1]
    ended = store.finish(number, "finished", {"best": "caps"})
    assert store.finish(number, "finished", {"best": "caps"}) == ended
    with pytest.raises(StateError, match="is finished, not running"):
        store.finish(number, "finished", {"best": "rps"})


def test_of_many_who_end_an_experiment_one_succeeds(store: ExperimentStore) -> None:
    for _ in range(5):
        number = new_experiment(store)
        start = threading.Barrier(8)

        def end(who: int, number: int = number, start: threading.Barrier = start) -> int | None:
            start.wait()
            try:
                store.finish(number, "failed", error=f"by {who}")
            except StateError:
                return None
            return who

        with ThreadPoolExecutor(8) as pool:
            winners = [who for who in pool.map(end, range(8)) if who is not None]
        assert len(winners) == 1
        assert store.experiment(number)["error"] == f"by {winners[0]}"


@pytest.mark.slow
def test_readers_see_whole_runs_and_do_not_wait_while_others_write(store: ExperimentStore) -> None:
    number = new_experiment(store)
    done = threading.Event()

    def write(who: int) -> None:
        for repeat in range(4):
            flows = [flow_row(one) for one in range(1100)]
            store.add_run(number, run_row(repeat, f"caps-{who}"), flows, [MODE])

    def read(_: int) -> int:
        reads = 0
        while not done.is_set():
            runs = store.experiment(number)["runs"]
            for run in runs[-2:]:
                assert len(list(store.all_flows(number, run["id"]))) == 1100
            reads += 1
        return reads

    with ThreadPoolExecutor(7) as pool:
        readers = [pool.submit(read, one) for one in range(4)]
        try:
            for writer in [pool.submit(write, one) for one in range(3)]:
                writer.result(60)
        finally:
            done.set()
        assert all(reader.result(30) > 0 for reader in readers)
    assert len(store.experiment(number)["runs"]) == 12


@pytest.mark.slow
def test_kill_9_of_the_writer_loses_nothing_that_was_acknowledged(new_database: NewDatabase) -> None:
    url = new_database()
    writer = subprocess.Popen(
        [sys.executable, "-m", "tests.unit.experiments_store", url],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert writer.stdout is not None
    acknowledged = []
    for line in writer.stdout:
        acknowledged.append(line.split())
        if len(acknowledged) == 12:
            os.kill(writer.pid, signal.SIGKILL)
    assert writer.wait(60) == -signal.SIGKILL
    number = int(acknowledged[0][1])
    wanted = [int(one) for what, one in acknowledged if what == "run"]
    assert len(wanted) >= 11

    engine = open_database(url)
    store = ExperimentStore(engine)
    runs = [run["id"] for run in store.experiment(number)["runs"]]
    assert runs[: len(wanted)] == wanted
    for run in runs:  # one more than acknowledged may be there, but no half one
        assert len(store.flows(number, run, 0, 1000)) == 300
        assert len(store.modes(number, run)) == 1
    assert store.add_run(number, run_row(10**6), [flow_row(1)], [])["id"] > runs[-1], "and work goes on"
    if url.startswith("sqlite"):
        with engine.connect() as connection:
            assert connection.execute(text("PRAGMA integrity_check")).scalar_one() == "ok"
    engine.dispose()
