"""The secret by which a worker's word of its lab's address is believed: from the controller to the report."""

from __future__ import annotations

import os
import sys
from concurrent.futures import Future
from pathlib import Path

import pytest
from click.testing import CliRunner
from sqlalchemy import create_engine

from cli.commands.work import work_command
from controller.store.experiments import ExperimentStore
from engine import executors, worker
from engine.executors import SECRET_VARIABLE, Order, WorkerEnd, work
from engine.serving import ServedEngine
from engine.turns import Kind
from engine.worker import Heartbeat
from engine.worker_client import WorkerClient


class SomeWorkers:
    """Keeps the order that would start them."""

    kind: str = "some"

    def __init__(self, on_this_machine: bool) -> None:
        self.address: str | None = None
        self.on_this_machine = on_this_machine

    def slots(self, kind: Kind) -> int:
        return 0

    def cores(self) -> int:
        return 0

    def problem(self) -> str:
        return ""

    def start(self, order: Order) -> Future[WorkerEnd]:
        raise AssertionError

    def close(self) -> None:
        pass


def served_with(workers: SomeWorkers) -> ServedEngine:
    engine = create_engine("sqlite://")
    store = ExperimentStore(engine)
    return ServedEngine(engine, store, lambda event: None, workers, labs=1, patience_s=1.0, secret="it")


@pytest.mark.parametrize("here", [True, False])
def test_only_workers_of_this_machine_are_given_it(here: bool) -> None:
    served = served_with(SomeWorkers(here))
    served.start("http://127.0.0.1:9", None)
    try:
        order = served._engine._order
        assert order is not None
        assert order.secret == ("it" if here else None)
    finally:
        served.stop()


def test_words_around_a_certificate_may_be_in_any_language(tmp_path: Path) -> None:
    certificate = tmp_path / "certificate.pem"
    pem = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
    certificate.write_text(f"Subject: O=Universität\n{pem}", encoding="utf-8")
    served = served_with(SomeWorkers(True))
    served.start("https://127.0.0.1:9", None, certificate)
    try:
        order = served._engine._order
        assert order is not None
        assert order.authority is not None
        assert order.authority.endswith(pem)
    finally:
        served.stop()


def test_a_worker_has_it_in_its_environment_and_not_among_its_arguments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "program.py"
    program.write_text("import os, sys; print(sys.argv, os.environ.get('CAPSTAN_WORKER_SECRET'))")
    monkeypatch.setattr(executors, "launcher", lambda: [sys.executable, str(program)])
    monkeypatch.setenv(SECRET_VARIABLE, "another's")
    for secret in ("it", None):
        end = work(Order("w", "http://127.0.0.1:9", secret=secret))
        arguments, _, said = end.tail.rpartition(" ")
        assert said == str(secret)
        assert "it" not in arguments.split("'")


def test_work_takes_it_out_of_the_environment_and_reports_show_it(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    class Seen(worker.Worker):
        def run(self) -> int:
            assert SECRET_VARIABLE not in os.environ, "programs that it starts have no use for it"
            beat = Heartbeat(WorkerClient("http://127.0.0.1:9"), 1, 1, "w", secret=self._secret)
            seen.append(beat._report().secret)
            return 0

    monkeypatch.setattr(worker, "Worker", Seen)
    monkeypatch.setattr("cli.commands.work.BEHIND_OTHERS", 0)
    monkeypatch.setenv(SECRET_VARIABLE, "it")
    done = CliRunner().invoke(work_command, ["--api", "http://127.0.0.1:9", "--simulations"])
    assert done.exit_code == 0, done.output
    assert seen == ["it"]
