"""How long CAPTON's scheduler takes to decide: 640 active flows on 144 hosts, as the paper has it, and up to 20,000 on
4,000 hosts.

The number of active flows stays the same: each finished flow is followed by a request. Both are decisions of their
own, timed from Python, as the controller makes them. Beside the scheduler stands the pseudocode of Figure 6 as it is,
compiled likewise, in the same run and with the same events; both must decide the same. Flows end as they would at their
granted rates; hosts are paired at random, sizes are Pareto (shape 1.2, mean 300 kB, at least 15 kB), the core is 3:1
over-subscribed, as the paper's.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Final

import capstan_native
import numpy as np

from benchmarks.figures import Figure, document

GOAL_US: Final = 10.0
"""The paper's: 640 active flows on 144 hosts."""
HOSTS_PER_LEAF: Final = 16
OVERSUBSCRIPTION: Final = 3
ACCESS_BPS: Final = 10 * 10**9
SIZES: Final = ((144, 160), (144, 640), (1000, 5000), (4000, 5000), (4000, 20_000))
"""Hosts and active flows; the paper's is the second."""
EVENTS: Final = 2000
PLAIN_EVENTS: Final = 300
_SHAPE: Final = 1.2
_LEAST_BYTES: Final = 15_000
_MEAN_BYTES: Final = 300_000


@dataclass(frozen=True, slots=True)
class Measured:
    """Microseconds of each decision; the decisions, to be compared."""

    times_us: np.ndarray
    decisions: list[list[tuple[int, int]]]


def run() -> dict[str, Any]:
    """Measure, and return the figures."""
    figures: dict[str, Figure] = {}
    for hosts, flows in SIZES:
        ours = measure(capstan_native.CaptonScheduler, hosts, flows, EVENTS)
        plain = measure(capstan_native.CaptonPlain, hosts, flows, PLAIN_EVENTS)
        same = [sorted(decision) for decision in ours.decisions[: len(plain.decisions)]]
        if same != [sorted(decision) for decision in plain.decisions]:
            raise RuntimeError(
                f"{flows} flows on {hosts} hosts: the scheduler and the pseudocode decide differently"
            )
        name = f"{flows} flows, {hosts} hosts"
        goal = GOAL_US if (hosts, flows) == (144, 640) else None
        figures[f"{name}: median"] = Figure(float(np.median(ours.times_us)), "us/decision", goal)
        figures[f"{name}: p99"] = Figure(float(np.quantile(ours.times_us, 0.99)), "us/decision")
        figures[f"{name}: pseudocode, median"] = Figure(float(np.median(plain.times_us)), "us/decision")
        ratio = np.median(plain.times_us) / np.median(ours.times_us)
        figures[f"{name}: pseudocode / scheduler"] = Figure(float(ratio), "ratio", None, "higher")
    return document(figures, _explanation())


def measure(
    kind: type[capstan_native.CaptonPlain | capstan_native.CaptonScheduler],
    hosts: int,
    flows: int,
    events: int,
) -> Measured:
    """Return how long *events* ends of flows take, each followed by a request, with so many flows active."""
    rng = np.random.default_rng(1)
    leaves = -(-hosts // HOSTS_PER_LEAF)
    core = ACCESS_BPS * HOSTS_PER_LEAF // OVERSUBSCRIPTION
    scheduler = kind(
        [[host // HOSTS_PER_LEAF] for host in range(hosts)],
        [ACCESS_BPS] * 2 * hosts + [core] * 2 * leaves,
        1_000_000,
        0,
        0,
    )
    arrivals = _arrivals(rng, hosts, flows + EVENTS)
    for name, (source, destination, size) in enumerate(arrivals[:flows]):
        scheduler.request(name, source, destination, size, 0)
    times: list[int] = []
    decisions: list[list[tuple[int, int]]] = []
    following, name = scheduler.next_event(), flows
    while following is not None and len(decisions) < 2 * events:
        start = time.perf_counter_ns()
        ended = scheduler.expire(following)
        times.append(time.perf_counter_ns() - start)
        decisions.append(ended)
        while len(scheduler) < flows and name < len(arrivals):
            start = time.perf_counter_ns()
            begun = scheduler.request(name, *arrivals[name], following)
            times.append(time.perf_counter_ns() - start)
            decisions.append(begun)
            name += 1
        following = scheduler.next_event()
    return Measured(np.array(times) / 1e3, decisions)


def _arrivals(rng: np.random.Generator, hosts: int, count: int) -> list[tuple[int, int, int]]:
    """Return the source, destination and size of so many flows."""
    sources = rng.integers(0, hosts, count)
    destinations = (sources + rng.integers(1, hosts, count)) % hosts
    scale = _MEAN_BYTES * (_SHAPE - 1) / _SHAPE
    sizes = np.maximum(_LEAST_BYTES, scale * (1 + rng.pareto(_SHAPE, count))).astype(int)
    return [
        (int(source), int(destination), int(size))
        for source, destination, size in zip(sources, destinations, sizes, strict=True)
    ]


def _explanation() -> tuple[str, ...]:
    return (
        f"{HOSTS_PER_LEAF} hosts a leaf, {ACCESS_BPS / 1e9:g} Gbit/s, core {OVERSUBSCRIPTION}:1 over-subscribed;"
        f" {EVENTS} ends and requests each, the number of active flows held; timed from Python, call included",
        "pseudocode: Figure 6 as it stands, compiled as the scheduler is, on the same events with the same decisions",
    )
