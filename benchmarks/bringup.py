"""How long a fabric takes to come up, from nothing until every host reaches every other, and to be gone."""

from __future__ import annotations

import statistics
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from benchmarks.figures import BenchmarkError, Figure, document
from benchmarks.unused_workload import UNUSED_WORKLOAD
from experiments.run.deployment import Deployment
from experiments.spec.spec import Spec, spec_from_dict
from topologies.processes import find_processes
from topologies.registry import RUN_ROOT

UP_GOAL_S: Final = 15.0
GONE_GOAL_S: Final = 5.0
ROUNDS: Final = 3
ANSWER_S: Final = 60
_PING_ALL: Final = 'for to; do ping -n -q -c 1 -W "$0" "$to" >/dev/null || echo "$to" & done; wait'
"""All at once; prints who did not answer."""


@dataclass(frozen=True, slots=True)
class Round:
    """One life of a fabric, in seconds: each stage of the start by name, the whole start, and the end."""

    stages: Mapping[str, float]
    up_s: float
    gone_s: float


def fabric() -> Spec:
    """Return two leaves, eight spines, 16 hosts."""
    return spec_from_dict(
        {
            "name": "bench-bringup",
            "title": "two leaves, eight spines, 16 hosts",
            "fabric": {
                "leaves": 2,
                "spines": 8,
                "hosts_per_leaf": 8,
                "link": {"rate_mbps": 10},
                "access": {"rate_mbps": 50},
            },
            "schemes": ["ecmp"],
            "workload": UNUSED_WORKLOAD,
        }
    )


def run(rounds: int = ROUNDS) -> dict[str, Any]:
    """Return all figures in seconds: the slowest round against the goals, and the median of each stage."""
    spec = fabric()
    lives = [live(spec) for _ in range(rounds)]
    figures = {
        "up_worst": Figure(max(life.up_s for life in lives), "s", UP_GOAL_S),
        "up_median": Figure(statistics.median(life.up_s for life in lives), "s"),
        "gone_worst": Figure(max(life.gone_s for life in lives), "s", GONE_GOAL_S),
        "gone_median": Figure(statistics.median(life.gone_s for life in lives), "s"),
    }
    for name in lives[0].stages:
        figures[name] = Figure(statistics.median(life.stages[name] for life in lives), "s")
    notes = (
        f"up: lab, controller and {len(spec.endpoints())} agents started, everything discovered, a flow from every "
        "host to another leaf, then every host pings every other over the overlay",
        "gone: no process, directory or interface of the lab is left",
    )
    return document(figures, notes)


def live(spec: Spec) -> Round:
    """Return one fabric up and gone."""
    began = time.monotonic()
    stages: list[tuple[str, float]] = []
    deployment = Deployment(spec, on_stage=lambda text: stages.append((_name(text), time.monotonic())))
    with deployment:
        stages.append(("every_pair", time.monotonic()))
        ping_all(deployment)
        up = time.monotonic()
    gone = time.monotonic()
    processes = find_processes(deployment.lab.lab_id)
    if processes or (RUN_ROOT / deployment.lab.lab_id).exists():
        raise BenchmarkError(f"lab {deployment.lab.lab_id} left processes {processes} or its directory")
    ends = [moment for _, moment in stages[1:]] + [up]
    return Round(
        {name: end - begin for (name, begin), end in zip(stages, ends, strict=True)},
        up - began,
        gone - up,
    )


def ping_all(deployment: Deployment) -> None:
    """Have every host ping every other over the overlay, all at once. Raise BenchmarkError that names who is
    missed.
    """
    hosts = deployment.spec.endpoints()
    started = [
        (
            host,
            deployment.lab.popen(
                host.host,
                ["sh", "-c", _PING_ALL, str(ANSWER_S), *(other.address for other in hosts if other != host)],
                stdout=subprocess.PIPE,
                text=True,
            ),
        )
        for host in hosts
    ]
    missed = []
    for host, process in started:
        out, _ = process.communicate(timeout=ANSWER_S + 30)
        missed += [f"{host.host} to {address}" for address in out.split()]
    if missed:
        raise BenchmarkError(
            f"{len(missed)} of {len(hosts) * (len(hosts) - 1)} pings were not answered within {ANSWER_S} s: "
            f"{', '.join(missed[:5])}"
        )


def _name(stage: str) -> str:
    """Return `building the fabric: 2 leaves ...` as `building_the_fabric`."""
    return stage.partition(":")[0].replace(",", "").replace(" ", "_")
