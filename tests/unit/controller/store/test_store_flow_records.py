"""Pages of flow records against a plain sort of all of them, and what is let go by age: on both kinds of database."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine, func, select, update
from sqlalchemy.exc import IntegrityError

from benchmarks.store import run as bench
from controller.store import flow_records
from controller.store.database import open_database
from controller.store.experiments import ExperimentStore
from controller.store.flow_records import forget_flows, insert_flows, page_of_flows
from controller.store.models import Experiment, FlowRecord, ModeEvent, Run
from controller.store.retention import DAY_S, CautiousClock, Retention
from tests.unit.conftest import NewDatabase
from tests.unit.experiments_store import flow_row, new_experiment, recording_row, run_row
from tests.waiting import eventually

MODE = {"at_s": 0.41, "leaf": "l1", "mode": "on", "cause": "first-packet"}


@pytest.fixture(scope="module")
def engine(new_database: NewDatabase) -> Iterator[Engine]:
    engine = open_database(new_database())
    yield engine
    engine.dispose()


@pytest.fixture(scope="module")
def store(engine: Engine) -> ExperimentStore:
    return ExperimentStore(engine)


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(
    pieces=st.lists(st.tuples(st.integers(0, 3), st.integers(1, 7)), min_size=1, max_size=8),
    page=st.integers(1, 9),
)
def test_pages_are_those_of_all_records_in_order_however_runs_are_mixed(
    engine: Engine, store: ExperimentStore, pieces: list[tuple[int, int]], page: int
) -> None:
    """Pieces of runs by turns, as two who write at once would leave them; a run may have none."""
    number = new_experiment(store)
    runs = [store.add_run(number, run_row(repeat), [], [])["id"] for repeat in range(4)]
    with engine.begin() as connection:
        before = connection.scalar(select(func.max(FlowRecord.id))) or 0
        for run, count in pieces:
            insert_flows(connection, runs[run], [flow_row(one) for one in range(count)])
    with engine.connect() as connection:
        every = connection.execute(
            select(FlowRecord.id, FlowRecord.run_id).where(FlowRecord.id > before).order_by(FlowRecord.id)
        ).all()
        for wanted in (runs, runs[:1], [runs[1], runs[3]]):
            seen: list[tuple[int, int]] = []
            after = 0
            while found := page_of_flows(connection, wanted, after, page):
                assert len(found) <= page
                seen += [(row["id"], row["run_id"]) for row in found]
                after = found[-1]["id"]
            assert seen == [(one, run) for one, run in every if run in wanted]


def test_a_record_that_lacks_something_keeps_none_of_its_run(engine: Engine, store: ExperimentStore) -> None:
    number = new_experiment(store)
    run = store.add_run(number, run_row(), [], [])["id"]
    with pytest.raises(IntegrityError), engine.begin() as connection:
        insert_flows(connection, run, [flow_row(1), flow_row(2, source=None)])
    assert store.flows(number, run, 0, 10) == []


def test_old_records_go_and_results_stay(new_database: NewDatabase) -> None:
    engine = open_database(new_database())
    store = ExperimentStore(engine)
    old, new, running = (new_experiment(store, name) for name in ("old", "new", "running"))
    for number in (old, new, running):
        store.add_run(
            number, run_row(), [flow_row(one) for one in range(30)], [MODE], recording=recording_row()
        )
    for number in (old, new):
        store.finish(number, "finished", {"best": "caps"})
    with engine.begin() as connection:
        long_ago = update(Experiment).where(Experiment.id == old)
        connection.execute(long_ago.values(finished_at=time.time() - 3 * DAY_S))
    keeping = Retention(engine, 2.0)
    keeping.start()
    eventually(
        lambda: not (store.flows(old, None, 0, 1) or store.modes(old, None)), "old records are let go of"
    )
    keeping.stop()
    for number in (new, running):
        assert len(store.flows(number, None, 0, 100)) == 30
        assert len(store.modes(number, None)) == 1
        (run,) = store.experiment(number)["runs"]
        assert store.recording(run["id"]) == recording_row()["file"]
    assert store.experiment(old)["summary"] == {"best": "caps"}
    (run,) = store.experiment(old)["runs"]
    assert run["recording"] is None
    assert store.recording(run["id"]) is None
    assert forget_flows(engine, time.time() + 1) == 30, "and never those of an experiment that runs"
    with engine.connect() as connection:
        assert set(connection.scalars(select(FlowRecord.run_id))) == set(
            connection.scalars(select(Run.id).where(Run.experiment_id == running))
        )
        assert connection.scalar(select(func.count(ModeEvent.id))) == 1
    engine.dispose()


@given(st.lists(st.tuples(st.floats(0, 1e5), st.floats(-1e7, 1e7)), min_size=1, max_size=20))
def test_a_clock_that_jumps_forward_makes_nothing_old(steps: list[tuple[float, float]]) -> None:
    steady, jumps = 1000.0, 0.0
    clock = CautiousClock(5e8 + steady, steady)
    for passed, jump in steps:
        steady, jumps = steady + passed, jumps + jump
        now = clock.now(5e8 + steady + jumps, steady)
        assert now <= 5e8 + steady + 1e-3
        assert now <= 5e8 + steady + jumps


def test_retention_lets_nothing_go_for_a_jump_of_the_clock(
    new_database: NewDatabase, caplog: pytest.LogCaptureFixture
) -> None:
    engine = open_database(new_database())
    store = ExperimentStore(engine)
    number = new_experiment(store)
    store.add_run(number, run_row(0), [flow_row(one) for one in range(30)], [])
    store.finish(number, "finished", {}, "")
    jumped = threading.Event()
    keeping = Retention(engine, 2.0, lambda: time.time() + (400 * DAY_S if jumped.is_set() else 0.0), 0.01)
    keeping.start()
    jumped.set()
    eventually(lambda: caplog.text.count("jumped forward") > 2, "it has looked again")
    keeping.stop()
    assert len(store.flows(number, None, 0, 100)) == 30
    engine.dispose()


def test_what_is_to_end_leaves_the_rest_of_old_records(
    new_database: NewDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A controller that ended waited until all had gone, of which there may be millions."""
    monkeypatch.setattr(flow_records, "_GOING", 10)
    engine = open_database(new_database())
    store = ExperimentStore(engine)
    number = new_experiment(store)
    store.add_run(number, run_row(0), [flow_row(one) for one in range(30)], [])
    store.finish(number, "finished", {}, "")
    answers = iter((False, False, True))
    assert forget_flows(engine, time.time() + 1, lambda: next(answers)) == 20
    assert len(store.flows(number, None, 0, 100)) == 10
    assert forget_flows(engine, time.time() + 1) == 10
    engine.dispose()


def test_the_benchmark_measures_a_small_database() -> None:
    figures = bench(records=3000, of_a_run=100, pages=5)["figures"]
    assert figures["kept"]["unit"] == "records/s"
    assert set(figures) >= {"page_of_experiment_p99", "page_of_run_p99", "size"}
    assert all(one["value"] > 0 for one in figures.values())
