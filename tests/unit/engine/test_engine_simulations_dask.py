"""Submitted simulations on two real Dask workers, as they would be on two machines."""

from __future__ import annotations

import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from engine.executors import DaskWorkers, ExecutorError
from tests.free_ports import free_port
from tests.lab.engine_server import ROOT, TINY, serving
from tests.lab.test_engine_dask import SOON_GONE, cluster, workers_of
from tests.waiting import eventually

pytestmark = pytest.mark.timeout(300)
FLOWS = {
    "count": 400,
    "sizes": {"kind": "fixed", "bytes": 200_000},
    "arrivals": {"kind": "poisson", "load": 0.5},
    "pattern": "left-to-right",
}
"""Seconds a run: one worker does not end the sweep before the other has begun."""


@pytest.mark.slow
def test_a_simulated_sweep_spreads_over_the_threads_of_a_cluster(tmp_path: Path) -> None:
    with (
        cluster(tmp_path, 2) as address,
        serving(tmp_path / "data", "--dask", address, *SOON_GONE) as server,
    ):
        server.wait(lambda: server.ask("GET", "/engine")["simulation_workers"] == 2, 120)
        connected = DaskWorkers(address)
        assert connected.cores() == 1, "of two workers with a thread each"
        connected.close()
        seeds = list(range(1, 13))
        spec = TINY | {"schemes": ["caps"], "workload": {"flows": FLOWS}}
        number = server.submit(spec=spec, kind="simulation", sweep={"seed": seeds})
        server.wait(lambda: len(workers_of(server, number)) == 2, 120)
        assert server.until(number, "finished", "failed", "interrupted") == "finished"
        found = server.ask("GET", f"/experiments/{number}")
        assert [point["words"] for point in found["summary"]["points"]] == [f"seed = {n}" for n in seeds]
        assert found["simulated"]


@pytest.mark.slow
def test_a_scheduler_that_was_started_again_is_found_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.executors.CONNECT_AGAIN_S", 0.2)
    port = free_port()

    def scheduler() -> subprocess.Popen[bytes]:
        argv = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1"]
        with (tmp_path / "dask.log").open("ab") as log:
            return subprocess.Popen(
                [*argv, "--port", str(port), "--no-dashboard"], cwd=ROOT, stdout=log, stderr=log
            )

    def connected() -> DaskWorkers | None:
        with suppress(ExecutorError):
            return DaskWorkers(f"tcp://127.0.0.1:{port}", timeout_s=1.0)
        return time.sleep(0.5)

    process = scheduler()
    try:
        workers = eventually(connected)
        assert workers is not None
        assert workers.problem() == ""
        process.kill()
        process.wait()
        eventually(lambda: "no Dask scheduler answers at" in workers.problem())
        assert [workers.slots(kind) for kind in ("lab", "simulation")] == [0, 0]  # type: ignore[arg-type]
        process = scheduler()
        eventually(lambda: workers.problem() == "")
        assert (workers.slots("lab"), workers.cores()) == (0, 0), "of a cluster that answers without workers"
        workers.close()
    finally:
        process.kill()
        process.wait()
