"""Submitted experiments on Dask workers: two real ones, as they would be on two machines."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import pytest

from tests.lab.engine_server import ROOT, TINY, Server, serving
from tests.waiting import eventually

pytestmark = pytest.mark.timeout(1200)
LONG: dict[str, Any] = TINY | {
    "workload": {
        "flows": {
            "count": 400,
            "sizes": {"kind": "fixed", "bytes": 200_000},
            "arrivals": {"kind": "poisson", "load": 0.4},
            "pattern": "left-to-right",
        }
    },
    "repeats": 1,
}
"""Long enough, at each point, for the other worker to begin, too."""
SOON_GONE: Final = ("--patience-s", "2")
"""What a worker that begins as its controller goes waits for that, and its Dask worker for it: a minute else."""


def address_in(reported: Path) -> str | None:
    """Return the address that a scheduler has written, once all of it is there; until then None."""
    with suppress(OSError, ValueError):
        return str(json.loads(reported.read_text())["address"])
    return None


@contextmanager
def cluster(directory: Path, workers: int) -> Iterator[str]:
    """Yield the address of a scheduler; it and its workers are processes of their own."""
    reported = directory / "scheduler.json"
    processes = []

    def start(kind: str, *words: str) -> None:
        with (directory / "dask.log").open("ab") as log:
            argv = [sys.executable, "-m", f"distributed.cli.dask_{kind}", *words, "--no-dashboard"]
            processes.append(subprocess.Popen(argv, cwd=ROOT, stdout=log, stderr=log))

    try:
        start("scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(reported))
        address = eventually(
            lambda: address_in(reported), lambda: (directory / "dask.log").read_text()[-3000:]
        )
        for _ in range(workers):
            start("worker", address, "--nthreads", "1", "--no-nanny", "--local-directory", str(directory))
        yield address
    finally:
        # a worker whose scheduler goes while it closes gives its closing up, and its process stays
        for ending in (processes[1:], processes[:1]):
            for process in ending:
                process.terminate()
            for process in ending:
                end(process)


def end(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(60)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def workers_of(server: Server, number: int) -> set[str]:
    return {one["name"] for one in server.progress(number)["workers"]}


def finished_by_two(server: Server, number: int, seeds: list[int]) -> dict[str, Any]:
    """Return a sweep over *seeds* that two workers have shared, once it has finished with all of its points."""
    seen: set[str] = set()

    def both() -> bool:
        seen.update(workers_of(server, number))
        return len(seen) == 2

    server.wait(both, 120)
    server.until(number, "finished", "failed", "interrupted")
    finished: dict[str, Any] = server.ask("GET", f"/experiments/{number}")
    assert finished["state"] == "finished", finished["error"]
    assert [point["words"] for point in finished["summary"]["points"]] == [f"seed = {n}" for n in seeds]
    return finished


def test_two_dask_workers_share_the_points_of_a_sweep(tmp_path: Path) -> None:
    with (
        cluster(tmp_path, 2) as address,
        serving(tmp_path / "data", "--dask", address, "--labs", "2", *SOON_GONE) as server,
    ):
        server.wait(lambda: server.ask("GET", "/engine")["workers"] == 2, 120)
        assert server.ask("GET", "/engine")["address"] == address
        # more than one of them does while a busy machine keeps the other from starting
        seeds = list(range(1, 13))
        number = server.submit(spec=TINY, sweep={"seed": seeds}, schemes=["ecmp"])
        finished_by_two(server, number, seeds)
        assert len(server.ask("GET", f"/experiments/{number}/results.csv").splitlines()) == 1 + len(seeds)


def test_two_dask_workers_share_the_points_of_a_simulated_sweep(tmp_path: Path) -> None:
    with (
        cluster(tmp_path, 2) as address,
        serving(
            tmp_path / "data", "--dask", address, "--labs", "0", "--simulations", "2", *SOON_GONE
        ) as server,
    ):
        server.wait(lambda: server.ask("GET", "/engine")["simulation_workers"] == 2, 120)
        assert server.ask("GET", "/engine")["address"] == address
        seeds = list(range(1, 9))
        number = server.submit(spec=LONG, kind="simulation", sweep={"seed": seeds}, schemes=["ecmp"])
        finished = finished_by_two(server, number, seeds)
        assert finished["summary"]["simulated"]
