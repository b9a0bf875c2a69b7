"""How fast the simulator is: 10,000 web search flows among 144 hosts, under a fixed window and under pFabric.

Each run is a process of its own, so that its memory is its own. Processor time is counted, not the clock's, and of the
simulator alone: what others do on the machine counts only as far as they share its caches. A data packet is one that a
host sent, sent again or not; each is acknowledged, and takes up to four hops, as its acknowledgement does.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from typing import Any, Final

from benchmarks.figures import Figure, document
from simulation.fabrics import Fabric
from simulation.runs import run as simulate
from simulation.settings import Buffer, PFabricHosts, Settings
from simulation.websearch import common_trace

GOAL_MPPS: Final = 0.45
"""Million data packets a second and core: 40 % of the processor time that YAPS takes."""
GOAL_MB: Final = 300.0
RUNS: Final = {
    "window 12, 16 spines": Settings(),
    "window 12, 4 spines of 40 Gbit/s": Settings(Fabric(spines=4, fabric_gbps=40)),
    "pFabric, 16 spines": Settings(
        buffer=Buffer("pfabric", limit_bytes=36_864), transport=PFabricHosts(), paths="turn"
    ),
    "pFabric, 16 spines, hash": Settings(
        buffer=Buffer("pfabric", limit_bytes=36_864), transport=PFabricHosts(), paths="sum"
    ),
}


def run() -> dict[str, Any]:
    """Measure, and give the figures."""
    figures: dict[str, Figure] = {}
    for name in RUNS:
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.simulator", name], check=True, capture_output=True, text=True
        )
        of = json.loads(done.stdout)
        figures[f"{name}: speed"] = Figure(of["mpps"], "M packets/s", GOAL_MPPS, "higher")
        figures[f"{name}: the trace"] = Figure(of["seconds"], "s")
        figures[f"{name}: memory"] = Figure(of["mb"], "MB", GOAL_MB)
    notes = (
        "speed: million data packets a second of processor time, on one core; the trace: s of processor time",
        "memory is that of the whole process, with Python, numpy and the trace",
    )
    return document(figures, notes)


def measure(name: str) -> dict[str, float]:
    """Return the figures of one run: mpps, seconds of processor time, and the largest memory of this process in MB."""
    totals = simulate(RUNS[name], common_trace()).totals
    return {
        "mpps": totals.data_packets_sent / totals.processor_s / 1e6,
        "seconds": totals.processor_s,
        "mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6,
    }


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1])))
