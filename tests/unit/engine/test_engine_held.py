"""A queue whose one worker is the process that holds the lab: when it counts, and when a demo gives way."""

from __future__ import annotations

from pathlib import Path

import pytest

from controller.store.database import open_database
from controller.store.experiments import ExperimentStore
from controller.store.queue import ExperimentQueue
from engine.dispatcher import Engine
from engine.executors import LocalWorkers
from engine.submission import read_submission
from engine.submission_bodies import SubmissionBody
from experiments.run.progress import RunProgress
from experiments.run.recording import CancelledError
from experiments.run.showing import ASK_EVERY_S, GiveWay

NOW = RunProgress("caps", 1, 3, 5, 0, 20, 1.0, 9.0)
WORKER = "lab@machine:1"


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    """Return an engine without workers of its own, as a lab's controller has."""
    database = open_database(f"sqlite:///{tmp_path / 'capstan.db'}")
    ExperimentStore(database)
    return Engine(ExperimentQueue(database), LocalWorkers(0, 0), lambda event: None, "secret")


def test_a_worker_that_asks_for_labs_counts_before_it_has_anything(engine: Engine) -> None:
    assert engine.state()["workers"] == 0
    assert engine.claim(WORKER, "", "simulations") is None
    assert engine.state()["workers"] == 0
    assert engine.claim(WORKER, "", "all") is None
    assert engine.state()["workers"] == 1


def test_what_waits_for_a_lab_is_not_called_in_vain_while_such_a_worker_is_there(engine: Engine) -> None:
    engine.submit(read_submission(SubmissionBody(preset="small")))
    assert "no worker of this controller takes labs" in str(engine.state()["paused"])
    engine.claim(WORKER, "", "all")
    engine.submit(read_submission(SubmissionBody(preset="small")))
    assert engine.state()["paused"] is None


def test_a_round_goes_on_while_nothing_is_queued_and_gives_way_once_something_is() -> None:
    now, asked, queued, seen = [0.0], [0], [False], []

    def wanted() -> bool:
        asked[0] += 1
        return queued[0]

    step = GiveWay(seen.append, wanted, lambda: now[0])
    for _ in range(10):
        step(NOW)
    assert asked[0] == 0
    for second in range(1, 5):
        now[0] = second * ASK_EVERY_S
        step(NOW)
        step(NOW)
        assert asked[0] == second, "at most once a second"
    queued[0] = True
    step(NOW)
    now[0] += ASK_EVERY_S
    with pytest.raises(CancelledError, match="experiment that was submitted"):
        step(NOW)
    assert seen == [NOW] * 20, "progress is passed on whatever comes of it"
