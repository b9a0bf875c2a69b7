"""Submitted simulations on two real Dask workers, as they would be on two machines."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lab.engine_server import TINY, serving
from tests.lab.test_engine_dask import SOON_GONE, cluster, workers_of

pytestmark = pytest.mark.timeout(300)
FLOWS = {
    "count": 400,
    "sizes": {"kind": "fixed", "bytes": 200_000},
    "arrivals": {"kind": "poisson", "load": 0.5},
    "pattern": "left-to-right",
}
"""Seconds a run: one worker does not end the sweep before the other has begun."""


def test_a_simulated_sweep_spreads_over_the_threads_of_a_cluster(tmp_path: Path) -> None:
    with (
        cluster(tmp_path, 2) as address,
        serving(tmp_path / "data", "--dask", address, *SOON_GONE) as server,
    ):
        server.wait(lambda: server.ask("GET", "/engine")["simulation_workers"] == 2, 120)
        seeds = list(range(1, 13))
        spec = TINY | {"schemes": ["caps"], "workload": {"flows": FLOWS}}
        number = server.submit(spec=spec, kind="simulation", sweep={"seed": seeds})
        server.wait(lambda: len(workers_of(server, number)) == 2, 120)
        assert server.until(number, "finished", "failed", "interrupted") == "finished"
        found = server.ask("GET", f"/experiments/{number}")
        assert [point["words"] for point in found["summary"]["points"]] == [f"seed = {n}" for n in seeds]
        assert found["simulated"]
