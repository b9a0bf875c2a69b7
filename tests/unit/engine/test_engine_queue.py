"""The queue in the database: every experiment is run once, a sweep's state follows from its points', and kill -9
at any moment loses nothing that was kept."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.store.database import open_database
from controller.store.experiments import ExperimentStore, NotFoundError, StateError
from controller.store.queue import ExperimentQueue, NewJob
from controller.store.queue_rows import ACTIVE, AGAIN, sweep_state
from engine.progress import WorkerReports
from tests.unit.conftest import NewDatabase
from tests.unit.experiments_store import flow_row, run_row

ROOT = Path(__file__).resolve().parents[3]
OVER = ("finished", *AGAIN)
POINT_STATES = ("queued", *ACTIVE, *OVER)


def job(name: str = "one", fabric: str = "", **changes: Any) -> NewJob:
    reported = {"title": name.title(), "seed": 1, "spec": {"name": name}, "text": f"name: {name}\n"}
    return NewJob(name=name, runs=2, estimated_s=10.0, fabric=fabric, **reported, **changes)


def sweep_of(queue: ExperimentQueue, *fabrics: str) -> int:
    points = [job(f"p{n}", fabric, at=(n,), words=f"n = {n}") for n, fabric in enumerate(fabrics)]
    return queue.submit(job("sweep"), points)


@pytest.fixture
def url(new_database: NewDatabase) -> str:
    return new_database()


@pytest.fixture
def queue(url: str) -> Iterator[ExperimentQueue]:
    engine = open_database(url)
    yield ExperimentQueue(engine)
    engine.dispose()


def claim(queue: ExperimentQueue, worker: str = "w", fabric: str = "") -> tuple[int, int]:
    found = queue.claim(worker, fabric)
    assert found is not None
    return found[0].experiment, found[0].attempt


def states(queue: ExperimentQueue, number: int) -> list[str]:
    return [row["state"] for row in queue.standing(number)]


def test_first_come_first_served_and_points_of_a_lab_that_is_up_come_first(queue: ExperimentQueue) -> None:
    first, second = sweep_of(queue, "a", "b", "a"), queue.submit(job())
    assert queue.waiting() == (4, [first, second])
    assert claim(queue) == (first + 1, 1)
    assert queue.waiting() == (3, [second]), "the sweep is at work"
    assert claim(queue, "v", "a") == (first + 3, 1)
    assert claim(queue, "v", "a") == (first + 2, 1)
    assert claim(queue, "v", "b") == (second, 1)
    assert queue.claim("v") is None


def test_many_workers_at_once_get_each_experiment_once(queue: ExperimentQueue) -> None:
    sweep_of(queue, *"abcdefghijklmnop")
    for _ in range(8):
        queue.submit(job())
    start = threading.Barrier(8)

    def take(who: int) -> list[int]:
        start.wait()
        mine = []
        while (found := queue.claim(f"w{who}")) is not None:
            mine.append(found[0].experiment)
        return mine

    with ThreadPoolExecutor(8) as pool:
        taken = [number for mine in pool.map(take, range(8)) for number in mine]
    assert len(taken) == len(set(taken)) == 24


def test_a_sweep_is_put_together_when_its_last_point_has_finished(queue: ExperimentQueue) -> None:
    number = sweep_of(queue, "a", "a")
    for index in range(2):
        assert queue.whole() == []
        point, attempt = claim(queue)
        queue.end(point, attempt, "finished", summary={"index": index})
    assert states(queue, number) == ["running", "finished", "finished"]
    assert queue.whole() == [(number, {"name": "sweep"}, [([0], {"index": 0}), ([1], {"index": 1})])]
    [change] = queue.complete(number, {"kind": "sweep"})
    assert (change.experiment, change.state) == (number, "finished")
    assert queue.whole() == queue.complete(number, {"kind": "sweep"}) == []


@pytest.mark.parametrize("again", ["rerun", "requeued"])
def test_the_time_of_an_attempt_counts_from_its_own_begin(queue: ExperimentQueue, again: str) -> None:
    number = queue.submit(job())
    attempt = claim(queue)
    begun = queue.standing(number)[0]["started_at"]
    if again == "rerun":
        queue.end(*attempt, "failed", error="why")
        queue.rerun(number)
    else:
        queue.end(*attempt, "queued")
    assert queue.standing(number)[0]["started_at"] is None
    claim(queue)
    assert queue.standing(number)[0]["started_at"] > begun


def test_a_sweep_that_is_run_again_counts_from_then(queue: ExperimentQueue) -> None:
    number = sweep_of(queue, "a", "a")
    queue.end(*claim(queue), "finished", summary={})
    queue.end(*claim(queue), "failed", error="why")
    begun = queue.standing(number)[0]["started_at"]
    queue.rerun(number)
    claim(queue)
    sweep, finished, _ = queue.standing(number)
    assert sweep["started_at"] > begun
    progress = WorkerReports(0.0).progress([sweep, finished], [], 1, sweep["started_at"] + 5)
    assert progress.elapsed_s == pytest.approx(5, abs=1e-3)


def test_a_sweep_that_stood_still_counts_from_when_it_goes_on(queue: ExperimentQueue) -> None:
    number = sweep_of(queue, "a", "a", "a")
    queue.end(*claim(queue), "finished", summary={})
    first, second = claim(queue), claim(queue)
    begun = queue.standing(number)[0]["started_at"]
    queue.end(*first, "queued")
    assert queue.standing(number)[0]["started_at"] == begun, "another point is at work"
    queue.end(*second, "queued")
    assert queue.standing(number)[0]["started_at"] is None
    again = claim(queue)
    went_on = queue.standing(number)[0]["started_at"]
    assert went_on > begun
    queue.end(*again, "finished", summary={})
    claim(queue)
    assert queue.standing(number)[0]["started_at"] == went_on


@pytest.mark.parametrize("put_back", [True, False])
def test_a_sweep_whose_last_point_at_work_finishes_while_the_controller_ends_stands_still(
    queue: ExperimentQueue, put_back: bool
) -> None:
    number = sweep_of(queue, "a", "a", "a")
    first, last = claim(queue), claim(queue)
    begun = queue.standing(number)[0]["started_at"]
    if put_back:
        queue.end(*first, "queued", stopping=True)
    else:
        queue.end(*first, "finished", summary={}, stopping=True)
    assert queue.standing(number)[0]["started_at"] == begun, "another point is at work"
    queue.end(*last, "finished", summary={}, stopping=True)
    assert queue.standing(number)[0]["started_at"] is None
    claim(queue)
    assert queue.standing(number)[0]["started_at"] > begun


def test_a_sweep_that_is_done_as_the_controller_ends_keeps_its_time(queue: ExperimentQueue) -> None:
    number = sweep_of(queue, "a")
    only = claim(queue)
    begun = queue.standing(number)[0]["started_at"]
    queue.end(*only, "finished", summary={}, stopping=True)
    assert queue.standing(number)[0]["started_at"] == begun


def test_what_failed_is_run_again_and_what_finished_is_not(queue: ExperimentQueue) -> None:
    number = sweep_of(queue, "a", "a", "a")
    for index, state in enumerate(("finished", "failed", "interrupted")):
        queue.end(
            *claim(queue),
            state,  # type: ignore[arg-type]
            summary={} if state == "finished" else None,
            error="" if index == 0 else "it burnt",
        )
    assert states(queue, number) == ["failed", "finished", "failed", "interrupted"]
    top = queue.standing(number)[0]
    assert top["error"] == "2 of 3 points did not finish; n = 1: it burnt"
    queue.rerun(number)
    assert states(queue, number) == ["queued", "finished", "queued", "queued"]
    assert [claim(queue), claim(queue)] == [(number + 2, 2), (number + 3, 2)]
    with pytest.raises(StateError, match="is running: only one that is failed"):
        queue.rerun(number)


def test_cancelling_ends_what_waits_and_informs_what_runs(queue: ExperimentQueue) -> None:
    number, other = sweep_of(queue, "a", "a", "a"), queue.submit(job())
    done, running = claim(queue), claim(queue)
    queue.end(*done, "finished", summary={})
    assert queue.going_on(*running)
    queue.cancel(number)
    assert states(queue, number) == ["cancelling", "finished", "cancelling", "cancelled"]
    assert not queue.going_on(*running)
    queue.end(*running, "interrupted", error="it was asked to stop")
    assert states(queue, number) == ["cancelled", "finished", "cancelled", "cancelled"]
    with pytest.raises(StateError, match="nothing is left to cancel"):
        queue.cancel(number)
    with pytest.raises(StateError, match=f"is a point of sweep {number}"):
        queue.cancel(number + 1)
    queue.cancel(other)
    assert states(queue, other) == ["cancelled"]
    assert queue.claim("w") is None


def test_a_worker_that_was_given_up_changes_nothing_any_more(queue: ExperimentQueue, url: str) -> None:
    engine = open_database(url)
    store = ExperimentStore(engine)
    number = queue.submit(job())
    old = claim(queue)
    queue.end(*old, "interrupted", error="silence")
    queue.rerun(number)
    new = claim(queue)
    assert new == (number, 2)
    assert not queue.going_on(*old)
    with pytest.raises(StateError, match="attempt 1 of experiment 1 is over"):
        queue.end(*old, "finished", summary={})
    with pytest.raises(StateError, match="in attempt 2"):
        store.add_run(number, run_row(), [], [], attempt=1)
    with pytest.raises(StateError, match="in attempt 2"):
        store.add_run(number, run_row(), [], [])
    with pytest.raises(StateError, match=r"its worker ends it; cancel it instead$") as refused:
        store.finish(number, "finished", {})
    assert refused.value.remedy == "cancel it instead"
    kept = store.add_run(number, run_row(), [flow_row(1)], [], attempt=2)
    assert store.add_run(number, run_row(), [flow_row(1)], [], attempt=2)["id"] == kept["id"], "sent twice"
    with pytest.raises(StateError, match="already"):
        store.add_run(number, run_row(started_at=1.0), [], [], attempt=2)
    with pytest.raises(NotFoundError):
        queue.going_on(99, 1)
    engine.dispose()


@given(st.lists(st.sampled_from(POINT_STATES), min_size=1, max_size=5), st.sampled_from(POINT_STATES))
def test_a_sweep_is_over_when_all_its_points_are(points: list[str], now: str) -> None:
    state = sweep_state(now, points, True)
    if set(points) & {"queued", *ACTIVE}:
        assert state in ACTIVE
    elif set(points) == {"finished"}:
        assert state in ("running", "cancelled")
    else:
        assert state in AGAIN


@pytest.mark.slow
def test_killed_at_any_moment_nothing_that_was_kept_is_lost(url: str) -> None:
    """A program that works the queue off is killed again and again; what it has reported is there afterwards."""
    engine = open_database(url)
    queue, store = ExperimentQueue(engine), ExperimentStore(engine)
    number = sweep_of(queue, *"aaaaaaaaaaaa")
    rng = random.Random(7)
    kept: set[int] = set()
    finished: set[int] = set()
    for _ in range(5):
        program = subprocess.Popen(
            [sys.executable, "-m", "tests.unit.queue_worker", url],
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        assert program.stdout is not None
        reported = [program.stdout.readline() for _ in range(rng.randrange(1, 9))]
        program.send_signal(signal.SIGKILL)
        program.wait()
        for line in [*reported, *program.stdout]:
            if not line.endswith("\n"):
                continue
            what, _, value = line.partition(" ")
            (finished if what == "finished" else kept).add(int(value))
        program.stdout.close()
        for job in queue.active():
            queue.end(job.experiment, job.attempt, "interrupted", error="killed")
        if states(queue, number)[0] in AGAIN:
            queue.rerun(number)
    rows = queue.standing(number)[1:]
    assert finished
    assert finished <= {row["id"] for row in rows if row["state"] == "finished"}
    runs = [run for row in rows for run in store.experiment(row["id"])["runs"]]
    assert kept <= {run["id"] for run in runs}
    assert all(len(list(store.all_flows(run["experiment_id"], run["id"]))) == 50 for run in runs), "whole"
    assert all(row["runs_kept"] == 2 for row in rows if row["state"] == "finished")
    engine.dispose()
