"""Sweeps of 16 simulated runs on all cores: over those on one, by threads of `simulate` and by the engine's workers.

Each takes the same sweep twice in turn, first with one core, so the ratio is of one machine in one minute. The engine's
times are from the submission to the sweep's end, with the start of the workers, at a controller that is up.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from benchmarks.figures import Figure, document
from capstan_client import Capstan
from experiments.spec.spec import spec_from_dict
from experiments.spec.sweep import points
from simulation.batch import prepare, simulate
from topologies.cores import own_cores

GOAL: Final = 0.9
"""Of the cores."""
UP_S: Final = 60.0
SPEC: Final[dict[str, Any]] = {
    "name": "sixteen",
    "title": "16 runs",
    "fabric": {
        "topology": "leaf-spine",
        "leaves": 2,
        "spines": 4,
        "hosts_per_leaf": 4,
        "link": {"rate_mbps": 1000, "buffer_packets": 128},
        "access": {"rate_mbps": 1000, "buffer_packets": 128},
    },
    "schemes": ["caps"],
    "workload": {
        "flows": {
            "count": 4000,
            "sizes": {"kind": "fixed", "bytes": 300_000},
            "arrivals": {"kind": "poisson", "load": 0.5},
            "pattern": "left-to-right",
        }
    },
    "sweep": [{"label": "seed", "fields": ["seed"], "values": list(range(1, 17))}],
}


def run() -> dict[str, Any]:
    """Measure, and return the figures."""
    cores = own_cores().workers()
    figures: dict[str, Figure] = {}
    for name, seconds in (("simulate", _threads), ("engine", _engine)):
        one_core, all_cores = seconds(1), seconds(cores)
        figures[f"{name}: one core"] = Figure(one_core, "s")
        figures[f"{name}: {cores} cores"] = Figure(all_cores, "s")
        figures[f"{name}: speed-up a core"] = Figure(one_core / all_cores / cores, "of 1", GOAL, "higher")
    return document(figures, (f"16 runs of {SPEC['workload']['flows']['count']} flows each under caps",))


def _threads(cores: int) -> float:
    """Return the seconds that runs take as threads of one process."""
    spec = spec_from_dict(SPEC)
    cases = [prepare(point.spec) for point in points(spec)]
    begun = time.monotonic()
    if len(list(simulate(cases, cores=cores))) != len(cases):
        raise RuntimeError("not every run ended")
    return time.monotonic() - begun


def _engine(workers: int) -> float:
    """Return the seconds that runs take as a submitted sweep."""
    with tempfile.TemporaryDirectory() as directory, _controller(Path(directory), workers) as url:
        begun = time.monotonic()
        Capstan(url).submit(spec=SPEC, kind="simulation").wait()
        return time.monotonic() - begun


@contextmanager
def _controller(data: Path, workers: int) -> Iterator[str]:
    argv = [sys.executable, "-P", "-m", "cli", "serve", "--data", str(data), "--experiments", "--labs", "0"]
    argv += ["--simulations", str(workers), "--openflow", "127.0.0.1:0", "--api", "127.0.0.1:0"]
    root = Path(__file__).parent.parent
    process = subprocess.Popen(
        argv,
        env={**os.environ, "PYTHONPATH": str(root)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    try:
        assert process.stdout is not None
        if not process.stdout.readline():  # it says where it listens when it does
            raise RuntimeError(f"no controller: it ended with exit code {process.wait(UP_S)}")
        yield json.loads((data / "endpoints.json").read_text(encoding="utf-8"))["api"]
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(UP_S)
