"""What the engine makes of workers, and of what they send, when either is not as it should be."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from controller.store.database import open_database
from controller.store.experiments import ExperimentStore
from controller.store.queue import Claimed, ExperimentQueue
from engine.dispatcher import ELSEWHERE, LOOK_S, Engine
from engine.executors import LocalWorkers, Order, WorkerEnd
from engine.submission import read_submission
from engine.submission_bodies import SubmissionBody
from engine.turns import Kind
from engine.worker_report import WorkerReportBody
from tests.waiting import eventually

ONE: dict[str, Any] = {"preset": "small", "schemes": ["ecmp"], "kind": "simulation"}


class SomeWorkers:
    """Starts nothing: this test decides what becomes of each future, and of the cluster."""

    kind: str = "dask"
    address: str | None = "tcp://127.0.0.1:1"
    on_this_machine: bool = True

    def __init__(self) -> None:
        self.started: list[tuple[Order, Future[WorkerEnd]]] = []
        self.gone = ""
        self.threads = [1]

    def slots(self, kind: Kind) -> int:
        return 0 if self.gone else sum(self.threads)

    def cores(self) -> int:
        return min(self.threads)

    def problem(self) -> str:
        return self.gone

    def start(self, order: Order) -> Future[WorkerEnd]:
        future: Future[WorkerEnd] = Future()
        self.started.append((order, future))
        return future

    def close(self) -> None:
        for _, future in self.started:
            future.cancel()


@pytest.fixture
def workers() -> SomeWorkers:
    return SomeWorkers()


@pytest.fixture
def engine(tmp_path: Path, workers: SomeWorkers) -> Iterator[Engine]:
    database = open_database(f"sqlite:///{tmp_path / 'capstan.db'}")
    ExperimentStore(database)
    engine = Engine(ExperimentQueue(database), workers, lambda event: None, "secret")
    engine.start(Order("", "http://127.0.0.1:9"))
    yield engine
    engine.stop()
    database.dispose()


def submit(engine: Engine, **changes: Any) -> int:
    return engine.submit(read_submission(SubmissionBody(**(ONE | changes))))


def begin(engine: Engine, workers: SomeWorkers) -> tuple[int, Order, Future[WorkerEnd], Claimed]:
    """Submit an experiment, which the first worker that the engine starts claims."""
    number = submit(engine)
    eventually(lambda: len(workers.started) == 1)
    order, future = workers.started[0]
    claimed = engine.claim(f"{order.name}@there:1", "", "simulations")
    assert claimed is not None
    return number, order, future, claimed


def state(engine: Engine, number: int) -> tuple[str, str]:
    top = engine.queue.standing(number)[0]
    return top["state"], top["error"]


SUMMARY: dict[str, Any] = {
    **dict.fromkeys(("started", "seed", "repeats", "baseline", "transport", "versions", "machine")),
    **{"duration_s": 1.0, "cpu_limited": False, "schemes": {}, "claims": []},
}
"""Of a point, with fewer claims than its sweep has."""
CLAIM: dict[str, Any] = {
    "text": "sooner",
    "compare": {"measure": "short-mean", "scheme": "ecmp", "against": "rps", "at_most": 1},
}


@pytest.mark.parametrize("summary", [SUMMARY, {}, SUMMARY | {"claims": 3}, SUMMARY | {"claims": ["one"]}])
def test_points_that_cannot_be_put_together_fail_their_sweep_and_hold_up_no_other(
    engine: Engine, workers: SomeWorkers, summary: dict[str, Any]
) -> None:
    number = submit(engine, sweep={"seed": [1]}, schemes=["ecmp", "rps"], set={"claims": [CLAIM]})
    claimed = engine.claim("other@here:1", "", "simulations")
    assert claimed is not None
    engine.end(claimed.experiment, claimed.attempt, "finished", summary=summary, error="")
    eventually(lambda: state(engine, number)[0] == "failed", lambda: state(engine, number))
    assert "its points cannot be put together" in state(engine, number)[1]
    submit(engine)
    eventually(lambda: len(workers.started) > 0, "another experiment's worker")


def test_a_cluster_that_is_out_of_reach_is_said_and_does_not_stop_the_queue(
    engine: Engine, workers: SomeWorkers
) -> None:
    first, _, future, claimed = begin(engine, workers)
    workers.gone = "no Dask scheduler answers: start it again"
    future.cancel()  # as Dask does when it has lost its scheduler
    second = submit(engine)
    eventually(lambda: engine.state()["paused"] == workers.gone, engine.state)
    assert engine.progress(first).state == "running", "its worker may go on, and reports say so"
    engine.end(claimed.experiment, claimed.attempt, "finished", summary={}, error="")
    workers.gone = ""
    eventually(lambda: len(workers.started) == 2, "a worker for what waits")
    assert engine.state()["paused"] is None
    assert [state(engine, number)[0] for number in (first, second)] == ["finished", "queued"]


def test_a_sweep_that_was_begun_and_has_no_point_at_work_waits(engine: Engine, workers: SomeWorkers) -> None:
    """It was neither among what runs nor among what waits, so nothing was said to be before another submission."""
    workers.gone = "no Dask scheduler answers: start it again"
    number = submit(engine, sweep={"seed": [1, 2]})
    claimed = engine.claim("other@here:1", "", "simulations")
    assert claimed is not None
    said = engine.state()
    assert (said["running"], said["queued"]) == ([number], [])
    engine.end(claimed.experiment, claimed.attempt, "finished", summary={}, error="")
    second = submit(engine)
    said = engine.state()
    assert (said["running"], said["queued"]) == ([], [number, second])


@pytest.mark.parametrize(("threads", "cores"), [([4, 4], 4), ([8, 2, 2], 2), ([1] * 16, 1), ([16], 16)])
def test_a_lone_simulation_has_no_more_cores_than_the_machine_that_it_runs_on(
    engine: Engine, workers: SomeWorkers, threads: list[int], cores: int
) -> None:
    workers.threads = threads
    submit(engine)
    eventually(lambda: len(workers.started) == 1)
    assert workers.started[0][0].cores == cores


def test_a_worker_on_another_machine_takes_no_place_of_this_one(engine: Engine, workers: SomeWorkers) -> None:
    workers.gone = "not yet"
    for _ in range(2):
        submit(engine)
    assert engine.claim("manual@there:1", "", "simulations") is not None
    workers.gone = ""
    eventually(lambda: len(workers.started) == 1)


@pytest.mark.parametrize("worker", ["w-before", f"manual@{socket.gethostname()}:1"])
def test_no_simulation_begins_beside_a_lab_that_another_controller_or_command_started(
    engine: Engine, workers: SomeWorkers, worker: str
) -> None:
    workers.threads, workers.gone = [4], "not yet"
    submit(engine, kind="experiment")
    claim = engine.queue.claim(worker, "", False)
    assert claim is not None
    lab, _ = claim
    submit(engine)
    workers.gone = ""
    eventually(lambda: engine.state()["paused"] is None)
    time.sleep(2 * LOOK_S)
    assert workers.started == []
    engine.end(lab.experiment, lab.attempt, "finished", summary={}, error="")
    eventually(lambda: len(workers.started) == 1)
    submit(engine, kind="experiment")
    if worker == "w-before":
        assert engine.claim(worker, "", "labs") is None, "a simulation of ours begins"


def test_a_worker_that_simulates_is_none_for_labs(tmp_path: Path) -> None:
    database = open_database(f"sqlite:///{tmp_path / 'capstan.db'}")
    ExperimentStore(database)
    engine = Engine(ExperimentQueue(database), LocalWorkers(0, 0), lambda event: None, "secret")
    submit(engine)
    assert engine.claim("sim@there:1", "", "simulations") is not None
    submit(engine, kind="experiment")
    assert engine.state()["workers"] == 0
    assert "no worker of this controller takes labs" in str(engine.state()["paused"])
    database.dispose()


def test_what_workers_of_a_cluster_are_at_is_theirs_when_the_controller_ends(
    engine: Engine, workers: SomeWorkers
) -> None:
    number, *_ = begin(engine, workers)
    engine.stop()
    assert state(engine, number)[0] == "running", "the next controller finds it at work"


def test_the_time_of_a_sweep_counts_from_when_it_goes_on_with_the_next_controller(
    engine: Engine, workers: SomeWorkers
) -> None:
    """Its only point at work finishes as this controller ends."""
    number = submit(engine, sweep={"seed": [1, 2]})
    claimed = engine.claim("other@here:1", "", "simulations")
    assert claimed is not None
    engine.stop()
    engine.end(claimed.experiment, claimed.attempt, "finished", summary={}, error="")
    assert engine.queue.standing(number)[0]["started_at"] is None


def test_a_worker_that_dask_began_anew_elsewhere_is_not_at_what_it_had_before(
    engine: Engine, workers: SomeWorkers
) -> None:
    first, order, _, before = begin(engine, workers)
    second = submit(engine)
    claimed = engine.claim(f"{order.name}@elsewhere:9", "", "simulations")
    assert claimed is not None
    assert (before.experiment, claimed.experiment) == (first, second)
    assert state(engine, first) == ("interrupted", "its worker ended, and was started again")
    assert state(engine, second)[0] == "running"


@pytest.mark.slow
def test_of_two_controllers_with_one_database_only_the_first_runs_its_queue(
    tmp_path: Path, engine: Engine, workers: SomeWorkers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.progress.LEASE_S", 4.0)
    first = submit(engine)
    eventually(lambda: len(workers.started) == 1)
    claimed = engine.claim("other@here:1", "", "simulations")
    assert claimed is not None
    database = open_database(f"sqlite:///{tmp_path / 'capstan.db'}")
    other = Engine(ExperimentQueue(database), SomeWorkers(), lambda event: None, "secret")
    other.start(Order("", "http://127.0.0.1:8"))
    report = WorkerReportBody(stage="ecmp", attempt=1, worker="other@here:1")
    try:
        for _ in range(50):  # longer than the lease
            assert engine.report(first, report), "the other controller has no report, and gives nothing up"
            time.sleep(0.1)
        second = submit(other)
        assert other.claim("more@here:2", "", "simulations") is None
        said = other.state()
        assert (said["queued"], said["paused"]) == ([], ELSEWHERE)
        engine.end(first, 1, "finished", summary={}, error="")
        assert engine.state()["queued"] == [second]
        engine.stop()
        eventually(lambda: other.state()["queued"] == [second], other.state)
        assert other.claim("more@here:2", "", "simulations") is not None
    finally:
        other.stop()
        database.dispose()
