"""How long TPFS takes to find types and thresholds, and what memory it wants: 10^4 to 10^6 records of four
applications.

Each size runs in a process of its own on two cores, as the controller does it: types by destination port, 100
hosts, ports of clients ephemeral. And what types cost an agent: a packet (`agent_priority`), and under traffic
(`tpfs_agent`). Memory is the most that the process had resident, libraries and records included.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

from benchmarks.agent_priority import cost_us
from benchmarks.figures import Figure, document
from benchmarks.tpfs_agent import ROUNDS, agent_load

SIZES: Final = (10_000, 30_000, 100_000, 300_000, 1_000_000)
GOAL_S: Final = 10.0
GOAL_MB: Final = 1000.0
GOAL_PACKET_US: Final = 0.5
GOAL_POINTS: Final = 3.0
CORES: Final = 2
HOSTS: Final = 100
TABLES: Final = ("websearch", "datamining", "cache-follower", "hadoop")
_ROOT: Final = Path(__file__).resolve().parent.parent


def run() -> dict[str, Any]:
    """Measure, and return the figures."""
    figures: dict[str, Figure] = {}
    for count in SIZES:
        seconds, megabytes = measure(count)
        last = count == SIZES[-1]
        figures[f"{count} records"] = Figure(seconds, "s", GOAL_S if last else None)
        figures[f"{count} records, memory"] = Figure(megabytes, "MB", GOAL_MB if last else None)
    load = agent_load()
    figures["agent"] = Figure(load.share, "% of a core")
    figures["agent, added by types"] = Figure(load.added, "points", GOAL_POINTS)
    cost = cost_us()
    for name in ("packet", "flow"):
        figures[f"agent, {name}"] = Figure(cost[name], "us")
        goal = GOAL_PACKET_US if name == "packet" else None
        figures[f"agent, added to a {name}"] = Figure(cost[f"added to a {name}"], "us", goal)
    notes = (
        f"records of {', '.join(TABLES)} on a port each, {HOSTS} hosts; features, types, and thresholds of 8 queues,"
        f" on {CORES} cores",
        f"agent: one of two that carry {load.flows} flows of web search and Hadoop, {load.mbps:.0f} Mbit/s together, in"
        f" turns with and without types; medians of {ROUNDS} pairs of turns",
        "packet, flow: what priority by bytes sent and 1000 types' values adds to a packet, and to a flow's first one",
    )
    return document(figures, notes)


def measure(count: int) -> tuple[float, float]:
    """Return seconds for *count* records, and megabytes of the process that did it."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.tpfs", str(count)],
        cwd=_ROOT,
        check=True,
        capture_output=True,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": str(CORES), "OPENBLAS_NUM_THREADS": str(CORES)},
    )
    answer = json.loads(done.stdout.splitlines()[-1])
    if answer["features"] != ["destination_port"] or answer["types"] != len(TABLES):
        raise RuntimeError(
            f"{count} records: {answer['types']} types by {answer['features']}, not {len(TABLES)}"
        )
    return answer["seconds"], answer["megabytes"]


def _measured(count: int) -> dict[str, Any]:
    """Return what learning types from *count* records takes, in a process of its own."""
    import resource
    import time

    import numpy as np

    from controller.queues.pias import PUBLISHED
    from controller.tpfs.records import RECORD
    from controller.tpfs.types import flow_types
    from workloads.description import Sizes
    from workloads.sizes import distribution

    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])
    rng = np.random.default_rng(1)
    records = np.zeros(count, RECORD)
    application = rng.integers(0, len(TABLES), count)
    records["source"] = rng.integers(0, HOSTS, count)
    records["destination"] = (records["source"] + rng.integers(1, HOSTS, count)) % HOSTS
    records["host"] = records["source"]
    records["source_port"] = rng.integers(32768, 60999, count)
    records["destination_port"] = 5000 + application
    for number, table in enumerate(TABLES):
        mine = application == number
        records["bytes"][mine] = distribution(Sizes(kind="table", table=table)).sample(rng, int(mine.sum()))
    start = time.perf_counter()
    types = flow_types(
        records, [f"10.128.{n}.1" for n in range(HOSTS)], PUBLISHED["websearch"][0.8], load=0.6
    )
    seconds = time.perf_counter() - start
    return {
        "seconds": seconds,
        "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6,
        "features": list(types.features) if types else [],
        "types": len(types.types) if types else 0,
    }


if __name__ == "__main__":
    print(json.dumps(_measured(int(sys.argv[1]))))
