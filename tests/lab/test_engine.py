"""Submitted experiments in real labs, cancelled, killed, gone on with: nothing that was kept is lost or done again."""

from __future__ import annotations

import copy
import os
import signal
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.lab.engine_server import TINY, Server, gone, serving
from topologies.registry import labs

pytestmark = pytest.mark.timeout(1200)
REPEATS = 5
"""So many that some are left when a busy machine has let us see that some are done."""


def tiny(count: int = 6, repeats: int = 1) -> dict[str, Any]:
    spec = copy.deepcopy(TINY)
    spec["workload"]["flows"]["count"] = count
    return spec | {"repeats": repeats}


def lab_of(server: Server, number: int) -> str:
    """Return the id of an experiment's lab, once it is registered."""

    def found() -> str | None:
        workers = server.progress(number)["workers"]
        lab: str | None = workers[0]["lab"] if workers else None
        return lab if lab in {one.lab_id for one in labs()} else None

    server.wait(lambda: found() is not None, 120)  # the first worker may have to set its environment up
    return str(found())


def wait_gone(server: Server, lab: str) -> None:
    server.wait(lambda: lab not in {one.lab_id for one in labs()}, 120)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("served") / "data") as one:
        yield one


def test_cancelled_while_its_lab_comes_up_and_while_it_runs_and_stopped_with_the_controller(
    server: Server,
) -> None:
    number, behind = server.submit(spec=tiny(count=2000)), server.submit(spec=tiny(count=2000))
    assert server.progress(behind)["queue_position"] in (1, 2)
    lab = lab_of(server, number)
    assert server.ask("POST", f"/experiments/{number}/cancel", 202)["state"] == "cancelling"
    assert server.until(number, "cancelled", timeout_s=120) == "cancelled"
    wait_gone(server, lab)

    server.wait(lambda: server.progress(behind)["flows_finished"] > 0, 120)  # the next one's turn
    lab = lab_of(server, behind)
    assert server.stop() == 0
    wait_gone(server, lab)
    server.start()
    assert server.state(behind) in ("queued", "running"), "it goes on waiting"
    server.wait(lambda: server.progress(behind)["flows_finished"] > 0, 120)
    lab = lab_of(server, behind)
    server.ask("POST", f"/experiments/{behind}/cancel", 202)
    server.until(behind, "cancelled", timeout_s=120)
    wait_gone(server, lab)
    server.ask("POST", f"/experiments/{behind}/cancel", 409)


def test_killed_worker_and_killed_controller_lose_no_run_and_none_is_done_twice(server: Server) -> None:
    number = server.submit(spec=tiny(repeats=REPEATS))
    random = np.random.default_rng(7)
    runs, flows = int(random.integers(1, 3)), int(random.integers(1, 5))

    def moment() -> bool:
        """Return whether so many runs are kept, and so many flows of the next one are over."""
        now = server.progress(number)
        return bool(now["runs_done"] > runs or (now["runs_done"], now["flows_finished"]) >= (runs, flows))

    server.wait(moment, 120)
    lab, worker = lab_of(server, number), server.worker(number)
    os.kill(worker, signal.SIGKILL)
    server.until(number, "interrupted", timeout_s=120)
    reported = server.ask("GET", f"/experiments/{number}")
    assert "killed by signal 9" in reported["error"]
    first = {run["id"]: run["started_at"] for run in reported["runs"]}
    assert len(first) >= runs
    wait_gone(server, lab)

    server.ask("POST", f"/experiments/{number}/rerun", 202)
    server.wait(lambda: server.progress(number)["runs_done"] > len(first), 120)
    worker = server.worker(number)
    server.stop(signal.SIGKILL)
    assert not gone(worker), "workers outlive their controller"
    server.start()
    assert server.until(number, "finished", "failed", "interrupted") == "finished"
    results = server.ask("GET", f"/experiments/{number}/results")
    kept = {run["id"]: run["started_at"] for run in results["runs"]}
    assert first.items() <= kept.items()
    assert len(kept) == 2 * REPEATS
    assert results["experiment"]["attempt"] == 2
    document = results["summary"]
    assert {label: one["short"]["n"] for label, one in document["schemes"].items()} == {
        "ecmp": 6 * REPEATS,
        "caps": 6 * REPEATS,
    }
    assert sorted(run["run_id"] for run in document["runs"]) == sorted(kept)
    caps = [run for run in document["runs"] if run["scheme"] == "caps"]
    assert all(run["modes"] for run in caps), "of runs of both attempts"
    assert len(server.ask("GET", f"/experiments/{number}/flows.csv").splitlines()) == 1 + 12 * REPEATS
    server.wait(lambda: gone(worker), 120)
