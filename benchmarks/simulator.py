"""How fast the simulator is: web search flows among 144 hosts, without agents, and with them under every scheme; how
long a small experiment takes from the command to its result.

Each run is a process of its own, so that its memory is its own. Processor time is counted, not the clock's, and of the
simulator alone: what others do on the machine counts only as far as they share its caches. A data packet is one that a
host sent, sent again or not; each is acknowledged, and takes up to four hops, as its acknowledgement does. With agents
it is one that a host gave its agent, whatever it carries.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from benchmarks.figures import Figure, document
from controller.schemes.loader import scheme_names
from experiments.spec.spec import SchemeChoice, Spec, spec_from_dict
from simulation.experiment import simulate_document
from simulation.fabrics import Fabric
from simulation.runs import run as simulate
from simulation.settings import Buffer, PFabricHosts, Settings
from simulation.websearch import common_trace, web_search

ROOT: Final = Path(__file__).parent.parent
GOAL_MPPS: Final = 0.45
"""Million data packets a second and core: 40 % of the processor time that YAPS takes."""
GOAL_MB: Final = 300.0
GOAL_RATIO: Final = 3.0
"""Processor time of a scheme over that of ecmp, on the same flows."""
GOAL_MANY_S: Final = 300.0
GOAL_START_S: Final = 2.0
MANY_FLOWS: Final = 100_000
MANY: Final = "100,000 flows, window 12, 16 spines"
START: Final = ("simulate", "small", "--scheme", "ecmp", "--repeats", "1")
STARTS: Final = 3
AGENT_FLOWS: Final = 1000
AGENT_SCHEMES: Final = ("ecmp", *(name for name in scheme_names() if name != "ecmp"))
AGENTS: Final = "agents "
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
    """Measure, and return the figures."""
    figures: dict[str, Figure] = {}
    for name in RUNS:
        of = _measured(name)
        figures[f"{name}: speed"] = Figure(of["mpps"], "M packets/s", GOAL_MPPS, "higher")
        figures[f"{name}: the trace"] = Figure(of["seconds"], "s")
        figures[f"{name}: memory"] = Figure(of["mb"], "MB", GOAL_MB)
    many = _measured(MANY)
    figures[f"{MANY}: processor time"] = Figure(many["seconds"], "s", GOAL_MANY_S)
    figures[f"{MANY}: memory"] = Figure(many["mb"], "MB", GOAL_MB)
    figures["./capstan simulate small, from start to result"] = Figure(_start_s(), "s", GOAL_START_S)
    ecmp_s = 0.0
    for scheme in AGENT_SCHEMES:
        of = _measured(f"{AGENTS}{scheme}")
        ecmp_s = ecmp_s or of["seconds"]
        figures[f"agents, {scheme}: speed"] = Figure(of["mpps"], "M packets/s")
        figures[f"agents, {scheme}: memory"] = Figure(of["mb"], "MB", GOAL_MB)
        figures[f"agents, {scheme}: time over that of ecmp"] = Figure(of["seconds"] / ecmp_s, "", GOAL_RATIO)
    notes = (
        f"agents: {AGENT_FLOWS} web search flows at a load of 0.6 through agents of 144 hosts, 16 spines, 10 Gbit/s",
        "speed: million data packets a second of processor time, on one core; the trace: s of processor time",
        "memory is that of the whole process, with Python, numpy and the trace",
        f"from start to result: seconds of the clock, the least of {STARTS}, of ecmp's first run",
    )
    return document(figures, notes)


def _start_s() -> float:
    """Return the seconds of the clock that a small experiment takes, the least of some."""
    seconds = []
    for _ in range(STARTS):
        with tempfile.TemporaryDirectory() as results:
            command = [sys.executable, "-P", "-m", "cli", *START, "--results", results]
            begun = time.monotonic()
            subprocess.run(
                command, check=True, capture_output=True, env={**os.environ, "PYTHONPATH": str(ROOT)}
            )
            seconds.append(time.monotonic() - begun)
    return min(seconds)


def _measured(name: str) -> dict[str, float]:
    """Return what a process of its own measures of a run."""
    command = [sys.executable, "-m", "benchmarks.simulator", name]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    measured: dict[str, float] = json.loads(done.stdout)
    return measured


def measure(name: str, flows: int = AGENT_FLOWS) -> dict[str, float]:
    """Return the figures of one run: mpps, seconds of processor time, and the largest memory of this process in MB.

    flows: of a run with agents.
    """
    if name.startswith(AGENTS):
        return measure_agents(name.removeprefix(AGENTS), flows)
    if name == MANY:
        totals = simulate(Settings(), web_search(MANY_FLOWS)).totals
    else:
        totals = simulate(RUNS[name], common_trace()).totals
    return {
        "mpps": totals.data_packets_sent / totals.processor_s / 1e6,
        "seconds": totals.processor_s,
        "mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6,
    }


def agent_spec(scheme: str, flows: int) -> Spec:
    """Return web search flows among the hosts of 9 leaves and 16 spines, all at 10 Gbit/s."""
    link = {"rate_mbps": 10_000, "buffer_packets": 256}
    text = {
        "name": "web-search-144",
        "title": "Web search flows among 144 hosts",
        "fabric": {
            "topology": "leaf-spine",
            "leaves": 9,
            "spines": 16,
            "hosts_per_leaf": 16,
            "link": link,
            "access": link,
        },
        "schemes": [scheme],
        "baseline": scheme,
        "workload": {
            "flows": {
                "count": flows,
                "sizes": {"kind": "table", "table": "websearch"},
                "arrivals": {"kind": "poisson", "load": 0.6},
                "pattern": "random",
            }
        },
        "timeout_s": 60,
    }
    return spec_from_dict(text)


def measure_agents(scheme: str, flows: int) -> dict[str, float]:
    """Return the same figures of a run with agents."""
    spec = agent_spec(scheme, flows)
    begun_s = time.process_time()
    _, (run,) = simulate_document(replace(spec, schemes=(SchemeChoice(scheme, scheme),), repeats=1))
    seconds = time.process_time() - begun_s
    return {
        "mpps": sum(flow.packets for flow in run.flows) / seconds / 1e6,
        "seconds": seconds,
        "mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6,
    }


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], *map(int, sys.argv[2:]))))
