"""How long an experiment may take, before it has begun."""

from __future__ import annotations

from typing import Final

from experiments.run.progress import BETWEEN_RUNS_S, TAIL_S
from experiments.spec.spec import Spec
from workloads.applications import mean_bytes, parts
from workloads.arrivals import flow_rate

SIMULATED_PACKETS_PER_S: Final = 100_000
"""Data packets of one simulated run that a core carries in a second, with agents at both ends."""
BRING_UP_S: Final = 6.0
"""Of a lab with its controller and agents; points of one fabric share it, which this does not know."""


def expected_s(spec: Spec) -> float:
    """Return seconds for all runs of a spec, without its sweep: arrivals on average, and what lies between runs."""
    run_s = spec.warm_up_s + _arriving_s(spec) + TAIL_S + spec.pause_s + BETWEEN_RUNS_S
    return BRING_UP_S + run_s * len(spec.schemes) * spec.repeats


def simulated_s(spec: Spec) -> float:
    """Return seconds of one core for all simulated runs of a spec: by the packets that its flows bring at most."""
    packets = spec.expected_flows() * mean_bytes(parts(spec.workload.flows)) / spec.fabric.mtu
    packets += _background_bps(spec) / 8 * (spec.warm_up_s + _arriving_s(spec)) / spec.fabric.mtu
    return packets / SIMULATED_PACKETS_PER_S * len(spec.schemes) * spec.repeats


def _background_bps(spec: Spec) -> float:
    """Return bit/s that long flows carry at most: by the fabric, and by the links of their hosts; 0 if neither has a
    rate.
    """
    long_flows, access_mbps = spec.workload.long_flows, spec.fabric.access.rate_mbps
    if long_flows is None:
        return 0.0
    links = 1 if long_flows.pattern == "incast" else long_flows.number
    limits = (spec.capacity_bps(), None if access_mbps is None else links * access_mbps * 1e6)
    return min((limit for limit in limits if limit is not None), default=0.0)


def _arriving_s(spec: Spec) -> float:
    """Return how many seconds flows arrive for, on average."""
    flows = spec.workload.flows
    if flows.duration_s is not None:
        arriving = flows.duration_s
    else:
        rate = flow_rate(flows.arrivals, spec.capacity_bps(), mean_bytes(parts(flows)))
        arriving = (flows.count or 0) / rate
        if flows.arrivals.kind == "burst" and flows.arrivals.on_s:
            periods = arriving / flows.arrivals.on_s
            arriving += periods * (flows.arrivals.off_s or 0.0)
    return arriving
